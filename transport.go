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
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// transport makes the attempts of an exchange. It is the embedded proxy's round
// tripper, and is of no use elsewhere.
type transport struct{}

// errElsewhere asks the proxy's loop for another iteration. As a dial error it
// makes the loop repeat whatever the method is.
var errElsewhere = reverseproxy.NewDialError(errors.New("attempt failed, the next one is reserved"))

var errNoExchange = errors.New("llm_gateway: round trip without an exchange")

// errRefused ends the proxy's loop; ServeHTTP then gives our own answer.
var errRefused = errors.New("no attempt is left")

// RoundTrip makes the attempt that the exchange has reserved. It returns an
// answer for the client, or reserves the next attempt and says so.
func (transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	if x == nil {
		return nil, errNoExchange
	}
	if x.current == nil {
		return x.conclude(&answer{})
	}
	x.current.proxied = req
	return x.current.roundTrip()
}

func (a *attempt) roundTrip() (*http.Response, error) {
	for {
		ans := a.run()
		if ans.verdict.Verdict == verdict.Success {
			a.x.contradicted()
			return a.relayBody(ans), nil
		}
		now := time.Now()
		if ans.res == nil && a.x.clientGone() {
			a.report(ans, a.clientLeft(now), now)
			a.release()
			return nil, context.Canceled
		}
		a.chargeKey(&ans.verdict, now)
		a.countError(ans, ans.verdict, now)
		a.record(ans, ans.verdict, now)
		if a.x.seekOpinion(a, ans) {
			return nil, errElsewhere
		}
		a.countAttempt(ans, ans.verdict)
		if a.tryAnotherKey(ans.verdict) {
			a.x.keep(ans)
			continue
		}
		a.settle(ans.verdict, now)
		return a.x.afterFailure(a, ans)
	}
}

// afterFailure moves the exchange to its next attempt, or concludes it with
// what it has.
func (x *exchange) afterFailure(a *attempt, ans *answer) (*http.Response, error) {
	x.note(ans)
	if ans.verdict.Elsewhere && x.next() {
		x.countFailover(a, ans.verdict)
		x.keep(ans)
		a.release()
		return nil, errElsewhere
	}
	x.current = a
	return x.conclude(ans)
}

// note counts how the attempt ended.
func (x *exchange) note(ans *answer) {
	x.unsent = ans.unsent
	if ans.verdict.ModelMissing {
		x.missing++
	}
	if ans.res == nil {
		x.silent++
		if ans.timedOut {
			x.timeouts++
		}
	}
}

// keep remembers an answer that is dropped for another attempt.
func (x *exchange) keep(ans *answer) {
	defer ans.drop()
	if ans.res == nil {
		return
	}
	if !ans.fit() {
		x.unfit = ans
	} else if ans.complete {
		x.held = ans
	}
}

// conclude answers the client when no attempt is left: with the last real
// answer that is fit for it, else with our own error.
func (x *exchange) conclude(ans *answer) (*http.Response, error) {
	agreed := ans.res != nil && ans.verdict.Verdict == verdict.Neutral
	if first := x.believed(agreed); first != nil && !agreed {
		// Nobody contradicts the refusal: the client gets it as it came.
		ans.drop()
		if x.current != nil {
			x.current.release()
		}
		return x.relay(first), nil
	}
	if ans.res != nil && ans.fit() {
		return x.relay(ans), nil
	}
	if ans.res != nil {
		x.unfit = ans
		ans.drop()
	}
	if x.current != nil {
		x.current.release()
	}
	if x.held != nil {
		return x.relay(x.held), nil
	}
	x.refusal = x.exhausted()
	return nil, errRefused
}

// relay returns an answer that is not a success as the response to the client.
func (x *exchange) relay(ans *answer) *http.Response {
	x.req.Release()
	x.outcome = outcomeFailed
	if ans.verdict.Verdict == verdict.Neutral {
		x.outcome = outcomeClientFault
	}
	if ans.status < http.StatusBadRequest {
		x.outcome = outcomeServed
	}
	res, a := ans.res, ans.try.a
	cleanResponse(res, a.policyHeader)
	if ans.complete {
		res.Body.Close()
		a.release()
		res.Body = io.NopCloser(bytes.NewReader(ans.head))
		return res
	}
	res.Body = &relayedBody{
		Reader: io.MultiReader(bytes.NewReader(ans.head), res.Body),
		body:   res.Body,
		res:    res,
		a:      a,
	}
	return res
}

// relayedBody is the body of an answer that is settled already and too long to
// be kept.
type relayedBody struct {
	io.Reader
	body io.Closer
	res  *http.Response
	a    *attempt
}

func (b *relayedBody) Read(p []byte) (int, error) {
	b.a.dog.await(b.a.ch.idleTimeout, idleLimit, false)
	defer b.a.dog.pause(false)
	return b.Reader.Read(p)
}

func (b *relayedBody) Close() error {
	err := b.body.Close()
	cleanHeader(b.res.Trailer)
	b.a.release()
	return err
}
