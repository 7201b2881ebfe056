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
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// clientKey is what the clients authenticate with. No upstream may see it.
const clientKey = "client-key"

// client is an official client with all calls to test.
type client struct {
	name  string // as shown in the table
	api   string // its file in ../wire
	path  string // what its base address has after the gateway's
	calls []call

	raised func(error) raised // the zero value of an error that is no answer
	code   map[int]string     // what the text of an error has to name, by status
}

// raised is what a client's own type of error tells of an error answer.
type raised struct {
	status int
	header http.Header
	text   string
}

// call is a call of a client.
type call struct {
	name      string
	answer    string // of the upstream, in ../wire
	stream    string // the same of a call that streams
	modelless bool
	sends     []string // what the upstream has to get, besides the text

	// run makes the call and returns which upstream the answer names. Of a
	// stream it calls seen at the first content.
	run func(s session, args args) (string, error)
}

// args are what a call asks.
type args struct {
	model, text string
	seen        func()
}

// session is where a client is to connect.
type session struct {
	t       *testing.T
	url     string
	http    *http.Client
	retries bool // as many as the client makes by default, else none
}

// cell is a call of a client under a fault.
type cell struct {
	*rig
	call
	condition
	id string

	sent         atomic.Int32  // requests that the client sent
	firstContent chan struct{} // closed when the client has it
}

// rig is what all cells of a client share.
type rig struct {
	client
	a, b *upstream
	url  string
}

// runMatrix makes every call of the client under every fault: one Caddy for all
// cells, with a gateway of its own for each, so that none sees the failures of
// another.
func runMatrix(t *testing.T, c client) {
	r := &rig{client: c, a: newUpstream(t, c.api, "a"), b: newUpstream(t, c.api, "b")}
	var cells []*cell
	var site strings.Builder
	for _, call := range c.calls {
		for _, condition := range conditions() {
			if !condition.fits(call) {
				continue
			}
			cell := &cell{rig: r, call: call, condition: condition, id: fmt.Sprintf("cell%d", len(cells))}
			cells = append(cells, cell)
			site.WriteString(cell.gateway())
		}
	}
	r.url = serve(t, site.String())
	for _, cell := range cells {
		t.Run(cell.call.name+"/"+cell.condition.name, func(t *testing.T) {
			defer record(t, cell)
			cell.perform(t)
		})
	}
}

// refusing is an address that nobody listens on.
const refusing = "http://127.0.0.1:1"

func (c *cell) gateway() string {
	a := c.a.url
	if c.refuses {
		a = refusing
	}
	channel := func(name, url, key string, more string) string {
		return fmt.Sprintf("channel %s {\nprovider %s\nbase_url %s\nkey %s\n%s\n%s\n}\n",
			name, c.a.wire.Provider, url+c.a.wire.Base, key, c.channels, more)
	}
	return fmt.Sprintf("handle_path /%s/* {\nllm_gateway %s {\n%s\n%s%s}\n}\n", c.id, c.id, c.options,
		channel("a", a, c.a.key, ""), channel("b", c.b.url, c.b.key, "priority 1"))
}

// perform makes the call and checks what its user gets, and who was asked.
func (c *cell) perform(t *testing.T) {
	c.firstContent = make(chan struct{})
	for _, u := range []*upstream{c.a, c.b} {
		s := u.wire.answer(c.call)
		if c.script != nil && (c.both || u == c.a) {
			s = c.script(c, u)
		}
		u.reset(s)
	}
	if c.text == "" {
		c.text = "hello"
	}
	c.play(t, c)
	c.checkRequests(t)
}

// ask makes the call with the given model, with or without the retries that the
// client makes by default.
func (c *cell) ask(t *testing.T, model string, retries bool) (string, error) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	counting := roundTripper(func(r *http.Request) (*http.Response, error) {
		c.sent.Add(1)
		return transport.RoundTrip(r)
	})
	s := session{
		t: t, url: c.url + "/" + c.id + c.path, retries: retries,
		http: &http.Client{Transport: counting, Timeout: 30 * time.Second},
	}
	seen := func() {
		select {
		case <-c.firstContent:
		default:
			close(c.firstContent)
		}
	}
	return c.run(s, args{model: model, text: c.text, seen: seen})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// asked makes sure how often the upstreams were asked.
func (c *cell) asked(t *testing.T, a, b int) {
	t.Helper()
	if gotA, gotB := len(c.a.got()), len(c.b.got()); gotA != a || gotB != b {
		t.Errorf("a was asked %d times and b %d times, want %d and %d", gotA, gotB, a, b)
	}
}

// checkRequests makes sure that each upstream got the channel's key, nothing of
// the client's, and what the client sent.
func (c *cell) checkRequests(t *testing.T) {
	t.Helper()
	for _, u := range []*upstream{c.a, c.b} {
		for _, r := range u.got() {
			auth := u.wire.Auth
			if got, want := r.header.Get(auth.Header), strings.Replace(auth.Value, "KEY", u.key, 1); got != want {
				t.Errorf("%s got %s %q, want %q", u.name, auth.Header, got, want)
			}
			if strings.Contains(fmt.Sprint(r.url, r.header, string(r.body)), clientKey) {
				t.Errorf("the client's key was sent to %s", u.name)
			}
			c.checkBody(t, u.name, string(r.body))
		}
	}
}

func (c *cell) checkBody(t *testing.T, name, body string) {
	t.Helper()
	wanted := c.sends
	if !c.modelless {
		wanted = append([]string{c.text}, wanted...)
	}
	for _, part := range wanted {
		if !strings.Contains(body, part) {
			t.Errorf("%s did not get %q: %s", name, part, body)
		}
	}
}

// record writes down how the cell went, for the table.
func record(t *testing.T, c *cell) {
	folder := os.Getenv("E2E_RESULTS")
	if folder == "" {
		return
	}
	line, err := json.Marshal(map[string]any{
		"client": c.client.name, "call": c.call.name, "fault": c.condition.name, "passed": !t.Failed(),
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(folder, c.client.name+".ndjson"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "%s\n", line); err != nil {
		t.Fatal(err)
	}
}
