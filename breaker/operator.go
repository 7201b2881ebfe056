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

package breaker

import (
	"cmp"
	"slices"
	"time"
)

// Pause keeps all requests from the model until then, as its upstream asked: it
// is limited. The breaker and its streak stay as they are. A pause is only ever
// extended; Reset, and a probe that succeeds, end it.
func (s *Set) Pause(model string, now, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Load().Off || !until.After(now) {
		return
	}
	if p := s.track(model, now, false); p != nil {
		st := *p.state.Load()
		st.pause(now, until)
		s.publish(p, st, Change{})
	}
}

// EndPauses ends the pauses of all models. Breakers and streaks stay as they are.
func (s *Set) EndPauses() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.table.all {
		if st := *p.state.Load(); !st.limitTo.IsZero() {
			st.limitFrom, st.limitTo = time.Time{}, time.Time{}
			s.publish(p, st, Change{})
		}
	}
}

// ForgetCredential takes back what failures with Cause.Credential did, because
// the channel's credentials changed. Streaks lose those failures, and a breaker
// closes if what remains of its streak would not have opened it; an operator's
// hold stays. For the breakers concerned, results of requests admitted before no
// longer count, unless it is a probe's and the breaker stayed open.
func (s *Set) ForgetCredential(now time.Time) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.actAll(now, reasonCredentials, func(st *state, c *config) bool {
		if st.credentials == 0 {
			return false
		}
		st.streak -= st.credentials
		st.credentials = 0
		if st.open && !st.heldAt(now) && st.streak < c.OpenThreshold {
			streak := st.streak
			st.clear()
			st.streak = streak
		}
		return true
	})
}

// Reset closes the model's breaker by an operator's word and forgets its streak,
// pause and intervals. A probe in flight, and all other results of requests
// admitted before, no longer count.
func (s *Set) Reset(model string, now time.Time) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endHold(now)
	p := s.table.get(model)
	if p == nil && s.holdAll.Load() == nil {
		s.floor = s.gen.Add(1) // what was admitted before is to be stale, tracked or not
		return Change{}
	}
	return s.act(s.track(model, now, true), now, reasonOperator, reset)
}

// ResetAll is Reset for every model, and ends the hold of OpenAll.
func (s *Set) ResetAll(now time.Time) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holdAll.Store(nil)
	s.floor = s.gen.Add(1)
	return s.actAll(now, reasonOperator, reset)
}

func reset(st *state, _ *config) bool {
	st.clear()
	return true
}

// Open opens the model's breaker by an operator's word, be the model tracked or
// not. Until then, or until Reset if it is zero, there is no probe, not even an
// early one. Afterwards the breaker is half-open. A probe in flight no longer
// counts.
func (s *Set) Open(model string, now, until time.Time) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Load().Off {
		return Change{}
	}
	return s.act(s.track(model, now, true), now, reasonOperator, holdUntil(now, until))
}

// OpenAll is Open for every model that is tracked. Those that are not are held
// as well, and are closed afterwards, since nothing is known against them.
func (s *Set) OpenAll(now, until time.Time) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config.Load()
	if c.Off {
		return nil
	}
	held := blank
	held.hold(&c.Settings, now, until)
	s.holdAll.Store(&held)
	s.floor = s.gen.Add(1)
	return s.actAll(now, reasonOperator, holdUntil(now, until))
}

func holdUntil(now, until time.Time) func(*state, *config) bool {
	return func(st *state, c *config) bool {
		st.hold(&c.Settings, now, until)
		return true
	}
}

// MakeDue makes the probe of an open breaker due now, whatever its interval and
// health checks say. A pause goes on. It reports whether the breaker was open
// and not held by an operator.
func (s *Set) MakeDue(model string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.table.get(model)
	return p != nil && s.makeDue(p, now)
}

// MakeAllDue is MakeDue for every model.
func (s *Set) MakeAllDue(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.table.all {
		s.makeDue(p, now)
	}
}

func (s *Set) makeDue(p *pair, now time.Time) bool {
	st := *p.state.Load()
	if !st.open || st.heldAt(now) {
		return false
	}
	st.dueFrom = now
	s.publish(p, st, Change{})
	return true
}

// actAll is act for every pair, and returns the changes by model. Requires mu.
func (s *Set) actAll(now time.Time, reason string, f func(*state, *config) bool) []Change {
	var changes []Change
	for _, p := range s.table.all {
		if change := s.act(p, now, reason, f); !change.Zero() {
			changes = append(changes, change)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Model, b.Model) })
	return changes
}

// act changes a pair from outside of any request, as f does, and makes older
// results stale. Where f reports false nothing changes. Requires mu.
func (s *Set) act(p *pair, now time.Time, reason string, f func(*state, *config) bool) Change {
	c := s.config.Load()
	st, expired := s.settled(p, c, now)
	from, lease := st.kind(c, now), st.lease
	if !f(&st, c) {
		return Change{}
	}
	st.gen = s.gen.Add(1)
	p.state.Store(&st)
	change := Change{Model: p.model, From: from, To: st.kind(c, now), Reason: reason, Probe: expired.Probe}
	if change.From == change.To && (!st.open || reason != reasonOperator) {
		return expired
	}
	if lease != nil && st.lease == nil {
		change.Probe = ProbeReleased
	}
	if st.open {
		change.NextProbe = st.nextProbe(&c.Settings)
	}
	return change
}

// LastFailure returns the cause of the newest failure of the model's pair; empty
// if there is none, or the pair is not tracked.
func (s *Set) LastFailure(model string) string {
	if p := s.table.get(model); p != nil {
		return p.state.Load().cause
	}
	return ""
}

// Snapshot returns the breakers by model: of the models written in the config,
// and of others that are tracked. It changes nothing.
func (s *Set) Snapshot(now time.Time) []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config.Load()
	list := make([]Status, 0, len(s.table.all))
	for _, p := range s.table.all {
		list = append(list, p.status(c, now))
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Model, b.Model) })
	return list
}

func (p *pair) status(c *config, now time.Time) Status {
	st := *p.state.Load()
	st.asOf(&c.Settings, now)
	v := st.view(c, now)
	x := Status{
		Model: p.model, State: v.State, Degraded: v.Degraded, DryRun: c.DryRun && !c.Off,
		ConsecutiveFailures: st.streakAt(&c.Settings, now), Weight: v.Weight,
		LastFailure: st.cause, LastFailureAt: st.failedAt, LastSuccessAt: p.lastSuccess(),
		LimitedUntil: v.Limited, Reason: v.Reason, Return: v.Return,
	}
	if st.open {
		x.OpenedAt, x.NextProbeAt = st.openedAt, st.nextProbe(&c.Settings)
		x.ProbeInFlight, x.Held = st.lease != nil, st.heldAt(now)
	}
	return x
}
