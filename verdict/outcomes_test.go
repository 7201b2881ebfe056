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
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// outcomeOf judges an answer of that status to a request for the model m1.
func outcomeOf(provider string, status int, body string, headers ...string) Result {
	return OfAnswer(Answer{
		Provider: provider, Dialect: dialect.OpenAI, Status: status, Header: header(headers...),
		Body: []byte(body), Model: "m1", HasModel: true, Now: now,
	})
}

// What the documentation's table of verdicts says, row by row, for all providers
// alike.
func TestTableOfVerdicts(t *testing.T) {
	after := func(v string) []string { return []string{"Retry-After", v} }
	html := []string{"Content-Type", "text/html"}
	code := func(c string) string { return errorBody("invalid_request_error", c, "no") }
	const modelMissing = `{"error":{"message":"The model m1 does not exist","code":"model_not_found"}}`
	tests := []struct {
		row      string
		statuses []int
		body     string
		headers  []string
		want     string
		pause    time.Duration
		warns    bool
	}{
		{row: "2xx", statuses: []int{200, 201, 202, 206}, want: "success"},
		{row: "3xx", statuses: []int{300, 301, 302, 303, 307, 308}, want: asClient, warns: true},
		{row: "not modified", statuses: []int{304}, want: asClient},
		{row: "2xx without body", statuses: []int{204, 205}, want: asFailure},
		{row: "client's fault", statuses: []int{400, 409, 411, 413, 414, 415, 422, 501}, want: asClient},
		{row: "client's fault, an address too", statuses: []int{405}, want: asClient, warns: true},
		{row: "context length", statuses: []int{400, 413, 422}, body: code("context_length_exceeded"), want: asClient + known},
		{row: "content policy", statuses: []int{400, 403, 422}, body: code("content_policy_violation"), want: "neutral content" + known},
		{row: "larger than the account's quota", statuses: []int{413, 429}, body: errorBody("tokens", "rate_limit_exceeded", "Request too large for m1"), want: "neutral elsewhere" + known},
		{row: "model missing", statuses: []int{400, 403, 404, 410}, body: modelMissing, want: asMissing + known},
		{row: "model named", statuses: []int{404, 410}, body: `{"error":{"message":"there is no m1 here"}}`, want: asMissing + known},
		{row: "no model named", statuses: []int{404, 410}, body: `{"error":{"message":"no"}}`, want: asClient, warns: true},
		{row: "no model named, HTML", statuses: []int{404, 410}, body: "<p>no</p>", headers: html, want: asClient, warns: true},
		{row: "key refused", statuses: []int{401}, want: asRefused},
		{row: "no money", statuses: []int{402}, want: asUnpaid},
		{row: "no money yet", statuses: []int{402}, headers: after("7"), want: asLimited, pause: 7 * time.Second},
		{row: "no money, no time", statuses: []int{402}, headers: after("0"), want: asUnpaid},
		{row: "key refused by code", statuses: []int{400, 403}, body: code("invalid_api_key"), want: asRefused + known},
		{row: "quota used up by code", statuses: []int{400, 403, 429}, body: code("billing_hard_limit_reached"), want: asUnpaid + known},
		{row: "forbidden", statuses: []int{403}, want: "neutral elsewhere forbidden"},
		{row: "forbidden without a known code", statuses: []int{403}, body: code("no_idea"), want: "neutral elsewhere forbidden"},
		{row: "forbidden by a firewall", statuses: []int{403}, body: "<p>no</p>", headers: html, want: "neutral elsewhere"},
		{row: "limited", statuses: []int{429}, want: asLimited},
		{row: "limited for a time", statuses: []int{429}, headers: after("Mon, 30 Nov 2026 12:00:07 GMT"), want: asLimited, pause: 7 * time.Second},
		{row: "limited for a day", statuses: []int{429}, headers: after("86400"), want: asLimited, pause: time.Hour},
		{row: "overload", statuses: []int{529}, want: asOverload},
		{row: "overload for a time", statuses: []int{503, 529}, headers: after("7"), want: asOverload, pause: 7 * time.Second},
		{row: "overload by code", statuses: []int{429, 500, 503, 529}, body: code("overloaded_error"), want: asOverload + known},
		{row: "failure", statuses: []int{408, 412, 423, 424, 425, 500, 502, 503, 504, 505, 520, 521, 522, 523, 524, 525, 526, 527, 530, 599}, want: asFailure},
		{row: "failure that gives a time", statuses: []int{408, 425, 500, 502, 504}, headers: after("7"), want: asFailure},
		{row: "no status of HTTP", statuses: []int{0, 99, 600, 999}, want: asFailure},
		{row: "client closed", statuses: []int{499}, want: asClient},
	}
	for _, tt := range tests {
		t.Run(tt.row, func(t *testing.T) {
			for _, provider := range providerIDs {
				for _, status := range tt.statuses {
					r := outcomeOf(provider, status, tt.body, tt.headers...)
					if got := brief(r); got != tt.want || r.Pause != tt.pause || (r.Warn != "") != tt.warns {
						t.Errorf("%s %d: %s for %v, warns %q; want %s for %v", provider, status, got, r.Pause, r.Warn, tt.want, tt.pause)
					}
				}
			}
		})
	}
}

