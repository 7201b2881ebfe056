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
	"context"
	"sync"
	"time"
)

// A timeLimit is the cause with which a try's context is cancelled when one of
// its time limits is up.
type timeLimit string

func (l *timeLimit) Error() string { return string(*l) + " exceeded" }

func newTimeLimit(name string) *timeLimit {
	l := timeLimit(name)
	return &l
}

var (
	headerLimit     = newTimeLimit("header_timeout")
	idleLimit       = newTimeLimit("idle_timeout")
	firstTokenLimit = newTimeLimit("first_token_timeout")
	probeLimit      = newTimeLimit("probe_timeout")
	errorHeadLimit  = newTimeLimit("error body")
	stallLimit      = newTimeLimit("client stalls")
)

// watchdog cancels a try that its upstream keeps waiting for too long. It counts
// only while we wait for the upstream: how long the client takes to read is not
// the upstream's fault. All of it is safe for concurrent use, since net/http
// tells of interim responses from goroutines of its own.
type watchdog struct {
	cancel  context.CancelCauseFunc
	lease   time.Duration // of a probe: how long it may go without a byte; else 0
	onStall func()        // called when the client keeps a probe waiting for too long

	mu      sync.Mutex
	timer   *time.Timer
	rings   time.Time // when timer fires; zero: it does not
	until   time.Time // when the limit is up; zero: nothing is limited
	limit   *timeLimit
	headers time.Time // when the headers must be there
}

// awaitHeaders starts the limit to the response headers.
func (w *watchdog) awaitHeaders(now time.Time, limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.headers = now.Add(limit)
	w.headersOrLease(now)
}

// interim notes an interim response: a probe's lease runs anew, the limit to the
// headers does not.
func (w *watchdog) interim(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lease > 0 && !w.until.IsZero() && !w.headers.IsZero() {
		w.headersOrLease(now)
	}
}

func (w *watchdog) headersOrLease(now time.Time) {
	if silent := now.Add(w.lease); w.lease > 0 && silent.Before(w.headers) {
		w.set(now, silent, probeLimit)
		return
	}
	w.set(now, w.headers, headerLimit)
}

// await starts a limit to whatever the upstream sends next; 0 is no limit. The
// lease of a probe counts too, as long as leased is true.
func (w *watchdog) await(limit time.Duration, name *timeLimit, leased bool) {
	if leased && w.lease > 0 && (limit == 0 || w.lease < limit) {
		limit, name = w.lease, probeLimit
	}
	if limit == 0 {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.headers = time.Time{}
	w.set(now, now.Add(limit), name)
}

// pause stops counting, since the next step is the client's. A probe that waits
// for its client tells nothing about the upstream, and must not keep others from
// probing.
func (w *watchdog) pause(leased bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = time.Time{}
	if leased && w.lease > 0 {
		now := time.Now()
		w.set(now, now.Add(w.lease/2), stallLimit)
	}
}

// set moves the limit. The timer is left alone if it rings before that: it looks
// again then. Requires mu.
func (w *watchdog) set(now, until time.Time, limit *timeLimit) {
	w.until, w.limit = until, limit
	if !w.rings.IsZero() && !w.rings.After(until) {
		return
	}
	w.rings = until
	if w.timer == nil {
		w.timer = time.AfterFunc(until.Sub(now), w.ring)
	} else {
		w.timer.Reset(until.Sub(now))
	}
}

func (w *watchdog) ring() {
	w.mu.Lock()
	w.rings = time.Time{}
	until, limit := w.until, w.limit
	now := time.Now()
	if !until.IsZero() && now.Before(until) {
		w.set(now, until, limit)
		until = time.Time{}
	}
	w.mu.Unlock()
	switch {
	case until.IsZero():
	case limit == stallLimit:
		w.onStall()
	default:
		w.cancel(limit)
	}
}

// off ends the watch.
func (w *watchdog) off() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = time.Time{}
	if w.timer != nil {
		w.timer.Stop()
	}
}
