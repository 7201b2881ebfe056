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
	"encoding/json"
	"net/http"
	"strconv"
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
		{name: "plus sign", headers: []string{"Retry-After", "+5"}},
		{name: "hexadecimal", headers: []string{"Retry-After", "0x10"}},
		{name: "underscore", headers: []string{"Retry-After", "1_000"}},
		{name: "comma", headers: []string{"Retry-After", "1,5"}},
		{name: "a dot", headers: []string{"Retry-After", "."}},
		{name: "leading zeros", headers: []string{"Retry-After", "007"}, want: 7 * time.Second},
		{name: "tiny fraction", headers: []string{"Retry-After", "0." + strings.Repeat("0", 40) + "1"}},
		{name: "hour and a bit", headers: []string{"Retry-After", "3600.001"}, want: time.Hour},
		{name: "not UTF-8", headers: []string{"Retry-After", "\xff\xfe5"}},
		{name: "NUL", headers: []string{"Retry-After", "5\x00"}},
		{name: "twice the same", headers: []string{"Retry-After", "3", "Retry-After", "3"}, want: 3 * time.Second},
		{name: "twice, date and seconds", headers: []string{"Retry-After", at(9 * time.Second), "Retry-After", "3"}, want: 9 * time.Second},
		{name: "date as of RFC 850", headers: []string{"Retry-After", "Monday, 30-Nov-26 12:00:05 GMT"}, want: 5 * time.Second},
		{name: "date as of ANSI C", headers: []string{"Retry-After", "Mon Nov 30 12:00:05 2026"}, want: 5 * time.Second},
		{name: "date now", headers: []string{"Retry-After", at(0)}},
		{name: "date of no calendar", headers: []string{"Retry-After", "Mon, 31 Nov 2026 12:00:05 GMT"}},
		{name: "timestamp instead of a date", headers: []string{"Retry-After", "2026-11-30T12:00:05Z"}},
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
		{name: "milliseconds, a fraction", headers: []string{"retry-after-ms", "0.5"}, want: 500 * time.Microsecond},
		{name: "milliseconds zero", headers: []string{"retry-after-ms", "0", "Retry-After", "2"}, want: 2 * time.Second},
		{name: "milliseconds huge", headers: []string{"retry-after-ms", strings.Repeat("9", 30)}, want: time.Hour},
		{name: "milliseconds unreadable", headers: []string{"retry-after-ms", "soon"}},
		{name: "milliseconds twice", headers: []string{"retry-after-ms", "10", "retry-after-ms", "30"}, want: 30 * time.Millisecond},
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
		{name: "reset in epoch seconds, past", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1796039990"}},
		{name: "reset in epoch seconds, next year", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1828000000"}, want: time.Hour},
		{name: "reset of 20 nines", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strings.Repeat("9", 20)}, want: time.Hour},
		{name: "reset with a unit", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "12s"}, want: 12 * time.Second},
		{name: "reset of hours", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1h2m"}, want: time.Hour},
		{name: "reset longer than a Go duration", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "99999999999s"}, want: time.Hour},
		{name: "reset negative", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "-12s"}},
		{name: "reset with garbage behind", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "12s?"}},
		{name: "reset twice", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "3", "X-RateLimit-Reset", "5"}, want: 5 * time.Second},
		{name: "reset of one in the year 9999", headers: []string{"anthropic-ratelimit-tokens-remaining", "0", "anthropic-ratelimit-tokens-reset", "9999-12-31T23:59:59Z"}, want: time.Hour},
		{name: "reset without remaining", headers: []string{"X-RateLimit-Reset", "12"}},
		{name: "remaining below zero", headers: []string{"X-RateLimit-Remaining", "-1", "X-RateLimit-Reset", "12"}, want: 12 * time.Second},
		{name: "remaining unreadable", headers: []string{"X-RateLimit-Remaining", "none", "X-RateLimit-Reset", "12"}},
		{name: "remaining of another limit", headers: []string{"X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Requests", "12"}},
		{name: "project tokens", headers: []string{"x-ratelimit-remaining-project-tokens", "0", "x-ratelimit-reset-project-tokens", "1m0s"}, want: time.Minute},
		{name: "reset missing", headers: []string{"X-RateLimit-Remaining", "0"}},
		{name: "reset unreadable", headers: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "soon"}},

		{name: "google delay", body: `{"error":{"details":[{"@type":"x"},{"retryDelay":"37s"}]}}`, want: 37 * time.Second},
		{name: "google delay in brackets", body: `[{"error":{"details":[{"retryDelay":"600.5s"}]}}]`, want: 600500 * time.Millisecond},
		{name: "google delay negative", body: `{"error":{"details":[{"retryDelay":"-3s"}]}}`},
		{name: "google delay and header", headers: []string{"Retry-After", "50"}, body: `{"error":{"details":[{"retryDelay":"37s"}]}}`, want: 50 * time.Second},
		{name: "google delay of nothing", body: `{"error":{"details":[{"retryDelay":""}]}}`},
		{name: "google delay as a number", body: `{"error":{"details":[{"retryDelay":37}]}}`},
		{name: "google delay unreadable, then one", body: `{"error":{"details":[{"retryDelay":"soon"},{"retryDelay":"5s"}]}}`},
		{name: "google delay of 10,000 years", body: `{"error":{"details":[{"retryDelay":"315576000000s"}]}}`, want: time.Hour},
		{name: "text", body: `{"error":{"message":"Rate limit reached. Please try again in 20s."}}`, want: 20 * time.Second},
		{name: "text, minutes and a fraction", body: `{"error":{"message":"Please try again in 1m2.5s. Visit x"}}`, want: 62500 * time.Millisecond},
		{name: "text, milliseconds", body: `{"error":{"message":"Please try again in 120ms."}}`, want: 120 * time.Millisecond},
		{name: "text, hours", body: `{"error":{"message":"Please try again in 7h12m0s"}}`, want: time.Hour},
		{name: "text, words", body: `{"error":{"message":"Please retry after 6 seconds."}}`, want: 6 * time.Second},
		{name: "text, one word", body: `{"error":{"message":"Rate limit is exceeded. Try again in 1 second."}}`, want: time.Second},
		{name: "text, minutes and seconds as words", body: `{"error":{"message":"try again in 2 minutes 5 seconds"}}`, want: 125 * time.Second},
		{name: "text, days", body: `{"error":{"message":"try again in 3 days"}}`, want: time.Hour},
		{name: "text, Google", body: `{"error":{"message":"Please retry in 45.2s."}}`, want: 45200 * time.Millisecond},
		{name: "text, twice", body: `{"error":{"message":"try again in 2s, or try again in 9s"}}`, want: 9 * time.Second},
		{name: "text, flat", body: `{"message":"try again in 4s"}`, want: 4 * time.Second},
		{name: "text, in a string", body: `{"error":"try again in 4s"}`, want: 4 * time.Second},
		{name: "text without a unit", body: `{"error":{"message":"try again in 4"}}`},
		{name: "text without a number", body: `{"error":{"message":"try again in a few seconds"}}`},
		{name: "text, later", body: `{"error":{"message":"please try again later"}}`},
		{name: "text, negative", body: `{"error":{"message":"try again in -4s"}}`},
		{name: "text at the end", body: `{"error":{"message":"try again in "}}`},
		{name: "text beyond what is read", body: `{"error":{"message":"` + strings.Repeat("x", maxMessage) + ` try again in 4s"}}`},
		{name: "text and header", headers: []string{"Retry-After", "5"}, body: `{"error":{"message":"try again in 4s"}}`, want: 5 * time.Second},
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

