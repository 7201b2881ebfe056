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

const sseType = "text/event-stream; charset=utf-8"

// watch feeds a body in pieces of n bytes, all at once for 0.
func watch(d dialect.Dialect, contentType, body string, n int) *Watcher {
	w := New(d, contentType, true)
	if n == 0 {
		n = max(1, len(body))
	}
	for p := []byte(body); len(p) > 0; {
		k := min(n, len(p))
		w.Write(p[:k:k])
		p = p[k:]
	}
	return w
}

// data writes each text as an event without a name.
func data(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// named writes typed events with their event line, as OpenAI's responses and
// Anthropic do.
func named(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		typ := string(text(member([]byte(e), "type")))
		b.WriteString("event: " + typ + "\ndata: " + e + "\n\n")
	}
	return b.String()
}

const (
	role   = `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"error":null}`
	hello  = `{"id":"c","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}`
	stop   = `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usage  = `{"id":"c","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}}`
	done   = `[DONE]`
	filter = `{"choices":[],"created":0,"id":"","model":"","prompt_filter_results":[{"prompt_index":0}]}`

	created   = `{"type":"response.created","response":{"id":"r","status":"in_progress","error":null,"usage":null}}`
	textDelta = `{"type":"response.output_text.delta","delta":"Hi"}`
	completed = `{"type":"response.completed","response":{"id":"r","error":null,"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":2},"output_tokens":3}}}`
	respFail  = `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_is_overloaded","message":"busy"}}}`

	msgStart   = `{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":30,"cache_creation_input_tokens":2,"output_tokens":1}}}`
	blockStart = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	blockDelta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`
	msgDelta   = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`
	msgStop    = `{"type":"message_stop"}`
	ping       = `{"type":"ping"}`
	overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`

	gemText = `{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4}}`
	gemStop = `{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4,"cachedContentTokenCount":1,"candidatesTokenCount":2,"thoughtsTokenCount":3}}`
)

type streamCase struct {
	name    string
	dialect dialect.Dialect
	body    string
	ending  Ending
	content bool
	failure string // type, code and status
	usage   Usage
}

var streamCases = []streamCase{
	{name: "chat", body: data(role, hello, stop, usage, done), content: true, usage: Usage{12, 4, 5}},
	{name: "chat without DONE", body: data(role, hello, stop), content: true},
	{name: "chat without finish reason", body: data(role, hello, done), content: true},
	{name: "chat cut", body: data(role, hello), ending: Cut, content: true},
	{name: "chat of a role only", body: data(role), ending: Empty},
	{name: "role and DONE", body: data(role, done), ending: Empty},
	{name: "only DONE", body: data(done), ending: Empty},
	{name: "nothing", body: "", ending: Empty},
	{name: "only comments", body: ": ping\n\n: ping\n\n", ending: Empty},
	{name: "only blank lines", body: "\n\n\n", ending: Empty},
	{name: "stop without content", body: data(role, stop, done)},
	{name: "content filter", body: data(role, `{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, done)},
	{name: "length", body: data(hello, `{"choices":[{"delta":{},"finish_reason":"length"}]}`, done), content: true},
	{name: "azure prompt filter first", dialect: dialect.Azure, body: data(filter, role, hello, stop, done), content: true},
	{name: "azure filter without delta", dialect: dialect.Azure, body: data(`{"choices":[{"content_filter_results":{"hate":{"filtered":false}},"finish_reason":null,"index":0}]}`, done), ending: Empty},
	{name: "tool call", body: data(`{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}`, done), content: true},
	{name: "no tool calls", body: data(`{"choices":[{"delta":{"content":null,"tool_calls":[]}}]}`, done), ending: Empty},
	{name: "reasoning", body: data(`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, done), content: true},
	{name: "refusal", body: data(`{"choices":[{"delta":{"refusal":"no"}}]}`, stop, done), content: true},
	{name: "audio", body: data(`{"choices":[{"delta":{"audio":{"data":"AA=="}}}]}`, stop), content: true},
	{name: "content in parts", body: data(`{"choices":[{"delta":{"content":[{"type":"text","text":"x"}]}}]}`, done), content: true},
	{name: "older completions", body: data(`{"choices":[{"text":"Hi","finish_reason":null}]}`, `{"choices":[{"text":"","finish_reason":"stop"}]}`, done), content: true},
	{name: "names of members in the text", body: data(`{"choices":[{"delta":{"content":"error"}}]}`, `{"choices":[{"delta":{"content":"{\"error\":{\"code\":1},\"finish_reason\":\"error\"}"}}]}`, done), content: true},
	{name: "groq usage", body: data(hello, `{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":2}}}`, done), content: true, usage: Usage{3, 0, 2}},
	{name: "kimi usage", body: data(hello, `{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":2}}]}`, done), content: true, usage: Usage{3, 0, 2}},
	{name: "deepseek usage", body: data(hello, stop, `{"choices":[],"usage":{"prompt_tokens":3,"prompt_cache_hit_tokens":2,"completion_tokens":2}}`, done), content: true, usage: Usage{3, 2, 2}},
	{name: "keep-alive comments", body: ": keep-alive\n\n" + data(hello) + ": OPENROUTER PROCESSING\n\n" + data(stop), content: true},
	{name: "id and retry fields", body: "id: 1\nretry: 100\n" + data(hello) + "id\n" + data(stop), content: true},

	{name: "error object", body: data(`{"error":{"message":"x","type":"server_error","code":null}}`), ending: Failed, failure: "server_error//0"},
	{name: "error then DONE", body: data(`{"error":{"message":"x","type":"BadRequestError","code":400}}`, done), ending: Failed, failure: "BadRequestError/400/400"},
	{name: "error after content", body: data(hello, `{"error":{"message":"x","code":"c"}}`, done), ending: Failed, content: true, failure: "/c/0"},
	{name: "error text", body: data(`{"error":"boom","error_type":"generation"}`), ending: Failed, failure: "//0"},
	{name: "error null", body: data(`{"error":null,"choices":[{"delta":{"content":"x"}}]}`, done), content: true},
	{name: "error of nulls", body: data(`{"error":{"code":null,"message":null},"choices":[{"delta":{"content":"x"}}]}`, done), content: true},
	{name: "error empty text", body: data(`{"error":"","choices":[{"delta":{"content":"x"}}]}`, done), content: true},
	{name: "error empty object", body: data(`{"error":{}}`), ending: Failed, failure: "//0"},
	{name: "openrouter", body: data(`{"id":"g","error":{"code":502,"message":"x","metadata":{"error_type":"provider_overloaded"}},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`), ending: Failed, failure: "provider_overloaded/502/502"},
	{name: "finish reason error", body: data(hello, `{"choices":[{"delta":{},"finish_reason":"error"}]}`, done), ending: Failed, content: true, failure: "finish_reason/error/0"},
	{name: "network_error", body: data(`{"choices":[{"delta":{},"finish_reason":"network_error"}]}`), ending: Failed, failure: "finish_reason/network_error/0"},
	{name: "insufficient_system_resource", body: data(`{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}`), ending: Failed, failure: "finish_reason/insufficient_system_resource/0"},
	{name: "error event, flat", body: "event: error\n" + data(`{"message":"x","code":"c"}`), ending: Failed, failure: "/c/0"},
	{name: "error event, text", body: "event: error\n" + data(`boom`), ending: Failed, failure: "//0"},
	{name: "error event, no data", body: "event: error\n\n", ending: Failed, failure: "//0"},
	{name: "error field", body: "error: {\"code\":500,\"message\":\"x\"}\n\n", ending: Failed, failure: "/500/500"},
	{name: "flat error object", body: data(`{"object":"error","message":"x","type":"NotFoundError","code":404}`), ending: Failed, failure: "NotFoundError/404/404"},

	{name: "responses", body: named(created, textDelta, completed), content: true, usage: Usage{9, 2, 3}},
	{name: "responses cut", body: named(created, textDelta), ending: Cut, content: true},
	{name: "responses lifecycle only", body: named(created, `{"type":"response.in_progress"}`, `{"type":"response.output_item.added","item":{}}`), ending: Empty},
	{name: "responses incomplete", body: named(created, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`)},
	{name: "responses failed", body: named(created, respFail), ending: Failed, failure: "response.failed/server_is_overloaded/0"},
	{name: "responses flat error", body: named(created, `{"type":"error","code":"rate_limit_exceeded","message":"x","param":null}`), ending: Failed, failure: "/rate_limit_exceeded/0"},
	{name: "responses nested error", body: named(created, `{"type":"response.in_progress"}`, `{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"x"}}`), ending: Failed, failure: "insufficient_quota/insufficient_quota/0"},
	{name: "responses tool arguments", body: named(created, `{"type":"response.function_call_arguments.delta","delta":"{"}`, completed), content: true, usage: Usage{9, 2, 3}},
	{name: "transcript", body: named(`{"type":"transcript.text.delta","delta":"a"}`, `{"type":"transcript.text.done","text":"a","usage":{"input_tokens":1,"output_tokens":2}}`), content: true, usage: Usage{1, 0, 2}},
	{name: "transcript cut", body: named(`{"type":"transcript.text.delta","delta":"a"}`), ending: Cut, content: true},
	{name: "speech", body: named(`{"type":"speech.audio.delta","audio":"AA"}`, `{"type":"speech.audio.done"}`), content: true},
	{name: "image", body: named(`{"type":"image_generation.partial_image","b64_json":"AA"}`, `{"type":"image_generation.completed","b64_json":"AA"}`), content: true},
	{name: "image edit cut", body: named(`{"type":"image_edit.partial_image","b64_json":"AA"}`), ending: Cut, content: true},

	{name: "messages", dialect: dialect.Anthropic, body: named(msgStart, ping, blockStart, blockDelta, msgDelta, msgStop), content: true, usage: Usage{42, 30, 7}},
	{name: "messages without stop", dialect: dialect.Anthropic, body: named(msgStart, blockStart, blockDelta, msgDelta), ending: Cut, content: true, usage: Usage{42, 30, 7}},
	{name: "messages with DONE for stop", dialect: dialect.Anthropic, body: named(msgStart, blockDelta) + data(done), ending: Cut, content: true, usage: Usage{42, 30, 1}},
	{name: "messages lifecycle only", dialect: dialect.Anthropic, body: named(msgStart, ping, blockStart), ending: Empty, usage: Usage{42, 30, 1}},
	{name: "messages start and stop", dialect: dialect.Anthropic, body: named(msgStart, msgStop), ending: Empty, usage: Usage{42, 30, 1}},
	{name: "messages refusal", dialect: dialect.Anthropic, body: named(msgStart, `{"type":"message_delta","delta":{"stop_reason":"refusal"}}`, msgStop), usage: Usage{42, 30, 1}},
	{name: "messages error first", dialect: dialect.Anthropic, body: named(overloaded), ending: Failed, failure: "overloaded_error//0"},
	{name: "messages error after lifecycle", dialect: dialect.Anthropic, body: named(msgStart, ping, overloaded), ending: Failed, failure: "overloaded_error//0", usage: Usage{42, 30, 1}},
	{name: "messages error code", dialect: dialect.Anthropic, body: named(`{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`), ending: Failed, failure: "rate_limit_error/enforced_spend_limit_reached/0"},
	{name: "messages without event lines", dialect: dialect.Anthropic, body: data(msgStart, blockDelta, msgDelta, msgStop), content: true, usage: Usage{42, 30, 7}},
	{name: "messages redacted reasoning", dialect: dialect.Anthropic, body: named(msgStart, `{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"x"}}`, msgStop), content: true, usage: Usage{42, 30, 1}},
	{name: "messages tool start only", dialect: dialect.Anthropic, body: named(`{"type":"content_block_start","content_block":{"type":"tool_use","name":"f","input":{}}}`), ending: Empty},

	{name: "gemini", dialect: dialect.Gemini, body: data(gemText, gemStop), content: true, usage: Usage{4, 1, 5}},
	{name: "gemini cut", dialect: dialect.Gemini, body: data(gemText), ending: Cut, content: true, usage: Usage{4, 0, 0}},
	{name: "gemini block", dialect: dialect.Gemini, body: data(`{"promptFeedback":{"blockReason":"SAFETY"}}`)},
	{name: "gemini safety", dialect: dialect.Gemini, body: data(`{"candidates":[{"finishReason":"SAFETY","index":0}]}`)},
	{name: "gemini ratings are no block", dialect: dialect.Gemini, body: data(`{"promptFeedback":{"safetyRatings":[{}]},"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`), ending: Cut, content: true},
	{name: "gemini function call", dialect: dialect.Gemini, body: data(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}`), content: true},
	{name: "gemini error", dialect: dialect.Gemini, body: data(`{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}`), ending: Failed, failure: "UNAVAILABLE/503/503"},
	{name: "gemini no candidates", dialect: dialect.Gemini, body: data(`{"usageMetadata":{"promptTokenCount":4}}`), ending: Empty, usage: Usage{4, 0, 0}},

	{name: "cohere", dialect: dialect.Cohere, body: named(`{"type":"message-start"}`, `{"type":"content-start","delta":{"message":{"content":{"type":"text","text":""}}}}`, `{"type":"content-delta","delta":{"message":{"content":{"text":"x"}}}}`, `{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":1,"output_tokens":2},"tokens":{"input_tokens":3,"output_tokens":4}}}}`), content: true, usage: Usage{3, 0, 4}},
	{name: "cohere cut", dialect: dialect.Cohere, body: named(`{"type":"message-start"}`, `{"type":"content-delta","delta":{"message":{"content":{"text":"x"}}}}`), ending: Cut, content: true},
	{name: "cohere starts only", dialect: dialect.Cohere, body: named(`{"type":"message-start"}`, `{"type":"content-start","delta":{"message":{"content":{"type":"text","text":""}}}}`), ending: Empty},
	{name: "cohere tool plan", dialect: dialect.Cohere, body: named(`{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"x"}}}`, `{"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}`), content: true},
	{name: "cohere error", dialect: dialect.Cohere, body: named(`{"type":"message-start"}`, `{"type":"message-end","delta":{"finish_reason":"ERROR"}}`), ending: Failed, failure: "finish_reason/ERROR/0"},
	{name: "cohere timeout", dialect: dialect.Cohere, body: named(`{"type":"message-end","delta":{"finish_reason":"TIMEOUT"}}`), ending: Failed, failure: "finish_reason/TIMEOUT/0"},

	{name: "unknown events of an unknown path", dialect: dialect.None, body: "event: chat.start\ndata: {\"a\":1}\n\n"},
	{name: "error on an unknown path", dialect: dialect.None, body: data(`{"error":"x"}`), ending: Failed, failure: "//0"},
	{name: "chat on an unknown path", dialect: dialect.None, body: data(hello), ending: Cut, content: true},
	{name: "unknown events of a known path", body: data(`{"a":1}`), ending: Empty},
	{name: "unknown deltas of a known path", body: data(`{"type":"content.delta","x":1}`), content: true},
	{name: "text that is no JSON", body: data("hello"), ending: Empty},
	{name: "markup", body: "<html>\n\n<p>data: x\n", ending: Empty},
}

// framings writes the same events in every way a server may.
var framings = map[string]func(string) string{
	"LF":             func(s string) string { return s },
	"CRLF":           func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"CR":             func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
	"mixed":          func(s string) string { return strings.ReplaceAll(s, "\n\n", "\r\n\n") },
	"BOM":            func(s string) string { return "\xef\xbb\xbf" + s },
	"no space":       func(s string) string { return strings.ReplaceAll(s, "data: ", "data:") },
	"comments":       func(s string) string { return ": x\n" + strings.ReplaceAll(s, "data: ", ": \"y\ndata: ") },
	"multi-line":     func(s string) string { return strings.ReplaceAll(s, "data: {", "data: {\ndata: ") },
	"line separator": func(s string) string { return strings.ReplaceAll(s, "Hello", "He\u2028llo") },
}

func TestSameVerdictForEveryFraming(t *testing.T) {
	for _, c := range streamCases {
		if c.dialect == dialect.None && !strings.Contains(c.name, "unknown path") {
			c.dialect = dialect.OpenAI
		}
		for name, frame := range framings {
			if name == "comments" && c.body == "" || name == "BOM" && c.name == "markup" {
				continue
			}
			for _, n := range []int{0, 1, 7} {
				t.Run(fmt.Sprintf("%s/%s/%d", c.name, name, n), func(t *testing.T) {
					checkStream(t, c, frame(c.body), n)
				})
			}
		}
	}
}

func TestLastEventWithoutItsBlankLine(t *testing.T) {
	for _, c := range streamCases {
		if c.dialect == dialect.None {
			c.dialect = dialect.OpenAI
		}
		if !strings.HasSuffix(c.body, "}\n\n") && !strings.HasSuffix(c.body, "]\n\n") || strings.HasPrefix(c.name, "unknown") {
			continue
		}
		for cut := 1; cut <= 2; cut++ {
			t.Run(fmt.Sprintf("%s/%d", c.name, cut), func(t *testing.T) {
				checkEnd(t, c, watch(c.dialect, sseType, c.body[:len(c.body)-cut], 5))
			})
		}
	}
}

func checkStream(t *testing.T, c streamCase, body string, n int) {
	t.Helper()
	w := watch(c.dialect, sseType, body, n)
	if w.Content() != c.content {
		t.Errorf("content = %v before the end, want %v", w.Content(), c.content)
	}
	if w.JSON() || !w.Stream() {
		t.Error("an event stream is taken for a document")
	}
	checkEnd(t, c, w)
}

func checkEnd(t *testing.T, c streamCase, w *Watcher) {
	t.Helper()
	if got := w.End(); got != c.ending {
		t.Errorf("ending = %v, want %v", got, c.ending)
	}
	if got := w.End(); got != c.ending {
		t.Errorf("second End = %v, want %v", got, c.ending)
	}
	if got := failureText(w.Failure()); got != c.failure {
		t.Errorf("failure = %q, want %q", got, c.failure)
	}
	if w.Content() != c.content {
		t.Errorf("content = %v, want %v", w.Content(), c.content)
	}
	if w.Usage() != c.usage {
		t.Errorf("usage = %+v, want %+v", w.Usage(), c.usage)
	}
}

func failureText(e *Event) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s/%d", e.Type, e.Code, e.Status)
}

func TestStreamThatBreaksOffWithinAnEvent(t *testing.T) {
	for _, tail := range []string{
		`data: {"choices":[{"delta":{"content":"Hel`,
		`data: {"choices":[{"delta":{},"finish_reason":"st`,
		`data: {"choices":[{"delta":{},"finish_reason":"stop"}`,
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]\n",
	} {
		w := watch(dialect.OpenAI, sseType, data(role)+tail, 3)
		if !w.Pending() {
			t.Errorf("%q: not pending", tail)
		}
		if got := w.End(); got != Cut {
			t.Errorf("%q: %v, want cut", tail, got)
		}
	}
}

func TestUnterminatedUnknownEventIsCut(t *testing.T) {
	w := watch(dialect.None, sseType, "data: {\"a\":1}\n", 0)
	if got := w.End(); got != Cut {
		t.Errorf("got %v, want cut", got)
	}
}

func TestContentIsSeenWithItsEvent(t *testing.T) {
	w := New(dialect.OpenAI, sseType, true)
	body := data(hello)
	for i := range len(body) {
		if w.Content() {
			t.Fatalf("content after %d of %d bytes", i, len(body))
		}
		w.Write([]byte{body[i]})
	}
	if !w.Content() || w.Terminal() || w.Pending() {
		t.Errorf("content %v, terminal %v, pending %v", w.Content(), w.Terminal(), w.Pending())
	}
	w.Write([]byte(data(stop)))
	if !w.Terminal() {
		t.Error("a finish reason is not terminal")
	}
}

func TestNothingToWatch(t *testing.T) {
	for _, typ := range []string{"", "audio/mpeg", "text/plain", "application/octet-stream"} {
		w := New(dialect.OpenAI, typ, false)
		if w != nil {
			t.Errorf("%q: watched", typ)
		}
		w.Write([]byte("x"))
		if w.Content() || w.Terminal() || w.Pending() || w.JSON() || w.Stream() || w.Failure() != nil || w.Usage() != (Usage{}) || w.End() != Complete {
			t.Errorf("%q: a nil watcher knows of something", typ)
		}
	}
}

func TestUnknownFormatIsJudgedByItsBeingEmpty(t *testing.T) {
	w := New(dialect.OpenAI, "audio/mpeg", true)
	if w.Content() || w.End() != Empty {
		t.Error("an empty body is not empty")
	}
	w = watch(dialect.OpenAI, "audio/mpeg", "x", 0)
	if w.Content() || w.Stream() || w.JSON() {
		t.Error("taken for a stream or a document")
	}
	if w.End() != Complete || !w.Content() {
		t.Error("a byte is not an answer")
	}
}

func TestStreamsThatAnswerNoModelAreJudgedByErrorsOnly(t *testing.T) {
	for body, want := range map[string]Ending{
		"":                        Complete,
		data(hello):               Complete,
		named(created, textDelta): Complete,
		data(`{"error":"x"}`):     Failed,
		data(`{"id":"batch","status":"failed","error":{"code":"x"}}`): Complete,
	} {
		w := New(dialect.OpenAI, sseType, false)
		w.Write([]byte(body))
		if got := w.End(); got != want {
			t.Errorf("%q: %v, want %v", body, got, want)
		}
	}
}

func TestEndingNames(t *testing.T) {
	for e, want := range map[Ending]string{Complete: "complete", Cut: "cut", Empty: "empty", Failed: "failed", 99: "unknown"} {
		if e.String() != want {
			t.Errorf("%d is %q, want %q", e, e, want)
		}
	}
}
