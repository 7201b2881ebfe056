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
	"strings"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

const (
	// bare has one channel without a key, keyed one with it.
	bare  = "channel a {\nbase_url {0}\nOPTION\n}"
	keyed = "channel a {\nbase_url {0}\nkey k-of-a\nOPTION\n}"

	// preferred has b behind the channel with the option, besides has it beside.
	preferred = bare + "\nchannel b {\nbase_url {1}\npriority 1\n}"
	besides   = bare + "\nchannel b {\nbase_url {1}\n}"
)

var channelOutcomes = []outcome{
	{options: "channel base_url", block: "channel a {\nOPTION\n}",
		with: "base_url {1}", without: "base_url {0}",
		observe: chats, want: [2]string{"200 a", "200 b"}},
	{options: "channel provider", block: keyed,
		with: "provider azure", without: "provider openai",
		observe: credentialSent, want: [2]string{"Authorization: Bearer k-of-a", "Api-Key: k-of-a"}},
	{options: "channel key", block: bare,
		with: "key k1", without: "key k2",
		observe: credentialSent, want: [2]string{"Authorization: Bearer k2", "Authorization: Bearer k1"}},
	{options: "channel auth bearer|header", block: "channel a {\nbase_url {0}\nprovider azure\nkey k-of-a\nOPTION\n}",
		with: "auth bearer", without: "auth header X-Api-Key",
		observe: credentialSent, want: [2]string{"X-Api-Key: k-of-a", "Authorization: Bearer k-of-a"}},
	{options: "channel auth query", block: keyed,
		with:    "auth query k",
		observe: credentialSent, want: [2]string{"Authorization: Bearer k-of-a", "?k=k-of-a"}},
	{options: "channel auth passthrough|none", block: bare,
		with: "auth passthrough", without: "auth none",
		observe: credentialSent, want: [2]string{"", "Authorization: Bearer of-the-client"}},

	{options: "channel header_up", block: bare,
		with:    "header_up -X-Client",
		observe: headerSent, want: [2]string{"some value", ""}},
	{options: "channel header_up value", block: bare,
		with: "header_up X-Client another", without: "header_up X-Other another",
		observe: headerSent, want: [2]string{"some value", "another"}},
	{options: "channel header_up replacement", block: bare,
		with: "header_up X-Client some any", without: "header_up X-Client value any",
		observe: headerSent, want: [2]string{"some any", "any value"}},

	{options: "channel models", block: bare,
		with: "models other*", without: "models m*",
		observe: modelAsked, want: [2]string{"m1", "404"}},
	{options: "channel model_map upstream", block: bare,
		with: "model_map m* up-*", without: "model_map m* down-*",
		observe: modelAsked, want: [2]string{"down-1", "up-1"}},
	{options: "channel default_model", block: "channel a {\nbase_url {0}\nmodels other\nOPTION\n}",
		with:    "default_model fallback",
		observe: modelAsked, want: [2]string{"404", "fallback"}},

	{options: "channel priority", block: preferred,
		with:    "priority 2",
		observe: chats, want: [2]string{"200 a", "200 b"}},
	{options: "channel weight", block: besides,
		with: "weight 1000", without: "weight 1",
		observe: share, want: [2]string{"a gets its half", "a gets most"}},
	{options: "channel backup", block: besides,
		with:    "backup b",
		observe: share, want: [2]string{"a gets its half", "a gets most"}},
	{options: "channel max_requests", block: preferred,
		with: "max_requests 1", without: "max_requests 2",
		observe: whereBusy, want: [2]string{"aa", "ab"}},
	{options: "channel failure_on", block: preferred,
		with: "failure_on 400",
		observe: func(s *stage) string {
			answer := chatsWhen(testrig.Fail(400, ""))(s)
			return fmt.Sprint(answer, ", counted ", s.Breaker("a", "m1").ConsecutiveFailures)
		}, want: [2]string{"400 a, counted 0", "200 ab, counted 1"}},
}

// credentialSent returns the credential that a gets, and where.
func credentialSent(s *stage) string {
	r := s.Request("/v1/chat/completions", testrig.Chat("m1"))
	r.Header.Set("Authorization", "Bearer of-the-client")
	s.do(r)
	got := s.us[0].Last()
	if _, query, there := strings.Cut(got.Target, "?"); there {
		return "?" + query
	}
	for _, name := range []string{"Authorization", "Api-Key", "X-Api-Key"} {
		if value := got.Header.Get(name); value != "" {
			return name + ": " + value
		}
	}
	return ""
}

// headerSent returns what becomes of a header of the client.
func headerSent(s *stage) string {
	r := s.Request("/v1/chat/completions", testrig.Chat("m1"))
	r.Header.Set("X-Client", "some value")
	s.do(r)
	return s.us[0].Last().Header.Get("X-Client")
}

// modelAsked returns what a is asked for when the client asks for m1, or the
// status if it is not asked.
func modelAsked(s *stage) string {
	answer := s.chat()
	if s.us[0].Count() == 0 {
		return answer
	}
	return s.us[0].Last().Model
}

// share tells whether a gets about as much as b, or much more.
func share(s *stage) string {
	of := 0
	for range 60 {
		if s.chat() == "200 a" {
			of++
		}
	}
	if of > 50 {
		return "a gets most"
	}
	return "a gets its half"
}
