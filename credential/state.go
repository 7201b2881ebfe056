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

package credential

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	firstPause = time.Second
	maxRefused = 30 * time.Minute
	maxUnsaid  = time.Minute // of a 429 that names no time
	maxSaid    = time.Hour   // of one that does

	// maxRow is how long the first of two bare 403s is remembered.
	maxRow = 30 * time.Minute
	// maxStreak is how long a key's limits are remembered after the last of
	// them ended, if no success ends them before.
	maxStreak = time.Hour
)

// pause is a time without use, doubled while its cause lasts.
type pause struct {
	until time.Time
	steps uint8 // how often it was paused since the last success
}

// extend moves the end of p to until, never back.
func (p *pause) extend(until time.Time) { p.until = later(p.until, until) }

// double pauses from now on, for twice as long as the last time, at most limit.
func (p *pause) double(now time.Time, limit time.Duration) {
	d := min(firstPause<<p.steps, limit)
	if d < limit {
		p.steps++
	}
	p.extend(now.Add(d))
}

// holds reports whether p lasts at now.
func (p pause) holds(now time.Time) bool { return p.until.After(now) }

// state is what is known of one key.
type state struct {
	pool *Pool
	// noted is whether anything below stands against the key. It is written
	// under mu and read without.
	noted atomic.Bool

	mu           sync.Mutex
	refused      pause
	countedAt    time.Time // the latest refusal that counted
	forbidden    time.Time // the latest bare 403, zero if there is no row of them
	limits       map[string]pause
	limitedUntil time.Time // the end of the last of limits
}

// standing returns what keeps the key from being used for model, and until when.
func (s *state) standing(model string, now time.Time) (Reason, time.Time) {
	if !s.noted.Load() {
		return Ok, time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.limits[model]
	switch {
	case s.refused.holds(now):
		return NoKey, later(s.refused.until, limit.until)
	case limit.holds(now):
		return Limited, limit.until
	}
	return Ok, time.Time{}
}

// limit pauses the key for model, and returns until when. A limit that names no
// time is doubled only when the one before is over: until then it is but another
// answer to the same burst of requests.
func (s *state) limit(model string, now time.Time, hint time.Duration) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, known := s.limits[model]
	if !known {
		s.makeRoom(now)
	}
	switch {
	case hint > 0:
		l.extend(now.Add(min(hint, maxSaid)))
	case !l.holds(now):
		l.double(now, maxUnsaid)
	}
	s.limits[cloned(model, known)] = l
	s.limitedUntil = later(s.limitedUntil, l.until)
	s.note()
	return l.until
}

// makeRoom readies limits for one more: at its bound, the limits that are over
// go, and if none is, the one that ends first. It requires the lock.
func (s *state) makeRoom(now time.Time) {
	if s.limits == nil {
		s.limits = make(map[string]pause)
	}
	if len(s.limits) < maxModels {
		return
	}
	maps.DeleteFunc(s.limits, func(_ string, l pause) bool { return !l.holds(now) })
	if len(s.limits) < maxModels {
		return
	}
	var first string
	var ends time.Time
	for model, l := range s.limits {
		if ends.IsZero() || l.until.Before(ends) {
			first, ends = model, l.until
		}
	}
	delete(s.limits, first)
}

// refuse pauses the key for all models, unless the attempt began before the
// refusal that counted last: then it belongs to the same burst. It returns until
// when the key is paused.
func (s *state) refuse(began, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !began.Before(s.countedAt) {
		s.countedAt = now
		s.refused.double(now, maxRefused)
		s.note()
	}
	return s.refused.until
}

// forbid notes a bare 403 and reports whether it follows another one.
func (s *state) forbid(now time.Time) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again = !s.forbidden.IsZero() && now.Sub(s.forbidden) <= maxRow
	s.forbidden = now
	s.note()
	return again
}

// succeed ends the streaks. A pause that lasts still goes on: the success may be
// of a request that was under way when the provider began to object.
func (s *state) succeed(model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused.steps = 0
	s.forbidden = time.Time{}
	if l := s.limits[model]; l.steps > 0 {
		l.steps = 0
		s.limits[model] = l
	}
	s.settle()
}

// tidy drops pauses that are over and whose streak a success ended, and streaks
// that are too old to go on, so that the key returns to the fast path.
func (s *state) tidy(model string, now time.Time) {
	if !s.noted.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.limits[model]; l.steps == 0 && !l.holds(now) {
		delete(s.limits, model)
	}
	if now.Sub(s.limitedUntil) > maxStreak {
		clear(s.limits)
	}
	if s.refused.steps == 0 && !s.refused.holds(now) {
		s.refused = pause{}
	}
	if now.Sub(s.forbidden) > maxRow {
		s.forbidden = time.Time{}
	}
	s.settle()
}

// forget drops everything.
func (s *state) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.countedAt, s.forbidden = pause{}, time.Time{}, time.Time{}
	s.limits, s.limitedUntil = nil, time.Time{}
	s.settle()
}

// note takes the key off the fast path. It requires the lock.
func (s *state) note() {
	if !s.noted.Swap(true) {
		s.pool.noted.Add(1)
	}
}

// settle puts the key back on the fast path if nothing is left against it. It
// requires the lock.
func (s *state) settle() {
	if !s.refused.until.IsZero() || !s.forbidden.IsZero() || len(s.limits) > 0 {
		return
	}
	if s.noted.Swap(false) {
		s.pool.noted.Add(-1)
	}
}

// limitsAt returns how many models are limited and when the last of them is free
// again.
func (s *state) limitsAt(now time.Time) (n int, until time.Time) {
	for _, l := range s.limits {
		if l.holds(now) {
			n++
			until = later(until, l.until)
		}
	}
	return n, until
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// cloned returns model as a map may keep it: a name that is new there may be cut
// out of a request's whole body, which must not stay in memory for it.
func cloned(model string, known bool) string {
	if known {
		return model
	}
	return strings.Clone(model)
}
