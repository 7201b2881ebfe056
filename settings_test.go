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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
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
		"auto_disable":          c.disableSettings(ch).Off,
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

// disableConfig is a gateway with one channel of so many keys and these blocks.
func disableConfig(t *testing.T, gateway, channel string, keys int) (*Config, *Channel) {
	t.Helper()
	pool := strings.TrimSuffix(strings.Repeat(`"k",`, keys), ",")
	c := parseJSON(t, `{"auto_disable": `+gateway+`, "channels": [{"keys": [`+pool+`], "auto_disable": `+channel+`}]}`)
	return c, c.Channels[0]
}

// describe writes settings like a block, without what is not set.
func describe(s autodisable.Settings) string {
	var words []string
	add := func(set bool, format string, args ...any) {
		if set {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(s.Off, "off")
	add(s.DryRun, "dry_run")
	for _, r := range s.Rules {
		add(true, "%s", r)
	}
	add(s.KeepLastKey, "keep_last_key")
	add(s.CorrelateKeys != 0 || s.CorrelateWindow != 0, "correlate %d %s", s.CorrelateKeys, s.CorrelateWindow)
	return strings.Join(words, "; ")
}

func TestAutoDisableIsInherited(t *testing.T) {
	const (
		defaults = "status 401 3; status 402 3 for 1h"
		rules    = `{"rules": [{"status": "401", "times": 5}, {"status": "429", "match": "Quota", "times": 2}, {"status": "5xx", "times": 9}]}`
	)
	for _, tc := range []struct{ what, gateway, channel, want string }{
		{"nothing written", `null`, `null`, "off"},
		{"off", `{"mode": "off"}`, `null`, "off"},
		{"off in the channel", `{"mode": "dry_run", "keep_last_key": true}`, `{"mode": "off"}`, "off"},
		{"off in the channel alone", `null`, `{"mode": "off"}`, "off"},
		{"bare", `{}`, `null`, defaults},
		{"bare in the channel alone", `null`, `{}`, defaults},
		{"bare in both", `{}`, `{}`, defaults},
		{"a bare block turns it on under off", `{"mode": "off"}`, `{}`, defaults},
		{"a block under off has its own rules only", `{"mode": "off"}`, `{"rules": [{"status": "403", "times": 1}]}`, "status 403 1"},
		{"a block under none has its own rules only", `null`, `{"rules": [{"status": "403", "times": 1}]}`, "status 403 1"},
		{"options do not end the default rules", `{"keep_last_key": true}`, `null`, defaults + "; keep_last_key"},
		{"written rules do", rules, `null`, `status 401 5; match 429 "Quota" 2; status 5xx 9`},
		{"rules stay under a bare block", rules, `{}`, `status 401 5; match 429 "Quota" 2; status 5xx 9`},
		{"dry_run is inherited", `{"mode": "dry_run"}`, `null`, "dry_run; " + defaults},
		{"dry_run stays under a block", `{"mode": "dry_run"}`, `{}`, "dry_run; " + defaults},
		{"dry_run in the channel", `{}`, `{"mode": "dry_run"}`, "dry_run; " + defaults},
		{"dry_run in the channel under off", `{"mode": "off"}`, `{"mode": "dry_run"}`, "dry_run; " + defaults},
		{"a rule replaces all of a default one", `{}`, `{"rules": [{"status": "402", "times": 4}]}`, "status 401 3; status 402 4"},
		{"rules replace in place, others follow", rules,
			`{"rules": [{"status": "404", "times": 7}, {"status": "5xx", "times": 8, "for": 60000000000, "scope": "key"}]}`,
			`status 401 5; match 429 "Quota" 2; status 5xx 8 for 1m scope key; status 404 7`},
		{"a text is the same in any case", rules, `{"rules": [{"status": "429", "match": "qUOTA", "times": 1}]}`,
			`status 401 5; match 429 "qUOTA" 1; status 5xx 9`},
		{"another text, or none, is another rule", rules,
			`{"rules": [{"status": "429", "match": "x", "times": 1}, {"status": "429", "times": 1}, {"status": "500", "times": 1}, {"status": "4xx", "times": 1}, {"status": "transport", "times": 1}]}`,
			`status 401 5; match 429 "Quota" 2; status 5xx 9; match 429 "x" 1; status 429 1; status 500 1; status 4xx 1; status transport 1`},
		{"keep_last_key of the gateway", `{"keep_last_key": true}`, `{}`, defaults + "; keep_last_key"},
		{"keep_last_key of the channel", `{}`, `{"keep_last_key": true}`, defaults + "; keep_last_key"},
		{"correlate of the gateway", `{"correlate": {"keys": 2, "window": 1000000000}}`, `{}`, defaults + "; correlate 2 1s"},
		{"correlate of the channel", `{"correlate": {"keys": 2, "window": 1000000000}}`, `{"correlate": {"keys": 4, "window": 2000000000}}`, defaults + "; correlate 4 2s"},
		{"correlate off in the channel", `{"correlate": {"keys": 2, "window": 1000000000}}`, `{"correlate": {"keys": 0}}`, defaults},
	} {
		c, ch := disableConfig(t, tc.gateway, tc.channel, 2)
		if got := describe(c.disableSettings(ch)); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.what, got, tc.want)
		}
	}
}

