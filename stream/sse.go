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

// sseState divides a stream into lines and events.
type sseState struct {
	line    buffer // a line whose end has not come
	data    buffer // the data of the present event
	name    []byte // its event field
	open    bool   // line holds something
	begun   bool   // the present event has a data field
	afterCR bool   // a line feed that follows belongs to the line end before
	bomDone bool
}

func (s *sseState) pending() bool { return s.open || s.begun || len(s.name) > 0 }

var byteOrderMark = []byte("\xef\xbb\xbf")

// writeLines hands on each line of p, ended by LF, CRLF or CR.
func (w *Watcher) writeLines(p []byte) {
	s := &w.sse
	for len(p) > 0 {
		if s.afterCR {
			s.afterCR = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := lineEnd(p)
		if end < 0 {
			s.open = true
			s.line.add(p)
			return
		}
		if n := w.wholeEvent(p, end); n > 0 {
			p = p[n:]
			continue
		}
		s.afterCR = p[end] == '\r'
		w.endLine(p[:end])
		p = p[end+1:]
	}
}

// wholeEvent judges an event that has one line of data and lies in p with its
// blank line, as almost all do, without gathering it first. The line ends at end.
// It returns the length of what it has taken, 0 if it is none.
func (w *Watcher) wholeEvent(p []byte, end int) int {
	s := &w.sse
	blank := end + 1
	if w.format != eventStream || s.open || s.begun || !s.bomDone || p[end] != '\n' || end > plainSize ||
		blank >= len(p) || p[blank] != '\n' || !bytes.HasPrefix(p, dataField) {
		return 0
	}
	value := p[len(dataField):end]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	w.event(s.name, value)
	s.name = s.name[:0]
	return blank + 1
}

var dataField = []byte("data:")

func lineEnd(p []byte) int {
	end := bytes.IndexByte(p, '\n')
	head := p
	if end >= 0 {
		head = p[:end]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// endLine takes the last part of a line.
func (w *Watcher) endLine(part []byte) {
	s := &w.sse
	line := part
	if s.open {
		s.line.add(part)
		line = s.line.b
	}
	if !s.bomDone {
		s.bomDone = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if w.format == jsonLines {
		w.jsonLine(line)
	} else {
		w.field(line)
	}
	if s.open {
		s.open = false
		s.line.reset()
	}
}

// jsonLine goes through a buffer only to be shortened where it is long.
func (w *Watcher) jsonLine(line []byte) {
	if len(line) <= plainSize {
		w.event(nil, line)
		return
	}
	w.sse.data.add(line)
	w.event(nil, w.sse.data.b)
	w.sse.data.reset()
}

func (w *Watcher) field(line []byte) {
	s := &w.sse
	if len(line) == 0 {
		w.dispatch()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if s.begun {
			s.data.add([]byte("\n"))
		}
		s.begun = true
		s.data.add(value)
	case "event":
		s.name = append(s.name[:0], value[:min(len(value), 128)]...)
	case "error":
		// Old llama.cpp servers write an error as a field of its own.
		w.event([]byte("error"), value)
	}
}

// dispatch ends the present event, if there is one.
func (w *Watcher) dispatch() {
	s := &w.sse
	if s.begun || string(s.name) == "error" {
		w.event(s.name, s.data.b)
	}
	s.begun, s.name = false, s.name[:0]
	s.data.reset()
}

// flushLines takes what the body's end left over. An event without its blank
// line is judged if it is whole; one that broke off says nothing but that.
func (w *Watcher) flushLines() {
	s := &w.sse
	if w.format == jsonLines {
		if line := bytes.TrimSpace(s.line.b); len(line) > 0 {
			w.lastEvent(nil, bytes.TrimPrefix(line, byteOrderMark))
		}
		return
	}
	if s.open {
		w.endLine(nil)
	}
	if s.begun {
		w.loose = true
		w.lastEvent(s.name, bytes.TrimSpace(s.data.b))
	}
}

func (w *Watcher) lastEvent(name, data []byte) {
	if whole(data) || isDone(data) {
		w.event(name, data)
		return
	}
	w.arrived, w.torn = true, true
}

func isDone(data []byte) bool { return string(data) == "[DONE]" }
