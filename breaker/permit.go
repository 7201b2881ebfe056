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
	"sync/atomic"
	"time"
)

// Permit is the admission of one request. It is filled by Set.Admit, may be kept
// inside of another struct, and must not be copied afterwards. It ends with one
// of Success, Failure, Limited and Release; any later call of these is ignored.
// All methods may be called at once from anywhere, and on a Permit that was
// never admitted, where they do nothing.
type Permit struct {
	set    *Set // nil: nothing to settle
	model  string
	pair   *pair // at admission; nil if it was not tracked then
	gen    uint64
	at     time.Time
	lease  *lease // nil: not the probe
	shadow bool   // the probe of a dry run, which the outside does not see
	phase  atomic.Uint32
}

// Phases of a permit.
const (
	phaseOpen uint32 = iota
	phaseContent
	phaseSettled
)

func (p *Permit) fill(s *Set, model string, gen uint64, now time.Time) {
	p.set, p.model, p.gen, p.at = s, model, gen, now
	p.pair, p.lease, p.shadow = nil, nil, false
	if p.phase.Load() != phaseOpen {
		p.phase.Store(phaseOpen)
	}
}

// Probe reports whether the request is the probe of a half-open breaker.
func (p *Permit) Probe() bool { return p.lease != nil && !p.shadow }

// ProbeTimeout returns how long the probe may go without a byte of the upstream;
// 0 if the request is not a probe.
func (p *Permit) ProbeTimeout() time.Duration {
	if !p.Probe() {
		return 0
	}
	return p.lease.timeout
}

// Leased reports whether the request holds a lease: a probe, or that of a dry
// run. Only then is Renew of use.
func (p *Permit) Leased() bool { return p.lease != nil }

// Renew notes a byte of the upstream: the probe's lease runs from now. It may be
// called for any request, and costs nothing unless it is a probe.
func (p *Permit) Renew(now time.Time) {
	if p.lease != nil {
		p.lease.renew(now)
	}
}

// Expired reports whether the request is a probe, not settled yet, whose lease
// has run out. The attempt is to be cut, as its result no longer counts.
func (p *Permit) Expired(now time.Time) bool {
	return p.Probe() && p.phase.Load() == phaseOpen && p.lease.expired(now)
}

// Settled reports whether the permit has ended, or was never admitted.
func (p *Permit) Settled() bool { return p.set == nil || p.phase.Load() == phaseSettled }

// SucceededSince reports whether a request of the same pair succeeded after this
// one was admitted, to a millisecond. Successes of pairs that are not tracked
// are not known.
func (p *Permit) SucceededSince() bool {
	if p.set == nil {
		return false
	}
	pair := p.set.table.get(p.model)
	return pair != nil && pair.lastSuccess().After(p.at)
}

// Content tells that the first content of a stream arrived, or that the upstream
// switched protocols: a probe has succeeded, and closes the breaker at once. The
// permit stays open for what becomes of that stream: should it break before
// anything else of the pair succeeds, see Cause.Break, the breaker opens again
// as if the probe had failed. For other requests Content does nothing.
func (p *Permit) Content(now time.Time) Change {
	if p.lease == nil || !p.phase.CompareAndSwap(phaseOpen, phaseContent) {
		return Change{}
	}
	return p.settleProbe(now, func(st *state, c *config, r *result) {
		if r.probe {
			r.closes(st, p.lease, false)
		}
	})
}

// Success tells that the request succeeded: a probe closes the breaker and
// clears it, and a closed breaker forgets its streak.
func (p *Permit) Success(now time.Time) Change {
	if !p.end() {
		return Change{}
	}
	if p.lease == nil {
		pair := p.pair
		if pair == nil {
			if pair = p.set.table.get(p.model); pair == nil {
				return Change{}
			}
		}
		if st := pair.state.Load(); st.quiet() && p.gen >= st.gen {
			pair.succeeded(now)
			return Change{}
		}
	}
	return p.settle(now, false, func(st *state, c *config, r *result) {
		if r.probe {
			r.closes(st, p.lease, true)
		} else {
			st.forgive()
		}
		r.pair.succeeded(now)
	})
}

