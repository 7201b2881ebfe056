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
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/llm-gateway/caddy-llm-gateway/credential"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// try is one sending of an attempt's request, with one key. What net/http's
// goroutines reach, also late, is its own.
type try struct {
	a     *attempt
	key   *credential.Key
	began time.Time

	ctx    context.Context
	cancel context.CancelCauseFunc
	dog    watchdog
	trace  httptrace.ClientTrace
	url    url.URL
	ans    answer

	firstByte atomic.Bool
	reused    atomic.Bool // the connection had served others before
}

// errDone is the cause with which a try's context ends when nothing more is
// wanted of it.
var errDone = errors.New("attempt is over")

// begin starts the try. Its context comes from the client's own, not from the
// proxy's: what an attempt that is replaced receives (a 1xx) must not reach the
// client.
func (t *try) begin() {
	a := t.a
	t.began = time.Now()
	t.ctx, t.cancel = context.WithCancelCause(a.x.ctx)
	t.dog.cancel = t.cancel
	t.trace.GotConn = t.gotConn
	t.trace.GotFirstResponseByte = t.sawByte
	if a.permit.Leased() {
		t.trace.Got1xxResponse = t.got1xx
		t.dog.lease = a.permit.ProbeTimeout()
		t.dog.onStall = a.clientStalls
	}
	t.dog.awaitHeaders(t.began, a.ch.headerTimeout(a.x.req.Stream))
}

func (t *try) gotConn(c httptrace.GotConnInfo) { t.reused.Store(c.Reused) }

func (t *try) got1xx(int, textproto.MIMEHeader) error {
	t.sawByte()
	t.dog.interim(time.Now())
	return nil
}

// sawByte notes that the upstream has sent something.
func (t *try) sawByte() {
	t.firstByte.Store(true)
	if t.a.permit.Leased() {
		t.a.permit.Renew(time.Now())
	}
}

// limitHit returns the name of the time limit that ended the try, "" if none
// did.
func (t *try) limitHit() string {
	if limit, ok := context.Cause(t.ctx).(*timeLimit); ok {
		return string(*limit)
	}
	return ""
}

// end stops the try.
func (t *try) end() {
	t.dog.off()
	if t.cancel != nil {
		t.cancel(errDone)
	}
}

// run sends the request and judges what comes of it. Success means that an
// answer has begun; its body is judged as it passes.
func (t *try) run() *answer {
	t.begin()
	res, err := t.send()
	if err != nil {
		return t.judgeError(err)
	}
	t.sawByte()
	ans := &t.ans
	*ans = answer{try: t, res: res, status: res.StatusCode}
	if res.StatusCode >= 300 {
		t.readHead(ans)
	} else {
		t.dog.pause(true)
	}
	ans.verdict = t.judge(ans)
	if ans.verdict.Verdict == verdict.Success && res.StatusCode != http.StatusSwitchingProtocols {
		t.peek(ans)
	}
	if ans.verdict.Warn != "" {
		t.a.x.gw.warnAnswer(t.a, ans)
	}
	return ans
}

// send sends the request. A reused connection that dies before the first byte of
// an answer was closed by the other side for being idle, most likely: that is
// nobody's fault, and the request goes out again on a new one. net/http does so
// itself unless a part of the body was written.
func (t *try) send() (*http.Response, error) {
	transport := t.a.ch.transport
	res, err := transport.RoundTrip(t.request())
	if err == nil || !t.diedOnReuse(err) || !t.a.x.repeatable() {
		return res, err
	}
	transport.Transport.CloseIdleConnections()
	t.reused.Store(false)
	return transport.RoundTrip(t.request())
}

func (t *try) diedOnReuse(err error) bool {
	if !t.reused.Load() || t.firstByte.Load() || t.ctx.Err() != nil {
		return false
	}
	kind, _ := verdict.OfTransport(err)
	return kind == verdict.Reset
}

