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
	"net/http"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/llm-gateway/caddy-llm-gateway/credential"
	"github.com/llm-gateway/caddy-llm-gateway/request"
)

// affinity binds requests that have something in common, such as a session, to
// one channel and key. It is rendezvous hashing: each request ranks all channels
// by a hash of the two, so that when one goes out only its own sessions move, and
// they come back when it does. Nodes with the same configuration agree.
type affinity struct {
	header string   // in canonical form
	field  []string // the names on the way to a member of a JSON body
	prefix int      // bytes
}

func newAffinity(c *AffinityConfig) affinity {
	switch {
	case c == nil:
		return affinity{}
	case c.Field != "":
		return affinity{field: strings.Split(c.Field, ".")}
	}
	return affinity{header: http.CanonicalHeaderKey(c.Header), prefix: c.Prefix}
}

// session returns the hash of what binds a request; 0 if nothing does.
func (a *affinity) session(r *http.Request, q *request.Request) uint64 {
	switch {
	case a.header != "":
		if value := r.Header.Get(a.header); value != "" {
			return xxhash.Sum64String(value)
		}
	case a.field != nil:
		if value, ok := q.Field(a.field...); ok && value != "" {
			return xxhash.Sum64String(value)
		}
	case a.prefix > 0:
		if head := q.Prefix(a.prefix); len(head) > 0 {
			return xxhash.Sum64(head)
		}
	}
	return 0
}

// rank returns how much a session is drawn to what goes by that name, evenly
// spread from 0 to 1, both exclusive.
func rank(session uint64, name string) float64 {
	var d xxhash.Digest
	d.ResetWithSeed(session)
	d.WriteString(name)
	return (float64(d.Sum64()>>11) + 0.5) / (1 << 53)
}

// pickBound returns the candidate in x.pool to which the session is bound. The
// sessions are shared by weight: with -w/ln(rank) each candidate is the highest
// for its share of them.
func (p policy) pickBound(x *exchange) *candidate {
	var best *candidate
	most := math.Inf(-1)
	for n, i := range x.pool {
		c := &x.cands[i]
		weight := 1.0
		if p.inner == nil {
			weight = x.weights[n]
		}
		score := -weight / math.Log(rank(x.session, c.name))
		if best == nil || score > most {
			best, most = c, score
		}
	}
	return best
}

// pickKey returns the key for an attempt: the one that the session is bound to,
// or the next in turn.
func (x *exchange) pickKey(ch *channel, model string, now time.Time, tried []*credential.Key) *credential.Key {
	if x.session == 0 || ch.keys.Len() == 1 {
		return ch.keys.Pick(model, now, tried)
	}
	return ch.keys.PickHighest(model, now, tried, func(id string) float64 { return rank(x.session, ch.name+"\x00"+id) })
}
