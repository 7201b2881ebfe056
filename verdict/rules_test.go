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
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// errorBody is an error object as most providers write it.
func errorBody(typ, code, message string) string {
	return `{"error":{"message":"` + message + `","type":"` + typ + `","param":null,"code":"` + code + `"}}`
}

func anthropicBody(typ, message, code string) string {
	return `{"type":"error","error":{"type":"` + typ + `","message":"` + message + `","details":{"error_code":"` + code + `"}},"request_id":"r"}`
}

func googleBody(status, message, details string) string {
	return `{"error":{"code":400,"message":"` + message + `","status":"` + status + `","details":[` + details + `]}}`
}

func TestDialectBringsItsRules(t *testing.T) {
	body := []byte(anthropicBody("invalid_request_error", "Your credit balance is too low", ""))
	for d, want := range map[dialect.Dialect]string{dialect.Anthropic: asUnpaid + known, dialect.OpenAI: asClient} {
		r := OfAnswer(Answer{Provider: "vertex", Dialect: d, Status: 400, Header: header(), Body: body, HasModel: true, Now: now})
		if brief(r) != want {
			t.Errorf("%v: %s, want %s", d, brief(r), want)
		}
	}
}

func TestErrorTypeHeader(t *testing.T) {
	h := header("X-Amzn-Errortype", "ResourceNotFoundException:http://internal.amazon.com/x/")
	r := OfAnswer(Answer{Provider: "bedrock", Dialect: dialect.Bedrock, Status: 404, Header: h, Body: []byte(`{"message":"x"}`), HasModel: true, Now: now})
	if brief(r) != asMissing+known || r.Code != "ResourceNotFoundException" {
		t.Errorf("%s %q", brief(r), r.Code)
	}
}

func TestLimitsThatNameTheirEndInTheText(t *testing.T) {
	perDay := googleBody("RESOURCE_EXHAUSTED", "", `{"violations":[{"quotaId":"RequestsPerDay"}]},{"retryDelay":"5s"}`)
	perMinute := googleBody("RESOURCE_EXHAUSTED", "", `{"violations":[{"quotaId":"RequestsPerMinute"}]},{"retryDelay":"5s"}`)
	nearMidnight := time.Date(2026, 12, 1, 7, 50, 0, 0, time.UTC) // 23:50 in Los Angeles
	tests := []struct {
		provider, body string
		now            time.Time
		want           time.Duration
	}{
		{"gemini", perDay, now, time.Hour},
		{"gemini", perDay, nearMidnight, 10 * time.Minute},
		{"gemini", perMinute, now, 5 * time.Second},
		{"zhipu", errorBody("", "1304", ""), now, time.Hour},
		{"zhipu", errorBody("", "1308", "resets at 2026-11-30 20:05:00"), now, 5 * time.Minute},
		{"zhipu", errorBody("", "1308", "resets at 2026-11-30 19:05:00"), now, 0},
		{"zhipu", errorBody("", "1310", "resets some day"), now, 0},
	}
	for _, tt := range tests {
		r := OfAnswer(Answer{Provider: tt.provider, Status: 429, Header: header(), Body: []byte(tt.body), HasModel: true, Now: tt.now})
		if r.Verdict != Limited || r.Pause != tt.want {
			t.Errorf("%s: %v for %v, want %v", tt.body, r.Verdict, r.Pause, tt.want)
		}
	}
}
