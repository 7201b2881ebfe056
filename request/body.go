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

package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
)

var (
	errReleased = errors.New("the request body was released")
	errClosed   = errors.New("read on a closed request body")
)

// HasBody reports whether the request came with a body of at least one byte.
func (q *Request) HasBody() bool { return q.size > 0 }

// Decoded reports whether a Content-Encoding was undone. The header then no
// longer fits what Body returns.
func (q *Request) Decoded() bool { return q.decoded }

// Body returns the body for one attempt, its length in bytes, and a function
// that opens it once more. If upstreamModel is neither empty nor the requested
// model, it stands in place of that, where the body names one. Without a body it
// is http.NoBody. Nothing is copied; after Release reading gives an error.
func (q *Request) Body(upstreamModel string) (body io.ReadCloser, length int64, getBody func() (io.ReadCloser, error)) {
	if q.size == 0 {
		return http.NoBody, 0, func() (io.ReadCloser, error) { return http.NoBody, nil }
	}
	var name []byte
	length = int64(q.size)
	if (q.place == inJSON || q.place == inForm) && q.replaces(upstreamModel) {
		name = q.written(upstreamModel)
		length += int64(len(name) - (q.to - q.from))
	}
	getBody = func() (io.ReadCloser, error) { return q.open(name), nil }
	return q.open(name), length, getBody
}

// replaces reports whether the requested model has to give way to another.
func (q *Request) replaces(upstreamModel string) bool {
	return upstreamModel != "" && upstreamModel != q.Model
}

// written returns the name as it is written in the body.
func (q *Request) written(name string) []byte {
	if q.place == inForm {
		return []byte(name)
	}
	literal, _ := json.Marshal(name) // a string never fails
	return literal
}

// open returns a reader of the body with name, if not nil, in the model's place.
func (q *Request) open(name []byte) io.ReadCloser {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.released {
		return &reader{err: errReleased}
	}
	parts := [3][]byte{q.body}
	if name != nil {
		parts = [3][]byte{q.body[:q.from], name, q.body[q.to:]}
	}
	if q.size <= small {
		return whole(parts)
	}
	return &reader{parts: parts}
}

// small is up to which size, in bytes, a body is handed to net/http as one piece
// of memory. It knows such readers, and sends them in one packet with the
// header: that saves a system call, and lets it tell that nothing was written
// when an idle connection turns out to be closed.
const small = 64 << 10

func whole(parts [3][]byte) io.ReadCloser {
	body := parts[0]
	if parts[1] != nil {
		body = bytes.Join(parts[:], nil)
	}
	return io.NopCloser(bytes.NewReader(body))
}

// Release frees the body, when no further attempt can follow. Readers handed
// out before keep theirs until they are closed. Releasing twice is harmless.
func (q *Request) Release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.body, q.released = nil, true
	q.account.close()
}

// reader reads its parts one after the other. Transports close a body while
// another goroutine reads it, hence the lock; it is only held while copying.
type reader struct {
	mu    sync.Mutex
	parts [3][]byte
	err   error // instead of io.EOF
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.parts {
		c := copy(p[n:], r.parts[i])
		r.parts[i] = r.parts[i][c:]
		n += c
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	if r.err != nil {
		return 0, r.err
	}
	return 0, io.EOF
}

// Close implements io.Closer. It lets go of the body.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts = [3][]byte{}
	if r.err == nil {
		r.err = errClosed
	}
	return nil
}
