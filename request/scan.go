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
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// maxDepth is how deep arrays and objects may nest, the body's own object
// counted.
const maxDepth = 1000

// scanner checks JSON in one pass and allocates nothing. Its methods report
// whether what they read is valid and leave pos behind it; else err is set.
type scanner struct {
	data  []byte
	pos   int
	depth int
	found members
	err   error
}

// scanJSON checks that body is one JSON object, by the rules of RFC 8259 but
// for the encoding of strings, and returns what stands at its top level. Of a
// name given twice the last counts; members.model refuses that for the model.
func scanJSON(body []byte) (members, error) {
	s := scanner{data: body}
	if !s.document() {
		return members{}, s.err
	}
	return s.found, nil
}

func (s *scanner) document() bool {
	if bytes.HasPrefix(s.data, []byte("\xef\xbb\xbf")) {
		return s.fail(invalid("the body starts with a byte order mark; JSON has none"))
	}
	switch s.space(); s.peek() {
	case 0:
		if s.pos == len(s.data) {
			return s.fail(invalid("the body is empty; it must be a JSON object"))
		}
	case '{':
		if !s.object() {
			return false
		}
		if s.space(); s.pos < len(s.data) {
			return s.unexpected("after the JSON object")
		}
		return true
	}
	return s.fail(invalid("the body is not a JSON object"))
}

func (s *scanner) fail(err error) bool {
	s.err = err
	return false
}

// unexpected says what stands at pos, and where that is.
func (s *scanner) unexpected(where string) bool {
	if s.pos >= len(s.data) {
		return s.fail(invalid("the body is not valid JSON: it ends %s", where))
	}
	return s.fail(invalid("the body is not valid JSON: unexpected %q %s, at byte %d", s.data[s.pos:s.pos+1], where, s.pos))
}

// peek returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) value() bool {
	switch c := s.peek(); c {
	case '"':
		return s.str()
	case '{':
		return s.object()
	case '[':
		return s.array()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

// enter steps over the bracket that opens an object or array. done is set if
// the one that closes it follows at once.
func (s *scanner) enter(closing byte) (done, ok bool) {
	if s.depth++; s.depth > maxDepth {
		return false, s.fail(invalid("the body is nested more than %d levels deep, at byte %d", maxDepth, s.pos))
	}
	s.pos++
	s.space()
	if s.peek() != closing {
		return false, true
	}
	s.leave()
	return true, true
}

func (s *scanner) leave() {
	s.pos++
	s.depth--
}

// next steps over a comma, or over the closing bracket, where done is set.
func (s *scanner) next(closing byte, where string) (done, ok bool) {
	s.space()
	switch s.peek() {
	case ',':
		s.pos++
		s.space()
		return false, true
	case closing:
		s.leave()
		return true, true
	default:
		return false, s.unexpected(where)
	}
}

func (s *scanner) object() bool {
	done, ok := s.enter('}')
	for ok && !done {
		ok = s.member()
		if ok {
			done, ok = s.next('}', "in an object")
		}
	}
	return ok
}

func (s *scanner) array() bool {
	done, ok := s.enter(']')
	for ok && !done {
		ok = s.value()
		if ok {
			done, ok = s.next(']', "in an array")
		}
	}
	return ok
}

func (s *scanner) member() bool {
	name := s.pos
	if s.peek() != '"' {
		return s.unexpected("where a name is due")
	}
	if !s.str() {
		return false
	}
	nameEnd := s.pos
	if s.space(); s.peek() != ':' {
		return s.unexpected("where a colon is due")
	}
	s.pos++
	s.space()
	from := s.pos
	if !s.value() {
		return false
	}
	if s.depth == 1 {
		s.note(s.data[name:nameEnd], from)
	}
	return true
}

// note looks at a member of the top level; literal is its name in quotes.
func (s *scanner) note(literal []byte, from int) {
	const longest = len(`"stream"`) * 6 // with each letter as \u00XX
	if len(literal) > longest {
		return
	}
	plain := literal[1 : len(literal)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		var name string
		if json.Unmarshal(literal, &name) != nil {
			return
		}
		plain = []byte(name)
	}
	switch {
	case string(plain) == "stream":
		s.found.stream = streamFlag(s.data[from])
	case string(plain) == "model": // as below, without making a string of it
		s.found.note("model", from, s.pos)
	case bytes.EqualFold(plain, []byte("model")):
		s.found.note(string(plain), from, s.pos)
	}
}

// streamFlag reads a stream member by its first byte. What is no boolean is for
// the provider to judge, and null is as good as not given.
func streamFlag(c byte) flag {
	switch c {
	case 't':
		return yes
	case 'f':
		return no
	default:
		return unset
	}
}

func (s *scanner) literal(word string) bool {
	for i := range len(word) {
		if s.peek() != word[i] {
			return s.unexpected("in a literal")
		}
		s.pos++
	}
	return true
}

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits("where a value is due") {
		return false
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits("in a number") {
			return false
		}
	}
	if s.peek()|0x20 != 'e' {
		return true
	}
	s.pos++
	if c := s.peek(); c == '+' || c == '-' {
		s.pos++
	}
	return s.digits("in a number")
}

// digits reads at least one digit.
func (s *scanner) digits(where string) bool {
	from := s.pos
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
	}
	if s.pos == from {
		return s.unexpected(where)
	}
	return true
}

func (s *scanner) str() bool {
	start := s.pos
	s.pos++
	for {
		s.pos = plainEnd(s.data, s.pos)
		switch s.peek() {
		case '"':
			s.pos++
			return true
		case '\\':
			if !s.escape() {
				return false
			}
		default:
			if s.pos < len(s.data) {
				return s.unexpected("in a string")
			}
			s.pos = start
			return s.fail(invalid("the body is not valid JSON: the string at byte %d does not end", start))
		}
	}
}

func (s *scanner) escape() bool {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return true
	case 'u':
		s.pos++
	default:
		return s.unexpected("in an escape")
	}
	for range 4 {
		if !isHex(s.peek()) {
			return s.unexpected("in an escape")
		}
		s.pos++
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// plainEnd returns the index of the first quote, backslash or control
// character in data from i on, or len(data). It looks at eight bytes at once:
// prompts are long, and this is where almost all of the time goes.
func plainEnd(data []byte, i int) int {
	const (
		ones   = 0x0101010101010101
		highs  = 0x8080808080808080
		spaces = ' ' * ones
		quotes = '"' * ones
		slants = '\\' * ones
	)
	for ; len(data)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		// A byte below n borrows from its high bit when n is taken off. The
		// borrow may spoil bytes above the first such one, never below.
		q, b := w^quotes, w^slants
		hit := ((w-spaces)&^w | (q-ones)&^q | (b-ones)&^b) & highs
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}
