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
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// framings are ways to write the same three events.
func framings() map[string]string {
	lines := func(end string, fields ...string) string {
		return strings.ReplaceAll(strings.Join(fields, "\n"), "\n", end)
	}
	content := `{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"h\u2028ö"},"finish_reason":null}]}`
	finish := testrig.FinishChunk
	plain := []string{": hi", "", "data: " + content, "", "data: " + finish, "", "data: [DONE]", "", ""}
	return map[string]string{
		"LF":               lines("\n", plain...),
		"CRLF":             lines("\r\n", plain...),
		"CR":               lines("\r", plain...),
		"no space":         strings.ReplaceAll(lines("\n", plain...), "data: ", "data:"),
		"byte order mark":  "\ufeff" + lines("\n", plain...),
		"no final blank":   lines("\n", ": hi", "", "data: "+content, "", "data: "+finish, "", "data: [DONE]\n"),
		"event names":      lines("\n", "event: chunk", "id: 1", "data: "+content, "", "event: end", "data: "+finish, "", "data: [DONE]", "", ""),
		"several lines":    lines("\n", "data: "+strings.Replace(content, ",", ",\ndata: ", 1), "", "data: "+finish, "", "data: [DONE]", "", ""),
		"a line of 4 MB":   lines("\n", ": "+strings.Repeat("x", 4<<20), "", "data: "+content, "", "data: "+finish, "", "data: [DONE]", "", ""),
		"an event of 4 MB": lines("\n", "data: "+strings.Replace(content, "h", strings.Repeat("h", 4<<20), 1), "", "data: "+finish, "", "data: [DONE]", "", ""),
	}
}

// Whatever the framing and however it is cut into pieces, the client gets the
// same bytes, and the verdict is the same: whole, it is a success; without its
// end, it is broken.
func TestEveryFramingPassesUntouched(t *testing.T) {
	for name, whole := range framings() {
		t.Run(name, func(t *testing.T) {
			for _, cut := range []bool{false, true} {
				body := whole
				if cut {
					body = whole[:strings.Index(whole, testrig.FinishChunk)]
				}
				p := startPair(t, "second_opinion off")
				p.u1.Answer(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					for at := 0; at < len(body); {
						n := 1
						if len(body) > 10_000 {
							n = 50_001
						}
						n = min(n, len(body)-at)
						io.WriteString(w, body[at:at+n])
						w.(http.Flusher).Flush()
						at += n
					}
				})
				got := p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
				failures := p.Breaker("a", "m1").ConsecutiveFailures
				switch {
				case !cut && (got.Err != nil || got.Body != body || failures != 0):
					t.Errorf("whole: %v, %d of %d bytes, %d failures", got.Err, len(got.Body), len(body), failures)
				case cut && (failures != 1 || got.Err == nil && p.u2.Count() == 0):
					t.Errorf("cut: %v, %d failures, b got %d requests", got.Err, failures, p.u2.Count())
				}
			}
		})
	}
}

// paced sends an event, waits until the client says that it got it, and so on.
func paced(events []string, got <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
			w.(http.Flusher).Flush()
			select {
			case <-got:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// Every event reaches the client before the next one is sent, also where the
// site compresses answers.
func TestEventsReachTheClientAtOnce(t *testing.T) {
	events := []string{testrig.Chunk("a"), testrig.Chunk("b"), testrig.FinishChunk, "[DONE]"}
	for _, site := range []string{"", "encode zstd gzip\n"} {
		t.Run(site, func(t *testing.T) {
			u := testrig.NewUpstream(t)
			g := testrig.Start(t, site+gatewayBlock(channelBlock("a", u)))
			got := make(chan struct{})
			u.Answer(paced(events, got))
			r := g.Request("/v1/chat/completions", testrig.StreamChat("m1"))
			res, err := http.DefaultTransport.RoundTrip(r) // which asks for gzip, and undoes it
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			lines := bufio.NewScanner(res.Body)
			for _, want := range events {
				for lines.Scan() && lines.Text() == "" {
				}
				if lines.Text() != "data: "+want {
					t.Fatalf("%q, want %q", lines.Text(), want)
				}
				got <- struct{}{}
			}
			if site != "" && !res.Uncompressed {
				t.Error("the site did not compress")
			}
		})
	}
}

// An upstream that keeps us waiting is left at the limit that applies, and the
// other one answers.
func TestUpstreamsThatStallAreLeft(t *testing.T) {
	raw := func(answer string, again func(w io.Writer) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			io.WriteString(conn, answer)
			gone := make(chan struct{})
			go func() { io.Copy(io.Discard, conn); close(gone) }()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-gone:
					return
				case <-tick.C:
					if again != nil && again(conn) != nil {
						return
					}
				}
			}
		}
	}
	say := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		limit  string
	}{
		"no headers":               {raw("", nil), "header_timeout"},
		"103 again and again":      {raw("", say("HTTP/1.1 103 Early Hints\r\n\r\n")), "header_timeout"},
		"a byte of a status line":  {raw("H", nil), "header_timeout"},
		"headers, then nothing":    {raw(head, nil), "idle_timeout"},
		"headers, then pings only": {raw(head, say(": ping\n\n")), "first_token_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, "header_timeout 1s 1s", "idle_timeout 1s", "first_token_timeout 1500ms")
			p.u1.Answer(c.answer)
			got := p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
			if got.Status != 200 || got.Err != nil || p.u2.Count() != 1 {
				t.Errorf("%d %v, b got %d requests", got.Status, got.Err, p.u2.Count())
			}
			if b := p.Breaker("a", "m1"); b.ConsecutiveFailures != 1 || b.LastFailure != c.limit {
				t.Errorf("%+v", b)
			}
		})
	}
	t.Run("reads nothing", func(t *testing.T) {
		us := upstreams(t, 2)
		g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "header_timeout 500ms 500ms")+channelBlock("b", us[1], "priority 1")))
		us[0].Forget()
		us[0].Answer(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			<-t.Context().Done()
		})
		body := strings.Replace(testrig.Chat("m1"), "hi", strings.Repeat("x", 14<<20), 1)
		if got := g.Do(g.Request("/v1/chat/completions", body)); got.Status != 200 || us[1].Count() != 1 {
			t.Errorf("%d, b got %d requests", got.Status, us[1].Count())
		}
	})
}

// A stream that is cut after it began ends abnormally for clients of HTTP/2 too.
func TestCutStreamsEndAbnormallyOverHTTP2(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.StartH2C(t, gatewayBlock(channelBlock("a", u)))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	for name, end := range map[string]func(http.ResponseWriter, *http.Request){
		"FIN": func(http.ResponseWriter, *http.Request) {},
		"RST": func(w http.ResponseWriter, r *http.Request) { testrig.Reset(w, r) },
	} {
		t.Run(name, func(t *testing.T) {
			u.Answer(func(w http.ResponseWriter, r *http.Request) {
				for range 40 {
					testrig.EventStream(w, testrig.Chunk(strings.Repeat("x", 500)))
				}
				end(w, r)
			})
			res, err := client.Do(g.Request("/v1/chat/completions", testrig.StreamChat("m1")))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if res.ProtoMajor != 2 || err == nil || !bytes.Contains(body, []byte("xxx")) {
				t.Errorf("%s: a clean end after %d bytes", res.Proto, len(body))
			}
		})
	}
}
