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
	"slices"
	"sync"
	"time"
)

// firstTokens keeps, by model, how long the last streams took to their first
// content. It is safe for concurrent use.
type firstTokens struct {
	mu      sync.Mutex
	byModel map[string]*latencies
}

const (
	keptLatencies = 64
	// maxLatencyModels bounds the models for which they are kept.
	maxLatencyModels = 1000
)

// latencies are the last ones, in milliseconds.
type latencies struct {
	n    int
	last [keptLatencies]uint32
}

func (f *firstTokens) add(model string, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.byModel[model]
	if l == nil {
		if f.byModel == nil || len(f.byModel) >= maxLatencyModels {
			f.byModel = make(map[string]*latencies)
		}
		l = new(latencies)
		f.byModel[model] = l
	}
	l.last[l.n%keptLatencies] = uint32(took.Milliseconds())
	l.n++
}

// percentiles are of the last streams, in milliseconds.
type percentiles struct {
	P50 uint32 `json:"p50"`
	P95 uint32 `json:"p95"`
}

// of returns the percentiles for the model, nil if it had no stream yet.
func (f *firstTokens) of(model string) *percentiles {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.byModel[model]
	if l == nil {
		return nil
	}
	sorted := slices.Clone(l.last[:min(l.n, keptLatencies)])
	slices.Sort(sorted)
	at := func(percent int) uint32 { return sorted[(len(sorted)-1)*percent/100] }
	return &percentiles{at(50), at(95)}
}
