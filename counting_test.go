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
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// What is wrong with the request itself reaches the client as it is, is asked of
// nobody else, and counts against nobody.
func TestClientFaultsCountNothingAndGoNowhereElse(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
	}{{400, "context_length_exceeded"}, {413, ""}, {422, ""}, {409, ""}, {405, ""}, {415, ""}, {501, ""}} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			p := startPair(t, "second_opinion off")
			p.u1.Answer(testrig.Fail(c.status, c.code))
			want := fmt.Sprintf(`{"error":{"message":"scripted","type":"t","param":null,"code":%q}}`, c.code)
			for range 20 {
				got := p.Chat("m1")
				if got.Status != c.status || got.Body != want || got.Header.Get("Content-Type") != "application/json" {
					t.Fatalf("client got %d %s", got.Status, got.Body)
				}
			}
			if n := p.u2.Count(); n != 0 {
				t.Errorf("b got %d requests", n)
			}
			if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 0 || b.State == "open" {
				t.Errorf("counted: %+v", b)
			}
		})
	}
}

// A client that leaves counts against nobody, is not replaced by another
// attempt, and lets go of the upstream's connection.
func TestClientThatLeavesCountsNothing(t *testing.T) {
	headers := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	events := func(w http.ResponseWriter, r *http.Request) {
		testrig.EventStream(w, testrig.Chunk("a"), testrig.Chunk("b"))
		<-r.Context().Done()
	}
	for _, c := range []struct {
		name     string
		upstream http.HandlerFunc
		status   float64
	}{{"silent", testrig.Hang, 499}, {"after headers", headers, 499}, {"after two events", events, 200}} {
		t.Run(c.name, func(t *testing.T) {
			p := startPair(t)
			p.u1.Answer(c.upstream)
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if c.status == 200 {
						leaveOnContent(t, p.Gateway)
					} else {
						leaveAfter(t, p.Gateway, testrig.StreamChat("m1"), 300*time.Millisecond)
					}
				})
			}
			wg.Wait()
			testrig.Eventually(t, "all connections to a let go", func() bool { return p.u1.Gone() == p.u1.Count() && p.InFlight() == 0 })
			if p.u1.Count() < 25 {
				t.Errorf("only %d requests reached a before their clients left", p.u1.Count())
			}
			if n := p.u2.Count(); n != 0 {
				t.Errorf("b got %d requests", n)
			}
			if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 0 {
				t.Errorf("counted: %+v", b)
			}
			testrig.Eventually(t, "50 access log entries", func() bool { return len(p.AccessLog()) == 50 })
			for _, e := range p.AccessLog() {
				object, _ := e["llm_gateway"].(map[string]any)
				if e["status"] != c.status || object["outcome"] != "client_gone" {
					t.Fatalf("access log: status %v, %v", e["status"], object)
				}
			}
		})
	}
}

// leaveOnContent sends a request whose client leaves when the answer has begun.
func leaveOnContent(t *testing.T, g *testrig.Gateway) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res, err := g.Client.Do(g.Request("/v1/chat/completions", testrig.StreamChat("m1")).WithContext(ctx))
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	res.Body.Read(make([]byte, 1))
}

// Clients that leave because nothing comes are the only sign of an upstream that
// hangs, so after abandon_after they count.
func TestAbandonedRequestsOpenTheBreaker(t *testing.T) {
	p := startPair(t, "abandon_after 200ms", "breaker {\nopen_threshold 5\nprobe_interval 1m\n}")
	p.u1.Answer(testrig.Hang)
	for i := range 5 {
		leaveAfter(t, p.Gateway, testrig.Chat("m1"), 350*time.Millisecond)
		testrig.Eventually(t, "counted", func() bool { return p.Breaker("a", "m1").ConsecutiveFailures == i+1 })
	}
	if b := p.Breaker("a", "m1"); b.State != "open" || !strings.Contains(b.LastFailure, "without a byte") {
		t.Errorf("%+v", b)
	}
	before := p.u1.Count()
	if got := p.Chat("m1"); got.Status != 200 || p.u1.Count() != before {
		t.Errorf("next client: %d, a asked %d times", got.Status, p.u1.Count()-before)
	}
}

