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
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

func TestGatewaysNeverShareByAccident(t *testing.T) {
	u1, u2 := testrig.NewUpstream(t), testrig.NewUpstream(t)
	site := func(x, y string) string {
		return fmt.Sprintf(`
		@x header X-Gateway x
		llm_gateway @x %s {
			breaker {
				open_threshold 3
			}
			channel a {
				base_url %s
			}
		}
		llm_gateway %s {
			breaker {
				open_threshold 3
			}
			channel a {
				base_url %s
			}
		}`, x, u1.URL, y, u2.URL)
	}
	g := testrig.Start(t, site("x", "y"))
	u1.Answer(testrig.Fail(500, ""))
	for range 3 {
		r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
		r.Header.Set("X-Gateway", "x")
		g.Do(r)
	}
	if got := g.Chat("m1"); got.Status != 200 {
		t.Errorf("the other gateway answers %d", got.Status)
	}
	s, err := g.Status()
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, gw := range s.Gateways {
		for _, b := range gw.Channels[0].Breakers {
			states[gw.Name+"/"+b.Model] = b.State
		}
	}
	if states["x/m1"] != "open" || states["y/m1"] == "open" {
		t.Errorf("breakers: %v", states)
	}

	err = g.Reload(site("", ""))
	if err == nil || !strings.Contains(err.Error(), "llm_gateway <name>") {
		t.Errorf("two gateways of one name: %v", err)
	}
	if got, _ := g.Status(); len(got.Gateways) != 2 {
		t.Errorf("after the refused reload the status shows %+v", got)
	}
}

func TestOneSiteOnTwoPortsSharesOneState(t *testing.T) {
	u1 := testrig.NewUpstream(t)
	u1.Answer(testrig.Fail(500, ""))
	g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u1.URL+"\n}"))
	second := testrig.FreePorts(t, 1)[0]
	file := strings.Replace(g.Caddyfile(gatewayBlock("channel a {\nbase_url "+u1.URL+"\n}")), "http://:", fmt.Sprintf("http://:%d, http://:", second), 1)
	if err := g.Load(file); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		g.Chat("m1")
	}
	other := *g
	other.URL = fmt.Sprintf("http://127.0.0.1:%d", second)
	if got := other.Chat("m1"); got.Status != 503 {
		t.Errorf("the other port answers %d", got.Status)
	}
}

func TestStateFollowsTheChannelsIdentity(t *testing.T) {
	u1, u2, u3 := testrig.NewUpstream(t), testrig.NewUpstream(t), testrig.NewUpstream(t)
	channelsWith := func(threshold int, named ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "breaker {\nopen_threshold %d\nprobe_interval 1h\n}\n", threshold)
		for i := 0; i < len(named); i += 2 {
			fmt.Fprintf(&b, "channel %s {\nbase_url %s\npriority %d\n}\n", named[i], named[i+1], i)
		}
		return "llm_gateway {\n" + b.String() + "}"
	}
	g := testrig.Start(t, channelsWith(3, "a", u1.URL, "b", u2.URL))
	u1.Answer(testrig.Fail(500, ""))
	for range 3 {
		g.Chat("m1")
	}
	state := func(channel string) string { return g.Breaker(channel, "m1").State }
	reload := func(directives string) {
		t.Helper()
		if err := g.Reload(directives); err != nil {
			t.Fatal(err)
		}
	}
	if state("a") != "open" {
		t.Fatal("not open")
	}
	reload(channelsWith(4, "a", u1.URL, "b", u2.URL))
	if state("a") != "open" {
		t.Error("a new threshold forgot the breaker")
	}
	if err := g.Reload(channelsWith(3, "a", u1.URL, "b", "ftp://x")); err == nil {
		t.Error("an invalid config was taken")
	}
	if state("a") != "open" {
		t.Error("a refused reload changed the breaker")
	}
	reload(channelsWith(3, "a", u3.URL, "b", u2.URL))
	if state("a") == "open" {
		t.Error("another upstream inherited the breaker by name")
	}
	reload(channelsWith(3, "a", u1.URL, "b", u2.URL))
	u1.Answer(testrig.Fail(500, ""))
	for range 3 {
		g.Chat("m1")
	}
	reload(channelsWith(3, "c", u1.URL, "b", u2.URL))
	if state("c") == "open" {
		t.Error("a renamed channel inherited the breaker by position or upstream")
	}
	s, _ := g.Status()
	var names []string
	for _, ch := range s.Gateways[0].Channels {
		names = append(names, ch.Name)
	}
	if strings.Join(names, " ") != "c b" {
		t.Errorf("status lists %v", names)
	}
	reload(channelsWith(3, "b", u1.URL, "a", u2.URL))
	if state("a") == "open" || state("b") == "open" {
		t.Error("swapped names inherited")
	}
}

