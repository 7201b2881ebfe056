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
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

const (
	jsonType  = "application/json; charset=utf-8"
	linesType = "application/x-ndjson"
)

func TestDocuments(t *testing.T) {
	big := strings.Repeat(`a\"{[\\`, 50_000)
	tests := []struct {
		name, body string
		ending     Ending
		failure    string
		usage      Usage
	}{
		{name: "chat", body: `{"id":"c","choices":[{"message":{"content":"x, \"error\": {"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":6}}`, usage: Usage{5, 0, 6}},
		{name: "messages", body: `{"type":"message","content":[{"type":"error","error":{"a":1}}],"usage":{"input_tokens":5,"output_tokens":6}}`, usage: Usage{5, 0, 6}},
		{name: "gemini", body: `{"candidates":[],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":6}}`, usage: Usage{5, 0, 6}},
		{name: "gemini array", body: `[{"candidates":[{}],"usageMetadata":{"promptTokenCount":5}},` + "\r\n" + `{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":6}}]`, usage: Usage{5, 0, 6}},
		{name: "ollama", body: `{"message":{"role":"assistant","content":"x"},"done":true,"prompt_eval_count":5,"eval_count":6}`, usage: Usage{5, 0, 6}},
		{name: "cohere rerank", body: `{"results":[],"meta":{"tokens":{"input_tokens":5,"output_tokens":6}}}`, usage: Usage{5, 0, 6}},
		{name: "usage behind a large text", body: `{"choices":[{"message":{"content":"` + big + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":6}}`, usage: Usage{5, 0, 6}},
		{name: "blank lines before", body: "\n\n \r\n{}"},
		{name: "scalar", body: `"x"`},
		{name: "two in a row", body: "{\"a\":[1,{}],\"id\":\"x\"}\n{\"a\":2}\n"},
		{name: "nested keys first", body: `{"a":{"error":"x","b":[{"error":"y"},1,"error"]},"error":null}`},
		{name: "empty", body: "", ending: Empty},
		{name: "blank", body: "\n \n", ending: Empty},
		{name: "cut in an array", body: `{"data":[1,2`, ending: Cut},
		{name: "cut in a string", body: `{"data":"x`, ending: Cut},
		{name: "cut behind an escape", body: `{"data":"x\`, ending: Cut},
		{name: "cut before the last brace", body: `{"data":"x}"`, ending: Cut},
		{name: "error object", body: `{"error":{"message":"x","type":"t","code":"c"}}`, ending: Failed, failure: "t/c/0"},
		{name: "error text", body: `{"error":"x"}`, ending: Failed, failure: "//0"},
		{name: "error null", body: `{"error":null}`},
		{name: "error empty", body: `{"error":""}`},
		{name: "error typed", body: `{"type":"error","error":{"type":"api_error","message":"x"},"request_id":"r"}`, ending: Failed, failure: "api_error//0"},
		{name: "error in an array", body: `[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}]`, ending: Failed, failure: "RESOURCE_EXHAUSTED/429/429"},
		{name: "error in a later element", body: `[{"candidates":[]},{"error":{"code":500,"status":"INTERNAL"}}]`, ending: Failed, failure: "INTERNAL/500/500"},
		{name: "error flat", body: `{"object":"error","message":"x","type":"t","code":"3505"}`, ending: Failed, failure: "t/3505/0"},
		{name: "error last", body: `{"id":"x","choices":[{"a":[1,2,{"b":"}"}]}],"error":{"code":502,"message":"x"}}`, ending: Failed, failure: "/502/502"},
		{name: "error cut", body: `{"error":{"message":"x"},"a":[`, ending: Failed, failure: "//0"},
		{name: "response", body: `{"id":"r","object":"response","status":"completed","error":null}`},
		{name: "response failed", body: `{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"x"}}`, ending: Failed, failure: "/server_error/0"},
		{name: "response failed without error", body: `{"id":"r","object":"response","status":"failed","error":null}`, ending: Failed, failure: "response.failed//0"},
		{name: "choice failed", body: `{"id":"c","choices":[{"message":{"content":"` + big + `"},"finish_reason":"insufficient_system_resource"}]}`, ending: Failed, failure: "finish_reason/insufficient_system_resource/0"},
		{name: "markup", body: "<!DOCTYPE html><html>", ending: Failed, failure: "markup//0"},
		{name: "depth", body: strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000)},
		{name: "depth cut", body: strings.Repeat(`{"a":`, 20_000), ending: Cut},
	}
	for _, tt := range tests {
		for _, n := range []int{0, 1, 13} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, n), func(t *testing.T) {
				w := watch(dialect.OpenAI, jsonType, tt.body, n)
				if w.Content() || !w.JSON() {
					t.Errorf("content %v, JSON %v before the end", w.Content(), w.JSON())
				}
				if got := w.End(); tt.name != "error cut" && got != tt.ending {
					t.Errorf("ending = %v, want %v", got, tt.ending)
				}
				if got := failureText(w.Failure()); tt.name != "error cut" && got != tt.failure {
					t.Errorf("failure = %q, want %q", got, tt.failure)
				}
				if w.Usage() != tt.usage {
					t.Errorf("usage = %+v, want %+v", w.Usage(), tt.usage)
				}
			})
		}
	}
}

func TestDocumentsThatAnswerNoModel(t *testing.T) {
	for body, want := range map[string]Ending{
		"": Complete,
		`{"id":"f","object":"fine_tuning.job","error":{"code":"x","message":"y"}}`: Complete,
		`{"error":{"message":"x"}}`: Failed,
		`{"data":[`:                 Cut,
	} {
		w := New(dialect.OpenAI, jsonType, false)
		w.Write([]byte(body))
		if got := w.End(); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}

func TestJSONLines(t *testing.T) {
	const (
		word = `{"model":"m","message":{"role":"assistant","content":"x"},"done":false}` + "\n"
		last = `{"model":"m","message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":4}` + "\n"
	)
	used := Usage{3, 0, 4}
	tests := []streamCase{
		{name: "chat", body: word + word + last, content: true, usage: used},
		{name: "no last line feed", body: word + strings.TrimSpace(last), content: true, usage: used},
		{name: "CRLF", body: strings.ReplaceAll(word+last, "\n", "\r\n"), content: true, usage: used},
		{name: "generate", body: `{"response":"x","done":false}` + "\n" + last, content: true, usage: used},
		{name: "thinking", body: `{"message":{"content":"","thinking":"x"},"done":false}` + "\n" + last, content: true, usage: used},
		{name: "model load", body: `{"response":"","done":true,"done_reason":"load"}` + "\n"},
		{name: "cut", body: word, ending: Cut, content: true},
		{name: "cut in a line", body: word + last[:20], ending: Cut, content: true},
		{name: "role only", body: `{"message":{"role":"assistant","content":""},"done":false}` + "\n", ending: Empty},
		{name: "empty", body: "", ending: Empty},
		{name: "error", body: `{"error":"model runner has unexpectedly stopped"}` + "\n", ending: Failed, failure: "//0"},
		{name: "error after words", body: word + `{"error":"x"}`, ending: Failed, content: true, failure: "//0"},
	}
	for _, c := range tests {
		for _, n := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s/%d", c.name, n), func(t *testing.T) {
				checkEnd(t, c, watch(dialect.Ollama, linesType, c.body, n))
			})
		}
	}
}

// frame builds one frame of the event stream format.
func frame(payload string, headers ...string) string {
	var h []byte
	h = append(h, 1, 'n', 4, 0, 0, 0, 9) // a header that is no text
	for i := 0; i < len(headers); i += 2 {
		h = append(h, byte(len(headers[i])))
		h = append(h, headers[i]...)
		h = append(h, 7)
		h = binary.BigEndian.AppendUint16(h, uint16(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(preludeSize+len(h)+len(payload)+trailerSize))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = append(b, "CRC1"...)
	b = append(append(b, h...), payload...)
	return string(append(b, "CRC2"...))
}

func eventFrame(typ, payload string) string {
	return frame(payload, ":event-type", typ, ":message-type", "event")
}

func TestFrames(t *testing.T) {
	start, delta := eventFrame("messageStart", `{"role":"assistant"}`), eventFrame("contentBlockDelta", `{"delta":{"text":"x"}}`)
	end := eventFrame("messageStop", `{"stopReason":"end_turn"}`)
	meta := eventFrame("metadata", `{"usage":{"inputTokens":3,"outputTokens":4,"cacheReadInputTokens":2}}`)
	tests := []streamCase{
		{name: "converse", body: start + delta + end + meta, content: true, usage: Usage{5, 2, 4}},
		{name: "converse cut", body: start + delta, ending: Cut, content: true},
		{name: "cut in a frame", body: start + delta + end[:len(end)-2], ending: Cut, content: true},
		{name: "cut in a prelude", body: delta + end[:3], ending: Cut, content: true},
		{name: "start only", body: start, ending: Empty},
		{name: "empty", body: "", ending: Empty},
		{name: "invoke", body: eventFrame("chunk", `{"bytes":"e30="}`), content: true},
		{name: "exception", body: start + frame(`{"message":"slow down"}`, ":message-type", "exception", ":exception-type", "throttlingException"), ending: Failed, failure: "throttlingException//0"},
		{name: "error", body: frame("", ":message-type", "error", ":error-code", "InternalFailure", ":error-message", "x"), ending: Failed, failure: "InternalFailure//0"},
		{name: "no frames", body: "data: this is something else\n\n", ending: Cut},
	}
	for _, c := range tests {
		for _, n := range []int{0, 1, 5} {
			t.Run(fmt.Sprintf("%s/%d", c.name, n), func(t *testing.T) {
				checkEnd(t, c, watch(dialect.Bedrock, "application/vnd.amazon.eventstream", c.body, n))
			})
		}
	}
	w := watch(dialect.Bedrock, "application/vnd.amazon.eventstream", tests[7].body, 0)
	if w.Failure().Message != "slow down" {
		t.Errorf("message %q", w.Failure().Message)
	}
}

func TestLargeEvents(t *testing.T) {
	picture := strings.Repeat("QUJDRA==", 512<<10) // 4 MiB
	escapes := strings.Repeat(`\\\"`, 64<<10)
	numbers := strings.Repeat("0.125,", 700_000)
	tests := []streamCase{
		{name: "finish behind a picture", dialect: dialect.Gemini, body: data(`{"candidates":[{"content":{"parts":[{"inlineData":{"data":"` + picture + `"}}]},"finishReason":"STOP"}]}`), content: true},
		{name: "error behind a picture", body: data(`{"b64_json":"` + picture + `","error":{"code":"c","message":"x"}}`), ending: Failed, failure: "/c/0"},
		{name: "finish behind escapes", body: data(`{"choices":[{"delta":{"content":"` + escapes + `"},"finish_reason":"stop"}]}`), content: true},
		{name: "error of 300 KB", body: data(`{"error":{"message":"` + strings.Repeat("x", 300<<10) + `","code":"c"}}`), ending: Failed, failure: "/c/0"},
		{name: "many numbers", body: data(`{"choices":[{"delta":{"content":"x"}}],"logprobs":[`+numbers+`0]}`, done), content: true},
	}
	for _, c := range tests {
		for _, n := range []int{0, 61, 32 << 10} {
			t.Run(fmt.Sprintf("%s/%d", c.name, n), func(t *testing.T) {
				w := watch(c.dialect, sseType, c.body, n)
				if got := cap(w.sse.line.b) + cap(w.sse.data.b); got > 2*plainSize {
					t.Errorf("%d bytes held after a large event", got)
				}
				if c.dialect == dialect.None {
					w.dialect = dialect.OpenAI
				}
				checkEnd(t, c, w)
			})
		}
	}
}

func TestMemoryOfAnEventThatNeverEnds(t *testing.T) {
	for _, piece := range []string{"0.125,", `"abc",`, `abc\"`, "{[", `\`} {
		w := New(dialect.OpenAI, sseType, true)
		w.Write([]byte(`data: {"a":["`))
		for range 300 {
			w.Write([]byte(strings.Repeat(piece, 32<<10/len(piece))))
		}
		if got := cap(w.sse.line.b); got > 2*maxSize {
			t.Errorf("%q: %d bytes held", piece, got)
		}
		if got := w.End(); got != Cut {
			t.Errorf("%q: %v", piece, got)
		}
	}
}

func TestMessagesAreRead(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"a \"b\" \u00e9"}}`: `a "b" é`,
		`{"error":"text"}`:                       "text",
		`{"type":"error","message":"flat"}`:      "flat",
	} {
		w := watch(dialect.OpenAI, jsonType, body, 0)
		w.End()
		if w.Failure() == nil || w.Failure().Message != want {
			t.Errorf("%s: %+v", body, w.Failure())
		}
	}
}

func FuzzAnySplitSameVerdict(f *testing.F) {
	for _, c := range streamCases {
		f.Add(c.body, uint8(3), uint8(c.dialect))
	}
	f.Add(`{"":},"usage":{"promptTokenCount":1}`, uint8(3), uint8('"'))
	f.Add(`{"":0},"usage":{"promptTokenCount":1}0`, uint8(3), uint8('<'))
	f.Add(`{"error":{"a":[{"b":"\\"}]}}`, uint8(1), uint8(1))
	types := []string{sseType, jsonType, linesType, "application/vnd.amazon.eventstream"}
	f.Fuzz(func(t *testing.T, body string, n, d uint8) {
		for _, typ := range types {
			one, many := watch(dialect.Dialect(d%8), typ, body, 0), watch(dialect.Dialect(d%8), typ, body, int(n)+1)
			if a, b := one.End(), many.End(); a != b || one.Usage() != many.Usage() || failureText(one.Failure()) != failureText(many.Failure()) || one.Content() != many.Content() {
				t.Errorf("%s: %v and %v for %q", typ, a, b, body)
			}
		}
	})
}

// Each event has another text, and other counters.
func BenchmarkEvent(b *testing.B) {
	for name, form := range map[string]string{
		"chat":      data(`{"id":"chatcmpl-AbCdEfGhIjKl","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_abcdef","choices":[{"index":0,"delta":{"content":"%[1]s"},"logprobs":null,"finish_reason":null}],"obfuscation":"%[1]s"}`),
		"responses": named(`{"type":"response.output_text.delta","sequence_number":%[2]d,"item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":"%[1]s","logprobs":[],"obfuscation":"%[1]s"}`),
		"anthropic": named(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%[1]s"}}`),
		"gemini":    data(`{"candidates":[{"content":{"parts":[{"text":"%[1]s"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":%[2]d,"totalTokenCount":%[2]d},"modelVersion":"gemini-2.5-flash","responseId":"abc"}`),
		"tool call": data(`{"id":"c","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"%[1]s"}}]},"finish_reason":null}]}`),
	} {
		b.Run(name, func(b *testing.B) {
			var events [64][]byte
			size := 0
			for i := range events {
				events[i] = fmt.Appendf(nil, form, strings.Repeat(`word\"`, i%7), 10+i)
				size += len(events[i])
			}
			w := New(dialect.OpenAI, sseType, true)
			b.SetBytes(int64(size / len(events)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.Write(events[i%len(events)])
			}
			if !w.Content() || w.Failure() != nil {
				b.Fatal("not read as content")
			}
		})
	}
}

func BenchmarkDocument(b *testing.B) {
	p := []byte(`{"choices":[{"message":{"content":"` + strings.Repeat(`Some text.\nAnd more of it. `, 1000) + `"}}],"usage":{"prompt_tokens":1}}`)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		w := New(dialect.OpenAI, jsonType, true)
		w.Write(p)
		w.End()
	}
}

func TestEventsAllocateNothing(t *testing.T) {
	w := New(dialect.OpenAI, sseType, true)
	p := []byte(data(hello) + named(blockDelta) + data(gemText, usage) + ": ping\n\n")
	w.Write(p)
	if n := testing.AllocsPerRun(100, func() { w.Write(p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
