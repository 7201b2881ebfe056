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
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// script is what an upstream does with a request.
type script func(w http.ResponseWriter, r *http.Request)

// upstream records what it gets and answers with its script.
type upstream struct {
	name, key, url string
	wire           *wire

	mu       sync.Mutex
	script   script
	requests []received
}

// received is a request as an upstream got it.
type received struct {
	url    string
	header http.Header
	body   []byte
}

func newUpstream(t *testing.T, api, name string) *upstream {
	t.Helper()
	u := &upstream{name: name, key: "sk-of-" + name, wire: readWire(t, api, name)}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	u.url = server.URL
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // left before the request was whole
	}
	u.mu.Lock()
	u.requests = append(u.requests, received{r.URL.String(), r.Header, body})
	answer := u.script
	u.mu.Unlock()
	answer(w, r)
}

// reset forgets all requests and takes a script.
func (u *upstream) reset(s script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.script, u.requests = s, nil
}

// become replaces the script.
func (u *upstream) become(s script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.script = s
}

func (u *upstream) got() []received {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requests
}

// breakOff resets the connection.
func breakOff(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a FIN breaks the answer as well
	}
	_ = conn.Close()
}
