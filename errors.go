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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
	"github.com/llm-gateway/caddy-llm-gateway/request"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// gatewayError is an answer that the gateway makes itself.
type gatewayError struct {
	status  int
	code    string
	message string

	retry      bool      // a Retry-After is due
	returns    time.Time // when a candidate is back; zero: nobody knows
	retryFalse bool      // a retry of the client cannot help
}

func (e *gatewayError) Error() string { return e.code + ": " + e.message }

// noCandidate is the error for a request that no channel could ever serve.
func (x *exchange) noCandidate() *gatewayError {
	e := x.unknownModel(x.req.Model)
	if !slices.ContainsFunc(x.gw.channels, func(ch *channel) bool { return ch.speaks(x.dialect) }) {
		e.message = fmt.Sprintf("no channel speaks the %s API", x.dialect)
	}
	return e
}

func (x *exchange) unknownModel(model string) *gatewayError {
	return &gatewayError{status: http.StatusNotFound, code: "model_not_found", retryFalse: true,
		message: fmt.Sprintf("no channel serves the model %s", quoteShort(model))}
}

// nobodyUsable is the error for a request all of whose candidates are out.
func (x *exchange) nobodyUsable() *gatewayError {
	if x.modelMissingEverywhere() {
		return x.modelNotFound()
	}
	now := time.Now()
	reasons := make(map[outReason]int)
	var soonest time.Time
	for i := range x.cands {
		_, out := x.cands[i].look(now)
		reasons[out.reason]++
		if !out.until.IsZero() && (soonest.IsZero() || out.until.Before(soonest)) {
			soonest = out.until
		}
	}
	e := &gatewayError{status: http.StatusServiceUnavailable, code: "no_channel_available", retry: true, returns: soonest}
	switch len(x.cands) {
	case reasons[limited]:
		e.status, e.code = http.StatusTooManyRequests, "rate_limited"
		e.message = "every channel for this model is rate limited"
	case reasons[disabled]:
		e.code, e.retry, e.retryFalse = "channels_disabled", false, true
		e.message = "every channel for this model is disabled"
		return e
	case reasons[noKey]:
		e.status, e.code = http.StatusBadGateway, "credentials_rejected"
		e.message = "the keys of every channel for this model are refused or missing"
	default:
		e.message = "every channel for this model is out of service for now"
	}
	if reasons[probing]+reasons[full] > 0 {
		e.returns = now // it may be over any moment
	}
	if e.returns.IsZero() { // until somebody acts
		e.retry = false
	}
	e.retryFalse = !e.retry || e.returns.Sub(now) > time.Minute
	return e
}

// exhausted is the error for a request whose attempts brought no answer that is
// fit for the client.
func (x *exchange) exhausted() *gatewayError {
	if x.unfit != nil && (!x.unfit.verdict.ModelMissing || x.missing == x.attempts) {
		return x.unfitError()
	}
	if x.timeouts > 0 && x.timeouts == x.silent {
		return &gatewayError{status: http.StatusGatewayTimeout, code: "upstream_timeout",
			message: "no upstream answered in time"}
	}
	return &gatewayError{status: http.StatusBadGateway, code: "upstream_unreachable",
		message: "no upstream could be reached"}
}

func (x *exchange) unfitError() *gatewayError {
	r := x.unfit.verdict
	switch {
	case r.ModelMissing:
		return x.modelNotFound()
	case x.unfit.status < 300:
		return x.unfit.invalid()
	}
	return &gatewayError{status: http.StatusBadGateway, code: "credentials_rejected", retryFalse: r.Billing,
		message: "the upstream refused the gateway's credentials"}
}

// invalid is the error for an answer of status 2xx that is none.
func (ans *answer) invalid() *gatewayError {
	e := &gatewayError{status: http.StatusBadGateway, code: "upstream_invalid_response",
		message: "the upstream's answer was no valid answer"}
	r := ans.verdict
	if r.Code != "" {
		e.message = "the upstream answered with an error: " + r.Code
	}
	if ans.inner == 0 || r.Verdict == verdict.Credential {
		return e
	}
	e.status = ans.inner
	if r.Pause > 0 {
		e.retry, e.returns = true, time.Now().Add(r.Pause)
		e.retryFalse = r.Pause > time.Minute
	}
	return e
}

