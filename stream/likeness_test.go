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
	"fmt"
	"strings"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// apart reads each event as though nothing had been remembered.
func apart(d dialect.Dialect, events []string) *Watcher {
	w := New(d, sseType, true)
	for _, e := range events {
		w.like.reset()
		w.Write([]byte(e))
	}
	return w
}

func together(d dialect.Dialect, events []string) *Watcher {
	w := New(d, sseType, true)
	for _, e := range events {
		w.Write([]byte(e))
	}
	return w
}

func facts(w *Watcher) string {
	return fmt.Sprint(w.content, w.finish, w.terminal, w.recognised, w.demand, w.arrived, failureText(w.Failure()), w.usage, w.End())
}

const chatForm = `{"id":"%s","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":%s}],"created":%s,"x":"%s"%s}`

// What an event means does not depend on those before it that it is like.
func TestEventsThatAreAlikeAreReadAlike(t *testing.T) {
	chat := func(id, content, finish, created, x, more string) string {
		return data(fmt.Sprintf(chatForm, id, content, finish, created, x, more))
	}
	hello := chat("c", "hello", "null", "1", "", "")
	hits := 0
	for name, event := range map[string]string{
		"another text":       chat("c", "other", "null", "2", "y", ""),
		"an empty text":      chat("c", "", "null", "2", "y", ""),
		"escapes":            chat("c", `a\"b\\`, "null", "-2.5e7", `\"`, ""),
		"a finish":           chat("c", "x", `"stop"`, "1", "", ""),
		"an error finish":    chat("c", "x", `"error"`, "1", "", ""),
		"an error":           chat("c", "x", "null", "1", "", `,"error":{"message":"m"}`),
		"an error in a text": chat("c", `x","error":"y`, "null", "1", "", ""),
		"no number":          chat("c", "x", "null", `"1"`, "", ""),
		"an object":          chat("c", "x", "null", `{"usage":1}`, "", ""),
		"usage":              chat("c", "x", "null", "1", "", `,"usage":{"prompt_tokens":5,"completion_tokens":6}`),
		"broken off":         strings.Replace(chat("c", "x", "null", "1", "", ""), `"}`+"\n", "\n", 1),
		"another name":       "event: error\n" + hello,
		"done":               data("[DONE]"),
		"not JSON":           data("hello"),
	} {
		events := []string{hello, hello, event, event, hello, chat("c", "y", "null", "3", "z", `,"usage":{"prompt_tokens":7}`)}
		a, b := apart(dialect.OpenAI, events), together(dialect.OpenAI, events)
		if got, want := facts(b), facts(a); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if name == "another text" {
			w := together(dialect.OpenAI, events[:3])
			hits = w.like.misses
		}
	}
	if hits != 0 {
		t.Errorf("an event with another text missed %d times", hits)
	}
}

// Usage is read in every event, also in those that are like the one before.
func TestUsageOfLikeEventsIsRead(t *testing.T) {
	w := New(dialect.Gemini, sseType, true)
	for n := range 5 {
		w.Write([]byte(data(fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":"w%d"}]}}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":%d}}`, n, n+1))))
	}
	if w.like.misses != 0 || w.Usage() != (Usage{Input: 3, Output: 5}) {
		t.Errorf("%d misses, %+v", w.like.misses, w.Usage())
	}
}

func FuzzLikeEvents(f *testing.F) {
	hello := data(fmt.Sprintf(chatForm, "c", "hello", "null", "1", "", ""))
	for _, c := range streamCases {
		f.Add(hello+hello+c.body+hello, uint8(c.dialect))
		f.Add(c.body+c.body, uint8(c.dialect))
	}
	f.Fuzz(func(t *testing.T, body string, d uint8) {
		events := strings.SplitAfter(body, "\n\n")
		a, b := apart(dialect.Dialect(d%8), events), together(dialect.Dialect(d%8), events)
		if got, want := facts(b), facts(a); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
