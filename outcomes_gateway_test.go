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
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

const (
	// behind has b behind a.
	behind = `
		early_probe off
		OPTION
		channel a {
			base_url {0}
		}
		channel b {
			base_url {1}
			priority 1
		}`
	// alone has one channel, which opens at once.
	alone = `
		OPTION
		breaker {
			open_threshold 1
		}
		channel a {
			base_url {0}
		}`
	third = `
		channel c {
			base_url {2}
			priority 2
		}`
)

var gatewayOutcomes = []outcome{
	{options: "gateway channel", block: "channel a {\nbase_url {0}\n}\nOPTION",
		with:    "channel b {\nbase_url {1}\npriority 1\n}",
		observe: chatsWhen(fail), want: [2]string{"500 a", "200 ab"}},
	{options: "gateway retries", block: behind,
		with:    "retries 0",
		observe: chatsWhen(fail), want: [2]string{"200 ab", "500 a"}},
	{options: "gateway try_duration off", block: behind,
		with: "try_duration 20ms", without: "try_duration off",
		observe: chatsWhen(later(60*time.Millisecond, fail)), want: [2]string{"200 ab", "500 a"}},
	{options: "gateway retry_on", block: behind,
		with:    "retry_on 400", // and nothing else
		observe: func(s *stage) string { return chatsWhen(testrig.Fail(400, ""))(s) + ", " + chatsWhen(fail)(s) },
		want:    [2]string{"400 a, 200 ab", "200 ab, 500 a"}},

	// The first move is free, the second is not.
	{options: "gateway retry_budget off", block: behind + third,
		with: "retry_budget 0 0", without: "retry_budget off",
		observe: chatsWhen(fail, fail), want: [2]string{"200 abc", "500 ab"}},
	{options: "gateway retry_budget", block: behind + third,
		with: "retry_budget 100% 0", without: "retry_budget 0 0",
		observe: chatsWhen(fail, fail), want: [2]string{"500 ab", "200 abc"}},
	{options: "gateway retry_budget min", block: behind + third,
		with: "retry_budget 0 1", without: "retry_budget 0 0",
		observe: chatsWhen(fail, fail), want: [2]string{"500 ab", "200 abc"}},

	{options: "gateway early_probe off", block: alone,
		with: "early_probe 1ms", without: "early_probe off",
		observe: recovers, want: [2]string{"503", "200 a"}},
	{options: "gateway abandon_after off", block: behind,
		with: "abandon_after 10ms", without: "abandon_after off",
		observe: func(s *stage) string { return s.leave(100 * time.Millisecond) }, want: [2]string{"0", "1"}},
	{options: "gateway max_body", block: behind,
		with:    "max_body 20B",
		observe: chats, want: [2]string{"200 a", "413"}},
	{options: "gateway buffer_total", block: "max_body 2000B\n" + behind,
		with:    "buffer_total 2001B",
		observe: secondOfTwoBodies, want: [2]string{"200 a", "503"}},

	{options: "gateway second_opinion off", block: behind,
		with: "second_opinion 1", without: "second_opinion off",
		observe: chatsWhen(testrig.Fail(422, "")), want: [2]string{"422 a", "200 ab"}},
	{options: "gateway peek_timeout off", block: behind,
		with: "peek_timeout off", without: "peek_timeout 10s",
		observe: streamsWhen(sse(openAIError)), want: [2]string{"200 ab", "200 cut a"}},
	{options: "gateway peek_timeout", block: behind,
		with: "peek_timeout 20ms", without: "peek_timeout 10s",
		observe: streamsWhen(roleThen(200*time.Millisecond, openAIError)), want: [2]string{"200 ab", "200 cut a"}},
	{options: "gateway stream_close_delay off", block: behind,
		with: "stream_close_delay off", without: "stream_close_delay 1h",
		observe: tunnelAfterReload, want: [2]string{"open", "closed"}},
	{options: "gateway stream_close_delay", block: behind,
		with: "stream_close_delay 20ms", without: "stream_close_delay 1h",
		observe: tunnelAfterReload, want: [2]string{"open", "closed"}},

	{options: "gateway errors provider|caddy", block: behind,
		with: "errors caddy", without: "errors provider",
		observe: func(s *stage) string {
			got := s.Do(s.Request("/v1/chat/completions", "{"))
			return fmt.Sprint(got.Status, strings.Contains(got.Body, "invalid_request"))
		}, want: [2]string{"400 true", "400 false"}},

	{options: "gateway all_open fail_fast|best_effort", block: "early_probe off\n" + alone,
		with: "all_open best_effort", without: "all_open fail_fast",
		observe: func(s *stage) string { s.answers(fail); s.chat(); s.answers(ok); return s.chat() }, want: [2]string{"503", "200 a"}},
	{options: "gateway all_open wait", block: "OPTION\nchannel a {\nbase_url {0}\nmax_requests 1\n}",
		with:    "all_open wait 10s",
		observe: waitsForAPlace, want: [2]string{"503 at once", "200"}},
}

// secondOfTwoBodies returns what a request is answered by while another one is
// held.
func secondOfTwoBodies(s *stage) string {
	body := strings.Replace(testrig.Chat("m1"), "hi", strings.Repeat("x", 1500), 1)
	release := s.hold(1)
	first := make(chan int)
	go func() { first <- s.Do(s.Request("/v1/chat/completions", body)).Status }()
	testrig.Eventually(s.t, "the first at a", func() bool { return s.us[0].Count() == 1 })
	s.answers(ok)
	second := s.post(body)
	release()
	if status := <-first; status != 200 {
		s.t.Errorf("the first got %d", status)
	}
	return second
}

// waitsForAPlace sends a request to a channel that is full, and makes place once
// the request waits for it.
func waitsForAPlace(s *stage) string {
	release := s.hold(1)
	s.arrive()
	answer := make(chan int, 1)
	go func() { answer <- s.Chat("m1").Status }()
	for s.Waiting() == 0 {
		select {
		case status := <-answer:
			release()
			return fmt.Sprint(status, " at once")
		case <-time.After(5 * time.Millisecond):
		}
	}
	release()
	return fmt.Sprint(<-answer)
}

// tunnelAfterReload tells whether a websocket is still open some time after a
// reload.
func tunnelAfterReload(s *stage) string {
	s.answers(echoSocket)
	conn, r, res := handshake(s.t, s.Gateway, "/v1/realtime?model=m1")
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	echoes := func() string {
		if _, err := conn.Write([]byte{'x'}); err != nil {
			return "closed"
		}
		for {
			switch b, err := r.ReadByte(); {
			case err != nil:
				return "closed"
			case b == 'x':
				return "open"
			}
		}
	}
	if res.StatusCode != 101 || echoes() != "open" {
		s.t.Fatal("no tunnel")
	}
	if err := s.Reload(s.block + "\nllm_gateway other {\nchannel z {\nbase_url http://127.0.0.1:1\n}\n}"); err != nil {
		s.t.Fatal(err)
	}
	return s.settles("closed", echoes)
}
