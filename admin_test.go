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

package llmgateway_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

func TestStatusTellsWhatIsOutWhyAndUntilWhen(t *testing.T) {
	p := startPair(t, "breaker {\nopen_threshold 3\nprobe_interval 5m\njitter 0\n}")
	p.Chat("m1")
	if c := p.Channel("a"); c.Health != "green" || c.Summary != "ok" {
		t.Errorf("healthy: %+v", c)
	}
	p.trip(t, "m1")
	c := p.Channel("a")
	if c.Health != "red" || !strings.Contains(c.Summary, "m1 open, probe 4 minutes from now") {
		t.Errorf("open: %+v", c)
	}
	b := p.Breaker("a", "m1")
	if b.LastFailure != "status 500 boom" || b.NextProbeAt == nil || b.NextProbeIn != "4 minutes from now" || b.EffectiveWeight != 0 {
		t.Errorf("%+v", b)
	}
	if n := len(p.LogEntries("circuit breaker opened")); n != 1 {
		t.Errorf("%d log lines for one transition", n)
	}
}

func TestStatusNarrowsByQuery(t *testing.T) {
	p := startPair(t)
	for query, want := range map[string]int{"": 2, "?channel=a": 1, "?gateway=default": 2, "?gateway=default&channel=b": 1} {
		var s testrig.Status
		got := p.AdminDo(http.MethodGet, "/llm_gateway/status"+query, "")
		if err := json.Unmarshal([]byte(got.Body), &s); err != nil || len(s.Gateways) != 1 || len(s.Gateways[0].Channels) != want {
			t.Errorf("%s: %d %s", query, got.Status, got.Body)
		}
	}
	for _, query := range []string{"?channel=x", "?gateway=x", "?gateway=x&channel=a"} {
		if got := p.AdminDo(http.MethodGet, "/llm_gateway/status"+query, ""); got.Status != 404 {
			t.Errorf("%s: %d %s", query, got.Status, got.Body)
		}
	}
}

// Every field that the documentation names is there, whatever the state.
func TestStatusHasItsWholeShape(t *testing.T) {
	p := startPair(t)
	p.trip(t, "m1")
	body := p.AdminDo(http.MethodGet, "/llm_gateway/status", "").Body
	for _, field := range []string{"node", "now", "gateways", "name", "channels", "provider", "base_url", "state", "health", "summary", "priority",
		"weight", "in_flight", "errors", "disabled", "keys", "id", "until", "breakers", "model", "degraded", "dry_run", "consecutive_failures",
		"effective_weight", "last_failure", "last_failure_at", "last_success_at", "opened_at", "next_probe_at", "next_probe_in", "probe_in_flight",
		"limited_until", "suspect", "first_token_ms", "health_check"} {
		if !strings.Contains(body, `"`+field+`":`) {
			t.Errorf("no %s in %s", field, body)
		}
	}
}

func TestOperatorOpensAndResetsBreakers(t *testing.T) {
	p := startPair(t)
	act := func(path, body string) testrig.Answer {
		return p.AdminDo(http.MethodPost, "/llm_gateway/default/channels/a/breaker/"+path, body)
	}
	got := act("open?model=m1", `{"reason":"maintenance"}`)
	if got.Status != 200 || !strings.Contains(got.Body, `"state":"open"`) {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	before := p.u1.Count()
	if p.Chat("m1").Status != 200 || p.u1.Count() != before {
		t.Error("an opened pair was asked")
	}
	if p.Chat("m2").Status != 200 || p.u1.Count() != before+1 {
		t.Error("another model is out too")
	}
	entries := p.LogEntries("operator acted")
	if len(entries) != 1 || entries[0]["reason"] != "maintenance" || entries[0]["channel"] != "a" {
		t.Errorf("log: %v", entries)
	}
	if got := act("reset?model=m1", `{}`); got.Status != 200 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	before = p.u1.Count()
	if p.Chat("m1"); p.u1.Count() != before+1 {
		t.Error("a reset pair was not asked")
	}

	act("open", `{"for":"300ms"}`)
	before = p.u1.Count()
	p.Chat("m1")
	p.Chat("never-seen")
	if p.u1.Count() != before {
		t.Error("a model of an opened channel was asked")
	}
	testrig.Eventually(t, "back after its time", func() bool { p.Chat("m1"); return p.u1.Count() > before })

	p.trip(t, "m3")
	act("reset", `{}`)
	if s := p.Breaker("a", "m3").State; s != "closed" {
		t.Errorf("after a reset of all: %s", s)
	}
}

func TestAdminRefusesWhatItDoesNotUnderstand(t *testing.T) {
	p := startPair(t)
	const open = "/llm_gateway/default/channels/a/breaker/open"
	for _, c := range []struct {
		name, method, path, body, contentType string
		status                                int
	}{
		{"wrong method", "GET", open, "", "application/json", 405},
		{"status by POST", "POST", "/llm_gateway/status", "{}", "application/json", 405},
		{"unknown path", "GET", "/llm_gateway/nothing", "", "", 404},
		{"unknown gateway", "POST", "/llm_gateway/x/channels/a/breaker/open", "{}", "application/json", 404},
		{"unknown channel", "POST", "/llm_gateway/default/channels/x/breaker/open", "{}", "application/json", 404},
		{"unknown act", "POST", "/llm_gateway/default/channels/a/breaker/fix", "{}", "application/json", 404},
		{"no content type", "POST", open, "{}", "", 415},
		{"a form", "POST", open, "a=b", "application/x-www-form-urlencoded", 415},
		{"no body", "POST", open, "", "application/json", 400},
		{"unknown field", "POST", open, `{"untl":"1h"}`, "application/json", 400},
		{"bad duration", "POST", open, `{"for":"soon"}`, "application/json", 400},
		{"negative duration", "POST", open, `{"for":"-1h"}`, "application/json", 400},
		{"reset for a time", "POST", "/llm_gateway/default/channels/a/breaker/reset", `{"for":"1h"}`, "application/json", 400},
		{"more than one object", "POST", open, `{} {}`, "application/json", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := http.NewRequest(c.method, p.Admin+c.path, strings.NewReader(c.body))
			if c.contentType != "" {
				r.Header.Set("Content-Type", c.contentType)
			}
			got := p.Do(r)
			var e struct {
				Error string `json:"error"`
			}
			if err := json.Unmarshal([]byte(got.Body), &e); err != nil || got.Status != c.status || e.Error == "" {
				t.Errorf("%d %s", got.Status, got.Body)
			}
		})
	}
	if b := p.Breaker("a", "m1"); b.State == "open" {
		t.Error("a refused act was performed")
	}
}

