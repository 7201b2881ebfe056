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

package llmgateway_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// levels has a place for an option at the gateway and at a.
const levels = `
	OPTION
	channel a {
		base_url {0}
		key k1 k2
		CHANNEL
	}
	channel b {
		base_url {1}
		priority 1
	}`

// A limit that is short, and a pause longer than that.
const (
	limit = "100ms"
	pause = 300 * time.Millisecond
)

// sharedOutcomes are those of the options that stand at the gateway and at
// channels.
var sharedOutcomes = []outcome{
	{options: "shared header_timeout", block: levels,
		with: "header_timeout " + limit + " 1h", without: "header_timeout 1h 1h",
		observe: streamAndChat, want: [2]string{"200 a, 200 a", "200 ab, 200 a"}},
	{options: "shared header_timeout other", block: levels,
		with: "header_timeout 1h " + limit, without: "header_timeout 1h 1h",
		observe: streamAndChat, want: [2]string{"200 a, 200 a", "200 a, 200 ab"}},
	{options: "shared first_token_timeout off", block: "peek_timeout 20ms\n" + levels,
		with: "first_token_timeout " + limit, without: "first_token_timeout off",
		observe: streamsWhen(roleThen(pause, wholeStream)), want: [2]string{"200 a", "200 ab"}},
	{options: "shared idle_timeout off", block: levels,
		with: "idle_timeout " + limit, without: "idle_timeout off",
		observe: chatsWhen(slowBody), want: [2]string{"200 a", "200 ab"}},
	{options: "shared limit_scope key|channel", block: levels,
		with: "limit_scope channel", without: "limit_scope key",
		observe: func(s *stage) string { return chatsWhen(limitedOnce())(s) }, want: [2]string{"200 aa", "200 ab"}},
	{options: "shared transport http", block: levels,
		with: "transport http {\nkeepalive off\n}", without: "transport http {\nkeepalive 1m\n}",
		observe: func(s *stage) string { s.chat(); return s.us[0].Last().Header.Get("Connection") },
		want:    [2]string{"", "close"}},

	{options: "shared breaker off", block: levels,
		with: "breaker off", without: "breaker {\nopen_threshold 1\n}",
		observe: threeFailures, want: [2]string{"200 b, a is open", "200 ab, a is closed"}},
	{options: "shared breaker dry_run", block: levels, inherited: true,
		with: "breaker dry_run {\nopen_threshold 1\n}", without: "breaker {\nopen_threshold 1\n}",
		observe: threeFailures, want: [2]string{"200 b, a is open", "200 ab, a is open"}},
	{options: "shared auto_disable off", block: levels,
		with: "auto_disable off", without: "auto_disable {\nstatus 500 1\n}",
		observe: disabledOrNot, want: [2]string{"200 b, disabled", "200 ab, enabled"}},
	{options: "shared auto_disable dry_run", block: levels, inherited: true,
		with: "auto_disable dry_run {\nstatus 500 1\n}", without: "auto_disable {\nstatus 500 1\n}",
		observe: disabledOrNot, want: [2]string{"200 b, disabled", "200 ab, enabled, would be disabled"}},
}

func streamAndChat(s *stage) string {
	s.answers(later(pause, ok))
	return s.stream() + ", " + s.chat()
}

// slowBody pauses in the middle of its answer.
func slowBody(w http.ResponseWriter, r *http.Request) {
	plainJSON(`{"choices":[`)(w, r)
	w.(http.Flusher).Flush()
	later(pause, plainJSON("]}"))(w, r)
}

// roleThen answers with the head of a stream, and with the rest after a time.
func roleThen(d time.Duration, rest string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sse(roleOnly)(w, r)
		w.(http.Flusher).Flush()
		later(d, sse(rest))(w, r)
	}
}

// limitedOnce answers 429 to the first request, and serves the others.
func limitedOnce() http.HandlerFunc {
	var limited atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if limited.CompareAndSwap(false, true) {
			testrig.Fail(429, "")(w, r)
			return
		}
		testrig.OK(w, r)
	}
}

// threeFailures returns who answers the third of requests that fail at a.
func threeFailures(s *stage) string {
	s.answers(fail)
	last := s.times(3, s.chat)
	state := s.Breaker("a", "m1").State
	if state == "" {
		state = "closed" // nothing to be told
	}
	return last + ", a is " + state
}

// disabledOrNot returns who answers after a failed, and what became of a.
func disabledOrNot(s *stage) string {
	s.answers(fail)
	last := s.times(2, s.chat)
	a := s.Channel("a")
	if a.Disabled != nil && a.State == "enabled" {
		return fmt.Sprint(last, ", enabled, would be disabled")
	}
	return last + ", " + a.State
}
