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
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// upstreams starts n upstreams.
func upstreams(t *testing.T, n int) []*testrig.Upstream {
	t.Helper()
	us := make([]*testrig.Upstream, n)
	for i := range us {
		us[i] = testrig.NewUpstream(t)
	}
	return us
}

// channelBlock writes a channel with more options, one a string.
func channelBlock(name string, u *testrig.Upstream, options ...string) string {
	return fmt.Sprintf("channel %s {\nbase_url %s\n%s\n}\n", name, u.URL, strings.Join(options, "\n"))
}

func TestModelsDecideWhichChannelIsAskedForWhat(t *testing.T) {
	us := upstreams(t, 3)
	g := testrig.Start(t, gatewayBlock(
		channelBlock("exact", us[0], "models gpt-4o org/*:free")+
			channelBlock("mapped", us[1], "model_map claude-* anthropic/claude-*", "model_map small tiny-1")+
			channelBlock("rest", us[2], "default_model fallback", "models own", "priority 1")))
	for requested, want := range map[string]string{
		"gpt-4o":          "0 gpt-4o",
		"org/x:free":      "0 org/x:free",
		"claude-sonnet-4": "1 anthropic/claude-sonnet-4",
		"small":           "1 tiny-1",
		"own":             "2 own",
		"anything":        "2 fallback",
	} {
		before := []int{us[0].Count(), us[1].Count(), us[2].Count()}
		if got := g.Chat(requested); got.Status != 200 {
			t.Errorf("%s: status %d %s", requested, got.Status, got.Body)
			continue
		}
		for i, u := range us {
			if u.Count() > before[i] {
				if got := fmt.Sprintf("%d %s", i, u.Last().Model); got != want {
					t.Errorf("%s went to %s, want %s", requested, got, want)
				}
			}
		}
	}
}

func TestRewritingTheModelLeavesTheRestOfTheBodyAlone(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "model_map m1 upstream-name")))
	body := `{ "messages" : [ {"model":"m1","n":1e3} ],"model" : "m1" , "z":"\u00e9" }`
	g.Do(g.Request("/v1/chat/completions", body))
	if want := strings.Replace(body, `"model" : "m1"`, `"model" : "upstream-name"`, 1); u.Last().Body != want {
		t.Errorf("upstream got %s", u.Last().Body)
	}
}

func TestUnknownModelIs404(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "models m1")))
	got := g.Chat("other")
	if got.Status != 404 || !strings.Contains(got.Body, `"code":"model_not_found"`) || got.Header.Get("X-Should-Retry") != "false" || got.Header.Get("Retry-After") != "" {
		t.Errorf("%d %v %s", got.Status, got.Header, got.Body)
	}
	got = g.Do(g.Request("/v1/messages", testrig.Chat("m1")))
	if got.Status != 404 || !strings.Contains(got.Body, `"type":"not_found_error"`) || !strings.Contains(got.Body, "anthropic") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

func TestPriorityThenBackupChains(t *testing.T) {
	us := upstreams(t, 5)
	g := testrig.Start(t, gatewayBlock("retries 9\n"+
		channelBlock("second", us[1], "priority 2", "backup third fourth")+
		channelBlock("first", us[0], "priority 1", "backup fifth")+
		channelBlock("third", us[2])+
		channelBlock("fourth", us[3])+
		channelBlock("fifth", us[4])))
	for _, u := range us {
		u.Answer(testrig.Fail(500, ""))
	}
	order := func() string {
		var mu sync.Mutex
		var seen []string
		for i, u := range us {
			u.Answer(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				seen = append(seen, fmt.Sprint(i))
				mu.Unlock()
				testrig.Fail(500, "")(w, r)
			})
		}
		g.Chat("m1")
		return strings.Join(seen, " ")
	}
	if got := order(); got != "0 1 4 2 3" {
		t.Errorf("order %s, want the primaries by priority, then the chains of the primaries", got)
	}
}

func TestWeightsShareTheTraffic(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "weight 3")+channelBlock("b", us[1])))
	const n = 1000
	for range n {
		g.Chat("m1")
	}
	// Five standard deviations of a binomial draw.
	if share, off := float64(us[0].Count())/n, 5*math.Sqrt(0.75*0.25/n); math.Abs(share-0.75) > off {
		t.Errorf("share %.3f, want 0.75 within %.3f", share, off)
	}
}

