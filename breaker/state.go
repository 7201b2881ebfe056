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
	"math/rand/v2"
	"time"
)

// clockSlack is how far ahead of now a recorded instant may lie without the
// clock having been set back: callers read the clock a little before they call.
const clockSlack = 5 * time.Second

// over reports whether the wait from one instant until another has ended by
// now. See the package's documentation about clocks that are set back.
func over(from, until, now time.Time) bool {
	return !now.Before(until) || now.Before(from.Add(-clockSlack))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// state is what is known of a pair. It is immutable once it is published:
// whoever changes it works on a copy, under the set's lock.
type state struct {
	gen uint64 // of the last transition

	streak      int // consecutive failures
	credentials int // those among them that credentials caused
	cause       string
	failedAt    time.Time

	open      bool
	held      bool          // by an operator, until next; zero: until reset
	hinted    bool          // next is what the upstream asked for
	openedAt  time.Time     // since when it has not been closed
	since     time.Time     // when the wait for next began: the last opening or reopening
	interval  time.Duration // of that wait, without jitter
	next      time.Time     // when a probe is due
	dueFrom   time.Time     // when somebody made it due; zero: nobody
	earlyAt   time.Time     // when the last early probe was granted
	lease     *lease        // of the probe in flight
	limitFrom time.Time     // the pause that the upstream asked for
	limitTo   time.Time

	trial *trial // set while a success is in doubt
}

// trial is a probe whose stream goes on after its first content closed the
// breaker. Should it break before anything else succeeds, the breaker becomes
// again what it was.
type trial struct {
	lease  *lease
	before state
}

// blank is the state of a pair of which nothing is known.
var blank state

// quiet reports whether a success would change nothing.
func (st *state) quiet() bool { return !st.open && st.streak == 0 && st.trial == nil }

// plain reports whether the pair takes requests as if nothing were known of it.
func (st *state) plain() bool { return st.quiet() && st.limitTo.IsZero() }

func (st *state) limited(now time.Time) bool { return !over(st.limitFrom, st.limitTo, now) }

func (st *state) heldAt(now time.Time) bool {
	return st.held && (st.next.IsZero() || now.Before(st.next))
}

// forgotten reports whether the streak is too old to matter.
func (st *state) forgotten(s *Settings, now time.Time) bool {
	return !st.open && s.FailureTTL > 0 && now.Sub(st.failedAt) > s.FailureTTL
}

func (st *state) streakAt(s *Settings, now time.Time) int {
	if st.forgotten(s, now) {
		return 0
	}
	return st.streak
}

// nextProbe returns when the probe of an open breaker is due; zero if never.
func (st *state) nextProbe(s *Settings) time.Time {
	at := st.next
	if !st.held && !st.hinted {
		// The settings may have changed since the wait began.
		at = earlier(at, st.since.Add(s.MaxProbeInterval))
	}
	if !st.dueFrom.IsZero() {
		at = earlier(at, st.dueFrom)
	}
	return at
}

// probeFrom is nextProbe, but for the wait of a due probe while a health check
// says that the upstream is unhealthy. What was made due does not wait.
func (st *state) probeFrom(c *config) time.Time {
	at := st.nextProbe(&c.Settings)
	if c.unhealthy.Load() && st.dueFrom.IsZero() && !at.IsZero() {
		return later(at, st.since.Add(c.MaxProbeInterval))
	}
	return at
}

// due reports whether the next request may be the probe.
func (st *state) due(c *config, now time.Time) bool {
	return st.open && !st.heldAt(now) && over(st.since, st.probeFrom(c), now)
}

// earlyFrom returns when an early probe may be taken; zero if never.
func (st *state) earlyFrom(s *Settings, now time.Time) time.Time {
	if s.EarlyProbe <= 0 || st.heldAt(now) {
		return time.Time{}
	}
	return later(st.since, st.earlyAt).Add(s.EarlyProbe)
}

// mayEarly reports whether an early probe may be taken now.
func (st *state) mayEarly(s *Settings, now time.Time) bool {
	at := st.earlyFrom(s, now)
	return st.open && st.lease == nil && !st.limited(now) && !at.IsZero() && over(at.Add(-s.EarlyProbe), at, now)
}

// kind returns the state as the outside names it.
func (st *state) kind(c *config, now time.Time) State {
	switch {
	case !st.open:
		return Closed
	case st.lease != nil, st.due(c, now):
		return HalfOpen
	}
	return Open
}

// reason tells why no request is taken now.
func (st *state) reason(c *config, now time.Time) Reason {
	switch {
	case st.open && st.lease != nil:
		return Probing
	case st.open && !st.due(c, now):
		return IsOpen
	case st.limited(now):
		return IsLimited
	}
	return Usable
}

// returns tells when a state that is out for that reason may be usable again,
// never before now; zero if nobody knows.
func (st *state) returns(c *config, why Reason, now time.Time) time.Time {
	var at time.Time
	switch why {
	case Usable:
		return at
	case Probing:
		return later(st.lease.end(), now)
	case IsOpen:
		at = st.probeFrom(c)
		if early := st.earlyFrom(&c.Settings, now); !early.IsZero() {
			at = earlier(at, early)
		}
		if at.IsZero() {
			return at
		}
	}
	if st.limited(now) {
		at = later(at, st.limitTo)
	}
	return later(at, now)
}

// view is what Look shows. A lease that ran out must have been settled.
func (st *state) view(c *config, now time.Time) View {
	v := View{State: st.kind(c, now), Reason: st.reason(c, now), Weight: 1}
	v.Degraded = !st.open && c.degrades(st.streakAt(&c.Settings, now))
	if st.limited(now) {
		v.Limited = st.limitTo
	}
	if c.DryRun {
		v.Reason = Usable
		return v
	}
	v.Probe = v.State == HalfOpen && v.Reason == Usable
	v.Early = v.Reason == IsOpen && st.mayEarly(&c.Settings, now)
	v.Return = st.returns(c, v.Reason, now)
	switch {
	case v.Reason != Usable:
		v.Weight = 0
	case v.Probe:
		v.Weight = c.HalfOpenWeight
	case v.Degraded:
		v.Weight = c.DegradedWeight
	}
	return v
}

// count adds a failure to the streak.
func (st *state) count(s *Settings, cause Cause, now time.Time) {
	if st.forgotten(s, now) {
		st.streak, st.credentials = 0, 0
	}
	st.streak++
	if cause.Credential {
		st.credentials++
	}
	st.cause, st.failedAt = cmp.Or(cause.Text, reasonFailure), now
}

// fail counts a failure of a closed breaker, which opens it at the threshold.
func (st *state) fail(s *Settings, cause Cause, now time.Time) {
	st.count(s, cause, now)
	if st.streak < s.OpenThreshold {
		return
	}
	st.trial = nil
	st.open, st.openedAt = true, now
	st.waitFor(s, s.ProbeInterval, rand.Float64(), now)
}

// waitFor begins the wait for the next probe.
func (st *state) waitFor(s *Settings, interval time.Duration, draw float64, now time.Time) {
	st.held, st.hinted = false, false
	st.since, st.interval = now, interval
	st.next = now.Add(s.wait(interval, draw))
	if !st.dueFrom.After(now) {
		st.dueFrom = time.Time{}
	}
}

// probeFailed ends l, whose holder failed. An early probe leaves the wait as it
// was: it must not make anything worse.
func (st *state) probeFailed(s *Settings, l *lease, cause Cause, now time.Time) {
	st.count(s, cause, now)
	st.lease = nil
	if !l.early {
		st.waitFor(s, s.doubled(st.interval), l.draw, now)
	}
}

// probeLimited ends l, whose holder was asked to come back at until; zero or
// past if it was not told when.
func (st *state) probeLimited(s *Settings, l *lease, now, until time.Time) {
	st.lease = nil
	hint := until.After(now)
	if !l.early {
		st.waitFor(s, st.interval, l.draw, now)
		if hint {
			st.next, st.hinted = until, true
		}
	} else if hint {
		st.next = earlier(st.next, until)
	}
	st.pause(now, until)
}

// probeSucceeded closes the breaker. Unless the probe is over, it stays on trial.
func (st *state) probeSucceeded(l *lease, over bool) {
	before := *st
	st.clear()
	if !over {
		st.trial = &trial{l, before}
	}
}

// broke takes back what the content of the probe on trial had closed.
func (st *state) broke(s *Settings, cause Cause, now time.Time) {
	t, from, to := st.trial, st.limitFrom, st.limitTo
	*st = t.before
	st.limitFrom, st.limitTo = from, to
	st.probeFailed(s, t.lease, cause, now)
}

// released gives l back as though it had not been taken.
func (st *state) released(l *lease) {
	st.lease = nil
	st.earlyAt = l.earlyAt
}

// clear closes the breaker and forgets all but its last failure.
func (st *state) clear() {
	*st = state{gen: st.gen, cause: st.cause, failedAt: st.failedAt}
}

// forgive ends the streak.
func (st *state) forgive() { st.streak, st.credentials, st.trial = 0, 0, nil }

// pause only ever extends.
func (st *state) pause(now, until time.Time) {
	if until.After(now) && (until.After(st.limitTo) || !st.limited(now)) {
		st.limitFrom, st.limitTo = now, until
	}
}

// hold opens the breaker by an operator's word.
func (st *state) hold(s *Settings, now, until time.Time) {
	if !st.open {
		st.openedAt = now
	}
	st.open, st.held, st.hinted = true, true, false
	st.since, st.next, st.interval = now, until, s.ProbeInterval
	st.dueFrom, st.earlyAt, st.lease, st.trial = time.Time{}, time.Time{}, nil, nil
}

// asOf settles a lease that ran out by now: its probe failed when it ended. It
// reports whether there was one.
func (st *state) asOf(s *Settings, now time.Time) bool {
	l := st.lease
	if l == nil || !l.expired(now) {
		return false
	}
	st.probeFailed(s, l, Cause{Text: reasonTimeout}, earlier(l.end(), now))
	return true
}
