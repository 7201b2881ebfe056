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

// State is what outlasts a process: the records. Streaks do not. It is plain
// data; its versions are the caller's matter.
type State struct {
	Channel *Disable           `json:"channel,omitempty"`
	Keys    map[string]Disable `json:"keys,omitempty"` // by id
}

// Disable is a Record with what a trial needs to know.
type Disable struct {
	Record
	// Rule identifies the rule that was fulfilled, but for its numbers. Empty in
	// an operator's record, and where the rule is gone.
	Rule string `json:"rule,omitempty"`
}

// Save returns what [Set.Restore] takes. Records of a dry run are left out.
func (s *Set) Save() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	rules, state := s.config.Load().rules, State{}
	for sub := range s.subjects {
		st := sub.state.Load()
		switch {
		case st.record == nil || st.dry:
		case sub.key == "":
			d := st.saved(rules)
			state.Channel = &d
		case state.Keys == nil:
			state.Keys = map[string]Disable{sub.key: st.saved(rules)}
		default:
			state.Keys[sub.key] = st.saved(rules)
		}
	}
	return state
}

func (st *state) saved(rules []rule) Disable {
	d := Disable{Record: *st.record}
	if d.By == ByAuto && st.rule >= 0 {
		d.Rule = rules[st.rule].id
	}
	return d
}

// Restore puts records back, in place of what is known of their subjects: which
// of the two is newer is the caller's to know. Nothing is told. Records of keys
// that are not in the set, operators' that are over, and automatic ones where
// the rules are off or an operator has disabled the subject, are passed over. A
// record whose time is up leaves its subject on trial.
func (s *Set) Restore(state State, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state.Channel != nil {
		s.restore(&s.channel, *state.Channel, now)
	}
	for id, d := range state.Keys {
		if sub := s.subject(id); sub != nil && id != "" {
			s.restore(sub, d, now)
		}
	}
}

func (s *Set) restore(sub *subject, d Disable, now time.Time) {
	c, before := s.config.Load(), sub.state.Load()
	st := state{counts: before.counts, floor: later(before.floor, d.At), record: &d.Record}
	st.endStreaks()
	switch d.By {
	case ByOperator:
		if !st.disabled(now) {
			return
		}
	case ByAuto:
		if c.Off || before.record != nil && before.record.By == ByOperator && before.disabled(now) {
			return
		}
		st.resume(c.rules, d)
		st.lapsed = !st.disabled(now)
	default:
		return
	}
	s.publish(sub, st)
}

// resume takes from an automatic record what the trial after it needs.
func (st *state) resume(rules []rule, d Disable) {
	st.rule = find(rules, d.Rule)
	if st.rule >= 0 {
		st.setCount(st.rule, count{n: d.Count, at: later(st.count(st.rule).at, d.At)})
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