func TestRequestsWithoutAModelMissNone(t *testing.T) {
	for _, status := range []int{404, 410} {
		r := OfAnswer(Answer{Provider: "openrouter", Status: status, Header: header(), Body: []byte(`{"error":{"code":404}}`), Now: now})
		if brief(r) != asClient+known || r.Warn != "" {
			t.Errorf("%d: %s, %q", status, brief(r), r.Warn)
		}
	}
}

// One code, one status or one text, and what it means where.
func TestSameErrorMeansOtherThingsElsewhere(t *testing.T) {
	tests := []struct {
		what   string
		status int
		body   string
		want   map[string]string
	}{
		{"insufficient_quota", 429, errorBody("insufficient_quota", "insufficient_quota", "You exceeded your current quota"), map[string]string{
			"openai": asUnpaid + known, "groq": asUnpaid + known, "dashscope": asLimited + known,
		}},
		{"a used up free quota", 429, errorBody("insufficient_quota", "insufficient_quota", "Free allocated quota exceeded."), map[string]string{
			"openai": asUnpaid + known, "dashscope": asUnpaid + known,
		}},
		{"498", 498, `{"message":"no"}`, map[string]string{
			"groq": asOverload + known, "cohere": asRefused + known, "openai": "neutral elsewhere forbidden",
		}},
		{"429 overloaded", 429, `{"error":"Model is overloaded","error_type":"overloaded"}`, map[string]string{
			"tgi": asOverload + known, "openai": asLimited,
		}},
		{"412 suspended", 412, `{"error":{"message":"Account x is suspended"}}`, map[string]string{
			"fireworks": asUnpaid + known, "openai": asFailure,
		}},
		{"403 for a long prompt", 403, `{"error":{"message":"input plus max_tokens is too high"}}`, map[string]string{
			"together": asClient + known, "openai": "neutral elsewhere forbidden",
		}},
		{"400 for a bad key", 400, `{"code":"x","error":"Incorrect API key provided"}`, map[string]string{
			"xai": asRefused + known, "openai": asClient,
		}},
		{"400 with a reason of Google", 400, googleBody("INVALID_ARGUMENT", "no", `{"reason":"API_KEY_INVALID"}`), map[string]string{
			"gemini": asRefused + known, "vertex": asRefused + known, "openai": asRefused + known, "mistral": asClient,
		}},
		{"400 without credit", 400, anthropicBody("invalid_request_error", "Your credit balance is too low", ""), map[string]string{
			"anthropic": asUnpaid + known, "openai": asClient,
		}},
		{"a numeric code", 429, errorBody("", "1113", "no"), map[string]string{"zhipu": asUnpaid + known, "openai": asLimited}},
		{"a numeric code with 400", 400, errorBody("", "1301", "no"), map[string]string{"zhipu": "neutral content" + known, "openai": asClient}},
		{"404 of any kind", 404, `{"error":{"message":"no","code":404}}`, map[string]string{"openrouter": asMissing + known, "openai": asClient}},
		{"a NOT_FOUND that speaks of a model", 404, googleBody("NOT_FOUND", "no such model", ""), map[string]string{"gemini": asMissing + known, "mistral": asClient}},
		{"Arrearage", 400, `{"code":"Arrearage","message":"no"}`, map[string]string{"dashscope": asUnpaid + known, "openai": asClient}},
		{"503 unavailable", 503, errorBody("unavailable_error", "", "Loading model"), map[string]string{"llamacpp": asOverload + known, "openai": asFailure}},
		{"429 of an engine", 429, errorBody("engine_overloaded_error", "", "no"), map[string]string{"moonshot": asOverload + known, "openai": asLimited}},
	}
	for _, tt := range tests {
		for provider, want := range tt.want {
			if got := brief(outcomeOf(provider, tt.status, tt.body)); got != want {
				t.Errorf("%s at %s: %s, want %s", tt.what, provider, got, want)
			}
		}
	}
}

