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
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// clientKey is what clients authenticate with. No upstream may see it.
const clientKey = "client-key"

// What the calls send: their upstream has to get these bytes.
var (
	image = base64.StdEncoding.EncodeToString(random(3000))
	audio = random(100_000)
)

func random(n int) []byte {
	p := make([]byte, n)
	rand.Read(p)
	return p
}

// client is an official client under test.
type client struct {
	name  string // for the table
	wire  string // name of the file with its wire format
	calls map[string]call
	read  func(error) (reply, bool)
	codes map[int]string // of errors that the gateway makes
}

// call makes a call and returns what the answer says.
type call func(*testing.T, ask) (any, error)

// ask is one call of a client.
type ask struct {
	url      string
	model    string
	text     string
	received func() // to be called for each piece of a stream

	headers map[string]string // in addition
	retry   bool              // retries are the client's default ones, else off
	http    *http.Client
}

// reply is what a client's error tells of the answer.
type reply struct {
	kind   string // its Go type
	status int
	code   string
	header http.Header
}

// matrix is every call of a client against every fault of the preferred channel,
// on one gateway.
type matrix struct {
	*client
	wire *wire
	rig  *rig
}

func testMatrix(t *testing.T, c *client) {
	m := &matrix{client: c, wire: readWire(t, c.wire)}
	m.rig = startRig(t, m.wire)
	for name := range m.wire.Calls {
		if c.calls[name] == nil {
			t.Errorf("the call %q is not made", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			shape := m.wire.call(t, name, "", "")
			m.testAnswered(t, name)
			m.testFailedOver(t, name, shape)
			if shape.Events != nil {
				m.testBroken(t, name)
			}
			if shape.Method != http.MethodGet {
				m.testRefused(t, name)
			}
		})
	}
	t.Run("default retries", m.testRetries)
}

// cell is a test whose outcome goes into the table of the run, see ../table.mjs.
// f returns what the client saw, in a word.
func (m *matrix) cell(t *testing.T, name, fault string, f func(*testing.T) string) {
	t.Run(fault, func(t *testing.T) {
		m.rig.restore(t)
		saw := "FAILED"
		defer func() {
			if t.Failed() {
				saw = "FAILED"
			}
			m.record(t, name, fault, saw)
		}()
		saw = f(t)
	})
}

