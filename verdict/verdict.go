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

// Package verdict says what the ending of an attempt means for the upstream it
// was made at.
//
// The same status means opposite things at different providers, and so does the
// same code. Therefore an answer is judged in this order: by the rules of its
// provider and by general ones, each on the error's codes, or on its message
// where nothing else identifies it; and by its status where no rule fits.
//
// All rules stand in one table, in table.go. A new provider needs
//   - a preset in package provider;
//   - rows in the table for the errors whose status does not tell enough, those
//     of one provider among providerRules, those that mean the same everywhere
//     among generalRules. A row that matches a message stands before the row of
//     the code that it qualifies;
//   - a folder in testdata named for it, with one file for each error: the answer
//     as it comes over the wire, below what it must be taken for. The files are
//     the test; a row, code or text that none of them needs fails it too.
//
// Everything here is a pure function of its arguments and safe for concurrent
// use.
package verdict

import (
	"net/http"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// Verdict is what an attempt says of its upstream.
type Verdict uint8

// The verdicts. Success is an answer. Failure counts against the upstream.
// Limited is a limit that passes. Credential speaks against the key, not
// against the upstream. Neutral says nothing about the upstream.
const (
	Success Verdict = iota
	Failure
	Limited
	Credential
	Neutral
)

var verdictNames = [...]string{"success", "failure", "limited", "credential", "neutral"}

// String returns the verdict's name in lower case.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown"
}

// Answer is a response whose headers, and the beginning of whose body if it is
// an error, have come.
type Answer struct {
	Provider string          // the channel's provider id
	Dialect  dialect.Dialect // of the request
	Status   int
	Header   http.Header
	Body     []byte // the head of an error body, which may break off; may be nil
	Model    string // the model that the upstream was asked for
	HasModel bool   // the request named a model
	Now      time.Time
}

// Result is a verdict with all that follows from it. It holds no text of the
// upstream but a code.
type Result struct {
	Verdict Verdict
	// Elsewhere tells that the request may be tried elsewhere, as long as
	// nothing has reached the client.
	Elsewhere bool
	// Pause is for how long the upstream asks to be left alone, at most an hour;
	// 0 if it does not say.
	Pause time.Duration
	// Overload marks a failure that pauses the pair for Pause.
	Overload bool
	// ModelMissing tells that the upstream does not have the model.
	ModelMissing bool
	// Forbidden marks a refusal that does not say whether it means the key or
	// the request. It is neutral; the second in a row of one key speaks against
	// the key.
	Forbidden bool
	// Content marks a refusal of what the request asks for: by a content filter,
	// or a policy about content.
	Content bool
	// Billing marks a credential that is refused for lack of money or quota.
	Billing bool
	// Code is the provider's own code or type of the error, empty if there is
	// none that is fit for a log.
	Code string
	// Reason is a short text for logs and status, such as "status 503" or
	// "status 401 invalid_api_key".
	Reason string
	// Recognised tells that a code or a message decided, not the mere status.
	Recognised bool
	// Warn is what the operator should hear of once; empty if nothing.
	Warn string
}

// OfAnswer judges a response by its status, its headers and its error body.
// What the body of a 2xx holds is not its matter.
func OfAnswer(a Answer) Result {
	switch {
	case a.Status == http.StatusSwitchingProtocols:
		return Result{Verdict: Success}
	case a.Status < 200 || a.Status > 599:
		return Result{Verdict: Failure, Elsewhere: true, Reason: statusReason(a.Status, "")}
	case a.Status < 300:
		return ofSuccess(a)
	case a.Status < 400:
		return ofRedirect(a)
	}
	c := candidateOf(a)
	r := c.judge()
	if r.Forbidden && mediaType(a.Header) == "text/html" {
		r.Forbidden = false // a firewall in front of the API objects to the request
	}
	r.Code = c.facts.code(a.Status)
	r.Reason = statusReason(a.Status, r.Code)
	return r
}

func candidateOf(a Answer) candidate {
	return candidate{
		provider: a.Provider, family: family(a.Dialect), status: a.Status,
		facts: readBody(a.Header, a.Body), model: a.Model, hasModel: a.HasModel,
		hints: headerHints(a.Header, a.Now), now: a.Now,
	}
}

// Message returns the text of an error body, for matching only: it may repeat
// what the client sent. It is empty if there is none.
func Message(h http.Header, body []byte) string { return readBody(h, body).message }

// family is the provider whose rules a dialect brings with it: servers that
// speak another's dialect use its codes.
func family(d dialect.Dialect) string {
	if d == dialect.None || d == dialect.OpenAI {
		return ""
	}
	return d.String()
}

func ofSuccess(a Answer) Result {
	reason := ""
	switch {
	case !a.HasModel:
	case a.Status == http.StatusNoContent || a.Status == http.StatusResetContent:
		reason = "without body"
	case mediaType(a.Header) == "text/html":
		reason = "html"
	}
	if reason == "" {
		return Result{Verdict: Success}
	}
	return Result{Verdict: Failure, Elsewhere: true, Reason: statusReason(a.Status, reason)}
}

func ofRedirect(a Answer) Result {
	r := Result{Verdict: Neutral, Reason: statusReason(a.Status, "")}
	if a.Status != http.StatusNotModified {
		r.Warn = "unexpected redirect"
	}
	return r
}

// OfStreamError judges an error object or event inside a response of status
// 200, by the same rules. The status is the one that the error claims, 0 if it
// claims none. Such a request may be tried elsewhere unless a rule knows the
// fault to be the client's.
func OfStreamError(provider string, d dialect.Dialect, code, typ, message string, status int, now time.Time) Result {
	c := innerCandidate(provider, d, code, typ, message, status, now)
	r := c.judge()
	r.Warn = ""
	if !r.Recognised {
		r.Elsewhere = true
	}
	r.Code = c.facts.code(c.status)
	r.Reason = join("error in body", statusText(c.status), r.Code)
	return r
}

func innerCandidate(provider string, d dialect.Dialect, code, typ, message string, status int, now time.Time) candidate {
	if status < 400 || status > 599 {
		status = 0
	}
	return candidate{
		provider: provider, family: family(d), status: status, hasModel: true, now: now, inner: true,
		facts: factsOf(code, typ, message),
	}
}
