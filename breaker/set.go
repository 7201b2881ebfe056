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
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Set holds the breakers of one channel, one for each upstream model, the empty
// name included.
//
// The models that its config names are always tracked. Of all others only those
// are that had a failure, at most 1,000 of them: beyond that the closed ones go
// first, and among equals the one that was not used for longest. A pair that is
// not tracked is closed.
//
// All methods may be called at once from anywhere. While a breaker is closed,
// Look, Admit and Permit.Success take no lock and allocate nothing.
type Set struct {
	config    atomic.Pointer[config]
	gen       atomic.Uint64         // of the newest transition of any pair; written under mu
	holdAll   atomic.Pointer[state] // of pairs that are not tracked, while an operator holds all of them; else nil
	unhealthy atomic.Bool
	table     table

	mu    sync.Mutex
	floor uint64 // results of permits older than this say nothing about pairs that are not tracked
}

// config is what Configure sets. It is immutable.
type config struct {
	Settings
	names     []string // sorted, each once
	unhealthy *atomic.Bool
}

// NewSet returns a Set whose breakers are closed. The names are the upstream
// models that the config names.
func NewSet(s Settings, names []string) *Set {
	set := &Set{}
	set.table.init()
	set.Configure(s, names)
	return set
}

// Configure applies the settings and names of a new config to running breakers.
// What a breaker knows is kept: an open one stays open, but waits for its probe
// no longer than the new MaxProbeInterval; a streak that is above a lower
// OpenThreshold opens with the next failure. Off forgets everything. It is cheap
// where nothing changed.
func (s *Set) Configure(settings Settings, names []string) {
	c := &config{settings.inRange(), slices.Clone(names), &s.unhealthy}
	slices.Sort(c.names)
	c.names = slices.Compact(c.names)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.config.Load()
	if old != nil && old.Settings == c.Settings && slices.Equal(old.names, c.names) {
		return
	}
	s.config.Store(c)
	if c.Off {
		s.forgetAll()
	}
	s.rename(c.names)
}

// forgetAll drops every pair. Requires mu.
func (s *Set) forgetAll() {
	s.holdAll.Store(nil)
	s.floor = s.gen.Add(1)
	for _, p := range slices.Clone(s.table.all) {
		s.table.remove(p)
	}
}

// rename makes the names those that are written. Requires mu.
func (s *Set) rename(names []string) {
	newest := epoch
	for _, p := range slices.Clone(s.table.all) {
		newest = later(newest, epoch.Add(time.Duration(p.used.Load())*time.Second))
		_, written := slices.BinarySearch(names, p.model)
		s.table.mark(p, written)
		if !written && (*p.state.Load() == state{gen: p.state.Load().gen} || len(p.model) > maxLooseName) {
			s.drop(p)
		}
	}
	for s.table.loose > maxLoose {
		p := s.table.victim(newest)
		if p == nil {
			break
		}
		s.drop(p)
	}
	for _, name := range names {
		if s.table.get(name) == nil {
			s.table.insert(name, true, s.untracked(), newest)
		}
	}
}

// drop gives up a pair. Requires mu.
func (s *Set) drop(p *pair) {
	s.floor = max(s.floor, p.state.Load().gen)
	s.table.remove(p)
}

// untracked returns the state of pairs that are not tracked.
func (s *Set) untracked() state {
	st := blank
	if held := s.holdAll.Load(); held != nil {
		st = *held
	}
	st.gen = s.floor
	return st
}

// track returns the pair of the model, and makes it if there is none. It returns
// nil where there is no room, unless the pair must be there. Requires mu.
func (s *Set) track(model string, now time.Time, must bool) *pair {
	if p := s.table.get(model); p != nil {
		return p
	}
	if len(model) > maxLooseName && !must {
		return nil
	}
	if s.table.loose >= maxLoose {
		if p := s.table.victim(now); p != nil {
			s.drop(p)
		} else if !must {
			return nil
		}
	}
	s.endHold(now)
	return s.table.insert(model, false, s.untracked(), now)
}

// endHold forgets the hold of untracked pairs once it is over. Requires mu.
func (s *Set) endHold(now time.Time) {
	if held := s.holdAll.Load(); held != nil && !held.heldAt(now) {
		s.holdAll.Store(nil)
	}
}

// peek returns the published state of the model's pair, and the pair if it is
// tracked. It takes no lock.
func (s *Set) peek(model string, now time.Time) (*state, *pair) {
	if p := s.table.get(model); p != nil {
		return p.state.Load(), p
	}
	if held := s.holdAll.Load(); held != nil && held.heldAt(now) {
		return held, nil
	}
	return &blank, nil
}