// Only what passes by itself is waited for.
func TestHintsOfOtherErrorsAreIgnored(t *testing.T) {
	hints := []string{"Retry-After", "7", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "9s"}
	for status, want := range map[int]time.Duration{
		200: 0, 301: 0, 400: 0, 401: 0, 403: 0, 404: 0, 413: 0, 500: 0, 502: 0, 504: 0,
		402: 9 * time.Second, 429: 9 * time.Second, 503: 9 * time.Second, 529: 9 * time.Second,
	} {
		if r := outcomeOf("openai", status, `{"error":{"message":"try again in 8s"}}`, hints...); r.Pause != want {
			t.Errorf("%d pauses for %v, want %v", status, r.Pause, want)
		}
	}
}

// A reset or a text gives a time, but only Retry-After makes an answer one that
// is worth waiting for.
func TestOnlyRetryAfterChangesTheMeaning(t *testing.T) {
	for _, c := range []struct{ headers []string }{
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "9"}}, {nil},
	} {
		body := `{"error":{"message":"try again in 8s","details":[{"retryDelay":"7s"}]}}`
		if got := brief(outcomeOf("openai", 402, body, c.headers...)); got != asUnpaid {
			t.Errorf("402 %v: %s", c.headers, got)
		}
		if got := brief(outcomeOf("openai", 503, body, c.headers...)); got != asFailure {
			t.Errorf("503 %v: %s", c.headers, got)
		}
	}
}

