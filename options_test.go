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
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

func TestRetryOnReplacesTheListOfStatuses(t *testing.T) {
	p := startPair(t, "retry_on 400 502")
	for status, elsewhere := range map[int]bool{400: true, 502: true, 500: false, 422: false} {
		p.u1.Answer(testrig.Fail(status, ""))
		want := status
		if elsewhere {
			want = 200
		}
		if got := p.Chat("m" + fmt.Sprint(status)); got.Status != want {
			t.Errorf("%d: client got %d", status, got.Status)
		}
	}
	for name, upstream := range map[string]http.HandlerFunc{"reset": testrig.Reset, "missing model": testrig.Fail(404, "model_not_found")} {
		p.u1.Answer(upstream)
		if got := p.Chat("other"); got.Status != 200 {
			t.Errorf("%s: always tried elsewhere, but the client got %d", name, got.Status)
		}
	}
}

func TestFailureOnMakesAStatusAFailure(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "failure_on 404 409")+channelBlock("b", us[1], "priority 1")))
	us[0].Answer(testrig.Fail(409, ""))
	for range 3 {
		if got := g.Chat("m1"); got.Status != 200 {
			t.Errorf("status %d", got.Status)
		}
	}
	if b := g.Breaker("a", "m1"); b.State != "open" {
		t.Errorf("%+v", b)
	}
	us[1].Answer(testrig.Fail(409, ""))
	if got := g.Chat("m1"); got.Status != 409 || g.Breaker("b", "m1").ConsecutiveFailures != 0 {
		t.Errorf("of another channel it means what it always does: %d", got.Status)
	}
}

func TestTryDurationEndsTheAttempts(t *testing.T) {
	p := startPair(t, "try_duration 100ms")
	p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(200 * time.Millisecond) // a slow answer is what this is about
		testrig.Fail(500, "slow")(w, r)
	})
	if got := p.Chat("m1"); got.Status != 500 || p.u2.Count() != 0 {
		t.Errorf("%d, b got %d", got.Status, p.u2.Count())
	}
	p.u1.Answer(testrig.Fail(500, "quick"))
	if got := p.Chat("m1"); got.Status != 200 {
		t.Errorf("within the time: %d", got.Status)
	}
}

func TestLimitScopeDecidesWhatA429Pauses(t *testing.T) {
	for scope, sends := range map[string]int{"key": 2, "channel": 1} {
		t.Run(scope, func(t *testing.T) {
			us := upstreams(t, 2)
			g := testrig.Start(t, gatewayBlock("limit_scope "+scope+"\n"+
				channelBlock("a", us[0], "key k1 k2")+channelBlock("b", us[1], "priority 1")))
			us[0].Answer(func(w http.ResponseWriter, r *http.Request) {
				if us[0].Count() > 1 {
					testrig.OK(w, r)
					return
				}
				w.Header().Set("Retry-After", "60")
				testrig.Fail(429, "rate_limit_exceeded")(w, r)
			})
			if got := g.Chat("m1"); got.Status != 200 || us[0].Count() != sends {
				t.Errorf("%d, a got %d", got.Status, us[0].Count())
			}
			if limited := g.Breaker("a", "m1").LimitedUntil != nil; limited != (scope == "channel") {
				t.Errorf("the pair is limited: %v", limited)
			}
			if got := g.Chat("m2"); got.Status != 200 || us[0].Count() != sends+1 {
				t.Errorf("another model is paused too: %d, a got %d", got.Status, us[0].Count())
			}
		})
	}
}

// A typo is the caller's, however often it is made.
func TestModelThatNobodyKnowsStaysNotFound(t *testing.T) {
	us := upstreams(t, 2)
	for _, u := range us {
		u.Answer(testrig.Fail(404, "model_not_found"))
	}
	g := testrig.Start(t, gatewayBlock("early_probe 50ms\nbreaker {\nopen_threshold 3\nprobe_interval 1m\n}\n"+
		channelBlock("a", us[0])+channelBlock("b", us[1], "priority 1")))
	for i := range 10 {
		got := g.Chat("gtp-4o")
		if got.Status != 404 || !strings.Contains(got.Body, "model_not_found") || got.Header.Get("Retry-After") != "" {
			t.Errorf("request %d: %d %s", i+1, got.Status, got.Body)
		}
	}
	us[0].Answer(testrig.OK)
	testrig.Eventually(t, "found once the upstream has it", func() bool { return g.Chat("gtp-4o").Status == 200 })
}

