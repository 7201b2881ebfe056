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

package autodisable

import "time"

const (
	// clockSlack is how far ahead of now a recorded instant may lie without the
	// clock having been set back. It covers nodes whose clocks differ a little.
	clockSlack = time.Minute
	// maxFor is up to where the time of a disable is doubled.
	maxFor = 24 * time.Hour
)

// state is what is known of a subject. It is immutable once it is published:
// whoever changes it works on a copy, under the set's lock.
type state struct {
	quiet  bool      // a success has nothing to end, and nothing is disabled
	floor  time.Time // attempts that began no later say nothing: the last disable, or operator's act
	counts []count   // by the index of the rule; may be shorter than the rules

	record *Record // nil: enabled
	lapsed bool    // its end was told: the trial is on, whatever the clock says now
	dry    bool    // it was made in a dry run, and ends with it
	rule   int     // the index of the rule that made it; -1: no rule of this configuration
}

// blank is the state of a subject of which nothing is known.
var blank = state{quiet: true}

// count is the streak of one rule.
type count struct {
	n    int
	at   time.Time // when the last error was counted
	seen time.Time // when the last error since a success came, counted or not
}

// after reports whether an attempt began after a recorded instant. An instant
// that lies ahead of now is that of a clock that was set back since.
func after(began, mark, now time.Time) bool {
	return mark.IsZero() || ahead(mark, now) || began.After(mark)
}

func ahead(mark, now time.Time) bool { return mark.After(now.Add(clockSlack)) }

// disabled reports whether the record, real or rehearsed, is in force.
func (st *state) disabled(now time.Time) bool {
	r := st.record
	switch {
	case r == nil || st.lapsed:
		return false
	case r.Until.IsZero():
		return true
	case r.By == ByAuto && ahead(r.At, now):
		return false
	}
	return now.Before(r.Until)
}

// trial reports whether one more error of st.rule disables.
func (st *state) trial(now time.Time) bool {
	return st.record != nil && st.record.By == ByAuto && st.rule >= 0 && !st.disabled(now)
}

// removed reports whether the subject takes no traffic.
func (st *state) removed(dryRun bool, now time.Time) bool {
	return st.disabled(now) && (st.record.By == ByOperator || !st.dry && !dryRun)
}

// hears reports whether the outcome of an attempt matters.
func (st *state) hears(began, now time.Time) bool {
	return !st.disabled(now) && after(began, st.floor, now)
}

// sawWithin reports whether an error of the rule came in the window before now,
// and no success since.
func (st *state) sawWithin(i int, window time.Duration, now time.Time) bool {
	seen := st.count(i).seen
	return !seen.IsZero() && !ahead(seen, now) && now.Sub(seen) <= window
}

// isQuiet derives st.quiet.
func (st *state) isQuiet() bool {
	for _, c := range st.counts {
		if c.n > 0 || !c.seen.IsZero() {
			return false
		}
	}
	return st.record == nil
}

func (st *state) count(i int) count {
	if i < len(st.counts) {
		return st.counts[i]
	}
	return count{}
}

func (st *state) setCount(i int, c count) {
	counts := make([]count, max(i+1, len(st.counts)))
	copy(counts, st.counts)
	counts[i] = c
	st.counts = counts
}

// add notes an error of the rule, and reports whether it counts.
func (st *state) add(i int, began, now time.Time) bool {
	c := st.count(i)
	counts := after(began, c.at, now)
	c.seen = now
	if counts {
		c.n++
		c.at = now
	}
	st.setCount(i, c)
	return counts
}

// fulfils reports whether the errors that the rule counted suffice.
func (st *state) fulfils(i int, r *rule, now time.Time) bool {
	return st.count(i).n >= r.Times || st.trial(now) && st.rule == i
}

// endStreaks forgets what was counted, but not when: what is left of a burst
// begins no new streak.
func (st *state) endStreaks() {
	for i, c := range st.counts {
		if c.n > 0 || !c.seen.IsZero() {
			st.setCount(i, count{at: c.at})
		}
	}
}

// enable forgets the record and what was counted.
func (st *state) enable() {
	st.endStreaks()
	st.record, st.lapsed, st.dry, st.rule = nil, false, false, 0
}

// disable makes a record of the failure that fulfilled the rule.
func (st *state) disable(i int, r *rule, f *Failure, dry bool, now time.Time) {
	lasts := r.For
	if lasts > 0 && st.trial(now) && st.rule == i {
		lasts = max(lasts, doubled(st.record.Until.Sub(st.record.At)))
	}
	n := st.count(i).n
	record := &Record{By: ByAuto, Reason: r.reason(n), Count: n, At: now}
	if !f.Transport {
		record.Status = f.Status
	}
	if lasts > 0 {
		record.Until = now.Add(lasts)
	}
	st.record, st.lapsed, st.dry, st.rule = record, false, dry, i
	st.floor = now
}

// hold makes an operator's record.
func (st *state) hold(now, until time.Time, reason string) {
	st.enable()
	st.floor = now
	st.record = &Record{By: ByOperator, Reason: reason, At: now, Until: until}
}

// doubled returns the time that follows on one that was not enough.
func doubled(d time.Duration) time.Duration {
	if d >= maxFor {
		return d
	}
	return min(2*d, maxFor)
}

// move adapts the state from the rules of one configuration to those of another.
func (st *state) move(old, rules []rule) {
	counts := make([]count, len(rules))
	for i := range rules {
		if j := find(old, rules[i].id); j >= 0 {
			counts[i] = st.count(j)
		}
	}
	st.counts = counts
	if st.record != nil && st.record.By == ByAuto && st.rule >= 0 {
		st.rule = find(rules, old[st.rule].id)
	}
}