func TestRateLimitedChannelIsPausedAndLeavesTheStreakAlone(t *testing.T) {
	for _, header := range []string{"", "60"} {
		t.Run("retry-after "+header, func(t *testing.T) {
			p := startPair(t)
			p.u1.Answer(testrig.Fail(500, "boom"))
			p.Chat("m1")
			p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
				if header != "" {
					w.Header().Set("Retry-After", header)
				}
				testrig.Fail(429, "rate_limit_exceeded")(w, r)
			})
			before := p.u1.Count()
			for range 30 {
				if got := p.Chat("m1"); got.Status != 200 {
					t.Fatalf("status %d", got.Status)
				}
			}
			if n := p.u1.Count() - before; n > 5 {
				t.Errorf("the limited channel got %d of 30 requests", n)
			}
			if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 1 {
				t.Errorf("a 429 changed the streak: %+v", b)
			}
			if c := p.Channel("a"); c.Keys[0].State != "limited" || c.Health != "yellow" {
				t.Errorf("status: %+v", c)
			}
		})
	}
}

func TestRequestsInFlightMoveWhenTheirChannelResetsThemAll(t *testing.T) {
	p := startPair(t)
	release := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Add(200)
	p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
		waiting.Done()
		<-release
		testrig.Reset(w, r)
	})
	codes := make(chan int, 200)
	for range 200 {
		go func() { codes <- p.Chat("m1").Status }()
	}
	waiting.Wait()
	close(release)
	for range 200 {
		if code := <-codes; code != 200 {
			t.Errorf("status %d", code)
		}
	}
}

// Four channels of one broken host must not use up all attempts.
func TestLastAttemptGoesToAnotherHost(t *testing.T) {
	broken, healthy := testrig.NewUpstream(t), testrig.NewUpstream(t)
	broken.Answer(testrig.Fail(503, "down"))
	var block strings.Builder
	for i := range 4 {
		fmt.Fprintf(&block, "channel broken%d {\nbase_url %s\n}\n", i, broken.URL)
	}
	fmt.Fprintf(&block, "channel healthy {\nbase_url %s\npriority 1\n}\n", healthy.URL)
	g := testrig.Start(t, gatewayBlock(block.String()))
	if got := g.Chat("m1"); got.Status != 200 {
		t.Errorf("status %d", got.Status)
	}
	if b, h := broken.Count(), healthy.Count(); b != 3 || h != 1 {
		t.Errorf("the broken host got %d attempts, the healthy one %d", b, h)
	}
}

func TestTransportErrorsFailOver(t *testing.T) {
	for name, upstream := range map[string]http.HandlerFunc{
		"reset":              testrig.Reset,
		"closed":             testrig.Raw(""),
		"garbage":            testrig.Raw("SSH-2.0-OpenSSH\r\n"),
		"headers cut":        testrig.Raw("HTTP/1.1 200 OK\r\nContent-"),
		"header_timeout":     testrig.Hang,
		"408":                testrig.Fail(408, ""),
		"500":                testrig.Fail(500, ""),
		"529":                testrig.Fail(529, ""),
		"model not found":    testrig.Fail(404, "model_not_found"),
		"html 200":           testrig.Raw("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"),
		"200 without body":   testrig.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"),
		"204":                func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"103 then 500":       testrig.Raw("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
		"billing":            testrig.Fail(429, "insufficient_quota"),
		"payment required":   testrig.Fail(402, ""),
		"forbidden, no code": testrig.Fail(403, ""),
	} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, "header_timeout 2s 2s")
			p.u1.Answer(upstream)
			got := p.Chat("m1")
			if got.Status != 200 || got.Body != testrig.Completion || got.Header.Get("Link") != "" {
				t.Errorf("client got %d %s", got.Status, got.Body)
			}
			if a, b := p.u1.Count(), p.u2.Count(); a != 1 || b != 1 {
				t.Errorf("a got %d, b got %d", a, b)
			}
		})
	}
}

