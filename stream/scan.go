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
	"encoding/json"
	"strconv"
)

// The functions here read JSON without checking it: a body is the client's to
// validate, and one that breaks off must still be read up to there. They never
// recurse, so that nesting costs nothing, and they allocate nothing.

// members walks the members of a JSON object.
type members struct {
	rest     []byte
	begun    bool
	key, val []byte // of the present member, as they stand in the text
}

// membersOf starts a walk; a raw value that is no object has no members.
func membersOf(raw []byte) members {
	if !isObject(raw) {
		return members{}
	}
	return members{rest: raw[1:]}
}

func (m *members) next() bool {
	b := m.rest
	i := skipSpace(b, 0)
	if m.begun {
		if i >= len(b) || b[i] != ',' {
			return false
		}
		i = skipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != '"' {
		return false
	}
	end := stringEnd(b, i+1)
	m.key = text(b[i:end])
	i = skipSpace(b, end)
	if i >= len(b) || b[i] != ':' {
		return false
	}
	i = skipSpace(b, i+1)
	if end = valueEnd(b, i); end == i {
		return false
	}
	m.val, m.rest, m.begun = b[i:end], b[end:], true
	return true
}

// after returns what follows the object, once its walk is over; nothing if the
// object breaks off.
func (m *members) after() []byte {
	i := skipSpace(m.rest, 0)
	if i < len(m.rest) && m.rest[i] == '}' {
		return m.rest[i+1:]
	}
	return nil
}

// objectIn returns the walk of the next object in what is left of an array,
// and whether there is one. The array goes on with what is after that object,
// so that nothing is read twice.
func objectIn(rest []byte) (members, bool) {
	i := skipBlank(rest, 0)
	if i < len(rest) && rest[i] == '[' {
		i = skipBlank(rest, i+1)
	}
	m := membersOf(rest[i:])
	return m, m.rest != nil
}

// member returns the value of one member of an object, nil if there is none.
func member(raw []byte, name string) []byte {
	for m := membersOf(raw); m.next(); {
		if string(m.key) == name {
			return m.val
		}
	}
	return nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipBlank skips space and commas.
func skipBlank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == ',' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// valueEnd returns where the value that starts at i ends: len(b) if it does
// not, i if there is none.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i+1)
	case '{', '[':
		return nestEnd(b, i)
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ':', '"', '{', '[', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

func nestEnd(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = stringEnd(b, i+1)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// stringEnd returns the index after the quote that closes the string whose
// first byte is at i, len(b) if there is none.
func stringEnd(b []byte, i int) int {
	return min(closingQuote(b, min(i, len(b)))+1, len(b))
}

// closingQuote returns the index of the first quote from i on that is not
// escaped. Without one it returns len(b), or len(b)+1 if b ends in a backslash
// that escapes what follows.
func closingQuote(b []byte, i int) int {
	for from := i; ; {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			return len(b) + slashes(b[i:])%2
		}
		quote := from + n
		if n == 0 && quote == i || b[quote-1] != '\\' || slashes(b[i:quote])%2 == 0 {
			return quote
		}
		from = quote + 1
	}
}

// slashes counts the backslashes at the end of b.
func slashes(b []byte) int {
	n := len(b)
	for n > 0 && b[n-1] == '\\' {
		n--
	}
	return len(b) - n
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// text returns what stands between the quotes of a raw string, escapes as they
// are; nil if raw is no string.
func text(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '"' {
		return nil
	}
	raw = raw[1:]
	if n := len(raw); n > 0 && raw[n-1] == '"' {
		raw = raw[:n-1]
	}
	return raw
}

// says reports whether a value holds something: a string, array or object that
// is not empty.
func says(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	switch raw[0] {
	case '"':
		return len(text(raw)) > 0
	case '{', '[':
		i := skipBlank(raw, 1)
		return i < len(raw) && raw[i] != '}' && raw[i] != ']'
	}
	return false
}

// said returns the value if it holds something, else nil.
func said(raw []byte) []byte {
	if says(raw) {
		return raw
	}
	return nil
}

// number returns a raw count, 0 if it is none.
func number(raw []byte) int64 {
	var n int64
	for _, c := range raw {
		if c < '0' || c > '9' || n > 1<<53 {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// unquoted returns a scalar as text: a string without its escapes, a number as
// it stands, and nothing for anything else.
func unquoted(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if _, err := strconv.ParseFloat(string(raw), 64); err == nil {
		return string(raw)
	}
	return string(text(raw))
}

// whole reports whether raw is a value that does not break off.
func whole(raw []byte) bool {
	var d docState
	d.follow(raw)
	return d.closed()
}
