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

import "bytes"

const (
	// plainSize is up to where an event is kept as it is. Beyond it long strings
	// are shortened: what tells an event's meaning often stands behind a picture
	// of some megabytes.
	plainSize = 64 << 10
	// maxSize bounds what is kept of an event, shortened as it is.
	maxSize = 1 << 20
	// keptString is how much stays of a string that is shortened.
	keptString = 4 << 10
)

// lexer tells what is inside and what is outside of JSON strings, over any
// number of pieces.
type lexer struct {
	inside  bool
	escaped bool // the next byte belongs to an escape
}

// run returns the leading part of p, not empty, that is all inside or all
// outside of a string. The opening quote ends an outer run, the closing quote
// an inner one.
func (l *lexer) run(p []byte) (run []byte, inside bool) {
	if !l.inside {
		quote := bytes.IndexByte(p, '"')
		if quote < 0 {
			return p, false
		}
		l.inside = true
		return p[:quote+1], false
	}
	start := 0
	if l.escaped {
		l.escaped, start = false, 1
	}
	end := closingQuote(p, start)
	if end < len(p) {
		l.inside = false
		return p[:end+1], true
	}
	l.escaped = end > len(p)
	return p, true
}

// buffer gathers the text of one line or event in bounded memory.
type buffer struct {
	b        []byte
	lex      lexer
	kept     int // bytes kept of the string that is open
	shortens bool
}

func (s *buffer) add(p []byte) {
	if !s.shortens {
		if len(s.b)+len(p) <= plainSize {
			s.b = append(s.b, p...)
			return
		}
		s.shortens = true
		held := s.b
		s.b = s.b[:0]
		s.shorten(held)
	}
	s.shorten(p)
}

// shorten may be given what s.b itself held: it writes no faster than it reads.
func (s *buffer) shorten(p []byte) {
	for len(p) > 0 {
		run, inside := s.lex.run(p)
		p = p[len(run):]
		if inside {
			s.addString(run)
		} else {
			s.kept = 0
			s.addBounded(run)
		}
	}
}

func (s *buffer) addString(run []byte) {
	closed := !s.lex.inside
	keep := min(len(run), max(0, keptString-s.kept))
	s.addBounded(run[:keep])
	s.kept += keep
	if closed && keep < len(run) {
		s.dropEscape()
		s.addBounded(run[len(run)-1:])
	}
}

func (s *buffer) addBounded(p []byte) {
	s.b = append(s.b, p[:min(len(p), max(0, maxSize-len(s.b)))]...)
}

// dropEscape removes a backslash that would escape what is added next.
func (s *buffer) dropEscape() {
	if slashes(s.b)%2 == 1 {
		s.b = s.b[:len(s.b)-1]
	}
}

// reset empties the buffer, which gives back the memory of a large event.
func (s *buffer) reset() {
	b := s.b[:0]
	if cap(b) > plainSize {
		b = nil
	}
	*s = buffer{b: b}
}
