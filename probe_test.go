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
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// A probe whose client leaves says nothing about the upstream: the lease is back
// at once, and the next request probes.
func TestProbeLeaseReturnsWhenTheClientLeaves(t *testing.T) {
	sawHeaders := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	twoEvents := func(w http.ResponseWriter, r *http.Request) {
		testrig.EventStream(w, `{"choices":[{"index":0,"delta":{"role":"assistant"}}]}`, `{"choices":[{"index":0,"delta":{"role":"assistant"}}]}`)
		<-r.Context().Done()
	}
	for name, upstream := range map[string]http.HandlerFunc{
		"before headers":   testrig.Hang,
		"after headers":    sawHeaders,
		"after two events": twoEvents,
	} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t)
			p.tripHalfOpen(t, "m1")
			failures := p.Breaker("a", "m1").ConsecutiveFailures
			p.u1.Answer(upstream)
			leaveAfter(t, p.Gateway, testrig.StreamChat("m1"), 300*time.Millisecond)
			p.assertLeaseIsBack(t, failures)
		})
	}
}

func (p *pair) assertLeaseIsBack(t *testing.T, failures int) {
	t.Helper()
	testrig.Eventually(t, "lease back", func() bool { return !p.Breaker("a", "m1").ProbeInFlight })
	b := p.Breaker("a", "m1")
	if b.State != "half_open" || b.ConsecutiveFailures != failures {
		t.Errorf("after the client left: %s with %d failures, want half_open with %d", b.State, b.ConsecutiveFailures, failures)
	}
	p.u1.Answer(testrig.OK)
	before := p.u1.Count()
	if got := p.Chat("m1"); got.Status != 200 {
		t.Errorf("next request: status %d", got.Status)
	}
	if p.u1.Count() != before+1 {
		t.Error("the next request did not probe")
	}
	if s := p.Breaker("a", "m1").State; s != "closed" {
		t.Errorf("after a good probe: %s", s)
	}
}

// leaveAfter sends a chat request and gives up on it.
func leaveAfter(t *testing.T, g *testrig.Gateway, body string, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	r := g.Request("/v1/chat/completions", body).WithContext(ctx)
	res, err := g.Client.Do(r)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the client got an answer: %v", err)
	}
}

func TestProbeLeaseReturnsWhenTheClientLeavesDuringUpload(t *testing.T) {
	p := startPair(t)
	p.tripHalfOpen(t, "m1")
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"model\":\"m1\"")
	time.Sleep(50 * time.Millisecond) // the gateway is reading by now, or will see the end: both must do
	conn.Close()
	p.assertLeaseIsBack(t, p.Breaker("a", "m1").ConsecutiveFailures)
	testrig.Eventually(t, "access log tells that the client left", func() bool {
		for _, e := range p.AccessLog() {
			if object, _ := e["llm_gateway"].(map[string]any); object["outcome"] == "client_gone" {
				return true
			}
		}
		return false
	})
}

func TestProbeLeaseReturnsOnAnHTTP2Reset(t *testing.T) {
	p := &pair{u1: testrig.NewUpstream(t), u2: testrig.NewUpstream(t)}
	p.Gateway = testrig.StartH2C(t, p.block())
	p.tripHalfOpen(t, "m1")
	p.u1.Answer(testrig.Hang)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	h2 := &http.Client{Transport: transport}
	defer h2.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := h2.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")).WithContext(ctx))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the client got an answer: %v", err)
	}
	p.assertLeaseIsBack(t, p.Breaker("a", "m1").ConsecutiveFailures)
}

// However a probe ends, the pair is never out for longer than one open period
// once the upstream has healed.
func TestPairIsNeverStuckAfterAProbe(t *testing.T) {
	endings := map[string]http.HandlerFunc{
		"400": testrig.Fail(400, "bad"), "401": testrig.Fail(401, "invalid_api_key"), "403": testrig.Fail(403, ""),
		"404": testrig.Fail(404, ""), "413": testrig.Fail(413, ""), "422": testrig.Fail(422, ""),
		"429": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			testrig.Fail(429, "rate_limit_exceeded")(w, r)
		},
		"short body":   testrig.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"),
		"broken chunk": testrig.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
		"204":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"301": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(301)
		},
	}
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, "breaker {\nopen_threshold 3\nprobe_interval 250ms\nmax_probe_interval 500ms\njitter 0\n}")
			p.tripHalfOpen(t, "m1")
			p.u1.Answer(ending)
			before := p.u1.Count()
			p.Chat("m1")
			if p.u1.Count() == before {
				t.Fatal("the probe did not reach a")
			}
			p.u1.Answer(testrig.OK)
			healed := time.Now()
			testrig.Eventually(t, "a closed again", func() bool {
				p.Chat("m1")
				return p.Breaker("a", "m1").State == "closed"
			})
			// A 401 pauses the key for 1 s, a 429 as long as it says.
			if took := time.Since(healed); took > 2*time.Second {
				t.Errorf("closed only %s after the upstream healed", took)
			}
		})
	}
}

