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

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// pool has one channel, with two keys and no breaker that would come before.
const pool = `
	retries 0
	breaker off
	OPTION
	channel a {
		base_url {0}
		key k1 k2
		CHANNEL
	}`

const (
	nothingOut = "enabled, 0 keys out"
	channelOut = "disabled, 0 keys out"
)

var boom = testrig.Fail(500, "boom")

var disableOutcomes = []outcome{
	{options: "auto_disable status code|times", block: pool,
		with: "status 500 2", without: "status 500 3",
		observe: out(fail, fail), want: [2]string{nothingOut, channelOut}},
	{options: "auto_disable status class", block: pool,
		with:    "status 5xx 1",
		observe: out(fail), want: [2]string{nothingOut, channelOut}},
	{options: "auto_disable status transport", block: pool,
		with:    "status transport 1",
		observe: out(testrig.Reset), want: [2]string{nothingOut, channelOut}},
	{options: "auto_disable status for", block: pool,
		with: "status 500 1 for 30ms", without: "status 500 1 for 1h",
		observe: recovers, want: [2]string{"503", "200 a"}},
	{options: "auto_disable status scope|key|channel", block: pool,
		with: "status 500 1 scope key", without: "status 500 1 scope channel",
		observe: out(fail), want: [2]string{channelOut, "enabled, 1 keys out"}},

	{options: "auto_disable match code|times", block: pool,
		with: "match 500 boom 2", without: "match 500 boom 3",
		observe: out(boom, boom), want: [2]string{nothingOut, channelOut}},
	{options: "auto_disable match text", block: pool,
		with:    "match 500 boom 1",
		observe: func(s *stage) string { return out(fail)(s) + "; " + out(boom)(s) },
		want:    [2]string{nothingOut + "; " + nothingOut, nothingOut + "; " + channelOut}},
	{options: "auto_disable match class", block: pool,
		with:    "match 5xx boom 1",
		observe: out(boom), want: [2]string{nothingOut, channelOut}},
	{options: "auto_disable match for", block: pool,
		with: "match 500 scripted 1 for 30ms", without: "match 500 scripted 1 for 1h",
		observe: recovers, want: [2]string{"503", "200 a"}},
	{options: "auto_disable match scope|key|channel", block: pool,
		with: "match 500 boom 1 scope key", without: "match 500 boom 1 scope channel",
		observe: out(boom), want: [2]string{channelOut, "enabled, 1 keys out"}},

	{options: "auto_disable keep_last_key", block: pool, also: "status 500 1 scope key",
		with:    "keep_last_key",
		observe: out(fail, fail), want: [2]string{"enabled, 2 keys out", "enabled, 1 keys out"}},
	{options: "auto_disable correlate off", block: pool, also: "status 500 2 scope key",
		with: "correlate 2 1h", without: "correlate off",
		observe: out(fail, fail, fail, fail), want: [2]string{"enabled, 2 keys out", nothingOut}},
	{options: "auto_disable correlate window", block: pool, also: "status 500 2 scope key",
		with: "correlate 2 1ns", without: "correlate 2 1h",
		observe: out(fail, fail, fail, fail), want: [2]string{nothingOut, "enabled, 2 keys out"}},
}

// out returns what is disabled after requests that were answered like this.
func out(answers ...http.HandlerFunc) func(*stage) string {
	return func(s *stage) string {
		for _, answer := range answers {
			s.answers(answer)
			s.chat()
		}
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
