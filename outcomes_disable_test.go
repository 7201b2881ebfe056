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

// disables has one channel, with two keys and no breaker that would come before.
const (
	disables = "retries 0\nbreaker off\nauto_disable {\nOPTION\n}\nchannel a {\nbase_url {0}\nkey k1 k2\n}"
	mode     = "retries 0\nbreaker off\nOPTION\nchannel a {\nbase_url {0}\nkey k1 k2\n}"
)

// out returns what is disabled after so many answers of that status.
func out(n int, answer http.HandlerFunc) func(*stage) string {
	return func(s *stage) string {
		s.answers(answer)
		s.times(n, s.chat)
		a := s.Channel("a")
		keys := 0
		for _, k := range a.Keys {
			if k.State == "disabled" {
				keys++
			}
		}
		return fmt.Sprintf("%s, %d keys out", a.State, keys)
	}
}

var disableOutcomes = []outcome{
	{options: "auto_disable status", block: disables, without: "status 503 2", with: "status 500 2",
		observe: out(2, fail), want: [2]string{"enabled, 0 keys out", "disabled, 0 keys out"}},
	{options: "auto_disable match", block: disables, without: "match 500 nothing 2", with: "match 500 boom 2",
		observe: out(2, testrig.Fail(500, "boom")), want: [2]string{"enabled, 0 keys out", "disabled, 0 keys out"}},
	{options: "auto_disable scope", block: disables, without: "status 500 1", with: "status 500 1 scope key",
		observe: out(1, fail), want: [2]string{"disabled, 0 keys out", "enabled, 1 keys out"}},
	{options: "auto_disable for", block: disables, without: "status 500 1", with: "status 500 1 for 30ms",
		observe: func(s *stage) string {
			s.answers(fail)
			s.chat()
			s.answers(ok)
			return s.settles("200 a", s.chat)
		}, want: [2]string{"503", "200 a"}},
	{options: "auto_disable keep_last_key", block: strings.Replace(disables, "OPTION", "status 500 1 scope key\nOPTION", 1), with: "keep_last_key",
		observe: out(4, fail), want: [2]string{"enabled, 2 keys out", "enabled, 1 keys out"}},
	{options: "auto_disable correlate", block: strings.Replace(disables, "OPTION", "status 500 2 scope key\nOPTION", 1), without: "correlate off", with: "correlate 2 1h",
		observe: out(4, fail), want: [2]string{"enabled, 2 keys out", "enabled, 0 keys out"}},
	{options: "auto_disable off", block: "auto_disable {\nstatus 500 1\n}\n" + one, with: "auto_disable off",
		observe: func(s *stage) string { s.answers(fail); s.chat(); return s.Channel("a").State }, want: [2]string{"disabled", "enabled"}},
	{options: "auto_disable dry_run", block: mode, without: "auto_disable {\nstatus 500 1\n}", with: "auto_disable dry_run {\nstatus 500 1\n}",
		observe: func(s *stage) string {
			s.answers(fail)
			s.chat()
			recorded := s.Channel("a").Disabled != nil
			return fmt.Sprint(s.chat(), " recorded ", recorded)
		}, want: [2]string{"503 recorded true", "500 a recorded true"}},
}