func TestDegradedChannelKeepsAReducedShare(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock("breaker {\nopen_threshold 50\ndegrade_threshold 1\ndegraded_weight 0\n}\n"+
		channelBlock("a", us[0])+channelBlock("b", us[1])))
	us[0].Answer(testrig.Fail(500, ""))
	testrig.Eventually(t, "a degraded", func() bool {
		g.Chat("m1")
		return g.Breaker("a", "m1").Degraded
	})
	before := us[0].Count()
	for range 30 {
		g.Chat("m1")
	}
	if us[0].Count() != before {
		t.Errorf("weight 0 got %d of 30", us[0].Count()-before)
	}
}

func TestCaddysPoliciesPickFromTheFilteredPool(t *testing.T) {
	us := upstreams(t, 3)
	channels := channelBlock("a", us[0]) + channelBlock("b", us[1]) + channelBlock("c", us[2])
	counts := func() []int { return []int{us[0].Count(), us[1].Count(), us[2].Count()} }
	g := testrig.Start(t, gatewayBlock("lb_policy first\n"+channels))
	for range 3 {
		g.Chat("m1")
	}
	if got := counts(); !slices.Equal(got, []int{3, 0, 0}) {
		t.Errorf("first: %v", got)
	}
	us[0].Answer(testrig.Fail(500, ""))
	for range 3 {
		g.Chat("m1")
	}
	before := us[0].Count()
	g.Chat("m1")
	if us[0].Count() != before {
		t.Error("first picked an open channel")
	}

	us[0].Answer(testrig.OK)
	if err := g.Reload(gatewayBlock("lb_policy round_robin\n" + strings.ReplaceAll(channels, "channel ", "channel rr-"))); err != nil {
		t.Fatal(err)
	}
	start := counts()
	for range 9 {
		g.Chat("m1")
	}
	for i, n := range counts() {
		if n-start[i] != 3 {
			t.Errorf("round_robin: channel %d got %d of 9", i, n-start[i])
		}
	}

	if err := g.Reload(gatewayBlock("lb_policy cookie lb secret\n" + channels)); err != nil {
		t.Fatal(err)
	}
	cookies := g.Chat("m1").Header.Values("Set-Cookie")
	if len(cookies) != 1 || !strings.HasPrefix(cookies[0], "lb=") {
		t.Errorf("the policy's cookie did not reach the client: %v", cookies)
	}
}

func TestMaxRequestsKeepsTheRestForOthers(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "max_requests 2")+channelBlock("b", us[1], "priority 1")))
	release := make(chan struct{})
	us[0].Answer(func(w http.ResponseWriter, r *http.Request) {
		<-release
		testrig.OK(w, r)
	})
	codes := make(chan int, 10)
	for range 10 {
		go func() { codes <- g.Chat("m1").Status }()
	}
	for range 8 {
		if code := <-codes; code != 200 {
			t.Errorf("status %d", code)
		}
	}
	testrig.Eventually(t, "both places of a taken", func() bool { return us[0].Count() == 2 })
	if us[1].Count() != 8 {
		t.Errorf("b got %d", us[1].Count())
	}
	close(release)
	<-codes
	<-codes
}

func TestRetriesBoundTheAttempts(t *testing.T) {
	us := upstreams(t, 4)
	for _, c := range []struct {
		option   string
		attempts int
	}{{"retries 0", 1}, {"retries 1", 2}, {"", 4}} {
		t.Run(c.option, func(t *testing.T) {
			var channels string
			start := 0
			for i, u := range us {
				u.Answer(testrig.Fail(500, "boom"))
				channels += channelBlock(fmt.Sprint("c", i), u)
				start += u.Count()
			}
			g := testrig.Start(t, gatewayBlock(c.option+"\n"+channels))
			got := g.Chat("m1")
			if got.Status != 500 || !strings.Contains(got.Body, "boom") {
				t.Errorf("the last real answer is due: %d %s", got.Status, got.Body)
			}
			n := -start
			for _, u := range us {
				n += u.Count()
			}
			if n != c.attempts {
				t.Errorf("%d attempts, want %d", n, c.attempts)
			}
		})
	}
}

func TestOpenPairRefusesAtOnceWithItsReturn(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("breaker {\nopen_threshold 3\nprobe_interval 30s\njitter 0\n}\n"+channelBlock("a", u)))
	u.Answer(testrig.Fail(500, ""))
	for range 3 {
		g.Chat("m1")
	}
	before := u.Count()
	got := g.Chat("m1")
	if got.Status != 503 || !strings.Contains(got.Body, "no_channel_available") || got.Header.Get("Retry-After") != "30" {
		t.Errorf("%d %v %s", got.Status, got.Header, got.Body)
	}
	if u.Count() != before {
		t.Error("an open pair was asked")
	}
}

