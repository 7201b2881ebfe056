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

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// wire is the wire format of one provider, as ../wire has it for the suites of
// every language.
type wire struct {
	Provider string
	Base     string
	Key      struct{ Header, Prefix string }
	Calls    map[string]json.RawMessage // each a wireCall
	Faults   map[string]wireError
	Refusal  wireError
}

// wireCall is what a provider answers to one kind of call: one body, or events.
type wireCall struct {
	Method   string // empty: POST
	Path     string
	Body     json.RawMessage
	Events   []wireEvent
	Preamble int         // how many events come before those with content
	Error    []wireEvent // of a stream that fails at its begin
	Value    any         // what the client reads in it
}

type wireEvent struct {
	Event string
	Data  json.RawMessage // a string stands for itself
}

type wireError struct {
	Status  int
	Headers map[string]string
	Body    json.RawMessage
}

func readWire(t *testing.T, provider string) *wire {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "wire", provider+".json"))
	if err != nil {
		t.Fatal(err)
	}
	w := new(wire)
	if err := json.Unmarshal(text, w); err != nil {
		t.Fatal(err)
	}
	return w
}

// call returns the wire format of a call as that channel answers it.
func (w *wire) call(t *testing.T, name, channel, model string) wireCall {
	t.Helper()
	text := bytes.ReplaceAll(w.Calls[name], []byte("{channel}"), []byte(channel))
	text = bytes.ReplaceAll(text, []byte("{model}"), []byte(model))
	var c wireCall
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

func (e wireEvent) String() string {
	data := string(e.Data)
	var text string
	if json.Unmarshal(e.Data, &text) == nil {
		data = text
	}
	if e.Event == "" {
		return fmt.Sprintf("data: %s\n\n", data)
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", e.Event, data)
}

// whole plays the whole answer.
func (c wireCall) whole() http.HandlerFunc {
	if c.Events == nil {
		return wireError{Status: http.StatusOK, Body: c.Body}.play()
	}
	return func(w http.ResponseWriter, _ *http.Request) { send(w, c.Events) }
}

func (e wireError) play() http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range e.Headers {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(e.Status)
		w.Write(e.Body)
	}
}

// failed plays a stream that fails at its begin.
func (c wireCall) failed() http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { send(w, c.Error) }
}

// cutEarly breaks the answer off before anything of its content was sent.
func (c wireCall) cutEarly() http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if c.Events == nil {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(len(c.Body)))
			w.Write(c.Body[:len(c.Body)/2])
		} else {
			send(w, c.Events[:c.Preamble])
		}
		reset(w)
	}
}

// cutLate sends the first pieces of a stream's content, waits until the client
// has received some, and ends the stream in that way.
func (c wireCall) cutLate(received <-chan struct{}, end func(http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		send(w, c.Events[:c.Preamble+2])
		select {
		case <-received:
			end(w)
		case <-r.Context().Done():
		}
	}
}

// send sends the events of a stream at once.
func send(w http.ResponseWriter, events []wireEvent) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprint(w, e)
	}
	w.(http.Flusher).Flush()
}

// reset resets the connection.
func reset(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}
