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
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/dialect"
	"github.com/llm-gateway/caddy-llm-gateway/request"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// exchange is one client request on its way through the gateway: what it asks
// for, who could serve it, and what became of each attempt. It is used by the
// goroutine that serves the request alone.
type exchange struct {
	gw    *gateway
	orig  *http.Request // as the client sent it; Caddy's policies look at it
	ctx   context.Context
	began time.Time

	dialect dialect.Dialect
	req     *request.Request
	session uint64 // by which affinity binds the request; 0: by nothing
	cands   []candidate
	pool    []int     // scratch of choose: indexes into cands
	weights []float64 // the effective weights of pool

	policyHeader http.Header // set by the policy for the attempt it chose last
	current      *attempt    // reserved by next, not yet replaced
	attempts     int         // reservations so far
	// triedClosed is set once an attempt went to a pair whose breaker was
	// closed: from then on no open breaker is probed before its time.
	triedClosed bool

	last     verdict.Result // of the newest settled attempt
	unsent   bool           // the newest attempt failed before anything was sent
	held     *answer        // the last answer fit for the client that was dropped for another attempt
	unfit    *answer        // the last answer that is not
	timeouts int            // attempts that ended by a time limit
	silent   int            // attempts that ended without an answer
	missing  int            // attempts whose upstream does not know the model
	doubted  *opinion       // a refusal about which another channel is being asked
	refusal  *gatewayError  // our own answer, once there is one

	records []attemptRecord
	outcome outcome

	// Most requests need no more than this: one piece of memory in place of many.
	first     attempt
	candBuf   [4]candidate
	poolBuf   [4]int
	weightBuf [4]float64
	recordBuf [1]attemptRecord
}

type exchangeKey struct{}

// exchangeOf returns the exchange that ServeHTTP hung on the context; nil if
// there is none.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

func newExchange(gw *gateway, r *http.Request) *exchange {
	x := &exchange{gw: gw, orig: r, ctx: r.Context(), began: time.Now()}
	x.cands, x.pool, x.weights, x.records = x.candBuf[:0], x.poolBuf[:0], x.weightBuf[:0], x.recordBuf[:0]
	gw.budget.requests.Add(1)
	x.showInLogs()
	return x
}

// admit takes up what the request asks for, and finds who could serve it.
func (x *exchange) admit(q *request.Request) {
	x.req, x.dialect = q, q.Dialect
	x.cands = x.gw.routes.candidates(q, x.cands)
	if x.orig != nil {
		x.session = x.gw.affinity.session(x.orig, q)
	}
	for i := range x.cands {
		x.gw.lapse(x.cands[i].channel, x.began)
	}
}

// clientGone reports whether the client has left. It is decided by the client's
// own context, never by an error: attempts have contexts of their own, and
// errors of the transport do not tell whose context ended.
func (x *exchange) clientGone() bool { return x.ctx.Err() != nil }

// repeatable reports whether the request may be sent a second time. Requests
// that name no model may create or delete something at the one account they
// belong to.
func (x *exchange) repeatable() bool {
	return x.req.Model != "" || x.req.Method == http.MethodGet || x.req.Method == http.MethodHead
}

// next reserves the next attempt: channel, key, upstream model, breaker permit
// and a place among max_requests. It reports whether there is one. It is the
// one place where a choice is made: called before the first attempt, and by
// the transport before it drops an answer.
func (x *exchange) next() bool {
	x.current = nil
	if x.clientGone() || !x.mayTryAgain() {
		return false
	}
	now := time.Now()
	for i := range x.cands {
		x.cands[i].skip = false
	}
	for {
		x.policyHeader = nil
		c := x.choose(now)
		if c == nil {
			return x.nextEarly(now) || x.gw.bestEffort && x.attempts == 0 && x.nextBestEffort(now)
		}
		if x.reserve(c, now, false) {
			return true
		}
		c.skip = true // somebody else took the lease, the place or the key
	}
}

func (x *exchange) mayTryAgain() bool {
	if x.attempts == 0 {
		return true
	}
	if x.attempts > x.gw.retries || x.timeIsUp() {
		return false
	}
	return x.repeatable() || x.unsent || x.last.Verdict == verdict.Credential || x.last.Forbidden
}

// timeIsUp reports whether no attempt may begin any more.
func (x *exchange) timeIsUp() bool {
	return x.gw.tryDuration > 0 && time.Since(x.began) >= x.gw.tryDuration
}

// choose returns the candidate for the next attempt, nil if none is usable.
func (x *exchange) choose(now time.Time) *candidate {
	if x.attempts > 0 && x.attempts == x.gw.retries {
		// The last attempt is not spent on a host that failed already.
		if c := x.chooseAmong(now, true); c != nil {
			return c
		}
	}
	return x.chooseAmong(now, false)
}

// chooseAmong lets the policy pick from the best group that has a usable
// candidate.
func (x *exchange) chooseAmong(now time.Time, freshHost bool) *candidate {
	for from := 0; from < len(x.cands); {
		to := from + 1
		for to < len(x.cands) && x.cands[to].group == x.cands[from].group {
			to++
		}
		if c := x.chooseFrom(from, to, now, freshHost); c != nil {
			return c
		}
		from = to
	}
	return nil
}

