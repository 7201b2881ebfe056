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
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

var chaosTime = flag.Duration("chaos", 5*time.Second, "how long the chaos test goes on")

// chaos answers each request in another way.
func chaos(w http.ResponseWriter, r *http.Request) {
	statuses := []int{400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529}
	switch n := rand.IntN(12); n {
	case 0:
		testrig.Reset(w, r)
	case 1:
		testrig.Raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{")(w, r)
	case 2:
		testrig.Raw("nonsense\r\n\r\n")(w, r)
	case 3:
		select { // longer than header_timeout
		case <-r.Context().Done():
		case <-time.After(400 * time.Millisecond):
		}
	case 4:
		testrig.EventStream(w, testrig.Chunk("a"))
		testrig.Reset(w, r)
	case 5:
		w.WriteHeader(204)
	case 6, 7:
		if rand.IntN(2) == 0 {
			w.Header().Set("Retry-After", "1")
		}
		testrig.Fail(statuses[rand.IntN(len(statuses))], "chaos")(w, r)
	default:
		testrig.OK(w, r)
	}
}

// Whatever upstreams, clients, operators and reloads do at once: every request
// that is logged has an outcome, nothing stays in flight, no key goes to a wrong
// upstream, and every breaker closes again when the upstreams have healed.
func TestChaos(t *testing.T) {
	us := upstreams(t, 3)
	names := []string{"a", "b", "c"}
	block := func(retries int) string {
		var channels strings.Builder
		for i, u := range us {
			channels.WriteString(channelBlock(names[i], u, fmt.Sprintf("key sk-%s-1 sk-%s-2", names[i], names[i]), "max_requests 20"))
		}
		return gatewayBlock(fmt.Sprintf("retries %d\nearly_probe 50ms\nheader_timeout 200ms 200ms\nidle_timeout 300ms\nabandon_after 100ms\n"+
			"auto_disable {\nstatus 5xx 50\nstatus 401 3 for 1s\n}\n"+
			"breaker {\nopen_threshold 3\nprobe_interval 50ms\nmax_probe_interval 200ms\nprobe_timeout 200ms 200ms\n}\n%s", retries, &channels))
	}
	g := testrig.Start(t, block(3))
	for _, u := range us {
		u.Answer(chaos)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *chaosTime)
	defer cancel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				chaoticRequest(t, g)
			}
		})
	}
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			chaoticAct(t, g, names[rand.IntN(len(names))])
			if i%5 == 4 {
				if err := g.Reload(block(2 + i%3)); err != nil {
					t.Errorf("reload: %v", err)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	wg.Wait()
	assertHealed(t, g, us, names)
	for i, u := range us {
		for _, r := range u.Received() {
			if key := r.Header.Get("Authorization"); !strings.HasPrefix(key, "Bearer sk-"+names[i]+"-") {
				t.Fatalf("channel %s was sent the key %s", names[i], key)
			}
		}
	}
}

func chaoticRequest(t *testing.T, g *testrig.Gateway) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+rand.IntN(600))*time.Millisecond)
	defer cancel()
	model := fmt.Sprint("m", rand.IntN(3))
	body := testrig.Chat(model)
	if rand.IntN(2) == 0 {
		body = testrig.StreamChat(model)
	}
	res, err := g.Client.Do(g.Request("/v1/chat/completions", body).WithContext(ctx))
	if err == nil {
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

func chaoticAct(t *testing.T, g *testrig.Gateway, channel string) {
	acts := []string{"breaker/reset", "breaker/open?model=m1", "disable", "enable", "keys/" + keyID("sk-"+channel+"-1") + "/disable", "keys/" + keyID("sk-"+channel+"-1") + "/enable"}
	what, body := acts[rand.IntN(len(acts))], "{}"
	if strings.HasSuffix(what, "disable") || strings.Contains(what, "open") {
		body = `{"for":"200ms"}`
	}
	if got := g.AdminDo(http.MethodPost, "/llm_gateway/default/channels/"+channel+"/"+what, body); got.Status != 200 && got.Err == nil {
		t.Errorf("%s: %d %s", what, got.Status, got.Body)
	}
}

// assertHealed lets the upstreams heal and waits until everything is well.
func assertHealed(t *testing.T, g *testrig.Gateway, us []*testrig.Upstream, names []string) {
	t.Helper()
	for _, u := range us {
		u.Answer(testrig.OK)
	}
	for _, name := range names {
		act(t, g, name+"/enable", "{}")
		for _, n := range []string{"1", "2"} {
			act(t, g, name+"/keys/"+keyID("sk-"+name+"-"+n)+"/enable", "{}")
		}
	}
	testrig.Eventually(t, "every breaker closed by traffic alone", func() bool {
		for i := range 3 {
			g.Chat(fmt.Sprint("m", i))
		}
		for _, name := range names {
			for _, b := range g.Channel(name).Breakers {
				if b.State != "closed" {
					return false
				}
			}
		}
		return true
	})
	testrig.Eventually(t, "nothing in flight", func() bool { return g.InFlight() == 0 })
	outcomes := map[string]int{}
	for _, e := range g.AccessLog() {
		object, ok := e["llm_gateway"].(map[string]any)
		outcome, _ := object["outcome"].(string)
		if !ok || outcome == "" {
			t.Errorf("a request without an outcome: %v", e)
		}
		outcomes[outcome]++
	}
	t.Logf("outcomes: %v", outcomes)
}
