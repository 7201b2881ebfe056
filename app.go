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
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

func init() {
	caddy.RegisterModule(new(App))
}

// App owns what the gateways of one config share, and ties it to the state that
// outlives the config. It needs no configuration: the first gateway that is
// provisioned loads it.
type App struct {
	logger *zap.Logger

	mu       sync.Mutex
	gateways []*gateway // in the order of the config
	prints   [][]byte   // their settings
	held     []stateKey // state that this config refers to, released once
	started  bool
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "llm_gateway",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision sets up the app.
func (a *App) Provision(ctx caddy.Context) error {
	a.logger = ctx.Logger()
	return registerMetrics(ctx)
}

// states holds the lasting state of the channels of all configs, counted by
// reference: a reload provisions the new config before it drops the old one, so
// what both have stays.
var states = caddy.NewUsagePool()

// acquire returns the state kept under key, made by fresh if there is none.
func (a *App) acquire(key stateKey, fresh func() *channelState) *channelState {
	// The constructor cannot fail, so LoadOrNew cannot either.
	value, _, _ := states.LoadOrNew(key, func() (caddy.Destructor, error) { return fresh(), nil })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = append(a.held, key)
	return value.(*channelState)
}

// gateway returns the gateway of that name, made by build if this config has
// none yet. Handlers of one name share it if their settings are the same, as
// when one site listens on two ports; otherwise one of them is misnamed.
func (a *App) gateway(name string, print []byte, build func(*App) (*gateway, error)) (*gateway, error) {
	a.mu.Lock()
	i := slices.IndexFunc(a.gateways, func(gw *gateway) bool { return gw.name == name })
	a.mu.Unlock()
	if i >= 0 {
		if !bytes.Equal(a.prints[i], print) {
			return nil, fmt.Errorf("two gateways are named %q and have different settings: "+
				"give each its own name, as in `llm_gateway <name> { ... }`", name)
		}
		return a.gateways[i], nil
	}
	gw, err := build(a)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gateways = append(a.gateways, gw)
	a.prints = append(a.prints, print)
	return gw, nil
}

// live is the stack of the started apps. A reload starts the new config's app
// while the old one's serves on, and a refused reload may stop the new one
// again: the newest that is started and not stopped is the one that counts.
var live struct {
	sync.Mutex
	apps []*App
}

// liveApp returns the app of the config that serves, nil if there is none.
func liveApp() *App {
	live.Lock()
	defer live.Unlock()
	if n := len(live.apps); n > 0 {
		return live.apps[n-1]
	}
	return nil
}

// Start makes the app the live one.
func (a *App) Start() error {
	live.Lock()
	first := len(live.apps) == 0
	a.started = true
	live.apps = append(live.apps, a)
	live.Unlock()
	if first {
		a.apply()
	}
	return nil
}

// Stop withdraws the app. That an app stops while a newer one is up is how it
// shows that the newer config really runs: only then do its thresholds and keys
// replace the older ones, so that a refused config changes nothing.
func (a *App) Stop() error {
	endStreams()
	if top := a.withdraw(); top != nil {
		top.apply()
	}
	return nil
}

// withdraw removes a from the live stack. It returns the live app if that is
// newer than a.
func (a *App) withdraw() *App {
	live.Lock()
	defer live.Unlock()
	i := slices.Index(live.apps, a)
	if i < 0 {
		return nil
	}
	live.apps = slices.Delete(live.apps, i, i+1)
	if i == len(live.apps) {
		return nil
	}
	return live.apps[len(live.apps)-1]
}

// apply puts this config's breaker settings and keys in force.
func (a *App) apply() {
	now := time.Now()
	for _, gw := range a.list() {
		for _, ch := range gw.channels {
			ch.state.breakers.Configure(ch.breakerSettings, ch.models.written())
			ch.state.disables.Configure(ch.disableSettings, ch.keyIDs)
			if ch.state.keys.Retain(ch.keyIDs) {
				gw.transitions(ch, ch.state.breakers.ForgetCredential(now))
			}
		}
	}
}

// list returns the gateways of this config.
func (a *App) list() []*gateway {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.gateways)
}

// find returns the gateway of that name, nil if there is none.
func (a *App) find(name string) *gateway {
	for _, gw := range a.list() {
		if gw.name == name {
			return gw
		}
	}
	return nil
}

// unloading reports whether this config is on its way out: a newer one serves,
// or the process ends. Then requests that break off say nothing about upstreams.
func (a *App) unloading() bool {
	return caddy.Exiting() || liveApp() != a
}

// Cleanup releases the state that this config refers to. It also runs when the
// config was refused, and whether or not the app was started.
func (a *App) Cleanup() error {
	a.withdraw()
	a.mu.Lock()
	held, started := a.held, a.started
	a.held = nil
	a.mu.Unlock()
	for _, key := range held {
		deleted, err := states.Delete(key)
		if err != nil {
			return err
		}
		if deleted && started && !caddy.Exiting() {
			a.logger.Info("state of a removed channel dropped",
				zap.String("gateway", key.gateway),
				zap.String("channel", key.channel))
		}
	}
	return nil
}

var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
