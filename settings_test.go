// Copyright 2026 The llm_gateway Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package llmgateway

import (
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

func TestDefaults(t *testing.T) {
	c := parseJSON(t, `{"channels": [{"name": "a"}]}`)
	ch := c.Channels[0]
	for what, ok := range map[string]bool{
		"name":                  c.name() == "default",
		"retries":               c.retries() == 3,
		"early_probe":           c.earlyProbe() == 10*time.Second,
		"abandon_after":         c.abandonAfter() == 30*time.Second,
		"max_body":              c.maxBody() == 64<<20,
		"weighted":              c.weightedPolicy(),
		"weight":                ch.weight() == 1,
		"header_timeout stream": c.headerTimeout(ch, true) == 2*time.Minute,
		"header_timeout other":  c.headerTimeout(ch, false) == 10*time.Minute,
		"idle_timeout":          c.idleTimeout(ch) == 10*time.Minute,
		"breaker":               c.breakerSettings(ch) == breaker.DefaultSettings(),
	} {
		if !ok {
			t.Errorf("%s has another default", what)
		}
	}
}

func TestWrittenValuesWin(t *testing.T) {
	c := parseJSON(t, `{"name": "prod", "retries": 0, "early_probe": 0, "abandon_after": 0, "max_body": 1,
		"lb_policy": {"policy": "first"}, "channels": [{"name": "a", "weight": 7}]}`)
	if c.name() != "prod" || c.retries() != 0 || c.earlyProbe() != 0 || c.abandonAfter() != 0 || c.maxBody() != 1 {
		t.Errorf("a written value does not win: %+v", c)
	}
	if c.weightedPolicy() || c.Channels[0].weight() != 7 {
		t.Error("a written policy or weight does not win")
	}
	if s := c.breakerSettings(c.Channels[0]); s.EarlyProbe != 0 {
		t.Errorf("the breaker probes early after %s", s.EarlyProbe)
	}
	if c := parseJSON(t, `{"lb_policy": {"policy": "weighted"}}`); !c.weightedPolicy() {
		t.Error("weighted by name is not weighted")
	}
}

func TestTimeoutsAreInheritedValueByValue(t *testing.T) {
	for _, tc := range []struct {
		gateway, channel string
		stream, other    time.Duration
	}{
		{`{}`, `{}`, 2 * time.Minute, 10 * time.Minute},
		{`{"stream": 1}`, `{}`, 1, 10 * time.Minute},
		{`{"stream": 1, "other": 2}`, `{}`, 1, 2},
		{`{"stream": 1, "other": 2}`, `{"stream": 3}`, 3, 2},
		{`{"other": 2}`, `{"stream": 3}`, 3, 2},
		{`{"stream": 1}`, `{"other": 4}`, 1, 4},
		{`null`, `{"stream": 3, "other": 4}`, 3, 4},
		{`{"stream": 1, "other": 2}`, `null`, 1, 2},
	} {
		c := parseJSON(t, `{"header_timeout": `+tc.gateway+`, "breaker": {"probe_timeout": `+tc.gateway+`},
			"channels": [{"header_timeout": `+tc.channel+`, "breaker": {"probe_timeout": `+tc.channel+`}}]}`)
		ch := c.Channels[0]
		if s, o := c.headerTimeout(ch, true), c.headerTimeout(ch, false); s != tc.stream || o != tc.other {
			t.Errorf("header_timeout %s, in the channel %s: %s %s", tc.gateway, tc.channel, s, o)
		}
		if s := c.breakerSettings(ch); s.ProbeTimeoutStream != tc.stream || s.ProbeTimeoutOther != tc.other {
			t.Errorf("probe_timeout %s, in the channel %s: %+v", tc.gateway, tc.channel, s)
		}
	}
}

func TestIdleTimeoutOfChannelWinsEvenAsOff(t *testing.T) {
	c := parseJSON(t, `{"idle_timeout": 5, "channels": [{}, {"idle_timeout": 0}, {"idle_timeout": 7}]}`)
	for i, want := range []time.Duration{5, 0, 7} {
		if got := c.idleTimeout(c.Channels[i]); got != want {
			t.Errorf("channel %d: %s, want %s", i, got, want)
		}
	}
}

func TestBreakerSettings(t *testing.T) {
	for _, tc := range []struct {
		what, gateway, channel string
		change                 func(*breaker.Settings) // of the defaults
	}{
		{"nothing written", `null`, `null`, func(*breaker.Settings) {}},
		{"every value", `{"open_threshold": 9, "degrade_threshold": 2, "degraded_weight": 0, "half_open_weight": 1, "failure_ttl": 1,
			"probe_interval": 2, "max_probe_interval": 3, "jitter": 25, "probe_timeout": {"stream": 4, "other": 5}}`, `null`, func(s *breaker.Settings) {
			*s = breaker.Settings{OpenThreshold: 9, DegradeThreshold: 2, HalfOpenWeight: 1, FailureTTL: 1, ProbeInterval: 2, MaxProbeInterval: 3,
				Jitter: 0.25, ProbeTimeoutStream: 4, ProbeTimeoutOther: 5, EarlyProbe: s.EarlyProbe}
		}},
		{"channel replaces value by value", `{"open_threshold": 9, "failure_ttl": 1}`, `{"open_threshold": 8, "jitter": 0}`, func(s *breaker.Settings) {
			s.OpenThreshold, s.FailureTTL, s.Jitter = 8, 1, 0
		}},
		{"never degraded by default where it opens first", `{"open_threshold": 3}`, `null`, func(s *breaker.Settings) {
			s.OpenThreshold, s.DegradeThreshold = 3, 0
		}},
		{"degraded one below opening", `{"open_threshold": 4}`, `null`, func(s *breaker.Settings) { s.OpenThreshold = 4 }},
		{"a channel that opens late degrades again", `{"open_threshold": 2}`, `{"open_threshold": 6}`, func(s *breaker.Settings) { s.OpenThreshold = 6 }},
		{"long first interval lifts the longest", `{"probe_interval": 7200000000000}`, `null`, func(s *breaker.Settings) {
			s.ProbeInterval, s.MaxProbeInterval = 2*time.Hour, 2*time.Hour
		}},
		{"off", `{"mode": "off"}`, `null`, func(s *breaker.Settings) { s.Off = true }},
		{"off in the channel", `{"mode": "dry_run", "open_threshold": 7}`, `{"mode": "off"}`, func(s *breaker.Settings) {
			s.Off, s.OpenThreshold = true, 7
		}},
		{"a block turns it on under off", `{"mode": "off"}`, `{}`, func(*breaker.Settings) {}},
		{"dry_run in the channel", `null`, `{"mode": "dry_run"}`, func(s *breaker.Settings) { s.DryRun = true }},
		{"a block keeps dry_run", `{"mode": "dry_run"}`, `{"jitter": 0}`, func(s *breaker.Settings) { s.DryRun, s.Jitter = true, 0 }},
	} {
		want := breaker.DefaultSettings()
		tc.change(&want)
		c := parseJSON(t, `{"breaker": `+tc.gateway+`, "channels": [{"breaker": `+tc.channel+`}]}`)
		if got := c.breakerSettings(c.Channels[0]); got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", tc.what, got, want)
		}
	}
}
