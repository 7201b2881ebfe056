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

// Package llmgateway is an LLM gateway for Caddy: an HTTP handler that routes
// requests to LLM providers around failing models, accounts and keys.
//
// The handler embeds Caddy's own reverse proxy and plugs two things into it: a
// selection policy that hands out the next attempt, and a transport that makes
// it. What happens to one request is kept in an exchange, which hangs on the
// request's context:
//
//	ServeHTTP      reads the request, finds the candidates, reserves the first attempt
//	Selection      tells the proxy where the reserved attempt goes
//	transport      sends it, judges the answer, and either relays it or reserves the next
//
// Circuit breakers, key pauses and in-flight counts outlive a config reload;
// the llm_gateway app owns them.
package llmgateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/llm-gateway/caddy-llm-gateway/request"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler is one gateway: it reads which model a request asks for, and sends it
// to a channel that serves that model and works. While one channel is left that
// can answer, the client sees no error: failed attempts are repeated elsewhere
// as long as nothing of an answer has reached the client.
type Handler struct {
	Config

	gateway *gateway
	proxy   *embeddedProxy
	logger  *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.llm_gateway",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision sets up the gateway. It touches neither network nor storage.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	if err := h.check(); err != nil {
		return err
	}
	appModule, err := ctx.App("llm_gateway")
	if err != nil {
		return err
	}
	// Loading modules clears their raw configuration, so take the print first.
	fingerprint, err := json.Marshal(h.Config)
	if err != nil {
		return fmt.Errorf("gateway %s: %v", h.name(), err)
	}
	h.gateway, err = appModule.(*App).gateway(h.name(), fingerprint, func(app *App) (*gateway, error) {
		return newGateway(ctx, h, app)
	})
	if err != nil {
		return err
	}
	h.proxy, err = newEmbeddedProxy(ctx, h.streamCloseDelay())
	return err
}

// Cleanup closes the tunnels of this handler. Requests under way go on.
func (h *Handler) Cleanup() error {
	if h.proxy == nil {
		return nil
	}
	return h.proxy.Cleanup()
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	x := newExchange(h.gateway, r)
	defer x.finish()

	q, err := request.Read(r, h.gateway.limits)
	if err != nil {
		return x.refuseUnread(w, r, err)
	}
	x.admit(q)
	if done, err := x.serveModels(w); done {
		return err
	}
	if len(x.cands) == 0 {
		return x.refuse(w, x.noCandidate())
	}
	if !x.firstAttempt() {
		return x.refuse(w, x.nobodyUsable())
	}
	if err := h.proxy.ServeHTTP(w, x.proxied(), next); err != nil {
		if x.refusal != nil {
			return x.refuse(w, x.refusal)
		}
		return err
	}
	return nil
}

// proxied returns the request as the embedded proxy sees it, and may log it:
// without the client's credentials and without a body, since every attempt
// makes its own.
func (x *exchange) proxied() *http.Request {
	r := x.orig.WithContext(context.WithValue(x.ctx, exchangeKey{}, x))
	if query := x.req.Query(x.req.Model); query != r.URL.RawQuery {
		u := *r.URL
		u.RawQuery = query
		r.URL, r.RequestURI = &u, u.RequestURI()
	}
	r.Header = x.shown()
	r.Body = http.NoBody
	r.ContentLength = 0
	r.TransferEncoding = nil
	r.Trailer = nil
	return r
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
