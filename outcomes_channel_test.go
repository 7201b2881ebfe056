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
	"strings"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// header returns a header of what a got.
func header(name string) func(*stage) string {
	return func(s *stage) string {
		r := s.Request("/v1/chat/completions", testrig.Chat("m1"))
		r.Header.Set("Authorization", "Bearer of-the-client")
		s.do(r)
		return s.us[0].Last().Header.Get(name)
	}
}

// modelAsked returns what a was asked for when the client asked for m1, or the status
// if it was not.
func modelAsked(s *stage) string {
	before := s.us[0].Count()
	if answer := s.chat(); s.us[0].Count() == before {
		return answer
	}
	return s.us[0].Last().Model
}

// share tells whether a gets about as much as b, or much more.
func share(s *stage) string {
	all := ""
	for range 60 {
		all += s.chat()
	}
	if strings.Count(all, "a") > 50 {
		return "most"
	}
	return "half"
}

const equalChannels = "early_probe off\nchannel a {\nbase_url {0}\nOPTION\n}\nchannel b {\nbase_url {1}\n}"

var channelOutcomes = []outcome{
	{options: "channel provider", block: chan2, with: "provider azure",
		observe: header("Api-Key"), want: [2]string{"", "k-of-a"}},
	{options: "channel base_url", block: "channel a {\nOPTION\n}", without: "base_url {0}", with: "base_url {1}",
		observe: func(s *stage) string { return s.chat() }, want: [2]string{"200 a", "200 b"}},
	{options: "channel key, channel auth bearer", block: "channel a {\nbase_url {0}\nOPTION\n}", with: "key k2\nauth bearer",
		observe: header("Authorization"), want: [2]string{"", "Bearer k2"}},
	{options: "channel auth, channel auth header", block: one, with: "auth header X-Key",
		observe: header("X-Key"), want: [2]string{"", "k-of-a"}},
	{options: "channel auth query", block: one, with: "auth query k",
		observe: func(s *stage) string { s.chat(); return s.us[0].Last().Target },
		want:    [2]string{"/v1/chat/completions", "/v1/chat/completions?k=k-of-a"}},
	{options: "channel auth passthrough", block: "channel a {\nbase_url {0}\nOPTION\n}", with: "auth passthrough",
		observe: header("Authorization"), want: [2]string{"", "Bearer of-the-client"}},
	{options: "channel auth none", block: "channel a {\nbase_url {0}\nOPTION\n}", without: "key k-of-a", with: "auth none",
		observe: header("Authorization"), want: [2]string{"Bearer k-of-a", ""}},
	{options: "channel header_up", block: one, with: "header_up X-Extra yes",
		observe: header("X-Extra"), want: [2]string{"", "yes"}},
	{options: "channel models", block: one, with: "models other*",
		observe: modelAsked, want: [2]string{"m1", "404"}},
	{options: "channel model_map", block: one, with: "model_map m* up-*",
		observe: modelAsked, want: [2]string{"m1", "up-1"}},
	{options: "channel default_model", block: one, without: "models other", with: "models other\ndefault_model fallback",
		observe: modelAsked, want: [2]string{"404", "fallback"}},
	{options: "channel priority", block: chan2, with: "priority 2",
		observe: func(s *stage) string { return s.chat() }, want: [2]string{"200 a", "200 b"}},
	{options: "channel weight", block: equalChannels, with: "weight 1000",
		observe: share, want: [2]string{"half", "most"}},
	{options: "channel backup", block: equalChannels, with: "backup b",
		observe: share, want: [2]string{"half", "most"}},
	{options: "channel max_requests", block: chan2, with: "max_requests 1",
		observe: func(s *stage) string {
			release := make(chan struct{})
			s.answers(func(w http.ResponseWriter, r *http.Request) { <-release; testrig.OK(w, r) })
			for range 2 {
				go s.Chat("m1")
			}
			testrig.Eventually(s.t, "both are asked for", func() bool { return s.us[0].Count()+s.us[1].Count() == 2 })
			close(release)
			return fmt.Sprint(s.us[0].Count())
		}, want: [2]string{"2", "1"}},
	{options: "channel failure_on", block: chan2, with: "failure_on 400",
		observe: func(s *stage) string {
			s.answers(testrig.Fail(400, ""))
			return s.chat() + fmt.Sprint(" ", s.Breaker("a", "m1").ConsecutiveFailures)
		}, want: [2]string{"400 a 0", "200 ab 1"}},
	{options: "channel header_timeout, channel header_timeout stream", block: chan2, with: "header_timeout 50ms",
		observe: func(s *stage) string {
			s.answers(later(300*time.Millisecond, ok))
			return s.stream() + ", " + s.chat()
		}, want: [2]string{"200 a, 200 a", "200 ab, 200 a"}},
	{options: "channel header_timeout other", block: "header_timeout 50ms 50ms\n" + chan2, with: "header_timeout 1h 1h",
		observe: func(s *stage) string { s.answers(later(300*time.Millisecond, ok)); return s.chat() }, want: [2]string{"200 ab", "200 a"}},
	{options: "channel first_token_timeout", block: "first_token_timeout 50ms\n" + chan2, with: "first_token_timeout off",
		observe: func(s *stage) string {
			s.answers(func(w http.ResponseWriter, r *http.Request) {
				sse(roleOnly)(w, r)
				w.(http.Flusher).Flush()
				later(300*time.Millisecond, sse(wholeStream))(w, r)
			})
			return s.stream()
		}, want: [2]string{"200 ab", "200 a"}},
	{options: "channel idle_timeout", block: "idle_timeout 50ms\n" + chan2, with: "idle_timeout off",
		observe: slowBody, want: [2]string{"200 ab", "200 a"}},
	{options: "channel limit_scope", block: "limit_scope channel\n" + strings.Replace(chan2, "k-of-a", "k1 k2", 1), with: "limit_scope key",
		observe: func(s *stage) string { s.answers(limitsOnce()); return s.chat() }, want: [2]string{"200 ab", "200 aa"}},
	{options: "channel transport", block: one, with: "transport http {\nkeepalive off\n}",
		observe: connection, want: [2]string{"kept", "close"}},
	{options: "channel breaker", block: "breaker {\nopen_threshold 1\n}\n" + chan2, with: "breaker {\nopen_threshold 2\n}",
		observe: opensAfter(1), want: [2]string{"open", "closed"}},
	{options: "channel breaker off", block: "breaker {\nopen_threshold 1\n}\n" + chan2, with: "breaker off",
		observe: func(s *stage) string { s.answers(fail); return s.times(3, s.chat) }, want: [2]string{"200 b", "200 ab"}},
	{options: "channel auto_disable", block: chan2, with: "auto_disable {\nstatus 401 1\n}",
		observe: keyAfter(401), want: [2]string{"paused", "disabled"}},
	{options: "channel auto_disable off", block: "auto_disable {\nstatus 401 1\n}\n" + chan2, with: "auto_disable off",
		observe: keyAfter(401), want: [2]string{"disabled", "paused"}},
}