func TestModelListsAreAnsweredFromTheConfig(t *testing.T) {
	us := upstreams(t, 3)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "models m2 org/m1 gpt-*", "model_map alias up")+channelBlock("b", us[1], "models m2 m3")+
		channelBlock("c", us[2], "models claude-x", "provider anthropic")))
	get := func(method, path string, header ...string) testrig.Answer {
		t.Helper()
		r, err := http.NewRequest(method, g.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(header) == 2 {
			r.Header.Set(header[0], header[1])
		}
		return g.Do(r)
	}
	model := func(id, owner string) string {
		return fmt.Sprintf(`{"created":0,"id":%q,"object":"model","owned_by":%q}`, id, owner)
	}
	list := `{"data":[` + strings.Join([]string{model("alias", "a"), model("m2", "a"), model("org/m1", "a"), model("m3", "b")}, ",") + `],"object":"list"}`
	for path, want := range map[string]string{
		"/v1/models":          list,
		"/v1/models/m3":       model("m3", "b"),
		"/v1/models/org/m1":   model("org/m1", "a"),
		"/v1/models/org%2Fm1": model("org/m1", "a"),
	} {
		if got := get(http.MethodGet, path); got.Status != 200 || strings.TrimSpace(got.Body) != want {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
	if got := get(http.MethodHead, "/v1/models"); got.Status != 200 || got.Body != "" {
		t.Errorf("HEAD: %d %q", got.Status, got.Body)
	}
	if got := get(http.MethodGet, "/v1/models", "anthropic-version", "2023-06-01"); !strings.Contains(got.Body, `"type":"model"`) || !strings.Contains(got.Body, "claude-x") || strings.Contains(got.Body, "m2") {
		t.Errorf("anthropic: %d %s", got.Status, got.Body)
	}
	if got := get(http.MethodGet, "/v1/models/nobodys"); got.Status != 404 || !strings.Contains(got.Body, "model_not_found") {
		t.Errorf("unknown: %d %s", got.Status, got.Body)
	}
	if n := us[0].Count() + us[1].Count() + us[2].Count(); n != 0 {
		t.Errorf("%d requests went upstream", n)
	}
	if got := get(http.MethodGet, "/v1/models/gpt-9"); got.Status != 200 || us[0].Count() != 1 || us[0].Last().Target != "/v1/models/gpt-9" {
		t.Errorf("only a glob accepts it, so it is proxied: %d", got.Status)
	}
	if err := g.Reload(gatewayBlock(channelBlock("a", us[0]))); err != nil {
		t.Fatal(err)
	}
	if got := get(http.MethodGet, "/v1/models"); got.Status != 200 || us[0].Count() != 2 {
		t.Errorf("nothing is written, so the list is proxied: %d", got.Status)
	}
}

// When everything fails at once, retries stay within their budget; the first
// move to a channel whose breaker is closed is free.
func TestRetryBudgetBoundsTheRetriesInFlight(t *testing.T) {
	for _, c := range []struct {
		option string
		third  int // sends to the third channel
	}{{"retry_budget 0 2", 2}, {"retry_budget 50% 0", 5}, {"retry_budget off", 10}, {"", 10}} {
		t.Run(c.option, func(t *testing.T) {
			us := upstreams(t, 3)
			g := testrig.Start(t, plainBlock("breaker off\n"+c.option+"\n"+channelBlock("a", us[0])+
				channelBlock("b", us[1], "priority 1")+channelBlock("c", us[2], "priority 2")))
			var waiting, moved sync.WaitGroup
			waiting.Add(10)
			us[0].Answer(func(w http.ResponseWriter, r *http.Request) { // all ten are in flight before any moves on
				waiting.Done()
				waiting.Wait()
				testrig.Fail(500, "")(w, r)
			})
			moved.Add(10)
			us[1].Answer(func(w http.ResponseWriter, r *http.Request) {
				moved.Done()
				moved.Wait()
				testrig.Fail(500, "")(w, r)
			})
			release := make(chan struct{})
			us[2].Answer(func(w http.ResponseWriter, r *http.Request) {
				<-release
				testrig.OK(w, r)
			})
			answers := make(chan int, 10)
			for range 10 {
				go func() { answers <- g.Chat("m1").Status }()
			}
			for range 10 - c.third {
				if status := <-answers; status != 500 {
					t.Errorf("over the budget the last answer is due: %d", status)
				}
			}
			testrig.Eventually(t, "the others wait for the third channel", func() bool { return us[2].Count() == c.third })
			close(release)
			for range c.third {
				if status := <-answers; status != 200 {
					t.Errorf("status %d", status)
				}
			}
		})
	}
}

func TestBestEffortProbesWhatIsDueSoonest(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock("all_open best_effort\nbreaker {\nopen_threshold 3\nprobe_interval 1h\n}\n"+
		channelBlock("a", us[0])+channelBlock("b", us[1], "priority 1")))
	for _, u := range us {
		u.Answer(testrig.Fail(500, ""))
	}
	for range 3 {
		g.Chat("m1")
	}
	if a, b := g.Breaker("a", "m1").State, g.Breaker("b", "m1").State; a != "open" || b != "open" {
		t.Fatalf("a %s, b %s", a, b)
	}
	for _, u := range us {
		u.Answer(testrig.OK)
	}
	if got := g.Chat("m1"); got.Status != 200 || g.Breaker("a", "m1").State == g.Breaker("b", "m1").State {
		t.Errorf("%d, a %s, b %s", got.Status, g.Breaker("a", "m1").State, g.Breaker("b", "m1").State)
	}
	g.AdminDo(http.MethodPost, "/llm_gateway/default/channels/a/breaker/open", "{}")
	g.AdminDo(http.MethodPost, "/llm_gateway/default/channels/b/breaker/open", "{}")
	if got := g.Chat("m1"); got.Status != 503 {
		t.Errorf("an operator's word was broken: %d", got.Status)
	}
}

// startFull runs a gateway whose only channel has one place, which is taken until
// release is closed.
func startFull(t *testing.T, wait string) (g *testrig.Gateway, u *testrig.Upstream, release chan struct{}) {
	t.Helper()
	u, release = testrig.NewUpstream(t), make(chan struct{})
	g = testrig.Start(t, gatewayBlock("all_open wait "+wait+"\n"+channelBlock("a", u, "max_requests 1")))
	u.Answer(func(w http.ResponseWriter, r *http.Request) {
		<-release
		testrig.OK(w, r)
	})
	go g.Chat("m1")
	testrig.Eventually(t, "the place is taken", func() bool { return u.Count() == 1 })
	return g, u, release
}

func TestWaitingRequestsAreServedInTheirOrder(t *testing.T) {
	g, u, release := startFull(t, "10s")
	answers := make(chan int, 5)
	for i := range 5 {
		before := g.Waiting()
		go func() {
			answers <- g.Do(g.Request("/v1/chat/completions", strings.Replace(testrig.Chat("m1"), "hi", fmt.Sprint(i), 1))).Status
		}()
		testrig.Eventually(t, "in line", func() bool { return g.Waiting() == before+1 })
	}
	close(release)
	for range 5 {
		if status := <-answers; status != 200 {
			t.Errorf("status %d", status)
		}
	}
	for i, r := range u.Received()[1:] {
		if !strings.Contains(r.Body, fmt.Sprintf(`"content":"%d"`, i)) {
			t.Errorf("number %d was %s", i, r.Body)
		}
	}
}

func TestWaitingEndsWithTheTimeOrTheClient(t *testing.T) {
	g, u, release := startFull(t, "300ms")
	began := time.Now()
	if got := g.Chat("m1"); got.Status != 503 || time.Since(began) < 250*time.Millisecond {
		t.Errorf("%d after %s", got.Status, time.Since(began))
	}
	leaveAfter(t, g, testrig.Chat("m1"), 50*time.Millisecond)
	close(release)
	testrig.Eventually(t, "others are served", func() bool { return g.Chat("m1").Status == 200 })
	if n := u.Count(); n < 2 {
		t.Errorf("upstream got %d", n)
	}
}

func TestWaitingEndsWhenABreakerIsDue(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("all_open wait 10s\n"+channelBlock("a", u)))
	u.Answer(testrig.Fail(500, ""))
	for range 3 {
		g.Chat("m1")
	}
	u.Answer(testrig.OK)
	if got := g.Chat("m1"); got.Status != 200 {
		t.Errorf("status %d", got.Status)
	}
}
