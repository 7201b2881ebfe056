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
	"net/http"
	"strings"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

func act(t *testing.T, g *testrig.Gateway, path, body string) testrig.Answer {
	t.Helper()
	got := g.AdminDo(http.MethodPost, "/llm_gateway/default/channels/"+path, body)
	if got.Status != 200 {
		t.Fatalf("%s: %d %s", path, got.Status, got.Body)
	}
	return got
}

// A key that is refused often enough is out until an operator acts; the others
// of the pool serve on.
func TestRefusedKeyIsDisabledUntilAnOperatorActs(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("auto_disable {\nstatus 401 2\ncorrelate off\n}\n"+channelBlock("a", u, "key bad good")))
	u.Answer(testrig.AcceptKey("good"))
	disabled := func() testrig.Key {
		for _, k := range g.Channel("a").Keys {
			if k.State == "disabled" {
				return k
			}
		}
		return testrig.Key{}
	}
	testrig.Eventually(t, "key disabled", func() bool {
		if got := g.Chat("m1"); got.Status != 200 {
			t.Errorf("status %d", got.Status)
		}
		return disabled().ID != ""
	})
	k := disabled()
	if k.Disabled == nil || k.Disabled.By != "auto" || k.Disabled.Reason != "Auto-disabled after 2 consecutive errors with status 401" {
		t.Errorf("%+v", k)
	}
	if c := g.Channel("a"); c.Health != "yellow" || c.State != "enabled" {
		t.Errorf("%+v", c)
	}
	if n := len(g.LogEntries("key disabled")); n != 1 {
		t.Errorf("%d log lines", n)
	}
	before := u.Count()
	for range 10 {
		g.Chat("m1")
	}
	if n := u.Count() - before; n != 10 {
		t.Errorf("%d sends for 10 requests: the disabled key is asked", n)
	}
	u.Answer(testrig.OK)
	act(t, g, "a/keys/"+k.ID+"/enable", `{"reason":"paid"}`)
	if id := disabled().ID; id != "" || g.Channel("a").Health != "green" {
		t.Errorf("after enable: %+v", g.Channel("a"))
	}
}

// A disabled channel is no candidate, so nothing probes it.
func TestDisabledChannelIsNeverProbed(t *testing.T) {
	p := startPair(t, "auto_disable {\nstatus 500 4\n}\nbreaker {\nopen_threshold 3\nprobe_interval 100ms\njitter 0\n}")
	p.u1.Answer(testrig.Fail(500, ""))
	for range 3 {
		p.Chat("m1")
	}
	p.WaitState("a", "m1", "half_open")
	p.Chat("m1") // the probe fails: the fourth error
	c := p.Channel("a")
	if c.State != "disabled" || c.Health != "red" || !strings.Contains(c.Summary, "Auto-disabled after 4 consecutive errors with status 500") {
		t.Fatalf("%+v", c)
	}
	p.WaitState("a", "m1", "half_open")
	before := p.u1.Count()
	for range 5 {
		if got := p.Chat("m1"); got.Status != 200 {
			t.Errorf("status %d", got.Status)
		}
		p.Chat("m2")
	}
	if p.u1.Count() != before {
		t.Error("a disabled channel was asked")
	}
	p.u1.Answer(testrig.OK)
	act(t, p.Gateway, "a/enable", `{}`)
	if p.Chat("m1"); p.u1.Count() != before+1 || p.Channel("a").State != "enabled" {
		t.Error("an enabled channel was not asked")
	}
}

func TestEverythingDisabledIs503WithoutRetry(t *testing.T) {
	for name, path := range map[string]string{"channel": "a/disable", "all keys": "a/keys/" + keyID("k1") + "/disable"} {
		t.Run(name, func(t *testing.T) {
			u := testrig.NewUpstream(t)
			g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "key k1")))
			act(t, g, path, `{"reason":"maintenance"}`)
			got := g.Chat("m1")
			if got.Status != 503 || !strings.Contains(got.Body, "channels_disabled") || got.Header.Get("X-Should-Retry") != "false" || got.Header.Get("Retry-After") != "" {
				t.Errorf("%d %v %s", got.Status, got.Header, got.Body)
			}
			if got := g.AdminDo(http.MethodGet, "/llm_gateway/explain?model=m1", ""); !strings.Contains(got.Body, `"reason":"disabled"`) {
				t.Errorf("explain: %s", got.Body)
			}
			if u.Count() != 0 {
				t.Error("it was asked")
			}
		})
	}
}

// An operator's word stands over reloads and successes, until it is taken back
// or its time is up.
func TestOperatorsDisableStands(t *testing.T) {
	p := startPair(t)
	act(t, p.Gateway, "a/disable", `{"reason":"maintenance"}`)
	if c := p.Channel("a"); c.State != "disabled" || c.Health != "gray" || c.Summary != "disabled by an operator: maintenance" {
		t.Errorf("%+v", c)
	}
	if err := p.Reload(p.block("retries 2")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := p.Chat("m1"); got.Status != 200 {
			t.Errorf("status %d", got.Status)
		}
	}
	if p.u1.Count() != 0 || p.Channel("a").State != "disabled" {
		t.Error("a reload lifted it")
	}
	act(t, p.Gateway, "a/disable", `{"for":"200ms"}`)
	testrig.Eventually(t, "back after its time", func() bool { p.Chat("m1"); return p.u1.Count() > 0 })
	if n := len(p.LogEntries("channel enabled")); n != 1 {
		t.Errorf("%d log lines about its return", n)
	}
}

