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

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// fields are the members of an event or document that tell what it is, as they
// stand in the text. The families of events share no names, so one judge reads
// them all: a stream is what its events are, whatever path it was asked for on.
type fields struct {
	id, typ, object, status         []byte
	err, code, message              []byte
	choices, delta, block, response []byte
	candidates, promptFeedback      []byte
	thinking, done, doneReason      []byte
	usage, groq, meta               []byte
	promptCount, outputCount        []byte
}

// slot returns where the member of that name belongs, nil if it tells nothing.
func (f *fields) slot(name []byte) *[]byte {
	switch string(name) {
	case "id":
		return &f.id
	case "type", "event_type":
		return &f.typ
	case "object":
		return &f.object
	case "status":
		return &f.status
	case "error":
		return &f.err
	case "code":
		return &f.code
	case "message":
		return &f.message
	case "choices":
		return &f.choices
	case "delta":
		return &f.delta
	case "content_block":
		return &f.block
	case "response":
		return &f.response
	case "candidates":
		return &f.candidates
	case "promptFeedback":
		return &f.promptFeedback
	case "thinking":
		return &f.thinking
	case "done":
		return &f.done
	case "done_reason":
		return &f.doneReason
	case "usage", "usageMetadata":
		return &f.usage
	case "x_groq":
		return &f.groq
	case "meta":
		return &f.meta
	case "prompt_eval_count":
		return &f.promptCount
	case "eval_count":
		return &f.outputCount
	}
	return nil
}

// event judges one event. The name is that of an event field, if it has one.
func (w *Watcher) event(name, data []byte) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 && string(name) != "error" {
		return
	}
	w.arrived = true
	if isDone(data) {
		w.doneMark()
		return
	}
	var f fields
	for m := membersOf(data); m.next(); {
		if slot := f.slot(m.key); slot != nil {
			*slot = m.val
		}
	}
	typ := text(f.typ)
	if len(typ) == 0 {
		typ = name
	}
	w.readUsage(&f)
	if w.findFailure(string(name) == "error", typ, &f, data) {
		return
	}
	w.progress(typ, &f)
}

// doneMark is no end where the dialect has another: an Anthropic or Gemini
// stream that has only this has lost its own.
func (w *Watcher) doneMark() {
	w.recognised = true
	if w.dialect != dialect.Anthropic && w.dialect != dialect.Gemini {
		w.terminal = true
	}
}

func (w *Watcher) progress(typ []byte, f *fields) {
	switch {
	case f.choices != nil:
		w.family()
		w.chat(f.choices)
	case f.candidates != nil || f.promptFeedback != nil:
		w.family()
		w.gemini(f)
	case f.done != nil:
		w.family()
		w.ollama(f)
	case len(typ) > 0:
		w.typed(typ, f)
	}
}

// family notes an event of a family whose streams have a terminal event.
func (w *Watcher) family() { w.recognised, w.demand = true, true }

func (w *Watcher) stop(reason []byte) {
	if len(text(reason)) > 0 {
		w.finish = true
	}
}

func (w *Watcher) endOfAnswer() { w.finish, w.terminal = true, true }

// chat reads chunks of chat completions and of the older completions.
func (w *Watcher) chat(choices []byte) {
	for m, ok := objectIn(choices); ok; m, ok = objectIn(m.after()) {
		for m.next() {
			w.choice(m.key, m.val)
		}
	}
}

func (w *Watcher) choice(key, val []byte) {
	switch string(key) {
	case "delta", "message":
		w.content = w.content || deltaSays(val)
	case "text":
		w.content = w.content || says(val)
	case "error":
		if isError(val) {
			w.fail(errorOf(val))
		}
	case "finish_reason":
		w.finishReason(text(val))
	case "usage": // Kimi
		var t tally
		t.read(val)
		w.usage.take(t)
	}
}

func (w *Watcher) finishReason(reason []byte) {
	if len(reason) == 0 {
		return
	}
	w.endOfAnswer()
	switch string(reason) {
	case "error", "network_error", "insufficient_system_resource", "ERROR", "TIMEOUT":
		w.fail(Event{Type: "finish_reason", Code: string(reason)})
	}
}

// deltaSays reports whether a delta has more than a role.
func deltaSays(delta []byte) bool {
	for m := membersOf(delta); m.next(); {
		switch string(m.key) {
		case "role", "type", "name", "id":
		default:
			if says(m.val) {
				return true
			}
		}
	}
	return false
}

func (w *Watcher) gemini(f *fields) {
	if says(member(f.promptFeedback, "blockReason")) {
		w.endOfAnswer()
	}
	for m, ok := objectIn(f.candidates); ok; m, ok = objectIn(m.after()) {
		for m.next() {
			switch string(m.key) {
			case "content":
				w.content = w.content || partsSay(member(m.val, "parts"))
			case "finishReason":
				if r := text(m.val); len(r) > 0 && string(r) != "FINISH_REASON_UNSPECIFIED" {
					w.endOfAnswer()
				}
			}
		}
	}
}

func partsSay(parts []byte) bool {
	for m, ok := objectIn(parts); ok; m, ok = objectIn(m.after()) {
		for m.next() {
			if says(m.val) {
				return true
			}
		}
	}
	return false
}

func (w *Watcher) ollama(f *fields) {
	w.content = w.content || deltaSays(f.message) || says(f.response) || says(f.thinking)
	if string(f.done) == "true" {
		w.endOfAnswer()
	}
}
