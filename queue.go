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

package llmgateway

import (
	"slices"
	"sync"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// What is done with a request for which nobody is usable.
const (
	allOpenFailFast   = "fail_fast"
	allOpenBestEffort = "best_effort"
	allOpenWait       = "wait"
)

// nextBestEffort probes the open pair that is due soonest, though it is not due.
// An operator's word stands even so.
func (x *exchange) nextBestEffort(now time.Time) bool {
	var open []*candidate
	for i := range x.cands {
		if c := &x.cands[i]; c.blocked(now).reason == usable {
			open = append(open, c)
		}
	}
	due := func(c *candidate) time.Time { return c.state.breakers.Look(c.model, now).Return }
	slices.SortStableFunc(open, func(a, b *candidate) int { return due(a).Compare(due(b)) })
	for _, c := range open {
		if c.state.breakers.MakeDue(c.model, now) && x.reserve(c, now, false) {
			return true
		}
	}
	return false
}

// queueKey tells which requests wait for the same: others do not stand in their
// way.
type queueKey struct {
	dialect dialect.Dialect
	model   string
}

// queues holds the requests that wait for somebody to become usable, first in,
// first out. It is safe for concurrent use.
type queues struct {
	mu      sync.Mutex
	waiting map[queueKey][]chan struct{} // the first one's is closed
}

// join stands in line, and returns a channel that is closed when it is the
// caller's turn.
func (q *queues) join(key queueKey) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = make(map[queueKey][]chan struct{})
	}
	turn := make(chan struct{})
	if len(q.waiting[key]) == 0 {
		close(turn)
	}
	q.waiting[key] = append(q.waiting[key], turn)
	return turn
}

func (q *queues) leave(key queueKey, turn chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.waiting[key]
	i := slices.Index(line, turn)
	line = slices.Delete(line, i, i+1)
	switch {
	case len(line) == 0:
		delete(q.waiting, key)
		return
	case i == 0:
		close(line[0])
	}
	q.waiting[key] = line
}

// len returns how many requests wait.
func (q *queues) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, line := range q.waiting {
		n += len(line)
	}
	return n
}

func (q *queues) empty(key queueKey) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting[key]) == 0
}

// waitPoll is how often the first in line looks whether a place or a lease came
// free: these give no notice.
const waitPoll = 20 * time.Millisecond

// firstAttempt reserves the first attempt, waiting for somebody to become usable
// where the config says so. Who comes later stands behind those who wait.
func (x *exchange) firstAttempt() bool {
	key := queueKey{x.dialect, x.req.Model}
	if x.gw.wait == 0 {
		return x.next()
	}
	if x.gw.queues.empty(key) && x.next() {
		return true
	}
	timeUp := time.NewTimer(x.gw.wait)
	defer timeUp.Stop()
	turn := x.gw.queues.join(key)
	defer x.gw.queues.leave(key, turn)
	select {
	case <-turn:
	case <-timeUp.C:
		return false
	case <-x.ctx.Done():
		return false
	}
	poll := time.NewTicker(waitPoll)
	defer poll.Stop()
	for !x.next() {
		select {
		case <-poll.C:
		case <-timeUp.C:
			return x.next()
		case <-x.ctx.Done():
			return false
		}
	}
	return true
}