// chooseFrom picks from the group of the candidates from and up to to.
func (x *exchange) chooseFrom(from, to int, now time.Time, freshHost bool) *candidate {
	if x.session == 0 && x.gw.policy.inner == nil && to-from > smallGroup {
		if c := x.sample(from, to, now, freshHost); c != nil {
			return c
		}
	}
	x.pool, x.weights = x.pool[:0], x.weights[:0]
	for i := from; i < to; i++ {
		c := &x.cands[i]
		if x.passedOver(c, freshHost) {
			continue
		}
		if weight, out := c.look(now); out.reason == usable {
			x.pool, x.weights = append(x.pool, i), append(x.weights, weight)
		}
	}
	if len(x.pool) == 0 {
		return nil
	}
	return x.gw.policy.pick(x)
}

func (x *exchange) passedOver(c *candidate, freshHost bool) bool {
	return c.tried || c.skip || freshHost && x.hostTried(c.base.Host)
}

const (
	// smallGroup is up to how many candidates all of a group are looked at.
	smallGroup = 8
	// samples is how often a large group is tried without that.
	samples = 4
)

// sample draws from a large group without looking at all of it: a candidate is
// drawn by its configured weight, and taken as often as its effective weight is
// of that. What is taken is distributed as though all had been looked at. It
// returns nil if it was unlucky, as when many are out.
func (x *exchange) sample(from, to int, now time.Time, freshHost bool) *candidate {
	total := 0.0
	for i := from; i < to; i++ {
		total += x.cands[i].weight
	}
	for range samples {
		point := rand.Float64() * total
		i := from
		for ; i < to-1 && point >= x.cands[i].weight; i++ {
			point -= x.cands[i].weight
		}
		c := &x.cands[i]
		if x.passedOver(c, freshHost) {
			continue
		}
		if weight, out := c.look(now); out.reason == usable && rand.Float64()*c.weight < weight {
			return c
		}
	}
	return nil
}

func (x *exchange) hostTried(host string) bool {
	for i := range x.cands {
		if x.cands[i].tried && x.cands[i].base.Host == host {
			return true
		}
	}
	return false
}

// nextEarly lets the request probe an open breaker before its time. That is for
// outages of everything: without it a ten second outage would last until the
// breakers' next probe.
func (x *exchange) nextEarly(now time.Time) bool {
	for !x.triedClosed {
		i := x.earliest(now)
		if i < 0 {
			return false
		}
		if x.reserve(&x.cands[i], now, true) {
			return true
		}
		x.cands[i].skip = true
	}
	return false
}

// earliest returns the index of the candidate that may be probed before its
// time, -1 if there is none.
func (x *exchange) earliest(now time.Time) int {
	return slices.IndexFunc(x.cands, func(c candidate) bool {
		return !c.tried && !c.skip && c.blocked(now).reason == usable && c.state.breakers.Look(c.model, now).Early
	})
}

// hasOther reports whether an attempt could follow on another candidate.
func (x *exchange) hasOther() bool {
	if x.attempts > x.gw.retries || !x.repeatable() {
		return false
	}
	now := time.Now()
	for i := range x.cands {
		if c := &x.cands[i]; !c.tried {
			if _, out := c.look(now); out.reason == usable {
				return true
			}
		}
	}
	return false
}

// reserve takes everything that an attempt at c needs, or nothing at all.
func (x *exchange) reserve(c *candidate, now time.Time, early bool) bool {
	budgeted := !x.freeMove(c, now)
	if budgeted && !x.gw.budget.take() {
		retriesRejected.WithLabelValues(x.gw.name).Inc()
		return false
	}
	a := x.admitted(c, now, early)
	if a == nil {
		if budgeted {
			x.gw.budget.giveBack()
		}
		return false
	}
	a.budgeted = budgeted
	c.tried = true
	x.attempts++
	x.triedClosed = x.triedClosed || !a.permit.Probe()
	a.policyHeader = x.policyHeader
	x.current = a
	return true
}

// freeMove reports whether an attempt at c needs no budget: the first one, and
// the first move away from a channel if it goes to one whose breaker is closed.
func (x *exchange) freeMove(c *candidate, now time.Time) bool {
	return x.attempts == 0 || x.attempts == 1 && c.state.breakers.Look(c.model, now).State == breaker.Closed
}

// admitted returns an attempt with a place, a key and a permit; nil if one of
// them is not to be had.
func (x *exchange) admitted(c *candidate, now time.Time, early bool) *attempt {
	if !c.takePlace() {
		return nil
	}
	key := x.pickKey(c.channel, c.model, now, nil)
	if key == nil {
		c.state.inFlight.Add(-1)
		return nil
	}
	a := newAttempt(x, c, key)
	admit := c.state.breakers.Admit
	if early {
		admit = c.state.breakers.AdmitEarly
	}
	ok, change := admit(&a.permit, c.model, now, x.req.Stream)
	x.gw.transition(c.channel, change)
	if !ok {
		c.state.inFlight.Add(-1)
		return nil
	}
	return a
}

// takePlace counts an attempt in, unless the channel is full.
func (c *candidate) takePlace() bool {
	if c.maxRequests == 0 {
		c.state.inFlight.Add(1)
		return true
	}
	for {
		n := c.state.inFlight.Load()
		if n >= c.maxRequests {
			return false
		}
		if c.state.inFlight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// finish ends whatever the request leaves open, whichever way ServeHTTP is
// left: normally, by an error, or by the panic with which the embedded proxy
// aborts a response.
func (x *exchange) finish() {
	x.gw.budget.requests.Add(-1)
	x.believed(false)
	if x.current != nil {
		x.current.abandon()
	}
	if x.req != nil {
		x.req.Release()
	}
	if x.outcome == "" {
		x.outcome = outcomeFailed
		if x.clientGone() {
			x.outcome = outcomeClientGone
		}
	}
	x.countRequest()
}