func TestRefusedConnectionFailsOver(t *testing.T) {
	u2 := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+testrig.Refusing(t)+"\n}\nchannel b {\nbase_url "+u2.URL+"\npriority 1\n}"))
	for range 4 {
		if got := g.Chat("m1"); got.Status != 200 {
			t.Errorf("status %d", got.Status)
		}
	}
	if b := g.Breaker("a", "m1"); b.State != "open" {
		t.Errorf("%+v", b)
	}
}

// After commit nothing is retried: the client sees a broken end, and the
// upstream is charged.
func TestTruncatedAnswerEndsAbnormallyAndCounts(t *testing.T) {
	cut := func(events ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { testrig.EventStream(w, events...) }
	}
	// More than is read at once while the head is held back.
	long := strings.Repeat("a", 20_000)
	for _, c := range []struct {
		name, path, body string
		upstream         http.HandlerFunc
	}{
		{"json short of its length", "/v1/chat/completions", testrig.Chat("m1"),
			testrig.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n" + `{"choices":[{"message":{"content":"` + strings.Repeat("x", 100_000))},
		{"stream reset", "/v1/chat/completions", testrig.StreamChat("m1"), func(w http.ResponseWriter, r *http.Request) {
			cut(testrig.Chunk("a"), testrig.Chunk(long))(w, r)
			testrig.Reset(w, r)
		}},
		{"openai stream without its end", "/v1/chat/completions", testrig.StreamChat("m1"), cut(testrig.Chunk("a"), testrig.Chunk(long))},
		{"anthropic stream without its end", "/v1/messages", testrig.StreamChat("m1"), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n: %s\n\n", long)
		}},
		{"idle_timeout", "/v1/chat/completions", testrig.StreamChat("m1"), func(w http.ResponseWriter, r *http.Request) {
			cut(testrig.Chunk("a"))(w, r)
			<-r.Context().Done()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			provider := ""
			if c.path == "/v1/messages" {
				provider = "provider anthropic"
			}
			u1, u2 := testrig.NewUpstream(t), testrig.NewUpstream(t)
			g := testrig.Start(t, gatewayBlock(fmt.Sprintf(
				"idle_timeout 300ms\nchannel a {\nbase_url %s\n%s\n}\nchannel b {\nbase_url %s\n%s\npriority 1\n}", u1.URL, provider, u2.URL, provider)))
			u1.Answer(c.upstream)
			got := g.Do(g.Request(c.path, c.body))
			if got.Status != 200 || got.Err == nil {
				t.Errorf("client got %d with a clean end: %.100s", got.Status, got.Body)
			}
			if n := u2.Count(); n != 0 {
				t.Errorf("b got %d requests after commit", n)
			}
			if b := g.Breaker("a", "m1"); b.ConsecutiveFailures != 1 {
				t.Errorf("not charged: %+v", b)
			}
			if len(g.LogEntries("answer broke off on its way to the client")) != 1 {
				t.Error("not logged")
			}
		})
	}
}

func TestCompleteStreamsCountAsSuccess(t *testing.T) {
	anthropic := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\",\"usage\":{\"input_tokens\":1}}}\n\n")
		fmt.Fprint(w, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n")
		fmt.Fprint(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	}
	for path, upstream := range map[string]http.HandlerFunc{"/v1/chat/completions": testrig.OK, "/v1/messages": anthropic} {
		t.Run(path, func(t *testing.T) {
			u1 := testrig.NewUpstream(t)
			provider := "openai"
			if path == "/v1/messages" {
				provider = "anthropic"
			}
			g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u1.URL+"\nprovider "+provider+"\nmodels m1\n}"))
			u1.Answer(testrig.Fail(500, ""))
			g.Do(g.Request(path, testrig.StreamChat("m1")))
			if n := g.Breaker("a", "m1").ConsecutiveFailures; n != 1 {
				t.Fatalf("%d failures", n)
			}
			u1.Answer(upstream)
			if got := g.Do(g.Request(path, testrig.StreamChat("m1"))); got.Status != 200 || got.Err != nil {
				t.Errorf("client got %d, %v", got.Status, got.Err)
			}
			if b := g.Breaker("a", "m1"); b.ConsecutiveFailures != 0 {
				t.Errorf("not taken for a success: %+v", b)
			}
		})
	}
}