func (x *exchange) modelNotFound() *gatewayError {
	return &gatewayError{status: http.StatusNotFound, code: "model_not_found", retryFalse: true,
		message: fmt.Sprintf("no upstream knows the model %s", quoteShort(x.req.Model))}
}

// modelMissingEverywhere reports whether all candidates are out because their
// upstreams do not know the model: a typo stays a typo when it was made often
// enough to open breakers.
func (x *exchange) modelMissingEverywhere() bool {
	return !slices.ContainsFunc(x.cands, func(c candidate) bool {
		return !strings.HasPrefix(c.state.breakers.LastFailure(c.model), modelMissing)
	})
}

func quoteShort(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.QuoteToGraphic(s)
}

// refuseUnread answers a request that could not be read.
func (x *exchange) refuseUnread(w http.ResponseWriter, r *http.Request, err error) error {
	x.dialect = request.DialectOf(r)
	if bad, ok := errors.AsType[*request.Error](err); ok {
		e := &gatewayError{status: bad.Status, code: bad.Code, message: bad.Message}
		if bad.Code == request.CodeBusy {
			e.retry, e.returns = true, time.Now() // it may be over any moment
		}
		return x.refuse(w, e)
	}
	_, network := errors.AsType[net.Error](err)
	if x.clientGone() || network || errors.Is(err, io.ErrUnexpectedEOF) {
		return x.refuseGone(w)
	}
	return x.refuse(w, &gatewayError{status: http.StatusBadRequest, code: "invalid_request",
		message: "the request body could not be read"})
}

// refuseGone ends a request whose client has left: nobody reads the answer, but
// the access log tells.
func (x *exchange) refuseGone(w http.ResponseWriter) error {
	x.outcome = outcomeClientGone
	w.WriteHeader(499)
	return nil
}

// refuse answers with an error of our own, or hands it to the server's error
// routes.
func (x *exchange) refuse(w http.ResponseWriter, e *gatewayError) error {
	if x.clientGone() {
		return x.refuseGone(w)
	}
	x.refusal, x.outcome = e, outcomeRefused
	if e.retry {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter(e.returns)))
	}
	if e.retryFalse {
		w.Header().Set("X-Should-Retry", "false")
	}
	repl, _ := x.ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if x.gw.caddyErrors {
		if repl != nil {
			repl.Set("http.llm_gateway.error.code", e.code)
			repl.Set("http.llm_gateway.error.message", e.message)
		}
		return caddyhttp.Error(e.status, e)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	if x.orig.Method == http.MethodHead {
		return nil
	}
	id := ""
	if repl != nil {
		id, _ = repl.GetString("http.request.uuid")
	}
	return json.NewEncoder(w).Encode(e.body(x.dialect, id))
}

// retryAfter returns the seconds until t, 1 to 120: longer ones are slept
// through by some clients, and make others give up.
func retryAfter(t time.Time) int {
	seconds := int(math.Ceil(min(time.Until(t), 120*time.Second).Seconds()))
	return max(1, seconds)
}

// body returns the error in the shape of the dialect that the client speaks, so
// that its SDK raises the exception that it has for this kind.
func (e *gatewayError) body(d dialect.Dialect, id string) any {
	switch d {
	case dialect.Anthropic:
		return object{"type": "error", "request_id": id,
			"error": object{"type": anthropicType(e.status), "message": e.message}}
	case dialect.Gemini:
		return object{"error": object{"code": e.status, "message": e.message, "status": geminiStatus(e.status)}}
	case dialect.Ollama:
		return object{"error": e.message}
	case dialect.Bedrock, dialect.Cohere:
		return object{"message": e.message}
	}
	return object{"error": object{"message": e.message, "type": openAIType(e.status), "param": nil, "code": e.code}}
}

func openAIType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status < http.StatusInternalServerError:
		return "invalid_request_error"
	}
	return "server_error"
}

func anthropicType(status int) string {
	switch status {
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	if status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "api_error"
}

func geminiStatus(status int) string {
	switch status {
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status < http.StatusInternalServerError {
		return "INVALID_ARGUMENT"
	}
	return "UNAVAILABLE"
}
