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
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// Whatever is out, the client hears what it is and when to come back, if that
// can help at all.
func TestRefusalsTellWhenToComeBack(t *testing.T) {
	limited := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "30")
		testrig.Fail(429, "rate_limit_exceeded")(w, r)
	}
	for _, c := range []struct {
		name    string
		prepare func(*testing.T, *pair)
		model   string
		status  int
		code    string
		retry   string // of Retry-After
		should  string // of x-should-retry
	}{
		{"all open", func(t *testing.T, p *pair) {
			for _, channel := range []string{"a", "b"} {
				act(t, p.Gateway, channel+"/breaker/open?model=m1", `{"for":"40s"}`)
			}
			act(t, p.Gateway, "b/breaker/open?model=m1", `{"for":"20s"}`)
		}, "m1", 503, "no_channel_available", "20", ""},
		{"all keys disabled", func(t *testing.T, p *pair) {
			act(t, p.Gateway, "a/keys/"+keyID("sk-of-a")+"/disable", "{}")
			act(t, p.Gateway, "b/keys/"+keyID("sk-of-b")+"/disable", "{}")
		}, "m1", 503, "channels_disabled", "", "false"},
		{"all channels disabled", func(t *testing.T, p *pair) {
			act(t, p.Gateway, "a/disable", "{}")
			act(t, p.Gateway, "b/disable", "{}")
		}, "m1", 503, "channels_disabled", "", "false"},
		{"one open, one disabled", func(t *testing.T, p *pair) {
			act(t, p.Gateway, "a/breaker/open?model=m1", `{"for":"10s"}`)
			act(t, p.Gateway, "b/disable", "{}")
		}, "m1", 503, "no_channel_available", "10", ""},
		{"return far away", func(t *testing.T, p *pair) {
			act(t, p.Gateway, "a/breaker/open?model=m1", `{"for":"1h"}`)
			act(t, p.Gateway, "b/breaker/open?model=m1", `{"for":"1h"}`)
		}, "m1", 503, "no_channel_available", "120", "false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startPair(t)
			c.prepare(t, p)
			got := p.Chat(c.model)
			if got.Status != c.status || !strings.Contains(got.Body, c.code) {
				t.Errorf("%d %s", got.Status, got.Body)
			}
			if retry := got.Header.Get("Retry-After"); retry != c.retry || got.Header.Get("X-Should-Retry") != c.should {
				t.Errorf("Retry-After %q, X-Should-Retry %q", retry, got.Header.Get("X-Should-Retry"))
			}
			if n := p.u1.Count() + p.u2.Count(); n != 0 {
				t.Errorf("upstreams got %d requests", n)
			}
		})
	}
	t.Run("model unknown", func(t *testing.T) {
		u := testrig.NewUpstream(t)
		g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "models m1")))
		got := g.Chat("m2")
		if got.Status != 404 || !strings.Contains(got.Body, "model_not_found") || got.Header.Get("Retry-After") != "" {
			t.Errorf("%d %s %v", got.Status, got.Body, got.Header)
		}
	})
	t.Run("single channel limited", func(t *testing.T) {
		u := testrig.NewUpstream(t)
		g := testrig.Start(t, gatewayBlock(channelBlock("a", u)))
		u.Answer(limited)
		for range 3 { // the first is the upstream's own, the others ours
			got := g.Chat("m1")
			if got.Status != 429 || got.Header.Get("Retry-After") != "30" {
				t.Errorf("%d %s %v", got.Status, got.Body, got.Header)
			}
		}
		if n := u.Count(); n != 1 {
			t.Errorf("the upstream got %d requests", n)
		}
	})
}

// A refusal of what was asked for is an answer: it counts against nobody, and
// takes no key.
func TestContentRefusalsCountNothing(t *testing.T) {
	chunk := func(delta, finish string) string {
		return fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, finish)
	}
	stream := func(events ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { testrig.EventStream(w, append(events, "[DONE]")...) }
	}
	for name, answer := range map[string]http.HandlerFunc{
		"safety block":   stream(chunk(`{"role":"assistant"}`, "null"), chunk("{}", `"content_filter"`)),
		"refusal":        stream(chunk(`{"refusal":"no"}`, "null"), chunk("{}", `"stop"`)),
		"one token":      stream(chunk(`{"content":"I"}`, `"length"`)),
		"moderation 403": testrig.Fail(403, "content_policy_violation"),
	} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, "auto_disable {\nstatus 403 1\n}")
			p.u1.Answer(answer)
			for range 20 {
				r := p.Request("/v1/chat/completions", testrig.StreamChat("m1"))
				r.Header.Set("Origin", "https://page.example")
				got := p.Do(r)
				if want := strings.HasSuffix(name, "403"); got.Err != nil || (got.Status == 403) != want {
					t.Fatalf("%d %v %s", got.Status, got.Err, got.Body)
				}
			}
			if n := p.u2.Count(); n != 0 {
				t.Errorf("b got %d requests", n)
			}
			for _, got := range p.u1.Received() {
				if got.Header.Get("Origin") != "" {
					t.Fatal("the Origin reached the upstream")
				}
			}
			if ch := p.Channel("a"); ch.Health != "green" || ch.Keys[0].State != "enabled" {
				t.Errorf("%+v", ch)
			}
		})
	}
}
