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
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// condition is a fault under which every call that it fits is made.
type condition struct {
	name     string
	fits     func(call) bool
	options  string // lines of the gateway
	channels string // lines of its channels
	refuses  bool   // a refuses connections
	both     bool   // the script is of b, too
	text     string // that the client sends, if not a short one
	script   func(*cell, *upstream) script
	play     func(*testing.T, *cell) // makes the call and checks the outcome
}

func always(call) bool      { return true }
func streams(c call) bool   { return c.stream != "" }
func withModel(c call) bool { return !c.modelless }
func chatOnly(c call) bool  { return c.name == "chat" }

// conditions returns all faults, in the order of the table's columns.
func conditions() []condition {
	return []condition{
		{name: "none", fits: always, play: servedBy("a", 1, 0)},
		{name: "connection refused", fits: always, refuses: true, play: servedBy("b", 0, 1)},
		{name: "status 500", fits: always, script: refuse("500"), play: servedBy("b", 1, 1)},
		{name: "status 429", fits: always, script: refuse("429"), play: servedBy("b", 1, 1)},
		{name: "status 401", fits: always, script: refuse("401"), play: servedBy("b", 1, 1)},
		{name: "overloaded", fits: always, script: refuse("overloaded"), play: servedBy("b", 1, 1)},
		{name: "error in a 200", fits: withModel, script: errorIn200, play: servedBy("b", 1, 1)},
		{name: "cut before content", fits: withModel, script: breakEarly, play: servedBy("b", 1, 1)},
		{name: "cut after content", fits: streams, script: breakLate(breakOff), play: breaksOff},
		{name: "ends after content", fits: streams, script: breakLate(func(http.ResponseWriter) {}), play: breaksOff},
		{name: "provider's 400", fits: withModel, script: refuse("400"), play: raises("m1", 400, "fault of a", 1, 0)},
		{name: "gateway's 400", fits: withModel, play: raises("", 400, "model", 0, 0)},
		{name: "gateway's 404", fits: withModel, channels: "models m1", play: raises("nobodys-model", 404, "nobodys-model", 0, 0)},
		{name: "gateway's 413", fits: withModel, options: "max_body 2KiB", text: strings.Repeat("x", 3000), play: raises("m1", 413, "2", 0, 0)},
		{name: "gateway's 503", fits: always, options: quickBreakers("40s"), both: true, script: refuse("500"), play: allOut},
		{name: "its retries bridge an outage", fits: chatOnly, both: true, script: outage, play: bridged},
		{name: "x-should-retry stops its retries", fits: chatOnly, options: quickBreakers("10m"), both: true, script: refuse("500"), play: stopped},
	}
}

// quickBreakers opens a breaker at its first failure, for the given time.
func quickBreakers(interval string) string {
	return "early_probe off\nbreaker {\nopen_threshold 1\nprobe_interval " + interval + "\njitter 0\n}"
}

func refuse(name string) func(*cell, *upstream) script {
	return func(_ *cell, u *upstream) script { return u.wire.refuse(name) }
}

// errorIn200 is an error in a 200, of a stream its first event.
func errorIn200(c *cell, u *upstream) script {
	if c.stream == "" {
		return u.wire.refuse("error in a 200")
	}
	events := u.wire.Streams[c.stream].Error
	if events == nil {
		events = u.wire.ErrorEvents
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		openStream(w)
		u.wire.write(w, events)
	}
}

// breakEarly breaks the answer off before any of its content.
func breakEarly(c *cell, u *upstream) script {
	return func(w http.ResponseWriter, _ *http.Request) {
		if c.stream != "" {
			openStream(w)
			u.wire.write(w, u.wire.Streams[c.stream].Head[:1])
		} else {
			body := u.wire.Answers[c.answer]
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body[:len(body)/2])        // the gateway may have left
			_ = http.NewResponseController(w).Flush() // likewise
		}
		breakOff(w)
	}
}

