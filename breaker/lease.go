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
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// lease is the right to be the one probe of a pair. It is taken by a permit and
// compared by identity: a pair that points to another lease, or to none, does
// not care what the holder of this one has to say.
type lease struct {
	start     time.Time
	timeout   time.Duration // from the start, or the last byte, to its end
	early     bool          // taken before the probe was due
	earlyAt   time.Time     // the early probe before this one, for when it is given back
	draw      float64       // the jitter of a reopening; drawn now, so that looking twice sees the same
	renewed   atomic.Int64  // nanoseconds from start to the last byte
	closedGen uint64        // generation of the closing by this lease's content; guarded by the set's lock
}

func newLease(now time.Time, timeout time.Duration, early bool, earlyAt time.Time) *lease {
	return &lease{start: now, timeout: timeout, early: early, earlyAt: earlyAt, draw: rand.Float64()}
}

// renew moves the end of the lease, unless it has passed.
func (l *lease) renew(now time.Time) {
	d, last := now.Sub(l.start), time.Duration(l.renewed.Load())
	if d > last && d < last+l.timeout {
		l.renewed.CompareAndSwap(int64(last), int64(d))
	}
}

func (l *lease) lastByte() time.Time { return l.start.Add(time.Duration(l.renewed.Load())) }

func (l *lease) end() time.Time { return l.lastByte().Add(l.timeout) }

// expired reports whether the lease has run out by now.
func (l *lease) expired(now time.Time) bool { return over(l.lastByte(), l.end(), now) }
