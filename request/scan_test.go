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
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// modelOf scans body and returns its model.
func modelOf(body string) (string, error) {
	m, err := scanJSON([]byte(body))
	if err != nil {
		return "", err
	}
	return m.model([]byte(body))
}

func TestModelInJSON(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m1"}`:                                                         "m1",
		" \t\r\n{ \"model\" \n:\t\"m1\" } \n":                                    "m1",
		`{"a":{"model":"m0"},"b":[{"model":"m0"}],"model":"m1"}`:                 "m1",
		`{"model":"m1","a":{"model":"m0","Model":1}}`:                            "m1",
		`{"mod\u0065l":"m1"}`:                                                    "m1",
		`{"\u006D\u006f\u0064\u0065\u006C":"m1"}`:                                "m1",
		`{"model":"\u006d\u00e9\/\ud83d\ude00"}`:                                 "mé/😀",
		`{"model":"org/m:free é"}`:                                               "org/m:free é",
		`{"x":"\"model\":\"m0\"","model":"m1"}`:                                  "m1",
		`{"x":"\\","model":"m1","y":"\\\""}`:                                     "m1",
		`{"":0,"models":1,"mode":2,"amodel":3,"model":"m1"}`:                     "m1",
		`{"x":[0,-0,1.5,-2e9,1E+2,0.1e-3,true,false,null,"",{},[]],"model":"m"}`: "m",
		`{"model":"\\ud800"}`:                                                    `\ud800`,
		`{"model":"` + strings.Repeat("m", maxModel) + `"}`:                      strings.Repeat("m", maxModel),
		`{"model":"` + strings.Repeat(`\u006d`, maxModel) + `"}`:                 strings.Repeat("m", maxModel),
	} {
		if got, err := modelOf(body); err != nil || got != want {
			t.Errorf("%.100s: %q, %v", body, got, err)
		}
	}
}

