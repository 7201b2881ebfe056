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
	"net/http"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// opinion is a refusal that the exchange does not take for granted: another
// channel is asked the same. The attempt keeps its permit until that is known.
type opinion struct {
	a      *attempt
	ans    *answer
	record int // its place in the exchange's records
}

// unexplained reports whether ans refuses the request as the caller's fault
// without anything that says why. A mere 404 blames nobody's request: most likely
// the path is wrong.
func unexplained(ans *answer) bool {
	r := ans.verdict
	return r.Verdict == verdict.Neutral && !r.Elsewhere && !r.Recognised && !r.Content &&
		ans.status >= http.StatusBadRequest && ans.status != http.StatusNotFound && ans.status != http.StatusGone
}

// seekOpinion reserves an attempt elsewhere if the refusal is doubted, and
// reports whether it did.
func (x *exchange) seekOpinion(a *attempt, ans *answer) bool {
	if !unexplained(ans) || a.ch.secondOpinion == 0 || a.model == "" {
		return false
	}
	if x.doubted != nil { // this is the second opinion
		a.ch.state.doubts.agreed(a.model)
		return false
	}
	if !a.ch.state.doubts.refused(a.model, a.ch.secondOpinion, a.permit.Probe()) {
		return false
	}
	if !ans.complete || !x.next() {
		a.ch.state.doubts.undecided(a.model)
		return false
	}
	x.countFailover(a, ans.verdict)
	x.doubted = &opinion{a, ans, len(x.records) - 1}
	ans.drop()
	a.release()
	return true
}

// contradicted makes a failure of the doubted refusal, since another channel
// answers the same request.
func (x *exchange) contradicted() {
	o := x.doubted
	if o == nil {
		return
	}
	x.doubted = nil
	o.a.ch.state.doubts.undecided(o.a.model)
	r := verdict.Result{Verdict: verdict.Failure, Reason: o.ans.verdict.Reason + ", but answered elsewhere"}
	o.ans.verdict = r
	x.records[o.record].verdict, x.records[o.record].reason = r.Verdict, r.Reason
	o.a.countAttempt(o.ans, r)
	o.a.settle(r, time.Now())
}

// believed ends the doubt in favour of the channel that refused. It returns the
// refusal, nil if none was doubted. The flag agreed tells that another channel
// refused the request too.
func (x *exchange) believed(agreed bool) *answer {
	o := x.doubted
	if o == nil {
		return nil
	}
	x.doubted = nil
	if agreed {
		o.a.ch.state.doubts.agreed(o.a.model)
	} else {
		o.a.ch.state.doubts.undecided(o.a.model)
	}
	o.a.countAttempt(o.ans, o.ans.verdict)
	o.a.settle(o.ans.verdict, time.Now())
	return o.ans
}
