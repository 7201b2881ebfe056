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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

var providerIDs = words("openai azure anthropic gemini vertex bedrock mistral groq deepseek xai openrouter together fireworks cohere moonshot zhipu dashscope " +
	"vllm ollama llamacpp tgi lmstudio")

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func header(kv ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Add(kv[i], kv[i+1])
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	return h
}

// brief writes a result as a short text: the verdict and what is set.
func brief(r Result) string {
	s := r.Verdict.String()
	for _, f := range []struct {
		set  bool
		name string
	}{
		{r.Elsewhere, "elsewhere"}, {r.Overload, "overload"}, {r.ModelMissing, "missing"},
		{r.Forbidden, "forbidden"}, {r.Content, "content"}, {r.Billing, "billing"}, {r.Recognised, "recognised"},
	} {
		if f.set {
			s += " " + f.name
		}
	}
	return s
}

const (
	asClient   = "neutral"
	asRefused  = "credential elsewhere"
	asUnpaid   = "credential elsewhere billing"
	asLimited  = "limited elsewhere"
	asFailure  = "failure elsewhere"
	asOverload = "failure elsewhere overload"
	asMissing  = "failure elsewhere missing"
	known      = " recognised"
)

func TestStatusesWithoutACode(t *testing.T) {
	tests := map[string][]int{
		asClient:                      {300, 301, 302, 304, 307, 308, 400, 404, 405, 406, 409, 410, 411, 413, 414, 415, 417, 422, 431, 451, 499, 501},
		asRefused:                     {401},
		asUnpaid:                      {402},
		"neutral elsewhere forbidden": {403, 498},
		asLimited:                     {429},
		asFailure:                     {0, 99, 103, 204, 205, 408, 412, 423, 424, 425, 500, 502, 503, 504, 505, 520, 524, 530, 599, 600, 999},
		asOverload:                    {529},
		"success":                     {101, 200, 201, 202, 206},
	}
	for want, statuses := range tests {
		for _, status := range statuses {
			for _, body := range []string{"", "<html>nope</html>", `{"error":{"message":"no","type":"invalid_request_error","code":null}}`} {
				r := OfAnswer(Answer{Provider: "openai", Dialect: dialect.OpenAI, Status: status, Header: header(), Body: []byte(body), Model: "m1", HasModel: true, Now: now})
				if got := brief(r); got != want {
					t.Errorf("%d %q: %s, want %s", status, body, got, want)
				}
				if r.Verdict != Success && !strings.Contains(r.Reason, fmt.Sprint("status ", status)) {
					t.Errorf("%d: reason %q", status, r.Reason)
				}
			}
		}
	}
}

