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
	"fmt"
	"time"
)

// Failure counts the error that an attempt ended with. Errors that no rule lists
// change nothing, and cost no lock.
//
// For Settings.KeepLastKey it asks usable whether another key is usable but for
// what this set knows of it; nil means that all are. It is called under the
// set's lock: it may call ChannelDisabled, KeyDisabled and KeysOut, but nothing
// else of the set.
func (s *Set) Failure(f Failure, now time.Time, usable func(key string) bool) Change {
	if !s.config.Load().lists(&f) {
		return Change{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config.Load()
	channel := s.count(c, &s.channel, ScopeChannel, &f, now)
	key := -1
	sub := s.subject(f.Key)
	if f.Key != "" && sub != nil {
		key = s.count(c, sub, ScopeKey, &f, now)
	}
	switch {
	case channel >= 0:
		return s.disable(c, &s.channel, channel, &f, now)
	case key < 0:
		return Change{}
	case c.CorrelateKeys > 1 && s.correlated(c, key, now) >= c.CorrelateKeys:
		return s.acquit(c, sub, key, now)
	case c.KeepLastKey && s.last(sub, now, usable):
		return Change{}
	}
	return s.disable(c, sub, key, &f, now)
}

func (c *config) lists(f *Failure) bool {
	for i := range c.rules {
		if c.rules[i].lists(f) {
			return true
		}
	}
	return false
}

// count adds the failure to the streaks of those rules that count it for the
// subject, whose scope that is. It returns the index of the one that the failure
// fulfilled, of the longest if several; -1 if there is none.
func (s *Set) count(c *config, sub *subject, scope Scope, f *Failure, now time.Time) int {
	st := *sub.state.Load()
	found := -1
	if !st.hears(f.Began, now) {
		return found
	}
	for i := range c.rules {
		r := &c.rules[i]
		if r.scope(f) != scope || !r.lists(f) || !st.add(i, f.Began, now) {
			continue
		}
		if st.fulfils(i, r, now) && (found < 0 || r.longer(&c.rules[found])) {
			found = i
		}
	}
	s.publish(sub, st)
	return found
}

func (s *Set) disable(c *config, sub *subject, i int, f *Failure, now time.Time) Change {
	st := *sub.state.Load()
	st.disable(i, &c.rules[i], f, c.DryRun, now)
	s.publish(sub, st)
	return Change{
		Key: sub.key, Disabled: true, Record: *st.record, By: ByAuto, Reason: st.record.Reason, DryRun: st.dry,
	}
}

// correlated returns how many keys saw errors of the rule within the window.
func (s *Set) correlated(c *config, i int, now time.Time) int {
	n := 0
	for _, sub := range *s.keys.Load() {
		if sub.state.Load().sawWithin(i, c.CorrelateWindow, now) {
			n++
		}
	}
	return n
}

// acquit ends the rule's streaks of all keys that saw its errors, instead of
// disabling the one whose streak was long enough.
func (s *Set) acquit(c *config, culprit *subject, i int, now time.Time) Change {
	n := s.correlated(c, i, now)
	for _, sub := range *s.keys.Load() {
		st := *sub.state.Load()
		if st.sawWithin(i, c.CorrelateWindow, now) && !st.disabled(now) {
			streak := st.count(i)
			streak.n = 0
			st.setCount(i, streak)
			s.publish(sub, st)
		}
	}
	return Change{
		Key: culprit.key, By: ByAuto, DryRun: c.DryRun, Correlated: true,
		Reason: fmt.Sprintf("%d keys saw %s within %s", n, c.rules[i].errors(2), short(c.CorrelateWindow)),
	}
}

// last reports whether no other key is usable. In a dry run it takes the keys
// that are disabled for as unusable as they would be.
func (s *Set) last(key *subject, now time.Time, usable func(string) bool) bool {
	for id, sub := range *s.keys.Load() {
		if sub != key && !sub.state.Load().disabled(now) && (usable == nil || usable(id)) {
			return false
		}
	}
	return true
}
