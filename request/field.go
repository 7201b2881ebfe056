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

// maxField is up to how many bytes, as written, a value is an identifier.
const maxField = 4 << 10

// Field returns the string or number that stands in a JSON body under the names
// in path, from the outermost in: its text, without quotes. A multipart body has
// the field of that name, if path is but one. ok is false where there is none, or
// one of more than 4 KiB, in bodies of other kinds, and after Release. Of a name
// given twice the first counts.
//
// The body is scanned up to that place; nothing but the text is allocated.
func (q *Request) Field(path ...string) (text string, ok bool) {
	body := q.kept()
	if len(path) == 0 || len(body) == 0 {
		return "", false
	}
	if q.place == inForm {
		return formField(body, q.boundary, path)
	}
	s := scanner{data: body}
	if s.space(); s.peek() != '{' || !s.find(path) {
		return "", false
	}
	from := s.pos
	switch c := s.peek(); {
	case c == '"':
		if !s.str() || s.pos-from > maxField {
			return "", false
		}
		return unquote(s.data[from:s.pos])
	case c == '-' || '0' <= c && c <= '9':
		if !s.number() || s.pos-from > maxField {
			return "", false
		}
		return string(s.data[from:s.pos]), true
	}
	return "", false
}

func formField(body []byte, boundary string, path []string) (string, bool) {
	f := &formScanner{data: body}
	if len(path) > 1 || f.open(boundary) != nil {
		return "", false
	}
	for !f.last {
		p, err := f.part()
		if err != nil {
			return "", false
		}
		if p.name == path[0] && p.name != "" {
			return string(body[p.from:min(p.to, p.from+maxField)]), p.to-p.from <= maxField && !p.encoded()
		}
	}
	return "", false
}

// promptNames are the members of a body that make up a prompt, in the order in
// which providers put them before the model.
var promptNames = [...]string{
	"system", "instructions", "systemInstruction", "system_instruction", "preamble",
	"chat_history", "messages", "message", "contents", "content", "prompt", "input", "inputs", "inputText", "texts",
}

// Prompt returns the first n bytes of what the model is to read: the values of
// the JSON body's members that make up the prompt, as they are written there, the
// system prompt first, wherever it stands. What else is in the body has no part
// in it, nor has the order. The prompt may be shorter; it is empty where the body
// has none, for bodies that are not JSON, and after Release. The caller must not
// change it.
func (q *Request) Prompt(n int) []byte {
	var values [len(promptNames)][]byte
	s := scanner{data: q.kept()}
	if s.space(); s.peek() != '{' || !s.prompt(&values) {
		return nil
	}
	var prompt []byte
	for _, value := range values {
		switch room := n - len(prompt); {
		case room <= 0 || len(value) == 0:
		case prompt == nil:
			prompt = value[:min(room, len(value)):min(room, len(value))]
		default:
			prompt = append(prompt, value[:min(room, len(value))]...)
		}
	}
	return prompt
}

func (q *Request) kept() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.body
}

// name moves from the name of a member to its value.
func (s *scanner) name() (literal []byte, ok bool) {
	from := s.pos
	if s.peek() != '"' || !s.str() {
		return nil, false
	}
	literal = s.data[from:s.pos]
	if s.space(); s.peek() != ':' {
		return nil, false
	}
	s.pos++
	s.space()
	return literal, true
}

// find moves from the bracket that opens an object to the value under path.
func (s *scanner) find(path []string) bool {
	done, ok := s.enter('}')
	for ok && !done {
		literal, named := s.name()
		if !named {
			return false
		}
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

// prompt takes down the values of promptNames in the object that begins here,
// and reports whether it is valid.
func (s *scanner) prompt(values *[len(promptNames)][]byte) bool {
	done, ok := s.enter('}')
	for ok && !done {
		literal, named := s.name()
		if !named {
			return false
		}
		from := s.pos
		if ok = s.value(); !ok {
			return false
		}
		for i, name := range promptNames {
			if values[i] == nil && isName(literal, name) {
				values[i] = s.data[from:s.pos]
			}
		}
		done, ok = s.next('}', "in an object")
	}
	return ok
}

// isName reports whether a literal in quotes means name.
func isName(literal []byte, name string) bool {
	plain := literal[1 : len(literal)-1]
	if len(plain) > 6*len(name) { // each byte written as \u00XX
		return false
	}
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
