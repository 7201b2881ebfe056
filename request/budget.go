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
	"net/http"
	"sync/atomic"
)

// Budget bounds the memory for the bodies of all requests together. It is safe
// for concurrent use, and may be shared by several limits.
type Budget struct{ used atomic.Int64 }

// Used returns how many bytes are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// take takes n bytes, unless more than limit would be taken then.
func (b *Budget) take(n, limit int64) bool {
	if b.used.Add(n) > limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *Budget) giveBack(n int64) { b.used.Add(-n) }

// account is what one request has taken of a budget.
type account struct {
	budget *Budget // nil: nothing is counted
	limit  int64
	taken  int64
}

func (a *account) take(n int64) error {
	if a.budget == nil {
		return nil
	}
	if !a.budget.take(n, a.limit) {
		return busy()
	}
	a.taken += n
	return nil
}

func (a *account) giveBack(n int64) {
	if a.budget != nil {
		a.taken -= n
		a.budget.giveBack(n)
	}
}

func (a *account) close() { a.giveBack(a.taken) }

func busy() error {
	return &Error{
		Status:  http.StatusServiceUnavailable,
		Code:    CodeBusy,
		Message: "the gateway holds as many request bodies as it may; try again",
	}
}
