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

// Package testrig runs a Caddy with a gateway in it, and the upstreams that it
// talks to, inside a test: real sockets on free loopback ports, the real config
// loader, and nothing on disk but the test's own folder.
//
// Caddy is one per process, so tests that use the rig do not run in parallel.
package testrig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // the config loader and the http app
	"github.com/caddyserver/certmagic"
)

// Gateway is a running Caddy with one site.
type Gateway struct {
	URL    string // of the site
	Admin  string // of the admin endpoint
	Client *http.Client

	t       testing.TB
	port    int
	admin   int
	logFile string
	globals string // more global options
	quiet   bool
}

// Start runs a Caddy whose only site has the given Caddyfile directives. When
// the test ends, it checks that nothing was left in flight and nothing panicked.
func Start(t testing.TB, directives string) *Gateway {
	t.Helper()
	return start(t, "", directives)
}

// StartQuiet is Start with a log of errors only, for benchmarks.
func StartQuiet(t testing.TB, directives string) *Gateway {
	t.Helper()
	return start(t, "", directives, quiet)
}

func quiet(g *Gateway) { g.quiet = true }

// StartWith is Start with more global options.
func StartWith(t testing.TB, globals, directives string) *Gateway {
	t.Helper()
	return start(t, globals, directives)
}

// StartH2C is Start with a site that speaks HTTP/2 without TLS too.
func StartH2C(t testing.TB, directives string) *Gateway {
	t.Helper()
	return start(t, "servers {\nprotocols h1 h2 h2c\n}", directives)
}

func start(t testing.TB, globals, directives string, options ...func(*Gateway)) *Gateway {
	t.Helper()
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	caddy.ConfigAutosavePath = filepath.Join(dir, "autosave.json")
	caddy.DefaultStorage = &certmagic.FileStorage{Path: dir}
	ports := FreePorts(t, 2)
	g := &Gateway{
		URL:     fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		Admin:   fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		Client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}},
		t:       t,
		port:    ports[0],
		admin:   ports[1],
		logFile: filepath.Join(dir, "caddy.log"),
		globals: globals,
	}
	for _, option := range options {
		option(g)
	}
	// A server that a reload stops closes its idle connections, just when a
	// client may send the next request on one.
	g.Client.Transport.(*http.Transport).DisableKeepAlives = !g.quiet
	if err := g.Reload(directives); err != nil {
		t.Fatalf("starting: %v", err)
	}
	t.Cleanup(func() { g.stop(before) })
	return g
}

func (g *Gateway) stop(goroutines int) {
	g.t.Helper()
	g.Client.CloseIdleConnections()
	if _, err := g.Status(); err == nil { // the test may have stopped it
		Eventually(g.t, "nothing in flight", func() bool { return g.InFlight() == 0 })
	}
	if err := caddy.Stop(); err != nil {
		g.t.Errorf("stopping: %v", err)
	}
	if log := g.Log(); strings.Contains(log, "panic") {
		g.t.Errorf("something panicked:\n%s", log)
	}
	Eventually(g.t, "goroutines back near the start", func() bool { return runtime.NumGoroutine() <= goroutines+15 })
}

// Caddyfile returns the whole Caddyfile around the site's directives.
func (g *Gateway) Caddyfile(directives string) string {
	level, access := "DEBUG", "log"
	if g.quiet {
		level, access = "ERROR", ""
	}
	return fmt.Sprintf(`{
	admin 127.0.0.1:%d
	log {
		output file %s
		level %s
		format json
	}
	default_bind 127.0.0.1
	%s
}
http://:%d {
	%s
	%s
}
`, g.admin, g.logFile, level, g.globals, g.port, access, directives)
}

// Reload replaces the site's directives, as `caddy reload` does.
func (g *Gateway) Reload(directives string) error {
	return g.Load(g.Caddyfile(directives))
}

// Load replaces the whole Caddyfile.
func (g *Gateway) Load(file string) error {
	config, err := Adapt(file)
	if err != nil {
		return err
	}
	err = caddy.Load(config, true)
	g.Client.CloseIdleConnections() // the old servers close theirs too
	return err
}

// Adapt turns a Caddyfile into JSON.
func Adapt(file string) ([]byte, error) {
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(file), map[string]any{"filename": "Caddyfile"})
	return config, err
}

// Log returns all log lines so far.
func (g *Gateway) Log() string {
	data, err := os.ReadFile(g.logFile)
	if err != nil {
		return ""
	}
	return string(data)
}

// LogEntries returns the log entries with that message.
func (g *Gateway) LogEntries(message string) []map[string]any {
	g.t.Helper()
	var found []map[string]any
	for line := range strings.Lines(g.Log()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			continue // a line that is being written
		}
		if entry["msg"] == message {
			found = append(found, entry)
		}
	}
	return found
}

// AccessLog returns the access log's entries.
func (g *Gateway) AccessLog() []map[string]any { return g.LogEntries("handled request") }

// Answer is a response that has been read.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error // the body ended abnormally
}

