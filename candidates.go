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
	"cmp"
	"slices"

	"github.com/llm-gateway/caddy-llm-gateway/request"
)

// candidate is a channel that could serve a request, with the upstream model
// that it would be asked for.
type candidate struct {
	*channel
	model string
	group int  // groups are tried in order; a policy picks within one
	tried bool // in this request
	skip  bool // lost a race while this choice was being made
}

// routes is the order in which the channels of a gateway are considered. It is
// immutable.
type routes struct {
	channels  []*channel
	primaries []*channel // by priority, then config order
	chains    bool       // there are backups
}

func newRoutes(channels []*channel) *routes {
	r := &routes{channels: channels}
	for _, ch := range channels {
		if !ch.backupOnly {
			r.primaries = append(r.primaries, ch)
		}
		r.chains = r.chains || len(ch.backups) > 0
	}
	slices.SortStableFunc(r.primaries, func(a, b *channel) int { return cmp.Compare(a.priority, b.priority) })
	return r
}

// candidates appends to list, in the order of preference, the channels that
// speak the request's dialect and accept its model.
func (r *routes) candidates(q *request.Request, list []candidate) []candidate {
	if q.Model == "" {
		return r.modelless(q, list)
	}
	group := -1
	for i, ch := range r.primaries {
		model, ok := ch.accepts(q)
		if !ok {
			continue
		}
		if n := len(list); n == 0 || r.primaries[i].priority != list[n-1].priority {
			group++
		}
		list = append(list, candidate{channel: ch, model: model, group: group})
	}
	if !r.chains {
		return list
	}
	w := chainWalk{q: q, list: list, group: group}
	// Backups of primaries that fit come first: the chain of one that does not
	// is only passed through.
	for _, fits := range []bool{true, false} {
		for _, ch := range r.primaries {
			if _, ok := ch.accepts(q); ok == fits {
				w.follow(ch)
			}
		}
	}
	return w.list
}

// modelless returns the channels of the dialect in config order, each its own
// group: what a request without a model refers to (a file, a batch) lives at
// one account, so the first one is always the same.
func (r *routes) modelless(q *request.Request, list []candidate) []candidate {
	for _, ch := range r.channels {
		if ch.speaks(q.Dialect) {
			list = append(list, candidate{channel: ch, group: len(list)})
		}
	}
	return list
}

// chainWalk follows backup chains depth first, each channel once.
type chainWalk struct {
	q     *request.Request
	list  []candidate
	group int
	seen  []*channel
}

func (w *chainWalk) follow(ch *channel) {
	for _, b := range ch.backups {
		if slices.Contains(w.seen, b) {
			continue
		}
		w.seen = append(w.seen, b)
		if model, ok := b.accepts(w.q); ok && !w.listed(b) {
			w.group++
			w.list = append(w.list, candidate{channel: b, model: model, group: w.group})
		}
		w.follow(b)
	}
}

func (w *chainWalk) listed(ch *channel) bool {
	return slices.ContainsFunc(w.list, func(c candidate) bool { return c.channel == ch })
}
