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
	"bufio"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
	"github.com/llm-gateway/caddy-llm-gateway/stream"
)

// A fixture is a file testdata/<provider>/<name>.http: first what it is and
// what it must be taken for, then an empty line and the answer as it comes over
// the wire. Status, codes and shape are those of the source; ids and the wording
// that no rule looks at are made up.
//
//	Source: where the answer is from
//	Want: verdict [elsewhere] [overload] [missing] [forbidden] [content] [billing] [recognised]
//
// An answer of status 200 is watched as the gateway does it, and may also want
// "cut" or "empty". Optional are
//
//	Pause: the duration asked for; none if it is left out
//	Code: the code that the result names
//	Warns: yes, if the operator is to hear of it
//	Model: the model that was asked for
//	Dialect: that of the request, if it is not the provider's own
//	Now: the time of the answer
//	Newlines: crlf, for a body whose lines end so
//	Each: words; the fixture stands for one answer for each, in place of {each}
type fixture struct {
	name     string
	want     textproto.MIMEHeader
	provider string
	answer   Answer
}

const fixtureModel = "the-model"

func readFixtures(t testing.TB) []fixture {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.http")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var all []fixture
	for _, file := range files {
		all = append(all, readFixture(t, file)...)
	}
	return all
}

func readFixture(t testing.TB, file string) (all []fixture) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	about, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	checkFixtureHeader(t, file, about)
	provider := filepath.Base(filepath.Dir(file))
	name := provider + "/" + strings.TrimSuffix(filepath.Base(file), ".http")
	each := strings.Fields(about.Get("Each"))
	if len(each) == 0 {
		return []fixture{parseFixture(t, name, provider, text)}
	}
	for _, word := range each {
		variant := bytes.ReplaceAll(text, []byte("{each}"), []byte(word))
		if bytes.Equal(variant, text) {
			t.Fatalf("%s has no {each}", file)
		}
		all = append(all, parseFixture(t, name+"/"+word, provider, variant))
	}
	return all
}

func checkFixtureHeader(t testing.TB, file string, about textproto.MIMEHeader) {
	t.Helper()
	known := words("Source Want Pause Code Warns Model Dialect Now Newlines Each")
	for field := range about {
		if !slices.Contains(known, field) {
			t.Fatalf("%s: unknown field %s", file, field)
		}
	}
	if about.Get("Source") == "" || about.Get("Want") == "" {
		t.Fatalf("%s: no Source or no Want", file)
	}
}

func parseFixture(t testing.TB, name, provider string, text []byte) fixture {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(text))
	about, _ := textproto.NewReader(r).ReadMIMEHeader()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if about.Get("Newlines") == "crlf" {
		body = bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n"))
	}
	if mediaType(res.Header) == "application/vnd.amazon.eventstream" {
		body = framed(t, string(body))
	}
	f := fixture{name: name, want: about, provider: provider, answer: Answer{
		Provider: provider, Dialect: fixtureDialect(t, about.Get("Dialect"), provider),
		Status: res.StatusCode, Header: res.Header, Body: body,
		Model: fixtureModel, HasModel: true, Now: now,
	}}
	if m := about.Get("Model"); m != "" {
		f.answer.Model = m
	}
	if at := about.Get("Now"); at != "" {
		if f.answer.Now, err = time.Parse(time.RFC3339, at); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func fixtureDialect(t testing.TB, name, provider string) dialect.Dialect {
	t.Helper()
	if name == "" {
		switch provider {
		case "anthropic", "gemini", "azure", "bedrock", "cohere":
			name = provider
		case "vertex":
			name = "gemini"
		default:
			name = "openai"
		}
	}
	for d := dialect.None; d < 100; d++ {
		if d.String() == name {
			return d
		}
	}
	t.Fatalf("unknown dialect %q", name)
	return dialect.None
}

// framed encodes lines of headers and a payload, such as
// ":message-type=event :event-type=messageStop {}", as AWS does.
func framed(t testing.TB, lines string) []byte {
	t.Helper()
	var out []byte
	for line := range strings.Lines(lines) {
		head, payload, ok := strings.Cut(strings.TrimSpace(line), " {")
		if !ok {
			t.Fatalf("no payload: %s", line)
		}
		payload = "{" + payload
		var headers []byte
		for _, field := range strings.Fields(head) {
			name, value, _ := strings.Cut(field, "=")
			headers = append(append(headers, byte(len(name))), name...)
			headers = binary.BigEndian.AppendUint16(append(headers, 7), uint16(len(value)))
			headers = append(headers, value...)
		}
		frame := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
		frame = binary.BigEndian.AppendUint32(frame, uint32(len(headers)))
		frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
		frame = append(append(frame, headers...), payload...)
		out = append(out, binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))...)
	}
	return out
}

