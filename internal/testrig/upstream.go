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

package testrig

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Received is a request as an upstream got it.
type Received struct {
	Method string
	Target string // of the request line
	Host   string
	Header http.Header
	Body   string
	Model  string // of a JSON body
	SNI    string // the server name of a TLS handshake
}

// Upstream is a scripted provider. Until told otherwise it answers every
// request with a chat completion.
type Upstream struct {
	URL string

	server  *httptest.Server
	handler atomic.Pointer[http.HandlerFunc]
	gone    atomic.Int64
	forgets bool

	mu       sync.Mutex
	received []Received
}

// NewUpstream starts an upstream that ends with the test; setup may change its
// server before.
func NewUpstream(t testing.TB, setup ...func(*http.Server)) *Upstream {
	t.Helper()
	u := newUpstream()
	for _, f := range setup {
		f(u.server.Config)
	}
	u.server.Start()
	return u.started(t)
}

// NewTLSUpstream starts an upstream that speaks TLS, with a certificate of its
// own for those names. It also returns the file with that certificate, to be
// trusted.
func NewTLSUpstream(t testing.TB, names ...string) (*Upstream, string) {
	t.Helper()
	certificate, file := selfSigned(t, names)
	u := newUpstream()
	u.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	u.server.StartTLS()
	return u.started(t), file
}

func selfSigned(t testing.TB, names []string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		DNSNames:     names,
		IsCA:         true,

		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

func newUpstream() *Upstream {
	u := &Upstream{}
	u.Answer(OK)
	u.server = httptest.NewUnstartedServer(http.HandlerFunc(u.serve))
	return u
}

func (u *Upstream) started(t testing.TB) *Upstream {
	u.URL = u.server.URL
	t.Cleanup(func() {
		u.server.CloseClientConnections()
		u.server.Close()
	})
	return u
}

// Forget makes the upstream keep no record of its requests, for benchmarks.
func (u *Upstream) Forget() { u.forgets = true }

func (u *Upstream) serve(w http.ResponseWriter, r *http.Request) {
	if u.forgets {
		(*u.handler.Load())(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var named struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &named)
	got := Received{r.Method, r.RequestURI, r.Host, r.Header.Clone(), string(body), named.Model, ""}
	if r.TLS != nil {
		got.SNI = r.TLS.ServerName
	}
	u.mu.Lock()
	u.received = append(u.received, got)
	u.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	defer func() {
		if r.Context().Err() != nil {
			u.gone.Add(1)
		}
	}()
	(*u.handler.Load())(w, r)
}

// Answer replaces what the upstream does from now on.
func (u *Upstream) Answer(h http.HandlerFunc) { u.handler.Store(&h) }

// Count returns how many requests came.
func (u *Upstream) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.received)
}

// Gone returns how many requests were broken off by the other side while they
// were being answered.
func (u *Upstream) Gone() int { return int(u.gone.Load()) }

// Received returns the requests so far.
func (u *Upstream) Received() []Received {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Received(nil), u.received...)
}

// Last returns the newest request.
func (u *Upstream) Last() Received {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.received) == 0 {
		return Received{}
	}
	return u.received[len(u.received)-1]
}

// Completion is the body of a chat completion.
const Completion = `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`

// OK answers with a chat completion, as a stream if one is asked for.
func OK(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Stream bool `json:"stream"`
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	if asked.Stream {
		EventStream(w, Chunk("hel"), Chunk("lo"), FinishChunk, "[DONE]")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, Completion)
}

// Chunk is the data of a chat stream's content event.
func Chunk(text string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, text)
}

// FinishChunk is the data of a chat stream's last event but one.
const FinishChunk = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// EventStream answers with an event stream of the given data.
func EventStream(w http.ResponseWriter, data ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, d := range data {
		fmt.Fprintf(w, "data: %s\n\n", d)
		w.(http.Flusher).Flush()
	}
}

// Fail answers with that status and an error body in OpenAI's shape.
func Fail(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"scripted","type":"t","param":null,"code":%q}}`, code)
	}
}

// AcceptKey answers as OK does to requests with that bearer key, and 401 to all
// others.
func AcceptKey(key string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			Fail(http.StatusUnauthorized, "invalid_api_key")(w, r)
			return
		}
		OK(w, r)
	}
}

// Hang answers nothing until the other side goes.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Reset breaks the connection off with a reset.
func Reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

// Raw writes the given bytes as they are and closes the connection.
func Raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		io.WriteString(conn, answer)
		conn.Close()
	}
}

// Refusing returns the URL of an address where nobody listens.
func Refusing(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("http://127.0.0.1:%d", FreePorts(t, 1)[0])
}
