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

const (
	// quiet has b behind a, even has it beside.
	quiet = "early_probe off\n" + levels
	even  = `
		early_probe off
		OPTION
		channel a {
			base_url {0}
			CHANNEL
		}
		channel b {
			base_url {1}
		}`
	// soon is a breaker that opens at once and is due before long.
	soon = "open_threshold 1\nprobe_interval 50ms\njitter 0"
)

var breakerOutcomes = []outcome{
	{options: "breaker open_threshold", block: quiet,
		with: "open_threshold 2", without: "open_threshold 3",
		observe: opensAfter(2), want: [2]string{"closed", "open"}},
	{options: "breaker degrade_threshold", block: quiet,
		with: "degrade_threshold 1", without: "degrade_threshold 2",
		observe: func(s *stage) string {
			opensAfter(1)(s)
			return fmt.Sprint(s.Breaker("a", "m1").Degraded)
		}, want: [2]string{"false", "true"}},
	{options: "breaker degraded_weight", block: even, also: "degrade_threshold 1",
		with: "degraded_weight 0", without: "degraded_weight 1",
		observe: func(s *stage) string {
			failsOnce(s)
			return asksAgain(s)
		}, want: [2]string{"asked again", "not asked"}},
	{options: "breaker half_open_weight", block: even, also: soon,
		with: "half_open_weight 0.000000001", without: "half_open_weight 1",
		observe: func(s *stage) string {
			failsOnce(s)
			s.WaitState("a", "m1", "half_open")
			return asksAgain(s)
		}, want: [2]string{"asked again", "not asked"}},
	{options: "breaker failure_ttl", block: quiet, also: "open_threshold 2",
		with: "failure_ttl 1ms", without: "failure_ttl 1h",
		observe: func(s *stage) string {
			opensAfter(1)(s)
			time.Sleep(5 * time.Millisecond) // longer than the streak lasts
			return opensAfter(1)(s)
		}, want: [2]string{"open", "closed"}},
	{options: "breaker probe_interval", block: quiet, also: "open_threshold 1",
		with: "probe_interval 20s", without: "probe_interval 10m",
		observe: func(s *stage) string {
			opensAfter(1)(s)
			return due(s)
		}, want: [2]string{"due in more than a minute", "due within a minute"}},
	{options: "breaker max_probe_interval", block: quiet, also: "open_threshold 1\nprobe_interval 40s\njitter 0",
		with: "max_probe_interval 50s", without: "max_probe_interval 10m",
		observe: func(s *stage) string {
			s.answers(fail)
			s.AdminDo(http.MethodPost, "/llm_gateway/default/channels/a/breaker/open?model=m1", `{"for":"1ms"}`)
			s.WaitState("a", "m1", "half_open")
			s.chat() // the probe, whose failure doubles the interval
			return due(s)
		}, want: [2]string{"due in more than a minute", "due within a minute"}},
	{options: "breaker jitter", block: quiet, also: "open_threshold 1\nprobe_interval 100m\nmax_probe_interval 100m",
		with: "jitter 0", without: "jitter 50",
		observe: varies, want: [2]string{"varies", "always the same"}},
	{options: "breaker probe_timeout", block: quiet, also: soon,
		with: "probe_timeout " + limit + " 1h", without: "probe_timeout 1h 1h",
		observe: probedBy((*stage).stream), want: [2]string{"200 a", "200 ab"}},
	{options: "breaker probe_timeout other", block: quiet, also: soon,
		with: "probe_timeout 1h " + limit, without: "probe_timeout 1h 1h",
		observe: probedBy((*stage).chat), want: [2]string{"200 a", "200 ab"}},
}

// opensAfter returns the state of the breaker of a after so many failures.
func opensAfter(n int) func(*stage) string {
	return func(s *stage) string {
		s.answers(fail)
		s.times(n, s.chat)
		return s.Breaker("a", "m1").State
	}
}

// failsOnce sends requests until one of them has failed at a, which is well from
// then on.
func failsOnce(s *stage) {
	s.answers(fail)
	testrig.Eventually(s.t, "a was asked", func() bool { return s.chat() == "200 ab" })
	s.answers(ok)
}

// asksAgain tells whether any of many requests goes to a.
func asksAgain(s *stage) string {
	for range 60 {
		if strings.Contains(s.chat(), "a") {
			return "asked again"
		}
	}
	return "not asked"
}

// due tells how long the breaker of a still waits for its probe.
func due(s *stage) string {
	switch at := s.Breaker("a", "m1").NextProbeAt; {
	case at == nil:
		return "never due"
	case time.Until(*at) > time.Minute:
		return "due in more than a minute"
	}
	return "due within a minute"
}

// varies tells whether the interval of 100 minutes is not always that.
func varies(s *stage) string {
	s.answers(fail)
	for range 20 {
		s.AdminDo(http.MethodPost, "/llm_gateway/default/channels/a/breaker/reset", "{}")
		s.chat()
		at := s.Breaker("a", "m1").NextProbeAt
		if at == nil {
			return "never due"
		}
		if time.Until(*at).Round(time.Minute) != 100*time.Minute {
			return "varies"
		}
	}
	return "always the same"
}

// probedBy opens the breaker of a, waits until it is due, and returns who answers
// the probe, for which a needs a while.
func probedBy(request func(*stage) string) func(*stage) string {
	return func(s *stage) string {
		opensAfter(1)(s)
		s.WaitState("a", "m1", "half_open")
		s.answers(later(pause, ok))
		return request(s)
	}
}
