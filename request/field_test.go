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
	if _, ok := q.Field("user"); ok || len(q.Prefix(3)) != 0 {
		t.Error("found after Release")
	}
}

func TestPrefixIsTheBeginningOfTheBody(t *testing.T) {
	q := &Request{body: []byte("abc")}
	for n, want := range map[int]string{0: "", 2: "ab", 3: "abc", 4: "abc"} {
		if got := string(q.Prefix(n)); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
