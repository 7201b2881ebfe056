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
	"math"
	"sync/atomic"
)

const (
	defaultBudgetPercent = 20
	defaultBudgetMin     = 10
)

// retryBudget bounds the retries of a gateway that are in flight: when much
// fails, retries must not become the load that keeps it failing. It is safe for
// concurrent use.
type retryBudget struct {
	off      bool
	percent  float64
	min      int64
	requests *atomic.Int64 // in flight
	retries  *atomic.Int64 // in flight, those that are not free
}

func newRetryBudget(c *RetryBudget) retryBudget {
	b := retryBudget{percent: defaultBudgetPercent, min: defaultBudgetMin, requests: new(atomic.Int64), retries: new(atomic.Int64)}
	if c != nil {
		b.off, b.percent, b.min = c.Off, c.Percent, int64(or(c.Min, defaultBudgetMin))
	}
	return b
}

// take counts a retry in, if there is room for one.
func (b *retryBudget) take() bool {
	most := max(b.min, int64(math.Floor(b.percent/100*float64(b.requests.Load()))))
	for {
		n := b.retries.Load()
		if n >= most && !b.off {
			return false
		}
		if b.retries.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (b *retryBudget) giveBack() { b.retries.Add(-1) }
