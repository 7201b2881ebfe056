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

const equals = "early_probe off\nOPTION\nchannel a {\nbase_url {0}\n}\nchannel b {\nbase_url {1}\n}"

var gatewayOutcomes = []outcome{
	{options: "gateway channel", block: "channel a {\nbase_url {0}\n}\nOPTION", with: "channel b {\nbase_url {1}\npriority 1\n}",
		observe: func(s *stage) string { s.answers(fail); return s.chat() }, want: [2]string{"500 a", "200 ab"}},
	{options: "gateway retries", block: two, with: "retries 0",
		observe: func(s *stage) string { s.answers(fail); return s.chat() }, want: [2]string{"200 ab", "500 a"}},
	{options: "gateway try_duration", block: two, with: "try_duration 20ms",
		observe: func(s *stage) string { s.answers(later(60*time.Millisecond, fail)); return s.chat() }, want: [2]string{"200 ab", "500 a"}},
	{options: "gateway retry_on", block: two, with: "retry_on 400",
		observe: func(s *stage) string { s.answers(testrig.Fail(400, "")); return s.chat() }, want: [2]string{"400 a", "200 ab"}},
	{options: "gateway retry_budget", block: two + "\nchannel c {\nbase_url {2}\npriority 2\n}", with: "retry_budget 0 0",
		observe: func(s *stage) string { s.answers(fail, fail); return s.chat() }, want: [2]string{"200 abc", "500 ab"}},
	{options: "gateway early_probe", block: "OPTION\nbreaker {\nopen_threshold 1\n}\nchannel a {\nbase_url {0}\n}", without: "early_probe off", with: "early_probe 1ms",
		observe: func(s *stage) string {
			s.answers(fail)
			s.chat()
			s.answers(ok)
			return s.settles("200 a", s.chat)
		}, want: [2]string{"503", "200 a"}},
	{options: "gateway abandon_after", block: two, with: "abandon_after 10ms",
		observe: func(s *stage) string { return s.leave(100 * time.Millisecond) }, want: [2]string{"0", "1"}},
	{options: "gateway max_body", block: two, with: "max_body 20B",
		observe: func(s *stage) string { return s.chat() }, want: [2]string{"200 a", "413"}},
	{options: "gateway buffer_total", block: two, without: "max_body 2000B", with: "max_body 2000B\nbuffer_total 2001B",
		observe: func(s *stage) string {
			body := strings.Replace(testrig.Chat("m1"), "hi", strings.Repeat("x", 1500), 1)
			release := make(chan struct{})
			s.answers(func(w http.ResponseWriter, r *http.Request) { <-release; testrig.OK(w, r) })
			first := make(chan string)
			go func() { first <- fmt.Sprint(s.Do(s.Request("/v1/chat/completions", body)).Status) }()
			testrig.Eventually(s.t, "the first at a", func() bool { return s.us[0].Count() == 1 })
			s.us[0].Answer(ok)
			second := s.post(body)
			close(release)
			return <-first + ", " + second
		}, want: [2]string{"200, 200 a", "200, 503"}},
	{options: "gateway second_opinion", block: two, with: "second_opinion 1",
		observe: func(s *stage) string { s.answers(testrig.Fail(422, "")); return s.chat() }, want: [2]string{"422 a", "200 ab"}},
	{options: "gateway peek_timeout", block: two, with: "peek_timeout off",
		observe: func(s *stage) string { s.answers(sse(openAIError)); return s.stream() }, want: [2]string{"200 ab", "200 cut a"}},
	{options: "gateway first_token_timeout", block: two, with: "peek_timeout 1h\nfirst_token_timeout 50ms", without: "peek_timeout 20ms",
		observe: func(s *stage) string {
			s.answers(func(w http.ResponseWriter, r *http.Request) {
				sse(roleOnly)(w, r)
				w.(http.Flusher).Flush()
				later(200*time.Millisecond, sse(openAIError))(w, r)
			})
			return s.stream()
		}, want: [2]string{"200 cut a", "200 ab"}},
	{options: "gateway stream_close_delay", block: two, with: "stream_close_delay 0", observe: closesAfterReload,
		want: [2]string{"open", "closed"}},
	{options: "gateway errors, gateway errors caddy", block: two, with: "errors caddy",
		observe: func(s *stage) string {
			got := s.Do(s.Request("/v1/chat/completions", "{"))
			return fmt.Sprint(got.Status, strings.Contains(got.Body, "invalid_request"))
		}, want: [2]string{"400 true", "400 false"}},
	{options: "gateway lb_policy, gateway lb_policy first", block: equals, with: "lb_policy first",
		observe: func(s *stage) string {
			all := ""
			for range 40 {
				all += s.chat()
			}
			return fmt.Sprint(strings.Contains(all, "b"))
		}, want: [2]string{"true", "false"}},
	{options: "gateway affinity, gateway affinity header", block: equals, with: "affinity header X-Session",
		observe: func(s *stage) string {
			return s.spread(func(n int) *http.Request {
				r := s.Request("/v1/chat/completions", testrig.Chat("m1"))
				r.Header.Set("X-Session", fmt.Sprint(n))
				return r
			})
		}, want: [2]string{"sessions move", "sessions stay"}},
	{options: "gateway affinity field", block: equals, with: "affinity field user",
		observe: func(s *stage) string {
			return s.spread(func(n int) *http.Request {
				return s.Request("/v1/chat/completions", fmt.Sprintf(`{"model":"m1","user":"%d"}`, n))
			})
		}, want: [2]string{"sessions move", "sessions stay"}},
	{options: "gateway affinity prefix", block: equals, with: "affinity prefix 12",
		observe: func(s *stage) string {
			return s.spread(func(n int) *http.Request {
				return s.Request("/v1/chat/completions", fmt.Sprintf(`{"user":"%d","model":"m1"}`, n))
			})
		}, want: [2]string{"sessions move", "sessions stay"}},
	{options: "gateway all_open, gateway all_open best_effort", block: "early_probe off\nOPTION\nbreaker {\nopen_threshold 1\n}\nchannel a {\nbase_url {0}\n}",
		without: "all_open fail_fast", with: "all_open best_effort",
		observe: func(s *stage) string { s.answers(fail); s.chat(); s.answers(ok); return s.chat() }, want: [2]string{"503", "200 a"}},
	{options: "gateway all_open wait", block: "early_probe off\nOPTION\nchannel a {\nbase_url {0}\nmax_requests 1\n}", with: "all_open wait 10s",
		observe: func(s *stage) string {
			release := make(chan struct{})
			s.answers(func(w http.ResponseWriter, r *http.Request) { <-release; testrig.OK(w, r) })
			go s.chat()
			testrig.Eventually(s.t, "the place is taken", func() bool { return s.us[0].Count() == 1 })
			answer := make(chan testrig.Answer)
			go func() { answer <- s.Chat("m1") }()
			if s.waitsOr(answer) {
				close(release)
				return fmt.Sprint((<-answer).Status)
			}
			close(release)
			return "503 at once"
		}, want: [2]string{"503 at once", "200"}},
	{options: "gateway header_timeout, gateway header_timeout stream", block: two, with: "header_timeout 50ms",
		observe: func(s *stage) string { s.answers(later(300*time.Millisecond, ok)); return s.stream() + ", " + s.chat() }, want: [2]string{"200 a, 200 a", "200 ab, 200 a"}},
	{options: "gateway header_timeout other", block: two, with: "header_timeout 1h 50ms",
		observe: func(s *stage) string { s.answers(later(300*time.Millisecond, ok)); return s.stream() + ", " + s.chat() }, want: [2]string{"200 a, 200 a", "200 a, 200 ab"}},
	{options: "gateway idle_timeout", block: two, with: "idle_timeout 50ms",
		observe: slowBody, want: [2]string{"200 a", "200 ab"}},
	{options: "gateway limit_scope", block: strings.Replace(two, "key k-of-a", "key k1 k2", 1), with: "limit_scope channel",
		observe: func(s *stage) string { s.answers(limitsOnce()); return s.chat() }, want: [2]string{"200 aa", "200 ab"}},
	{options: "gateway transport", block: two, with: "transport http {\nkeepalive off\n}",
		observe: connection, want: [2]string{"kept", "close"}},
	{options: "gateway breaker", block: two, with: "breaker {\nopen_threshold 1\n}",
		observe: opensAfter(1), want: [2]string{"closed", "open"}},
	{options: "gateway auto_disable", block: two, with: "auto_disable {\nstatus 401 1\n}",
		observe: keyAfter(401), want: [2]string{"paused", "disabled"}},
}

