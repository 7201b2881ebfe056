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
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/rand"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

func encoded(t *testing.T, coding, body string) string {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "zstd":
		enc, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = enc
	default:
		return body
	}
	io.WriteString(w, body)
	w.Close()
	return out.String()
}

// A body that comes encoded is routed, and goes out decoded with the right
// length, also when it is sent a second time.
func TestEncodedBodiesGoOutDecoded(t *testing.T) {
	for _, coding := range []string{"gzip", "zstd", "deflate", "identity"} {
		t.Run(coding, func(t *testing.T) {
			p := startPair(t)
			p.u1.Answer(testrig.Fail(500, ""))
			r := p.Request("/v1/chat/completions", encoded(t, coding, testrig.Chat("m1")))
			r.Header.Set("Content-Encoding", coding)
			if got := p.Do(r); got.Status != 200 {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
			for _, u := range []*testrig.Upstream{p.u1, p.u2} {
				got := u.Last()
				encoding := got.Header.Get("Content-Encoding")
				if got.Body != testrig.Chat("m1") || coding != "identity" && encoding != "" ||
					got.Header.Get("Content-Length") != fmt.Sprint(len(got.Body)) {
					t.Errorf("upstream got %q %v", got.Body, got.Header)
				}
			}
		})
	}
}

func TestEncodingsThatCannotBeUndoneAreRefused(t *testing.T) {
	p := startPair(t, "max_body 1MiB")
	whole := encoded(t, "gzip", testrig.Chat("m1"))
	bomb := encoded(t, "gzip", `{"model":"m1","x":"`+strings.Repeat("a", 20<<20)+`"}`)
	for _, c := range []struct {
		name, coding, body string
		status             int
		code               string
	}{
		{"brotli", "br", testrig.Chat("m1"), 415, "unsupported_encoding"},
		{"unknown", "rot13", testrig.Chat("m1"), 415, "unsupported_encoding"},
		{"truncated", "gzip", whole[:len(whole)-8], 400, "invalid_request"},
		{"not what it says", "zstd", testrig.Chat("m1"), 400, "invalid_request"},
		{"bomb", "gzip", bomb, 413, "request_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := p.Request("/v1/chat/completions", c.body)
			r.Header.Set("Content-Encoding", c.coding)
			got := p.Do(r)
			runtime.ReadMemStats(&after)
			if got.Status != c.status || !strings.Contains(got.Body, c.code) {
				t.Errorf("%d %s", got.Status, got.Body)
			}
			// All that was allocated, kept or not: the last two sizes of a buffer
			// that doubles, and change.
			if took := after.TotalAlloc - before.TotalAlloc; took > 5<<20 {
				t.Errorf("%d KiB were allocated", took>>10)
			}
		})
	}
	if n := p.u1.Count() + p.u2.Count(); n != 0 {
		t.Errorf("upstreams got %d requests", n)
	}
}

// resetsAfterHalf reads half of what is due and resets the connection.
func resetsAfterHalf(w http.ResponseWriter, r *http.Request) {
	io.CopyN(io.Discard, r.Body, max(1, r.ContentLength/2))
	testrig.Reset(w, r)
}

// Whatever the channels before did with a body, the next one gets all of it.
func TestBodiesArriveWholeAfterFailures(t *testing.T) {
	us := upstreams(t, 3)
	block := "retries 5\n" + fmt.Sprintf("channel refuses {\nbase_url %s\npriority 0\n}\n", testrig.Refusing(t))
	for i, u := range us {
		block += channelBlock(string(rune('a'+i)), u, fmt.Sprintf("priority %d", i+1))
	}
	g := testrig.Start(t, plainBlock("breaker off\n"+block))
	us[0].Forget()
	us[1].Forget()
	us[0].Answer(testrig.Fail(500, ""))
	us[1].Answer(resetsAfterHalf)
	for _, size := range []int{0, 1000, 100_000, 3 << 20, 20 << 20} {
		noise := make([]byte, size/2)
		rand.Read(noise)
		body := fmt.Sprintf(`{"model":"m1","x":"%x"}`, noise)
		for _, framing := range []string{"length", "chunked"} {
			r := g.Request("/v1/chat/completions", body)
			if framing == "chunked" {
				if size > 10<<20 {
					continue
				}
				r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(body)), -1, nil
			}
			if got := g.Do(r); got.Status != 200 {
				t.Fatalf("%d bytes, %s: %d %s", size, framing, got.Status, got.Body)
			}
			if got := us[2].Last(); got.Body != body || got.Header.Get("Content-Length") != fmt.Sprint(len(body)) {
				t.Errorf("%d bytes, %s: c got %d bytes, %v", size, framing, len(got.Body), got.Header)
			}
		}
	}
}

