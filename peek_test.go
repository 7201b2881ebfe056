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
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// sse answers with an event stream of exactly these bytes.
func sse(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, body)
	}
}

func plainJSON(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}
}

const (
	anthropicError = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"scripted\"}}\n\n"
	openAIError    = "data: {\"error\":{\"message\":\"scripted\",\"type\":\"server_error\",\"code\":\"server_error\"}}\n\n"
	roleOnly       = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n"
	messageStart   = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\",\"usage\":{\"input_tokens\":1}}}\n\n"
	ping           = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
)

// What begins like a success and is none is replaced by another channel's
// answer, as long as nothing of it has reached the client.
func TestAnswersThatAreNoneAreReplaced(t *testing.T) {
	for _, c := range []struct {
		name   string
		stream bool
		answer http.HandlerFunc
	}{
		{"error event of Anthropic", true, sse(anthropicError)},
		{"error event of OpenAI", true, sse(openAIError)},
		{"error after two lifecycle events", true, sse(messageStart + ping + anthropicError)},
		{"error after a role", true, sse(roleOnly + openAIError)},
		{"error after comments", true, sse(": ok\n\n: ok\n\n" + openAIError)},
		{"error in CRLF framing", true, sse(strings.ReplaceAll(messageStart+anthropicError, "\n", "\r\n"))},
		{"error event of 300 KB", true, sse(strings.Replace(openAIError, "scripted", strings.Repeat("x", 300_000), 1))},
		{"gzip-coded error event", true, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, openAIError)
			z.Close()
		}},
		{"stream with nothing in it", true, sse("")},
		{"only a ping", true, sse(": ping\n\n")},
		{"only its end", true, sse("data: [DONE]\n\n")},
		{"stream cut after its role", true, sse(roleOnly)},
		{"stream whole but for its end", true, sse("data: " + testrig.Chunk("a") + "\n\n")},
		{"short stream that is reset", true, func(w http.ResponseWriter, r *http.Request) {
			sse(messageStart)(w, r)
			w.(http.Flusher).Flush()
			testrig.Reset(w, r)
		}},
		{"closed with 0 bytes", false, testrig.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")},
		{"empty body of no type", false, testrig.Raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")},
		{"json short of its length", false, testrig.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n" +
			`{"choices":[{"message":{"content":"` + strings.Repeat("x", 2965))},
		{"json that breaks off", false, plainJSON(`{"choices":[{"message":{"content":"x`)},
		{"error object", false, plainJSON(`{"error":{"message":"scripted","type":"server_error","code":"server_error"}}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startPair(t)
			p.u1.Answer(c.answer)
			body := testrig.Chat("m1")
			if c.stream {
				body = testrig.StreamChat("m1")
			}
			got := p.Do(p.Request("/v1/chat/completions", body))
			if got.Status != 200 || got.Err != nil || strings.Contains(got.Body, "scripted") {
				t.Fatalf("client got %d %v %.200s", got.Status, got.Err, got.Body)
			}
			if n := p.u2.Count(); n != 1 {
				t.Errorf("b got %d requests", n)
			}
			if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 1 {
				t.Errorf("a was not charged once: %+v", b)
			}
			p.trip(t, "m1")
			p.WaitState("a", "m1", "half_open")
			p.u1.Answer(c.answer)
			before := p.u1.Count()
			p.Do(p.Request("/v1/chat/completions", body))
			if p.u1.Count() == before {
				t.Fatal("a was not probed")
			}
			if b := p.Breaker("a", "m1"); b.State != "open" {
				t.Errorf("after the probe: %+v", b)
			}
		})
	}
}

// A fault of the caller's own inside a 200 goes to the caller as it came.
func TestClientFaultInsideASuccessIsRelayed(t *testing.T) {
	const fault = `{"error":{"message":"scripted","type":"invalid_request_error","code":"context_length_exceeded"}}`
	for name, answer := range map[string]http.HandlerFunc{"json": plainJSON(fault), "stream": sse("data: " + fault + "\n\n")} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t)
			p.u1.Answer(answer)
			got := p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
			if got.Status != 200 || got.Err != nil || !strings.Contains(got.Body, fault) {
				t.Errorf("client got %d %v %s", got.Status, got.Err, got.Body)
			}
			if n := p.u2.Count(); n != 0 {
				t.Errorf("b got %d requests", n)
			}
			if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 0 {
				t.Errorf("counted: %+v", b)
			}
		})
	}
}

// With nobody else to ask, the client gets an error with the status that the
// hidden one claims.
func TestHiddenErrorBecomesAnHonestOne(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		status int
		code   string
	}{
		{"claims a status", plainJSON(`{"error":{"message":"scripted","code":529}}`), 529, "upstream_invalid_response"},
		{"claims none", sse(openAIError), 502, "upstream_invalid_response"},
		{"empty", sse(""), 502, "upstream_invalid_response"},
		{"broken off", testrig.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"), 502, "upstream_invalid_response"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := testrig.NewUpstream(t)
			u.Answer(c.answer)
			g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u.URL+"\n}"))
			got := g.Do(g.Request("/v1/chat/completions", testrig.StreamChat("m1")))
			if got.Status != c.status || !strings.Contains(got.Body, c.code) || strings.Contains(got.Body, "scripted") {
				t.Errorf("client got %d %s", got.Status, got.Body)
			}
		})
	}
}

// beginning answers with the first part, and with the rest once it is released.
func beginning(first string, release <-chan struct{}, rest string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sse(first)(w, r)
		w.(http.Flusher).Flush()
		select {
		case <-release:
			io.WriteString(w, rest)
		case <-r.Context().Done():
		}
	}
}

const wholeStream = "data: " + `{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"late"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

// A stream that takes longer than peek_timeout to begin is passed on as it comes;
// with peek_timeout off that is at once.
func TestPeekTimeoutBoundsTheHolding(t *testing.T) {
	for _, limit := range []string{"200ms", "off"} {
		t.Run(limit, func(t *testing.T) {
			p := startPair(t, "peek_timeout "+limit)
			release := make(chan struct{})
			p.u1.Answer(beginning(roleOnly, release, wholeStream))
			res, err := p.Client.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			head := make([]byte, len(roleOnly))
			if _, err := io.ReadFull(res.Body, head); err != nil || string(head) != roleOnly {
				t.Fatalf("%q %v", head, err)
			}
			close(release)
			rest, err := io.ReadAll(res.Body)
			if err != nil || string(rest) != wholeStream {
				t.Errorf("%q %v", rest, err)
			}
			if p.u2.Count() != 0 || p.Breaker("a", "m1").ConsecutiveFailures != 0 {
				t.Errorf("b got %d requests, %+v", p.u2.Count(), p.Breaker("a", "m1"))
			}
		})
	}
}

// Once the head was passed on, an error can only end the stream.
func TestErrorAfterPeekTimeoutEndsTheStream(t *testing.T) {
	p := startPair(t, "peek_timeout 100ms")
	release := make(chan struct{})
	p.u1.Answer(beginning(roleOnly, release, openAIError))
	res, err := p.Client.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	close(release)
	got, err := io.ReadAll(res.Body)
	if err == nil || string(got) != roleOnly+openAIError {
		t.Errorf("%q with a clean end", got)
	}
	if p.u2.Count() != 0 || p.Breaker("a", "m1").ConsecutiveFailures != 1 {
		t.Errorf("b got %d requests, %+v", p.u2.Count(), p.Breaker("a", "m1"))
	}
}

// first_token_timeout replaces a stream that does not come to its point.
func TestFirstTokenTimeoutFailsOver(t *testing.T) {
	for _, level := range []string{"gateway", "channel"} {
		t.Run(level, func(t *testing.T) {
			p := &pair{u1: testrig.NewUpstream(t), u2: testrig.NewUpstream(t)}
			gateway, channel := "first_token_timeout 300ms", ""
			if level == "channel" {
				gateway, channel = "first_token_timeout 1h", gateway
			}
			p.Gateway = testrig.Start(t, gatewayBlock(gateway+"\npeek_timeout 10ms\n"+
				channelBlock("a", p.u1, channel)+channelBlock("b", p.u2, "priority 1")))
			p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					sse(roleOnly+": ping\n\n")(w, r)
					w.(http.Flusher).Flush()
					select {
					case <-r.Context().Done():
					case <-time.After(10 * time.Millisecond):
					}
				}
			})
			got := p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
			if got.Status != 200 || got.Err != nil || p.u2.Count() != 1 {
				t.Fatalf("client got %d %v %.100s, b %d requests", got.Status, got.Err, got.Body, p.u2.Count())
			}
			if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 1 || b.LastFailure != "first_token_timeout" {
				t.Errorf("%+v", b)
			}
		})
	}
	t.Run("alone", func(t *testing.T) {
		u := testrig.NewUpstream(t)
		release := make(chan struct{})
		defer close(release)
		u.Answer(beginning(roleOnly, release, ""))
		g := testrig.Start(t, gatewayBlock("first_token_timeout 100ms\nchannel a {\nbase_url "+u.URL+"\n}"))
		got := g.Do(g.Request("/v1/chat/completions", testrig.StreamChat("m1")))
		if got.Status != 504 || !strings.Contains(got.Body, "upstream_timeout") {
			t.Errorf("client got %d %s", got.Status, got.Body)
		}
	})
}

// Headers without anything behind them count against idle_timeout, and are
// replaced.
func TestSilenceAfterHeadersFailsOver(t *testing.T) {
	p := startPair(t, "idle_timeout 200ms")
	for n, kind := range []string{"text/event-stream", "application/json", "audio/mpeg"} {
		p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		got := p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
		if got.Status != 200 || got.Err != nil || p.u2.Count() != n+1 {
			t.Errorf("%s: client got %d %v, b %d requests", kind, got.Status, got.Err, p.u2.Count())
		}
	}
	if b := p.Breaker("a", "m1"); b.State != "open" || b.LastFailure != "idle_timeout" {
		t.Errorf("%+v", b)
	}
}

// A client that leaves while the head is held back counts against nobody, nor
// does one that leaves while a read is awaited that peek_timeout did not wait for.
func TestClientMayLeaveDuringThePeek(t *testing.T) {
	for _, limit := range []string{"1h", "50ms"} {
		t.Run(limit, func(t *testing.T) {
			p := startPair(t, "peek_timeout "+limit)
			release := make(chan struct{})
			defer close(release)
			p.u1.Answer(beginning(roleOnly, release, ""))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if limit == "1h" {
				go func() {
					testrig.Eventually(t, "the request at a", func() bool { return p.u1.Count() == 1 })
					cancel()
				}()
			}
			res, err := p.Client.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")).WithContext(ctx))
			if err == nil { // the head was passed on
				cancel()
				res.Body.Close()
			}
			testrig.Eventually(t, "nothing in flight", func() bool { return p.InFlight() == 0 && p.u1.Gone() == 1 })
			if p.u2.Count() != 0 || p.Breaker("a", "m1").ConsecutiveFailures != 0 {
				t.Errorf("b got %d requests, %+v", p.u2.Count(), p.Breaker("a", "m1"))
			}
		})
	}
}

// Whatever is held back, the client gets the upstream's bytes and no others.
func TestPeekedBytesArriveUntouched(t *testing.T) {
	p := startPair(t)
	big := `{"choices":[{"message":{"content":"` + strings.Repeat("x", 3<<20) + `"}}]}`
	long := strings.Repeat(": comment\n\n", 20_000) + wholeStream
	for name, answer := range map[string]http.HandlerFunc{big: plainJSON(big), long: sse(long), wholeStream: sse(wholeStream)} {
		p.u1.Answer(answer)
		got := p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
		if got.Status != 200 || got.Err != nil || got.Body != name {
			t.Errorf("client got %d %v, %d bytes, want %d: %.100s", got.Status, got.Err, len(got.Body), len(name), got.Body)
		}
	}
	if n := p.u2.Count(); n != 0 {
		t.Errorf("b got %d requests", n)
	}
}

// Second opinion: a channel that refuses everything as the caller's fault is
// found out, and a caller whose own request is bad still hears so.
func TestSecondOpinionFindsOutAChannelThatRefusesEverything(t *testing.T) {
	p := startPair(t, "second_opinion 3")
	p.u1.Answer(testrig.Fail(400, ""))
	for n := range 2 {
		if got := p.Chat("m1"); got.Status != 400 {
			t.Fatalf("request %d: %d", n, got.Status)
		}
	}
	if b := p.Breaker("a", "m1"); b.Suspect {
		t.Errorf("suspect too early: %+v", b)
	}
	for n := range 3 {
		if got := p.Chat("m1"); got.Status != 200 {
			t.Fatalf("doubted request %d: %d", n, got.Status)
		}
	}
	b := p.Breaker("a", "m1")
	if b.State != "open" || !b.Suspect || !strings.Contains(b.LastFailure, "status 400") {
		t.Errorf("%+v", b)
	}
	if c := p.Channel("a"); !strings.Contains(c.Summary, "refuses everything") {
		t.Errorf("summary %q", c.Summary)
	}
	if n := p.u1.Count(); n != 5 {
		t.Errorf("a got %d requests", n)
	}
	tries := fmt.Sprint(p.AccessLog()[2]["llm_gateway"])
	if !strings.Contains(tries, "answered elsewhere") || !strings.Contains(tries, "verdict:failure") {
		t.Errorf("access log: %s", tries)
	}
}

func TestSecondOpinionThatAgreesStartsTheCountAnew(t *testing.T) {
	p := startPair(t, "second_opinion 3")
	p.u1.Answer(testrig.Fail(422, ""))
	p.u2.Answer(testrig.Fail(422, ""))
	for range 6 {
		if got := p.Chat("m1"); got.Status != 422 {
			t.Fatalf("client got %d", got.Status)
		}
	}
	if n := p.u2.Count(); n != 2 {
		t.Errorf("b was asked %d times, want 2: every third", n)
	}
	for _, channel := range []string{"a", "b"} {
		if b := p.Breaker(channel, "m1"); b.ConsecutiveFailures != 0 || b.Suspect {
			t.Errorf("%s: %+v", channel, b)
		}
	}
}

func TestSecondOpinionNeedsARowWithoutASuccess(t *testing.T) {
	p := startPair(t, "second_opinion 3")
	for range 5 {
		p.u1.Answer(testrig.Fail(400, ""))
		p.Chat("m1")
		p.Chat("m1")
		p.u1.Answer(testrig.OK)
		p.Chat("m1")
	}
	if n := p.u2.Count(); n != 0 {
		t.Errorf("b was asked %d times", n)
	}
}

// What a code explains needs no second opinion.
func TestExplainedRefusalsAreBelieved(t *testing.T) {
	p := startPair(t, "second_opinion 1")
	p.u1.Answer(testrig.Fail(400, "context_length_exceeded"))
	for range 5 {
		if got := p.Chat("m1"); got.Status != 400 {
			t.Fatalf("client got %d", got.Status)
		}
	}
	if n := p.u2.Count(); n != 0 {
		t.Errorf("b was asked %d times", n)
	}
}

// A probe that is refused without a reason asks elsewhere at once: else a channel
// that refuses everything would get one caller after the other.
func TestProbeSeeksASecondOpinion(t *testing.T) {
	p := startPair(t, "second_opinion 100")
	p.tripHalfOpen(t, "m1")
	p.u1.Answer(testrig.Fail(400, ""))
	if got := p.Chat("m1"); got.Status != 200 {
		t.Errorf("client got %d", got.Status)
	}
	if b := p.Breaker("a", "m1"); b.State != "open" {
		t.Errorf("%+v", b)
	}
}

// Where nobody else can say anything about it, the refusal stands.
func TestRefusalStandsWhereNobodyElseAnswers(t *testing.T) {
	p := startPair(t, "second_opinion 1")
	p.u1.Answer(testrig.Fail(400, ""))
	for _, other := range []http.HandlerFunc{testrig.Fail(500, ""), testrig.Fail(401, ""), testrig.Reset, sse("")} {
		p.u2.Answer(other)
		if got := p.Chat("m1"); got.Status != 400 || !strings.Contains(got.Body, "scripted") {
			t.Errorf("client got %d %s", got.Status, got.Body)
		}
	}
	if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 0 {
		t.Errorf("%+v", b)
	}
}

func TestDocumentForAStreamIsASuccessAndLogged(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(plainJSON(testrig.Completion))
	for range 3 {
		if got := p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1"))); got.Status != 200 || got.Body != testrig.Completion {
			t.Fatalf("client got %d %s", got.Status, got.Body)
		}
	}
	if n := p.u2.Count(); n != 0 {
		t.Errorf("b got %d requests", n)
	}
	if n := len(p.LogEntries("upstream's answer is not what an API gives")); n != 1 {
		t.Errorf("logged %d times", n)
	}
}