func (t *try) judgeError(err error) *answer {
	ans := &t.ans
	*ans = answer{try: t}
	if limit := t.limitHit(); limit != "" {
		ans.timedOut = true
		ans.verdict = verdict.Result{Verdict: verdict.Failure, Elsewhere: true, Reason: limit}
		return ans
	}
	kind, text := verdict.OfTransport(err)
	ans.verdict = verdict.Result{Verdict: verdict.Failure, Elsewhere: true, Reason: text}
	ans.unsent = kind == verdict.Dial || kind == verdict.TLS || kind == verdict.Unsent
	timeout, ok := errors.AsType[net.Error](err)
	ans.timedOut = kind == verdict.Timeout || ok && timeout.Timeout()
	switch {
	case kind == verdict.Local: // it would be no better elsewhere
		ans.verdict.Verdict, ans.verdict.Elsewhere = verdict.Neutral, false
	case kind == verdict.Unsent:
		ans.verdict.Verdict = verdict.Neutral
	case t.diedOnReuse(err): // and may not be sent again
		ans.verdict.Verdict, ans.verdict.Elsewhere = verdict.Neutral, false
	}
	return ans
}

const (
	// judgedHead is how much of an error's body is looked at.
	judgedHead = 64 << 10
	// keptHead is up to where an error's body is read before it is judged: one
	// that ends there can still be relayed after another attempt.
	keptHead = 256 << 10
	// headTime is how long that may take in all: the status is known, and
	// somebody waits for the next attempt.
	headTime = 5 * time.Second
)

// readHead reads an error's body, as far as it takes to judge and keep it.
func (t *try) readHead(ans *answer) {
	t.dog.await(headTime, errorHeadLimit, true)
	defer t.dog.pause(false)
	buf := make([]byte, 0, 1024)
	for len(buf) < keptHead {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := ans.res.Body.Read(buf[len(buf):min(cap(buf), keptHead)])
		buf = buf[:len(buf)+n]
		if err != nil {
			ans.complete = err == io.EOF
			break
		}
	}
	ans.head = buf
}

// judge judges a response by its head.
func (t *try) judge(ans *answer) verdict.Result {
	res, x := ans.res, t.a.x
	if res.StatusCode == http.StatusSwitchingProtocols {
		if !isWebsocket(x.orig) {
			return verdict.Result{Verdict: verdict.Failure, Elsewhere: true, Reason: "status 101 nobody asked for"}
		}
		return verdict.Result{Verdict: verdict.Success}
	}
	if res.StatusCode < 300 && res.ContentLength == 0 && x.req.Model != "" && x.req.Method != http.MethodHead {
		return verdict.Result{Verdict: verdict.Failure, Elsewhere: true, Reason: "empty body"}
	}
	if matchesAny(res.StatusCode, t.a.ch.failureOn) {
		return verdict.Result{Verdict: verdict.Failure, Elsewhere: true, Reason: "status " + strconv.Itoa(res.StatusCode) + " (failure_on)"}
	}
	now := t.began // a success tells no times
	if res.StatusCode >= 300 {
		now = time.Now()
	}
	r := verdict.OfAnswer(verdict.Answer{
		Provider: t.a.ch.preset.ID,
		Dialect:  x.dialect,
		Status:   res.StatusCode,
		Header:   res.Header,
		Body:     ans.head[:min(len(ans.head), judgedHead)],
		Model:    t.a.model,
		HasModel: x.req.Model != "",
		Now:      now,
	})
	if x.gw.retryOn != nil && res.StatusCode >= 300 && !r.ModelMissing {
		r.Elsewhere = matchesAny(res.StatusCode, x.gw.retryOn)
	}
	if t.a.ch.auth.passthrough {
		r = ofClientsCredential(r)
	}
	return r
}

// matchesAny reports whether the status is in the list, in which a number below
// 10 is a class.
func matchesAny(status int, list []int) bool {
	return slices.ContainsFunc(list, func(n int) bool { return caddyhttp.StatusCodeMatches(status, n) })
}
