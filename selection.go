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
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func init() {
	caddy.RegisterModule(Selection{})
}

// Selection is the selection policy by which an llm_gateway tells its embedded
// reverse proxy where the next attempt goes. It is of use inside an llm_gateway
// only: that handler keeps the breakers, keys and channels that it consults.
// As the policy of a plain `reverse_proxy` it is refused.
type Selection struct{}

// CaddyModule returns the Caddy module information.
func (Selection) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.reverse_proxy.selection_policies.llm_gateway",
		New: func() caddy.Module { return new(Selection) },
	}
}

var errSelectionAlone = errors.New("the selection policy llm_gateway works inside the llm_gateway directive only: " +
	"write an llm_gateway block in place of this reverse_proxy")

// Provision refuses the policy outside of an llm_gateway, which sets it up
// without provisioning.
func (Selection) Provision(caddy.Context) error { return errSelectionAlone }

// UnmarshalCaddyfile refuses the policy with the place in the file.
func (Selection) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the policy's name, so that the error points there
	return d.WrapErr(errSelectionAlone)
}

// terminal is the upstream of a request for which there is nobody left to ask:
// its round trip gives the answer that is due.
var terminal = &reverseproxy.Upstream{Host: new(reverseproxy.Host), Dial: "llm_gateway:0"}

// Select hands out the attempt that the exchange has reserved. It never returns
// nil: the proxy would spin to its retry limit.
func (Selection) Select(_ reverseproxy.UpstreamPool, r *http.Request, _ http.ResponseWriter) *reverseproxy.Upstream {
	x := exchangeOf(r.Context())
	if x == nil || x.current == nil {
		return terminal
	}
	return x.current.ch.upstream
}

// policy draws one of the usable candidates of a group.
type policy struct {
	inner reverseproxy.Selector // nil: weighted
}

// pick returns one of the candidates in x.pool.
func (p policy) pick(x *exchange) *candidate {
	switch {
	case x.session != 0:
		return p.pickBound(x)
	case p.inner != nil:
		return p.pickInner(x)
	case len(x.pool) == 1:
		return &x.cands[x.pool[0]]
	}
	total := 0.0
	for _, weight := range x.weights {
		total += weight
	}
	point := rand.Float64() * total
	for n, weight := range x.weights {
		if point < weight {
			return &x.cands[x.pool[n]]
		}
		point -= weight
	}
	// Every weight is 0 (degraded_weight 0): any of them may be asked.
	return &x.cands[x.pool[rand.IntN(len(x.pool))]]
}

// pickInner asks one of Caddy's policies, which gets the client's own request
// and a response writer of its own: only the headers of the attempt that is
// relayed may reach the client.
func (p policy) pickInner(x *exchange) *candidate {
	pool := make(reverseproxy.UpstreamPool, len(x.pool))
	for n, i := range x.pool {
		pool[n] = x.cands[i].shadow
	}
	scratch := scratchWriter{header: make(http.Header)}
	chosen := p.inner.Select(pool, x.orig, scratch)
	x.policyHeader = scratch.header
	n := slices.Index(pool, chosen)
	if n < 0 {
		n = 0 // nil or a stranger's
	}
	return &x.cands[x.pool[n]]
}

// scratchWriter collects the headers that a policy sets.
type scratchWriter struct{ header http.Header }

func (w scratchWriter) Header() http.Header       { return w.header }
func (scratchWriter) Write(p []byte) (int, error) { return len(p), nil }
func (scratchWriter) WriteHeader(int)             {}

// loadPolicy provisions lb_policy.
func (h *Handler) loadPolicy(ctx caddy.Context) (policy, error) {
	if h.LBPolicyRaw == nil || h.weightedPolicy() {
		return policy{}, nil
	}
	mod, err := ctx.LoadModule(&h.Config, "LBPolicyRaw")
	if err != nil {
		return policy{}, fmt.Errorf("loading lb_policy: %v", err)
	}
	inner, ok := mod.(reverseproxy.Selector)
	if !ok {
		return policy{}, fmt.Errorf("lb_policy: %T is no selection policy", mod)
	}
	return policy{inner}, nil
}
