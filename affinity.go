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
	"slices"
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
	prefix int      // bytes of the prompt
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
		if value := headerValueOf(r, a.header); value != "" {
			return xxhash.Sum64String(value)
		}
	case a.field != nil:
		if value, ok := q.Field(a.field...); ok && value != "" {
			return xxhash.Sum64String(value)
		}
	case a.prefix > 0:
		if head := q.Prompt(a.prefix); len(head) > 0 {
			// Models have caches of their own: one prompt asked of several is
			// several sessions.
			var d xxhash.Digest
			d.ResetWithSeed(xxhash.Sum64String(q.Model))
			d.Write(head)
			return d.Sum64()
		}
	}
	return 0
}

// headerValueOf returns the first value of the header, which net/http keeps
// elsewhere for one of them.
func headerValueOf(r *http.Request, name string) string {
	if name == "Host" {
		return r.Host
	}
	return r.Header.Get(name)
}

// rank returns how much a session is drawn to a channel, or to a key of it by the
// key's id: evenly spread from 0 to 1, both exclusive. No secret goes into it.
func rank(session uint64, channel, key string) float64 {
	var d xxhash.Digest
	d.ResetWithSeed(session)
	d.WriteString(channel)
	if key != "" {
		d.WriteString("\x00")
		d.WriteString(key)
	}
	return unit(d.Sum64())
}

// unit uses only as many bits of the hash as leave room for the half.
func unit(hash uint64) float64 { return (float64(hash>>12) + 0.5) / (1 << 52) }

// pickBound returns the candidate in x.pool to which the session is bound. The
// sessions are shared by weight: with -w/ln(rank) each candidate is the highest
// for its share of them, and one whose weight falls gives up only what exceeds
// its new share. Caddy's policies know no weights, so with them all are alike, as
// they are where every weight is 0 (degraded_weight 0).
func (p policy) pickBound(x *exchange) *candidate {
	alike := p.inner != nil || !slices.ContainsFunc(x.weights, func(w float64) bool { return w > 0 })
	var best *candidate
	most := math.Inf(-1)
	for n, i := range x.pool {
		c := &x.cands[i]
		weight := x.weights[n]
		if alike {
			weight = 1
		}
		score := -weight / math.Log(rank(x.session, c.name, ""))
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
	return ch.keys.PickHighest(model, now, tried, func(id string) float64 { return rank(x.session, ch.name, id) })
}
