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
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// Transport is how an attempt failed that brought no answer.
type Transport uint8

// The kinds. Timeout is a time limit after the connection stood; Dial and TLS
// are failures before anything was sent, for whatever reason; Reset is a
// connection that broke; Garbage is what is no HTTP. Local is a limit of this
// machine, or an attempt called off, and Unsent a request that cannot be sent as
// it is: they say nothing about the upstream.
const (
	Timeout Transport = iota
	Dial
	TLS
	Reset
	Garbage
	Local
	Unsent
)

var transportNames = [...]string{"timeout", "dial", "tls", "reset", "garbage", "local", "unsent"}

// String returns the name of the kind in lower case.
func (t Transport) String() string {
	if int(t) < len(transportNames) {
		return transportNames[t]
	}
	return "unknown"
}

// localErrors are limits of this machine.
var localErrors = []struct {
	err  error
	text string
}{
	{syscall.EMFILE, "too many open files"},
	{syscall.ENFILE, "too many open files"},
	{syscall.ENOBUFS, "no buffer space"},
	{syscall.ENOMEM, "out of memory"},
	{syscall.EADDRNOTAVAIL, "no free port"},
}

// dialErrors are the reasons worth telling apart.
var dialErrors = []struct {
	err  error
	text string
}{
	{syscall.ECONNREFUSED, "connection refused"},
	{syscall.ECONNRESET, "connection reset"},
	{syscall.EHOSTUNREACH, "host unreachable"},
	{syscall.ENETUNREACH, "network unreachable"},
	{syscall.EPERM, "not permitted"},
	{syscall.EACCES, "not permitted"},
}

// unsentTexts, garbageTexts and resetTexts tell errors of net/http that have no
// type.
var (
	unsentTexts = []string{
		"net/http: invalid header field", "net/http: invalid trailer field", "net/http: invalid method", "unsupported protocol scheme",
		"no host in request url", "invalid header field value",
	}
	garbageTexts = []string{
		"malformed", "invalid byte in chunk", "bad content-length", "unsupported transfer encoding",
		"too many transfer encodings", "gzip: invalid", "response headers exceeded", "header list", "protocol error", "unexpected content-length",
	}
	resetTexts = []string{
		"connection reset", "broken pipe", "server closed", "stream error", "goaway", "client connection lost", "use of closed network connection",
		"unexpected eof", "transport connection broken",
	}
)

// OfTransport tells how an attempt failed, and a short text of it that holds no
// address, no part of the request and no part of the answer. It takes nil and
// what it does not know for a connection that broke.
func OfTransport(err error) (Transport, string) {
	if err == nil {
		return Reset, "connection reset"
	}
	if text := localText(err); text != "" {
		return Local, "local: " + text
	}
	if containsAny(strings.ToLower(err.Error()), unsentTexts) {
		return Unsent, "unsent: invalid request"
	}
	if text := dialText(err); text != "" {
		return Dial, "dial: " + text
	}
	if text := tlsText(err); text != "" {
		return TLS, "tls: " + text
	}
	if isTimeout(err) {
		return Timeout, "timeout"
	}
	return brokenConnection(err)
}

func localText(err error) string {
	if errors.Is(err, context.Canceled) {
		return "canceled"
	}
	for _, l := range localErrors {
		if errors.Is(err, l.err) {
			return l.text
		}
	}
	if strings.Contains(err.Error(), "too many open files") {
		return "too many open files" // the resolver keeps only the text
	}
	return ""
}

func dialText(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		if dns.IsTimeout {
			return "name lookup timed out"
		}
		if dns.IsNotFound {
			return "no such host"
		}
		return "name lookup failed"
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" && op.Op != "proxyconnect" && op.Op != "socks connect" {
		return ""
	}
	for _, d := range dialErrors {
		if errors.Is(err, d.err) {
			return d.text
		}
	}
	if op.Timeout() {
		return "timeout"
	}
	return "failed"
}

func tlsText(err error) string {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
		record       tls.RecordHeaderError
		alert        tls.AlertError
	)
	text := strings.ToLower(err.Error())
	switch {
	case errors.As(err, &verification), errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid):
		return "certificate"
	case errors.As(err, &record), strings.Contains(text, "server gave http response to https client"):
		return "no TLS"
	case strings.Contains(text, "tls handshake timeout"):
		return "timeout"
	case errors.As(err, &alert), strings.Contains(text, "tls: "):
		return "handshake"
	}
	return ""
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

func brokenConnection(err error) (Transport, string) {
	text := strings.ToLower(err.Error())
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Reset, "connection reset"
	case containsAny(text, garbageTexts):
		return Garbage, "garbage: malformed response"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), containsAny(text, resetTexts):
		return Reset, "connection reset"
	}
	return Reset, "connection broken"
}
