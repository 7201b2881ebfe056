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

// Package request reads what a client's request asks for: the API that it
// speaks, the model, whether the answer shall be streamed. It keeps the body,
// so that the request can be sent more than once, each time with another model
// name in the place where the client wrote its own.
//
// Nothing is parsed into a tree and written again. Apart from the name of the
// model, a body leaves as the bytes that came in, and so do path and query.
package request

import (
	"net/http"
	"strings"
	"sync"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// Limits bounds what Read accepts.
type Limits struct {
	// MaxBody is the size of a body in bytes, both as received and after its
	// Content-Encoding was undone. 0 or less: no limit.
	MaxBody int64
	// Budget counts the bytes of the bodies that are kept; nil: nothing counts
	// them. A request for which Total would be exceeded is refused with CodeBusy.
	Budget *Budget
	Total  int64
}

// Request is what a client asks for. The exported fields are set by Read; all
// methods may be called concurrently.
type Request struct {
	// Dialect is the API that the request speaks.
	Dialect dialect.Dialect
	// Model is the requested model, "" if the request names none.
	Model string
	// NeedsModel is set where the API demands a model; Model is then not empty.
	NeedsModel bool
	// Stream is set if a streamed answer, or a websocket, is asked for.
	Stream bool
	// Method is the HTTP method.
	Method string

	path  string // escaped
	query string // raw
	place place
	from  int // the model, in path or body
	to    int
	// boundary is that of a multipart body whose model is known.
	boundary string
	size     int // of the body
	decoded  bool

	mu       sync.Mutex
	body     []byte
	account  account
	released bool
}

// place is where the model stands.
type place uint8

const (
	nowhere place = iota
	inJSON
	inForm
	inPath
	inQuery
)

// Read reads r, all of its body included. The error is an *Error if the request
// cannot be served as it is. Any other error means that the body could not be
// read, because the client is gone. A body of a request that names no model by
// its nature (files, batches) is kept, but never looked into.
//
// The body of a websocket is not touched.
func Read(r *http.Request, l Limits) (*Request, error) {
	path := escapedPath(r.URL)
	if err := refuseDotSegments(path); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(r.URL.RawQuery, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return nil, invalid("the query has a space or a control character that is not escaped")
	}
	rt := match(r, path)
	q := &Request{
		Dialect:    rt.dialect,
		NeedsModel: rt.look >= lookStream,
		Stream:     rt.stream,
		Method:     r.Method,
		path:       path,
		query:      r.URL.RawQuery,
	}
	if err := q.readAddress(rt, isWebsocket(r)); err != nil {
		return nil, err
	}
	if isWebsocket(r) {
		q.Stream = true
		return q, nil
	}
	q.account = account{budget: l.Budget, limit: l.Total}
	if err := q.readBody(r, rt.look, l.MaxBody); err != nil {
		q.Release()
		return nil, err
	}
	if err := q.lookInto(rt, r.Header.Get("Content-Type")); err != nil {
		q.Release()
		return nil, err
	}
	return q, nil
}

// readAddress takes the model from path or query.
func (q *Request) readAddress(rt route, websocket bool) (err error) {
	if rt.to > 0 {
		q.place, q.from, q.to = inPath, rt.from, rt.to
		q.Model, err = pathModel(q.path[rt.from:rt.to])
		return err
	}
	if !websocket && !rt.realtime {
		return nil
	}
	q.Model, err = queryModel(q.query)
	if q.Model != "" {
		q.place = inQuery
	}
	return err
}

// lookInto takes model and stream flag from the body, as far as the route says
// that they stand there.
func (q *Request) lookInto(rt route, contentType string) error {
	if rt.look == lookNowhere || (q.size == 0 && rt.look != lookModel) {
		return nil
	}
	if rt.look == lookMaybe && isForm(contentType) {
		return nil
	}
	m, err := membersOf(q.body, contentType)
	if err != nil {
		return rt.judge(err)
	}
	q.Stream = q.Stream || m.stream == yes || (rt.streams && m.stream != no)
	if q.place != nowhere {
		return nil
	}
	model, err := m.model(q.body)
	if err != nil {
		return rt.judge(err)
	}
	q.Model, q.from, q.to, q.place = model, m.from, m.to, inJSON
	if m.form {
		q.place, q.boundary = inForm, m.boundary
	}
	return nil
}

// judge passes an error on only where the body has to name a model. Everywhere
// else an odd body is for the provider to judge.
func (rt route) judge(err error) error {
	if rt.look == lookModel {
		return err
	}
	return nil
}

// isWebsocket tells an upgrade over HTTP/1.1, and an extended CONNECT over
// HTTP/2 and HTTP/3. Go's server puts the protocol of the latter two into a
// header, quic-go into Proto.
func isWebsocket(r *http.Request) bool {
	if r.Method == http.MethodConnect {
		return r.Header.Get(":protocol") == "websocket" || r.Proto == "websocket"
	}
	return r.Method == http.MethodGet &&
		strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		strings.Contains(strings.ToLower(strings.Join(r.Header["Connection"], ",")), "upgrade")
}
