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
	"sync"
	"sync/atomic"
)

// doubts counts, by model, how often in a row a channel refused a request as the
// caller's fault without a code that says why. One such refusal is believed;
// many without an answer in between may be the channel's own fault. It is safe
// for concurrent use.
type doubts struct {
	known atomic.Int32 // how many models are counted: mostly none

	mu      sync.Mutex
	byModel map[string]*doubt
}

type doubt struct {
	refusals int
	asking   bool // somebody asks for a second opinion
}

// maxDoubts bounds the models that are counted.
const maxDoubts = 1000

// refused counts a refusal, and reports whether the caller is to ask for a second
// opinion: from the limit-th on, or at once for a probe, but one at a time. It
// must then tell what came of it by agreed, contradicted or unanswered.
func (d *doubts) refused(model string, limit int, probe bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.byModel[model]
	if m == nil {
		if len(d.byModel) >= maxDoubts {
			d.forgetOne()
		}
		if d.byModel == nil {
			d.byModel = make(map[string]*doubt)
		}
		m = new(doubt)
		d.byModel[model] = m
		d.known.Store(int32(len(d.byModel)))
	}
	m.refusals++
	if m.asking || m.refusals < limit && !probe {
		return false
	}
	m.asking = true
	return true
}

// forgetOne makes room by forgetting any model that nobody asks about. Requires
// mu.
func (d *doubts) forgetOne() {
	for model, m := range d.byModel {
		if !m.asking {
			delete(d.byModel, model)
			return
		}
	}
}

// answered ends the row, since the channel gave an answer.
func (d *doubts) answered(model string) {
	if d.known.Load() > 0 {
		d.forget(model)
	}
}

// agreed ends the row, since another channel refused the request too.
func (d *doubts) agreed(model string) { d.forget(model) }

func (d *doubts) forget(model string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byModel, model)
	d.known.Store(int32(len(d.byModel)))
}

// undecided lets the next refusal ask again.
func (d *doubts) undecided(model string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.byModel[model]; m != nil {
		m.asking = false
	}
}

// suspects returns the models whose next refusal would be doubted.
func (d *doubts) suspects(limit int) []string {
	if limit == 0 || d.known.Load() == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var models []string
	for model, m := range d.byModel {
		if m.refusals >= limit {
			models = append(models, model)
		}
	}
	return models
}
