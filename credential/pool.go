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

// Package credential keeps the keys of a channel: which of them may be used now,
// for which model, and which is next.
//
// What is known of a key (that it was refused, or is over its limit) belongs to
// the Pool, which outlives configs and goes by the id of the key. The keys
// themselves, their order and their rotation belong to one config's Keys.
//
// The package has no timers. Time comes from the caller, and a pause is over
// when its time has passed. While no key of a pool has anything noted against
// it, the methods on the way of a request cost an atomic load.
package credential

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// maxModels bounds how many models are remembered for a key, and for a pool.
// Clients choose model names, so their number has no limit of its own.
const maxModels = 1000

// Pool is what lasts of a channel's keys over reloads: their pauses and streaks,
// by key id. It is safe for concurrent use, by several configs at once too.
type Pool struct {
	// noted counts the keys that have something noted. The fast path reads
	// only this.
	noted atomic.Int64

	mu       sync.Mutex
	states   map[string]*state
	retained map[string]bool // nil before the first Retain
	recent   map[string]limitings
}

// NewPool returns an empty pool.
func NewPool() *Pool {
	return &Pool{states: make(map[string]*state), recent: make(map[string]limitings)}
}

// Keys returns the keys of one config, in the order given. Keys that the pool
// has seen before carry on with what is known of them. An empty secret makes no
// key and is counted as missing; a secret that was given before makes no second
// key. Without any secrets there is one anonymous key, whose id is "": the
// provider may limit or refuse a channel without keys just as well.
func (p *Pool) Keys(secrets []Secret) *Keys {
	if len(secrets) == 0 {
		return &Keys{pool: p, keys: []*Key{{state: p.state("")}}}
	}
	ks := &Keys{pool: p, keys: make([]*Key, 0, len(secrets))}
	seen := make(map[string]bool, len(secrets))
	for _, s := range secrets {
		switch {
		case s.Empty():
			ks.missing++
		case !seen[s.ID()]:
			seen[s.ID()] = true
			ks.keys = append(ks.keys, &Key{secret: s, state: p.state(s.ID())})
		}
	}
	return ks
}

// state returns the lasting state of the key with that id.
func (p *Pool) state(id string) *state {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.states[id]
	if s == nil {
		s = &state{pool: p}
		p.states[id] = s
	}
	return s
}

// Retain forgets all keys but those with the given ids, so that a key which
// comes back later starts fresh. The anonymous key is never forgotten. It
// reports whether the set of ids differs from that of the call before, false for
// the first call. Call it when the config with these keys has begun to run: a
// config that is refused must change nothing.
func (p *Pool) Retain(ids []string) (changed bool) {
	keep := make(map[string]bool, len(ids))
	for _, id := range ids {
		if id != "" {
			keep[id] = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.states {
		if id != "" && !keep[id] {
			s.forget()
			delete(p.states, id)
		}
	}
	changed = p.retained != nil && !maps.Equal(p.retained, keep)
	p.retained = keep
	return changed
}

// together is how close the limits of two keys must follow each other for the
// limit to be the account's rather than the key's.
const together = time.Second

// limiting is one 429.
type limiting struct {
	id        string
	at, until time.Time
}

// limitings are the latest 429 of a model, and the latest before it of another
// key.
type limitings struct{ last, other limiting }

// limited notes a 429. If another key met one for the same model at almost the
// same time, it returns until when the longer of the two limits lasts.
func (p *Pool) limited(model string, l limiting) (pairUntil time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, known := p.recent[model]
	if !known && len(p.recent) >= maxModels {
		p.makeRoom(l.at)
	}
	if r.last.id != l.id {
		r.other = r.last
	}
	r.last = l
	p.recent[cloned(model, known)] = r
	if r.other.id == "" || l.at.Sub(r.other.at).Abs() > together {
		return time.Time{}
	}
	return later(l.until, r.other.until)
}

// makeRoom requires the lock.
func (p *Pool) makeRoom(now time.Time) {
	maps.DeleteFunc(p.recent, func(_ string, r limitings) bool { return now.Sub(r.last.at) > together })
	for model := range p.recent {
		if len(p.recent) < maxModels {
			return
		}
		delete(p.recent, model)
	}
}