// Look tells whether the model's breaker takes requests. It changes nothing and
// allocates nothing.
func (s *Set) Look(model string, now time.Time) View {
	c := s.config.Load()
	if c.Off {
		return View{Weight: 1}
	}
	st, _ := s.peek(model, now)
	return look(st, c, now)
}

func look(st *state, c *config, now time.Time) View {
	if st.plain() {
		return View{Weight: 1}
	}
	if st.lease != nil && st.lease.expired(now) {
		settled := *st
		settled.asOf(&c.Settings, now)
		return settled.view(c, now)
	}
	return st.view(c, now)
}

// Admit asks for the admission of one request, and fills p if it is granted.
// That is so while the breaker is closed and not paused; if it is half-open, for
// one request at a time, the probe. The state that Look showed may have changed
// since: the caller chooses again where ok is false. With DryRun, ok is always
// true.
func (s *Set) Admit(p *Permit, model string, now time.Time, stream bool) (ok bool, c Change) {
	return s.admit(p, model, now, stream, false)
}

// AdmitEarly is Admit for requests that have nowhere else to go: an open breaker
// admits a probe before its time, first EarlyProbe after it opened, then once
// per EarlyProbe. Where every channel failed, that ends the outage when its
// cause ends. An early probe that fails leaves the time of the next probe as it
// was, and a health check has no say in it. An operator's hold and a pause that
// the upstream asked for are never broken.
func (s *Set) AdmitEarly(p *Permit, model string, now time.Time, stream bool) (ok bool, c Change) {
	return s.admit(p, model, now, stream, true)
}

func (s *Set) admit(p *Permit, model string, now time.Time, stream, early bool) (bool, Change) {
	c := s.config.Load()
	if c.Off {
		p.fill(nil, "", 0, now)
		return true, Change{}
	}
	// Before the state: a permit may seem older than it is, never newer.
	p.fill(s, model, s.gen.Load(), now)
	st, pair := s.peek(model, now)
	if pair != nil {
		p.pair = pair
		pair.touch(now)
	}
	if st.plain() {
		return true, Change{}
	}
	ok, change := c.DryRun || st.reason(c, now) == Usable, Change{}
	if st.open && pair != nil {
		ok, change = s.admitProbe(p, now, stream, early && !c.DryRun)
	}
	if !ok {
		p.set = nil
	}
	return ok, change
}

// admitProbe is admit for pairs that were open at first sight.
func (s *Set) admitProbe(p *Permit, now time.Time, stream, early bool) (bool, Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config.Load()
	pair := s.table.get(p.model)
	if pair == nil || c.Off {
		return true, Change{} // given up, or turned off, in the meantime
	}
	st, change := s.settled(pair, c, now)
	why := st.reason(c, now)
	early = early && why == IsOpen && st.mayEarly(&c.Settings, now)
	if !st.open || why != Usable && !early {
		if !change.Zero() {
			s.publish(pair, st, change)
		}
		return c.DryRun || why == Usable, change
	}
	st.lease = newLease(now, c.probeTimeout(stream), early, st.earlyAt)
	if early {
		st.earlyAt = now
	}
	p.lease, p.shadow = st.lease, c.DryRun
	change = Change{Model: pair.model, From: Open, To: HalfOpen, Reason: reasonProbe, Probe: change.Probe}
	s.publish(pair, st, change)
	return true, change
}

// settled returns a copy of the pair's state in which a lease that ran out is
// settled, and what that changed. It publishes nothing. Requires mu.
func (s *Set) settled(p *pair, c *config, now time.Time) (state, Change) {
	st := *p.state.Load()
	if !st.asOf(&c.Settings, now) {
		return st, Change{}
	}
	return st, Change{
		Model: p.model, From: HalfOpen, To: Open, Reason: reasonTimeout,
		NextProbe: st.nextProbe(&c.Settings), Probe: ProbeReopened,
	}
}

// publish makes st the state of the pair. A transition carries a new generation.
// Requires mu.
func (s *Set) publish(p *pair, st state, change Change) {
	if !change.Zero() {
		st.gen = s.gen.Add(1)
	}
	p.state.Store(&st)
}

// SetUnhealthy tells whether health checks say that the upstream is unhealthy.
// While they do, a probe that is due waits, at most until MaxProbeInterval after
// the breaker opened, unless it is early or was made due.
func (s *Set) SetUnhealthy(unhealthy bool) { s.unhealthy.Store(unhealthy) }
