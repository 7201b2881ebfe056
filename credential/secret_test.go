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

package credential

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

const plain = "sk-live-0123456789"

func TestSecretID(t *testing.T) {
	for _, tc := range []struct{ secret, id string }{
		{"", ""},
		{"abc", "sha256:ba7816bf8f01"},
		{"abc ", "sha256:5488613c42b0"},
	} {
		s := NewSecret(tc.secret)
		if s.ID() != tc.id || s.Reveal() != tc.secret || s.Empty() != (tc.secret == "") {
			t.Errorf("NewSecret(%q): id %q, revealed %q, empty %v", tc.secret, s.ID(), s.Reveal(), s.Empty())
		}
	}
	var zero Secret
	if !zero.Empty() || zero.Reveal() != "" || zero.ID() != "" {
		t.Error("the zero value is not the empty secret")
	}
}

func TestCleanTakesOffNewlinesOnly(t *testing.T) {
	for in, want := range map[string]string{
		"":            "",
		"key":         "key",
		"key\n":       "key",
		"key\r\n":     "key",
		"key\n\n\r\n": "key",
		"\nkey\n":     "\nkey",
		" key \t\n":   " key \t",
		"a\nb":        "a\nb",
		"{$\"`\\}\n":  "{$\"`\\}",
		"\n":          "",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

type holder struct {
	Exported Secret
	hidden   Secret
	Pointer  *Secret
	Any      any
	List     []Secret
	Map      map[string]Secret
}

func newHolder() *holder {
	s := NewSecret(plain)
	return &holder{s, s, &s, s, []Secret{s}, map[string]Secret{"k": s}}
}

func TestSecretIsNeverFormatted(t *testing.T) {
	s, h := NewSecret(plain), newHolder()
	ks := NewPool().Keys([]Secret{s})
	for _, v := range []any{s, &s, *h, h, []any{s, *h}, map[string]any{"v": h}, ks, *ks.keys[0], ks.keys[0], ks.pool, fmt.Errorf("key %v", s)} {
		for _, flag := range []string{"", "+", "#", "-40", "040", ".3", "# +"} {
			for verb := 'A'; verb <= 'z'; verb++ {
				assertHidden(t, fmt.Sprintf("%%%s%c of %T", flag, verb, v), fmt.Sprintf("%"+flag+string(verb), v))
			}
		}
		assertHidden(t, "Sprint", fmt.Sprint(v))
	}
}

func TestSecretIsNeverEncoded(t *testing.T) {
	h := newHolder()
	h.Any = nil
	out, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	assertHidden(t, "JSON", string(out))
	if n := strings.Count(string(out), NewSecret(plain).ID()); n != 4 {
		t.Errorf("the id stands %d times in %s, want 4", n, out)
	}
	out, err = xml.Marshal(NewSecret(plain))
	if err != nil {
		t.Fatal(err)
	}
	assertHidden(t, "XML", string(out))
}

func TestSecretIsNeverLogged(t *testing.T) {
	var buf bytes.Buffer
	s, h := NewSecret(plain), newHolder()
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&buf, nil), slog.NewTextHandler(&buf, nil)} {
		slog.New(handler).Info("keys", "secret", s, "pointer", &s, "holder", *h, "list", h.List)
	}
	assertHidden(t, "slog", buf.String())
	if !strings.Contains(buf.String(), s.ID()) {
		t.Error("the log does not name the key")
	}
}

// TestSecretIsNeverFoundByReflection stands for the libraries that dump values
// with their unexported fields and all that pointers lead to.
func TestSecretIsNeverFoundByReflection(t *testing.T) {
	var seen int
	var walk func(v reflect.Value, depth int)
	walk = func(v reflect.Value, depth int) {
		if depth > 12 || !v.IsValid() {
			return
		}
		if v.CanAddr() {
			v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
		}
		switch v.Kind() {
		case reflect.String:
			seen++
			assertHidden(t, "reflection", v.String())
		case reflect.Pointer, reflect.Interface:
			walk(v.Elem(), depth+1)
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), depth+1)
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				walk(v.Index(i), depth+1)
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				walk(k, depth+1)
				walk(v.MapIndex(k), depth+1)
			}
		}
	}
	walk(reflect.ValueOf(newHolder()), 0)
	walk(reflect.ValueOf(NewPool().Keys([]Secret{NewSecret(plain)})), 0)
	if seen < 6 {
		t.Errorf("only %d strings were looked at", seen)
	}
}

func TestSecretFormatsAsItsID(t *testing.T) {
	s := NewSecret(plain)
	for _, got := range []string{s.String(), s.GoString(), fmt.Sprint(s), fmt.Sprintf("%q", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%x", &s), s.LogValue().String()} {
		if got != s.ID() {
			t.Errorf("formatted as %q, want %q", got, s.ID())
		}
	}
	text, err := s.MarshalText()
	if err != nil || string(text) != s.ID() {
		t.Errorf("MarshalText() = %q, %v", text, err)
	}
}

// assertHidden fails if out has the secret or a telling part of it in it, plain
// or in one of fmt's other notations.
func assertHidden(t *testing.T, what, out string) {
	t.Helper()
	part := plain[3:11]
	for _, form := range []string{
		part, fmt.Sprintf("%x", part), fmt.Sprintf("%X", part), fmt.Sprintf("% x", part),
		strings.Trim(fmt.Sprint([]byte(part)), "[]"),
	} {
		if strings.Contains(out, form) {
			t.Fatalf("%s shows the secret", what)
		}
	}
}
