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
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// maxLoose bounds the pairs whose models are written in no config. Clients
	// can make up as many names as they like.
	maxLoose = 1000
	// maxLooseName bounds the bytes of such a name. A longer one is no model of
	// anybody's, and is not tracked.
	maxLooseName = 1024
	buckets      = 512 // of the table; a power of two
)

// epoch is what atomically stored times count from.
var epoch = time.Now()

// pair is the entry of an upstream model. The set's lock guards its fields, but
// those that are atomic may be read without.
type pair struct {
	model   string
	written bool
	state   atomic.Pointer[state]
	next    atomic.Pointer[pair] // of the bucket
	used    atomic.Int64         // seconds from epoch, for eviction
	success atomic.Int64         // nanoseconds from epoch of the last success, to a millisecond; 0: none
}

// touch notes that the pair is in use. It writes at most once a second: a write
// for every request would make all cores wait for each other.
func (p *pair) touch(now time.Time) {
	if s := int64(now.Sub(epoch) / time.Second); p.used.Load() != s {
		p.used.Store(s)
	}
}

// succeeded notes a success. It writes at most once a millisecond.
func (p *pair) succeeded(now time.Time) {
	ns := int64(now.Sub(epoch))
	if d := ns - p.success.Load(); d >= int64(time.Millisecond) || d <= -int64(time.Millisecond) {
		p.success.Store(ns)
	}
}

func (p *pair) lastSuccess() time.Time {
	if ns := p.success.Load(); ns != 0 {
		return epoch.Add(time.Duration(ns))
	}
	return time.Time{}
}

// table finds pairs by model. Reading takes no lock; all else requires the set's
// lock. Entries are never changed in place: one that was removed still leads a
// reader who stands on it to the rest of its bucket.
type table struct {
	seed  maphash.Seed
	heads [buckets]atomic.Pointer[pair]
	all   []*pair // in no order
	loose int     // those not written
}

func (t *table) init() { t.seed = maphash.MakeSeed() }

func (t *table) head(model string) *atomic.Pointer[pair] {
	return &t.heads[maphash.String(t.seed, model)%buckets]
}

// get returns the pair of the model, nil if there is none.
func (t *table) get(model string) *pair {
	p := t.head(model).Load()
	for p != nil && p.model != model {
		p = p.next.Load()
	}
	return p
}

func (t *table) insert(model string, written bool, st state, now time.Time) *pair {
	p := &pair{model: strings.Clone(model), written: written} // the name may be part of a large body
	p.state.Store(&st)
	p.touch(now)
	head := t.head(model)
	p.next.Store(head.Load())
	head.Store(p)
	t.all = append(t.all, p)
	if !written {
		t.loose++
	}
	return p
}

// gone is the state of removed pairs. It is not quiet, so that permits which
// still refer to the pair look for its successor.
var gone = &state{streak: 1}

func (t *table) remove(p *pair) {
	p.state.Store(gone)
	link := t.head(p.model)
	for link.Load() != p {
		link = &link.Load().next
	}
	link.Store(p.next.Load())
	i := slices.Index(t.all, p)
	last := len(t.all) - 1
	t.all[i], t.all[last] = t.all[last], nil
	t.all = t.all[:last]
	if !p.written {
		t.loose--
	}
}

// mark makes the pair one that is written, or one that is not.
func (t *table) mark(p *pair, written bool) {
	if p.written == written {
		return
	}
	p.written = written
	if written {
		t.loose--
	} else {
		t.loose++
	}
}

// victim returns the pair to give up for another: not written, without a probe
// in flight or an operator's hold, rather closed than open, and then the one
// that was not used for longest. It returns nil if there is none.
func (t *table) victim(now time.Time) *pair {
	var best *pair
	var bestOpen bool
	var bestUsed int64
	for _, p := range t.all {
		if p.written {
			continue
		}
		st, used := p.state.Load(), p.used.Load()
		better := best == nil || bestOpen && !st.open || bestOpen == st.open && used < bestUsed
		if better && !st.precious(now) {
			best, bestOpen, bestUsed = p, st.open, used
		}
	}
	return best
}

// precious reports whether the pair must not be given up.
func (st *state) precious(now time.Time) bool {
	return st.lease != nil && !st.lease.expired(now) || st.heldAt(now)
}
