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

package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

func websocket(target string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	setHeader(r, []string{"Connection", "keep-alive", "Connection", "Upgrade", "Upgrade", "WebSocket"})
	return r
}

func TestWebsocketModelIsInTheQuery(t *testing.T) {
	for _, c := range []struct {
		target, model, query string // the query after replacement by n/1
	}{
		{"/v1/realtime?model=m1", "m1", "model=n%2F1"},
		{"/v1/realtime?a=1&m%6fdel=gpt%2F4+x&key=S&b", "gpt/4 x", "a=1&m%6fdel=n%2F1&b"},
		{"/openai/realtime?api-version=1&deployment=d", "d", "api-version=1&deployment=n%2F1"},
		{"/v1/realtime?model=m&deployment=d", "m", "model=n%2F1&deployment=d"},
		{"/v1/realtime?call_id=c", "", "call_id=c"},
		{"/v1/responses", "", ""},
		{"/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=S", "", ""},
	} {
		q := mustRead(t, websocket(c.target))
		if q.Model != c.model || !q.Stream || q.NeedsModel || q.HasBody() {
			t.Errorf("%s: model %q, stream %v, needs %v", c.target, q.Model, q.Stream, q.NeedsModel)
		}
		if got := q.Query("n/1"); got != c.query {
			t.Errorf("%s: query %q, want %q", c.target, got, c.query)
		}
	}
	for _, target := range []string{
		"/v1/realtime?model=a&model=b", "/v1/realtime?model=", "/v1/realtime?model=%zz", "/v1/realtime?model=%00",
	} {
		if e := refused(t, websocket(target), testLimit); e.Status != 400 {
			t.Errorf("%s: %+v", target, e)
		}
	}
}

func TestWebsocketBodyIsNotTouched(t *testing.T) {
	tunnel := iotest.ErrReader(errors.New("the tunnel was read"))
	h2 := httptest.NewRequest(http.MethodConnect, "/v1/realtime?model=m", tunnel)
	h2.URL.Path, h2.URL.RawQuery = "/v1/realtime", "model=m"
	h2.Header[":protocol"] = []string{"websocket"}
	h3 := h2.Clone(context.Background())
	h3.Header.Del(":protocol")
	h3.Proto = "websocket"
	for _, r := range []*http.Request{h2, h3} {
		if q := mustRead(t, r); q.Model != "m" || !q.Stream {
			t.Errorf("model %q, stream %v", q.Model, q.Stream)
		}
	}
}

func TestBodiesOfModellessPathsAreOpaque(t *testing.T) {
	for _, c := range []struct{ method, target, body string }{
		{http.MethodPost, "/v1/files", `{"model":"m","stream":true}`},
		{http.MethodPost, "/v1/files", "--b\r\nno multipart at all"},
		{http.MethodPost, "/v1/batches", `{"model":`},
		{http.MethodPost, "/v1/threads/t/runs", `{"model":"m"}`},
		{http.MethodPost, "/v1/messages/batches", `{"model":"m"}`},
		{http.MethodPost, "/v1beta/cachedContents", `{"model":"models/m"}`},
		{http.MethodPost, "/api/pull", `{"model":"m"}`},
		{http.MethodDelete, "/v1/files/x", ""},
		{http.MethodPut, "/v1/chat/completions", `{"model":"m"}`},
		{http.MethodGet, "/v1/models", ""},
		{http.MethodHead, "/v1/models/m1", ""},
		{http.MethodOptions, "/v1/chat/completions", ""},
		{http.MethodOptions, "/v1beta/models/m:generateContent", ""},
	} {
		r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
		setHeader(r, []string{"Content-Type", "multipart/form-data; boundary=b", "Content-Encoding", "br"})
		q := mustRead(t, r)
		if q.Model != "" || q.NeedsModel || q.Stream || q.Decoded() || q.HasBody() != (c.body != "") {
			t.Errorf("%s %s: model %q, needs %v, stream %v, decoded %v", c.method, c.target, q.Model, q.NeedsModel, q.Stream, q.Decoded())
		}
		if got := bodyOf(t, q, "other"); got != c.body {
			t.Errorf("%s %s: %q became %q", c.method, c.target, c.body, got)
		}
		if q.Method != c.method {
			t.Errorf("method %s", q.Method)
		}
	}
}

