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

// sessionsOf sends ten requests of each of a hundred sessions, and returns the
// channel and key that each session got. A session that got several fails the
// test.
func sessionsOf(t *testing.T, g *testrig.Gateway, us []*testrig.Upstream, request func(session string) *http.Request) map[string]string {
	t.Helper()
	bound := make(map[string]string)
	seen := make([]int, len(us))
	for i, u := range us {
		seen[i] = u.Count()
	}
	for range 10 {
		for n := range 100 {
			session := fmt.Sprint("s", n)
			if got := g.Do(request(session)); got.Status != 200 {
				t.Fatalf("%s: %d %s", session, got.Status, got.Body)
			}
			to := ""
			for i, u := range us {
				if u.Count() > seen[i] {
					seen[i] = u.Count()
					to += fmt.Sprint(i, " ", u.Last().Header.Get("Authorization"))
				}
			}
			if before, ok := bound[session]; ok && before != to {
				t.Fatalf("%s went to %s, then to %s", session, before, to)
			}
			bound[session] = to
		}
	}
	return bound
}

func startBound(t *testing.T, affinity string) (*testrig.Gateway, []*testrig.Upstream) {
	us := upstreams(t, 2)
	var blocks string
	for i, u := range us {
		var keys []string
		for k := range 5 {
			keys = append(keys, fmt.Sprintf("sk-%d-%d", i, k))
		}
		blocks += channelBlock(string(rune('a'+i)), u, "key "+strings.Join(keys, " "))
	}
	return testrig.Start(t, gatewayBlock("affinity "+affinity+"\n"+blocks)), us
}

func TestAffinityBindsASessionToAChannelAndAKey(t *testing.T) {
	g, us := startBound(t, "header X-Session")
	request := func(session string) *http.Request {
		r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
		r.Header.Set("X-Session", session)
		return r
	}
	before := sessionsOf(t, g, us, request)
	places := make(map[string]int)
	for _, to := range before {
		places[to]++
	}
	if len(places) != 10 {
		t.Errorf("100 sessions share %d channels and keys: %v", len(places), places)
	}
	act(t, g, "a/keys/"+keyID("sk-0-2")+"/disable", "{}")
	after := sessionsOf(t, g, us, request)
	for session, to := range before {
		if moved := after[session] != to; moved != (to == "0 Bearer sk-0-2") {
			t.Errorf("%s went to %s, now to %s", session, to, after[session])
		}
	}
	act(t, g, "b/disable", "{}")
	act(t, g, "a/keys/"+keyID("sk-0-2")+"/enable", "{}")
	for session, to := range sessionsOf(t, g, us, request) {
		if !strings.HasPrefix(to, "0 ") || strings.HasPrefix(before[session], "0 ") && to != before[session] {
			t.Errorf("%s went to %s, now to %s", session, before[session], to)
		}
	}
}

// Each session sends bodies that differ in what affinity is not to look at.
func TestAffinityByAFieldOrByTheBeginningOfThePrompt(t *testing.T) {
	for affinity, bodies := range map[string][]string{
		"field metadata.user_id": {
			`{"model":"m1","messages":[],"metadata":{"x":1,"user_id":%q}}`,
			`{"metadata":{"user_id":%q,"x":2},"messages":[],"model":"m1","stream":false}`,
		},
		"prefix 45": {
			`{"model":"m1","messages":[{"role":"system","content":%q},{"role":"user","content":"1"}]}`,
			`{"temperature":1,"messages":[{"role":"system","content":%q},{"role":"user","content":"2"}],"model":"m1"}`,
			`{"stream":false,"model":"m1","messages":[{"role":"system","content":%q},{"role":"user"}]}`,
		},
	} {
		t.Run(affinity, func(t *testing.T) {
			g, us := startBound(t, affinity)
			sent := 0
			bound := sessionsOf(t, g, us, func(session string) *http.Request {
				sent++
				return g.Request("/v1/chat/completions", fmt.Sprintf(bodies[sent/100%len(bodies)], session+strings.Repeat(".", 20)))
			})
			places := make(map[string]bool)
			for _, to := range bound {
				places[to] = true
			}
			if len(places) != 10 {
				t.Errorf("100 sessions share %d channels and keys", len(places))
			}
		})
	}
}

func TestAffinityByAFieldOfAForm(t *testing.T) {
	g, us := startBound(t, "field user")
	sessionsOf(t, g, us, func(session string) *http.Request {
		r := g.Request("/v1/audio/transcriptions", "--b0\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm1\r\n"+
			"--b0\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\n"+session+"\r\n--b0--\r\n")
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b0")
		return r
	})
}

// A refused key costs its sessions a switch within the request. All go to the
// same key each time, the one they go to while the first is out.
func TestAffinityGoesOnWithTheSessionsNextKey(t *testing.T) {
	g, us := startBound(t, "header X-Session")
	request := func(session string) *http.Request {
		r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
		r.Header.Set("X-Session", session)
		return r
	}
	const bad = "Bearer sk-0-2"
	before := sessionsOf(t, g, us, request)
	us[0].Answer(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == bad {
			testrig.Fail(401, "")(w, r)
			return
		}
		testrig.OK(w, r)
	})
	switched, met, elsewhere := make(map[string]string), false, us[1].Count()
	for session, to := range before {
		if to != "0 "+bad {
			continue
		}
		n := us[0].Count()
		if got := g.Do(request(session)); got.Status != 200 {
			t.Fatalf("%s: %d %s", session, got.Status, got.Body)
		}
		met = met || us[0].Count() == n+2
		switched[session] = "0 " + us[0].Last().Header.Get("Authorization")
	}
	if n := us[1].Count() - elsewhere; !met || n > 0 {
		t.Fatalf("the key was refused: %v; %d requests went to the other channel", met, n)
	}
	us[0].Answer(testrig.OK)
	act(t, g, "a/keys/"+keyID("sk-0-2")+"/disable", "{}")
	after := sessionsOf(t, g, us, request)
	for session, to := range switched {
		if after[session] != to {
			t.Errorf("%s switched to %s, and goes to %s while its key is out", session, to, after[session])
		}
	}
}

// Affinity decides before lb_policy, which serves the requests that have no value.
func TestAffinityDecidesBeforeThePolicy(t *testing.T) {
	g, us := startBound(t, "header X-Session\nlb_policy first")
	request := func(session string) *http.Request {
		r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
		r.Header.Set("X-Session", session)
		return r
	}
	sessionsOf(t, g, us, request)
	n := us[1].Count()
	if n < 300 || n > 700 {
		t.Errorf("%d of 1000 requests went to the second channel", n)
	}
	for range 20 {
		g.Chat("m1")
	}
	if us[1].Count() != n {
		t.Error("requests without a session did not go to the first channel")
	}
}

// A session whose channel fails goes to its next one within the same request.
func TestAffinityYieldsWhenItsChoiceFails(t *testing.T) {
	g, us := startBound(t, "header X-Session")
	us[0].Answer(testrig.Fail(500, ""))
	for n := range 20 {
		r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
		r.Header.Set("X-Session", fmt.Sprint("s", n))
		if got := g.Do(r); got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	if n := us[0].Count(); n != 3 {
		t.Errorf("the failing channel got %d requests, want 3 until it opened", n)
	}
}
