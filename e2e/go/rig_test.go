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
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the Caddy under test: $CADDY, else one built from this tree.
var binary = os.Getenv("CADDY")

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if binary == "" {
		dir, err := os.MkdirTemp("", "llm-gateway-build-")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "caddy")
		build := exec.Command("go", "build", "-o", binary, "./cmd/caddy")
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			log.Printf("building Caddy: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// rig is a gateway with two scripted channels, of which a is preferred.
type rig struct {
	a, b     *upstream
	url      string
	refusing string // of a gateway whose preferred channel refuses connections
	admin    string
	models   int
}

// upstream is a provider that answers with its script.
type upstream struct {
	name   string
	server *httptest.Server

	mu       sync.Mutex
	script   http.HandlerFunc
	requests []recorded
}

type recorded struct {
	*http.Request
	body []byte
}

func newUpstream(t *testing.T, name string) *upstream {
	u := &upstream{name: name}
	u.server = httptest.NewServer(u)
	t.Cleanup(u.server.Close)
	t.Cleanup(u.server.CloseClientConnections)
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // left before the request was whole
	}
	u.mu.Lock()
	u.requests = append(u.requests, recorded{r, body})
	script := u.script
	u.mu.Unlock()
	script(w, r)
}

// play sets what the upstream answers from now on, and forgets what it was asked.
func (u *upstream) play(script http.HandlerFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.script, u.requests = script, nil
}

func (u *upstream) seen() []recorded {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requests
}

func portOf(addr net.Addr) string {
	return fmt.Sprint(addr.(*net.TCPAddr).Port)
}

// startRig runs a Caddy with the Caddyfile of ../wire until the test ends.
func startRig(t *testing.T, w *wire) *rig {
	t.Helper()
	r := &rig{a: newUpstream(t, "a"), b: newUpstream(t, "b")}
	ports := freePorts(t, 3)
	home := t.TempDir()
	caddy := exec.Command(binary, "run", "--config", filepath.Join("..", "wire", "Caddyfile"), "--adapter", "caddyfile")
	caddy.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home,
		"PROVIDER=" + w.Provider, "BASE=" + w.Base, "NOBODY=" + occupy(t),
		"A=" + portOf(r.a.server.Listener.Addr()), "B=" + portOf(r.b.server.Listener.Addr()),
		"PORT=" + ports[0], "REFUSING_PORT=" + ports[1], "ADMIN=" + ports[2]}
	r.url, r.refusing = "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	r.admin = "http://127.0.0.1:" + ports[2] + "/llm_gateway/default/channels/"
	startCaddy(t, caddy, r.url)
	return r
}

// startCaddy runs Caddy until the test ends, and returns once it answers.
func startCaddy(t *testing.T, caddy *exec.Cmd, url string) {
	t.Helper()
	var output bytes.Buffer
	caddy.Stderr = &output
	if err := caddy.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- caddy.Wait() }()
	t.Cleanup(func() {
		caddy.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			caddy.Process.Kill()
			<-ended
		}
		if strings.Contains(output.String(), "panic") {
			t.Errorf("Caddy panicked:\n%s", output.String())
		}
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get(url) // outside of /v1 no upstream is asked
		if err == nil {
			res.Body.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("Caddy ended: %v\n%s", err, output.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("Caddy does not answer: %v", err)
		}
	}
}

// freePorts returns n ports at which nobody listens.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	ports := make([]string, n)
	for i := range ports {
		l := listen(t)
		defer l.Close()
		ports[i] = portOf(l.Addr())
	}
	return ports
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// occupy returns a port that refuses connections until the test ends, and that
// nobody else can get: it is the client's end of a connection.
func occupy(t *testing.T) string {
	t.Helper()
	l := listen(t)
	t.Cleanup(func() { l.Close() })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return portOf(conn.LocalAddr())
}

// act is an act of the operator.
func (r *rig) act(t *testing.T, path, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.admin+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", path, res.StatusCode, text)
	}
}

// restore undoes what the test before has left on the channels.
func (r *rig) restore(t *testing.T) {
	t.Helper()
	for _, u := range []*upstream{r.a, r.b} {
		u.play(wireError{Status: 599}.play())
		r.act(t, u.name+"/enable", "{}")
		r.act(t, u.name+"/breaker/reset", "{}")
	}
}

// outage opens the breakers of a model at both channels.
func (r *rig) outage(t *testing.T, model, duration string) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		r.act(t, name+"/breaker/open?model="+model, fmt.Sprintf(`{"for":%q}`, duration))
	}
}

// newModel returns a model that no test before has asked for.
func (r *rig) newModel() string {
	r.models++
	return fmt.Sprint("m-", r.models)
}
