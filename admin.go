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
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
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

// Provision adds the metrics to the registry that the admin endpoint serves, and
// ends what the endpoint before it still streams.
func (*adminAPI) Provision(ctx caddy.Context) error {
	endStreams()
	return registerMetrics(ctx)
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
	case "events":
		return serveEvents(w, r)
	}
	parts := strings.Split(path, "/")
	if len(parts) >= 4 && parts[1] == "channels" {
		if act, ok := actAt(parts[3:]); ok {
			return serveAct(w, r, parts[0], parts[2], act)
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

// act is what an operator can do to a channel.
type act struct {
	name  string
	holds bool // takes "for"
	// model tells that the query may name a model.
	model   bool
	perform func(s subject, body operatorAct, now time.Time) error
}

// subject is what an operator acts on.
type subject struct {
	gw    *gateway
	ch    *channel
	model *string // nil: all
	key   string  // "": the channel itself
}

var channelActs = map[string]act{
	"breaker/reset": {name: "breaker reset", model: true, perform: resetBreakers},
	"breaker/open":  {name: "breaker open", model: true, holds: true, perform: openBreakers},
	"enable":        {name: "enable", perform: enable},
	"disable":       {name: "disable", holds: true, perform: disable},
}

// actAt returns the act at the rest of a path below a channel. An act on a key
// is bound to that key.
func actAt(rest []string) (act, bool) {
	if a, ok := channelActs[strings.Join(rest, "/")]; ok {
		return a, true
	}
	if len(rest) != 3 || rest[0] != "keys" || rest[1] == "" {
		return act{}, false
	}
	id := rest[1]
	a, ok := channelActs[rest[2]]
	if perform := a.perform; ok {
		a.perform = func(s subject, body operatorAct, now time.Time) error {
			if !slices.Contains(s.ch.keyIDs, id) {
				return adminError(http.StatusNotFound, "channel %s has no key %q", s.ch.name, id)
			}
			s.key = id
			return perform(s, body, now)
		}
	}
	return a, ok
}

// until returns when an act that holds from now on ends; zero if it does not.
func (a operatorAct) until(now time.Time) time.Time {
	if a.duration == 0 {
		return time.Time{}
	}
	return now.Add(a.duration)
}

func resetBreakers(s subject, _ operatorAct, now time.Time) error {
	if err := s.needBreaker(); err != nil {
		return err
	}
	if s.model == nil {
		s.gw.transitions(s.ch, s.ch.state.breakers.ResetAll(now))
	} else {
		s.gw.transition(s.ch, s.ch.state.breakers.Reset(*s.model, now))
	}
	return nil
}

func openBreakers(s subject, body operatorAct, now time.Time) error {
	if err := s.needBreaker(); err != nil {
		return err
	}
	if s.model == nil {
		s.gw.transitions(s.ch, s.ch.state.breakers.OpenAll(now, body.until(now)))
	} else {
		s.gw.transition(s.ch, s.ch.state.breakers.Open(*s.model, now, body.until(now)))
	}
	return nil
}

func (s subject) needBreaker() error {
	if s.ch.breakerSettings.Off {
		return adminError(http.StatusConflict, "the breaker of channel %s is off", s.ch.name)
	}
	return nil
}

// enable also ends pauses and forgets errors: the operator knows better.
func enable(s subject, body operatorAct, now time.Time) error {
	s.gw.disableChanged(s.ch, s.ch.state.disables.Enable(s.key, now, body.Reason))
	if s.key != "" {
		s.ch.keys.Forgive(s.key)
		return nil
	}
	for _, key := range s.ch.keys.All() {
		s.ch.keys.Forgive(key.ID())
	}
	s.ch.state.breakers.EndPauses()
	return nil
}

func disable(s subject, body operatorAct, now time.Time) error {
	s.gw.disableChanged(s.ch, s.ch.state.disables.Disable(s.key, now, body.until(now), body.Reason))
	return nil
}

func serveAct(w http.ResponseWriter, r *http.Request, gateway, channel string, what act) error {
	if err := allow(w, r, http.MethodPost); err != nil {
		return err
	}
	gw, ch, err := liveChannel(gateway, channel)
	if err != nil {
		return err
	}
	body, err := readAct(r)
	if err != nil {
		return err
	}
	if body.For != "" && !what.holds {
		return adminError(http.StatusBadRequest, "%s takes no for", what.name)
	}
	s := subject{gw: gw, ch: ch}
	if query := r.URL.Query(); query.Has("model") {
		if !what.model {
			return adminError(http.StatusBadRequest, "%s takes no model", what.name)
		}
		name := query.Get("model")
		s.model = &name
	}
	now := time.Now()
	if s.model != nil && !ch.knows(*s.model, now) {
		return adminError(http.StatusNotFound, "channel %s serves no model %q", ch.name, *s.model)
	}
	if err := what.perform(s, body, now); err != nil {
		return err
	}
	gw.logger.Info("operator acted", actFields(s, what, body, r.URL.Path)...)
	return writeJSON(w, ch.status(now))
}

// knows reports whether the channel serves that upstream model, or keeps a
// breaker of it.
func (ch *channel) knows(model string, now time.Time) bool {
	if up, ok := ch.models.upstream(model); ok && up == model || model == "" {
		return true
	}
	return slices.ContainsFunc(ch.state.breakers.Snapshot(now), func(b breaker.Status) bool { return b.Model == model })
}

func actFields(s subject, what act, body operatorAct, path string) []zap.Field {
	fields := []zap.Field{zap.String("channel", s.ch.name), zap.String("act", what.name), zap.String("path", path), zap.String("reason", body.Reason)}
	if s.model != nil {
		fields = append(fields, zap.String("model", *s.model))
	}
	if body.For != "" {
		fields = append(fields, zap.Duration("for", body.duration))
	}
	return fields
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
