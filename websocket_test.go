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
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// handshake opens a websocket to the gateway, with a key among the subprotocols
// as browsers send it.
func handshake(t *testing.T, g *testrig.Gateway, target string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: realtime, openai-insecure-api-key.client-secret\r\n"+
		"Authorization: Bearer client-secret\r\nOrigin: https://page.example\r\n\r\n", target)
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, r, res
}

// echoSocket accepts a websocket handshake and echoes bytes.
func echoSocket(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: realtime\r\n\r\n")
	io.Copy(conn, rw)
}

func TestWebsocketIsATunnelToTheChannelOfItsModel(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock(
		channelBlock("a", us[0], "models m1", "key sk-of-a", "model_map alias m1")+channelBlock("b", us[1], "models m2")))
	us[0].Answer(echoSocket)
	conn, r, res := handshake(t, g, "/v1/realtime?model=alias")
	defer conn.Close()
	if res.StatusCode != 101 || res.Header.Get("Sec-Websocket-Protocol") != "realtime" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	io.WriteString(conn, "ping")
	buf := make([]byte, 4)
	if _, err := io.ReadFull(r, buf); err != nil || string(buf) != "ping" {
		t.Errorf("%q, %v", buf, err)
	}
	got := us[0].Last()
	all := fmt.Sprint(got.Target, got.Header)
	if got.Target != "/v1/realtime?model=m1" || got.Header.Get("Authorization") != "Bearer sk-of-a" ||
		strings.Contains(all, "client-secret") || strings.Contains(all, "page.example") {
		t.Errorf("upstream got %s", all)
	}
	if n := g.Channel("a").InFlight; n != 1 {
		t.Errorf("in flight: %d", n)
	}
	conn.Close()
	testrig.Eventually(t, "tunnel over", func() bool { return g.Channel("a").InFlight == 0 })
}

// A probe by websocket is settled by the 101, however long the session lasts.
func TestWebsocketProbeClosesAtTheHandshake(t *testing.T) {
	p := startPair(t)
	p.tripHalfOpen(t, "m1")
	p.u1.Answer(echoSocket)
	conn, _, res := handshake(t, p.Gateway, "/v1/realtime?model=m1")
	defer conn.Close()
	if res.StatusCode != 101 {
		t.Fatalf("%d", res.StatusCode)
	}
	if s := p.Breaker("a", "m1").State; s != "closed" {
		t.Errorf("with the session open: %s", s)
	}
}

func TestRefusedWebsocketFailsOver(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(testrig.Fail(500, ""))
	p.u2.Answer(echoSocket)
	conn, _, res := handshake(t, p.Gateway, "/v1/realtime?model=m1")
	defer conn.Close()
	if res.StatusCode != 101 || p.u1.Count() != 1 {
		t.Errorf("%d, a asked %d times", res.StatusCode, p.u1.Count())
	}
}

// A handshake that is refused, or never answered, is judged by its status or by
// the time limit, and nothing is left behind.
func TestHandshakesThatFailAreJudgedLikeOtherAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"403": testrig.Fail(403, ""), "hang": testrig.Hang} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, "header_timeout 1s 1s")
			p.u1.Answer(answer)
			p.u2.Answer(echoSocket)
			conn, _, res := handshake(t, p.Gateway, "/v1/realtime?model=m1")
			if res.StatusCode != 101 || p.u1.Count() != 1 {
				t.Errorf("%d, a asked %d times", res.StatusCode, p.u1.Count())
			}
			failures := 0
			if name == "hang" {
				failures = 1
			}
			if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != failures {
				t.Errorf("%+v", b)
			}
			conn.Close()
			testrig.Eventually(t, "nothing in flight", func() bool { return p.InFlight() == 0 })
		})
	}
}

// stream_close_delay is how long a websocket outlives a reload.
func TestStreamCloseDelayBoundsWebsocketsAfterAReload(t *testing.T) {
	for _, delay := range []string{"1h", "0"} {
		t.Run(delay, func(t *testing.T) {
			p := startPair(t, "stream_close_delay "+delay)
			p.u1.Answer(echoSocket)
			conn, r, res := handshake(t, p.Gateway, "/v1/realtime?model=m1")
			defer conn.Close()
			if res.StatusCode != 101 {
				t.Fatal(res.StatusCode)
			}
			ping := func() {
				io.WriteString(conn, "ping")
				buf := make([]byte, 4)
				if _, err := io.ReadFull(r, buf); err != nil || string(buf) != "ping" {
					t.Errorf("%q, %v", buf, err)
				}
			}
			ping()
			if err := p.Reload(p.block("retries 2", "stream_close_delay "+delay)); err != nil {
				t.Fatal(err)
			}
			if delay == "1h" {
				ping()
				return
			}
			conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			for {
				if _, err := r.ReadByte(); err != nil {
					if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
						t.Error("the websocket is still open")
					}
					break
				}
			}
			conn.Close()
			testrig.Eventually(t, "nothing in flight", func() bool { return p.InFlight() == 0 })
		})
	}
}