func TestModelIsFoundWhereverItStands(t *testing.T) {
	p := startPair(t)
	long := strings.Repeat("x", 5<<20)
	for name, body := range map[string]string{
		"behind 5 MB":     `{"messages":[{"content":"` + long + `"}],"model":"m1"}`,
		"behind a nested": `{"a":{"model":"no"},"b":[{"model":"no"}],"model":"m1"}`,
		"escaped name":    `{"mod\u0065l":"m1"}`,
		"escaped value":   `{"model":"\u006d1"}`,
		"behind space":    strings.Repeat(" \n", 1<<19) + `{"model":"m1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			got := p.Do(p.Request("/v1/chat/completions", body))
			last := p.u1.Last()
			if got.Status != 200 || last.Body != body {
				t.Errorf("%d %.100s, upstream got %d bytes of %d", got.Status, got.Body, len(last.Body), len(body))
			}
			if entries := p.AccessLog(); len(entries) > 0 {
				object, _ := entries[len(entries)-1]["llm_gateway"].(map[string]any)
				if object["model"] != "m1" {
					t.Errorf("routed as %v", object["model"])
				}
			}
		})
	}
}

// Bodies that are no request are refused in the shape of the endpoint, at once,
// and without asking anybody.
func TestBodiesThatAreNoRequestAreRefused(t *testing.T) {
	us := upstreams(t, 1)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "provider ollama")))
	for name, body := range map[string]string{
		"model twice":         `{"model":"m1","model":"m2"}`,
		"model and Model":     `{"model":"m1","Model":"m1"}`,
		"null":                `{"model":null}`,
		"number":              `{"model":7}`,
		"array of models":     `{"model":["m1"]}`,
		"empty model":         `{"model":""}`,
		"no model":            `{"messages":[]}`,
		"array":               `[]`,
		"string":              `"hi"`,
		"open":                `{`,
		"byte order mark":     "\ufeff" + testrig.Chat("m1"),
		"garbage behind":      testrig.Chat("m1") + "x",
		"nothing":             "",
		"20,000 levels":       `{"model":"m1","x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}",
		"20,000 levels, open": strings.Repeat(`{"a":`, 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			for path, shape := range map[string]string{
				"/v1/chat/completions": `"code":"invalid_request"`,
				"/v1/messages":         `"type":"invalid_request_error"`,
				"/api/chat":            `{"error":"`,
			} {
				began := time.Now()
				got := g.Do(g.Request(path, body))
				if got.Status != 400 || !strings.Contains(got.Body, shape) {
					t.Errorf("%s: %d %s", path, got.Status, got.Body)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("%s: refused after %s", path, took)
				}
			}
		})
	}
	r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
	r.Header.Del("Content-Type")
	if got := g.Do(r); got.Status != 200 {
		t.Errorf("without a Content-Type: %d %s", got.Status, got.Body)
	}
	if n := us[0].Count(); n != 1 {
		t.Errorf("the upstream got %d requests", n)
	}
	if ch := g.Channel("a"); ch.Health != "green" {
		t.Errorf("%+v", ch)
	}
}

// form writes a transcription request: its fields in order, "file" being a file
// of that content.
func form(t *testing.T, fields ...string) (contentType, body string) {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for i := 0; i < len(fields); i += 2 {
		part, err := w.CreateFormField(fields[i])
		if fields[i] == "file" {
			part, err = w.CreateFormFile("file", "model")
		}
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(part, fields[i+1])
	}
	w.Close()
	return w.FormDataContentType(), out.String()
}

func TestFormsAreRoutedByTheirField(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	us := upstreams(t, 2)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", us[0], "models m1")+channelBlock("b", us[1], "models m2")))
	file := strings.Repeat("RIFF\r\n--", 20<<20/8)
	for _, c := range []struct {
		name   string
		fields []string
		status int
		to     int
	}{
		{"model before the file", []string{"model", "m2", "file", file}, 200, 1},
		{"model behind the file", []string{"file", file, "model", "m2"}, 200, 1},
		{"a part named model inside the file", []string{"file", "Content-Disposition: form-data; name=\"model\"\r\n\r\nm1", "model", "m2"}, 200, 1},
		{"model twice", []string{"model", "m1", "model", "m2", "file", "x"}, 400, -1},
		{"no model", []string{"file", "x"}, 400, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			contentType, body := form(t, c.fields...)
			r := g.Request("/v1/audio/transcriptions", body)
			r.Header.Set("Content-Type", contentType)
			before := [2]int{us[0].Count(), us[1].Count()}
			got := g.Do(r)
			if got.Status != c.status {
				t.Errorf("%d %s", got.Status, got.Body)
			}
			for i, u := range us {
				if asked := u.Count() - before[i]; (asked == 1) != (i == c.to) {
					t.Errorf("upstream %d got %d requests", i, asked)
				} else if asked == 1 && (u.Last().Body != body || u.Last().Header.Get("Content-Type") != contentType) {
					t.Errorf("upstream %d got other bytes", i)
				}
			}
		})
	}
	if files, _ := os.ReadDir(temporary); len(files) > 0 {
		t.Errorf("%d temporary files", len(files))
	}
}

