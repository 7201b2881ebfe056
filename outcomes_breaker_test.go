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

// quick is a pair of channels whose breakers open at once, and probe soon.
const (
	quick     = "early_probe off\nbreaker {\nOPTION\n}\nchannel a {\nbase_url {0}\n}\nchannel b {\nbase_url {1}\npriority 1\n}"
	quickEven = "early_probe off\nbreaker {\nOPTION\n}\nchannel a {\nbase_url {0}\n}\nchannel b {\nbase_url {1}\n}"
	soon      = "open_threshold 1\nprobe_interval 50ms\njitter 0\n"
)

// probed opens the breaker of a, waits until it is due, and lets probe be the
// probe.
func probed(probe http.HandlerFunc, then func(*stage) string) func(*stage) string {
	return func(s *stage) string {
		s.answers(fail)
		s.chat()
		s.WaitState("a", "m1", "half_open")
		s.answers(probe)
		return then(s)
	}
}

// due returns how long the breaker of a still waits for its probe: a little, or
// long.
func due(s *stage) string {
	at := s.Breaker("a", "m1").NextProbeAt
	if at == nil {
		return "never"
	}
	if time.Until(*at) > time.Minute {
		return "long"
	}
	return "soon"
}

var breakerOutcomes = []outcome{
	{options: "breaker open_threshold", block: quick, with: "open_threshold 2",
		observe: opensAfter(2), want: [2]string{"closed", "open"}},
	{options: "breaker degrade_threshold", block: quick, with: "degrade_threshold 1",
		observe: func(s *stage) string { opensAfter(1)(s); return fmt.Sprint(s.Breaker("a", "m1").Degraded) }, want: [2]string{"false", "true"}},
	{options: "breaker degraded_weight", block: quickEven, without: "degrade_threshold 1", with: "degrade_threshold 1\ndegraded_weight 0",
		observe: func(s *stage) string {
			s.answers(fail)
			s.settles("200 ab", s.chat) // it is asked once
			s.answers(ok)
			before := s.us[0].Count()
			for range 60 {
				s.post(strings.Replace(testrig.Chat("m1"), "hi", "again", 1))
				if s.us[0].Count() > before {
					return "asked again"
				}
			}
			return "not asked"
		}, want: [2]string{"asked again", "not asked"}},
	{options: "breaker half_open_weight", block: strings.Replace(quickEven, "OPTION", soon+"OPTION", 1), without: "half_open_weight 0.0001", with: "half_open_weight 1",
		observe: func(s *stage) string {
			s.answers(fail)
			s.settles("200 ab", s.chat)
			s.WaitState("a", "m1", "half_open")
			s.answers(ok)
			for range 20 {
				if strings.Contains(s.chat(), "a") {
					return "probed"
				}
			}
			return "not probed"
		}, want: [2]string{"not probed", "probed"}},
	{options: "breaker failure_ttl", block: quick, without: "open_threshold 2", with: "open_threshold 2\nfailure_ttl 1ms",
		observe: func(s *stage) string {
			opensAfter(1)(s)
			time.Sleep(5 * time.Millisecond) // longer than the streak lasts
			return opensAfter(1)(s)
		}, want: [2]string{"open", "closed"}},
	{options: "breaker probe_interval", block: quick, without: "open_threshold 1", with: "open_threshold 1\nprobe_interval 50ms",
		observe: func(s *stage) string { opensAfter(1)(s); return due(s) }, want: [2]string{"long", "soon"}},
	{options: "breaker max_probe_interval", block: strings.Replace(quick, "OPTION", "open_threshold 1\nprobe_interval 40s\njitter 0\nOPTION", 1), with: "max_probe_interval 50s",
		observe: func(s *stage) string {
			s.answers(fail)
			s.chat()
			s.AdminDo("POST", "/llm_gateway/default/channels/a/breaker/reset", "{}")
			s.AdminDo("POST", "/llm_gateway/default/channels/a/breaker/open?model=m1", `{"for":"1ms"}`)
			s.WaitState("a", "m1", "half_open")
			s.chat()
			return due(s)
		}, want: [2]string{"long", "soon"}},
	{options: "breaker jitter", block: strings.Replace(quick, "OPTION", "open_threshold 1\nprobe_interval 100m\nmax_probe_interval 100m\nOPTION", 1), without: "jitter 0", with: "jitter 50",
		observe: func(s *stage) string {
			s.answers(fail)
			for range 20 {
				s.AdminDo("POST", "/llm_gateway/default/channels/a/breaker/reset", "{}")
				s.chat()
				if at := s.Breaker("a", "m1").NextProbeAt; at == nil || time.Until(*at).Round(time.Minute) != 100*time.Minute {
					return "varies"
				}
			}
			return "the same"
		}, want: [2]string{"the same", "varies"}},
	{options: "breaker probe_timeout, breaker probe_timeout stream", block: strings.Replace(quick, "OPTION", soon+"OPTION", 1), without: "probe_timeout 1h 1h", with: "probe_timeout 50ms 1h",
		observe: probed(later(300*time.Millisecond, ok), func(s *stage) string { return s.stream() }), want: [2]string{"200 a", "200 ab"}},
	{options: "breaker probe_timeout other", block: strings.Replace(quick, "OPTION", soon+"OPTION", 1), without: "probe_timeout 1h 1h", with: "probe_timeout 1h 50ms",
		observe: probed(later(300*time.Millisecond, ok), func(s *stage) string { return s.chat() }), want: [2]string{"200 a", "200 ab"}},
	{options: "breaker off", block: strings.NewReplacer("early_probe off", "", "breaker {\nOPTION\n}", "OPTION").Replace(quick), without: "breaker {\nopen_threshold 1\n}", with: "breaker off",
		observe: func(s *stage) string { s.answers(fail); return s.times(3, s.chat) }, want: [2]string{"200 b", "200 ab"}},
	{options: "breaker dry_run", block: strings.NewReplacer("early_probe off", "", "breaker {\nOPTION\n}", "OPTION").Replace(quick), without: "breaker {\nopen_threshold 1\n}", with: "breaker dry_run {\nopen_threshold 1\n}",
		observe: func(s *stage) string {
			s.answers(fail)
			return s.times(3, s.chat) + fmt.Sprint(" ", s.Breaker("a", "m1").State)
		}, want: [2]string{"200 b open", "200 ab open"}},
}
