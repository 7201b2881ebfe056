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
	"fmt"
	"net/http"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/credential"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// attempt is one reservation of a channel for one request: a breaker permit, a
// place in flight, and the keys that are tried under them. It belongs to the
// goroutine that serves the request.
type attempt struct {
	x       *exchange
	ch      *channel
	model   string
	proxied *http.Request // as the embedded proxy prepared it
	permit  breaker.Permit

	*try     // with the current key
	tried    []*credential.Key
	switches int
	// forbidden is set once a 403 without a reason was charged to a key of this
	// attempt: if the next key gets one too, it is the request.
	forbidden bool
	// limitedUntil is when the last limit that a key of this attempt ran into
	// ends.
	limitedUntil time.Time

	policyHeader http.Header // for the client, if this attempt is relayed
	body         watchedBody // what the client reads of a success
	delivered    bool        // content went to the client
	budgeted     bool        // it holds a place in the retry budget
	settled      bool
	released     bool

	firstTry try
	triedBuf [2]*credential.Key
}

func newAttempt(x *exchange, c *candidate, key *credential.Key) *attempt {
	a := &x.first
	if a.x != nil {
		a = new(attempt)
	}
	a.x, a.ch, a.model = x, c.channel, c.model
	a.tried = append(a.triedBuf[:0], key)
	a.try = &a.firstTry
	a.try.a, a.try.key = a, key
	return a
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
	if a.x.clientGone() || a.x.timeIsUp() || r.Verdict == verdict.Limited && !a.x.repeatable() {
		return false
	}
	if a.switches >= allowed && a.x.hasOther() {
		return false
	}
	now := time.Now()
	if out := a.ch.state.breakers.Look(a.model, now); out.Limited.After(now) {
		return false // the second key in a row was limited: it is the account
	}
	key := a.x.pickKey(a.ch, a.model, now, a.tried)
	if key == nil {
		return false
	}
	a.end()
	a.try = &try{a: a, key: key}
	a.tried = append(a.tried, key)
	a.switches++
	return true
}

// chargeKey keeps what r says about the key. A 403 that tells no reason becomes
// the key's fault when it is the second in a row.
func (a *attempt) chargeKey(r *verdict.Result, now time.Time) {
	keys := a.ch.keys
	if r.Forbidden && !a.forbidden {
		a.forbidden = true
		if keys.Forbidden(a.key, now) {
			r.Verdict = verdict.Credential
		}
	}
	wasUsable := keys.Usable(a.key.ID(), a.model, now)
	switch r.Verdict {
	case verdict.Credential:
		until := keys.Refused(a.key, a.began, now)
		if wasUsable {
			a.x.gw.keyOut("key refused, it pauses", a, r.Reason, until)
		}
	case verdict.Limited:
		until, pairUntil := keys.Limited(a.key, a.model, now, r.Pause)
		if a.ch.limitsAll && pairUntil.IsZero() {
			pairUntil = until
		}
		if !pairUntil.IsZero() {
			a.ch.state.breakers.Pause(a.model, now, pairUntil)
			until = pairUntil
		}
		a.limitedUntil = until
		if wasUsable {
			a.x.gw.keyOut("key limited, it pauses for the model", a, r.Reason, until)
		}
	}
}

// modelMissing begins the cause of a failure that says that the upstream does not
// know the model.
const modelMissing = "no such model: "

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
		a.ch.state.disables.Success(a.key.ID(), a.began, now)
		a.ch.state.doubts.answered(a.model)
		return a.permit.Success(now)
	case verdict.Failure:
		if r.Overload && r.Pause > 0 {
			a.ch.state.breakers.Pause(a.model, now, now.Add(r.Pause))
		}
		text := r.Reason
		if r.ModelMissing {
			text = modelMissing + text
		}
		return a.permit.Failure(now, breaker.Cause{Text: text, Break: a.delivered})
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

// clientStalls gives the lease of a probe back whose client does not take the
// answer. It is called by the watchdog's goroutine; what the attempt settles
// later then changes nothing.
func (a *attempt) clientStalls() {
	a.x.gw.transition(a.ch, a.permit.Release(time.Now()))
}

// release ends the attempt and gives its place back. It does so once.
func (a *attempt) release() {
	if a.released {
		return
	}
	a.released = true
	a.end()
	a.ch.state.inFlight.Add(-1)
	if a.budgeted {
		a.x.gw.budget.giveBack()
	}
	if a.x.gw.ctx.Err() != nil {
		// The config is gone, and nobody else will use its connections. Caddy
		// closed those that were idle then, but later requests keep theirs.
		a.ch.transport.Transport.CloseIdleConnections()
	}
}

// abandon ends an attempt that ServeHTTP leaves behind: one that was reserved
// and never sent, or whose tunnel or response was still open.
func (a *attempt) abandon() {
	a.settle(verdict.Result{Verdict: verdict.Neutral, Reason: "not finished"}, time.Now())
	a.release()
}
