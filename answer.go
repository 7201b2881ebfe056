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

	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// answer is how one try ended: with a response, or with an error of the
// transport.
type answer struct {
	attempt *attempt
	res     *http.Response // nil: there was none
	status  int
	verdict verdict.Result

	head     []byte // of an error's body
	complete bool   // head is all of it

	unsent   bool // nothing of the request was sent
	timedOut bool
}

const (
	// errorHead is how much of an error's body is read to judge it.
	errorHead = 64 << 10
	// errorHeadIdle is how long an error's body may go without a byte: the
	// status is known, and somebody waits for the next attempt.
	errorHeadIdle = 5 * time.Second
)

// try sends the request once and judges what comes of it. Success means that
// an answer has begun; its body is judged as it passes.
func (a *attempt) try() *answer {
	res, err := a.send()
	if err != nil {
		return a.judgeError(err)
	}
	a.sawByte()
	ans := &a.ans
	*ans = answer{attempt: a, res: res, status: res.StatusCode}
	if res.StatusCode >= 300 {
		a.readHead(ans)
	}
	ans.verdict = a.judge(ans)
	if ans.verdict.Warn != "" {
		a.x.gw.warnAnswer(a, ans)
	}
	return ans
}

// judge judges a response by its head.
func (a *attempt) judge(ans *answer) verdict.Result {
	res, x := ans.res, a.x
	if res.StatusCode == http.StatusSwitchingProtocols {
		return verdict.Result{Verdict: verdict.Success}
	}
	if res.StatusCode < 300 && res.ContentLength == 0 && x.req.Model != "" && x.req.Method != http.MethodHead {
		return verdict.Result{Verdict: verdict.Failure, Elsewhere: true, Reason: "empty body"}
	}
	now := a.began // a success tells no times
	if res.StatusCode >= 300 {
		now = time.Now()
	}
	return verdict.OfAnswer(verdict.Answer{
		Provider: a.ch.preset.ID,
		Dialect:  x.dialect,
		Status:   res.StatusCode,
		Header:   res.Header,
		Body:     ans.head,
		Model:    a.model,
		HasModel: x.req.Model != "",
		Now:      now,
	})
}

// send sends the request. A reused connection that dies before the first byte of
// an answer was closed by the other side for being idle, most likely: that is
// nobody's fault, and the request goes out again on a new one. net/http does so
// itself unless a part of the body was written.
func (a *attempt) send() (*http.Response, error) {
	a.begin()
	res, err := a.ch.transport.RoundTrip(a.request())
	if err == nil || !a.diedOnReuse(err) {
		return res, err
	}
	a.ch.transport.Transport.CloseIdleConnections()
	return a.ch.transport.RoundTrip(a.request())
}

func (a *attempt) diedOnReuse(err error) bool {
	if !a.reused.Load() || a.firstByte.Load() || !a.x.repeatable() || a.ctx.Err() != nil {
		return false
	}
	kind, _ := verdict.OfTransport(err)
	return kind == verdict.Reset
}

func (a *attempt) judgeError(err error) *answer {
	ans := &a.ans
	*ans = answer{attempt: a}
	if limit := a.limitHit(); limit != "" {
		ans.timedOut = true
		ans.verdict = verdict.Result{Verdict: verdict.Failure, Elsewhere: true, Reason: limit}
		return ans
	}
	kind, text := verdict.OfTransport(err)
	ans.timedOut = kind == verdict.Timeout
	ans.unsent = kind == verdict.Dial || kind == verdict.TLS
	ans.verdict = verdict.Result{Verdict: verdict.Failure, Elsewhere: true, Reason: text}
	if kind == verdict.Local { // it would be no better elsewhere
		ans.verdict.Verdict, ans.verdict.Elsewhere = verdict.Neutral, false
	}
	return ans
}

// readHead reads as much of an error's body as it takes to judge it.
func (a *attempt) readHead(ans *answer) {
	a.arm(errorHeadIdle, errorHeadLimit)
	buf := make([]byte, 0, 1024)
	for len(buf) < errorHead {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := ans.res.Body.Read(buf[len(buf):min(cap(buf), errorHead)])
		buf = buf[:len(buf)+n]
		if err != nil {
			ans.complete = err == io.EOF
			break
		}
		a.arm(errorHeadIdle, errorHeadLimit)
	}
	ans.head = buf
}

// fit reports whether the answer may go to the client when no attempt is left.
// What it says about our credentials is not the client's business, a missing
// model has one shape whoever misses it, and a 2xx that is none would be taken
// for a success.
func (ans *answer) fit() bool {
	return ans.verdict.Verdict != verdict.Credential && !ans.verdict.ModelMissing && ans.status >= 300
}

// drop closes the answer's body. Its head stays.
func (ans *answer) drop() {
	if ans.res != nil {
		ans.res.Body.Close()
	}
}
