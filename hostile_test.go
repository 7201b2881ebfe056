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
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// slowReader asks for a stream and leaves it unread for a while.
func slowReader(t *testing.T, g *testrig.Gateway, body string, stall time.Duration) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	time.Sleep(stall) // this is the behaviour of the client, not a wait for something
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return string(all)
}

// bigStream is more than the sockets between upstream and client hold.
func bigStream(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := "data: " + testrig.Chunk(strings.Repeat("x", 64<<10)) + "\n\n"
	for range 400 {
		io.WriteString(w, event)
	}
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", testrig.FinishChunk)
}

func TestSlowReaderIsNotTheUpstreamsFault(t *testing.T) {
	p := startPair(t, "idle_timeout 700ms")
	p.u1.Answer(bigStream)
	if got := slowReader(t, p.Gateway, testrig.StreamChat("m1"), 1500*time.Millisecond); !strings.HasSuffix(strings.TrimRight(got, "\r\n0"), "[DONE]") {
		t.Errorf("the stream was cut after %d bytes", len(got))
	}
	if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 0 {
		t.Errorf("counted: %+v", b)
	}
}

// A probe whose client does not take the answer must neither fail nor keep the
// lease: somebody else probes.
func TestStallingClientOfAProbeGivesTheLeaseBack(t *testing.T) {
	p := startPair(t, "breaker {\nopen_threshold 3\nprobe_interval 250ms\njitter 0\nprobe_timeout 1s 1s\n}")
	p.tripHalfOpen(t, "m1")
	big := `{"choices":[{"message":{"content":"` + strings.Repeat("x", 30<<20) + `"},"finish_reason":"stop"}]}`
	p.u1.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, big)
	})
	var wg sync.WaitGroup
	wg.Go(func() { slowReader(t, p.Gateway, testrig.Chat("m1"), 3*time.Second) })
	testrig.Eventually(t, "probe in flight", func() bool { return p.Breaker("a", "m1").ProbeInFlight })
	testrig.Eventually(t, "lease back", func() bool { return !p.Breaker("a", "m1").ProbeInFlight })
	if b := p.Breaker("a", "m1"); b.State != "half_open" {
		t.Errorf("the stall counts as a failed probe: %+v", b)
	}
	p.u1.Answer(testrig.OK)
	p.Chat("m1")
	if s := p.Breaker("a", "m1").State; s != "closed" {
		t.Errorf("after another probe: %s", s)
	}
	wg.Wait()
}

// What cannot be sent as it is never reached the upstream, and counts against
// nobody.
func TestRequestThatCannotBeSentCountsNothing(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "header_up X-User {query.user}")))
	for range 5 {
		g.Do(g.Request("/v1/chat/completions?user=a%0Ab", testrig.Chat("m1")))
	}
	if u.Count() != 0 {
		t.Error("it was sent")
	}
	if got := g.Chat("m1"); got.Status != 200 {
		t.Errorf("others get %d", got.Status)
	}
}

func TestStoredFilesAreNotJudgedAsAnswers(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u)))
	for _, content := range []string{`{"note": "unterminated`, `{"error":"my saved error report"}`, ""} {
		u.Answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, content)
		})
		for range 3 {
			r, _ := http.NewRequest(http.MethodGet, g.URL+"/v1/files/f1/content", nil)
			if got := g.Do(r); got.Status != 200 || got.Body != content || got.Err != nil {
				t.Errorf("%q: %d %q %v", content, got.Status, got.Body, got.Err)
			}
		}
	}
	if b := g.Breaker("a", ""); b.ConsecutiveFailures != 0 {
		t.Errorf("counted: %+v", b)
	}
}

func TestAnEmptyStarIsNoModel(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "model_map openai/* *")))
	if got := g.Chat("openai/"); got.Status != 404 || u.Count() != 0 {
		t.Errorf("%d, upstream got %d", got.Status, u.Count())
	}
}

// A prompt that a firewall objects to must not take the keys out.
func TestForbiddenRequestDoesNotTakeThePoolOut(t *testing.T) {
	html := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(403)
		io.WriteString(w, "<html>blocked</html>")
	}
	for name, c := range map[string]struct {
		upstream http.HandlerFunc
		requests int
	}{"html": {html, 10}, "no code": {testrig.Fail(403, ""), 1}} {
		t.Run(name, func(t *testing.T) {
			u := testrig.NewUpstream(t)
			g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "key k1 k2 k3")))
			u.Answer(c.upstream)
			for range c.requests {
				if got := g.Chat("m1"); got.Status != 403 {
					t.Errorf("status %d", got.Status)
				}
			}
			for _, k := range g.Channel("a").Keys {
				if k.State != "enabled" {
					t.Errorf("key %+v", k)
				}
			}
		})
	}
}