func TestSuccessThatIsNone(t *testing.T) {
	tests := []struct {
		status   int
		typ      string
		hasModel bool
		want     string
		reason   string
	}{
		{200, "text/html; charset=utf-8", true, asFailure, "status 200 html"},
		{200, "text/html", false, "success", ""},
		{204, "", true, asFailure, "status 204 without body"},
		{204, "", false, "success", ""},
		{200, "application/json", true, "success", ""},
	}
	for _, tt := range tests {
		r := OfAnswer(Answer{Status: tt.status, Header: http.Header{"Content-Type": {tt.typ}}, HasModel: tt.hasModel, Now: now})
		if brief(r) != tt.want || r.Reason != tt.reason {
			t.Errorf("%d %s: %s %q, want %s %q", tt.status, tt.typ, brief(r), r.Reason, tt.want, tt.reason)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		status   int
		hasModel bool
		warns    bool
	}{{301, true, true}, {304, false, false}, {404, true, true}, {404, false, false}, {410, true, true}, {400, true, false}, {500, true, false}} {
		r := OfAnswer(Answer{Status: tt.status, Header: header(), HasModel: tt.hasModel, Now: now})
		if (r.Warn != "") != tt.warns {
			t.Errorf("%d: warn %q", tt.status, r.Warn)
		}
	}
}

func TestRetryAfterChangesTheMeaning(t *testing.T) {
	for status, want := range map[int]string{402: asLimited, 503: asOverload, 529: asOverload, 429: asLimited} {
		r := OfAnswer(Answer{Status: status, Header: header("Retry-After", "7"), HasModel: true, Now: now})
		if brief(r) != want || r.Pause != 7*time.Second {
			t.Errorf("%d: %s %v, want %s 7s", status, brief(r), r.Pause, want)
		}
	}
	for status, want := range map[int]string{402: asUnpaid, 503: asFailure} {
		r := OfAnswer(Answer{Status: status, Header: header("Retry-After", "0"), HasModel: true, Now: now})
		if brief(r) != want || r.Pause != 0 {
			t.Errorf("%d with a bad hint: %s %v, want %s", status, brief(r), r.Pause, want)
		}
	}
	if r := OfAnswer(Answer{Status: 500, Header: header("Retry-After", "7"), HasModel: true, Now: now}); r.Pause != 0 {
		t.Errorf("a plain failure pauses for %v", r.Pause)
	}
}

func TestModellessRequestsMissNoModel(t *testing.T) {
	r := OfAnswer(Answer{Provider: "openai", Status: 404, Header: header(), Body: []byte(`{"error":{"code":"model_not_found"}}`), Now: now})
	if brief(r) != asClient+known {
		t.Error(brief(r))
	}
}

func TestReasonAndCodeHoldNoMessage(t *testing.T) {
	tests := []struct{ body, code string }{
		{`{"error":{"message":"secret text","type":"invalid_request_error","code":"invalid_api_key"}}`, "invalid_api_key"},
		{`{"error":{"message":"secret text","type":"authentication_error","code":null}}`, "authentication_error"},
		{`{"error":{"message":"secret text","code":"401"}}`, ""},
		{`{"code":"secret text with spaces","error":"secret text"}`, ""},
		{`{"code":"sk-secret-key","error":"secret text"}`, ""},
		{`{"type":"error","error":{"message":"secret text"}}`, ""},
		{`{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"@type":"t","reason":"API_KEY_INVALID"}]}}`, "API_KEY_INVALID"},
		{`{"error":{"code":"` + strings.Repeat("secret", 20) + `"}}`, ""},
	}
	for _, tt := range tests {
		r := OfAnswer(Answer{Provider: "openai", Status: 401, Header: header(), Body: []byte(tt.body), HasModel: true, Now: now})
		want := strings.TrimSpace("status 401 " + tt.code)
		if r.Code != tt.code || r.Reason != want {
			t.Errorf("%s: code %q, reason %q, want %q", tt.body, r.Code, r.Reason, want)
		}
		if strings.Contains(fmt.Sprintf("%+v", r), "secret") {
			t.Errorf("%s: the result repeats the text", tt.body)
		}
	}
}

func TestErrorBodyShapes(t *testing.T) {
	for _, body := range []string{
		`{"error":{"message":"The Text"}}`, `{"error":"The Text"}`, `[{"error":{"message":"The Text"}}]`, `{"message":"The Text"}`,
		`{"object":"error","message":"The Text","type":"t"}`, `{"detail":"The Text"}`, `{"detail":[{"loc":["body",1],"msg":"The Text","type":"t"}]}`,
		`{"fault":{"faultstring":"The Text","detail":{"errorcode":"e"}}}`, `{"code":"c","message":"The Text","request_id":"r"}`,
		`{"type":"error","error":{"type":"t","message":"The Text"},"request_id":"r"}`, `{"error":{"message":"The Text","x":[1,{"y`,
	} {
		if f := readBody(nil, []byte(body)); f.message != "the text" {
			t.Errorf("%s: message %q", body, f.message)
		}
	}
	if f := readBody(nil, []byte(`<p>message</p>`)); f.message != "" || len(f.words) != 0 {
		t.Errorf("from markup: %+v", f)
	}
}

func TestBodyThatBreaksOff(t *testing.T) {
	body := `{"error":{"code":"insufficient_quota","message":"` + strings.Repeat("x", maxBody)
	r := OfAnswer(Answer{Provider: "openai", Status: 429, Header: header(), Body: []byte(body), HasModel: true, Now: now})
	if brief(r) != asUnpaid+known {
		t.Errorf("code before the end: %s", brief(r))
	}
	for i := range len(`{"error":{"code":"insuff`) {
		r := OfAnswer(Answer{Provider: "openai", Status: 429, Header: header(), Body: []byte(body[:i]), HasModel: true, Now: now})
		if brief(r) != asLimited {
			t.Errorf("%q: %s", body[:i], brief(r))
		}
	}
}

func TestErrorsInsideA200(t *testing.T) {
	tests := []struct {
		provider, code, typ, message string
		status                       int
		want, reason                 string
	}{
		{"anthropic", "", "overloaded_error", "Overloaded", 0, asOverload + known, "error in body overloaded_error"},
		{"openai", "server_is_overloaded", "response.failed", "", 0, asOverload + known, "error in body server_is_overloaded"},
		{"openai", "insufficient_quota", "insufficient_quota", "", 0, asUnpaid + known, "error in body insufficient_quota"},
		{"openai", "rate_limit_exceeded", "", "", 0, asLimited + known, "error in body rate_limit_exceeded"},
		{"openai", "server_error", "", "", 0, asFailure, "error in body server_error"},
		{"openai", "", "", "boom", 0, asFailure, "error in body"},
		{"openai", "context_length_exceeded", "", "", 0, asClient + known, "error in body context_length_exceeded"},
		{"openai", "", "invalid_request_error", "", 0, "neutral elsewhere", "error in body invalid_request_error"},
		{"vllm", "400", "BadRequestError", "", 400, "neutral elsewhere", "error in body 400 BadRequestError"},
		{"gemini", "503", "UNAVAILABLE", "", 503, asOverload + known, "error in body 503 UNAVAILABLE"},
		{"gemini", "429", "RESOURCE_EXHAUSTED", "", 429, asLimited + known, "error in body 429 RESOURCE_EXHAUSTED"},
		{"openrouter", "502", "", "", 502, asFailure, "error in body 502"},
		{"openrouter", "", "", "boom", 0, asFailure, "error in body"},
		{"openrouter", "502", "provider_overloaded", "", 502, asOverload + known, "error in body 502 provider_overloaded"},
		{"groq", "", "", "boom", 0, asFailure, "error in body"},
		{"cohere", "ERROR", "finish_reason", "", 0, asFailure, "error in body ERROR"},
		{"bedrock", "", "throttlingException", "", 0, asLimited + known, "error in body throttlingException"},
		{"bedrock", "", "validationException", "", 0, "neutral elsewhere", "error in body validationException"},
		{"bedrock", "", "modelStreamErrorException", "", 0, asFailure + known, "error in body modelStreamErrorException"},
		{"anthropic", "enforced_spend_limit_reached", "rate_limit_error", "", 0, asUnpaid + known, "error in body enforced_spend_limit_reached"},
		{"anthropic", "", "authentication_error", "", 0, asRefused + known, "error in body authentication_error"},
		{"x", "", "engine_is_overloaded", "", 0, asOverload, "error in body engine_is_overloaded"},
		{"x", "", "", "", 404, "neutral elsewhere", "error in body 404"},
		{"x", "", "", "", 9000, asFailure, "error in body"},
		{"x", "insufficient_system_resource", "finish_reason", "", 0, asFailure, "error in body insufficient_system_resource"},
	}
	for _, tt := range tests {
		r := OfStreamError(tt.provider, dialect.None, tt.code, tt.typ, tt.message, tt.status, now)
		if brief(r) != tt.want || r.Reason != tt.reason || r.Warn != "" {
			t.Errorf("%+v: %s, %q", tt, brief(r), r.Reason)
		}
	}
}

func TestVerdictNames(t *testing.T) {
	for v, want := range []string{"success", "failure", "limited", "credential", "neutral", "unknown"} {
		if got := Verdict(v).String(); got != want {
			t.Errorf("%d is %q, want %q", v, got, want)
		}
	}
}

func TestRulesAreReachable(t *testing.T) {
	for i, r := range rules {
		for _, at := range r.at {
			if !slices.Contains(providerIDs, at) {
				t.Errorf("rule %d: unknown provider %q", i, at)
			}
		}
		for _, text := range r.texts {
			if text != strings.ToLower(text) {
				t.Errorf("rule %d: %q is not in lower case", i, text)
			}
		}
		if r.codes == nil && r.texts == nil && !r.names && (r.at == nil || r.on == nil) {
			t.Errorf("rule %d fits too much", i)
		}
	}
}

func TestNamesModel(t *testing.T) {
	tests := []struct {
		message, model string
		want           bool
	}{
		{"the model `gpt-4o` does not exist", "gpt-4o", true},
		{"the model gpt-4o-mini does not exist", "gpt-4o", false},
		{"no model named GPT-4o.", "gpt-4o", false},
		{"no model named gpt-4o.", "GPT-4o", true},
		{"gpt-4o.1 and gpt-4o. too", "gpt-4o", true},
		{"models/gemini-x is not found", "gemini-x", true},
		{"xgpt", "gpt", false},
		{"anything", "", false},
	}
	for _, tt := range tests {
		if got := namesModel(tt.message, tt.model); got != tt.want {
			t.Errorf("%q in %q: %v", tt.model, tt.message, got)
		}
	}
}

func FuzzOfAnswer(f *testing.F) {
	f.Add("openai", 429, `{"error":{"code":"insufficient_quota"}}`, "1", uint8(1))
	f.Add("gemini", 400, `[{"error":{"details":[{"reason":"API_KEY_INVALID","retryDelay":"3s"}]}}]`, "abc", uint8(3))
	f.Add("bedrock", 400, strings.Repeat(`[{"a":`, 20_000), "Mon, 30 Nov 2026 12:00:02 GMT", uint8(5))
	f.Add("zhipu", 429, `]}{"":[}`, "-1", uint8(0))
	f.Fuzz(func(t *testing.T, provider string, status int, body, hint string, d uint8) {
		r := OfAnswer(Answer{
			Provider: provider, Dialect: dialect.Dialect(d), Status: status, Body: []byte(body), Model: body[:len(body)/2], HasModel: d%2 == 0, Now: now,
			Header: header("Retry-After", hint, "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", hint, "X-Amzn-Errortype", hint),
		})
		if r.Pause < 0 || r.Pause > time.Hour || len(r.Reason) > 100 || strings.ContainsAny(r.Code, " \n\"") {
			t.Errorf("%+v", r)
		}
		OfStreamError(provider, dialect.None, hint, body, body, status, now)
	})
}
