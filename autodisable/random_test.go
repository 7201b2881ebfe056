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

package autodisable_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
)

// TestRandomOperations drives a Set by chance, and checks after every step what
// must hold whatever happened before.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newChance(t, seed).run(3000)
		})
	}
}

func FuzzOperations(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { newChance(t, seed).run(1000) })
}

var (
	chanceKeys  = []string{channel, k1, k2, k3}
	chanceRules = []autodisable.Rule{
		{Status: 401, Times: 3, For: minute},
		{Status: 402, Times: 2},
		{Class: 5, Times: 4, For: 10 * second},
		{Transport: true, Times: 3, For: minute, Scope: autodisable.ScopeKey},
	}
)

// known is what the test itself knows of a subject.
type known struct {
	// errors are, by rule, those received since a success that must have ended
	// the streak, or an operator's act; at least what the set counts.
	errors [4]int
	floor  time.Time // of the last operator's act

	operator bool      // disabled by an operator
	until    time.Time // zero: for good
	rule     int       // that disabled it automatically; -1: none since the last operator's act
	lasted   time.Duration
}

func (k *known) held(now time.Time) bool {
	return k.operator && (k.until.IsZero() || now.Before(k.until))
}

func (k *known) voided(now time.Time) { *k = known{floor: now, rule: -1} }

// chance is one random run.
type chance struct {
	t     *testing.T
	rnd   *rand.Rand
	set   *autodisable.Set
	s     autodisable.Settings
	now   time.Time
	known map[string]*known
	trail []string
}

func newChance(t *testing.T, seed uint64) *chance {
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := autodisable.Settings{
		Rules: chanceRules, KeepLastKey: rnd.IntN(2) == 0, CorrelateKeys: rnd.IntN(4), CorrelateWindow: minute,
	}
	c := &chance{t: t, rnd: rnd, set: autodisable.NewSet(s, chanceKeys), s: s, now: t0, known: map[string]*known{}}
	for _, key := range chanceKeys {
		c.known[key] = &known{rule: -1}
	}
	return c
}

func (c *chance) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\nlast steps: %q", fmt.Sprintf(format, args...), c.trail[max(0, len(c.trail)-15):])
}

func (c *chance) note(what, key string, more ...any) {
	c.trail = append(c.trail, fmt.Sprint(c.now.Sub(t0), " ", what, " ", key, " ", more))
}

func (c *chance) disabled(key string) bool { return c.set.KeyDisabled(key, c.now) }

func (c *chance) run(n int) {
	for range n {
		c.now = c.now.Add(time.Duration(c.rnd.Int64N(int64(2 * second))))
		if c.rnd.IntN(50) == 0 {
			c.now = c.now.Add(time.Duration(c.rnd.Int64N(int64(3 * minute))))
		}
		c.step(chanceKeys[c.rnd.IntN(len(chanceKeys))])
		c.check()
	}
}

func (c *chance) step(key string) {
	began := c.now.Add(-time.Duration(c.rnd.Int64N(int64(5 * second))))
	if c.rnd.IntN(2) == 0 {
		began = c.now
	}
	switch n := c.rnd.IntN(100); {
	case n < 70:
		c.failure(key, began)
	case n < 85:
		c.success(key, began)
	case n < 89:
		c.enable(key)
	case n < 92:
		c.disable(key)
	case n < 95:
		c.note("lapse", key)
		c.set.Lapse(c.now)
	case n < 98:
		c.note("configure", key)
		c.s.Rules = append([]autodisable.Rule{{Status: 404, Times: 1 + n}}, chanceRules...)[c.rnd.IntN(2):]
		c.set.Configure(c.s, chanceKeys)
	default:
		c.note("reload", key)
		state := c.set.Save()
		c.set.Restore(state, c.now)
	}
}

// failures are, by rule, errors that it is about.
var failures = []autodisable.Failure{{Status: 401}, {Status: 402}, {Status: 503}, {Transport: true}, {Status: 400}}

func (c *chance) failure(key string, began time.Time) {
	i := c.rnd.IntN(len(failures))
	f := failures[i]
	f.Key, f.Began = key, began
	k := c.known[key]
	if i == 2 {
		k = c.known[channel]
	}
	if i < len(chanceRules) && began.After(k.floor) {
		k.errors[i]++
	}
	usable := func(string) bool { return c.rnd.IntN(2) == 0 }
	change := c.set.Failure(f, c.now, usable)
	c.note("failure", key, i, began.Sub(t0), tell(change))
	switch {
	case change.Zero():
	case change.Correlated:
		if c.s.CorrelateKeys < 2 || change.Disabled || change.Key != key {
			c.fail("correlated: %+v", change)
		}
	default:
		c.disabledBy(change, i, k)
	}
}