func TestOtherPathsMayNameAModel(t *testing.T) {
	for _, c := range []struct{ target, body, model string }{
		{"/third/party", `{"model":"m"}`, "m"},
		{"/third/party", `{"model":"m","model":"n"}`, ""},
		{"/third/party", `{"model":7}`, ""},
		{"/third/party", `{"model":"m"`, ""},
		{"/third/party", `plain`, ""},
		{"/third/party", ``, ""},
		{"/v1beta/interactions", `{"model":"m"}`, "m"},
		{"/v1beta/interactions", `{"agent":"a"}`, ""},
		{"/v1/complete", `{"model":"m"}`, "m"},
		{"/v1/responses/input_tokens", `{"model":"m"}`, "m"},
		{"/v1/realtime/client_secrets", `{"session":{"model":"m"}}`, ""},
		{"/v1/realtime/sessions", `{"model":"m"}`, "m"},
		{"/v1/realtime?model=q", `v=0`, "q"},
		{"/api/show", `{"model":"m"}`, "m"},
	} {
		q := mustRead(t, post(c.target, c.body))
		if q.Model != c.model || q.NeedsModel {
			t.Errorf("%s %s: model %q, needs %v", c.target, c.body, q.Model, q.NeedsModel)
		}
		want := c.body
		if c.model == "m" {
			want = strings.Replace(c.body, `"m"`, `"n"`, 1)
		}
		if got := bodyOf(t, q, "n"); got != want {
			t.Errorf("%s %s became %s", c.target, c.body, got)
		}
	}
}

func TestEncodedBodyOfAnUnknownPathGoesAsItCame(t *testing.T) {
	for _, encoding := range []string{"br", "gzip"} {
		q := mustRead(t, post("/third/party", "\x1f\x8bgarbage", "Content-Encoding", encoding))
		if q.Decoded() || q.Model != "" || bodyOf(t, q, "") != "\x1f\x8bgarbage" {
			t.Errorf("%s: decoded %v, model %q", encoding, q.Decoded(), q.Model)
		}
	}
}

func TestContentTypeIsNotNeeded(t *testing.T) {
	for _, ct := range []string{"", "text/plain", "application/json; charset=utf-8", "multipart/mixed"} {
		q := mustRead(t, post("/v1/chat/completions", `{"model":"m"}`, "Content-Type", ct))
		if q.Model != "m" || q.Dialect != dialect.OpenAI {
			t.Errorf("%q: %q, %v", ct, q.Model, q.Dialect)
		}
	}
}

func TestClientGoneIsNoFaultOfTheRequest(t *testing.T) {
	gone := errors.New("connection reset")
	for _, encoding := range []string{"", "gzip", "zstd", "deflate", "gzip, gzip"} {
		inner, outer, _ := strings.Cut(encoding, ", ")
		whole := pack(t, outer, pack(t, inner, chatBody(5000)))
		for _, n := range []int{0, 1, 2, 5, len(whole) - 1} {
			r := post("/v1/chat/completions", "", "Content-Encoding", encoding)
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(whole[:n]), iotest.ErrReader(gone)))
			q, err := Read(r, Limits{})
			var e *Error
			if q != nil || !errors.Is(err, gone) || errors.As(err, &e) {
				t.Errorf("%q after %d bytes: %v, %v", encoding, n, q, err)
			}
		}
	}
}

