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
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"time"
)

// defaultTLSHandshakeTimeout bounds what Caddy's transport leaves unlimited: an
// upstream that accepts connections and is silent is no better than one that
// refuses them.
const defaultTLSHandshakeTimeout = 10 * time.Second

// completeTransport sets what the gateway needs of a channel's transport beyond
// its configuration.
func completeTransport(t *http.Transport) {
	if t.TLSHandshakeTimeout == 0 {
		t.TLSHandshakeTimeout = defaultTLSHandshakeTimeout
	}
	t.DialContext = tellCause(t.DialContext)
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// tellCause returns a dial function whose errors tell their cause. Those of
// Caddy's transport hide it (reverseproxy.DialError does not unwrap), so that a
// refused connection could not be told from a lack of local ports.
func tellCause(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var seen dialCause // addresses are dialed at once
		conn, err := dial(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			DNSDone:     func(i httptrace.DNSDoneInfo) { seen.note(i.Err) },
			ConnectDone: func(_, _ string, err error) { seen.note(err) },
		}), network, address)
		if err != nil {
			return nil, &dialError{error: err, cause: cmp.Or(seen.last(), causeOf(err, network))}
		}
		return conn, nil
	}
}

// causeOf reads the cause from the text of an error that hides it.
func causeOf(err error, network string) error {
	cause := errors.New("failed")
	if strings.HasSuffix(err.Error(), "i/o timeout") {
		cause = os.ErrDeadlineExceeded
	}
	return &net.OpError{Op: "dial", Net: network, Err: cause}
}

type dialCause struct {
	mu  sync.Mutex
	err error
}

func (c *dialCause) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.err = err
	}
}

func (c *dialCause) last() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// dialError is an error of a dial, with what caused it.
type dialError struct {
	error
	cause error
}

// Unwrap returns both, so that either is found.
func (e *dialError) Unwrap() []error { return []error{e.error, e.cause} }
