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

import (
	"cmp"
	"slices"
	"time"
)

const reasonTimeUp = "time is up"

// Disable takes the key, or the channel if key is empty, out of use on an
// operator's word, and replaces what disabled it before. A zero until means
// until an operator enables it; one that has passed changes nothing, and so does
// a key that is not in the set.
func (s *Set) Disable(key string, now, until time.Time, reason string) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subject(key)
	if sub == nil || !until.IsZero() && !until.After(now) {
		return Change{}
	}
	st := *sub.state.Load()
	st.hold(now, until, reason)
	s.publish(sub, st)
	return Change{Key: key, Disabled: true, Record: *st.record, By: ByOperator, Reason: reason}
}

// Enable ends, on an operator's word, whatever disable or trial there is of the
// key, or of the channel if key is empty. Its streaks return to 0, and errors
// of attempts that began before do not count any more: also where it was
// enabled, and there is nothing to tell.
func (s *Set) Enable(key string, now time.Time, reason string) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subject(key)
	if sub == nil {
		return Change{}
	}
	st := *sub.state.Load()
	change := st.ending(key, ByOperator, reason)
	st.enable()
	st.floor = now
	s.publish(sub, st)
	return change
}

// Lapse tells of each disable whose time is up, once, sorted by key, the channel
// first. Call it before choosing: a disable that ends between two calls, and
// gives way to another, is not told. It takes no lock while there is nothing to
// tell.
func (s *Set) Lapse(now time.Time) []Change {
	if s.loud.Load() == 0 {
		return nil
	}
	var changes []Change
	for sub := range s.subjects {
		if sub.state.Load().ends(now) {
			changes = s.lapse(changes, sub, now)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Key, b.Key) })
	return changes
}

func (s *Set) lapse(changes []Change, sub *subject, now time.Time) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := *sub.state.Load()
	if !st.ends(now) {
		return changes
	}
	change := st.ending(sub.key, ByAuto, reasonTimeUp)
	if st.record.By == ByOperator {
		st.enable()
	}
	st.lapsed = st.record != nil
	s.publish(sub, st)
	return append(changes, change)
}

// ends reports whether there is a record whose end was not told.
func (st *state) ends(now time.Time) bool {
	return st.record != nil && !st.lapsed && !st.disabled(now)
}

// ending returns the change that ends the record, if that was not told.
func (st *state) ending(key, by, reason string) Change {
	if st.record == nil || st.lapsed {
		return Change{}
	}
	return Change{Key: key, Record: *st.record, By: by, Reason: reason, DryRun: st.dry}
}

// Snapshot returns the state at that time, and changes nothing.
func (s *Set) Snapshot(now time.Time) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config.Load()
	channel := s.channel.state.Load().status(c, now)
	status := Status{channel.Errors, channel.Disabled, channel.Trial, channel.DryRun, make(map[string]KeyStatus, len(c.ids))}
	for id, sub := range *s.keys.Load() {
		status.Keys[id] = sub.state.Load().status(c, now)
	}
	return status
}

func (st *state) status(c *config, now time.Time) KeyStatus {
	x := KeyStatus{Errors: map[string]int{}, Trial: st.trial(now)}
	for i := range c.rules {
		if n := st.count(i).n; n > 0 {
			name := c.rules[i].name()
			x.Errors[name] = max(x.Errors[name], n)
		}
	}
	if st.disabled(now) {
		record := *st.record
		x.Disabled = &record
	}
	x.DryRun = x.Trial && st.dry || x.Disabled != nil && !st.removed(c.DryRun, now)
	return x
}