func TestExactlyOneProbeUnderAStampede(t *testing.T) {
	for name, withB := range map[string]bool{"with b": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := testrig.NewUpstream(t), testrig.NewUpstream(t)
			block := "channel a {\nbase_url " + u1.URL + "\nmodels m1 m2\n}\n"
			if withB {
				block += "channel b {\nbase_url " + u2.URL + "\npriority 1\n}\n"
			}
			g := testrig.Start(t, gatewayBlock(block))
			u1.Answer(testrig.Fail(500, "boom"))
			for range 3 {
				g.Chat("m1")
				g.Chat("m2")
			}
			g.WaitState("a", "m1", "half_open")
			g.WaitState("a", "m2", "half_open")
			u1.Answer(testrig.Hang)
			before := u1.Count()
			assertStampede(t, g, withB)
			perModel := map[string]int{}
			for _, r := range u1.Received()[before:] {
				perModel[r.Model]++
			}
			if perModel["m1"] != 1 || perModel["m2"] != 1 {
				t.Errorf("probes that reached the upstream: %v, want one a model", perModel)
			}
		})
	}
}

// assertStampede sends 200 requests at once, all but one probe a model of which
// must be answered without waiting for the probe.
func assertStampede(t *testing.T, g *testrig.Gateway, withB bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		codes = map[int]int{}
		done  = make(chan struct{}, 200)
	)
	for i := range 200 {
		model := []string{"m1", "m2"}[i%2]
		wg.Go(func() {
			res, err := g.Client.Do(g.Request("/v1/chat/completions", testrig.Chat(model)).WithContext(ctx))
			if err != nil {
				return
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			mu.Lock()
			codes[res.StatusCode]++
			if res.StatusCode == 503 && res.Header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
			mu.Unlock()
			done <- struct{}{}
		})
	}
	for range 198 {
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Error("requests wait for the probe")
			cancel()
		}
	}
	want := 503
	if withB {
		want = 200
	}
	mu.Lock()
	if codes[want] != 198 {
		t.Errorf("statuses %v, want 198 x %d", codes, want)
	}
	mu.Unlock()
	cancel()
	wg.Wait()
}

func TestRefusalWhileProbingIsImmediate(t *testing.T) {
	u1 := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u1.URL+"\n}"))
	u1.Answer(testrig.Fail(500, "boom"))
	for range 3 {
		g.Chat("m1")
	}
	g.WaitState("a", "m1", "half_open")
	u1.Answer(testrig.Hang)
	ctx, cancel := context.WithCancel(t.Context())
	var probe sync.WaitGroup
	probe.Go(func() {
		if res, err := g.Client.Do(g.Request("/v1/chat/completions", testrig.Chat("m1")).WithContext(ctx)); err == nil {
			res.Body.Close()
		}
	})
	testrig.Eventually(t, "probe in flight", func() bool { return g.Breaker("a", "m1").ProbeInFlight })
	began := time.Now()
	got := g.Chat("m1")
	if took := time.Since(began); got.Status != 503 || got.Header.Get("Retry-After") != "1" || took > 200*time.Millisecond {
		t.Errorf("status %d, Retry-After %q after %s", got.Status, got.Header.Get("Retry-After"), took)
	}
	cancel()
	probe.Wait()
}

