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
	"fmt"
	"maps"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/request"
)

// bound returns the channel and key that each session would be sent to.
func (gw *gateway) bound(t testing.TB, sessions int) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for n := range sessions {
		session := fmt.Sprint("session-", n)
		x := gw.asking(t, "m", "X-Session", session)
		if !x.next() {
			t.Fatal("nobody is usable")
		}
		all[session] = x.current.ch.name + " " + x.current.key.ID()
		x.finish()
	}
	return all
}

func perChannel(bound map[string]string) map[string]int {
	counts := make(map[string]int)
	for _, to := range bound {
		name, _, _ := strings.Cut(to, " ")
		counts[name]++
	}
	return counts
}

// Affinity shares sessions by weight, and moves none but those of what went out,
// which come back when it does.
func TestAffinityMovesOnlyWhatItMust(t *testing.T) {
	const sessions = 4000
	gw := provision(t, `{"affinity":{"header":"X-Session"},"channels":[`+channelsJSON(4, func(i int) string {
		return fmt.Sprintf(`,"weight":%d,"keys":["k1-%d","k2-%d","k3-%d"]`, i+1, i, i, i)
	})+`]}`)
	before := gw.bound(t, sessions)
	if again := gw.bound(t, sessions); !maps.Equal(before, again) {
		t.Fatal("sessions move without a reason")
	}
	for name, n := range perChannel(before) {
		if got, want := float64(n)/sessions, gw.channel(name).weight/10; math.Abs(got-want) > 0.03 {
			t.Errorf("%s has a share of %.3f, want %.3f", name, got, want)
		}
	}
	perKey := make(map[string]int)
	for _, to := range before {
		perKey[to]++
	}
	for to, n := range perKey {
		name, _, _ := strings.Cut(to, " ")
		if got, want := float64(n)/sessions, gw.channel(name).weight/30; math.Abs(got-want) > 0.02 {
			t.Errorf("%s has a share of %.3f, want %.3f", to, got, want)
		}
	}

	out, now := gw.channel("c3"), time.Now()
	out.fail("m", 5, now)
	after := gw.bound(t, sessions)
	for session, to := range before {
		if moved := after[session] != to; moved != strings.HasPrefix(to, "c3 ") {
			t.Fatalf("%s was bound to %s, now to %s", session, to, after[session])
		}
	}
	for name, n := range perChannel(after) {
		if got, want := float64(n)/sessions, gw.channel(name).weight/6; math.Abs(got-want) > 0.03 {
			t.Errorf("without c3 %s has a share of %.3f, want %.3f", name, got, want)
		}
	}
	out.state.breakers.Reset("m", now)
	if !maps.Equal(before, gw.bound(t, sessions)) {
		t.Error("the sessions of c3 did not come back")
	}

	key := gw.channel("c0").keys.All()[1]
	later := now.Add(time.Hour) // so that it is out for as long as this takes
	gw.channel("c0").keys.Refused(key, later, later)
	after = gw.bound(t, sessions)
	for session, to := range before {
		if moved := after[session] != to; moved != (to == "c0 "+key.ID()) {
			t.Fatalf("without a key of c0 %s was bound to %s, now to %s", session, to, after[session])
		}
	}
}

// A channel that degrades gives up only what exceeds its new share.
func TestAffinityOfADegradedChannel(t *testing.T) {
	const sessions = 4000
	gw := provision(t, `{"affinity":{"header":"X-Session"},"channels":[`+channelsJSON(4, func(i int) string {
		return fmt.Sprintf(`,"weight":%d`, i+1)
	})+`]}`)
	before := gw.bound(t, sessions)
	gw.channel("c3").fail("m", 3, time.Now())
	after := gw.bound(t, sessions)
	for session, to := range after {
		if from := before[session]; from != to && from != "c3 " {
			t.Fatalf("%s was bound to %s, now to %s", session, from, to)
		}
	}
	total := 1 + 2 + 3 + 4*0.3
	for name, n := range perChannel(after) {
		want := gw.channel(name).weight / total
		if name == "c3" {
			want *= 0.3
		}
		if got := float64(n) / sessions; math.Abs(got-want) > 0.03 {
			t.Errorf("%s has a share of %.3f, want %.3f", name, got, want)
		}
	}
}

// With degraded_weight 0, channels that are all degraded share what there is.
func TestAffinityWhereEveryWeightIsZero(t *testing.T) {
	const sessions = 4000
	gw := provision(t, `{"affinity":{"header":"X-Session"},"breaker":{"degraded_weight":0},"channels":[`+
		channelsJSON(4, func(int) string { return "" })+`]}`)
	for _, ch := range gw.channels {
		ch.fail("m", 3, time.Now())
	}
	for name, n := range perChannel(gw.bound(t, sessions)) {
		if got := float64(n) / sessions; math.Abs(got-0.25) > 0.03 {
			t.Errorf("%s has a share of %.3f, want 0.25", name, got)
		}
	}
}

// At both ends of the hash a rank has a logarithm that can be divided by.
func TestRankIsBetweenZeroAndOne(t *testing.T) {
	for _, hash := range []uint64{0, math.MaxUint64} {
		if r := unit(hash); r <= 0 || r >= 1 {
			t.Errorf("%x: %v", hash, r)
		}
	}
}

func TestAffinityByHost(t *testing.T) {
	a := newAffinity(&AffinityConfig{Header: "host"})
	one, other := httptest.NewRequest("GET", "http://one/", nil), httptest.NewRequest("GET", "http://other/", nil)
	if x, y := a.session(one, nil), a.session(other, nil); x == 0 || x == y {
		t.Errorf("two hosts are the sessions %x and %x", x, y)
	}
}

// One prompt asked of two models is two sessions; one model's requests without a
// prompt are none.
func TestAffinityByPrefixTellsModelsApart(t *testing.T) {
	a := newAffinity(&AffinityConfig{Prefix: 20})
	of := func(body string) uint64 {
		r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body))
		q, err := request.Read(r, request.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return a.session(r, q)
	}
	m1 := of(`{"model":"m1","messages":["one and the same","1"]}`)
	if again := of(`{"messages":["one and the same","2"],"model":"m1"}`); m1 == 0 || again != m1 {
		t.Errorf("a prompt's beginning is the session %x, then %x", m1, again)
	}
	if m2 := of(`{"model":"m2","messages":["one and the same","1"]}`); m2 == m1 {
		t.Error("two models are one session")
	}
	if other := of(`{"model":"m1","messages":["another","1"]}`); other == m1 {
		t.Error("two prompts are one session")
	}
	if none := of(`{"model":"m1"}`); none != 0 {
		t.Error("no prompt is a session")
	}
}
