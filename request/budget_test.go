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
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func chatOf(size int) string {
	return `{"model":"m","messages":[{"content":"` + strings.Repeat("x", size) + `"}]}`
}

// However a request ends, what it took is given back once.
func TestBudgetIsGivenBackHoweverARequestEnds(t *testing.T) {
	budget := new(Budget)
	limits := Limits{MaxBody: 1 << 20, Budget: budget, Total: 4 << 20}
	read := func(body io.Reader, header ...string) (*Request, error) {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", body)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return Read(r, limits)
	}
	var coded bytes.Buffer
	z := gzip.NewWriter(&coded)
	io.WriteString(z, chatOf(100_000))
	z.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		size := rng.IntN(200_000)
		var q *Request
		var err error
		switch rng.IntN(7) {
		case 0:
			q, err = read(strings.NewReader("{"))
		case 1:
			q, err = read(io.MultiReader(strings.NewReader(chatOf(size)), iotest.ErrReader(errors.New("gone"))))
		case 2:
			q, err = read(strings.NewReader(chatOf(2 << 20)))
		case 3:
			q, err = read(bytes.NewReader(coded.Bytes()), "Content-Encoding", "gzip")
		case 4:
			q, err = read(bytes.NewReader(coded.Bytes()[:100]), "Content-Encoding", "gzip")
		default:
			q, err = read(iotest.OneByteReader(strings.NewReader(chatOf(size % 5000))))
		}
		if err != nil && budget.Used() != 0 {
			t.Fatalf("after %v: %d bytes are taken", err, budget.Used())
		}
		if q == nil {
			continue
		}
		if used := budget.Used(); used < int64(q.size) {
			t.Fatalf("%d bytes are taken for a body of %d", used, q.size)
		}
		q.Release()
		q.Release()
		if budget.Used() != 0 {
			t.Fatalf("after Release: %d bytes are taken", budget.Used())
		}
	}
}

func TestBudgetRefusesWhatIsTooMuchTogether(t *testing.T) {
	limits := Limits{MaxBody: 1 << 20, Budget: new(Budget), Total: 1 << 20}
	read := func() (*Request, error) {
		return Read(httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(chatOf(600_000))), limits)
	}
	first, err := read()
	if err != nil {
		t.Fatal(err)
	}
	_, err = read()
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != 503 || e.Code != CodeBusy {
		t.Fatalf("%v", err)
	}
	first.Release()
	if _, err = read(); err != nil {
		t.Error(err)
	}
}