// A permit for a probe that never becomes a request is given back at the end of
// that request.
func TestProbeLeaseReturnsWhenNothingIsSent(t *testing.T) {
	t.Run("body refused", func(t *testing.T) {
		p := startPair(t, "max_body 1KB")
		p.tripHalfOpen(t, "m1")
		big := strings.Replace(testrig.Chat("m1"), "hi", strings.Repeat("x", 2000), 1)
		if got := p.Do(p.Request("/v1/chat/completions", big)); got.Status != 413 {
			t.Errorf("status %d", got.Status)
		}
		p.assertLeaseIsBack(t, p.Breaker("a", "m1").ConsecutiveFailures)
	})
	t.Run("at max_requests", func(t *testing.T) {
		u1, u2 := testrig.NewUpstream(t), testrig.NewUpstream(t)
		p := &pair{u1: u1, u2: u2}
		p.Gateway = testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u1.URL+"\nmax_requests 1\n}\nchannel b {\nbase_url "+u2.URL+"\npriority 1\n}"))
		p.tripHalfOpen(t, "m1")
		u1.Answer(testrig.Hang)
		start := u1.Count()
		ctx, cancel := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		busy.Go(func() {
			if res, err := p.Client.Do(p.Request("/v1/chat/completions", testrig.Chat("m2")).WithContext(ctx)); err == nil {
				res.Body.Close()
			}
		})
		testrig.Eventually(t, "a is full", func() bool { return u1.Count() == start+1 })
		before := u1.Count()
		if got := p.Chat("m1"); got.Status != 200 {
			t.Errorf("status %d", got.Status)
		}
		if u1.Count() != before || p.Breaker("a", "m1").ProbeInFlight {
			t.Error("a full channel was probed")
		}
		cancel()
		busy.Wait()
		testrig.Eventually(t, "a is free", func() bool { return p.Channel("a").InFlight == 0 })
		p.assertLeaseIsBack(t, p.Breaker("a", "m1").ConsecutiveFailures)
	})
	t.Run("key paused", func(t *testing.T) {
		p := startPair(t)
		p.tripHalfOpen(t, "m1")
		p.u1.Answer(testrig.Fail(401, "invalid_api_key"))
		p.Chat("m2") // pauses the only key
		before := p.u1.Count()
		if got := p.Chat("m1"); got.Status != 200 {
			t.Errorf("status %d", got.Status)
		}
		if p.u1.Count() != before || p.Breaker("a", "m1").ProbeInFlight {
			t.Error("a channel without a usable key was probed")
		}
		testrig.Eventually(t, "key back", func() bool { return p.Channel("a").Keys[0].State == "enabled" })
		p.assertLeaseIsBack(t, p.Breaker("a", "m1").ConsecutiveFailures)
	})
}

// Recovery needs no background traffic: the first request after the open period
// of a pair closes it.
func TestBothChannelsRecoverByTraffic(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(testrig.Fail(500, "boom"))
	p.u2.Answer(testrig.Fail(500, "boom"))
	for range 3 {
		p.Chat("m1")
	}
	if a, b := p.Breaker("a", "m1").State, p.Breaker("b", "m1").State; a != "open" || b != "open" {
		t.Fatalf("a %s, b %s", a, b)
	}
	p.WaitState("a", "m1", "half_open")
	p.WaitState("b", "m1", "half_open")
	p.u1.Answer(testrig.OK)
	p.u2.Answer(testrig.OK)
	if got := p.Chat("m1"); got.Status != 200 {
		t.Fatalf("status %d", got.Status)
	}
	if s := p.Breaker("a", "m1").State; s != "closed" {
		t.Errorf("a is %s after its first request", s)
	}
	p.u1.Answer(testrig.Fail(500, "boom"))
	if got := p.Chat("m1"); got.Status != 200 {
		t.Fatalf("status %d", got.Status)
	}
	if s := p.Breaker("b", "m1").State; s != "closed" {
		t.Errorf("b is %s after the first request that reached it", s)
	}
}

func TestOnlyConsecutiveFailuresOfThePairOpenItsBreaker(t *testing.T) {
	p := startPair(t)
	fail := func(model string) { p.u1.Answer(testrig.Fail(500, "boom")); p.Chat(model) }
	pass := func(model string) { p.u1.Answer(testrig.OK); p.Chat(model) }
	for _, step := range "FSFSFSF" + "S" + "FFSFF" + "S" {
		if step == 'F' {
			fail("m1")
		} else {
			pass("m1")
		}
		if s := p.Breaker("a", "m1").State; step == 'F' && s != "closed" {
			t.Fatalf("opened by failures that were not consecutive: %s", s)
		}
	}
	fail("m1")
	pass("m2")
	fail("m1")
	pass("m2")
	fail("m1")
	if s := p.Breaker("a", "m1").State; s != "open" {
		t.Errorf("m1 is %s: successes of m2 count for m2 alone", s)
	}
	if b := p.Breaker("a", "m2"); b.State == "open" || b.ConsecutiveFailures != 0 {
		t.Errorf("m2: %+v", b)
	}
}

// The first channel gets its probe and its old share back, though the second
// one never failed.
func TestHealedChannelGetsItsShareBack(t *testing.T) {
	p := startPair(t)
	p.trip(t, "m1")
	before := p.u1.Count()
	for range 10 {
		p.Chat("m1")
	}
	if p.u1.Count() != before {
		t.Error("an open pair was asked")
	}
	p.u1.Answer(testrig.OK)
	testrig.Eventually(t, "a closed under steady traffic", func() bool {
		p.Chat("m1")
		return p.Breaker("a", "m1").State == "closed"
	})
	before, beforeB := p.u1.Count(), p.u2.Count()
	for range 10 {
		p.Chat("m1")
	}
	if p.u1.Count() != before+10 || p.u2.Count() != beforeB {
		t.Errorf("after healing a got %d of 10", p.u1.Count()-before)
	}
}