func TestExplainSaysWhoWouldServeAndWhyNotTheOthers(t *testing.T) {
	us := upstreams(t, 4)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "model_map m1 up-1", "weight 2")+channelBlock("b", us[1], "priority 1", "max_requests 1")+
		channelBlock("c", us[2], "models other")+channelBlock("d", us[3], "provider anthropic")))
	type candidate struct {
		Channel  string  `json:"channel"`
		Upstream string  `json:"upstream_model"`
		Group    int     `json:"group"`
		Weight   float64 `json:"effective_weight"`
		Usable   bool    `json:"usable"`
		Probe    bool    `json:"probe"`
		Reason   string  `json:"reason"`
	}
	explain := func() []candidate {
		t.Helper()
		got := g.AdminDo(http.MethodGet, "/llm_gateway/explain?model=m1", "")
		var e struct {
			Gateway, Model, Path, Dialect string
			Candidates                    []candidate
		}
		if err := json.Unmarshal([]byte(got.Body), &e); err != nil || got.Status != 200 || e.Gateway != "default" || e.Dialect != "openai" || e.Path != "/v1/chat/completions" {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		return e.Candidates
	}
	unfit := []candidate{{Channel: "c", Group: -1, Reason: "model"}, {Channel: "d", Group: -1, Reason: "dialect"}}
	b := candidate{"b", "m1", 1, 1, true, false, ""}
	check := func(when string, want ...candidate) {
		t.Helper()
		if got := explain(); !slices.Equal(got, append(want, unfit...)) {
			t.Errorf("%s: %+v", when, got)
		}
	}
	check("healthy", candidate{"a", "up-1", 0, 2, true, false, ""}, b)
	us[0].Answer(testrig.Fail(500, ""))
	for range 3 {
		g.Chat("m1")
	}
	check("open", candidate{"a", "up-1", 0, 0, false, false, "open"}, b)
	g.WaitState("a", "up-1", "half_open")
	check("due", candidate{"a", "up-1", 0, 0.6, true, true, ""}, b)
	before := us[0].Count()
	check("looking again", candidate{"a", "up-1", 0, 0.6, true, true, ""}, b)
	if us[0].Count() != before || g.Breaker("a", "up-1").ProbeInFlight {
		t.Error("looking changed something")
	}
	for path, status := range map[string]int{"?gateway=x": 404, "?path=x": 400, "?path=/v1/../x": 400, "?model=": 400, "?path=/v1/files": 200} {
		if got := g.AdminDo(http.MethodGet, "/llm_gateway/explain"+path, ""); got.Status != status {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
}

// When everything is open, explain names the one that would be probed early.
func TestExplainShowsTheEarlyProbe(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock("early_probe 1ms\nbreaker {\nopen_threshold 1\nprobe_interval 1h\n}\n"+channelBlock("a", us[0])+channelBlock("b", us[1], "priority 1")))
	for _, u := range us {
		u.Answer(testrig.Fail(500, ""))
	}
	g.Chat("m1")
	testrig.Eventually(t, "a may be probed early, b not", func() bool {
		got := g.AdminDo(http.MethodGet, "/llm_gateway/explain?model=m1", "").Body
		return strings.Count(got, `"probe":true`) == 1 && strings.Index(got, `"probe":true`) < strings.Index(got, `"channel":"b"`)
	})
	before := us[0].Count()
	if g.Chat("m1"); us[0].Count() != before+1 {
		t.Error("the next request did otherwise")
	}
}
