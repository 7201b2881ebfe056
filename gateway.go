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
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/request"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// gateway is one configured gateway, ready to serve. Handlers of one name with
// the same settings share it. It belongs to one config and is immutable; what
// lasts is in the channels' states.
type gateway struct {
	name     string
	app      *App
	channels []*channel
	// writtenModels are the names that stand in the configuration.
	writtenModels map[string]bool
	routes        *routes
	affinity      affinity
	policy        policy

	retries      int
	tryDuration  time.Duration // 0: off
	retryOn      []int         // nil: by verdict
	budget       retryBudget
	bestEffort   bool
	wait         time.Duration // 0: nobody waits
	queues       queues
	abandonAfter time.Duration  // 0: off
	peekTimeout  time.Duration  // 0: nothing is held back
	limits       request.Limits // of request bodies
	caddyErrors  bool           // the server's error routes render our errors

	logger *zap.Logger
	ctx    caddy.Context
	events *caddyevents.App
}

func newGateway(ctx caddy.Context, h *Handler, app *App) (*gateway, error) {
	cfg := &h.Config
	gw := &gateway{
		name:         cfg.name(),
		app:          app,
		retries:      cfg.retries(),
		tryDuration:  durationOr(cfg.TryDuration, 0),
		retryOn:      cfg.RetryOn,
		budget:       newRetryBudget(cfg.RetryBudget),
		bestEffort:   cfg.AllOpen == allOpenBestEffort,
		wait:         time.Duration(cfg.AllOpenWait),
		abandonAfter: cfg.abandonAfter(),
		affinity:     newAffinity(cfg.Affinity),
		peekTimeout:  cfg.peekTimeout(),
		limits:       request.Limits{MaxBody: cfg.maxBody(), Budget: bodyBudget(cfg.name()), Total: cfg.bufferTotal()},
		caddyErrors:  cfg.Errors == "caddy",
		logger:       h.logger.With(zap.String("gateway", cfg.name())),
		ctx:          ctx,
	}
	events, err := ctx.App("events")
	if err != nil {
		return nil, err
	}
	gw.events = events.(*caddyevents.App)
	b := channelBuilder{ctx: ctx, logger: gw.logger, cfg: cfg, gateway: gw.name, acquire: app.acquire}
	byName := make(map[string]*channel, len(cfg.Channels))
	for _, c := range cfg.Channels {
		ch, err := b.build(c)
		if err != nil {
			return nil, fmt.Errorf("gateway %s: channel %s: %w", gw.name, c.Name, err)
		}
		gw.channels = append(gw.channels, ch)
		byName[c.Name] = ch
	}
	linkBackups(cfg, byName)
	gw.routes = newRoutes(gw.channels)
	gw.writtenModels = writtenModels(gw.channels)
	if gw.policy, err = h.loadPolicy(ctx); err != nil {
		return nil, fmt.Errorf("gateway %s: %w", gw.name, err)
	}
	return gw, nil
}

// bodyBudgets counts the bytes of request bodies by the gateway's name. They
// outlive a config, as the requests that came under it do.
var bodyBudgets sync.Map // of string to *request.Budget

func bodyBudget(gateway string) *request.Budget {
	budget, _ := bodyBudgets.LoadOrStore(gateway, new(request.Budget))
	return budget.(*request.Budget)
}

// linkBackups joins the chains. A channel named in one takes no other traffic,
// unless it sets a priority of its own.
func linkBackups(cfg *Config, byName map[string]*channel) {
	for _, c := range cfg.Channels {
		for _, name := range c.Backup {
			byName[c.Name].backups = append(byName[c.Name].backups, byName[name])
		}
	}
	for _, c := range cfg.Channels {
		for _, b := range byName[c.Name].backups {
			b.backupOnly = true
		}
	}
	for _, c := range cfg.Channels {
		if c.Priority != nil {
			byName[c.Name].backupOnly = false
		}
	}
}

// channel returns the channel of that name, nil if there is none.
func (gw *gateway) channel(name string) *channel {
	for _, ch := range gw.channels {
		if ch.name == name {
			return ch
		}
	}
	return nil
}

// transition reports what a breaker did: one line a transition, never under a
// lock.
func (gw *gateway) transition(ch *channel, c breaker.Change) {
	if c.Zero() {
		return
	}
	gw.countTransition(ch, c)
	if c.From == c.To {
		return
	}
	gw.breakerEvent(ch, c)
	level, message := zapcore.InfoLevel, "circuit breaker closed"
	switch c.To {
	case breaker.Open:
		level, message = zapcore.WarnLevel, "circuit breaker opened"
		if c.From == breaker.HalfOpen {
			message = "circuit breaker opened again, the probe failed"
		}
	case breaker.HalfOpen:
		message = "circuit breaker half-open, one request probes"
	}
	entry := gw.logger.Check(level, message)
	if entry == nil {
		return
	}
	fields := []zap.Field{
		zap.String("channel", ch.name),
		zap.String("model", c.Model),
		zap.Stringer("from", c.From),
		zap.Stringer("to", c.To),
		zap.String("reason", c.Reason),
	}
	if !c.NextProbe.IsZero() {
		fields = append(fields, zap.Time("next_probe_at", c.NextProbe))
	}
	if ch.breakerSettings.DryRun {
		fields = append(fields, zap.Bool("dry_run", true))
	}
	entry.Write(fields...)
}

func (gw *gateway) transitions(ch *channel, changes []breaker.Change) {
	for _, c := range changes {
		gw.transition(ch, c)
	}
}

// keyOut reports that a key pauses: once each time, as a key that pauses is not
// asked.
func (gw *gateway) keyOut(message string, a *attempt, reason string, until time.Time) {
	gw.logger.Warn(message,
		zap.String("channel", a.ch.name),
		zap.String("key", a.key.ID()),
		zap.String("model", a.model),
		zap.String("reason", reason),
		zap.Time("until", until))
}

// warnAnswer reports an answer that hints at a mistake in the configuration.
func (gw *gateway) warnAnswer(a *attempt, ans *answer) {
	if !a.ch.state.warnings.due(ans.verdict.Warn, time.Now()) {
		return
	}
	gw.logger.Warn("upstream's answer is not what an API gives",
		zap.String("channel", a.ch.name),
		zap.String("model", a.model),
		zap.Int("status", ans.status),
		zap.String("reason", ans.verdict.Warn))
}

// warnCut reports an answer that broke off after it had begun to reach the
// client.
func (gw *gateway) warnCut(a *attempt, r verdict.Result) {
	gw.logger.Warn("answer broke off on its way to the client",
		zap.String("channel", a.ch.name),
		zap.String("model", a.model),
		zap.String("reason", r.Reason))
}