func TestSecondsAndDateAgree(t *testing.T) {
	for seconds := -3; seconds < 4000; seconds += 7 {
		date := now.Add(time.Duration(seconds) * time.Second).Format(http.TimeFormat)
		plain := outcomeOf("openai", 429, "", "Retry-After", strconv.Itoa(seconds))
		asDate := outcomeOf("openai", 429, "", "Retry-After", date)
		if plain.Pause != asDate.Pause {
			t.Errorf("%d s: %v, %s: %v", seconds, plain.Pause, date, asDate.Pause)
		}
	}
}

// pauseOf returns for how long a 429 pauses with the headers, delay and message
// that are not empty.
func pauseOf(retryAfter []string, afterMs, remaining, reset, delay, message string) time.Duration {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{
		"message": message, "details": []any{map[string]string{"retryDelay": delay}},
	}})
	h := http.Header{"Content-Type": {"application/json"}, "Retry-After": retryAfter}
	for name, value := range map[string]string{"Retry-After-Ms": afterMs, "X-Ratelimit-Remaining": remaining, "X-Ratelimit-Reset": reset} {
		if value != "" {
			h[name] = []string{value}
		}
	}
	return OfAnswer(Answer{Provider: "openai", Status: 429, Header: h, Body: body, HasModel: true, Now: now}).Pause
}

func FuzzHint(f *testing.F) {
	f.Add("1", "2", "1500", "0", "6m0s", "37s", "try again in 20s", uint32(5))
	f.Add("-5", "", "-1", "0", "1796040010", "600.5s", "Please retry after 3 seconds.", uint32(0))
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT", "1.5", "0.1", "-1", "1796040010500", "-3s", "try again in 1m2.5s", uint32(86400))
	f.Add("99999999999999999999", "abc", "NaN", "0.0", "9999-12-31T23:59:59Z", "315576000000s", "retry in 1h2m3.4s5ms", uint32(3600))
	f.Add("Mon, 30 Nov 2026 12:00:02 GMT", "Inf", "1e3", "1", "-12s", "1h1h1h", "try again in 9 days 9 hours 9µs", uint32(1))
	f.Fuzz(func(t *testing.T, after, afterToo, afterMs, remaining, reset, delay, message string, seconds uint32) {
		all := pauseOf([]string{after, afterToo}, afterMs, remaining, reset, delay, message)
		if all < 0 || all > time.Hour {
			t.Fatalf("pauses for %v", all)
		}
		if turned := pauseOf([]string{afterToo, after}, afterMs, remaining, reset, delay, message); turned != all {
			t.Errorf("%v, in the other order %v", all, turned)
		}
		var longest time.Duration
		for _, one := range []time.Duration{
			pauseOf([]string{after}, "", "", "", "", ""), pauseOf([]string{afterToo}, "", "", "", "", ""), pauseOf(nil, afterMs, "", "", "", ""),
			pauseOf(nil, "", remaining, reset, "", ""), pauseOf(nil, "", "", "", delay, ""), pauseOf(nil, "", "", "", "", message),
		} {
			longest = max(longest, one)
		}
		if all != longest {
			t.Errorf("all together %v, the longest %v", all, longest)
		}
		date := now.Add(time.Duration(seconds) * time.Second).Format(http.TimeFormat)
		plain, dated := pauseOf([]string{strconv.FormatUint(uint64(seconds), 10)}, "", "", "", "", ""), pauseOf([]string{date}, "", "", "", "", "")
		if plain != dated || plain != min(time.Duration(seconds)*time.Second, time.Hour) {
			t.Errorf("%d s: %v as seconds, %v as a date", seconds, plain, dated)
		}
	})
}
