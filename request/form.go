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
	"bufio"
	"bytes"
	"mime"
	"net/textproto"
	"strings"
)

const (
	maxParts      = 1000
	maxPartHeader = 16 << 10
)

func isForm(contentType string) bool {
	const form = "multipart/form-data"
	return len(contentType) >= len(form) && strings.EqualFold(contentType[:len(form)], form)
}

// formScanner walks over the parts of a multipart body where they lie. The
// standard reader would do for the values, but does not tell where they stand.
type formScanner struct {
	data  []byte
	pos   int    // behind the newline of the last delimiter
	line  string // the newline, as the first delimiter has it
	delim []byte // newline, two dashes, boundary
	last  bool   // the closing delimiter was read
}

// scanForm returns the fields of a multipart body that matter. A file part is no
// field, whatever its name.
func scanForm(body []byte, contentType string) (members, error) {
	m := members{form: true}
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return m, invalid("the Content-Type names no multipart boundary")
	}
	m.boundary = params["boundary"]
	f := &formScanner{data: body}
	if err := f.open(m.boundary); err != nil {
		return m, err
	}
	for range maxParts {
		if f.last {
			return m, nil
		}
		p, err := f.part()
		if err != nil {
			return m, err
		}
		if err := m.field(p, body); err != nil {
			return m, err
		}
	}
	return m, invalid("the body has more than %d parts", maxParts)
}

// open finds the first delimiter. Text before it is ignored, as RFC 2046 says.
func (f *formScanner) open(boundary string) error {
	dashes := []byte("--" + boundary)
	for at := 0; ; {
		i := bytes.Index(f.data[at:], dashes)
		if i < 0 {
			return invalid("the body has no part: its boundary is nowhere")
		}
		at += i
		f.pos = at + len(dashes)
		if (at == 0 || f.data[at-1] == '\n') && f.delimiterEnd() {
			f.delim = append([]byte(f.line), dashes...)
			return nil
		}
		at++
	}
}

// delimiterEnd steps over what follows a boundary and reports whether that made
// it a delimiter: dashes, where it is the last, or the end of the line.
func (f *formScanner) delimiterEnd() bool {
	rest := f.data[f.pos:]
	if bytes.HasPrefix(rest, []byte("--")) {
		after := bytes.TrimLeft(rest[2:], " \t")
		f.last = len(after) == 0 || after[0] == '\n' || bytes.HasPrefix(after, []byte("\r\n"))
		return f.last
	}
	padded := len(rest)
	rest = bytes.TrimLeft(rest, " \t")
	f.pos += padded - len(rest)
	for _, line := range []string{"\r\n", "\n"} {
		if bytes.HasPrefix(rest, []byte(line)) && (f.line == "" || f.line == line) {
			f.line = line
			f.pos += len(line)
			return true
		}
	}
	return false
}

// formPart is one part; its value stands at from to to. The name of a file is
// empty: it is no field.
type formPart struct {
	name     string
	header   textproto.MIMEHeader
	from, to int
}

// part reads one part up to the delimiter behind it.
func (f *formScanner) part() (formPart, error) {
	from, header, err := f.header()
	if err != nil {
		return formPart{}, err
	}
	// The newline of a header without lines may be the one of the delimiter.
	f.pos = from - len(f.line)
	to, ok := f.skip()
	if !ok {
		return formPart{}, invalid("the multipart body ends before its closing boundary")
	}
	p := formPart{header: header, from: from, to: max(to, from)}
	kind, params, err := mime.ParseMediaType(header.Get("Content-Disposition"))
	if _, file := params["filename"]; err == nil && kind == "form-data" && !file {
		p.name = params["name"]
	}
	return p, nil
}

// header reads the header of a part; from is where its value starts.
func (f *formScanner) header() (from int, header textproto.MIMEHeader, err error) {
	rest := f.data[f.pos:]
	rest = rest[:min(len(rest), maxPartHeader)]
	if bytes.HasPrefix(rest, []byte(f.line)) { // none at all
		return f.pos + len(f.line), nil, nil
	}
	end := bytes.Index(rest, []byte(f.line+f.line))
	if end < 0 {
		return 0, nil, invalid("the header of a part, at byte %d, does not end within %d bytes", f.pos, maxPartHeader)
	}
	end += 2 * len(f.line)
	header, err = textproto.NewReader(bufio.NewReader(bytes.NewReader(rest[:end]))).ReadMIMEHeader()
	if err != nil || f.mixed(rest[:end]) {
		return 0, nil, invalid("the header of a part, at byte %d, is malformed", f.pos)
	}
	return f.pos + end, header, nil
}

// mixed reports whether text has a newline, or a half of one, other than those
// of the delimiters. Readers disagree where such a header ends.
func (f *formScanner) mixed(text []byte) bool {
	n := bytes.Count(text, []byte(f.line))
	returns := bytes.Count(text, []byte("\r"))
	return bytes.Count(text, []byte("\n")) != n || returns != n*(len(f.line)-1)
}

// skip moves behind the next delimiter and returns where the value before it
// ends.
func (f *formScanner) skip() (end int, ok bool) {
	for {
		i := bytes.Index(f.data[f.pos:], f.delim)
		if i < 0 {
			return 0, false
		}
		end = f.pos + i
		f.pos = end + len(f.delim)
		if f.delimiterEnd() {
			return end, true
		}
		f.pos = end + len(f.line) // the newline of another may be in what was skipped
	}
}

// field takes down a field of a form.
func (m *members) field(p formPart, body []byte) error {
	if strings.EqualFold(p.name, "model") && p.encoded() {
		return invalid(`the form field "model" has a Content-Transfer-Encoding`)
	}
	m.note(p.name, p.from, p.to)
	if p.name == "stream" {
		m.stream = formFlag(body[p.from:p.to])
	}
	return nil
}

// encoded reports whether the value is not what its bytes say.
func (p formPart) encoded() bool {
	switch strings.ToLower(p.header.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
		return false
	}
	return true
}

// formFlag reads a boolean of a form.
func formFlag(value []byte) flag {
	switch string(value) {
	case "true":
		return yes
	case "false":
		return no
	default:
		return unset
	}
}
