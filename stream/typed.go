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

// typed reads events that carry a type: Anthropic's, Cohere's, and those of
// OpenAI's responses, audio and images.
func (w *Watcher) typed(typ []byte, f *fields) {
	switch string(typ) {
	case "ping", "keepalive":
	case "message_start", "content_block_stop":
		w.family()
	case "content_block_start":
		w.family()
		w.content = w.content || wholeBlock(f.block)
	case "content_block_delta":
		w.family()
		w.say(deltaSaid(f.delta))
	case "message_delta":
		w.family()
		w.stop(member(f.delta, "stop_reason"))
	case "message_stop":
		w.family()
		w.terminal = true
	case "message-start", "content-start", "content-end", "tool-call-end", "citation-end":
		w.family()
	case "content-delta", "tool-plan-delta", "tool-call-start", "tool-call-delta", "citation-start":
		w.family()
		w.say(cohereSaid(f.delta))
	case "message-end":
		w.family()
		w.terminal = true
		w.finishReason(text(member(f.delta, "finish_reason")))
	default:
		w.dotted(typ, f)
	}
}

// wholeBlock reports whether a block comes with its start, as the results of
// server tools and redacted reasoning do. The others come in deltas.
func wholeBlock(block []byte) bool {
	typ := text(member(block, "type"))
	switch string(typ) {
	case "", "text", "thinking":
		return false
	}
	return !bytes.HasSuffix(typ, []byte("tool_use"))
}

// cohereSaid looks for a string that is not empty in {"message":{"content":
// {"text"}}} and its like.
func cohereSaid(delta []byte) []byte {
	message := member(delta, "message")
	for m := membersOf(message); m.next(); {
		if !isObject(m.val) && says(m.val) {
			return m.val
		}
		if raw := deltaSaid(m.val); raw != nil {
			return raw
		}
	}
	return nil
}

// dotted reads the types of OpenAI.
func (w *Watcher) dotted(typ []byte, f *fields) {
	kind, step := splitType(typ)
	switch string(kind) {
	case "response":
		w.family()
		w.responseStep(step, f)
	case "transcript", "speech", "image_generation", "image_edit":
		w.family()
		w.content = true
		if s := string(step); s == "done" || s == "completed" {
			w.endOfAnswer()
		}
	default:
		// An unknown family: its deltas are content, its end is not known.
		if bytes.HasSuffix(typ, []byte("delta")) {
			w.recognised, w.content = true, true
		}
	}
}

func (w *Watcher) responseStep(step []byte, f *fields) {
	switch string(step) {
	case "completed", "incomplete":
		w.endOfAnswer()
	case "delta":
		w.content = w.content || f.delta == nil
		w.say(said(f.delta))
	case "done", "partial_image":
		w.content = true
	}
}

// splitType returns what stands before the first and after the last dot.
func splitType(typ []byte) (kind, step []byte) {
	first, last := bytes.IndexByte(typ, '.'), bytes.LastIndexByte(typ, '.')
	if first < 0 {
		return nil, nil
	}
	return typ[:first], typ[last+1:]
}
