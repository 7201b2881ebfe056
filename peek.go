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
	"io"
	"slices"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

const (
	// peekedHead is how much of an answer is held back while it is not yet clear
	// what it is.
	peekedHead = 64 << 10
	// peekedEvent is up to where a single event is held back to its end.
	peekedEvent = 1 << 20
	// peekedRead is the room for one read.
	peekedRead = 4 << 10
)

// lateRead is what a read has brought that was not waited for.
type lateRead struct {
	p   []byte
	err error
}

// peek holds the head of a success back until it shows what it is. As long as
// nothing of it has reached the client, an answer that turns out to be none can
// be replaced by another one. In that case, and when the client has left, the
// answer's verdict is no success any more.
func (t *try) peek(ans *answer) {
	a := t.a
	a.body = watchedBody{a: a, ans: ans, body: ans.res.Body, watcher: a.watcherOf(ans.res)}
	b := &a.body
	if b.watcher == nil {
		return
	}
	if a.x.req.Stream && b.watcher.JSON() {
		ans.verdict.Warn = "one JSON document in answer to a request for a stream"
	}
	if err := b.hold(); err != nil {
		b.endHeld(err)
	} else if b.watcher.Failure() != nil {
		b.replace(b.judgeFailure(time.Now()))
	}
}

// hold reads on until it is clear what the answer is, or until it has been held
// back for long enough. It returns how the body has ended, if it has.
func (b *watchedBody) hold() error {
	if b.watcher.Stream() {
		if limit := b.a.ch.firstTokenTimeout; limit > 0 {
			return b.holdUntil(b.a.began.Add(limit))
		}
		return b.holdFor(b.a.x.gw.peekTimeout)
	}
	if b.a.x.gw.peekTimeout == 0 {
		return nil
	}
	var err error
	for err == nil && !b.decided() {
		err = b.readAhead(b.a.ch.idleTimeout, idleLimit)
	}
	return err
}

// decided reports whether no more of the body needs to be held back.
func (b *watchedBody) decided() bool {
	n := len(b.held)
	switch {
	case b.watcher.JSON():
		return n >= peekedHead
	case !b.watcher.Stream():
		return n > 0 // nothing can be told of it but that it is there
	case b.watcher.Begun():
		return true
	}
	return n >= peekedHead && !b.watcher.Pending() || n >= peekedEvent
}

// room makes room for a read behind what is held.
func (b *watchedBody) room() {
	if len(b.held) < cap(b.held) {
		return
	}
	size := peekedRead
	if b.held == nil && b.watcher.JSON() {
		// A body of known length needs no second piece of memory.
		if length := b.ans.res.ContentLength; length > 0 {
			size = int(min(length, peekedHead)) + 1
		}
	}
	b.held = slices.Grow(b.held, max(size, len(b.held)))
}

// readAhead reads once, under a time limit.
func (b *watchedBody) readAhead(limit time.Duration, name *timeLimit) error {
	b.room()
	b.a.dog.await(limit, name, !b.a.delivered)
	n, err := b.body.Read(b.held[len(b.held):cap(b.held)])
	b.a.dog.pause(!b.a.delivered)
	b.take(n)
	return err
}

// take adds n bytes that were read behind what is held.
func (b *watchedBody) take(n int) {
	if n > 0 {
		b.held = b.held[:len(b.held)+n]
		b.pass(b.held[len(b.held)-n:])
	}
}

// holdUntil holds a stream back that must have begun by then.
func (b *watchedBody) holdUntil(deadline time.Time) error {
	for !b.decided() {
		limit, name := time.Until(deadline), firstTokenLimit
		if idle := b.a.ch.idleTimeout; idle > 0 && idle < limit {
			limit, name = idle, idleLimit
		}
		if err := b.readAhead(max(limit, 1), name); err != nil {
			return err
		}
	}
	return nil
}

// holdFor holds a stream back for at most that long. A read that takes longer
// is left to itself, and collected by the client's next read.
func (b *watchedBody) holdFor(limit time.Duration) error {
	if limit == 0 {
		return nil
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for !b.decided() {
		b.room()
		b.a.dog.await(b.a.ch.idleTimeout, idleLimit, !b.a.delivered)
		late := make(chan lateRead, 1)
		go readLate(b.body, b.held[len(b.held):cap(b.held)], late)
		select {
		case got := <-late:
			b.a.dog.pause(!b.a.delivered)
			b.take(len(got.p))
			if got.err != nil {
				return got.err
			}
		case <-timer.C:
			b.late = late
			return nil
		}
	}
	return nil
}

func readLate(body io.Reader, p []byte, late chan<- lateRead) {
	n, err := body.Read(p)
	late <- lateRead{p[:n], err}
}

// collect waits for the read that was left to itself.
func (b *watchedBody) collect() {
	got := <-b.late
	b.late, b.held = nil, got.p
	b.received(got.p, got.err)
}

// endHeld judges an answer that has ended before anything of it went on.
func (b *watchedBody) endHeld(err error) {
	if b.clientBroke(err) {
		b.ans.drop()
		b.ans.res, b.ans.verdict = nil, verdict.Result{Verdict: verdict.Neutral}
		return
	}
	now := time.Now()
	r, whole := b.judge(err, now)
	b.ans.complete, b.ans.cut = err == io.EOF, err != io.EOF
	if b.replace(r) {
		if b.a.limitHit() != "" { // then there was no answer
			b.ans.drop()
			b.ans.res, b.ans.timedOut = nil, true
		}
		return
	}
	b.a.chargeKey(&r, now)
	b.conclude(r, whole, now)
}

// replace gives the answer up, if r says that it can be had elsewhere or is none.
// A fault of the caller's own goes to the caller as it came.
func (b *watchedBody) replace(r verdict.Result) bool {
	if r.Verdict == verdict.Success || r.Verdict == verdict.Neutral && !r.Elsewhere {
		return false
	}
	if f := b.watcher.Failure(); f != nil {
		b.ans.inner = f.Status
	}
	b.a.countTokens(b.watcher.Usage())
	b.ans.verdict, b.ans.head = r, b.held
	b.watcher.Free()
	b.watcher = nil
	return true
}
