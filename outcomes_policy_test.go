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

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// equals has two channels that only the policy tells apart.
const equals = `
	OPTION
	channel a {
		base_url {0}
	}
	channel b {
		base_url {1}
	}`

// policyOutcomes are those of lb_policy, each policy beside one that shows its
// difference, and of affinity.
var policyOutcomes = []outcome{
	{options: "gateway lb_policy weighted|first", block: equals,
		with: "lb_policy first", without: "lb_policy weighted",
		observe: spread, want: [2]string{"not only a", "a only"}},
	{options: "gateway lb_policy random", block: equals,
		with: "lb_policy random", without: "lb_policy first",
		observe: spread, want: [2]string{"a only", "not only a"}},
	{options: "gateway lb_policy random_choose", block: equals + "\nchannel c {\nbase_url {2}\n}", // of two that are idle, it takes the first
		with: "lb_policy random_choose 2", without: "lb_policy first",
		observe: spread, want: [2]string{"a only", "not only a"}},
	{options: "gateway lb_policy round_robin", block: equals,
		with: "lb_policy round_robin", without: "lb_policy random",
		observe: turns, want: [2]string{"no turns", "turns"}},
	{options: "gateway lb_policy least_conn", block: equals,
		with: "lb_policy least_conn", without: "lb_policy first",
		observe: whereBusy, want: [2]string{"aa", "ab"}},

	{options: "gateway lb_policy ip_hash", block: equals,
		with: "lb_policy ip_hash", without: "lb_policy random",
		observe: sessions(byHeader), want: [2]string{"they move", "they stay"}},
	{options: "gateway lb_policy client_ip_hash", block: equals,
		with: "lb_policy client_ip_hash", without: "lb_policy random",
		observe: sessions(byHeader), want: [2]string{"they move", "they stay"}},
	{options: "gateway lb_policy header|args", block: equals,
		with: "lb_policy header X-Session", without: "lb_policy header X-Other",
		observe: sessions(byHeader), want: [2]string{"they move", "they stay"}},
	{options: "gateway lb_policy query", block: equals,
		with: "lb_policy query session", without: "lb_policy query other",
		observe: sessions(byQuery), want: [2]string{"they move", "they stay"}},
	{options: "gateway lb_policy uri_hash", block: equals,
		with: "lb_policy uri_hash", without: "lb_policy random",
		observe: sessions(byQuery), want: [2]string{"they move", "they stay"}},
	{options: "gateway lb_policy cookie", block: equals,
		with: "lb_policy cookie lb secret", without: "lb_policy random",
		observe: byCookie, want: [2]string{"they move", "they stay"}},

	{options: "gateway affinity header", block: equals,
		with: "affinity header X-Session", without: "affinity header X-Other",
		observe: sessions(byHeader), want: [2]string{"they move", "they stay"}},
	{options: "gateway affinity field", block: equals,
		with: "affinity field user", without: "affinity field other",
		observe: sessions(byUser), want: [2]string{"they move", "they stay"}},
	{options: "gateway affinity prefix", block: equals,
		with:    "affinity prefix 12",
		observe: sessions(byUser), want: [2]string{"they move", "they stay"}},
}

// spread tells whether a shares the traffic.
func spread(s *stage) string {
	for range 40 {
		if s.chat() != "200 a" {
			return "not only a"
		}
	}
	return "a only"
}

// turns tells whether the channels take turns.
func turns(s *stage) string {
	last := s.chat()
	for range 40 {
		next := s.chat()
		if next == last {
			return "no turns"
		}
		last = next
	}
	return "turns"
}

// whereBusy returns who gets a request, and another one meanwhile.
func whereBusy(s *stage) string {
	release := s.hold(2)
	defer release()
	return s.asked(func() { s.arrive(); s.arrive() })
}

// sessions tells whether every one of ten sessions stays with its channel.
func sessions(request func(s *stage, session int) *http.Request) func(*stage) string {
	return func(s *stage) string {
		for n := range 10 {
			first := s.do(request(s, n))
			for range 5 {
				if s.do(request(s, n)) != first {
					return "they move"
				}
			}
		}
		return "they stay"
	}
}

func byHeader(s *stage, session int) *http.Request {
	r := s.Request("/v1/chat/completions", testrig.Chat("m1"))
	r.Header.Set("X-Session", fmt.Sprint(session))
	return r
}

func byQuery(s *stage, session int) *http.Request {
	return s.Request(fmt.Sprintf("/v1/chat/completions?session=%d", session), testrig.Chat("m1"))
}

func byUser(s *stage, session int) *http.Request {
	return s.Request("/v1/chat/completions", fmt.Sprintf(`{"user":"%[1]d","model":"m1","prompt":"%[1]d"}`, session))
}

// byCookie tells whether who sends back the cookie that it got stays with its
// channel.
func byCookie(s *stage) string {
	var cookie string
	first := s.asked(func() { cookie, _, _ = strings.Cut(s.Chat("m1").Header.Get("Set-Cookie"), ";") })
	for range 40 {
		r := s.Request("/v1/chat/completions", testrig.Chat("m1"))
		r.Header.Set("Cookie", cookie)
		if s.do(r) != "200 "+first {
			return "they move"
		}
	}
	return "they stay"
}