func (c *chance) disabledBy(change autodisable.Change, i int, k *known) {
	rule, lasts := chanceRules[i], change.Record.Until.Sub(change.Record.At)
	switch {
	case c.known[change.Key] != k || change.By != autodisable.ByAuto || !change.Disabled:
		c.fail("odd change %+v", change)
	case k.held(c.now):
		c.fail("%q disabled while an operator holds it", change.Key)
	case k.rule != i && k.errors[i] < rule.Times:
		c.fail("%q disabled after %d errors of %v", change.Key, k.errors[i], rule)
	case change.Record.Count > k.errors[i]:
		c.fail("%d errors were counted, %d told", change.Record.Count, k.errors[i])
	case rule.For > 0 && (lasts < rule.For || lasts > rule.For && lasts != min(2*k.lasted, 24*time.Hour)):
		c.fail("%q disabled for %v after %v", change.Key, lasts, k.lasted)
	}
	k.operator, k.rule, k.lasted = false, i, lasts
}

func (c *chance) success(key string, began time.Time) {
	c.note("success", key, began.Sub(t0))
	for _, key := range []string{channel, key} {
		// One that began before an automatic disable may be without effect.
		if k := c.known[key]; !c.disabled(key) && k.rule < 0 && began.After(k.floor) {
			k.errors = [4]int{}
		}
	}
	c.set.Success(key, began, c.now)
}

func (c *chance) enable(key string) {
	c.note("enable", key)
	out := c.disabled(key)
	change := c.set.Enable(key, c.now, "")
	if out == change.Zero() && out || c.disabled(key) {
		c.fail("%q is not enabled: %+v", key, change)
	}
	c.known[key].voided(c.now)
	if n := len(c.status(key).Errors); n != 0 || c.status(key).Trial {
		c.fail("%q is not as new", key)
	}
}

func (c *chance) disable(key string) {
	until := time.Time{}
	if c.rnd.IntN(2) == 0 {
		until = c.now.Add(1 + time.Duration(c.rnd.Int64N(int64(minute))))
	}
	c.note("disable", key, until)
	c.set.Disable(key, c.now, until, "")
	k := c.known[key]
	k.voided(c.now)
	k.operator, k.until = true, until
}

func (c *chance) status(key string) autodisable.KeyStatus {
	r := rig{Set: c.set, now: c.now}
	return r.status(key)
}

func (c *chance) check() {
	out := 0
	for _, key := range chanceKeys {
		k, disabled, status := c.known[key], c.disabled(key), c.status(key)
		switch {
		case k.held(c.now) && !disabled:
			c.fail("an operator's disable of %q was lifted", key)
		case k.held(c.now) && status.Disabled.By != autodisable.ByOperator:
			c.fail("an operator's disable of %q was replaced", key)
		case disabled && !k.held(c.now) && k.rule < 0:
			c.fail("%q is disabled by nobody", key)
		case disabled != (status.Disabled != nil) || disabled && status.Trial:
			c.fail("%q is %+v", key, status)
		case !disabled && k.rule >= 0 && chanceRules[k.rule].For == 0:
			c.fail("%q is enabled, and nobody did it", key)
		}
		if disabled && key != channel {
			out++
		}
	}
	if got := c.set.KeysOut(c.now); got != out {
		c.fail("%d keys out, want %d", got, out)
	}
	if c.set.ChannelDisabled(c.now) != c.disabled(channel) {
		c.fail("the channel is both")
	}
}

// With KeepLastKey one key is left, however many fail at once.
func TestConcurrentUse(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) { s.KeepLastKey, s.Rules = true, append(s.Rules, on5xx) })
	var workers sync.WaitGroup
	for i := range 8 {
		workers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 2))
			for n := range 2000 {
				now := t0.Add(time.Duration(n) * second)
				key := chanceKeys[1+rnd.IntN(3)]
				r.Failure(autodisable.Failure{Key: key, Status: 401, Began: now}, now.Add(1), func(key string) bool { return !r.KeyDisabled(key, now) })
				r.Success(chanceKeys[rnd.IntN(4)], now, now)
				r.ChannelDisabled(now)
				r.Lapse(now)
				if n%100 == 0 {
					r.Configure(r.settings, chanceKeys)
					r.Restore(r.Save(), now)
					r.Disable(channel, now, now.Add(1), "")
					r.Enable(channel, now, "")
					r.Snapshot(now)
				}
			}
		})
	}
	workers.Wait()
	end := t0.Add(time.Hour)
	want(t, "keys out", r.KeysOut(end), 2)
	for _, key := range chanceKeys {
		r.Enable(key, end, "")
	}
	r.wantOut("")
	want(t, "saved", r.Save(), autodisable.State{})
	want(t, "allocations of a clean set", testing.AllocsPerRun(100, func() {
		r.ChannelDisabled(end)
		r.KeyDisabled(k1, end)
		r.Success(k1, end, end)
	}), 0)
}
