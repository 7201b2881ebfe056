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
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxEncodings is how many encodings of one body are undone.
	maxEncodings = 2
	// maxWindow is the memory that a zstd frame may ask for: 8 MiB is what
	// RFC 9659 allows for HTTP.
	maxWindow = 8 << 20
)

// decoder undoes the encodings of a body. What each stage puts out is metered,
// so that neither a stage nor the whole can expand without end.
type decoder struct {
	io.Reader
	closers []io.Closer
}

// newDecoder returns a decoder for the values of Content-Encoding; nil if there
// is nothing to undo. An empty body passes as empty whatever its encoding.
func newDecoder(in io.Reader, m *meter, values []string) (*decoder, error) {
	names, err := encodings(values)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	d := &decoder{Reader: in}
	for _, name := range slices.Backward(names) {
		stage := &lazy{in: d.Reader, name: name}
		d.Reader = &metered{r: stage, m: m}
		d.closers = append(d.closers, stage)
	}
	return d, nil
}

// Close frees the decoders. It does not close the body.
func (d *decoder) Close() error {
	for _, c := range d.closers {
		c.Close()
	}
	return nil
}

// encodings returns the encodings in the order in which they were applied.
func encodings(values []string) ([]string, error) {
	var names []string
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			switch name = strings.ToLower(strings.TrimSpace(name)); name {
			case "", "identity":
			case "gzip", "x-gzip", "zstd", "deflate":
				names = append(names, name)
			default:
				return nil, unsupported(name)
			}
		}
	}
	if len(names) > maxEncodings {
		return nil, unsupported(strings.Join(names, ", "))
	}
	return names, nil
}

// lazy makes its decoder when it is first read, since making one already reads
// the head of the body.
type lazy struct {
	in   io.Reader
	name string
	out  io.ReadCloser
	err  error
}

// Read implements io.Reader.
func (l *lazy) Read(p []byte) (int, error) {
	if l.out == nil && l.err == nil {
		l.out, l.err = open(l.name, l.in)
	}
	if l.err != nil {
		return 0, l.err
	}
	return l.out.Read(p)
}

// Close implements io.Closer.
func (l *lazy) Close() error {
	if l.out == nil || l.err != nil { // gzip and zlib give a nil pointer beside an error
		return nil
	}
	return l.out.Close()
}

// open returns a decoder of in. It gives io.EOF if in is empty.
func open(name string, in io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(in)
	head, err := buffered.Peek(2)
	if len(head) == 0 {
		return nil, err
	}
	switch name {
	case "zstd":
		d, err := zstd.NewReader(buffered,
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case "deflate":
		if isZlib(head) {
			return zlib.NewReader(buffered)
		}
		return flate.NewReader(buffered), nil
	default:
		return gzip.NewReader(buffered)
	}
}

// isZlib tells the zlib format, which "deflate" means, from the bare deflate
// stream that some clients send under that name.
func isZlib(head []byte) bool {
	return len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0
}
