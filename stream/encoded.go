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

package stream

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// NewEncoded is New for a body that comes with a Content-Encoding: the watcher
// gets its bytes as received, and decodes gzip, deflate and zstd for itself. When
// [Watcher.Write] returns, all has been judged that those bytes decode to. Of any
// other encoding nothing but the body's being empty can be told. A watcher that
// decodes must be freed.
func NewEncoded(d dialect.Dialect, contentType, contentEncoding string, model bool) *Watcher {
	coding := strings.ToLower(strings.TrimSpace(contentEncoding))
	if coding == "" || coding == "identity" {
		return New(d, contentType, model)
	}
	open := decoders[coding]
	if open == nil {
		return New(d, "", model)
	}
	w := New(d, contentType, model)
	if w != nil && w.format != opaque {
		w.coded = newCoded(w, open)
	}
	return w
}

var decoders = map[string]func(*bufio.Reader) (io.Reader, error){
	"gzip":    openGzip,
	"x-gzip":  openGzip,
	"deflate": openDeflate,
	"zstd":    openZstd,
}

func openGzip(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// openDeflate takes the format that the name stands for (RFC 9110, section
// 8.4.1.2), and the bare one that some servers send.
func openDeflate(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// maxWindow bounds the memory that a zstd body can claim (RFC 9659).
const maxWindow = 8 << 20

func openZstd(r *bufio.Reader) (io.Reader, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// coded decodes what it is given piece by piece. Decoders pull their input, so
// one runs as a coroutine that is resumed with every piece.
type coded struct {
	piece  []byte
	over   bool // no piece follows
	err    error
	resume func() (struct{}, bool)
	stop   func()
}

func newCoded(w *Watcher, open func(*bufio.Reader) (io.Reader, error)) *coded {
	c := new(coded)
	c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.err = c.decode(w, open, yield)
	})
	return c
}

func (c *coded) decode(w *Watcher, open func(*bufio.Reader) (io.Reader, error), yield func(struct{}) bool) error {
	in := bufio.NewReader(&pieces{c, yield})
	r, err := open(in)
	if err != nil {
		return err
	}
	if closer, ok := r.(io.Closer); ok {
		defer closer.Close()
	}
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		w.write(buf[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write decodes p. It keeps nothing of it.
func (c *coded) write(p []byte) {
	c.piece = p
	c.resume()
	c.piece = nil
}

// end decodes what is left, and reports whether the code was whole.
func (c *coded) end() bool {
	c.over = true
	c.resume()
	c.stop()
	return c.err == nil
}

var errStopped = errors.New("stopped")

// pieces reads what the watcher is given.
type pieces struct {
	c     *coded
	yield func(struct{}) bool
}

// Read implements io.Reader.
func (r *pieces) Read(p []byte) (int, error) {
	for len(r.c.piece) == 0 {
		if r.c.over {
			return 0, io.EOF
		}
		if !r.yield(struct{}{}) {
			return 0, errStopped
		}
	}
	n := copy(p, r.c.piece)
	r.c.piece = r.c.piece[n:]
	return n, nil
}