// Do sends a request and reads the answer.
func (g *Gateway) Do(r *http.Request) Answer {
	g.t.Helper()
	res, err := g.Client.Do(r)
	if err != nil {
		return Answer{Err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return Answer{res.StatusCode, res.Header, string(body), err}
}

// Request makes a POST of a JSON body to the site.
func (g *Gateway) Request(path, body string) *http.Request {
	g.t.Helper()
	r, err := http.NewRequest(http.MethodPost, g.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

// Chat asks for a chat completion of the model.
func (g *Gateway) Chat(model string) Answer {
	g.t.Helper()
	return g.Do(g.Request("/v1/chat/completions", Chat(model)))
}

// Chat is a small chat body.
func Chat(model string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}]}`, model)
}

// StreamChat is a small chat body that asks for a stream.
func StreamChat(model string) string {
	return fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, model)
}

// AdminDo sends a request to the admin endpoint.
func (g *Gateway) AdminDo(method, path, body string) Answer {
	g.t.Helper()
	r, err := http.NewRequest(method, g.Admin+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return g.Do(r)
}

// Status is what the admin endpoint tells, as far as tests look at it.
type Status struct {
	Gateways []struct {
		Name     string    `json:"name"`
		Waiting  int       `json:"waiting"`
		Channels []Channel `json:"channels"`
	} `json:"gateways"`
}

// Channel is one channel's status.
type Channel struct {
	Name     string    `json:"name"`
	Provider string    `json:"provider"`
	State    string    `json:"state"`
	Health   string    `json:"health"`
	Disabled *Record   `json:"disabled"`
	Summary  string    `json:"summary"`
	InFlight int       `json:"in_flight"`
	Keys     []Key     `json:"keys"`
	Breakers []Breaker `json:"breakers"`
}

// Key is one key's status.
type Key struct {
	ID       string     `json:"id"`
	State    string     `json:"state"`
	Until    *time.Time `json:"until"`
	Disabled *Record    `json:"disabled"`
}

// Record is why something is disabled.
type Record struct {
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until"`
	DryRun bool       `json:"dry_run"`
}

// Breaker is one breaker's status.
type Breaker struct {
	Model               string                  `json:"model"`
	State               string                  `json:"state"`
	Degraded            bool                    `json:"degraded"`
	DryRun              bool                    `json:"dry_run"`
	ConsecutiveFailures int                     `json:"consecutive_failures"`
	EffectiveWeight     float64                 `json:"effective_weight"`
	LastFailure         string                  `json:"last_failure"`
	NextProbeAt         *time.Time              `json:"next_probe_at"`
	NextProbeIn         string                  `json:"next_probe_in"`
	ProbeInFlight       bool                    `json:"probe_in_flight"`
	Suspect             bool                    `json:"suspect"`
	FirstToken          *struct{ P50, P95 int } `json:"first_token_ms"`
	LimitedUntil        *time.Time              `json:"limited_until"`
}

// Status asks the admin endpoint.
func (g *Gateway) Status() (Status, error) {
	var s Status
	res, err := g.Client.Get(g.Admin + "/llm_gateway/status")
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	return s, json.NewDecoder(res.Body).Decode(&s)
}

// Channel returns a channel's status.
func (g *Gateway) Channel(name string) Channel {
	g.t.Helper()
	s, err := g.Status()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, gw := range s.Gateways {
		for _, ch := range gw.Channels {
			if ch.Name == name {
				return ch
			}
		}
	}
	g.t.Fatalf("status shows no channel %s", name)
	return Channel{}
}

// Breaker returns a breaker's status; the zero value if none is shown.
func (g *Gateway) Breaker(channel, model string) Breaker {
	g.t.Helper()
	for _, b := range g.Channel(channel).Breakers {
		if b.Model == model {
			return b
		}
	}
	return Breaker{}
}

// InFlight returns the number of attempts in flight on all channels.
func (g *Gateway) InFlight() int {
	s, err := g.Status()
	if err != nil {
		return -1
	}
	n := 0
	for _, gw := range s.Gateways {
		for _, ch := range gw.Channels {
			n += ch.InFlight
		}
	}
	return n
}

// Waiting returns the number of requests that wait for somebody to be usable.
func (g *Gateway) Waiting() int {
	s, err := g.Status()
	if err != nil {
		return -1
	}
	n := 0
	for _, gw := range s.Gateways {
		n += gw.Waiting
	}
	return n
}

// WaitState waits until the breaker is in that state.
func (g *Gateway) WaitState(channel, model, state string) {
	g.t.Helper()
	Eventually(g.t, fmt.Sprintf("%s/%s %s", channel, model, state), func() bool {
		return g.Breaker(channel, model).State == state
	})
}

// Eventually waits until ok holds, and fails the test if it does not within ten
// seconds.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			var stacks bytes.Buffer
			if strings.HasPrefix(what, "goroutines") {
				buf := make([]byte, 1<<20)
				stacks.Write(buf[:runtime.Stack(buf, true)])
			}
			t.Errorf("never: %s\n%s", what, stacks.String())
			return
		}
	}
}

// FreePorts returns ports of the loopback that are free.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		ports[i] = ln.Addr().(*net.TCPAddr).Port
	}
	return ports
}
