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
)

// Field returns the string or number that stands in a JSON body under the names
// in path, from the outermost in: its text, without quotes. ok is false where
// there is none, in bodies that are no JSON object, and after Release. Of a name
// given twice the first counts.
func (q *Request) Field(path ...string) (text string, ok bool) {
	s := scanner{data: q.kept()}
	if s.space(); s.peek() != '{' || len(path) == 0 || !s.find(path) {
		return "", false
	}
	from := s.pos
	switch c := s.peek(); {
	case c == '"':
		if !s.str() {
			return "", false
		}
		return unquote(s.data[from:s.pos])
	case c == '-' || '0' <= c && c <= '9':
		if !s.number() {
			return "", false
		}
		return string(s.data[from:s.pos]), true
	}
	return "", false
}

// Prefix returns the first n bytes of the body, or all of it if it is shorter.
// The caller must not change them. It is empty after Release.
func (q *Request) Prefix(n int) []byte {
	body := q.kept()
	return body[:min(n, len(body))]
}

func (q *Request) kept() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.body
}

// find moves from the bracket that opens an object to the value under path.
func (s *scanner) find(path []string) bool {
	done, ok := s.enter('}')
	for ok && !done {
		name := s.pos
		if s.peek() != '"' || !s.str() {
			return false
		}
		literal := s.data[name:s.pos]
		if s.space(); s.peek() != ':' {
			return false
		}
		s.pos++
		s.space()
		if isName(literal, path[0]) {
			if len(path) == 1 {
				return true
			}
			return s.peek() == '{' && s.find(path[1:])
		}
		if ok = s.value(); ok {
			done, ok = s.next('}', "in an object")
		}
	}
	return false
}

// isName reports whether a literal in quotes means name.
func isName(literal []byte, name string) bool {
	plain := literal[1 : len(literal)-1]
	if bytes.IndexByte(plain, '\\') < 0 {
		return string(plain) == name
	}
	text, ok := unquote(literal)
	return ok && text == name
}

func unquote(literal []byte) (string, bool) {
	var text string
	err := json.Unmarshal(literal, &text)
	return text, err == nil
}