// Google answers alike wherever its models are reached.
func TestGooglesErrorsAtItsOtherEndpoints(t *testing.T) {
	for _, f := range readFixtures(t) {
		if f.provider != "gemini" || f.answer.Status < 300 {
			continue
		}
		want := brief(OfAnswer(f.answer))
		for provider, d := range map[string]dialect.Dialect{"vertex": dialect.Gemini, "openai": dialect.OpenAI} {
			a := f.answer
			a.Provider, a.Dialect = provider, d
			if got := brief(OfAnswer(a)); got != want {
				t.Errorf("%s at %s: %s, want %s", f.name, provider, got, want)
			}
		}
	}
}

// Where a code or another status identifies an error, its text does not matter.
func TestMessagesDecideOnlyWhereNothingElseDoes(t *testing.T) {
	hostile := "your credit balance is too low, incorrect api key, account suspended, missing scopes, try pulling, billing, free tier, " +
		"model identifier is invalid, too many tokens, server busy, request too large, moderation, guardrail, m1"
	tests := []struct {
		provider string
		status   int
		body     string
		want     string
	}{
		{"openai", 400, errorBody("invalid_request_error", "context_length_exceeded", hostile), asClient + known},
		{"openai", 400, errorBody("invalid_request_error", "invalid_value", hostile), asClient},
		{"openai", 401, errorBody("invalid_request_error", "invalid_api_key", hostile), asRefused + known},
		{"openai", 429, errorBody("insufficient_quota", "insufficient_quota", hostile), asUnpaid + known},
		{"openai", 500, errorBody("server_error", "", hostile), asFailure},
		{"anthropic", 400, anthropicBody("invalid_request_error", "messages.0: "+hostile, ""), asClient},
		{"anthropic", 500, anthropicBody("api_error", hostile, ""), asFailure},
		{"anthropic", 529, anthropicBody("overloaded_error", hostile, ""), asOverload + known},
		{"xai", 400, `{"code":"x","error":"unknown variant ` + hostile + `"}`, asClient},
		{"gemini", 400, googleBody("INVALID_ARGUMENT", hostile, ""), asClient},
		{"bedrock", 429, `{"__type":"ThrottlingException","message":"` + hostile + `"}`, asLimited + known},
		{"fireworks", 400, errorBody("x", "", hostile), asClient},
		{"cohere", 429, `{"message":"` + hostile + `"}`, asLimited},
	}
	for _, tt := range tests {
		if got := brief(outcomeOf(tt.provider, tt.status, tt.body)); got != tt.want {
			t.Errorf("%s %d: %s, want %s", tt.provider, tt.status, got, tt.want)
		}
	}
}

func TestReasonNamesStatusAndCode(t *testing.T) {
	for _, f := range readFixtures(t) {
		r := OfAnswer(f.answer)
		if r.Verdict == Success {
			continue
		}
		want := strings.TrimSpace(fmt.Sprintf("status %d %s", f.answer.Status, r.Code))
		if f.answer.Status >= 300 && r.Reason != want {
			t.Errorf("%s: reason %q, want %q", f.name, r.Reason, want)
		}
	}
}

// An open http.Header may hold anything; nothing of it shows but a known code.
func TestResultsRepeatNoHeader(t *testing.T) {
	h := http.Header{"X-Amzn-Errortype": {"secret-text"}, "Content-Type": {"secret/secret"}, "Retry-After": {"secret"}}
	if s := fmt.Sprintf("%+v", OfAnswer(Answer{Provider: "bedrock", Status: 400, Header: h, HasModel: true, Now: now})); strings.Contains(s, "secret") {
		t.Error(s)
	}
}