// A deploy with a wrong key takes the channel out; the right key brings it back
// without an operator.
func TestRightKeyHealsAChannelAfterAWrongOne(t *testing.T) {
	p := startPair(t)
	withKey := func(key string) string { return strings.Replace(p.block(), "sk-of-a", key, 1) }
	p.u1.Answer(testrig.AcceptKey("right"))
	if err := p.Reload(withKey("wrong")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := p.Chat("m1"); got.Status != 200 {
			t.Fatalf("status %d", got.Status)
		}
	}
	if c := p.Channel("a"); c.Health != "red" || c.Keys[0].State != "paused" {
		t.Errorf("with the wrong key: %+v", c)
	}
	if err := p.Reload(withKey("right")); err != nil {
		t.Fatal(err)
	}
	before := p.u2.Count()
	if got := p.Chat("m1"); got.Status != 200 || p.u2.Count() != before {
		t.Errorf("with the right key: status %d, served by a: %v", got.Status, p.u2.Count() == before)
	}
	if c := p.Channel("a"); c.Health != "green" || c.Keys[0].State != "enabled" {
		t.Errorf("with the right key: %+v", c)
	}
}

// A config that provisions and only fails when it starts has been live for a
// moment. Even so it changes nothing.
func TestConfigRefusedAtItsStartChangesNothing(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(testrig.Fail(401, "invalid_api_key"))
	p.Chat("m1")
	p.u2.Answer(testrig.Fail(500, ""))
	p.Chat("m2")
	before := p.Channel("a")
	if before.Keys[0].State != "paused" || p.Breaker("b", "m2").ConsecutiveFailures != 1 {
		t.Fatalf("%+v", before)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	other := strings.Replace(strings.Replace(p.block(), "sk-of-a", "another-key", 1), "open_threshold 3", "open_threshold 2\ndegrade_threshold 1", 1)
	file := p.Caddyfile(other) + fmt.Sprintf("\nhttp://:%d {\nrespond ok\n}\n", taken.Addr().(*net.TCPAddr).Port)
	for range 5 { // Caddy starts its apps in no fixed order
		if err := p.Load(file); err == nil {
			t.Fatal("a taken port was no error")
		}
	}
	after := p.Channel("a")
	if len(after.Keys) != 1 || after.Keys[0].ID != before.Keys[0].ID || after.Keys[0].State != "paused" {
		t.Errorf("keys before %+v, after %+v", before.Keys, after.Keys)
	}
	p.Chat("m2")
	if b := p.Breaker("b", "m2"); b.State != "closed" || b.ConsecutiveFailures != 2 {
		t.Errorf("a threshold of the refused config is in force: %+v", b)
	}
}

func TestNewThresholdsApplyOnceTheConfigRuns(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(testrig.Fail(500, ""))
	p.Chat("m1")
	if err := p.Reload(strings.Replace(p.block(), "open_threshold 3", "open_threshold 2", 1)); err != nil {
		t.Fatal(err)
	}
	p.Chat("m1")
	if b := p.Breaker("a", "m1"); b.State != "open" || b.ConsecutiveFailures != 2 {
		t.Errorf("%+v", b)
	}
}

// A stream that began under one config ends under the next one, and settles.
func TestStreamOutlivesAReload(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(testrig.Fail(500, ""))
	p.Chat("m1")
	release := make(chan struct{})
	p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
		testrig.EventStream(w, testrig.Chunk("a"))
		<-release
		testrig.EventStream(w, testrig.FinishChunk, "[DONE]")
	})
	answer := make(chan testrig.Answer)
	go func() {
		answer <- p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
	}()
	testrig.Eventually(t, "stream under way", func() bool { return p.Channel("a").InFlight == 1 && p.u1.Count() == 2 })
	if err := p.Reload(p.block() + "\nrespond /health ok"); err != nil {
		t.Fatal(err)
	}
	if n := p.Channel("a").InFlight; n != 1 {
		t.Errorf("in flight after the reload: %d", n)
	}
	close(release)
	if got := <-answer; got.Status != 200 || got.Err != nil || !strings.Contains(got.Body, "[DONE]") {
		t.Errorf("%d %v %s", got.Status, got.Err, got.Body)
	}
	testrig.Eventually(t, "settled as a success", func() bool {
		return p.Breaker("a", "m1").ConsecutiveFailures == 0 && p.Channel("a").InFlight == 0
	})
}