func TestContentRefusalsNeverDisable(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("auto_disable {\nstatus 403 3\n}\n"+channelBlock("a", u, "key k1")))
	u.Answer(testrig.Fail(403, "content_policy_violation"))
	for range 10 {
		if got := g.Chat("m1"); got.Status != 403 {
			t.Errorf("status %d", got.Status)
		}
	}
	if c := g.Channel("a"); c.Keys[0].State != "enabled" || c.Health != "green" {
		t.Errorf("%+v", c)
	}
}

func TestDryRunDisablesNothing(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, "llm_gateway {\nbreaker off\nauto_disable dry_run {\nstatus 500 2\n}\n"+channelBlock("a", u)+"}")
	u.Answer(testrig.Fail(500, ""))
	for range 5 {
		g.Chat("m1")
	}
	c := g.Channel("a")
	if u.Count() != 5 || c.State != "enabled" || c.Disabled == nil || !c.Disabled.DryRun {
		t.Errorf("%d sends, %+v", u.Count(), c)
	}
}

func TestTransportErrorsDisableByTheirRule(t *testing.T) {
	p := startPair(t, "auto_disable {\nstatus transport 2 for 1h\n}")
	p.u1.Answer(testrig.Reset)
	p.Chat("m1")
	p.Chat("m2")
	if c := p.Channel("a"); c.State != "disabled" || c.Disabled.Until == nil || !strings.Contains(c.Summary, "transport") {
		t.Errorf("%+v", c)
	}
}

func TestMatchRulesLookAtTheMessage(t *testing.T) {
	p := startPair(t, "auto_disable {\nmatch 500 \"SCRIPTED\" 2\n}")
	p.u1.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	p.Chat("m1")
	p.Chat("m2")
	p.Chat("m3")
	if c := p.Channel("a"); c.State != "enabled" {
		t.Errorf("without the text: %+v", c)
	}
	p.u1.Answer(testrig.Fail(500, "")) // its message is "scripted"
	p.Chat("m4")
	p.Chat("m5")
	if c := p.Channel("a"); c.State != "disabled" {
		t.Errorf("with the text: %+v", c)
	}
}

// An incident of the account must not eat the pool.
func TestIncidentOfTheAccountDisablesNoKey(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock("auto_disable {\nstatus 401 1\n}\n"+channelBlock("a", us[0], "key k1 k2 k3")+channelBlock("b", us[1], "priority 1")))
	us[0].Answer(testrig.Fail(401, "invalid_api_key"))
	g.Chat("m1")
	for _, k := range g.Channel("a").Keys[1:] {
		if k.State == "disabled" {
			t.Errorf("%+v", k)
		}
	}
	if n := len(g.LogEntries("several keys fail alike, the channel pauses")); n == 0 {
		t.Error("not told")
	}
}

func TestRightKeyIsNotDisabledForTheWrongOne(t *testing.T) {
	p := startPair(t)
	withKey := func(key string) string {
		return strings.Replace(p.block("auto_disable {\nstatus 401 1\n}"), "sk-of-a", key, 1)
	}
	p.u1.Answer(testrig.AcceptKey("right"))
	if err := p.Reload(withKey("wrong")); err != nil {
		t.Fatal(err)
	}
	p.Chat("m1")
	if c := p.Channel("a"); c.Keys[0].State != "disabled" || c.Health != "red" {
		t.Errorf("with the wrong key: %+v", c)
	}
	if err := p.Reload(withKey("right")); err != nil {
		t.Fatal(err)
	}
	before := p.u2.Count()
	if got := p.Chat("m1"); got.Status != 200 || p.u2.Count() != before || p.Channel("a").Health != "green" {
		t.Errorf("with the right key: %d, %+v", got.Status, p.Channel("a"))
	}
}

func TestUnknownKeysAndMisplacedOptionsOfActsAreRefused(t *testing.T) {
	p := startPair(t)
	for path, want := range map[string]int{
		"a/keys/sha256:000000000000/disable":            404,
		"a/keys//disable":                               404,
		"a/keys/" + keyID("sk-of-a") + "/breaker/reset": 404,
		"x/disable":         404,
		"a/disable?model=m": 400,
	} {
		if got := p.AdminDo(http.MethodPost, "/llm_gateway/default/channels/"+path, "{}"); got.Status != want {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
	if got := p.AdminDo(http.MethodPost, "/llm_gateway/default/channels/a/enable", `{"for":"1h"}`); got.Status != 400 {
		t.Errorf("enable for a time: %d", got.Status)
	}
}
