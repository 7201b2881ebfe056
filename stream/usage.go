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

// tally gathers one report of usage.
type tally struct {
	in, out, cached int64
	more            int64 // input that the dialect counts apart from in
}

// readUsage takes the report of an event, wherever its family puts it. Reports
// are running totals, so that a later one replaces an earlier one.
func (w *Watcher) readUsage(f *fields) {
	var t tally
	t.read(f.usage)
	for _, holder := range [...][]byte{f.groq, f.message, f.delta, f.response} {
		if isObject(holder) {
			t.read(member(holder, "usage"))
		}
	}
	t.read(f.meta)
	if f.promptCount != nil || f.outputCount != nil {
		t.in, t.out = number(f.promptCount), number(f.outputCount)
	}
	w.usage.take(t)
}

func (u *Usage) take(t tally) {
	if n := t.in + t.more; n > 0 {
		u.Input = n
	}
	if t.out > 0 {
		u.Output = t.out
	}
	if t.cached > 0 {
		u.Cached = t.cached
	}
}

func (t *tally) read(raw []byte) {
	if isObject(raw) {
		t.readFrom(raw)
	}
}

// readFrom reads the object that raw begins with, and returns what follows it;
// nil if it breaks off.
func (t *tally) readFrom(raw []byte) (rest []byte) {
	var thoughts, tools int64
	var billed, processed []byte // Cohere's
	m := membersOf(raw)
	for m.next() {
		switch string(m.key) {
		case "prompt_tokens", "input_tokens", "inputTokens", "promptTokenCount":
			t.in = number(m.val)
		case "completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount":
			t.out = number(m.val)
		case "thoughtsTokenCount":
			thoughts = number(m.val)
		case "toolUsePromptTokenCount":
			tools = number(m.val)
		case "prompt_tokens_details", "input_tokens_details":
			t.cached = max(t.cached, number(member(m.val, "cached_tokens")))
		case "prompt_cache_hit_tokens", "cachedContentTokenCount":
			t.cached = max(t.cached, number(m.val))
		case "cache_read_input_tokens", "cacheReadInputTokens":
			t.cached = number(m.val)
			t.more += t.cached
		case "cache_creation_input_tokens", "cacheWriteInputTokens":
			t.more += number(m.val)
		case "billed_units":
			billed = m.val
		case "tokens":
			processed = m.val
		}
	}
	t.out += thoughts
	t.more += tools
	t.readUnits(billed)
	t.readUnits(processed) // preferred to what is billed
	return m.after()
}

func (t *tally) readUnits(raw []byte) {
	for m := membersOf(raw); m.next(); {
		switch string(m.key) {
		case "input_tokens":
			t.in = number(m.val)
		case "output_tokens":
			t.out = number(m.val)
		}
	}
}