// The model is decoded once for the breaker; upstream the path keeps the escapes
// that it came with, and leads to nowhere above the base path.
func TestPathsKeepTheirEscapes(t *testing.T) {
	u := testrig.NewUpstream(t)
	for _, c := range []struct {
		provider, base, target string
		status                 int
		model, upstream        string
	}{
		{"gemini", "", "/v1beta/models/org/m1:streamGenerateContent?alt=sse", 200, "org/m1", "/v1beta/models/org/m1:streamGenerateContent?alt=sse"},
		{"azure", "/openai", "/openai/deployments/m1/chat/completions?api-version=x", 200, "m1", "/openai/deployments/m1/chat/completions?api-version=x"},
		{"bedrock", "", "/model/us.vendor.m1-v1%3A0/invoke", 200, "us.vendor.m1-v1:0", "/model/us.vendor.m1-v1%3A0/invoke"},
		{"bedrock", "", "/model/a%252Fb/invoke", 200, "a%2Fb", "/model/a%252Fb/invoke"},
		{"openai", "/base/v1", "/v1/..%2f..%2fadmin", 400, "", ""},
		{"openai", "/base/v1", "/v1/../../admin", 400, "", ""},
		{"openai", "/base/v1", "/v1/%2e%2e/admin", 400, "", ""},
	} {
		t.Run(c.target, func(t *testing.T) {
			g := testrig.Start(t, gatewayBlock("channel a {\nprovider "+c.provider+"\nbase_url "+u.URL+c.base+"\n}"))
			before := u.Count()
			r := g.Request("/", `{"messages":[]}`)
			path, query, _ := strings.Cut(c.target, "?")
			r.URL.Opaque, r.URL.RawQuery = path, query // as it is, unlike a parsed one
			got := g.Do(r)
			if got.Status != c.status {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
			if c.status == 400 {
				if u.Count() != before {
					t.Errorf("the upstream was asked for %s", u.Last().Target)
				}
				return
			}
			if target := u.Last().Target; target != c.upstream {
				t.Errorf("the upstream was asked for %s", target)
			}
			object, _ := g.AccessLog()[0]["llm_gateway"].(map[string]any)
			if object["model"] != c.model {
				t.Errorf("model %v", object["model"])
			}
		})
	}
}

// Requests that are about no model's answer neither panic nor count.
func TestRequestsAboutOtherThingsCountNothing(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "models m1 m2")))
	u.Answer(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/v1/models", 200, `"id":"m1"`},
		{"HEAD", "/v1/models", 200, ""},
		{"GET", "/v1/models/m1", 200, `"id":"m1"`},
		{"HEAD", "/v1/models/m1", 200, ""},
		{"OPTIONS", "/v1/chat/completions", 204, ""},
		{"DELETE", "/v1/files/x", 204, ""},
		{"POST", "/v1/files", 204, ""},
	} {
		r, err := http.NewRequest(c.method, g.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Do(r); got.Status != c.status || !strings.Contains(got.Body, c.body) {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.Status, got.Body)
		}
	}
	if ch := g.Channel("a"); ch.Health != "green" || strings.Contains(g.Log(), "panic") {
		t.Errorf("%+v", ch)
	}
}

// Clients that trickle their bodies in at the same time get each their own back.
func TestBodiesAreNotMixedUp(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.Copy(w, r.Body)
	})
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			body := fmt.Sprintf(`{"model":"m1","choices":[],"n":%d,"x":"%s"}`, n, strings.Repeat(fmt.Sprint(n%10), 5000))
			r := p.Request("/v1/chat/completions", body)
			r.Body, r.ContentLength, r.GetBody = io.NopCloser(iotest.HalfReader(strings.NewReader(body))), -1, nil
			if got := p.Do(r); got.Body != body {
				t.Errorf("request %d got %.60s back", n, got.Body)
			}
		})
	}
	wg.Wait()
}
