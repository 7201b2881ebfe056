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
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func TestModelIsSplicedIntoTheBody(t *testing.T) {
	for _, c := range []struct{ body, model, want string }{
		{`{"model":"m1","x":1}`, "m2", `{"model":"m2","x":1}`},
		{` { "a" : 1.0 , "model"  :  "m1"  } ` + "\n", "longer/name", ` { "a" : 1.0 , "model"  :  "longer/name"  } ` + "\n"},
		{`{"mod\u0065l":"m\u0031","x":"\u00e9"}`, "x", `{"mod\u0065l":"x","x":"\u00e9"}`},
		{`{"mod\u0065l":"m\u0031"}`, "m1", `{"mod\u0065l":"m\u0031"}`},
		{`{"model":"m1"}`, "", `{"model":"m1"}`},
		{`{"x":{"model":"m0"},"model":"m1"}`, "m2", `{"x":{"model":"m0"},"model":"m2"}`},
	} {
		q := mustRead(t, post("/v1/chat/completions", c.body))
		if got := bodyOf(t, q, c.model); got != c.want {
			t.Errorf("%s for %q: %s", c.body, c.model, got)
		}
	}
}

func TestSplicedModelIsQuoted(t *testing.T) {
	q := mustRead(t, post("/v1/chat/completions", `{"model":"m1"}`))
	const odd = "a\"b\\c\u2028<é"
	var got struct{ Model string }
	if err := json.Unmarshal([]byte(bodyOf(t, q, odd)), &got); err != nil || got.Model != odd {
		t.Errorf("%q, %v", got.Model, err)
	}
}

func TestNoBody(t *testing.T) {
	q := mustRead(t, post("/v1/files", ""))
	body, length, getBody := q.Body("m")
	again, err := getBody()
	if body != http.NoBody || length != 0 || again != http.NoBody || err != nil || q.HasBody() {
		t.Errorf("%v, %d, %v, %v", body, length, again, err)
	}
}

func TestReaderKeepsToTheRules(t *testing.T) {
	q := mustRead(t, post("/v1/chat/completions", `{"model":"m1","x":1}`))
	body, _, _ := q.Body("m2")
	if n, err := body.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
	if err := iotest.TestReader(body, []byte(`{"model":"m2","x":1}`)); err != nil {
		t.Error(err)
	}
}

func TestReleasedBodyCannotBeReadAgain(t *testing.T) {
	q := mustRead(t, post("/v1/chat/completions", `{"model":"m1"}`))
	before, _, getBody := q.Body("m2")
	q.Release()
	q.Release()
	if got := readAll(t, before); got != `{"model":"m2"}` {
		t.Errorf("a reader handed out before: %q", got)
	}
	body, length, _ := q.Body("m2")
	again, err := getBody()
	if err != nil || length != 14 {
		t.Errorf("%v, length %d", err, length)
	}
	for _, r := range []io.Reader{body, again} {
		if b, err := io.ReadAll(r); !errors.Is(err, errReleased) || len(b) != 0 {
			t.Errorf("%q, %v", b, err)
		}
	}
	if q.body != nil {
		t.Error("the body is still held")
	}
}

// net/http sends header and body in one packet if it knows the reader.
func TestSmallBodiesAreReadersThatTheTransportKnows(t *testing.T) {
	q := mustRead(t, post("/v1/chat/completions", `{"model":"m1","x":1}`))
	want := reflect.TypeOf(io.NopCloser(bytes.NewReader(nil)))
	for model, text := range map[string]string{"m1": `{"model":"m1","x":1}`, "other": `{"model":"other","x":1}`} {
		body, length, _ := q.Body(model)
		if got := reflect.TypeOf(body); got != want {
			t.Errorf("%s: %s", model, got)
		}
		if b, err := io.ReadAll(body); string(b) != text || int(length) != len(text) || err != nil {
			t.Errorf("%s: %q of %d, %v", model, b, length, err)
		}
	}
}

func TestClosedReaderLetsGo(t *testing.T) {
	q := mustRead(t, post("/v1/files", strings.Repeat("abc", small)))
	body, _, _ := q.Body("")
	body.Close()
	if n, err := body.Read(make([]byte, 9)); n != 0 || !errors.Is(err, errClosed) {
		t.Errorf("%d, %v", n, err)
	}
	if r := body.(*reader); r.parts[0] != nil {
		t.Error("the body is still held")
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
}

func TestBodiesAreIndependent(t *testing.T) {
	text := `{"model":"m1","x":"` + strings.Repeat("y", 100_000) + `"}`
	q := mustRead(t, post("/v1/chat/completions", text))
	var wg sync.WaitGroup
	for _, model := range []string{"m1", "a", "b/c"} {
		body, length, _ := q.Body(model)
		wg.Go(func() {
			defer body.Close()
			n, err := io.Copy(io.Discard, body)
			if err != nil || n != length {
				t.Errorf("%s: %d of %d, %v", model, n, length, err)
			}
		})
	}
	wg.Go(q.Release)
	wg.Go(func() {
		body, _, _ := q.Body("late")
		_, _ = io.Copy(io.Discard, body)
		body.Close()
	})
	wg.Wait()
}
