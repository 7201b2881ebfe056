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
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// embeddedProxy is Caddy's reverse proxy with our policy and transport.
type embeddedProxy struct{ reverseproxy.Handler }

func newEmbeddedProxy(ctx caddy.Context, streamCloseDelay time.Duration) (*embeddedProxy, error) {
	p := &embeddedProxy{reverseproxy.Handler{
		Transport: transport{},
		LoadBalancing: &reverseproxy.LoadBalancing{
			SelectionPolicy: Selection{},
			// The exchange counts attempts; the proxy must never stop first.
			Retries: math.MaxInt,
		},
		StreamCloseDelay: caddy.Duration(streamCloseDelay),
	}}
	if err := p.Provision(ctx); err != nil {
		return nil, err
	}
	// An absent matcher would let the proxy repeat every GET on its own.
	// Provision overwrites this field, so it is set afterwards.
	p.LoadBalancing.RetryMatch = caddyhttp.MatcherSets{{never{}}}
	return p, nil
}

// never is a request matcher that matches nothing.
type never struct{}

func (never) MatchWithError(*http.Request) (bool, error) { return false, nil }