func (m *matrix) record(t *testing.T, name, fault, saw string) {
	file := os.Getenv("E2E_RESULTS")
	if file == "" {
		return
	}
	line, err := json.Marshal(map[string]string{"client": m.name, "call": name, "fault": fault, "saw": saw})
	if err != nil {
		t.Error(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Error(err)
	}
}

// make makes the call, and fills in what a does not say.
func (m *matrix) make(t *testing.T, name string, a ask) (any, error) {
	if a.url == "" {
		a.url = m.rig.url
	}
	if a.text == "" {
		a.text = "hi"
	}
	if a.received == nil {
		a.received = func() {}
	}
	if a.http == nil {
		a.http = new(http.Client)
	}
	return m.calls[name](t, a)
}

// checkMade makes the call and checks that its answer is that one.
func (m *matrix) checkMade(t *testing.T, name string, a ask, due wireCall) {
	t.Helper()
	got, err := m.make(t, name, a)
	if err != nil {
		t.Fatalf("raised %v", err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(value, due.Value) {
		t.Errorf("got %v, not %v", value, due.Value)
	}
}

// checkSent makes sure that the upstream got one request for the call, with its
// own key, and with nothing of the client's key.
func (m *matrix) checkSent(t *testing.T, u *upstream, due wireCall, name string) {
	t.Helper()
	seen := u.seen()
	if len(seen) != 1 {
		t.Fatalf("%d requests at %s", len(seen), u.name)
	}
	r := seen[0]
	want, err := url.Parse(due.Path)
	if err != nil {
		t.Fatal(err)
	}
	if method := cmp.Or(due.Method, http.MethodPost); r.Method != method || r.URL.Path != want.Path {
		t.Errorf("%s %s at %s, not %s %s", r.Method, r.URL.Path, u.name, method, want.Path)
	}
	if key := m.wire.Key.Prefix + "key-of-" + u.name; r.Header.Get(m.wire.Key.Header) != key {
		t.Errorf("key sent to %s: %q", u.name, r.Header.Get(m.wire.Key.Header))
	}
	if all := fmt.Sprint(r.URL, r.Header, string(r.body)); strings.Contains(all, clientKey) {
		t.Errorf("the client's key was sent to %s", u.name)
	}
	if name == "image input" && !bytes.Contains(r.body, []byte(image)) {
		t.Error("the image differs")
	}
	if name == "audio upload" && !bytes.Contains(r.body, audio) {
		t.Error("the audio differs")
	}
}

// checkCounts checks how many requests came to the upstreams.
func (m *matrix) checkCounts(t *testing.T, a, b int) {
	t.Helper()
	if gotA, gotB := len(m.rig.a.seen()), len(m.rig.b.seen()); gotA != a || gotB != b {
		t.Errorf("%d requests at a and %d at b, not %d and %d", gotA, gotB, a, b)
	}
}

func (m *matrix) testAnswered(t *testing.T, name string) {
	m.cell(t, name, "no fault", func(t *testing.T) string {
		model := m.rig.newModel()
		due := m.wire.call(t, name, "a", model)
		m.rig.a.play(due.whole())
		m.checkMade(t, name, ask{model: model}, due)
		m.checkSent(t, m.rig.a, due, name)
		m.checkCounts(t, 1, 0)
		return "a"
	})
}

// testFailedOver tests the faults of which the client sees nothing.
func (m *matrix) testFailedOver(t *testing.T, name string, shape wireCall) {
	faults := make(map[string]func(wireCall) http.HandlerFunc)
	for fault, e := range m.wire.Faults {
		faults[fault] = func(wireCall) http.HandlerFunc { return e.play() }
	}
	if shape.Error != nil {
		faults["error event first"] = wireCall.failed
	}
	if shape.Method != http.MethodGet { // what names no model is passed on as it comes
		faults["cut before content"] = wireCall.cutEarly
	}
	for fault, script := range faults {
		m.cell(t, name, fault, func(t *testing.T) string {
			model := m.rig.newModel()
			m.rig.a.play(script(m.wire.call(t, name, "a", model)))
			m.checkFailedOver(t, name, ask{model: model})
			m.checkCounts(t, 1, 1)
			return "b"
		})
	}
	m.cell(t, name, "refuses", func(t *testing.T) string {
		m.checkFailedOver(t, name, ask{model: m.rig.newModel(), url: m.rig.refusing})
		return "b"
	})
}

func (m *matrix) checkFailedOver(t *testing.T, name string, a ask) {
	t.Helper()
	due := m.wire.call(t, name, "b", a.model)
	m.rig.b.play(due.whole())
	m.checkMade(t, name, a, due)
	m.checkSent(t, m.rig.b, due, name)
}

// testBroken tests streams that break off after the client has got a part of
// them.
func (m *matrix) testBroken(t *testing.T, name string) {
	ends := map[string]func(http.ResponseWriter, wireCall){
		"error event late": func(w http.ResponseWriter, c wireCall) { send(w, c.Error[len(c.Error)-1:]) },
		"cut: reset":       func(w http.ResponseWriter, _ wireCall) { reset(w) },
		"cut: clean end":   func(http.ResponseWriter, wireCall) {},
	}
	for fault, end := range ends {
		m.cell(t, name, fault, func(t *testing.T) string {
			model := m.rig.newModel()
			some := make(chan struct{})
			received := sync.OnceFunc(func() { close(some) })
			due := m.wire.call(t, name, "a", model)
			m.rig.a.play(due.cutLate(some, func(w http.ResponseWriter) { end(w, due) }))
			got, err := m.make(t, name, ask{model: model, received: received})
			select {
			case <-some:
			default:
				t.Errorf("nothing was received before %v", err)
			}
			if err == nil {
				t.Errorf("no error, but %v", got)
			}
			m.checkCounts(t, 1, 0)
			return kindOf(err)
		})
	}
}

// kindOf names an error of a stream in the table.
func kindOf(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "io.ErrUnexpectedEOF"
	}
	return fmt.Sprintf("%T", err)
}

// testRefused tests the requests that no channel can answer.
func (m *matrix) testRefused(t *testing.T, name string) {
	check := func(t *testing.T, status int, a ask) string {
		t.Helper()
		got := m.checkRaised(t, name, status, a)
		if got.code != m.codes[status] {
			t.Errorf("it tells the code %q, not %q", got.code, m.codes[status])
		}
		m.checkCounts(t, 0, 0)
		if wait, err := strconv.Atoi(got.header.Get("Retry-After")); status == 503 && (err != nil || wait < 1 || wait > 40) {
			t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
		}
		return fmt.Sprint(got.status, " ", got.kind)
	}
	m.cell(t, name, "unknown model", func(t *testing.T) string { return check(t, 404, ask{model: "nobodys-model"}) })
	m.cell(t, name, "all out", func(t *testing.T) string {
		model := m.rig.newModel()
		m.rig.outage(t, model, "40s")
		return check(t, 503, ask{model: model})
	})
	m.cell(t, name, "too large", func(t *testing.T) string {
		return check(t, 413, ask{model: m.rig.newModel(), text: strings.Repeat("x", 2<<20)})
	})
	m.cell(t, name, "not readable", func(t *testing.T) string {
		return check(t, 400, ask{model: m.rig.newModel(), headers: map[string]string{"Content-Encoding": "gzip"}})
	})
	m.cell(t, name, "refusal", func(t *testing.T) string {
		m.rig.a.play(m.wire.Refusal.play())
		got := m.checkRaised(t, name, m.wire.Refusal.Status, ask{model: m.rig.newModel()})
		m.checkCounts(t, 1, 0)
		return fmt.Sprint(got.status, " ", got.kind)
	})
}

// checkRaised makes a call that has to fail with the client's error of that
// status.
func (m *matrix) checkRaised(t *testing.T, name string, status int, a ask) reply {
	t.Helper()
	got, err := m.make(t, name, a)
	if err == nil {
		t.Fatalf("no error, but %v", got)
	}
	r, ok := m.read(err)
	if !ok || r.status != status {
		t.Fatalf("raised %T %v", err, err)
	}
	return r
}

// counter counts what is sent.
type counter struct{ sent int }

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.sent++
	return http.DefaultTransport.RoundTrip(r)
}

func (m *matrix) testRetries(t *testing.T) {
	t.Run("end a short outage of every channel", func(t *testing.T) {
		m.rig.restore(t)
		model := m.rig.newModel()
		due := m.wire.call(t, "chat", "a", model)
		m.rig.a.play(due.whole())
		m.rig.outage(t, model, "900ms")
		var count counter
		m.checkMade(t, "chat", ask{model: model, retry: true, http: &http.Client{Transport: &count}}, due)
		if count.sent != 2 {
			t.Errorf("sent %d times", count.sent)
		}
	})
	t.Run("stop at x-should-retry: false", func(t *testing.T) {
		m.rig.restore(t)
		model := m.rig.newModel()
		m.rig.outage(t, model, "10m")
		var count counter
		m.checkRaised(t, "chat", 503, ask{model: model, retry: true, http: &http.Client{Transport: &count}})
		if count.sent != 1 {
			t.Errorf("sent %d times", count.sent)
		}
	})
}
