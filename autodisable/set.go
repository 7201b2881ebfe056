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
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Settings are those of one channel.
type Settings struct {
	// Off counts nothing, and forgets automatic records; an operator's acts are
	// kept and work as usual.
	Off bool
	// DryRun counts, records and tells as usual, but what it disables is not
	// removed, nor what was disabled automatically before. An operator's disable
	// removes all the same. When DryRun ends, its records do too.
	DryRun bool
	Rules  []Rule
	// KeepLastKey spares the last key that is usable: a channel with one bad key
	// may serve better than none. Without it such a channel is soon out, and
	// costs no more attempts.
	KeepLastKey bool
	// CorrelateKeys is how many keys that saw the status of a rule within
	// CorrelateWindow, and no success since, tell that the provider is at fault
	// and not they. Below 2: each key is judged alone.
	CorrelateKeys   int
	CorrelateWindow time.Duration
}

func (s *Settings) equal(other *Settings) bool {
	return s.Off == other.Off && s.DryRun == other.DryRun && slices.Equal(s.Rules, other.Rules) &&
		s.KeepLastKey == other.KeepLastKey &&
		s.CorrelateKeys == other.CorrelateKeys && s.CorrelateWindow == other.CorrelateWindow
}

// Set is the state of one channel and of its keys. All methods may be called
// concurrently, also on behalf of two configurations while one replaces the
// other. Where a method takes a key's id, the empty one means the channel.
type Set struct {
	// loud is how many subjects are not quiet: most of the time none, and then
	// nobody needs to look further. Written under mu.
	loud    atomic.Int32
	config  atomic.Pointer[config]
	keys    atomic.Pointer[map[string]*subject] // by id; the map is never changed
	channel subject

	mu sync.Mutex // for writing
}

// config is immutable.
type config struct {
	Settings
	rules []rule   // none if Off
	ids   []string // of the keys: sorted, each once
}

// subject is a channel or a key.
type subject struct {
	key   string
	state atomic.Pointer[state] // never nil
}

func newSubject(key string) *subject {
	sub := &subject{key: key}
	sub.state.Store(&blank)
	return sub
}

// NewSet returns the state of a channel with these keys' ids, none if it has no
// keys. The channel and the keys are enabled.
func NewSet(s Settings, keys []string) *Set {
	set := &Set{}
	set.channel.state.Store(&blank)
	set.config.Store(&config{})
	set.keys.Store(&map[string]*subject{})
	set.Configure(s, keys)
	return set
}

// Configure applies the settings and the keys of a new configuration. Streaks of
// rules that count the same as before go on, and records stay, even if their
// rule is gone, as long as the key is there. Nothing is told. It is cheap if
// nothing is new.
func (s *Set) Configure(settings Settings, keys []string) {
	settings.Rules = slices.Clone(settings.Rules)
	c := &config{settings, nil, keyIDs(keys)}
	if !c.Off {
		c.rules = compile(settings.Rules)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.config.Load()
	if old.equal(&settings) && slices.Equal(old.ids, c.ids) {
		return
	}
	s.config.Store(c)
	s.setKeys(c.ids)
	for sub := range s.subjects {
		s.reconfigure(sub, old, c)
	}
}

// keyIDs returns the ids sorted, each once, and none that is empty.
func keyIDs(keys []string) []string {
	ids := slices.Sorted(slices.Values(keys))
	ids = slices.Compact(ids)
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}

// setKeys replaces the keys. Those that stay keep their state.
func (s *Set) setKeys(ids []string) {
	old, keys := *s.keys.Load(), make(map[string]*subject, len(ids))
	for _, id := range ids {
		if keys[id] = old[id]; keys[id] == nil {
			keys[id] = newSubject(id)
		}
	}
	for id, sub := range old {
		if keys[id] == nil {
			s.publish(sub, blank)
		}
	}
	s.keys.Store(&keys)
}

func (s *Set) reconfigure(sub *subject, old, c *config) {
	st := *sub.state.Load()
	automatic := st.record != nil && st.record.By == ByAuto
	if automatic && (c.Off || st.dry && !c.DryRun) {
		st.enable()
	}
	st.move(old.rules, c.rules)
	s.publish(sub, st)
}

// subjects yields the channel and then the keys in no order.
func (s *Set) subjects(yield func(*subject) bool) {
	if !yield(&s.channel) {
		return
	}
	for _, sub := range *s.keys.Load() {
		if !yield(sub) {
			return
		}
	}
}

// subject returns nil for a key that is not in the set.
func (s *Set) subject(key string) *subject {
	if key == "" {
		return &s.channel
	}
	return (*s.keys.Load())[key]
}

// publish requires the lock.
func (s *Set) publish(sub *subject, st state) {
	was := sub.state.Load().quiet
	st.quiet = st.isQuiet()
	sub.state.Store(&st)
	switch {
	case was && !st.quiet:
		s.loud.Add(1)
	case !was && st.quiet:
		s.loud.Add(-1)
	}
}

// ChannelDisabled reports whether the channel takes no traffic. It does not look
// at the keys. It takes no lock and does not allocate.
func (s *Set) ChannelDisabled(now time.Time) bool {
	return s.loud.Load() != 0 && s.removed(&s.channel, now)
}

// KeyDisabled reports whether the key takes no traffic. It does not look at the
// channel, unless id is empty. A key that is not in the set is not disabled. It
// takes no lock and does not allocate.
func (s *Set) KeyDisabled(id string, now time.Time) bool {
	if s.loud.Load() == 0 {
		return false
	}
	sub := s.subject(id)
	return sub != nil && s.removed(sub, now)
}

// KeysOut returns how many of the keys take no traffic. It takes no lock and
// does not allocate.
func (s *Set) KeysOut(now time.Time) int {
	n := 0
	if s.loud.Load() == 0 {
		return n
	}
	for _, sub := range *s.keys.Load() {
		if s.removed(sub, now) {
			n++
		}
	}
	return n
}

func (s *Set) removed(sub *subject, now time.Time) bool {
	return sub.state.Load().removed(s.config.Load().DryRun, now)
}

// Success tells that an attempt with the key succeeded that began at that time.
// It ends the streaks and the trials of the key and of the channel, unless they
// are disabled, or were when the attempt began or later. It takes no lock and
// does not allocate while there is nothing to end.
func (s *Set) Success(key string, began, now time.Time) {
	if s.loud.Load() == 0 {
		return
	}
	s.succeed(&s.channel, began, now)
	if key == "" {
		return
	}
	if sub := s.subject(key); sub != nil {
		s.succeed(sub, began, now)
	}
}

func (s *Set) succeed(sub *subject, began, now time.Time) {
	if st := sub.state.Load(); st.quiet || !st.hears(began, now) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := *sub.state.Load(); st.hears(began, now) {
		st.enable()
		s.publish(sub, st)
	}
}