func TestEarlyProbeEndsAnOutageOfEverything(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock("early_probe 200ms\nbreaker {\nopen_threshold 3\nprobe_interval 5m\n}\n"+
		channelBlock("a", us[0])+channelBlock("b", us[1], "priority 1")))
	for _, u := range us {
		u.Answer(testrig.Fail(503, ""))
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
	testrig.Eventually(t, "traffic flows again long before the probe interval", func() bool { return g.Chat("m1").Status == 200 })
}

func TestKeysRotateAndARefusedKeyCostsASwitchOnly(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "key k1 k2", "key k3")))
	for range 30 {
		g.Chat("m1")
	}
	used := map[string]int{}
	for _, r := range u.Received() {
		used[r.Header.Get("Authorization")]++
	}
	if len(used) != 3 || used["Bearer k1"] != 10 {
		t.Errorf("keys used: %v", used)
	}
	u.Answer(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer k2" {
			testrig.Fail(401, "invalid_api_key")(w, r)
			return
		}
		testrig.OK(w, r)
	})
	before := u.Count()
	for range 20 {
		if got := g.Chat("m1"); got.Status != 200 {
			t.Errorf("status %d", got.Status)
		}
	}
	if n := u.Count() - before; n > 23 {
		t.Errorf("%d sends for 20 requests: the refused key is asked again and again", n)
	}
	c := g.Channel("a")
	paused := 0
	for _, k := range c.Keys {
		if k.State == "paused" {
			paused++
		}
	}
	if paused != 1 || c.Health != "yellow" || len(g.Channel("a").Breakers) > 0 && g.Breaker("a", "m1").ConsecutiveFailures != 0 {
		t.Errorf("status: %+v", c)
	}
}

func TestWholePoolRefusedIs502AndRed(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "key k1 k2")))
	u.Answer(testrig.Fail(401, "invalid_api_key"))
	for range 2 { // first the upstream says so, then the pauses
		got := g.Chat("m1")
		if got.Status != 502 || !strings.Contains(got.Body, "credentials_rejected") || strings.Contains(got.Body, "scripted") {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	}
	if u.Count() != 2 {
		t.Errorf("%d sends, want one a key", u.Count())
	}
	if c := g.Channel("a"); c.Health != "red" {
		t.Errorf("%+v", c)
	}
	if n := g.Breaker("a", "m1").ConsecutiveFailures; n != 1 {
		t.Errorf("a pool that is refused as a whole counts one failure, not %d", n)
	}
}

func TestEveryChannelLimitedIs429(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u)))
	u.Answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "30")
		testrig.Fail(429, "rate_limit_exceeded")(w, r)
	})
	if got := g.Chat("m1"); got.Status != 429 || got.Header.Get("Retry-After") != "30" || !strings.Contains(got.Body, "scripted") {
		t.Errorf("the upstream's own 429 is due: %d %v %s", got.Status, got.Header, got.Body)
	}
	got := g.Chat("m1")
	if got.Status != 429 || !strings.Contains(got.Body, `"rate_limited"`) || got.Header.Get("Retry-After") != "30" {
		t.Errorf("%d %v %s", got.Status, got.Header, got.Body)
	}
}

func TestEmptyKeyIsUnusableAndWarnedAbout(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "key {env.LLM_GATEWAY_TEST_UNSET}")+channelBlock("b", us[1], "priority 1")))
	if got := g.Chat("m1"); got.Status != 200 || us[0].Count() != 0 {
		t.Errorf("status %d, a got %d", got.Status, us[0].Count())
	}
	if len(g.LogEntries("key is empty, the channel goes without it")) != 1 {
		t.Error("no warning")
	}
}

func TestModellessRequestsGoToTheFirstChannelAndAreNotRepeated(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "models m1", "priority 5")+channelBlock("b", us[1], "models m2")))
	if got := g.Do(g.Request("/v1/files", "x")); got.Status != 200 || us[0].Count() != 1 {
		t.Errorf("status %d, a got %d", got.Status, us[0].Count())
	}
	us[0].Answer(testrig.Fail(500, ""))
	if got := g.Do(g.Request("/v1/files", "x")); got.Status != 500 || us[1].Count() != 0 {
		t.Errorf("an upload was repeated: status %d, b got %d", got.Status, us[1].Count())
	}
	us[0].Answer(testrig.Fail(401, "invalid_api_key"))
	if got := g.Do(g.Request("/v1/files", "x")); got.Status != 200 {
		t.Errorf("after a 401 nothing was done, so it may be repeated: %d", got.Status)
	}
	r, _ := http.NewRequest(http.MethodGet, g.URL+"/v1/files", nil)
	us[0].Answer(testrig.Fail(500, ""))
	if got := g.Do(r); got.Status != 200 {
		t.Errorf("a GET may be repeated: %d", got.Status)
	}
}

