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

package breaker_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

const shortSteps = 4000

var (
	steps = flag.Int("breaker.steps", shortSteps, "random operations for each seed")
	seeds = flag.Int("breaker.seeds", 30, "seeds of random operations")
)

// TestRandomOperations drives a Set by chance, and checks after every step what
// must hold whatever happened before.
func TestRandomOperations(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newChance(t, uint64(seed)).run(*steps)
		})
	}
}

// ticket is a permit and what the test knows of it.
type ticket struct {
	breaker.Permit
	model string
	turn  int  // transitions of the model at admission
	void  bool // certainly stale
}

// chance is one random run.
type chance struct {
	t      *testing.T
	rnd    *rand.Rand
	set    *breaker.Set
	s      breaker.Settings
	now    time.Time
	models []string
	open   []*ticket
	done   []*ticket
	lease  map[string]*ticket
	turns  map[string]int
	until  time.Time // end of the last hold or pause
	trail  []string
}

func newChance(t *testing.T, seed uint64) *chance {
	rnd := rand.New(rand.NewPCG(seed, 1))
	interval := time.Duration(1+rnd.IntN(60)) * second
	s := breaker.Settings{
		OpenThreshold: 1 + rnd.IntN(5), DegradeThreshold: rnd.IntN(4), DegradedWeight: 0.3, HalfOpenWeight: 0.3,
		FailureTTL: time.Duration(rnd.IntN(3)) * minute, Jitter: rnd.Float64() / 2,
		ProbeInterval: interval, MaxProbeInterval: interval * time.Duration(1+rnd.IntN(8)),
		ProbeTimeoutStream: 20 * second, ProbeTimeoutOther: minute, EarlyProbe: time.Duration(rnd.IntN(10)) * second,
	}
	models := []string{m1, m2, "unwritten", ""}
	return &chance{
		t: t, rnd: rnd, set: breaker.NewSet(s, models[:2]), s: s, now: t0, models: models,
		lease: map[string]*ticket{}, turns: map[string]int{},
	}
}

func (c *chance) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\nlast steps: %q", fmt.Sprintf(format, args...), c.trail[max(0, len(c.trail)-12):])
}

func (c *chance) note(what, model string) {
	c.trail = append(c.trail, fmt.Sprint(c.now.Sub(t0), " ", what, " ", model))
}

func (c *chance) run(n int) {
	for range n {
		c.tick()
		before := c.states()
		mayClose := c.step()
		for i, after := range c.states() {
			if before[i] != breaker.Closed && after == breaker.Closed && mayClose != c.models[i] && mayClose != "*" {
				c.fail("%q closed by what must not", c.models[i])
			}
		}
	}
}

func (c *chance) tick() {
	switch c.rnd.IntN(20) {
	case 0:
		c.now = c.now.Add(time.Duration(c.rnd.Int64N(int64(2 * c.s.MaxProbeInterval))))
	case 1, 2, 3:
		c.now = c.now.Add(time.Duration(c.rnd.Int64N(int64(10 * second))))
	default:
		c.now = c.now.Add(time.Duration(c.rnd.Int64N(int64(second))))
	}
}

func (c *chance) states() []breaker.State {
	list := make([]breaker.State, len(c.models))
	for i, model := range c.models {
		list[i] = c.set.Look(model, c.now).State
	}
	return list
}

