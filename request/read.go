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
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
)

const (
	// firstBuffer is what a Content-Length alone gets us to allocate; more
	// follows as the bytes come in.
	firstBuffer = 1 << 20
	// smallBuffer is the start where no length is announced.
	smallBuffer = 4 << 10
)

// readBody reads the body whole, decoded where it is going to be looked into
// or where a model is chosen for it.
func (q *Request) readBody(r *http.Request, look look, limit int64) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if limit <= 0 {
		limit = math.MaxInt64 - 1
	}
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	m := &meter{limit: limit}
	var in io.Reader = &metered{r: r.Body, m: m, client: true}
	hint := r.ContentLength
	if look >= lookStream {
		decoder, err := newDecoder(in, m, r.Header["Content-Encoding"])
		if err != nil {
			return err
		}
		if decoder != nil {
			defer decoder.Close()
			in, hint, q.decoded = decoder, -1, true
		}
	}
	body, err := slurp(in, hint, limit, &q.account)
	if _, ours := errors.AsType[*Error](err); ours {
		return err
	}
	if err != nil {
		return m.explain(err)
	}
	q.body, q.size = body, len(body)
	return nil
}

// slurp reads all of r, at most limit bytes: r itself fails beyond that. The
// buffer grows by doubling, up to the announced length (negative if unknown) or
// the limit, so that old and new one together stay below twice the limit.
//
// The memory is taken from acc, and stays taken.
func slurp(r io.Reader, announced, limit int64, acc *account) ([]byte, error) {
	first := int64(smallBuffer)
	if announced >= 0 {
		first = min(announced+1, firstBuffer) // one more, to see the end
	}
	if err := acc.take(min(first, limit+1)); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, min(first, limit+1))
	for {
		if len(buf) == cap(buf) {
			size := grown(buf, announced, limit)
			if err := acc.take(size); err != nil {
				return nil, err
			}
			bigger := make([]byte, len(buf), size)
			copy(bigger, buf)
			acc.giveBack(int64(cap(buf)))
			buf = bigger
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// grown returns the size of the buffer that is to follow buf.
func grown(buf []byte, announced, limit int64) int64 {
	size, most := 2*int64(cap(buf)), limit+1
	if announced >= int64(len(buf)) {
		most = announced + 1
	}
	if size+size/8 >= most { // not once more for the little that is left
		size = most
	}
	return size
}

// meter is shared by the stages that a body passes through, and remembers what
// ended the reading; decoders do not always pass on the error that they got.
type meter struct {
	limit int64
	over  bool
	err   error // of the client's connection
}

// explain turns the error that slurp ended with into the one to return.
func (m *meter) explain(err error) error {
	var tooBig *http.MaxBytesError
	switch {
	case m.over:
		return tooLarge(m.limit)
	case errors.As(m.err, &tooBig):
		return tooLarge(tooBig.Limit)
	case m.err != nil:
		return fmt.Errorf("reading the request body: %w", m.err)
	default:
		return invalid("the request body cannot be decoded as its Content-Encoding says: %v", err)
	}
}

var errOver = errors.New("larger than the limit")

// metered fails once more bytes than the limit have passed.
type metered struct {
	r      io.Reader
	m      *meter
	n      int64
	client bool // r is the client's connection
}

// Read implements io.Reader.
func (s *metered) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if s.n > s.m.limit {
		s.m.over = true
		return n, errOver
	}
	if s.client && err != nil && err != io.EOF {
		s.m.err = err
	}
	return n, err
}
