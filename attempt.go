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
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/credential"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// attempt is one reservation of a channel for one request: a breaker permit, a
// place in flight, and the keys that are tried under them. Its fields belong to
// the goroutine that serves the request, but for what is atomic.
type attempt struct {
	x       *exchange
	ch      *channel
	model   string
	proxied *http.Request // as the embedded proxy prepared it
	permit  breaker.Permit

	key      *credential.Key
	tried    []*credential.Key
	switches int
	// limitedUntil is when the last limit that a key of this attempt ran into
	// ends.
	limitedUntil time.Time

	policyHeader http.Header // for the client, if this attempt is relayed

	// Of the try with the current key.
	began  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  atomic.Pointer[timeLimit] // what timer is for
	trace  httptrace.ClientTrace

	firstByte atomic.Bool
	reused    atomic.Bool // the connection had served others before
	delivered bool        // content went to the client
	settled   bool
	released  bool

	triedBuf [2]*credential.Key
	url      url.URL     // of its request
	ans      answer      // of the try with the current key
	body     watchedBody // what the client reads of a success
}

func newAttempt(x *exchange, c *candidate, key *credential.Key) *attempt {
	a := &x.first
	if a.x != nil {
		a = new(attempt)
	}
	a.x, a.ch, a.model, a.key = x, c.channel, c.model, key
	a.tried = append(a.triedBuf[:0], key)
	a.trace.GotConn = a.gotConn
	a.trace.GotFirstResponseByte = a.sawByte
	return a
}

// A timeLimit is the cause with which an attempt's context is cancelled when
// one of its time limits is up.
type timeLimit string

func (l *timeLimit) Error() string { return string(*l) + " exceeded" }

func newTimeLimit(name string) *timeLimit {
	l := timeLimit(name)
	return &l
}

var (
	headerLimit    = newTimeLimit("header_timeout")
	idleLimit      = newTimeLimit("idle_timeout")
	probeLimit     = newTimeLimit("probe_timeout")
	errorHeadLimit = newTimeLimit("error body")
)

// errDone is the cause with which an attempt's context ends when nothing more
// is wanted of it.
var errDone = errors.New("attempt is over")

func (a *attempt) gotConn(c httptrace.GotConnInfo) { a.reused.Store(c.Reused) }

// got1xx notes an interim response of a probe's upstream.
func (a *attempt) got1xx(int, textproto.MIMEHeader) error {
	a.sawByte()
	a.limitHeaders(time.Now())
	return nil
}

// begin starts a try with the current key. The context comes from the client's
// own, not from the proxy's: what an attempt that is replaced receives (a 1xx)
// must not reach the client.
func (a *attempt) begin() {
	a.began = time.Now()
	a.firstByte.Store(false)
	a.ctx, a.cancel = context.WithCancelCause(a.x.ctx)
	if a.permit.Leased() {
		a.trace.Got1xxResponse = a.got1xx
	}
	a.limitHeaders(a.began)
}

// limitHeaders arms the limit to the response headers. A probe may also not go
// without a byte for longer than its lease.
func (a *attempt) limitHeaders(now time.Time) {
	left := a.began.Add(a.ch.headerTimeout(a.x.req.Stream)).Sub(now)
	limit := headerLimit
	if lease := a.permit.ProbeTimeout(); lease > 0 && lease < left {
		left, limit = lease, probeLimit
	}
	a.arm(left, limit)
}

// limitBody arms the limit between two bytes of the response body.
func (a *attempt) limitBody() {
	left, limit := a.ch.idleTimeout, idleLimit
	if lease := a.permit.ProbeTimeout(); lease > 0 && !a.delivered && !a.settled && (left == 0 || lease < left) {
		left, limit = lease, probeLimit
	}
	a.arm(left, limit)
}

// arm cancels the attempt after d, unless it is armed anew before; 0 disarms.
func (a *attempt) arm(d time.Duration, limit *timeLimit) {
	if d <= 0 {
		a.disarm()
		return
	}
	a.limit.Store(limit)
	if a.timer != nil {
		a.timer.Reset(d)
		return
	}
	cancel := a.cancel
	a.timer = time.AfterFunc(d, func() { cancel(a.limit.Load()) })
}

func (a *attempt) disarm() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// limitHit returns the name of the time limit that ended the attempt, "" if none
// did.
func (a *attempt) limitHit() string {
	if limit, ok := context.Cause(a.ctx).(*timeLimit); ok {
		return string(*limit)
	}
	return ""
}

