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
	"strings"
	"testing"
	"time"
)

func TestHint(t *testing.T) {
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		name    string
		headers []string
		body    string
		want    time.Duration
	}{
		{name: "none"},
		{name: "one", headers: []string{"Retry-After", "1"}, want: time.Second},
		{name: "zero", headers: []string{"Retry-After", "0"}},
		{name: "negative", headers: []string{"Retry-After", "-5"}},
		{name: "a day", headers: []string{"Retry-After", "86400"}, want: time.Hour},
		{name: "20 nines", headers: []string{"Retry-After", strings.Repeat("9", 20)}, want: time.Hour},
		{name: "400 nines", headers: []string{"Retry-After", strings.Repeat("9", 400)}, want: time.Hour},
		{name: "fraction", headers: []string{"Retry-After", "1.5"}, want: 1500 * time.Millisecond},
		{name: "small fraction", headers: []string{"Retry-After", "0.2"}, want: 200 * time.Millisecond},
		{name: "letters", headers: []string{"Retry-After", "abc"}},
		{name: "empty", headers: []string{"Retry-After", ""}},
		{name: "infinity", headers: []string{"Retry-After", "Inf"}},
		{name: "not a number", headers: []string{"Retry-After", "NaN"}},
		{name: "exponent", headers: []string{"Retry-After", "1e3"}},
		{name: "two dots", headers: []string{"Retry-After", "1.2.3"}},
		{name: "spaces around", headers: []string{"Retry-After", " 2 "}, want: 2 * time.Second},
		{name: "twice", headers: []string{"Retry-After", "3", "Retry-After", "2"}, want: 3 * time.Second},
		{name: "twice, first bad", headers: []string{"Retry-After", "x", "Retry-After", "2"}, want: 2 * time.Second},
		{name: "date", headers: []string{"Retry-After", at(2 * time.Second)}, want: 2 * time.Second},
		{name: "date in the past", headers: []string{"Retry-After", at(-time.Hour)}},
		{name: "date in the year 9999", headers: []string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}, want: time.Hour},
		{name: "date in the year 1", headers: []string{"Retry-After", "Mon, 01 Jan 0001 00:00:00 GMT"}},
		{name: "milliseconds", headers: []string{"retry-after-ms", "1500"}, want: 1500 * time.Millisecond},
		{name: "milliseconds and seconds", headers: []string{"retry-after-ms", "1500", "Retry-After", "1"}, want: 1500 * time.Millisecond},
		{name: "negative milliseconds", headers: []string{"retry-after-ms", "-1500", "Retry-After", "1"}, want: time.Second},

		{name: "openai reset", headers: []string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s"}, want: 6 * time.Minute},
		{name: "openai reset in ms", headers: []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "20ms"}, want: 20 * time.Millisecond},
		{name: "groq reset", headers: []string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "2m59.56s"}, want: 2*time.Minute + 59560*time.Millisecond},
		{name: "something remains", headers: []string{"x-ratelimit-remaining-tokens", "7", "x-ratelimit-reset-tokens", "6m0s"}},
		{name: "one of two exhausted", headers: []string{"x-ratelimit-remaining-tokens", "7", "x-ratelimit-reset-tokens", "6m0s", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "2s"}, want: 2 * time.Second},
		{name: "longest of all", headers: []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "2s", "Retry-After", "5"}, want: 5 * time.Second},
		{name: "anthropic reset", headers: []string{"anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset", "2026-11-30T12:00:30Z"}, want: 30 * time.Second},
		{name: "anthropic reset with offset", headers: []string{"anthropic-ratelimit-requests-remaining", "0", "anthropic-ratelimit-requests-reset", "2026-11-30T13:00:30+01:00"}, want: 30 * time.Second},
		{name: "anthropic reset past", headers: []string{"anthropic-ratelimit-requests-remaining", "0", "anthropic-ratelimit-requests-reset", "2026-11-30T11:00:30Z"}},
		{name: "reset in seconds", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "12"}, want: 12 * time.Second},
		{name: "reset in epoch seconds", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1796040010"}, want: 10 * time.Second},
		{name: "reset in epoch milliseconds", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1796040010500"}, want: 10500 * time.Millisecond},
		{name: "reset missing", headers: []string{"X-RateLimit-Remaining", "0"}},
		{name: "reset unreadable", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "soon"}},

		{name: "google delay", body: `{"error":{"details":[{"@type":"x"},{"retryDelay":"37s"}]}}`, want: 37 * time.Second},
		{name: "google delay in brackets", body: `[{"error":{"details":[{"retryDelay":"600.5s"}]}}]`, want: 600500 * time.Millisecond},
		{name: "google delay negative", body: `{"error":{"details":[{"retryDelay":"-3s"}]}}`},
		{name: "google delay and header", headers: []string{"Retry-After", "50"}, body: `{"error":{"details":[{"retryDelay":"37s"}]}}`, want: 50 * time.Second},
		{name: "google delay too long", body: `{"error":{"details":[{"retryDelay":"99999s"}]}}`, want: time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := OfAnswer(Answer{Provider: "openai", Status: 429, Header: header(tt.headers...), Body: []byte(tt.body), HasModel: true, Now: now})
			if diff := r.Pause - tt.want; diff < -time.Millisecond || diff > time.Millisecond || r.Verdict != Limited {
				t.Errorf("%v for %v, want %v", r.Verdict, r.Pause, tt.want)
			}
		})
	}
}
