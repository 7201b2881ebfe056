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

package verdict

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTransportErrors(t *testing.T) {
	dial := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://host.example/?key=secret", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, Err: err}}
	}
	read := func(err error) error {
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
	}
	tests := []struct {
		err  error
		kind Transport
		text string
	}{
		{nil, Reset, "connection reset"},
		{context.Canceled, Local, "local: canceled"},
		{context.DeadlineExceeded, Timeout, "timeout"},
		{fmt.Errorf("x: %w", os.ErrDeadlineExceeded), Timeout, "timeout"},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), Dial, "dial: connection refused"},
		{dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), Dial, "dial: host unreachable"},
		{dial(os.NewSyscallError("connect", syscall.ENETUNREACH)), Dial, "dial: network unreachable"},
		{dial(os.ErrDeadlineExceeded), Dial, "dial: timeout"},
		{dial(errors.New("odd secret")), Dial, "dial: failed"},
		{dial(&net.DNSError{Err: "no such host", Name: "host.example", IsNotFound: true}), Dial, "dial: no such host"},
		{dial(&net.DNSError{Err: "i/o timeout", Name: "host.example", IsTimeout: true}), Dial, "dial: name lookup timed out"},
		{dial(&net.DNSError{Err: "server misbehaving", Name: "host.example"}), Dial, "dial: name lookup failed"},
		{dial(os.NewSyscallError("socket", syscall.EMFILE)), Local, "local: too many open files"},
		{dial(os.NewSyscallError("socket", syscall.ENFILE)), Local, "local: too many open files"},
		{dial(&net.DNSError{Err: "dial udp: socket: too many open files", Name: "host.example"}), Local, "local: too many open files"},
		{dial(os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)), Local, "local: no free port"},
		{&tls.CertificateVerificationError{Err: errors.New("secret")}, TLS, "tls: certificate"},
		{errors.New("remote error: tls: handshake failure"), TLS, "tls: handshake"},
		{errors.New("net/http: TLS handshake timeout"), TLS, "tls: timeout"},
		{errors.New("http: server gave HTTP response to HTTPS client"), TLS, "tls: no TLS"},
		{io.EOF, Reset, "connection reset"},
		{io.ErrUnexpectedEOF, Reset, "connection reset"},
		{read(syscall.ECONNRESET), Reset, "connection reset"},
		{read(syscall.EPIPE), Reset, "connection reset"},
		{errors.New("http: server closed idle connection"), Reset, "connection reset"},
		{errors.New("stream error: stream ID 1; INTERNAL_ERROR; received from peer"), Reset, "connection reset"},
		{errors.New("http2: server sent GOAWAY and closed the connection"), Reset, "connection reset"},
		{errors.New("net/http: HTTP/1.x transport connection broken: malformed HTTP response \"secret\""), Garbage, "garbage: malformed response"},
		{errors.New("net/http: server response headers exceeded 1 bytes; aborted"), Garbage, "garbage: malformed response"},
		{errors.New("secret"), Reset, "connection broken"},
	}
	for _, tt := range tests {
		kind, text := OfTransport(tt.err)
		if kind != tt.kind || text != tt.text {
			t.Errorf("%v: %v %q, want %v %q", tt.err, kind, text, tt.kind, tt.text)
		}
	}
}

// TestRealTransportErrors makes them with net/http, whose texts change.
func TestRealTransportErrors(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	closed := listen(t, nil)
	closed.Close()
	tests := []struct {
		name, url string
		kind      Transport
	}{
		{"refused", "http://" + closed.Addr().String(), Dial},
		{"unknown certificate", secure.URL, TLS},
		{"plain text to TLS", "https://" + listen(t, answer("HTTP/1.1 400 Bad Request\r\n\r\n")).Addr().String(), TLS},
		{"no HTTP", "http://" + listen(t, answer("garbage here\r\n\r\n")).Addr().String(), Garbage},
		{"bad header", "http://" + listen(t, answer("HTTP/1.1 200 OK\r\nno colon\r\n\r\n")).Addr().String(), Garbage},
		{"closed at once", "http://" + listen(t, answer("")).Addr().String(), Reset},
		{"part of the headers", "http://" + listen(t, answer("HTTP/1.1 200 OK\r\nA: b")).Addr().String(), Reset},
		{"part of a status line", "http://" + listen(t, answer("HTTP/1.1 2")).Addr().String(), Garbage},
		{"silence", "http://" + listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }).Addr().String(), Timeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			transport := &http.Transport{ResponseHeaderTimeout: 300 * time.Millisecond}
			defer transport.CloseIdleConnections()
			req, err := http.NewRequest(http.MethodPost, tt.url+"/path?key=secret", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := transport.RoundTrip(req)
			if err == nil {
				res.Body.Close()
				t.Fatalf("status %d", res.StatusCode)
			}
			kind, text := OfTransport(err)
			if kind != tt.kind {
				t.Errorf("%v: %v, want %v", err, kind, tt.kind)
			}
			if strings.Contains(text, "secret") || strings.Contains(text, "127.0.0.1") {
				t.Errorf("text %q", text)
			}
		})
	}
}

// A request that cannot be sent as it is says nothing about the upstream.
func TestUnsentRequests(t *testing.T) {
	for name, spoil := range map[string]func(*http.Request){
		"header name":  func(r *http.Request) { r.Header["bad name"] = []string{"secret"} },
		"header value": func(r *http.Request) { r.Header.Set("X", "secret\n") },
		"method":       func(r *http.Request) { r.Method = "BAD METHOD" },
		"scheme":       func(r *http.Request) { r.URL.Scheme = "secret" },
		"host":         func(r *http.Request) { r.URL.Host, r.Host = "", "" },
	} {
		req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:1/secret", nil)
		if err != nil {
			t.Fatal(err)
		}
		spoil(req)
		res, err := new(http.Transport).RoundTrip(req)
		if err == nil {
			res.Body.Close()
			t.Fatalf("%s: sent", name)
		}
		if kind, text := OfTransport(err); kind != Unsent || text != "unsent: invalid request" {
			t.Errorf("%s: %v is %v, %q", name, err, kind, text)
		}
	}
}

// answer reads a request, writes text and closes the connection.
func answer(text string) func(net.Conn) {
	return func(c net.Conn) {
		buf := bufio.NewReader(c)
		_, _ = buf.ReadByte()
		_, _ = buf.Discard(buf.Buffered())
		_, _ = io.WriteString(c, text)
	}
}

func listen(t *testing.T, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			c.Close()
		}
	}()
	return l
}

func TestTransportNames(t *testing.T) {
	for k, want := range []string{"timeout", "dial", "tls", "reset", "garbage", "local", "unsent", "unknown"} {
		if got := Transport(k).String(); got != want {
			t.Errorf("%d is %q, want %q", k, got, want)
		}
	}
}