// sawByte notes that the upstream has sent something. It is called by the HTTP
// transport's goroutines too.
func (a *attempt) sawByte() {
	a.firstByte.Store(true)
	if a.permit.Leased() {
		a.permit.Renew(time.Now())
	}
}

// tryAnotherKey moves the attempt to the next usable key under the same permit,
// if r calls for it and the request may be sent again.
func (a *attempt) tryAnotherKey(r verdict.Result) bool {
	allowed := 2
	switch {
	case r.Verdict == verdict.Limited:
		allowed = 1
	case r.Verdict != verdict.Credential && !r.Forbidden:
		return false
	}
	if a.x.clientGone() || r.Verdict == verdict.Limited && !a.x.repeatable() {
		return false
	}
	if a.switches >= allowed && a.x.hasOther() {
		return false
	}
	now := time.Now()
	if out := a.ch.state.breakers.Look(a.model, now); out.Limited.After(now) {
		return false // the second key in a row was limited: it is the account
	}
	key := a.ch.keys.Pick(a.model, now, a.tried)
	if key == nil {
		return false
	}
	a.end()
	a.key = key
	a.tried = append(a.tried, key)
	a.switches++
	return true
}

// chargeKey keeps what r says about the key. A 403 that tells no reason becomes
// the key's fault when it is the second in a row.
func (a *attempt) chargeKey(r *verdict.Result, now time.Time) {
	keys := a.ch.keys
	if r.Forbidden && keys.Forbidden(a.key, now) {
		r.Verdict = verdict.Credential
	}
	switch r.Verdict {
	case verdict.Credential:
		keys.Refused(a.key, a.began, now)
	case verdict.Limited:
		until, pairUntil := keys.Limited(a.key, a.model, now, r.Pause)
		if !pairUntil.IsZero() {
			a.ch.state.breakers.Pause(a.model, now, pairUntil)
			until = pairUntil
		}
		a.limitedUntil = until
	}
}

// settle gives the permit back with the verdict. It does so once.
func (a *attempt) settle(r verdict.Result, now time.Time) {
	if a.settled {
		return
	}
	a.settled = true
	a.x.last = r
	a.x.gw.transition(a.ch, a.charge(r, now))
}

func (a *attempt) charge(r verdict.Result, now time.Time) breaker.Change {
	switch r.Verdict {
	case verdict.Success:
		a.ch.keys.Succeeded(a.key, a.model)
		return a.permit.Success(now)
	case verdict.Failure:
		if r.Overload && r.Pause > 0 {
			a.ch.state.breakers.Pause(a.model, now, now.Add(r.Pause))
		}
		return a.permit.Failure(now, breaker.Cause{Text: r.Reason, Break: a.delivered})
	case verdict.Limited:
		return a.permit.Limited(now, a.limitedUntil)
	case verdict.Credential:
		if a.ch.keys.Look(a.model, now).Usable == 0 {
			return a.permit.Failure(now, breaker.Cause{Text: r.Reason, Credential: true})
		}
	}
	return a.permit.Release(now)
}

// clientLeft settles an attempt whose client left before an answer. That says
// nothing about the upstream, unless the client waited long for a single byte,
// nobody else got an answer meanwhile, and it was not us who ended the request.
func (a *attempt) clientLeft(now time.Time) verdict.Result {
	r := verdict.Result{Verdict: verdict.Neutral, Reason: "client left"}
	waited := now.Sub(a.began)
	limit := a.x.gw.abandonAfter
	if limit > 0 && waited >= limit && !a.firstByte.Load() &&
		!a.permit.SucceededSince() && !a.x.gw.app.unloading() {
		r.Verdict = verdict.Failure
		r.Reason = fmt.Sprintf("client left after %s without a byte", waited.Round(time.Second/10))
	}
	a.settle(r, now)
	return r
}

// end stops the try with the current key.
func (a *attempt) end() {
	a.disarm()
	if a.cancel != nil {
		a.cancel(errDone)
	}
}

// release ends the attempt and gives its place back. It does so once.
func (a *attempt) release() {
	if a.released {
		return
	}
	a.released = true
	a.end()
	a.ch.state.inFlight.Add(-1)
}

// abandon ends an attempt that ServeHTTP leaves behind: one that was reserved
// and never sent, or whose tunnel or response was still open.
func (a *attempt) abandon() {
	a.settle(verdict.Result{Verdict: verdict.Neutral, Reason: "not finished"}, time.Now())
	a.release()
}