func TestBadJSON(t *testing.T) {
	for body, message := range map[string]string{
		"":                                  "empty",
		" \n":                               "empty",
		"[]":                                "not a JSON object",
		`"hi"`:                              "not a JSON object",
		"\x00":                              "not a JSON object",
		"null":                              "not a JSON object",
		"{":                                 "ends where a name is due",
		`{"model":"m1"`:                     "ends in an object",
		`{"model":"m1",`:                    "ends where a name is due",
		`{"model":"m1",}`:                   `unexpected "}" where a name is due, at byte 14`,
		`{"model" "m1"}`:                    "colon",
		`{"model":}`:                        "where a value is due",
		`{"model":m1}`:                      "where a value is due",
		`{model:"m1"}`:                      "where a name is due",
		`{'model':"m1"}`:                    "where a name is due",
		`{"model":"m1"}x`:                   `unexpected "x" after the JSON object, at byte 14`,
		`{"model":"m1"}{}`:                  "after the JSON object",
		`{"model":"m1"} ` + "\x00":          "after the JSON object",
		"\xef\xbb\xbf" + `{"model":"m1"}`:   "byte order mark",
		`{"model":"m1","x":[1,]}`:           "where a value is due",
		`{"model":"m1","x":[1 2]}`:          "in an array",
		`{"model":"m1","x":[}`:              "where a value is due",
		`{"model":"m1","x":01}`:             "in an object",
		`{"model":"m1","x":1.}`:             "in a number",
		`{"model":"m1","x":1e}`:             "in a number",
		`{"model":"m1","x":-}`:              "where a value is due",
		`{"model":"m1","x":+1}`:             "where a value is due",
		`{"model":"m1","x":nul}`:            "in a literal",
		`{"model":"m1","x":True}`:           "where a value is due",
		`{"model":"m1","x":NaN}`:            "where a value is due",
		`{"model":"m1","x":"` + "\n" + `"}`: "in a string",
		`{"model":"m1","x":"\x"}`:           "in an escape",
		`{"model":"m1","x":"\u00g0"}`:       "in an escape",
		`{"model":"m1","x":"\u00`:           "in an escape",
		`{"model":"m1","x":"abc`:            "the string at byte 18 does not end",
		`{"model":"m1","x":"abc\"}`:         "the string at byte 18 does not end",
		`{"model":"m1","x":"` + strings.Repeat("y", 8) + "\x1f" + `"}`: "in a string",

		`{}`:                               `"model" is missing`,
		`{"x":{"model":"m1"}}`:             `"model" is missing`,
		`{"Model":"m1"}`:                   `there is "Model"`,
		`{"MODE\u004c":"m1"}`:              `there is "MODEL"`,
		`{"model":"m1","model":"m1"}`:      "given twice",
		`{"model":"m1","Model":"m2"}`:      "given twice",
		`{"MODEL":"m1","mod\u0065l":"m2"}`: "given twice",
		`{"model":null}`:                   "not null",
		`{"model":7}`:                      "not a number",
		`{"model":-7}`:                     "not a number",
		`{"model":true}`:                   "not a boolean",
		`{"model":["m1"]}`:                 "not an array",
		`{"model":{"a":"m1"}}`:             "not an object",
		`{"model":""}`:                     "empty",
		`{"model":"a\u0000"}`:              "control character",
		`{"model":"a\n"}`:                  "control character",
		`{"model":"a\u007f"}`:              "control character",
		`{"model":"a\u0085"}`:              "control character",
		`{"model":"\ud83d"}`:               "surrogate",
		`{"model":"\ude00\ud83d"}`:         "surrogate",
		`{"model":"\uDBFFx"}`:              "surrogate",
		`{"model":"\ud83d\u0041"}`:         "surrogate",
		`{"model":"\ud83d\n\ude00"}`:       "surrogate",
		"{\"model\":\"a\xff\"}":            "UTF-8",
		"{\"model\":\"\\u0061\xff\"}":      "UTF-8",
		`{"model":"` + strings.Repeat("m", maxModel+1) + `"}`:   "longer than 1024 bytes",
		`{"model":"` + strings.Repeat(`é`, maxModel/2+1) + `"}`: "longer than 1024 bytes",
		`{"model":"` + strings.Repeat("m", 1<<20) + `"}`:        "longer than 1024 bytes",
	} {
		_, err := modelOf(body)
		e, ok := err.(*Error)
		if !ok || e.Status != 400 || e.Code != CodeInvalid || !strings.Contains(e.Message, message) {
			t.Errorf("%.100q: %v, want %q", body, err, message)
		}
	}
}

func TestNestingIsBounded(t *testing.T) {
	nested := func(depth int, open, end string) string {
		return `{"model":"m1","x":` + strings.Repeat(open, depth-1) + "0" + strings.Repeat(end, depth-1) + "}"
	}
	for _, c := range []struct{ open, end string }{{"[", "]"}, {`{"a":`, "}"}} {
		if got, err := modelOf(nested(maxDepth, c.open, c.end)); got != "m1" {
			t.Errorf("at the limit: %q, %v", got, err)
		}
		for _, depth := range []int{maxDepth + 1, 20_000, 1_000_000} {
			body := nested(depth, c.open, c.end)
			// Nothing behind the first bracket too many is looked at.
			at := fmt.Sprintf("1000 levels deep, at byte %d", len(`{"model":"m1","x":`)+(maxDepth-1)*len(c.open))
			if _, err := modelOf(body); err == nil || !strings.HasSuffix(err.Error(), at) {
				t.Errorf("depth %d: %v, want %s", depth, err, at)
			}
		}
	}
	// Siblings are not nested.
	if _, err := modelOf(`{"model":"m","x":[` + strings.Repeat("[[{}]],", 5000) + "0]}"); err != nil {
		t.Error(err)
	}
}