// Failure tells that the request failed: a probe opens the breaker again, with
// its interval doubled, and a closed breaker counts the failure and opens at its
// threshold.
func (p *Permit) Failure(now time.Time, cause Cause) Change {
	if !p.end() {
		return Change{}
	}
	return p.settle(now, true, func(st *state, c *config, r *result) {
		switch {
		case r.probe:
			st.probeFailed(&c.Settings, p.lease, cause, now)
			r.change.Probe = ProbeReopened
		case cause.Break && st.trial != nil && st.trial.lease == p.lease:
			st.broke(&c.Settings, cause, now)
		default:
			st.fail(&c.Settings, cause, now)
		}
		r.change.Reason = cmp.Or(cause.Text, reasonFailure)
	})
}

// Limited tells that the upstream refused the request because of a rate limit,
// and when it wants to be asked again: zero, or not after now, if it did not
// say. A probe opens the breaker again until then, or for another interval, but
// doubles nothing. A closed breaker neither counts nor forgets anything.
func (p *Permit) Limited(now, until time.Time) Change {
	if !p.end() {
		return Change{}
	}
	return p.settleProbe(now, func(st *state, c *config, r *result) {
		if r.probe {
			st.probeLimited(&c.Settings, p.lease, now, until)
			r.change.Probe, r.change.Reason = ProbeReopened, reasonLimited
		}
	})
}

// Release tells that the request says nothing about the upstream, or was never
// sent: a probe gives its lease back, and the next request may take it at once.
func (p *Permit) Release(now time.Time) Change {
	if !p.end() {
		return Change{}
	}
	return p.settleProbe(now, func(st *state, c *config, r *result) {
		if r.probe {
			st.released(p.lease)
			r.change.Probe, r.change.Reason = ProbeReleased, reasonReleased
		}
	})
}

// end makes the permit settled, and reports whether this call did it.
func (p *Permit) end() bool {
	return p.set != nil && p.phase.Swap(phaseSettled) != phaseSettled
}

// result is what a settling call works on.
type result struct {
	pair   *pair
	probe  bool // the permit holds the lease; else the breaker is closed
	closed *lease
	change Change
}

// closes ends the probe with success.
func (r *result) closes(st *state, l *lease, over bool) {
	st.probeSucceeded(l, over)
	r.closed = l
	r.change.Probe, r.change.Reason = ProbeClosed, reasonProbe
}

// settleProbe is settle for what concerns probes only.
func (p *Permit) settleProbe(now time.Time, apply func(*state, *config, *result)) Change {
	if p.lease == nil {
		return Change{}
	}
	return p.settle(now, false, apply)
}

// settle applies a result to the pair, unless the permit is stale: then nothing
// changes. Where create is set, a pair that is not tracked becomes so.
func (p *Permit) settle(now time.Time, create bool, apply func(*state, *config, *result)) Change {
	s := p.set
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config.Load()
	pair := s.table.get(p.model)
	if pair == nil && create && !c.Off && p.lease == nil && p.gen >= s.floor {
		pair = s.track(p.model, now, false)
	}
	if pair == nil || c.Off {
		return Change{}
	}
	if l := pair.state.Load().lease; l != nil && l == p.lease && l.expired(now) {
		st, change := s.settled(pair, c, now) // whatever the result is, it came too late
		s.publish(pair, st, change)
		return change
	}
	return s.apply(p, pair, c, now, apply)
}

// apply is settle for pairs that are tracked. Requires mu.
func (s *Set) apply(p *Permit, pair *pair, c *config, now time.Time, apply func(*state, *config, *result)) Change {
	st := *pair.state.Load()
	r := result{pair: pair, probe: st.lease != nil && st.lease == p.lease}
	if !r.probe && (st.open || p.stale(&st)) {
		return Change{}
	}
	from := st.kind(c, now)
	apply(&st, c, &r)
	change := r.change
	change.Model, change.From, change.To = pair.model, from, st.kind(c, now)
	if st.open {
		change.NextProbe = st.nextProbe(&c.Settings)
	}
	if change.Probe == ProbeReopened {
		change.To = Open // even if the next probe is due by now
	}
	if change.From == change.To && change.Probe == NoProbe {
		change = Change{}
	}
	s.publish(pair, st, change)
	if r.closed != nil {
		r.closed.closedGen = pair.state.Load().gen
	}
	return change
}

// stale reports whether the pair changed hands since the permit was admitted: by
// any transition, except for the one that this very probe's content made.
func (p *Permit) stale(st *state) bool {
	if p.lease != nil {
		return p.lease.closedGen != st.gen
	}
	return p.gen < st.gen
}
