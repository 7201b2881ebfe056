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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

func init() {
	caddy.RegisterModule(new(adminAPI))
}

// adminAPI serves /llm_gateway/ on Caddy's admin endpoint. It holds nothing: its
// router is made before the apps, and goes on serving after a refused reload, so
// every request looks the live state up.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (*adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.llm_gateway",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

const adminPrefix = "/llm_gateway/"

// Routes returns the admin routes.
func (*adminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: adminPrefix, Handler: caddy.AdminHandlerFunc(serveAdmin)},
	}
}

func serveAdmin(w http.ResponseWriter, r *http.Request) error {
	path := strings.TrimPrefix(r.URL.Path, adminPrefix)
	switch path {
	case "status":
		return serveStatus(w, r)
	case "explain":
		return serveExplain(w, r)
	}
	parts := strings.Split(path, "/")
	if len(parts) == 5 && parts[1] == "channels" && parts[3] == "breaker" {
		if act, ok := breakerActs[parts[4]]; ok {
			return serveBreakerAct(w, r, parts[0], parts[2], act)
		}
	}
	return adminError(http.StatusNotFound, "no such endpoint: %s", r.URL.Path)
}

// adminError is an error that Caddy renders as {"error": "..."}.
func adminError(status int, format string, args ...any) error {
	return caddy.APIError{HTTPStatus: status, Err: fmt.Errorf(format, args...)}
}

func allow(w http.ResponseWriter, r *http.Request, methods ...string) error {
	for _, m := range methods {
		if r.Method == m {
			return nil
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return adminError(http.StatusMethodNotAllowed, "method %s is not allowed, use %s", r.Method, strings.Join(methods, " or "))
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func serveStatus(w http.ResponseWriter, r *http.Request) error {
	if err := allow(w, r, http.MethodGet, http.MethodHead); err != nil {
		return err
	}
	query := r.URL.Query()
	status, err := currentStatus(query.Get("gateway"), query.Get("channel"), time.Now())
	if err != nil {
		return err
	}
	return writeJSON(w, status)
}

// operatorAct is the body of a mutation.
type operatorAct struct {
	// Why the operator acts, for the log.
	Reason string `json:"reason"`
	// How long it holds, as a duration. Empty: until the opposite act.
	For string `json:"for"`

	duration time.Duration
}

const maxActBody = 16 << 10

// readAct reads the body of a mutation. An unknown field is refused, since an
// act that is understood halfway does what nobody wanted.
func readAct(r *http.Request) (operatorAct, error) {
	var act operatorAct
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return act, adminError(http.StatusUnsupportedMediaType, "the Content-Type must be application/json")
	}
	dec := json.NewDecoder(io.LimitReader(r.Body, maxActBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&act); err != nil {
		return act, adminError(http.StatusBadRequest, `the body must be like {"reason":"...","for":"30m"}, or {}: %v`, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return act, adminError(http.StatusBadRequest, "something follows the JSON object in the body")
	}
	if act.For == "" {
		return act, nil
	}
	d, err := caddy.ParseDuration(act.For)
	if err != nil || d <= 0 {
		return act, adminError(http.StatusBadRequest, "for: %q is no positive duration", act.For)
	}
	act.duration = d
	return act, nil
}

// breakerAct changes the breaker of one model, or those of all models if model
// is nil.
type breakerAct struct {
	name    string
	holds   bool // takes "for"
	perform func(gw *gateway, ch *channel, model *string, act operatorAct, now time.Time)
}

var breakerActs = map[string]breakerAct{
	"reset": {name: "reset", perform: resetBreakers},
	"open":  {name: "open", holds: true, perform: openBreakers},
}

func resetBreakers(gw *gateway, ch *channel, model *string, _ operatorAct, now time.Time) {
	if model == nil {
		gw.transitions(ch, ch.state.breakers.ResetAll(now))
		return
	}
	gw.transition(ch, ch.state.breakers.Reset(*model, now))
}

func openBreakers(gw *gateway, ch *channel, model *string, act operatorAct, now time.Time) {
	var until time.Time
	if act.duration > 0 {
		until = now.Add(act.duration)
	}
	if model == nil {
		gw.transitions(ch, ch.state.breakers.OpenAll(now, until))
		return
	}
	gw.transition(ch, ch.state.breakers.Open(*model, now, until))
}

func serveBreakerAct(w http.ResponseWriter, r *http.Request, gateway, channel string, what breakerAct) error {
	if err := allow(w, r, http.MethodPost); err != nil {
		return err
	}
	gw, ch, err := liveChannel(gateway, channel)
	if err != nil {
		return err
	}
	act, err := readAct(r)
	if err != nil {
		return err
	}
	if act.For != "" && !what.holds {
		return adminError(http.StatusBadRequest, "%s takes no for", what.name)
	}
	if ch.breakerSettings.Off {
		return adminError(http.StatusConflict, "the breaker of channel %s is off", ch.name)
	}
	var model *string
	if query := r.URL.Query(); query.Has("model") {
		name := query.Get("model")
		model = &name
	}
	now := time.Now()
	what.perform(gw, ch, model, act, now)
	fields := []zap.Field{zap.String("channel", ch.name), zap.String("act", what.name), zap.String("reason", act.Reason)}
	if model != nil {
		fields = append(fields, zap.String("model", *model))
	}
	if act.For != "" {
		fields = append(fields, zap.Duration("for", act.duration))
	}
	gw.logger.Info("operator acted on circuit breakers", fields...)
	return writeJSON(w, ch.status(now))
}

// liveChannel returns a channel of the config that serves.
func liveChannel(gatewayName, channelName string) (*gateway, *channel, error) {
	gw, err := liveGateway(gatewayName)
	if err != nil {
		return nil, nil, err
	}
	if ch := gw.channel(channelName); ch != nil {
		return gw, ch, nil
	}
	return nil, nil, adminError(http.StatusNotFound, "gateway %s has no channel %q", gw.name, channelName)
}

func liveGateway(name string) (*gateway, error) {
	if app := liveApp(); app != nil {
		if gw := app.find(name); gw != nil {
			return gw, nil
		}
	}
	return nil, adminError(http.StatusNotFound, "there is no gateway %q", name)
}

var _ caddy.AdminRouter = (*adminAPI)(nil)