func TestAutoDisableCorrelatesLargePoolsByDefault(t *testing.T) {
	for _, tc := range []struct {
		gateway string
		keys    int
		want    int
		window  time.Duration
	}{
		{`{}`, 0, 0, 0},
		{`{}`, 2, 0, 0},
		{`{}`, 3, 2, time.Minute},
		{`{}`, 4, 2, time.Minute},
		{`{"correlate": {"keys": 0}}`, 3, 0, 0},
	} {
		c, ch := disableConfig(t, tc.gateway, `null`, tc.keys)
		if s := c.disableSettings(ch); s.CorrelateKeys != tc.want || s.CorrelateWindow != tc.window {
			t.Errorf("%s with %d keys: %d within %s", tc.gateway, tc.keys, s.CorrelateKeys, s.CorrelateWindow)
		}
	}
}

// Channels must not write into rules that another one uses.
func TestAutoDisableRulesAreNotSharedByChannels(t *testing.T) {
	c := parseJSON(t, `{"auto_disable": {"rules": [{"status": "401", "times": 5}]},
		"channels": [{}, {"auto_disable": {"rules": [{"status": "401", "times": 1}]}}]}`)
	before := c.disableSettings(c.Channels[0])
	c.disableSettings(c.Channels[1])
	if got := describe(before); got != "status 401 5" {
		t.Error(got)
	}
	if got := describe(c.disableSettings(c.Channels[0])); got != "status 401 5" {
		t.Error(got)
	}
}

func TestAutoDisableWarnsOfRulesThatForestallTheBreaker(t *testing.T) {
	const tail = " fires before the breaker opens at 5 and lasts until an operator acts"
	for _, tc := range []struct {
		what, gateway, channel string
		want                   []string
	}{
		{"never", `null`, `null`, nil},
		{"default rules", `{}`, `null`, nil},
		{"class, status, text and transport", `{"rules": [{"status": "5xx", "times": 3}, {"status": "503", "times": 5, "scope": "key"},
			{"status": "500", "match": "gone", "times": 1}, {"status": "transport", "times": 2}]}`, `null`, []string{
			"auto_disable rule status 5xx 3" + tail,
			"auto_disable rule status 503 5 scope key" + tail,
			`auto_disable rule match 500 "gone" 1` + tail,
			"auto_disable rule status transport 2" + tail,
		}},
		{"other statuses", `{"rules": [{"status": "4xx", "times": 1}, {"status": "499", "times": 1}]}`, `null`, nil},
		{"for a time", `{"rules": [{"status": "5xx", "times": 3, "for": 1}]}`, `null`, nil},
		{"after the breaker", `{"rules": [{"status": "5xx", "times": 6}]}`, `null`, nil},
		{"in a dry run", `{"mode": "dry_run", "rules": [{"status": "5xx", "times": 3}]}`, `null`, []string{"auto_disable rule status 5xx 3" + tail}},
		{"off in the channel", `{"rules": [{"status": "5xx", "times": 3}]}`, `{"mode": "off"}`, nil},
		{"replaced in the channel", `{"rules": [{"status": "5xx", "times": 3}]}`, `{"rules": [{"status": "5xx", "times": 9}]}`, nil},
		{"of the channel", `{}`, `{"rules": [{"status": "599", "times": 1}]}`, []string{"auto_disable rule status 599 1" + tail}},
	} {
		c, ch := disableConfig(t, tc.gateway, tc.channel, 2)
		if got := c.disableWarnings(ch); !slices.Equal(got, tc.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tc.what, got, tc.want)
		}
	}
}

func TestAutoDisableWarningsGoByTheChannelsOwnBreaker(t *testing.T) {
	for breaker, want := range map[string]string{
		`{"open_threshold": 2}`:  "",
		`{"open_threshold": 3}`:  "auto_disable rule status 5xx 3 fires before the breaker opens at 3 and lasts until an operator acts",
		`{"open_threshold": 10}`: "auto_disable rule status 5xx 3 fires before the breaker opens at 10 and lasts until an operator acts",
		`{"mode": "off"}`:        "",
	} {
		c := parseJSON(t, `{"auto_disable": {"rules": [{"status": "5xx", "times": 3}]}, "breaker": {"open_threshold": 7}, "channels": [{"breaker": `+breaker+`}]}`)
		if got := strings.Join(c.disableWarnings(c.Channels[0]), "\n"); got != want {
			t.Errorf("breaker %s: %q, want %q", breaker, got, want)
		}
	}
}
