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

package verdict

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"
)

// errorFixtures are the fixtures with a JSON object as their body.
func errorFixtures(t testing.TB) []fixture {
	t.Helper()
	var kept []fixture
	for _, f := range readFixtures(t) {
		if f.answer.Status >= 300 && bytes.HasPrefix(bytes.TrimSpace(f.answer.Body), []byte("{")) {
			kept = append(kept, f)
		}
	}
	if len(kept) < 200 {
		t.Fatalf("only %d", len(kept))
	}
	return kept
}

// What an error means does not depend on how its JSON is written.
func TestFixturesWrittenInOtherWays(t *testing.T) {
	ways := map[string]func([]byte) []byte{
		"in an array":          func(b []byte) []byte { return append(append([]byte("["), b...), ']') },
		"after a mark":         func(b []byte) []byte { return append([]byte("\ufeff"), b...) },
		"after blank lines":    func(b []byte) []byte { return append([]byte("\n\n \r\n"), b...) },
		"before garbage":       func(b []byte) []byte { return append(b, "]}<html>\x00"...) },
		"without its end":      func(b []byte) []byte { return bytes.TrimSuffix(bytes.TrimSpace(b), []byte("}")) },
		"with CRLF":            func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) },
		"compact":              func(b []byte) []byte { return rewritten(t, b, "") },
		"indented":             func(b []byte) []byte { return rewritten(t, b, "\t") },
		"in escapes":           inEscapes,
		"with more members":    func(b []byte) []byte { return withMember(b, `"x":[{"y":[[1,null,true]]}],"0":{}`) },
		"with a broken string": func(b []byte) []byte { return withMember(b, "\"x\":\"\xff\xfe\xc3\"") },
		"with a large member":  func(b []byte) []byte { return withMember(b, `"x":"`+strings.Repeat("x", 30<<10)+`"`) },
		"with nested members": func(b []byte) []byte {
			return withMember(b, `"x":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000))
		},
		"before another": func(b []byte) []byte { return append(b, `{"x":"y"}`...) },
	}
	for _, f := range errorFixtures(t) {
		want := OfAnswer(f.answer)
		for way, rewrite := range ways {
			a := f.answer
			a.Body = rewrite(bytes.Clone(f.answer.Body))
			if got := OfAnswer(a); got != want {
				t.Errorf("%s %s:\n got %+v\nwant %+v", f.name, way, got, want)
			}
		}
	}
}

func rewritten(t *testing.T, body []byte, indent string) []byte {
	t.Helper()
	var out bytes.Buffer
	err := json.Compact(&out, body)
	if indent != "" {
		out.Reset()
		err = json.Indent(&out, body, "", indent)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// inEscapes writes each letter within strings as \u00xx.
func inEscapes(body []byte) []byte {
	const digits = "0123456789abcdef"
	var out []byte
	inside := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			inside = !inside
			out = append(out, c)
		case inside && c == '\\' && body[i+1] != 'u':
			out = append(out, c, body[i+1])
			i++
		case inside && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') && body[i-1] != '\\':
			out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			out = append(out, c)
		}
	}
	return out
}

// withMember adds a member at the front, where a reader meets it first.
func withMember(body []byte, member string) []byte {
	body = bytes.TrimSpace(body)
	return append([]byte("{"+member+","), body[1:]...)
}

// Cut anywhere, a body gives a verdict that its whole or its status could give.
func TestFixturesThatBreakOff(t *testing.T) {
	for _, f := range errorFixtures(t) {
		for i := range f.answer.Body {
			a := f.answer
			a.Body = f.answer.Body[:i]
			r := OfAnswer(a)
			if r.Verdict == Success || r.Pause < 0 || r.Pause > time.Hour || len(r.Reason) > 100 {
				t.Fatalf("%s after %d bytes: %+v", f.name, i, r)
			}
		}
		a := f.answer
		a.Body = f.answer.Body[:1]
		nothing := f.answer
		nothing.Body = nil
		if got, want := OfAnswer(a), OfAnswer(nothing); got != want {
			t.Errorf("%s after one byte: %+v, without body %+v", f.name, got, want)
		}
	}
}

// Bodies that are no error object leave the status to decide.
func TestBodiesThatSayNothing(t *testing.T) {
	tests := map[string]string{
		"empty": "", "space": " \n", "null": "null", "true": "true", "number": "429", "string": `"insufficient_quota"`, "empty object": "{}", "empty array": "[]",
		"array of strings": `["insufficient_quota"]`, "error null": `{"error":null}`, "error number": `{"error":1}`, "error true": `{"error":true}`, "error empty": `{"error":""}`,
		"code null": `{"error":{"code":null,"type":null,"message":null}}`, "code object": `{"error":{"code":{"x":"insufficient_quota"}}}`,
		"members of another case": `{"Error":{"Code":"insufficient_quota"}}`, "elsewhere": `{"usage":{"code":"insufficient_quota"}}`,
		"too deep": `{"error":{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"code":"insufficient_quota"}}}}}}}}}`,
		"markup":   "<!DOCTYPE html><html><body>insufficient_quota {\"error\":{\"code\":\"insufficient_quota\"}}</body></html>",
		"text":     "upstream connect error or disconnect/reset before headers: insufficient_quota",
		"UTF-16":   "\xff\xfe{\x00\"\x00e\x00", "binary": "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff",
		"long code":     `{"error":{"code":"` + strings.Repeat("insufficient_quota", 20) + `"}}`,
		"beyond the 64": `{"x":"` + strings.Repeat("x", maxBody) + `","error":{"code":"insufficient_quota"}}`,
	}
	for name, body := range tests {
		if r := outcomeOf("openai", 429, body); brief(r) != asLimited || r.Pause != 0 || r.Code != "" && r.Recognised {
			t.Errorf("%s: %s, code %q", name, brief(r), r.Code)
		}
	}
}

func TestErrorInEveryShape(t *testing.T) {
	for shape, body := range map[string]string{
		"object":    `{"error":{"code":"insufficient_quota","message":"no"}}`,
		"type":      `{"error":{"type":"insufficient_quota","message":"no"}}`,
		"array":     `[{"error":{"code":"insufficient_quota"}}]`,
		"flat":      `{"code":"insufficient_quota","message":"no","request_id":"r"}`,
		"flat type": `{"object":"error","type":"insufficient_quota","message":"no"}`,
		"anthropic": `{"type":"error","error":{"type":"insufficient_quota","message":"no"}}`,
		"TGI":       `{"error":"no","error_type":"insufficient_quota"}`,
		"Google":    `{"error":{"code":429,"status":"X","details":[{"@type":"t"},{"reason":"insufficient_quota"}]}}`,
		"fault":     `{"fault":{"faultstring":"no","detail":{"errorcode":"insufficient_quota"}}}`,
		"AWS":       `{"__type":"com.example#insufficient_quota","message":"no"}`,
		"after it":  `{"message":"no","detail":[{"loc":["body",0],"msg":"x"}],"code":"insufficient_quota"}`,
		"lines":     "{\"x\":1}\n{\"error\":{\"code\":\"insufficient_quota\"}}\n",
	} {
		if r := outcomeOf("openai", 429, body); brief(r) != asUnpaid+known {
			t.Errorf("%s: %s", shape, brief(r))
		}
	}
}

func TestMessageIsForMatching(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"Account IS Suspended"}}`: "account is suspended", `{"detail":"No"}`: "no", "<p>No</p>": "", "": "",
	} {
		if got := Message(nil, []byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// A quoted error never decides by more than what is the request's own fault.
func TestQuotedErrors(t *testing.T) {
	quote := func(inner string) string {
		text, _ := json.Marshal(inner)
		return string(text)
	}
	places := map[string]string{
		"metadata.raw": `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":%}}}`,
		"message":      `{"error":{"message":%,"code":400}}`,
		"flat message": `{"message":%}`,
		"in an array":  `[{"error":{"message":%}}]`,
	}
	for place, outer := range places {
		for code, want := range map[string]string{
			"context_length_exceeded": asClient + known, "content_filter": "neutral content" + known,
			"insufficient_quota": asClient, "invalid_api_key": asClient, "rate_limit_exceeded": asClient, "model_not_found": asClient, "overloaded_error": asClient,
		} {
			body := strings.Replace(outer, "%", quote(errorBody("x", code, "no")), 1)
			if r := outcomeOf("openrouter", 400, body); brief(r) != want {
				t.Errorf("%s in %s: %s, want %s", code, place, brief(r), want)
			}
		}
	}
	flood := `{"error":{"message":` + quote(strings.Repeat(`{"code":"x"}`, 100)) + `,"code":"insufficient_quota"}}`
	if r := outcomeOf("openai", 429, flood); brief(r) != asUnpaid+known {
		t.Errorf("behind many quoted codes: %s", brief(r))
	}
	deep := `{"error":{"message":` + quote(quote(`{"error":{"code":"context_length_exceeded"}}`)) + `}}`
	if r := outcomeOf("openai", 400, deep); brief(r) != asClient {
		t.Errorf("quoted twice: %s", brief(r))
	}
}

// A hostile upstream costs no more than the head of its body.
func TestHugeBodiesCostLittle(t *testing.T) {
	for name, body := range map[string][]byte{
		"text":   []byte(`{"error":{"message":"` + strings.Repeat("x", 16<<20) + `"}}`),
		"codes":  []byte(`[` + strings.Repeat(`{"code":"x"},`, 1<<20) + `{}]`),
		"nested": bytes.Repeat([]byte(`{"error":[`), 1<<20),
		"quoted": []byte(`{"message":"` + strings.Repeat(`{\"code\":\"x\"}`, 1<<20) + `"}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		OfAnswer(Answer{Provider: "openai", Status: 429, Header: header(), Body: body, HasModel: true, Now: now})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
			t.Errorf("%s: %d bytes allocated", name, used)
		}
	}
}