// watched returns the error inside a 200, nil if there is none, and how the body
// ended.
func (f *fixture) watched() (*stream.Event, stream.Ending) {
	w := stream.New(f.answer.Dialect, f.answer.Header.Get("Content-Type"), f.answer.HasModel)
	defer w.Free()
	w.Write(f.answer.Body)
	ending := w.End()
	return w.Failure(), ending
}

// judged returns what the fixture is taken for, as a text like that of Want.
func (f *fixture) judged() (string, Result) {
	r := OfAnswer(f.answer)
	if f.answer.Status >= 300 || r.Verdict != Success {
		return brief(r), r
	}
	e, ending := f.watched()
	switch ending {
	case stream.Complete:
		return "success", r
	case stream.Failed:
		r = OfStreamError(f.provider, f.answer.Dialect, e.Code, e.Type, e.Message, e.Status, f.answer.Now)
		return brief(r), r
	}
	return ending.String(), r
}

func TestFixtures(t *testing.T) {
	for _, f := range readFixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			got, r := f.judged()
			if want := f.want.Get("Want"); got != want {
				t.Errorf("%d %s\n got %s\nwant %s", f.answer.Status, f.answer.Body, got, want)
			}
			pause, _ := time.ParseDuration(f.want.Get("Pause"))
			if diff := r.Pause - pause; diff < -time.Millisecond || diff > time.Millisecond {
				t.Errorf("pauses for %v, want %v", r.Pause, pause)
			}
			if code := f.want.Get("Code"); code != "" && r.Code != code {
				t.Errorf("code %q, want %q", r.Code, code)
			}
			if warns := r.Warn != ""; warns != (f.want.Get("Warns") == "yes") {
				t.Errorf("warns: %q", r.Warn)
			}
		})
	}
}

func TestEveryProviderHasFixtures(t *testing.T) {
	dirs, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range dirs {
		if d.IsDir() && d.Name() != "fuzz" {
			got = append(got, d.Name())
		}
	}
	if want := slices.Sorted(slices.Values(providerIDs)); !slices.Equal(got, want) {
		t.Errorf("folders %v, want %v", got, want)
	}
}

// evidence notes which parts of the tables the fixtures need.
type evidence map[*string]bool

func (e evidence) note(r *rule, c *candidate) {
	f := &c.facts
	for i, at := range r.at {
		if at == c.provider || at == c.family {
			e[&r.at[i]] = true
		}
	}
	for i, code := range r.codes {
		if f.has([]string{code}) {
			e[&r.codes[i]] = true
		}
	}
	for i, text := range r.texts {
		if containsAny(f.message, []string{text}) {
			e[&r.texts[i]] = true
		}
	}
}

// A row, or a provider, code or text in one, that no fixture needs is a guess, or a
// fixture is missing.
func TestFixturesNeedEveryRule(t *testing.T) {
	used, seen := map[*rule]bool{}, evidence{}
	note := func(r *rule, c *candidate) {
		used[r] = true
		seen.note(r, c)
	}
	for _, f := range readFixtures(t) {
		c := candidateOf(f.answer)
		if f.answer.Status < 300 {
			e, _ := f.watched()
			if e == nil {
				continue
			}
			c = innerCandidate(f.provider, f.answer.Dialect, e.Code, e.Type, e.Message, e.Status, f.answer.Now)
		}
		if r := c.rule(); r != nil {
			note(r, &c)
		} else if r := innerRule(&c.facts); c.inner && r != nil {
			note(r, &c)
		}
	}
	check := func(table string, rules []rule) {
		for i := range rules {
			r := &rules[i]
			if !used[r] {
				t.Errorf("%s, row %d: no fixture needs %v", table, i, *r)
				continue
			}
			for what, parts := range map[string][]string{"provider": r.at, "code": r.codes, "text": r.texts} {
				for j, part := range parts {
					if !seen[&parts[j]] {
						t.Errorf("%s, row %d: no fixture needs the %s %q", table, i, what, part)
					}
				}
			}
		}
	}
	check("rules", rules)
	check("innerRules", innerRules)
}
