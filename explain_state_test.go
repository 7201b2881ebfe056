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
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

// randomGateway has channels of random priorities, chains, models and limits,
// some of them many of one group, under random ways to choose.
// The name keeps it apart from the others: of one name they would share the
// channels' states.
func randomGateway(t *testing.T, name string, rng *rand.Rand) *gateway {
	n, flat := 3+rng.IntN(6), rng.IntN(3) == 0
	if flat {
		n += smallGroup
	}
	options := []string{"", `"affinity":{"header":"X-Session"},`, `"lb_policy":{"policy":"random"},`}[rng.IntN(3)]
	return provision(t, fmt.Sprintf(`{"name":%q,`, name)+options+`"breaker":{"jitter":0},"auto_disable":{},"channels":[`+channelsJSON(n, func(i int) string {
		s := fmt.Sprintf(`,"keys":["a%d","b%d"]`, i, i)
		if options == "" {
			s += fmt.Sprintf(`,"weight":%d`, 1+rng.IntN(4))
		}
		if !flat && rng.IntN(2) == 0 {
			s += fmt.Sprintf(`,"priority":%d`, rng.IntN(3))
		}
		if !flat && i+1 < n && rng.IntN(2) == 0 {
			s += fmt.Sprintf(`,"backup":["c%d"]`, i+1+rng.IntN(n-i-1))
		}
		if rng.IntN(3) == 0 {
			s += `,"max_requests":1`
		}
		switch rng.IntN(8) {
		case 0, 1:
			s += `,"model_map":[{"requested":"m","upstream":"up"}]`
		case 2:
			s += `,"models":["another"]`
		}
		return s
	})+`]}`)
}

// upset brings the channel into a random state, or into several at once.
func (ch *channel) upset(rng *rand.Rand, now time.Time) {
	model, _ := ch.models.upstream("m")
	keys := ch.keys.All()
	some := keys[rng.IntN(2):] // both, or one
	if rng.IntN(2) == 0 {
		some = keys[:1]
	}
	switch rng.IntN(12) {
	case 0:
		ch.fail(model, 3, now)
	case 1, 2:
		ch.fail(model, 5, now.Add(-time.Duration(rng.IntN(8))*time.Minute)) // open, or due
	case 3: // a probe in flight
		ch.fail(model, 5, now.Add(-6*time.Minute))
		var p breaker.Permit
		ch.state.breakers.Admit(&p, model, now, false)
	case 4:
		ch.state.breakers.Pause(model, now, now.Add(time.Minute))
	case 5:
		for _, k := range some {
			ch.keys.Limited(k, model, now, time.Minute)
		}
	case 6:
		for _, k := range some {
			ch.keys.Refused(k, now, now)
		}
	case 7:
		ch.state.inFlight.Add(1)
	case 8:
		ch.state.disables.Disable("", now, time.Time{}, "scripted")
	case 9:
		for _, k := range some {
			ch.state.disables.Disable(k.ID(), now, time.Time{}, "scripted")
		}
	case 10:
		ch.upset(rng, now)
		ch.upset(rng, now)
	}
}

// seen counts what came up in random states: a test of states that never come up
// proves nothing.
type seen map[string]int

func (s seen) count(e explanation, group int) {
	usable := 0
	for _, c := range e.Candidates {
		s[c.Reason]++
		if c.Group == group && c.Usable {
			usable++
		}
		switch {
		case c.Probe && c.EffectiveWeight == 0:
			s["early probe"]++
		case c.Probe:
			s["probe"]++
		}
	}
	switch {
	case group < 0:
		s["nobody"]++
	case group > 0:
		s["a later group"]++
	}
	if usable > smallGroup {
		s["a large group"]++
	}
}

// handed returns the channels that the policy picks from. With a session none of
// them is passed over unseen.
func (gw *gateway) handed(t *testing.T, now time.Time) []string {
	x := gw.asking(t, "m")
	defer x.finish()
	x.session = 1
	if x.choose(now) == nil {
		return nil
	}
	var names []string
	for _, i := range x.pool {
		names = append(names, x.cands[i].name)
	}
	slices.Sort(names)
	return names
}

// What explain calls the first usable group is what the next request may be
// sent to, and what it calls a probe will be one.
func TestExplainAgreesWithTheNextRequest(t *testing.T) {
	const rounds, draws = 500, 40
	seen := make(seen)
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		gw, now := randomGateway(t, fmt.Sprint("g", seed), rng), time.Now()
		calm, outage := rng.IntN(2) == 0, rng.IntN(4) == 0
		for _, ch := range gw.channels {
			ch.state.disables.Configure(ch.disableSettings, ch.keyIDs) // as when the app starts
			if model, _ := ch.models.upstream("m"); outage {
				ch.fail(model, 5, now.Add(-time.Duration(5+rng.IntN(60))*time.Second))
			}
			if !calm || rng.IntN(3) == 0 {
				ch.upset(rng, now)
			}
		}
		explained := gw.explain(gw.asking(t, "m").req, "/v1/chat/completions", now)
		probes := make(map[string]bool) // by channel of the first usable group
		group, early := -1, false
		for _, c := range explained.Candidates {
			if c.Usable && (group < 0 || c.Group == group) {
				probes[c.Channel], group = c.Probe, c.Group
				early = c.Probe && c.EffectiveWeight == 0
			}
		}
		seen.count(explained, group)
		want := slices.Sorted(maps.Keys(probes))
		if early {
			want = nil // it is for those who find nobody to pick
		}
		if got := gw.handed(t, now); !slices.Equal(got, want) {
			t.Fatalf("seed %d: explained %v, the policy picks from %v", seed, want, got)
		}
		for n := range draws {
			x := gw.asking(t, "m", "X-Session", fmt.Sprint(n))
			got := x.next()
			if got != (len(probes) > 0) {
				t.Fatalf("seed %d: a channel was found: %v, explained %v", seed, got, probes)
			}
			if got {
				probe, ok := probes[x.current.ch.name]
				if !ok || x.current.permit.Probe() != probe {
					t.Fatalf("seed %d: %s was taken, probe %v; explained %v", seed, x.current.ch.name, x.current.permit.Probe(), probes)
				}
			}
			x.finish()
		}
	}
	for _, what := range []string{
		string(usable), string(disabled), string(noKey), string(limited), string(full), string(open), string(probing), otherModel,
		"probe", "early probe", "nobody", "a later group", "a large group",
	} {
		if seen[what] == 0 {
			t.Errorf("no state came up with %q; all: %v", what, seen)
		}
	}
}
