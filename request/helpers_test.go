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
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const testLimit = 1 << 20

// post makes a request as a server gets it.
func post(target, body string, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	setHeader(r, header)
	return r
}

func setHeader(r *http.Request, pairs []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Header.Add(pairs[i], pairs[i+1])
	}
}

func mustRead(t *testing.T, r *http.Request) *Request {
	t.Helper()
	q, err := Read(r, Limits{MaxBody: testLimit})
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return q
}

// refused returns the *Error that Read gives.
func refused(t *testing.T, r *http.Request, limit int64) *Error {
	t.Helper()
	q, err := Read(r, Limits{MaxBody: limit})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got (%v, %v), want an *Error", q, err)
	}
	if q != nil {
		t.Error("a request and an error")
	}
	return e
}

// bodyOf reads the body for one attempt, and once more by getBody, and checks
// both against the length.
func bodyOf(t *testing.T, q *Request, model string) string {
	t.Helper()
	body, length, getBody := q.Body(model)
	again, err := getBody()
	if err != nil {
		t.Fatal(err)
	}
	first, second := readAll(t, body), readAll(t, again)
	if first != second {
		t.Errorf("the second reading differs: %.80q, then %.80q", first, second)
	}
	if int64(len(first)) != length {
		t.Errorf("length %d, but %d bytes", length, len(first))
	}
	return first
}

func readAll(t *testing.T, r io.ReadCloser) string {
	t.Helper()
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
