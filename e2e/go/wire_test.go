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
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// wire is what a provider answers, as written in ../wire.
type wire struct {
	Provider    string
	Base        string
	Auth        struct{ Header, Value string }
	Separator   string
	Answers     map[string]json.RawMessage
	Streams     map[string]struct{ Head, Tail, Error []json.RawMessage }
	ErrorEvents []json.RawMessage
	Faults      map[string]fault
}

// fault is an error as a provider answers it.
type fault struct {
	Status  int
	Headers map[string]string
	Body    json.RawMessage
}

// readWire returns what the upstream of the given name answers in an API.
func readWire(t *testing.T, api, name string) *wire {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "wire", api+".json"))
	if err != nil {
		t.Fatal(err)
	}
	number := strconv.Itoa(int(name[0]))
	filled := strings.NewReplacer(`"NUMBER"`, number, "NAME", name).Replace(string(text))
	w := &wire{Separator: "\n\n"}
	if err := json.Unmarshal([]byte(filled), w); err != nil {
		t.Fatal(err)
	}
	return w
}

// answer is the script of an upstream that answers the call.
func (w *wire) answer(c call) script {
	if c.stream == "" {
		return respond(http.StatusOK, nil, w.Answers[c.answer])
	}
	return func(rw http.ResponseWriter, _ *http.Request) {
		openStream(rw)
		w.write(rw, w.Streams[c.stream].Head)
		w.write(rw, w.Streams[c.stream].Tail)
	}
}

// refuse is the script of an upstream that answers with a fault.
func (w *wire) refuse(name string) script {
	f := w.Faults[name]
	return respond(f.Status, f.Headers, f.Body)
}

func respond(status int, headers map[string]string, body []byte) script {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		for name, value := range headers {
			rw.Header().Set(name, value)
		}
		rw.WriteHeader(status)
		_, _ = rw.Write(body) // the gateway may have left
	}
}

// openStream sends the head of the answer without waiting for the first event.
func openStream(rw http.ResponseWriter) {
	rw.Header().Set("Content-Type", "text/event-stream")
	rw.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(rw).Flush() // the gateway may have left
}

// write sends events as the API frames them, each with its name where it has a
// type.
func (w *wire) write(rw http.ResponseWriter, events []json.RawMessage) {
	for _, event := range events {
		var done string
		if json.Unmarshal(event, &done) == nil { // "[DONE]"
			event = json.RawMessage(done)
		}
		var typed struct{ Type, Object string }
		if json.Unmarshal(event, &typed) == nil && typed.Type != "" && typed.Object == "" {
			fmt.Fprintf(rw, "event: %s\n", typed.Type)
		}
		fmt.Fprintf(rw, "data: %s%s", oneLine(event), w.Separator)
	}
	_ = http.NewResponseController(rw).Flush() // the gateway may have left
}

// oneLine returns an event without the line breaks that ../wire may have.
func oneLine(event json.RawMessage) string {
	return strings.ReplaceAll(string(event), "\n", " ")
}
