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

package verdict

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// outcome is what a rule or a status comes to.
type outcome uint8

const (
	clientFault  outcome = iota // of the request; nobody else would take it
	otherAccount                // of the request, at this account only
	refused                     // the credential
	unpaid                      // the credential, for lack of money or quota
	limited
	overloaded
	missing // the model
	broken  // the upstream
	forbidden
	content // of the request: what it asks for is refused
)

// results are the verdicts of the outcomes, as far as they are always the same.
var results = [...]Result{
	clientFault:  {Verdict: Neutral},
	otherAccount: {Verdict: Neutral, Elsewhere: true},
	refused:      {Verdict: Credential, Elsewhere: true},
	unpaid:       {Verdict: Credential, Elsewhere: true, Billing: true},
	limited:      {Verdict: Limited, Elsewhere: true},
	overloaded:   {Verdict: Failure, Elsewhere: true, Overload: true},
	missing:      {Verdict: Failure, Elsewhere: true, ModelMissing: true},
	broken:       {Verdict: Failure, Elsewhere: true},
	forbidden:    {Verdict: Neutral, Elsewhere: true, Forbidden: true},
	content:      {Verdict: Neutral, Content: true},
}

// candidate is an error that is to be judged.
type candidate struct {
	provider, family string
	status           int // 0: unknown, for errors inside a 200 only
	facts            facts
	model            string
	hasModel         bool
	inner            bool // the error stands inside a 200
	hints            hints
	now              time.Time
}

func (c *candidate) judge() Result {
	// Some budgets only look like billing: money does not come back by waiting.
	if c.status == http.StatusPaymentRequired && c.hints.asked > 0 {
		return c.result(limited)
	}
	if r := c.rule(); r != nil {
		res := c.result(r.then)
		res.Recognised = true
		if r.until != nil && res.Verdict == Limited {
			res.Pause = max(res.Pause, bounded(r.until(c)))
		}
		return res
	}
	if c.inner {
		if r := innerRule(&c.facts); r != nil {
			return c.result(r.then)
		}
	}
	return c.byStatus()
}

func (c *candidate) result(o outcome) Result {
	switch {
	case o == missing && !c.hasModel:
		o = clientFault // it asked for a model's description, say
	case o == broken && c.status == http.StatusServiceUnavailable && c.hints.asked > 0:
		o = overloaded
	}
	r := results[o]
	if r.Verdict == Limited || r.Overload {
		r.Pause = max(c.hints.longest(), wholeDuration(c.facts.delay), textHint(c.facts.message))
	}
	return r
}

// byStatus judges what no rule knows.
func (c *candidate) byStatus() Result {
	r := c.result(statusOutcome(c.status))
	switch c.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		if c.hasModel {
			r.Warn = "status " + strconv.Itoa(c.status) + " that names no model: is base_url right?"
		}
	}
	return r
}

func statusOutcome(status int) outcome {
	switch status {
	case 401:
		return refused
	case 402:
		return unpaid
	case 403, 498:
		return forbidden
	case 408, 412, 423, 424, 425:
		return broken
	case 429:
		return limited
	case 501:
		return clientFault
	case 529:
		return overloaded
	}
	if status >= 400 && status < 500 {
		return clientFault
	}
	return broken
}

// innerRule returns the rule for an error that has a telling name, but maybe no
// status.
func innerRule(f *facts) *rule {
	for i := range innerRules {
		if f.has(innerRules[i].codes) {
			return &innerRules[i]
		}
	}
	return nil
}

func statusReason(status int, more string) string {
	return join("status", strconv.Itoa(status), more)
}

func statusText(status int) string {
	if status == 0 {
		return ""
	}
	return strconv.Itoa(status)
}

// join joins what is not empty.
func join(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " ")
}

func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}