func TestLargeBodies(t *testing.T) {
	text := strings.Repeat("x", 5<<20)
	for name, body := range map[string]string{
		"text first":     `{"messages":["` + text + `"],"model":"m1"}`,
		"escapes":        `{"messages":["` + strings.Repeat(`\"\\`, 1<<20) + `"],"model":"m1"}`,
		"leading space":  strings.Repeat(" \n", 1<<19) + `{"model":"m1"}`,
		"many keys":      `{` + strings.Repeat(`"a":1,`, 1<<18) + `"model":"m1"}`,
		"a long name":    `{"` + text + `":1,"model":"m1"}`,
		"long name with": `{"` + text + `\u0065":1,"model":"m1"}`,
	} {
		if got, err := modelOf(body); got != "m1" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Each special byte at each place of a word and in the tail.
func TestPlainEndFindsTheFirst(t *testing.T) {
	for size := range 20 {
		for at := range size {
			for _, special := range []byte{'"', '\\', 0, 0x1f, '\n'} {
				for _, filler := range []byte{'x', ' ', '!', '#', '[', ']', 0x7f, 0x80, 0xff} {
					data := bytes.Repeat([]byte{filler}, size)
					if got := plainEnd(data, 0); got != size {
						t.Fatalf("%q: %d", data, got)
					}
					data[at] = special
					if got := plainEnd(data, 0); got != at {
						t.Fatalf("%q: %d, want %d", data, got, at)
					}
				}
			}
		}
	}
}

// FuzzScan holds the scanner against encoding/json: both accept the same
// objects, and find the same model and stream flag.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m1"}`, `{"mod\u0065l":"\ud83d\ude00"}`, `{"model":"m","Model":"n"}`, `{"model":null,"stream":true}`,
		`{"x":[0,-0,1.5,-2e9,1E+2,0.1e-3,true,false,null,"",{},[]],"model":"m"}`, `{"a":{"b":[{"model":1}]}}`,
		`{"model":"\ud800"}`, "{\"model\":\"\xff\"}", `{"x":"\\\"\/\b\f\n\r\t","model":"m"}`, `{"stream":false,"stream":null}`,
		`{"model":01}`, `{"model":"m"}}`, `[]`, `{`, "{\"\x01\":1}", " {}\n", `{"x":"12345678\"1234567\\"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := scanJSON(body)
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(body, &want)
		if want == nil {
			wantErr = fmt.Errorf("no object: %v", wantErr)
		}
		if tooDeep(body) {
			if err == nil {
				t.Errorf("%.100q is too deep", body)
			}
			return
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, but encoding/json: %v", body, err, wantErr)
		}
		if err == nil {
			compare(t, body, got, want)
		}
	})
}

func compare(t *testing.T, body []byte, got members, want map[string]json.RawMessage) {
	t.Helper()
	if s := string(want["stream"]); (got.stream == yes) != (s == "true") || (got.stream == no) != (s == "false") {
		t.Errorf("%q: stream %d, but %q", body, got.stream, s)
	}
	count := 0
	for name := range want { // keys given twice are one here
		if strings.EqualFold(name, "model") {
			count++
		}
	}
	if (count == 0) != (got.models == 0) || count > got.models {
		t.Errorf("%q: %d models, but %d", body, got.models, count)
	}
	model, err := got.model(body)
	if err != nil {
		return
	}
	var wanted string
	if e := json.Unmarshal(want["model"], &wanted); e != nil || wanted != model || count != 1 || !utf8.ValidString(model) {
		t.Errorf("%q: model %q, but %q, %v", body, model, wanted, e)
	}
}

// tooDeep counts brackets outside of strings.
func tooDeep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func BenchmarkScan(b *testing.B) {
	prose := strings.Repeat(`The quick brown fox jumps over the lazy dog. `, 1<<17)[:5<<20]
	code := strings.Repeat(`\tif err != nil {\n\t\treturn fmt.Errorf(\"reading: %w\", err)\n\t}\n`, 1<<17)[:5<<20-4]
	for _, c := range []struct{ name, body string }{
		{"chat1KB", chatBody(1 << 10)},
		{"text5MB", `{"messages":[{"content":"` + prose + `"}],"model":"m1"}`},
		{"code5MB", `{"messages":[{"content":"` + strings.TrimRight(code, `\`) + `"}],"model":"m1"}`},
	} {
		body := []byte(c.body)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if m, err := scanJSON(body); err != nil || m.models != 1 {
					b.Fatal(m, err)
				}
			}
		})
	}
}
