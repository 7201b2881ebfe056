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
	"strings"
	"testing"
)

func TestFieldIsFoundByItsPath(t *testing.T) {
	const body = `{"messages":[{"user":"no"}],"user":"u1","metadata":{"a":{"b":12.5},"user_id":"x","n":null},"meta\u0064":{"q":"esc\u0061ped"},"o":{},"user":"u2"}`
	for path, want := range map[string]string{
		"user": "u1", "metadata.user_id": "x", "metadata.a.b": "12.5", "metad.q": "escaped",
		"metadata": "", "metadata.n": "", "metadata.a": "", "missing": "", "user.x": "", "o.x": "", "messages": "", "": "",
	} {
		q := &Request{body: []byte(" " + body)}
		if got, ok := q.Field(strings.Split(path, ".")...); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", path, got, ok, want)
		}
	}
	for _, body := range []string{"", "[]", `"user"`, "{", `{"user"`, `{"user":`, `{"user":"x`, "--boundary\r\n"} {
		q := &Request{body: []byte(body)}
		if got, ok := q.Field("user"); ok {
			t.Errorf("%s: %q", body, got)
		}
	}
	q := &Request{body: []byte(body)}
	q.Release()
	if _, ok := q.Field("user"); ok {
		t.Error("found after Release")
	}
}

func TestFieldOfAForm(t *testing.T) {
	const boundary = "b0"
	part := func(header, value string) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; " + header + "\r\n\r\n" + value + "\r\n"
	}
	body := part(`name="file"; filename="a.mp3"`, "ID3") +
		part(`name="user"; filename="user"`, "a file") +
		part(`name="model"`, "whisper-1") +
		part("name=\"coded\"\r\nContent-Transfer-Encoding: base64", "dTE=") +
		part(`name="user"`, "u1") +
		part(`name="user"`, "u2") +
		part(`name="long"`, strings.Repeat("x", maxField+1)) +
		"--" + boundary + "--\r\n"
	q := mustRead(t, post("/v1/audio/transcriptions", body, "Content-Type", "multipart/form-data; boundary="+boundary))
	for path, want := range map[string]string{
		"user": "u1", "model": "whisper-1", "file": "", "coded": "", "long": "", "missing": "", "user.id": "", "": "",
	} {
		if got, ok := q.Field(strings.Split(path, ".")...); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q %v, want %q", path, got, ok, want)
		}
	}
	q.Release()
	if _, ok := q.Field("user"); ok {
		t.Error("found after Release")
	}
}

func TestFieldIsNoIdentifierIfItIsLong(t *testing.T) {
	for n, want := range map[int]bool{maxField - 2: true, maxField - 1: false} {
		q := &Request{body: []byte(`{"user":"` + strings.Repeat("x", n) + `"}`)}
		if _, ok := q.Field("user"); ok != want {
			t.Errorf("%d letters: %v", n, ok)
		}
	}
}

// What stands around the prompt, and in what order, is not the same for every
// client library.
func TestPromptIsWhatTheModelReads(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		n    int
		want string
	}{
		"openai":              {`{"model":"m","stream":true,"messages":[{"role":"system"}],"user":"u"}`, 100, `[{"role":"system"}]`},
		"cut":                 {`{"messages":[{"role":"system"}],"model":"m"}`, 6, `[{"rol`},
		"system comes first":  {`{"messages":[1,2],"system":"be kind"}`, 100, `"be kind"[1,2]`},
		"system fills it":     {`{"messages":[1,2],"system":"be kind"}`, 4, `"be `},
		"both, cut":           {`{"messages":[1,2],"system":"a"}`, 5, `"a"[1`},
		"gemini":              {`{"contents":[1],"generationConfig":{"contents":2},"systemInstruction":{"a":1}}`, 100, `{"a":1}[1]`},
		"responses":           {`{"input":"hi","instructions":"be kind"}`, 100, `"be kind""hi"`},
		"escaped name":        {`{"messag\u0065s":[1]}`, 100, `[1]`},
		"first of two counts": {`{"prompt":"a","prompt":"b"}`, 100, `"a"`},
		"none":                {`{"model":"m","documents":[]}`, 100, ""},
		"not JSON":            {"--b0\r\n", 100, ""},
		"broken":              {`{"messages":[1],`, 100, ""},
		"no object":           {`["messages"]`, 100, ""},
		"empty":               {"", 100, ""},
		"nothing asked for":   {`{"prompt":"a"}`, 0, ""},
	} {
		q := &Request{body: []byte(c.body)}
		if got := string(q.Prompt(c.n)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if string(q.body) != c.body {
			t.Errorf("%s: the body has become %q", name, q.body)
		}
		if q.Release(); len(q.Prompt(c.n)) != 0 {
			t.Errorf("%s: a prompt after Release", name)
		}
	}
}

// A session's field stands behind a long prompt, and a prompt is in a long body.
func BenchmarkAffinityScans(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("lorem ipsum dolor ", 4<<10) + `"}],"user":"u1"}`)
	q := &Request{body: body}
	b.Run("field", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			q.Field("user")
		}
	})
	b.Run("prompt", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			q.Prompt(2048)
		}
	})
}