// waitsOr reports whether a request waits in line, rather than being answered.
func (s *stage) waitsOr(answer chan testrig.Answer) bool {
	for {
		select {
		case <-answer:
			return false
		case <-time.After(5 * time.Millisecond):
			if s.Waiting() > 0 {
				return true
			}
		}
	}
}

// slowBody lets the body of a pause in its middle.
func slowBody(s *stage) string {
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		plainJSON(`{"choices":[`)(w, r)
		w.(http.Flusher).Flush()
		later(300*time.Millisecond, plainJSON("]}"))(w, r)
	})
	return s.chat()
}

// limitsOnce answers 429 to the first request, and serves the others.
func limitsOnce() http.HandlerFunc {
	limited := false
	return func(w http.ResponseWriter, r *http.Request) {
		if !limited {
			limited = true
			testrig.Fail(429, "")(w, r)
			return
		}
		testrig.OK(w, r)
	}
}

// connection tells whether the connections to a are kept.
func connection(s *stage) string {
	s.chat()
	if value := s.us[0].Last().Header.Get("Connection"); value != "" {
		return value
	}
	return "kept"
}

// keyAfter returns the state of the first key of a after an answer of that
// status.
func keyAfter(status int) func(*stage) string {
	return func(s *stage) string {
		s.answers(testrig.Fail(status, ""))
		s.chat()
		return s.Channel("a").Keys[0].State
	}
}

// opensAfter returns the state of the breaker of a after so many failures.
func opensAfter(n int) func(*stage) string {
	return func(s *stage) string {
		s.answers(fail)
		s.times(n, s.chat)
		return s.Breaker("a", "m1").State
	}
}

// closesAfterReload tells whether a websocket is open after a reload.
func closesAfterReload(s *stage) string {
	s.answers(echoSocket)
	conn, r, res := handshake(s.t, s.Gateway, "/v1/realtime?model=m1")
	defer conn.Close()
	echoes := func() bool {
		conn.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Write([]byte{'x'}); err != nil {
			return false
		}
		for {
			if b, err := r.ReadByte(); err != nil || b == 'x' {
				return err == nil
			}
		}
	}
	if res.StatusCode != 101 || !echoes() {
		s.t.Fatal("no tunnel")
	}
	if err := s.Reload(s.block + "\nllm_gateway other {\nchannel z {\nbase_url http://127.0.0.1:1\n}\n}"); err != nil {
		s.t.Fatal(err)
	}
	if echoes() {
		return "open"
	}
	return "closed"
}
