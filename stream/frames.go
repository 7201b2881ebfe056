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

import "encoding/binary"

const (
	preludeSize = 12 // total length, headers length, checksum of both
	trailerSize = 4  // checksum
	// maxFrame is far above what the format allows (16 MiB), maxHeaders is what
	// it allows.
	maxFrame   = 64 << 20
	maxHeaders = 128 << 10
	// maxPayload bounds what is kept of the payloads that are read at all.
	maxPayload = 64 << 10
)

// frameState follows frames of application/vnd.amazon.eventstream: a prelude,
// headers, a payload and a checksum, none of which is verified.
type frameState struct {
	head    []byte // the prelude and headers of the present frame
	payload []byte
	size    int // of the headers
	rest    int // bytes of payload and checksum still to come
	within  bool
	wanted  bool // the payload is read
	bad     bool // these are no frames
	kind    frameKind
}

type frameKind struct{ message, event, exception, code, text string }

func (s *frameState) pending() bool { return s.bad || s.within || len(s.head) > 0 }

func (w *Watcher) writeFrames(p []byte) {
	s := &w.frames
	for len(p) > 0 && !s.bad {
		if s.within {
			p = w.framePayload(p)
		} else {
			p = w.frameHead(p)
		}
	}
	w.arrived = true
}

// frameHead takes bytes until the headers are there.
func (w *Watcher) frameHead(p []byte) []byte {
	s := &w.frames
	p = s.fill(p, preludeSize)
	if len(s.head) < preludeSize {
		return p
	}
	total := int(binary.BigEndian.Uint32(s.head))
	s.size = int(binary.BigEndian.Uint32(s.head[4:]))
	s.rest = total - preludeSize - s.size
	if total > maxFrame || s.size > maxHeaders || s.rest < trailerSize {
		s.bad = true
		return nil
	}
	p = s.fill(p, preludeSize+s.size)
	if len(s.head) == preludeSize+s.size {
		s.kind = readHeaders(s.head[preludeSize:])
		s.wanted = s.kind.message == "exception" || s.kind.event == "metadata"
		s.within = true
	}
	return p
}

// fill adds to the head up to n bytes, and returns the rest.
func (s *frameState) fill(p []byte, n int) []byte {
	take := min(len(p), max(0, n-len(s.head)))
	s.head = append(s.head, p[:take]...)
	return p[take:]
}

func (w *Watcher) framePayload(p []byte) []byte {
	s := &w.frames
	take := min(len(p), s.rest)
	if s.wanted {
		keep := min(take, max(0, s.rest-trailerSize), max(0, maxPayload-len(s.payload)))
		s.payload = append(s.payload, p[:keep]...)
	}
	if s.rest -= take; s.rest == 0 {
		w.frame()
		s.head, s.payload, s.within = s.head[:0], s.payload[:0], false
	}
	return p[take:]
}

// frame judges a frame that has come whole.
func (w *Watcher) frame() {
	s := &w.frames
	switch s.kind.message {
	case "exception":
		w.fail(Event{Type: s.kind.exception, Message: unquoted(member(s.payload, "message"))})
		return
	case "error":
		w.fail(Event{Type: s.kind.code, Message: s.kind.text})
		return
	}
	switch s.kind.event {
	case "messageStart":
		w.family()
	case "contentBlockDelta":
		w.family()
		w.content = true
	case "messageStop":
		w.family()
		w.endOfAnswer()
	case "metadata":
		var f fields
		f.usage = member(s.payload, "usage")
		w.readUsage(&f)
	case "chunk":
		// The model's own event, base64 coded: no end is known of it.
		w.recognised, w.content = true, true
	}
}

// readHeaders reads the headers that are strings, up to one it cannot skip.
func readHeaders(b []byte) frameKind {
	var k frameKind
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < n+2 {
			return k
		}
		name, typ := string(b[1:1+n]), b[1+n]
		b = b[n+2:]
		size, ok := headerSize(typ, b)
		if !ok || len(b) < size {
			return k
		}
		if typ == 7 {
			k.set(name, string(b[2:size]))
		}
		b = b[size:]
	}
	return k
}

// headerSize returns how much a value takes, a length before it included.
func headerSize(typ byte, b []byte) (int, bool) {
	switch typ {
	case 0, 1: // true, false
		return 0, true
	case 2:
		return 1, true
	case 3:
		return 2, true
	case 4:
		return 4, true
	case 5, 8:
		return 8, true
	case 6, 7: // bytes, text
		if len(b) < 2 {
			return 0, false
		}
		return 2 + int(binary.BigEndian.Uint16(b)), true
	case 9:
		return 16, true
	}
	return 0, false
}

func (k *frameKind) set(name, value string) {
	switch name {
	case ":message-type":
		k.message = value
	case ":event-type":
		k.event = value
	case ":exception-type":
		k.exception = value
	case ":error-code":
		k.code = value
	case ":error-message":
		k.text = value
	}
}
