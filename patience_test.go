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
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// withDefaults runs scenario under a virtual clock with channels of default
// settings, each preferred to those after it.
func withDefaults(t *testing.T, channels []string, scenario func(r *reference)) {
	synctest.Test(t, func(t *testing.T) {
		r := &reference{t: t, upstreams: map[string]*virtualUpstream{}}
		var all []map[string]any
		for i, name := range channels {
			all = append(all, map[string]any{"name": name, "base_url": "http://" + name + ".example/v1", "priority": i})
		}
		r.start(map[string]any{"channels": all})
		scenario(r)
		time.Sleep(time.Hour) // upstreams that were left finish
	})
}

// post sends a request and returns what the client got.
func (r *reference) post(body string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/chat/completions", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	req = caddyhttp.PrepareRequest(req, caddy.NewReplacer(), w, new(caddyhttp.Server))
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	if err := r.handler.ServeHTTP(w, req, next); err != nil {
		r.t.Errorf("serving: %v", err)
	}
	return w
}

func (r *reference) state(channel, model string) string {
	r.t.Helper()
	for _, b := range r.handler.gateway.channel(channel).status(time.Now()).Breakers {
		if b.Model == model {
			return b.State
		}
	}
	return "closed"
}

// slowly answers with n events, one after each pause.
func slowly(n int, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for range n {
			time.Sleep(pause)
			testrig.EventStream(w, testrig.Chunk("a"))
		}
		testrig.EventStream(w, testrig.FinishChunk, "[DONE]")
	}
}

// after answers once the time is over.
func after(d time.Duration, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(d)
		answer(w, r)
	}
}

func completion(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, testrig.Completion)
}

// With default settings nothing that goes on is cut for being slow.
func TestSlowAnswersAreNotCut(t *testing.T) {
	withDefaults(t, []string{"a", "b"}, func(r *reference) {
		r.upstreams["a"].does(slowly(600, time.Second))
		w := r.post(testrig.StreamChat("m1"))
		if n := strings.Count(w.Body.String(), "data: "); w.Code != 200 || n != 602 {
			t.Errorf("stream of ten minutes: %d, %d events", w.Code, n)
		}
		r.upstreams["a"].does(after(6*time.Minute, completion))
		if w := r.post(testrig.Chat("m1")); w.Code != 200 || w.Body.String() != testrig.Completion {
			t.Errorf("answer after six minutes: %d %s", w.Code, w.Body)
		}
		if n := r.count("b"); n != 0 || r.state("a", "m1") != "closed" {
			t.Errorf("b got %d requests, a is %s", n, r.state("a", "m1"))
		}
	})
}

// A probe may take as long as it likes once it has shown that it works; one that
// says nothing for probe_timeout has failed, and its request is served by
// another channel.
func TestSlowProbes(t *testing.T) {
	for _, c := range []struct {
		name, body string
		answer     http.HandlerFunc
		state      string // while it lasts, a second after its first content was due
		then       string
		others     int // requests that b got
	}{
		{"a stream from the start", testrig.StreamChat("m1"), slowly(400, time.Second), "closed", "closed", 0},
		{"a stream without a byte", testrig.StreamChat("m1"), slowly(1, 4*time.Minute), "half_open", "open", 1},
		{"a document within its time", testrig.Chat("m1"), after(9*time.Minute, completion), "half_open", "closed", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			withDefaults(t, []string{"a", "b"}, func(r *reference) {
				r.upstreams["a"].does(testrig.Fail(500, ""))
				for range 5 {
					r.post(testrig.Chat("m1"))
				}
				time.Sleep(6 * time.Minute)
				before := r.count("b")
				r.upstreams["a"].does(c.answer)
				done := make(chan struct{})
				go func() {
					defer close(done)
					if w := r.post(c.body); w.Code != 200 {
						t.Errorf("client got %d", w.Code)
					}
				}()
				time.Sleep(2 * time.Second)
				if got := r.state("a", "m1"); got != c.state {
					t.Errorf("meanwhile a is %s, want %s", got, c.state)
				}
				<-done
				if got := r.state("a", "m1"); got != c.then {
					t.Errorf("then a is %s, want %s", got, c.then)
				}
				if n := r.count("b") - before; n != c.others {
					t.Errorf("b got %d requests, want %d", n, c.others)
				}
			})
		})
	}
}

// When everything fails for a while, traffic flows again soon after it heals,
// with default settings too: not only when the breakers' probes are due.
func TestOutageOfEverythingEndsWhenItEnds(t *testing.T) {
	for _, channels := range [][]string{{"a"}, {"a", "b", "c"}} {
		t.Run(strings.Join(channels, " "), func(t *testing.T) {
			withDefaults(t, channels, func(r *reference) {
				for _, u := range r.upstreams {
					u.does(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
				}
				for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
					r.post(testrig.Chat("m1"))
				}
				for _, u := range r.upstreams {
					u.does(completion)
				}
				healed := time.Now()
				for r.post(testrig.Chat("m1")).Code != 200 {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(healed); took > defaultEarlyProbe+time.Second {
					t.Errorf("traffic flows again after %s", took)
				}
			})
		})
	}
}