func TestDialErrorsAreToldApart(t *testing.T) {
	us := upstreams(t, 1)
	g := testrig.Start(t, gatewayBlock("channel refused {\nbase_url "+testrig.Refusing(t)+"\nmodels m1\n}\n"+
		"channel unknown {\nbase_url http://nowhere.invalid\nmodels m2\n}\n"+channelBlock("b", us[0], "priority 1")))
	g.Chat("m1")
	g.Chat("m2")
	if got := g.Breaker("refused", "m1").LastFailure; got != "dial: connection refused" {
		t.Errorf("refused: %q", got)
	}
	if got := g.Breaker("unknown", "m2").LastFailure; !strings.HasPrefix(got, "dial: ") {
		t.Errorf("unknown host: %q", got)
	}
}

// Nothing of an upload was sent if the connection was refused, so it may go to
// the next channel.
func TestUploadMovesOnWhenNothingWasSent(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+testrig.Refusing(t)+"\n}\n"+channelBlock("b", u, "priority 1")))
	if got := g.Do(g.Request("/v1/files", "x")); got.Status != 200 || u.Count() != 1 {
		t.Errorf("%d, b got %d", got.Status, u.Count())
	}
}

func TestDialTimeoutIs504(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "transport http {\ndial_timeout 1ns\n}")))
	if got := g.Chat("m1"); got.Status != 504 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

// drip answers with the status and then a byte now and then.
func drip(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "60000")
		w.WriteHeader(status)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, " "); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func TestSlowErrorBodyDoesNotHoldTheFailoverUp(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(drip(500))
	began := time.Now()
	if got := p.Chat("m1"); got.Status != 200 {
		t.Errorf("status %d", got.Status)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestInterimResponsesDoNotOutwitTheTimeLimits(t *testing.T) {
	flood := func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			if _, err := io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	for _, probe := range []bool{false, true} {
		t.Run(fmt.Sprint("probe ", probe), func(t *testing.T) {
			p := startPair(t, "header_timeout 500ms 500ms\nbreaker {\nopen_threshold 3\nprobe_interval 250ms\njitter 0\nprobe_timeout 200ms 200ms\n}")
			if probe {
				p.tripHalfOpen(t, "m1")
			}
			p.u1.Answer(flood)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			got := p.Do(p.Request("/v1/chat/completions", testrig.Chat("m1")).WithContext(ctx))
			if got.Status != 200 {
				t.Errorf("%d %v", got.Status, got.Err)
			}
		})
	}
}

// A stream that comes compressed although nobody asked for that is passed on,
// and not taken for an empty one.
func TestCompressedStreamIsPassedOn(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprintf(z, "data: %s\n\ndata: [DONE]\n\n", testrig.FinishChunk)
		z.Close()
	})
	got := p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
	if got.Status != 200 || got.Err != nil || got.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%d %v %v", got.Status, got.Err, got.Header)
	}
	if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 0 {
		t.Errorf("counted: %+v", b)
	}
}

func TestSwitchingProtocolsUnaskedIsAFailure(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(testrig.Raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"))
	if got := p.Chat("m1"); got.Status != 200 || got.Body != testrig.Completion {
		t.Errorf("%d %q", got.Status, got.Body)
	}
	if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 1 {
		t.Errorf("%+v", b)
	}
}

// Through a tunnel that is no websocket a client could send the upstream
// whatever it likes, past every rule of the site.
func TestOnlyWebsocketsAreTunnelled(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u)))
	for _, protocol := range []string{"h2c", "TLS/1.0"} {
		r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
		r.Header.Set("Connection", "Upgrade, HTTP2-Settings")
		r.Header.Set("Upgrade", protocol)
		r.Header.Set("HTTP2-Settings", "AAMAAABkAAQCAAAAAAIAAAAA")
		if got := g.Do(r); got.Status != 200 {
			t.Errorf("%s: %d", protocol, got.Status)
		}
		if h := u.Last().Header; h.Get("Upgrade")+h.Get("Http2-Settings") != "" {
			t.Errorf("%s: upstream got %v", protocol, h)
		}
	}
}

