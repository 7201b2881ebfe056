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
	"strconv"
)

// fail keeps the first failure only: what follows is often its echo.
func (w *Watcher) fail(e Event) {
	if w.failure == nil {
		w.failure = &e
	}
}

// findFailure looks for an error in the members of an event or document, and
// reports whether there is one. The flag named tells that the event's name says
// so already.
func (w *Watcher) findFailure(named bool, typ []byte, f *fields, data []byte) bool {
	var e Event
	switch {
	case !w.model && f.id != nil:
		// The state of something stored, such as a failed batch, is no failure
		// to answer.
		return false
	case isError(f.err):
		e = errorOf(f.err)
		e.addFlat(f)
	case string(typ) == "response.failed":
		w.terminal = true
		e = errorOf(member(f.response, "error"))
		if e.Type == "" {
			e.Type = "response.failed"
		}
	case string(text(f.object)) == "response" && string(text(f.status)) == "failed":
		e = Event{Type: "response.failed"}
	case named || string(typ) == "error" || string(text(f.object)) == "error":
		e.addFlat(f)
		if e.Message == "" && !isObject(data) {
			e.Message = unquoted(data)
		}
	default:
		return false
	}
	w.recognised = true
	w.fail(e)
	return true
}

// isError reports whether the value of a member "error" is one: an object, but
// not one whose members are all null, or a text.
func isError(raw []byte) bool {
	if !isObject(raw) {
		return len(text(raw)) > 0
	}
	empty := true
	for m := membersOf(raw); m.next(); {
		empty = false
		if string(m.val) != "null" {
			return true
		}
	}
	return empty
}

// errorOf reads an error object or text.
func errorOf(raw []byte) Event {
	if !isObject(raw) {
		return Event{Message: unquoted(raw)}
	}
	var e Event
	var status string
	for m := membersOf(raw); m.next(); {
		switch string(m.key) {
		case "type":
			e.Type = unquoted(m.val)
		case "code":
			e.Code = unquoted(m.val)
		case "message":
			e.Message = unquoted(m.val)
		case "status":
			status = unquoted(m.val)
		case "metadata", "details":
			e.addDetail(m.val)
		}
	}
	e.Status = firstStatus(e.Code, status)
	if e.Type == "" && statusOf(status) == 0 {
		e.Type = status
	}
	return e
}

// addDetail takes the code that stands below an error whose own code is only a
// status or missing.
func (e *Event) addDetail(raw []byte) {
	for m := membersOf(raw); m.next(); {
		switch string(m.key) {
		case "error_type", "error_code":
			if e.Type == "" || string(m.key) == "error_code" && e.Code == "" {
				e.setDetail(string(m.key), unquoted(m.val))
			}
		}
	}
}

func (e *Event) setDetail(key, value string) {
	if key == "error_code" {
		e.Code = value
	} else {
		e.Type = value
	}
}

// addFlat fills in what stands beside the error rather than in it.
func (e *Event) addFlat(f *fields) {
	if e.Type == "" {
		if t := text(f.typ); !bytes.Equal(t, []byte("error")) {
			e.Type = string(t)
		}
	}
	if e.Code == "" {
		e.Code = unquoted(f.code)
	}
	if e.Message == "" {
		e.Message = unquoted(f.message)
	}
	if e.Status == 0 {
		e.Status = firstStatus(e.Code, unquoted(f.status))
	}
}

func firstStatus(values ...string) int {
	for _, v := range values {
		if n := statusOf(v); n != 0 {
			return n
		}
	}
	return 0
}

// statusOf returns the HTTP error status that a code is, 0 if it is none.
func statusOf(code string) int {
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return 0
}
