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
	"net/http"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/stream"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// relayBody returns the response of a successful try, with a body that judges
// what passes. From here on the client has the answer: nothing is retried.
func (a *attempt) relayBody(ans *answer) *http.Response {
	res := ans.res
	cleanResponse(res, a.policyHeader)
	if res.StatusCode == http.StatusSwitchingProtocols {
		now := time.Now()
		// The tunnel's end is none of the breaker's business. The body stays as
		// it is, since the proxy needs its writing half.
		a.dog.off()
		a.settle(ans.verdict, now)
		a.report(ans, ans.verdict, now)
		a.x.outcome = outcomeServed
		return res
	}
	a.x.req.Release()
	res.Body = &a.body
	if a.body.watcher.Stream() {
		// A stream that lacks its end must not look whole because it has the
		// length that was announced.
		res.Header.Del("Content-Length")
		res.ContentLength = -1
	}
	return res
}

// watcherOf returns what judges the body by its content; nil if nothing does.
// Of a request without a model no answer of a model is due: what a stored file
// contains is the caller's business.
func (a *attempt) watcherOf(res *http.Response) *stream.Watcher {
	if a.x.req.Model == "" || a.x.req.Method == http.MethodHead {
		return nil
	}
	return stream.NewEncoded(a.x.dialect, res.Header.Get("Content-Type"), res.Header.Get("Content-Encoding"), true)
}

// watchedBody passes a response body on untouched and settles the attempt by
// how it ends.
type watchedBody struct {
	a       *attempt
	ans     *answer
	body    io.ReadCloser
	watcher *stream.Watcher // nil: nothing can be told from the bytes
	held    []byte          // read, but not passed on
	late    chan lateRead   // a read that was not waited for; nil: there is none
	ended   bool
	err     error // what Read returns after the end
}

func (b *watchedBody) Read(p []byte) (int, error) {
	for {
		if len(b.held) > 0 {
			n := copy(p, b.held)
			b.held = b.held[n:]
			if b.ended && len(b.held) == 0 {
				return n, b.err
			}
			return n, nil
		}
		if b.ended {
			return 0, b.err
		}
		if b.late == nil {
			return b.fetch(p)
		}
		b.collect()
	}
}

// fetch reads the next bytes from the upstream.
func (b *watchedBody) fetch(p []byte) (int, error) {
	a := b.a
	a.dog.await(a.ch.idleTimeout, idleLimit, !a.delivered)
	n, err := b.body.Read(p)
	return n, b.received(p[:n], err)
}

// received notes what a read has brought.
func (b *watchedBody) received(p []byte, err error) error {
	if len(p) > 0 {
		b.pass(p)
	}
	if err != nil {
		b.end(err)
		return b.err
	}
	b.a.dog.pause(!b.a.delivered)
	return nil
}

// pass notes bytes on their way to the client.
func (b *watchedBody) pass(p []byte) {
	b.watcher.Write(p)
	if b.a.permit.Leased() {
		b.a.permit.Renew(time.Now())
	}
	if !b.a.delivered && b.watcher.Content() {
		b.a.delivered = true
		b.a.firstToken(time.Since(b.a.began))
		b.a.x.gw.transition(b.a.ch, b.a.permit.Content(time.Now()))
	}
}

// end settles the attempt after the last read. A body that is not whole ends
// with an error, so that the client sees a broken end and never a clean one.
func (b *watchedBody) end(err error) {
	b.a.dog.pause(false)
	now := time.Now()
	if b.clientBroke(err) {
		b.ended, b.err = true, err
		b.clientLeft(now)
		return
	}
	r, whole := b.judge(err, now)
	b.a.chargeKey(&r, now)
	if err != io.EOF {
		b.a.countError(&answer{cut: true}, r, now)
	}
	b.conclude(r, whole, now)
	if !whole {
		b.a.x.gw.warnCut(b.a, r)
	}
}

// clientBroke reports whether it is the client's leaving that ended the body.
func (b *watchedBody) clientBroke(err error) bool {
	return err != io.EOF && b.a.x.clientGone() && b.a.limitHit() == ""
}

// conclude settles the attempt.
func (b *watchedBody) conclude(r verdict.Result, whole bool, now time.Time) {
	b.ended = true
	b.a.settle(r, now)
	b.finish(r, now)
	b.a.x.outcome, b.err = outcomeServed, io.EOF
	if !whole {
		b.a.x.outcome, b.err = outcomeCut, io.ErrUnexpectedEOF
	}
}

// judge turns the end of a body into a verdict, and tells whether the client
// has got an answer that is whole.
func (b *watchedBody) judge(err error, now time.Time) (r verdict.Result, whole bool) {
	if limit := b.a.limitHit(); limit != "" {
		return failed(limit), false
	}
	if err != io.EOF {
		return failed("body cut"), false
	}
	switch b.watcher.End() {
	case stream.Cut:
		return failed("stream ended early"), false
	case stream.Empty:
		return failed("empty answer"), false
	case stream.Failed:
		r = b.judgeFailure(now)
		// A JSON document that tells of an error is all there; an event stream
		// that breaks off with one is not.
		return r, b.watcher.JSON() || r.Verdict == verdict.Neutral
	}
	return verdict.Result{Verdict: verdict.Success}, true
}

// judgeFailure judges the error that the body tells of, as though its status
// had been the answer's.
func (b *watchedBody) judgeFailure(now time.Time) verdict.Result {
	f := b.watcher.Failure()
	r := verdict.OfStreamError(b.a.ch.preset.ID, b.a.x.dialect, f.Code, f.Type, f.Message, f.Status, now)
	if b.a.ch.auth.passthrough {
		return ofClientsCredential(r)
	}
	if f.Status == 0 {
		return r
	}
	if matchesAny(f.Status, b.a.ch.failureOn) {
		return failed(r.Reason)
	}
	if x := b.a.x; x.gw.retryOn != nil && !r.ModelMissing {
		r.Elsewhere = matchesAny(f.Status, x.gw.retryOn)
	}
	return r
}

func failed(reason string) verdict.Result {
	return verdict.Result{Verdict: verdict.Failure, Elsewhere: true, Reason: reason}
}

// clientLeft settles an attempt whose client left in the middle of the answer.
func (b *watchedBody) clientLeft(now time.Time) {
	r := verdict.Result{Verdict: verdict.Neutral, Reason: "client left"}
	b.a.settle(r, now)
	b.finish(r, now)
	b.a.x.outcome = outcomeClientGone
}

// finish counts and notes how the answer ended.
func (b *watchedBody) finish(r verdict.Result, now time.Time) {
	b.ans.timedOut = b.ans.timedOut || b.a.limitHit() != ""
	b.a.countTokens(b.watcher.Usage())
	b.a.report(b.ans, r, now)
}

// Close ends the attempt. Before the end of the body only a client that does
// not take the rest makes the proxy close it.
func (b *watchedBody) Close() error {
	err := b.body.Close()
	if !b.ended {
		b.clientLeft(time.Now())
	}
	b.ended, b.err, b.held, b.late = true, http.ErrBodyReadAfterClose, nil, nil
	b.watcher.Free()
	b.watcher = nil
	cleanHeader(b.ans.res.Trailer)
	b.a.release()
	return err
}