func TestTrailersAreCleanedToo(t *testing.T) {
	for _, stream := range []bool{false, true} {
		p := startPair(t)
		p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Set-Cookie, X-Kept")
			testrig.OK(w, r)
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("X-Kept", "1")
		})
		body := testrig.Chat("m1")
		if stream {
			body = testrig.StreamChat("m1")
		}
		res, err := p.Client.Do(p.Request("/v1/chat/completions", body))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.Trailer.Get("Set-Cookie")+res.Header.Get("Set-Cookie") != "" {
			t.Errorf("stream %v: %v %v", stream, res.Header, res.Trailer)
		}
	}
}

// The last real answer is what the client gets, though other attempts, or the
// same one with another key, failed after it.
func TestLastRealAnswerIsNotLost(t *testing.T) {
	t.Run("another key", func(t *testing.T) {
		u := testrig.NewUpstream(t)
		g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "key k1 k2")))
		u.Answer(func(w http.ResponseWriter, r *http.Request) {
			if u.Count() == 1 {
				w.Header().Set("Retry-After", "30")
				testrig.Fail(429, "rate_limit_exceeded")(w, r)
				return
			}
			testrig.Reset(w, r)
		})
		if got := g.Chat("m1"); got.Status != 429 || got.Header.Get("Retry-After") != "30" {
			t.Errorf("%d %v", got.Status, got.Header)
		}
	})
	t.Run("long body", func(t *testing.T) {
		p := startPair(t)
		long := strings.Repeat("x", 100<<10)
		p.u1.Answer(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			io.WriteString(w, long)
		})
		p.u2.Answer(testrig.Reset)
		if got := p.Chat("m1"); got.Status != 500 || got.Body != long {
			t.Errorf("%d, %d bytes", got.Status, len(got.Body))
		}
	})
}

func TestModelIsMissingOnlyIfItIsMissingEverywhere(t *testing.T) {
	u := testrig.NewUpstream(t)
	u.Answer(testrig.Fail(404, "model_not_found"))
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u)+"channel b {\nbase_url "+testrig.Refusing(t)+"\npriority 1\n}\n"))
	if got := g.Chat("m1"); got.Status != 502 || got.Header.Get("X-Should-Retry") != "" {
		t.Errorf("one of two: %d %s", got.Status, got.Body)
	}
	if err := g.Reload(gatewayBlock(channelBlock("c", u) + channelBlock("d", u, "priority 1"))); err != nil {
		t.Fatal(err)
	}
	if got := g.Chat("m1"); got.Status != 404 || !strings.Contains(got.Body, "model_not_found") || strings.Contains(got.Body, "scripted") {
		t.Errorf("both: %d %s", got.Status, got.Body)
	}
}

func TestQueryOfTheOperatorStandsHoweverTheClientWritesIt(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u.URL+"/v1?api-version=1\n}"))
	g.Do(g.Request("/v1/chat/completions?api%2Dversion=9&b=2", testrig.Chat("m1")))
	if got := u.Last().Target; got != "/v1/chat/completions?api-version=1&b=2" {
		t.Errorf("upstream got %s", got)
	}
}

func TestIdentityHeadersOfAuthProxiesStayBehind(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u)))
	r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
	for _, name := range []string{"X-Forwarded-Access-Token", "X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Client-Cert", "X-Forwarded-Ssl"} {
		r.Header.Set(name, "x")
	}
	g.Do(r)
	for name := range u.Last().Header {
		if strings.HasPrefix(name, "X-Forwarded-") {
			t.Errorf("%s went upstream", name)
		}
	}
}

func TestSilentTLSHandshakeFailsOver(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() // connections wait in its queue, and nobody takes them
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("channel a {\nbase_url https://"+ln.Addr().String()+"\ntransport http {\ntls_timeout 300ms\n}\n}\n"+channelBlock("b", u, "priority 1")))
	if got := g.Chat("m1"); got.Status != 200 {
		t.Errorf("status %d", got.Status)
	}
	if got := g.Breaker("a", "m1").LastFailure; got != "tls: timeout" {
		t.Errorf("%q", got)
	}
}

func TestKeysThatCannotWorkAreRefused(t *testing.T) {
	t.Setenv("ONE_KEY", "same")
	t.Setenv("OTHER_KEY", "same\n")
	t.Setenv("BROKEN_KEY", "a\nb")
	u := testrig.NewUpstream(t)
	for keys, want := range map[string]string{
		"{env.ONE_KEY} {env.OTHER_KEY}": "channel a: key: number 2 is the same as one before it",
		"{env.BROKEN_KEY}":              "channel a: key: number 1 has a character that no header can carry",
	} {
		g := testrig.Start(t, "respond ok")
		err := g.Reload(gatewayBlock(channelBlock("a", u, "key "+keys)))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "same\n") {
			t.Errorf("%s: %v", keys, err)
		}
	}
}
