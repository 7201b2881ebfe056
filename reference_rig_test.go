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

package llmgateway

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// reference plays an example with the values that are written in it. It runs
// under a virtual clock, so that hours cost nothing: Caddy provisions the
// gateway as it always does, and net/http is at both ends of every connection,
// but the connections are in memory, since a wait for a socket would stop the
// clock.
type reference struct {
	t         *testing.T
	example   string
	handler   *Handler
	upstreams map[string]*virtualUpstream // by channel
	steps     int                         // goldens so far

	mu    sync.Mutex
	asked []asked // of all upstreams, in the order of arrival
}

// asked is a request as the upstream of a channel got it.
type asked struct{ channel, host, path, credential, model string }

// playReference runs scenario in a bubble with the example's gateway. The
// environment must be set by the caller.
func playReference(t *testing.T, example string, scenario func(r *reference)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("examples", example, "Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	adapted, err := adapt(t, string(text))
	if err != nil {
		t.Fatal(err)
	}
	var config any
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	settings := handlerIn(config)
	if settings == nil {
		t.Fatal("the example has no llm_gateway")
	}
	synctest.Test(t, func(t *testing.T) {
		r := &reference{t: t, example: example, upstreams: map[string]*virtualUpstream{}}
		r.start(settings)
		scenario(r)
		r.noStrayGoldens()
	})
}

// handlerIn returns the first llm_gateway handler in a config, without the name
// by which Caddy finds its module; nil if there is none.
func handlerIn(config any) map[string]any {
	var children []any
	switch v := config.(type) {
	case map[string]any:
		if v["handler"] == "llm_gateway" {
			delete(v, "handler")
			return v
		}
		children = slices.Collect(maps.Values(v))
	case []any:
		children = v
	}
	for _, child := range children {
		if h := handlerIn(child); h != nil {
			return h
		}
	}
	return nil
}

// start does for one handler what Caddy does for a config.
func (r *reference) start(settings map[string]any) {
	r.t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		r.t.Fatal(err)
	}
	caddy.DefaultStorage = &certmagic.FileStorage{Path: r.t.TempDir()}
	config, err := caddy.ProvisionContext(&caddy.Config{Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{
		"default": {BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)}},
	}}})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(config)
	r.t.Cleanup(cancel)
	module, err := ctx.LoadModuleByID("http.handlers.llm_gateway", raw)
	if err != nil {
		r.t.Fatal(err)
	}
	r.handler = module.(*Handler)
	for _, ch := range r.handler.gateway.channels {
		r.upstreams[ch.name] = r.connect(ch)
	}
	app := r.handler.gateway.app
	if err := app.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { app.Stop() })
}

// connect gives the channel an upstream in place of the network. Both dial
// functions hand out plain connections: net/http takes those of DialTLSContext
// for ready.
func (r *reference) connect(ch *channel) *virtualUpstream {
	u := &virtualUpstream{conns: make(chan net.Conn), closed: make(chan struct{}), answer: testrig.OK}
	u.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.note(ch.name, req)
		u.serve(w, req)
	})}
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		if address != dialAddress(ch.base) {
			r.t.Errorf("channel %s dials %s", ch.name, address)
		}
		return u.dial(ctx)
	}
	t := ch.transport.Transport
	t.DialContext, t.DialTLSContext, t.Proxy = dial, dial, nil
	go u.server.Serve(u)
	r.t.Cleanup(func() { u.server.Close() })
	return u
}

func (r *reference) note(channel string, req *http.Request) {
	body, _ := io.ReadAll(req.Body) // a broken body shows no model
	req.Body = io.NopCloser(strings.NewReader(string(body)))
	var chat struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &chat)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, asked{channel, req.Host, req.URL.Path, req.Header.Get("Authorization"), chat.Model})
}

// count returns how many requests the upstream of the channel got.
func (r *reference) count(channel string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, a := range r.asked {
		if a.channel == channel {
			n++
		}
	}
	return n
}

// since returns the requests from the n-th on.
func (r *reference) since(n int) []asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked[n:])
}

// virtualUpstream is a provider at the other end of in-memory connections. It is
// its own net.Listener.
type virtualUpstream struct {
	server *http.Server
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}

	mu     sync.Mutex
	answer http.HandlerFunc
	gate   chan struct{} // while it is open, requests wait
}

func (u *virtualUpstream) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case u.conns <- theirs:
		return ours, nil
	case <-u.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (u *virtualUpstream) Accept() (net.Conn, error) {
	select {
	case conn := <-u.conns:
		return conn, nil
	case <-u.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (u *virtualUpstream) Close() error {
	u.once.Do(func() { close(u.closed) })
	return nil
}

// Addr implements net.Listener.
func (u *virtualUpstream) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

func (u *virtualUpstream) serve(w http.ResponseWriter, req *http.Request) {
	u.mu.Lock()
	answer, gate := u.answer, u.gate
	u.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-u.closed:
		}
	}
	answer(w, req)
}

// does replaces what the upstream answers.
func (u *virtualUpstream) does(answer http.HandlerFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = answer
}

// doing returns what the upstream answers.
func (u *virtualUpstream) doing() http.HandlerFunc {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.answer
}

// hold lets requests to the upstream wait, with the answer that it has now,
// until release is called.
func (u *virtualUpstream) hold() (release func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	gate := make(chan struct{})
	u.gate = gate
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.gate = nil
		close(gate)
	}
}

// chat sends a chat request through the gateway as Caddy's server would.
func (r *reference) chat(model string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/chat/completions", strings.NewReader(testrig.Chat(model)))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	req = caddyhttp.PrepareRequest(req, caddy.NewReplacer(), w, new(caddyhttp.Server))
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	if err := r.handler.ServeHTTP(w, req, next); err != nil {
		r.t.Errorf("serving %s: %v", model, err)
	}
	return w
}

// served sends a chat request that must succeed.
func (r *reference) served(model string) {
	r.t.Helper()
	if w := r.chat(model); w.Code != http.StatusOK {
		r.t.Errorf("%s at %s: status %d: %s", model, clock(), w.Code, w.Body)
	}
}

// crowd sends n requests at once. Each that is answered must succeed; it returns
// when nothing moves any more, and wait waits for those that were held.
func (r *reference) crowd(n int, model string) (wait func()) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { r.served(model) })
	}
	synctest.Wait()
	return wg.Wait
}

// reach sends requests, which must succeed, until one got to the channel. No
// time passes meanwhile.
func (r *reference) reach(channel, model string) {
	r.t.Helper()
	before := r.count(channel)
	for range 1000 {
		r.served(model)
		if r.count(channel) > before {
			return
		}
	}
	r.t.Fatalf("%s: none of 1000 requests for %s got to %s", clock(), model, channel)
}

// spares sends requests, which must succeed, none of which may get to the
// channel.
func (r *reference) spares(channel, model string) {
	r.t.Helper()
	before := r.count(channel)
	for range 50 {
		r.served(model)
	}
	if n := r.count(channel) - before; n > 0 {
		r.t.Errorf("%s: %d of 50 requests for %s got to %s", clock(), n, model, channel)
	}
}

// clock tells the virtual time since the start.
func clock() string {
	return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).String()
}
