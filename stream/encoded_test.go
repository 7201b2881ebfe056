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

package stream

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

type flushWriter interface {
	io.WriteCloser
	Flush() error
}

func encoder(t *testing.T, coding string, out io.Writer) flushWriter {
	t.Helper()
	switch coding {
	case "gzip", "x-gzip", "GZIP":
		return gzip.NewWriter(out)
	case "deflate":
		return zlib.NewWriter(out)
	case "bare deflate":
		w, err := flate.NewWriter(out, flate.DefaultCompression)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w, err := zstd.NewWriter(out)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// What has been sent is judged at once, whatever it is coded in and however it
// is cut into pieces.
func TestEncodedStreamsAreJudgedAsTheyCome(t *testing.T) {
	const content = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"
	const rest = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	for _, coding := range []string{"gzip", "x-gzip", "GZIP", "deflate", "bare deflate", "zstd"} {
		for _, size := range []int{1, 7, 100_000} {
			var out bytes.Buffer
			enc := encoder(t, coding, &out)
			name := strings.TrimPrefix(coding, "bare ")
			w := NewEncoded(dialect.OpenAI, "text/event-stream", name, true)
			feed := func() {
				for p := out.Next(size); len(p) > 0; p = out.Next(size) {
					w.Write(p)
				}
			}
			io.WriteString(enc, ": ping\n\n")
			enc.Flush()
			if feed(); w.Begun() {
				t.Errorf("%s: a comment is content", coding)
			}
			io.WriteString(enc, content)
			enc.Flush()
			if feed(); !w.Content() {
				t.Errorf("%s in pieces of %d: no content", coding, size)
			}
			io.WriteString(enc, rest)
			enc.Close()
			feed()
			if end := w.End(); end != Complete || !w.Terminal() {
				t.Errorf("%s: %s", coding, end)
			}
			w.Free()
		}
	}
}

func TestEncodedErrorsAndCutsAreFound(t *testing.T) {
	code := func(text string) []byte {
		var out bytes.Buffer
		enc := gzip.NewWriter(&out)
		io.WriteString(enc, text)
		enc.Close()
		return out.Bytes()
	}
	failing := "data: {\"error\":{\"message\":\"m\",\"code\":\"server_error\"}}\n\n"
	long := strings.Repeat("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n", 100)
	whole := code(long)
	for name, c := range map[string]struct {
		kind string
		body []byte
		want Ending
	}{
		"error":          {"text/event-stream", code(failing), Failed},
		"cut code":       {"text/event-stream", whole[:len(whole)/2], Cut},
		"no code":        {"text/event-stream", []byte("plainly not gzip"), Cut},
		"empty":          {"text/event-stream", nil, Cut},
		"empty code":     {"text/event-stream", code(""), Empty},
		"document":       {"application/json", code(`{"choices":[]}`), Complete},
		"error document": {"application/json", code(`{"error":{"message":"m"}}`), Failed},
		"bomb":           {"text/event-stream", code("data: " + strings.Repeat("x", 64<<20) + "\n\ndata: [DONE]\n\n"), Empty},
	} {
		w := NewEncoded(dialect.OpenAI, c.kind, "gzip", true)
		w.Write(c.body)
		if got := w.End(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		w.Free()
	}
}

func TestUnknownEncodingsAreOpaque(t *testing.T) {
	w := NewEncoded(dialect.OpenAI, "text/event-stream", "br", true)
	w.Write([]byte("whatever"))
	if end := w.End(); end != Complete || w.Stream() {
		t.Errorf("%s", end)
	}
	if w := NewEncoded(dialect.OpenAI, "text/event-stream", "identity", true); !w.Stream() {
		t.Error("identity is no encoding")
	}
}

// A watcher that is given up in the middle leaves nothing behind.
func TestEncodedWatchersLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 100 {
		w := NewEncoded(dialect.OpenAI, "text/event-stream", "gzip", true)
		w.Write([]byte{0x1f, 0x8b, 8})
		w.Free()
		NewEncoded(dialect.OpenAI, "text/event-stream", "zstd", true).Free()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, before %d", n, before)
	}
}