func TestTooLarge(t *testing.T) {
	body := `{"model":"m","x":"` + strings.Repeat("x", 3<<20-20) + `"}`
	if len(body) != 3<<20 {
		t.Fatal(len(body))
	}
	for _, known := range []bool{true, false} {
		request := func() *http.Request {
			r := post("/v1/chat/completions", body)
			if !known {
				r.ContentLength = -1
			}
			return r
		}
		if q, err := Read(request(), Limits{MaxBody: 3 << 20}); err != nil || bodyOf(t, q, "") != body {
			t.Errorf("at the limit: %v", err)
		}
		e := refused(t, request(), 3<<20-1)
		if e.Status != 413 || e.Code != CodeTooLarge || !strings.Contains(e.Message, "3145727 bytes") {
			t.Errorf("%+v", e)
		}
		if _, err := Read(request(), Limits{}); err != nil {
			t.Errorf("without a limit: %v", err)
		}
	}
}

func TestAnnouncedSizeIsRefusedUnread(t *testing.T) {
	r := post("/v1/files", "")
	r.ContentLength = 1000
	r.Body = io.NopCloser(iotest.ErrReader(errors.New("was read")))
	if e := refused(t, r, 999); e.Status != 413 {
		t.Errorf("%+v", e)
	}
}

func TestAnnouncedSizeIsNotTrusted(t *testing.T) {
	r := post("/v1/files", "short")
	r.ContentLength = 1 << 40
	q, err := Read(r, Limits{})
	if err != nil || cap(q.body) > firstBuffer {
		t.Fatalf("%v, %d bytes allocated", err, cap(q.body))
	}
	r = post("/v1/files", strings.Repeat("longer than announced", 1000))
	r.ContentLength = 3
	if got := bodyOf(t, mustRead(t, r), ""); len(got) != 21000 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestLimitOfAnotherHandler(t *testing.T) {
	r := post("/v1/chat/completions", `{"model":"m","x":"0123456789"}`)
	r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 10)
	if e := refused(t, r, testLimit); e.Status != 413 || !strings.Contains(e.Message, "10 bytes") {
		t.Errorf("%+v", e)
	}
}

func TestHumanSize(t *testing.T) {
	for n, want := range map[int64]string{
		1000:     "1000 bytes",
		1536:     "1.5 KiB (1536 bytes)",
		64 << 20: "64 MiB (67108864 bytes)",
		1 << 30:  "1 GiB (1073741824 bytes)",
	} {
		if got := humanSize(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestErrorsRepeatLittleOfTheRequest(t *testing.T) {
	long := strings.Repeat("sk-secret", 1000)
	for _, r := range []*http.Request{
		post("/v1/chat/completions", `{"model":"`+long+`"}`),
		post("/v1/chat/completions", `{"`+long+`":1}`),
		post("/v1/chat/completions", long),
		post("/v1/chat/completions", "{"+long),
		post("/v1/chat/completions", "{}", "Content-Encoding", long),
		post("/v1/images/edits", "--"+long, "Content-Type", "multipart/form-data; boundary="+long),
	} {
		if e := refused(t, r, testLimit); len(e.Error()) > 200 {
			t.Errorf("%s", e.Message)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	body := chatBody(1 << 10)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	r := post("/v1/chat/completions", "", "Content-Type", "application/json")
	r.ContentLength = int64(len(body))
	for b.Loop() {
		r.Body = io.NopCloser(strings.NewReader(body))
		if _, err := Read(r, Limits{MaxBody: testLimit}); err != nil {
			b.Fatal(err)
		}
	}
}

// chatBody returns a chat request of about n bytes.
func chatBody(n int) string {
	turn := `{"role":"user","content":"Tell me in \"short\" words,\nplease: why is the sky blue?"},`
	turns := strings.Repeat(turn, max(1, n/len(turn)))
	return fmt.Sprintf(`{"messages":[%s],"temperature":0.7,"max_tokens":256,"stream":true,"model":"m1"}`, strings.TrimSuffix(turns, ","))
}