// step does something, and returns the model whose breaker that may close: * for
// all, - for none.
func (c *chance) step() (mayClose string) {
	model := c.models[c.rnd.IntN(len(c.models))]
	switch c.rnd.IntN(100) {
	case 0:
		return c.operate(model)
	case 1:
		c.note("unhealthy", "")
		c.set.SetUnhealthy(c.rnd.IntN(2) == 0)
	case 2:
		c.note("due", model)
		c.set.MakeDue(model, c.now)
	case 3:
		c.until = later(c.until, c.now.Add(10*second))
		c.note("pause", model)
		c.set.Pause(model, c.now, c.now.Add(10*second))
	case 4:
		c.recover(model)
	case 5:
		c.again()
	default:
		if len(c.open) > 30 || len(c.open) > 0 && c.rnd.IntN(2) == 0 {
			return c.settle(c.rnd.IntN(len(c.open)))
		}
		c.admit(model)
	}
	return "-"
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// admit checks that Look foretells Admit, and that leases are alone.
func (c *chance) admit(model string) *ticket {
	early := c.rnd.IntN(4) == 0
	ask := c.set.Admit
	if early {
		ask = c.set.AdmitEarly
	}
	c.note(fmt.Sprint("admit early ", early), model)
	v := c.set.Look(model, c.now)
	p := &ticket{model: model}
	ok, change := ask(&p.Permit, model, c.now, c.rnd.IntN(2) == 0)
	c.told(change)
	if expected := v.Reason == breaker.Usable || early && v.Early; ok != expected {
		c.fail("%q admitted %v, but looked like %+v", model, ok, v)
	}
	if !ok {
		if v.Reason != breaker.Probing && c.expired(c.lease[model]) {
			delete(c.lease, model)
		}
		return nil
	}
	if expected := v.Probe || v.Early; p.Probe() != expected {
		c.fail("%q probe %v, but looked like %+v", model, p.Probe(), v)
	}
	if p.Probe() {
		if old := c.lease[model]; old != nil && !c.expired(old) {
			c.fail("two leases of %q", model)
		}
		c.lease[model] = p
	}
	p.turn = c.turns[model]
	c.open = append(c.open, p)
	return p
}

func (c *chance) expired(p *ticket) bool { return p != nil && p.Expired(c.now) }

// told counts a transition and checks that it led where it says.
func (c *chance) told(change breaker.Change) {
	if change.Zero() {
		return
	}
	c.turns[change.Model]++
	got := c.set.Look(change.Model, c.now).State
	late := change.Probe == breaker.ProbeReopened && got == breaker.HalfOpen
	if got != change.To && !late {
		c.fail("%q is %v after %+v", change.Model, got, change)
	}
}

// stale reports whether nothing that becomes of p may change anything.
func (c *chance) stale(p *ticket) bool {
	if p.Probe() {
		return p.void
	}
	return p.void || p.turn != c.turns[p.model]
}

// settle ends, or goes on with, one of the open permits.
func (c *chance) settle(i int) (mayClose string) {
	p := c.open[i]
	if c.rnd.IntN(8) == 0 {
		c.note("renew", p.model)
		p.Renew(c.now)
		return "-"
	}
	holder := c.lease[p.model] == p && !p.Expired(c.now)
	before := c.set.Snapshot(c.now)
	result := c.rnd.IntN(9)
	c.note(fmt.Sprintf("settle %d probe %v stale %v", result, p.Probe(), c.stale(p)), p.model)
	change := c.end(p, result)
	if c.stale(p) && (!change.Zero() || !slices.Equal(before, c.set.Snapshot(c.now))) {
		c.fail("a stale result of %q changed %+v", p.model, change)
	}
	c.told(change)
	if c.lease[p.model] == p {
		delete(c.lease, p.model)
	}
	if p.Settled() {
		c.open = slices.Delete(c.open, i, i+1)
		c.done = append(c.done, p)
	}
	if holder && change.Probe == breaker.ProbeClosed {
		return p.model
	}
	return "-"
}

func (c *chance) end(p *ticket, result int) breaker.Change {
	switch result {
	case 0:
		return p.Content(c.now)
	case 1, 2:
		return p.Success(c.now)
	case 3:
		until := c.now.Add(time.Duration(c.rnd.IntN(20)-5) * second)
		c.until = later(c.until, until)
		return p.Limited(c.now, until)
	case 4:
		return p.Release(c.now)
	case 5:
		return p.Failure(c.now, broke)
	case 6:
		return p.Failure(c.now, refused)
	}
	return p.Failure(c.now, status503)
}

// again settles once more what is settled.
func (c *chance) again() {
	if len(c.done) == 0 {
		return
	}
	p := c.done[c.rnd.IntN(len(c.done))]
	before := c.set.Snapshot(c.now)
	c.note("again", p.model)
	if change := c.end(p, c.rnd.IntN(9)); !change.Zero() || !slices.Equal(before, c.set.Snapshot(c.now)) {
		c.fail("%q settled twice: %+v", p.model, change)
	}
}

// operate acts as an operator would, or as new credentials do.
func (c *chance) operate(model string) (mayClose string) {
	switch c.rnd.IntN(4) {
	case 0:
		c.note("reset", model)
		c.told(c.set.Reset(model, c.now))
		c.voids(model)
		return model
	case 1:
		c.note("reset all", "")
		c.set.ResetAll(c.now)
		for _, model := range c.models {
			c.voids(model)
		}
		return "*"
	case 2:
		until := c.now.Add(time.Duration(c.rnd.IntN(60)) * second)
		c.until = later(c.until, until)
		c.note("hold", model)
		c.told(c.set.Open(model, c.now, until))
		c.voids(model)
		return "-"
	}
	c.note("credentials", "")
	for _, change := range c.set.ForgetCredential(c.now) {
		c.told(change)
		c.voids(change.Model)
	}
	return "*"
}

func (c *chance) voids(model string) {
	c.turns[model]++
	delete(c.lease, model)
	for _, p := range c.open {
		if p.model == model {
			p.void = true
		}
	}
}

// recover checks that the model takes a request again, once all others are out
// of the way, within the longest interval.
func (c *chance) recover(model string) {
	for _, p := range c.open {
		c.told(p.Release(c.now))
	}
	c.open, c.lease = nil, map[string]*ticket{}
	c.note("recover", model)
	end := later(c.until, c.now).Add(c.s.MaxProbeInterval)
	var p breaker.Permit
	for {
		ok, change := c.set.Admit(&p, model, c.now, true)
		c.told(change)
		if ok {
			break
		}
		if c.now = c.now.Add(c.s.MaxProbeInterval / 20); c.now.After(end) {
			c.fail("%q is stuck: %+v", model, c.set.Look(model, c.now))
		}
	}
	c.told(p.Release(c.now))
}