// breakLate ends a stream once the client has the first content of it.
func breakLate(end func(http.ResponseWriter)) func(*cell, *upstream) script {
	return func(c *cell, u *upstream) script {
		return func(w http.ResponseWriter, r *http.Request) {
			openStream(w)
			u.wire.write(w, u.wire.Streams[c.stream].Head)
			select {
			case <-c.firstContent:
				end(w)
			case <-r.Context().Done():
			}
		}
	}
}

// outage is of upstreams that fail until b was asked.
func outage(c *cell, u *upstream) script {
	fail := u.wire.refuse("500")
	return func(w http.ResponseWriter, r *http.Request) {
		if u == c.b {
			c.a.become(c.a.wire.answer(c.call))
		}
		fail(w, r)
	}
}

// servedBy makes sure that the client gets the upstream's answer.
func servedBy(name string, a, b int) func(*testing.T, *cell) {
	return func(t *testing.T, c *cell) {
		got, err := c.ask(t, "m1", false)
		if err != nil || got != name {
			t.Fatalf("got %q, %v, want the answer of %s", got, err, name)
		}
		c.asked(t, a, b)
	}
}

// breaksOff makes sure that the client fails.
func breaksOff(t *testing.T, c *cell) {
	got, err := c.ask(t, "m1", false)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v, want an unexpected EOF", got, err)
	}
	c.asked(t, 1, 0)
}

// raises makes sure that the client's error is that of the status.
func raises(model string, status int, message string, a, b int) func(*testing.T, *cell) {
	return func(t *testing.T, c *cell) {
		_, err := c.ask(t, model, false)
		c.checkError(t, err, status, message)
		c.asked(t, a, b)
	}
}

func (c *cell) checkError(t *testing.T, err error, status int, message string) http.Header {
	t.Helper()
	got := c.raised(err)
	if got.status != status {
		t.Fatalf("the status is %d of %v, want %d", got.status, err, status)
	}
	if !strings.Contains(got.text, message) || !strings.Contains(got.text, c.code[status]) {
		t.Errorf("the error %q does not name %q and %q", got.text, message, c.code[status])
	}
	return got.header
}

// allOut expects the gateway's 503, after an answer that opened the breakers.
func allOut(t *testing.T, c *cell) {
	_, err := c.ask(t, "m1", false)
	c.checkError(t, err, 500, "fault of b")
	_, err = c.ask(t, "m1", false)
	header := c.checkError(t, err, 503, "channel").Get("Retry-After")
	if wait, bad := strconv.Atoi(header); bad != nil || wait < 1 || wait > 40 {
		t.Errorf("Retry-After is %q", header)
	}
	c.asked(t, 1, 1)
}

// bridged makes sure that the client's retry gets the answer after an outage.
func bridged(t *testing.T, c *cell) {
	got, err := c.ask(t, "m1", true)
	if err != nil || got != "a" || c.sent.Load() != 2 {
		t.Errorf("got %q, %v after %d requests, want the answer of a after 2", got, err, c.sent.Load())
	}
	c.asked(t, 2, 1)
}

// stopped makes sure that the client does not retry what says x-should-retry:
// false.
func stopped(t *testing.T, c *cell) {
	_, err := c.ask(t, "m1", false)
	c.checkError(t, err, 500, "fault of b")
	c.sent.Store(0)
	_, err = c.ask(t, "m1", true)
	header := c.checkError(t, err, 503, "channel")
	if got := header.Get("X-Should-Retry"); got != "false" || c.sent.Load() != 1 {
		t.Errorf("X-Should-Retry is %q after %d requests, want false after 1", got, c.sent.Load())
	}
	c.asked(t, 1, 1)
}

// image is a PNG's signature in base64.
const image = "iVBORw0KGgo="

// by returns the name at the end of what an upstream answered.
func by(t *testing.T, text string) string {
	t.Helper()
	for _, start := range []string{"answer of ", "vectors-of-", "drawn by ", "heard by ", "model-of-"} {
		if name, ok := strings.CutPrefix(text, start); ok {
			return name
		}
	}
	t.Errorf("the answer is %q", text)
	return ""
}
