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
	if usage, ok := w.like.fits(name, data); ok {
		w.like.misses = 0
		w.usage.take(usage)
		return
	}
	w.arrived = true
	if isDone(data) {
		w.doneMark()
		return
	}
	var f fields
	var buf [maxHoles][]byte
	plain := buf[:0] // values that tell nothing
	for m := membersOf(data); m.next(); {
		if slot := f.slot(m.key); slot != nil {
			*slot = m.val
		} else if len(plain) < cap(plain) {
			plain = append(plain, m.val)
		}
	}
	typ := text(f.typ)
	if len(typ) == 0 {
		typ = name
	}
	w.said = nil
	over := w.finish || w.terminal
	w.readUsage(&f)
	if w.findFailure(string(name) == "error", typ, &f, data) {
		return
	}
	w.progress(typ, &f)
	if w.said != nil && !over && !w.finish && !w.terminal && w.failure == nil && w.like.learns(data) {
		w.like.learn(name, data, plain, w.said, f.usage)
	}
}

// say notes content, which stands in that value; nil is none.
func (w *Watcher) say(raw []byte) {
	if raw != nil {
		w.content, w.said = true, raw
	}
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
		w.say(deltaSaid(val))
	case "text":
		w.say(said(val))
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

// deltaSaid returns what a delta has more than a role, nil if nothing.
func deltaSaid(delta []byte) []byte {
	for m := membersOf(delta); m.next(); {
		switch string(m.key) {
		case "role", "type", "name", "id":
		default:
			if says(m.val) {
				return m.val
			}
		}
	}
	return nil
}

func (w *Watcher) gemini(f *fields) {
	if says(member(f.promptFeedback, "blockReason")) {
		w.endOfAnswer()
	}
	for m, ok := objectIn(f.candidates); ok; m, ok = objectIn(m.after()) {
		for m.next() {
			switch string(m.key) {
			case "content":
				w.say(partsSaid(member(m.val, "parts")))
			case "finishReason":
				if r := text(m.val); len(r) > 0 && string(r) != "FINISH_REASON_UNSPECIFIED" {
					w.endOfAnswer()
				}
			}
		}
	}
}

func partsSaid(parts []byte) []byte {
	for m, ok := objectIn(parts); ok; m, ok = objectIn(m.after()) {
		for m.next() {
			if says(m.val) {
				return m.val
			}
		}
	}
	return nil
}

func (w *Watcher) ollama(f *fields) {
	for _, raw := range [...][]byte{deltaSaid(f.message), said(f.response), said(f.thinking)} {
		w.say(raw)
	}
	if string(f.done) == "true" {
		w.endOfAnswer()
	}
}
