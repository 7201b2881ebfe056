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

// Package stream watches a response body while it passes through untouched.
//
// A [Watcher] is fed the bytes of one body, in pieces of any size, and tells
// what they amount to: whether an answer has begun, whether an error was hidden
// in it, whether it came to its proper end, and how many tokens it reports. It
// never changes, holds back or keeps the body.
package stream

import (
	"strings"
	"sync"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// Ending is what a body amounts to once it has ended.
type Ending uint8

// The endings. Complete is an answer that came to its end, whatever it says: a
// refusal, a safety block and a reached token limit are complete. Cut is one
// that broke off. Empty is one that says nothing at all. Failed is one with an
// error inside; see [Watcher.Failure].
const (
	Complete Ending = iota
	Cut
	Empty
	Failed
)

// String returns the ending's name in lower case.
func (e Ending) String() string {
	switch e {
	case Complete:
		return "complete"
	case Cut:
		return "cut"
	case Empty:
		return "empty"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// Event is an error object or an error event inside a response of status 200.
type Event struct {
	Type string // the error's type, or the name of its status; may be empty
	Code string // the error's code; may be empty or a number
	// Message is for matching only: it may repeat what the client sent.
	Message string
	Status  int // the HTTP status the error claims, 400 to 599; 0 if none
}

// Usage counts tokens as the upstream reports them.
type Usage struct {
	Input  int64 // all input tokens, those read from a cache among them
	Cached int64 // the part of Input that was read from a cache
	Output int64 // output tokens, those spent on reasoning among them
}

// format is how a body is divided into events.
type format uint8

const (
	opaque      format = iota // nothing but its being empty can be told
	eventStream               // text/event-stream
	jsonLines                 // one JSON object a line
	document                  // one JSON document
	frames                    // application/vnd.amazon.eventstream
)

// Watcher watches one body. It is not safe for concurrent use. All methods may
// be called on a nil Watcher, which knows of nothing wrong.
type Watcher struct {
	dialect dialect.Dialect
	format  format
	model   bool

	sse    sseState
	doc    docState
	frames frameState
	like   likeness
	said   []byte // the value in which the present event has its content; nil: it has none
	coded  *coded // nil: the bytes are what they are

	arrived    bool // something of substance: an event with data, a JSON byte, a frame
	recognised bool // an event of a known family
	demand     bool // a family that has a terminal event
	content    bool
	finish     bool // a finish, stop or block reason
	terminal   bool
	torn       bool // the body broke off within an event
	broken     bool // its Content-Encoding does not decode
	loose      bool // the last event lacks its blank line
	ended      bool
	ending     Ending
	failure    *Event
	usage      Usage
}

// New returns a watcher for a body of the given content type that answers a
// request of dialect d. The flag model tells that the request named a model:
// only then is an answer due, so that an empty body or a stream without its
// terminal event is judged. New returns nil if there is nothing to watch.
func New(d dialect.Dialect, contentType string, model bool) *Watcher {
	f := formatOf(contentType)
	if f == opaque && !model {
		return nil
	}
	w := watchers.Get().(*Watcher)
	w.dialect, w.format, w.model = d, f, model
	return w
}

// watchers keeps watchers that are not in use, with the memory that they gathered
// events in.
var watchers = sync.Pool{New: func() any {
	w := new(Watcher)
	w.doc.onClose = w.documentObject
	return w
}}

// Free ends the use of w, which must not be used afterwards. It need not be
// called, but saves the next watcher an allocation.
func (w *Watcher) Free() {
	if w == nil {
		return
	}
	if w.coded != nil {
		w.coded.stop()
	}
	w.sse.line.reset()
	w.sse.data.reset()
	w.doc.gather.reset()
	w.like.reset()
	*w = Watcher{
		sse:    sseState{line: w.sse.line, data: w.sse.data, name: w.sse.name[:0]},
		doc:    docState{gather: w.doc.gather, key: w.doc.key[:0], onClose: w.doc.onClose},
		like:   w.like,
		frames: frameState{head: w.frames.head[:0], payload: w.frames.payload[:0]},
	}
	watchers.Put(w)
}

func formatOf(contentType string) format {
	media, _, _ := strings.Cut(contentType, ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); media {
	case "text/event-stream":
		return eventStream
	case "application/x-ndjson", "application/ndjson":
		return jsonLines
	case "application/json":
		return document
	case "application/vnd.amazon.eventstream":
		return frames
	}
	if strings.HasSuffix(media, "+json") && strings.HasPrefix(media, "application/") && media != "application/stream+json" {
		return document
	}
	return opaque
}

// Write watches the next bytes of the body. It keeps nothing of p.
func (w *Watcher) Write(p []byte) {
	switch {
	case w == nil || len(p) == 0 || w.ended:
	case w.coded != nil:
		w.coded.write(p)
	default:
		w.write(p)
	}
}

func (w *Watcher) write(p []byte) {
	if len(p) == 0 {
		return
	}
	switch w.format {
	case eventStream, jsonLines:
		w.writeLines(p)
	case document:
		w.writeDocument(p)
	case frames:
		w.writeFrames(p)
	case opaque:
		w.arrived = true
	}
}

// Content reports whether the answer itself has begun: text, a tool call,
// reasoning, a refusal or audio. Comments, pings, lifecycle events and a mere
// role are not content. Of a body that is no stream it is true only after
// [Watcher.End].
func (w *Watcher) Content() bool {
	return w != nil && w.content && (w.ended || w.Stream())
}

// Begun reports whether the stream has said something that decides what it is:
// content, a finish, stop or block reason, or an error.
func (w *Watcher) Begun() bool {
	return w != nil && (w.content || w.finish || w.failure != nil)
}

// Terminal reports whether the event that ends an answer was seen.
func (w *Watcher) Terminal() bool { return w != nil && w.terminal }

// Failure returns the first error seen inside the body, nil if there is none.
func (w *Watcher) Failure() *Event {
	if w == nil {
		return nil
	}
	return w.failure
}

// Pending reports whether the bytes so far end within an event.
func (w *Watcher) Pending() bool {
	if w == nil {
		return false
	}
	switch w.format {
	case eventStream, jsonLines:
		return w.sse.pending()
	case document:
		return w.doc.begun && !w.doc.closed()
	case frames:
		return w.frames.pending()
	}
	return false
}

// Usage returns the tokens reported so far.
func (w *Watcher) Usage() Usage {
	if w == nil {
		return Usage{}
	}
	return w.usage
}

// Stream reports whether the body is a stream of events, rather than one
// document or something unknown.
func (w *Watcher) Stream() bool {
	return w != nil && w.format != document && w.format != opaque
}

// JSON reports whether the body is a JSON document rather than a stream.
func (w *Watcher) JSON() bool { return w != nil && w.format == document }

// End judges the body, whose last byte has been written. Further writes are
// ignored, and further calls return the same. A nil Watcher ends Complete.
func (w *Watcher) End() Ending {
	if w == nil {
		return Complete
	}
	if !w.ended {
		if w.coded != nil {
			w.broken = !w.coded.end()
		}
		w.flush()
		w.ending = w.judgeEnd()
		w.ended = true
	}
	return w.ending
}

func (w *Watcher) flush() {
	switch w.format {
	case eventStream, jsonLines:
		w.flushLines()
	case document:
		w.torn = w.doc.begun && !w.doc.closed()
		w.content = w.content || w.arrived && !w.torn
	case frames:
		w.torn = w.frames.pending()
	case opaque:
		w.content = w.arrived
	}
}

func (w *Watcher) judgeEnd() Ending {
	switch {
	case w.failure != nil:
		return Failed
	case w.broken && !w.terminal:
		return Cut
	case w.format == document && w.torn:
		return Cut
	case !w.model:
		return Complete
	case !w.arrived:
		return Empty
	case w.format == document || w.format == opaque:
		return Complete
	}
	return w.judgeStreamEnd()
}

func (w *Watcher) judgeStreamEnd() Ending {
	switch {
	case w.terminal && (w.content || w.finish):
		return Complete
	case w.torn:
		return Cut
	case !w.content && !w.finish && (w.recognised || w.dialect != dialect.None):
		return Empty
	case (w.demand || w.loose) && !w.terminal:
		return Cut
	}
	return Complete
}