func TestBadRequestsAreRefusedInTheCallersShape(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("max_body 1KB\n"+channelBlock("a", u)+channelBlock("c", u, "provider anthropic")))
	for _, c := range []struct {
		name, path, body, encoding string
		status                     int
		contains                   string
	}{
		{"no object", "/v1/chat/completions", `[]`, "", 400, `"code":"invalid_request"`},
		{"no model", "/v1/chat/completions", `{}`, "", 400, `"type":"invalid_request_error"`},
		{"anthropic", "/v1/messages", `{"model":1}`, "", 400, `"type":"error"`},
		{"model twice", "/v1/chat/completions", `{"model":"a","MODEL":"b"}`, "", 400, "twice"},
		{"too large", "/v1/chat/completions", strings.Replace(testrig.Chat("m1"), "hi", strings.Repeat("x", 2000), 1), "", 413, `"code":"request_too_large"`},
		{"unknown encoding", "/v1/chat/completions", "x", "br", 415, `"code":"unsupported_encoding"`},
		{"dot segment", "/v1/%2e%2e/admin", testrig.Chat("m1"), "", 400, "invalid_request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := g.Request(c.path, c.body)
			if c.encoding != "" {
				r.Header.Set("Content-Encoding", c.encoding)
			}
			got := g.Do(r)
			if got.Status != c.status || !strings.Contains(got.Body, c.contains) || !json.Valid([]byte(got.Body)) {
				t.Errorf("%d %s", got.Status, got.Body)
			}
		})
	}
	if u.Count() != 0 {
		t.Error("a bad request went upstream")
	}
}

func TestErrorsCanGoToTheErrorRoutes(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, "handle_errors {\nrespond \"own page: {http.llm_gateway.error.code} {err.status_code}\"\n}\n"+
		gatewayBlock("errors caddy\n"+channelBlock("a", u, "models m1")))
	if got := g.Chat("other"); got.Status != 404 || got.Body != "own page: model_not_found 404" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	u.Answer(testrig.Reset)
	if got := g.Chat("m1"); got.Status != 502 || got.Body != "own page: upstream_unreachable 502" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

func TestNoAnswerAtAllIs502Or504(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("header_timeout 200ms 200ms\n"+channelBlock("a", u)))
	u.Answer(testrig.Reset)
	if got := g.Chat("m1"); got.Status != 502 || !strings.Contains(got.Body, "upstream_unreachable") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	u.Answer(testrig.Hang)
	if got := g.Chat("m1"); got.Status != 504 || !strings.Contains(got.Body, "upstream_timeout") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

func TestBreakerModes(t *testing.T) {
	for mode, want := range map[string]string{"off": "closed", "dry_run": "open"} {
		t.Run(mode, func(t *testing.T) {
			u := testrig.NewUpstream(t)
			block := "breaker " + mode
			if mode == "dry_run" {
				block += " {\nopen_threshold 3\n}"
			}
			g := testrig.Start(t, "llm_gateway {\n"+block+"\n"+channelBlock("a", u, "models m1")+"}")
			u.Answer(testrig.Fail(500, ""))
			for range 10 {
				g.Chat("m1")
			}
			if u.Count() != 10 {
				t.Errorf("%d of 10 requests reached the upstream", u.Count())
			}
			if b := g.Breaker("a", "m1"); b.State != want || b.DryRun != (mode == "dry_run") {
				t.Errorf("%+v", b)
			}
		})
	}
}

func TestPlainReverseProxyRefusesThePolicy(t *testing.T) {
	_, err := testrig.Adapt("http://127.0.0.1:1 {\nreverse_proxy 127.0.0.1:2 {\nlb_policy llm_gateway\n}\n}")
	if err == nil || !strings.Contains(err.Error(), "llm_gateway directive") || !strings.Contains(err.Error(), "Caddyfile:3") {
		t.Errorf("%v", err)
	}
}
