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
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// pack encodes plain as the named encoding; "raw" is deflate without zlib.
func pack(t *testing.T, encoding, plain string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch encoding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw":
		w, err = flate.NewWriter(&b, 5)
	default:
		return plain
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestContentEncodingIsUndone(t *testing.T) {
	plain := chatBody(20_000)
	for _, c := range []struct {
		pack    []string // in the order of application
		header  []string
		decoded bool
	}{
		{nil, []string{"identity"}, false},
		{nil, []string{""}, false},
		{[]string{"gzip"}, []string{"gzip"}, true},
		{[]string{"gzip"}, []string{" X-GZip "}, true},
		{[]string{"gzip"}, []string{"identity, gzip,"}, true},
		{[]string{"zstd"}, []string{"zstd"}, true},
		{[]string{"deflate"}, []string{"deflate"}, true},
		{[]string{"raw"}, []string{"deflate"}, true},
		{[]string{"gzip", "gzip"}, []string{"gzip, gzip"}, true},
		{[]string{"zstd", "deflate"}, []string{"zstd", "deflate"}, true},
	} {
		packed := plain
		for _, encoding := range c.pack {
			packed = pack(t, encoding, packed)
		}
		r := post("/v1/chat/completions", packed)
		r.Header["Content-Encoding"] = c.header
		q := mustRead(t, r)
		if q.Model != "m1" || !q.Stream || q.Decoded() != c.decoded {
			t.Errorf("%q: model %q, stream %v, decoded %v", c.header, q.Model, q.Stream, q.Decoded())
		}
		if bodyOf(t, q, "m1") != plain {
			t.Errorf("%q: the body changed", c.header)
		}
		if got := bodyOf(t, q, "m2"); got != strings.Replace(plain, `"m1"`, `"m2"`, 1) {
			t.Errorf("%q: the spliced body is wrong", c.header)
		}
	}
}

func TestEncodedBodyOfAModelInThePathIsDecoded(t *testing.T) {
	const plain = `{"contents":[]}`
	q := mustRead(t, post("/v1beta/models/m:generateContent", pack(t, "gzip", plain), "Content-Encoding", "gzip"))
	if !q.Decoded() || bodyOf(t, q, "m2") != plain {
		t.Errorf("decoded %v", q.Decoded())
	}
}

func TestUnknownEncodings(t *testing.T) {
	for _, encoding := range []string{"br", "compress", "gzip, br", "gzip,gzip,gzip", "utf-8"} {
		e := refused(t, post("/v1/chat/completions", "{}", "Content-Encoding", encoding), testLimit)
		if e.Status != 415 || e.Code != CodeUnsupported || !strings.Contains(e.Message, "zstd") {
			t.Errorf("%s: %+v", encoding, e)
		}
	}
}

func TestBrokenEncodings(t *testing.T) {
	plain := chatBody(5000)
	for _, encoding := range []string{"gzip", "zstd", "deflate", "raw"} {
		whole := pack(t, encoding, plain)
		header := strings.Replace(encoding, "raw", "deflate", 1)
		for name, body := range map[string]string{
			"one byte":  whole[:1],
			"truncated": whole[:len(whole)-3],
			"half":      whole[:len(whole)/2],
			"plain":     plain,
		} {
			e := refused(t, post("/v1/chat/completions", body, "Content-Encoding", header), testLimit)
			if e.Status != 400 || e.Code != CodeInvalid {
				t.Errorf("%s, %s: %+v", encoding, name, e)
			}
		}
	}
	e := refused(t, post("/v1/chat/completions", "", "Content-Encoding", "gzip"), testLimit)
	if e.Status != 400 || !strings.Contains(e.Message, "empty") {
		t.Errorf("an empty body: %+v", e)
	}
}

func TestZstdWindowIsBounded(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(2*maxWindow))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 3*maxWindow)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	e := refused(t, post("/v1/chat/completions", b.String(), "Content-Encoding", "zstd"), 64<<20)
	if e.Status != 400 || !strings.Contains(e.Message, "window") {
		t.Errorf("%+v", e)
	}
}

func TestBombsAreRefusedInLittleMemory(t *testing.T) {
	const limit, expanded = 8 << 20, 20 << 20
	zeros := strings.Repeat("0", expanded)
	for _, encoding := range []string{"gzip", "zstd", "deflate", "raw", "gzip, gzip"} {
		packed := pack(t, strings.TrimSuffix(encoding, ", gzip"), zeros)
		if encoding == "gzip, gzip" {
			packed = pack(t, "gzip", packed)
		}
		r := post("/v1/chat/completions", packed, "Content-Encoding", strings.Replace(encoding, "raw", "deflate", 1))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e := refused(t, r, limit)
		runtime.ReadMemStats(&after)
		if e.Status != 413 || e.Code != CodeTooLarge {
			t.Errorf("%s: %+v", encoding, e)
		}
		// All that was ever allocated, so more than what was held at any time:
		// the buffers, each twice the one before, add up to twice the limit.
		if used := after.TotalAlloc - before.TotalAlloc; used > 2*limit+2*maxWindow {
			t.Errorf("%s: %d MiB allocated", encoding, used>>20)
		}
	}
}

// A first stage that expands, while the second swallows all of it: the body
// stays small, the work does not.
func TestInnerStageIsBounded(t *testing.T) {
	empty := pack(t, "gzip", "")
	members := strings.Repeat(empty, 4*testLimit/len(empty))
	r := post("/v1/chat/completions", pack(t, "gzip", members), "Content-Encoding", "gzip, gzip")
	if e := refused(t, r, testLimit); e.Status != 413 {
		t.Errorf("%+v", e)
	}
}
