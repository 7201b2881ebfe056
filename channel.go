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
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/credential"
	"github.com/llm-gateway/caddy-llm-gateway/dialect"
	"github.com/llm-gateway/caddy-llm-gateway/provider"
	"github.com/llm-gateway/caddy-llm-gateway/request"
)

// channel is one configured channel, ready to be asked. It belongs to one
// config and is immutable; what lasts over a reload is in its state.
type channel struct {
	name     string
	preset   provider.Preset
	base     *url.URL
	basePath string // escaped
	models   *modelTable
	auth     authMethod
	keys     *credential.Keys
	keyIDs   []string // of the keys that are not empty
	// credentials holds what carries each key, which is written to by nobody.
	credentials map[*credential.Key]authValue
	headerUp    *headers.HeaderOps

	priority    int
	weight      float64
	backups     []*channel
	backupOnly  bool
	maxRequests int64
	failureOn   []int
	limitsAll   bool // a rate limit pauses all keys

	headerTimeoutStream time.Duration
	headerTimeoutOther  time.Duration
	firstTokenTimeout   time.Duration // 0: none
	idleTimeout         time.Duration // 0: none
	secondOpinion       int           // 0: off
	breakerSettings     breaker.Settings
	disableSettings     autodisable.Settings

	transport *reverseproxy.HTTPTransport
	state     *channelState

	// upstream is what the embedded proxy is told; shadow is what Caddy's
	// selection policies see. They share one host counter. Shadows go by the
	// channel's name, since two channels at one address are the normal case
	// and policies tell upstreams apart by address.
	upstream *reverseproxy.Upstream
	shadow   *reverseproxy.Upstream
}

// channelState is what a channel keeps over reloads: its breakers, its keys'
// pauses and the attempts in flight. All of it is safe for concurrent use, also
// by two configs at once. It holds no context, logger or storage of a config.
type channelState struct {
	breakers *breaker.Set
	disables *autodisable.Set
	keys     *credential.Pool
	doubts   doubts
	// firstTokens are of the last streams.
	firstTokens firstTokens
	host        *reverseproxy.Host
	inFlight    atomic.Int64
	warnings    rateLimit
}

// rateLimit lets the same warning through once a minute.
type rateLimit struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// maxWarnings bounds the texts that are told apart.
const maxWarnings = 100

func (l *rateLimit) due(text string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.last[text]; ok && now.Sub(last) < time.Minute {
		return false
	}
	if l.last == nil || len(l.last) >= maxWarnings {
		l.last = make(map[string]time.Time)
	}
	l.last[text] = now
	return true
}

// Destruct implements caddy.Destructor; there is nothing to release.
func (*channelState) Destruct() error { return nil }

// stateKey is the identity by which a channel's state is kept.
type stateKey struct{ gateway, channel, baseURL string }

// presetOf returns the preset of the provider that is written, or that base
// belongs to.
func presetOf(c *Channel, base *url.URL) (provider.Preset, bool) {
	id := c.Provider
	if id == "" {
		id = cmp.Or(provider.ForHost(base.Hostname(), base.EscapedPath()), "openai")
	}
	return provider.Lookup(id)
}

func (ch *channel) speaks(d dialect.Dialect) bool { return ch.preset.Speaks(d, ch.basePath) }

// accepts returns the upstream model for q, if ch can serve it.
func (ch *channel) accepts(q *request.Request) (string, bool) {
	if !ch.speaks(q.Dialect) {
		return "", false
	}
	return ch.models.upstream(q.Model)
}

// headerTimeout returns the limit to the response headers.
func (ch *channel) headerTimeout(stream bool) time.Duration {
	if stream {
		return ch.headerTimeoutStream
	}
	return ch.headerTimeoutOther
}

// channelBuilder makes the channels of one gateway while it is provisioned.
type channelBuilder struct {
	ctx     caddy.Context
	logger  *zap.Logger
	cfg     *Config
	gateway string
	// acquire returns the lasting state of that identity; fresh makes it anew.
	acquire func(key stateKey, fresh func() *channelState) *channelState
}

func (b *channelBuilder) build(c *Channel) (*channel, error) {
	repl := caddy.NewReplacer()
	base, err := parseBaseURL(repl.ReplaceKnown(c.BaseURL, ""))
	if err != nil {
		return nil, err
	}
	ch := &channel{
		name:                c.Name,
		base:                base,
		basePath:            base.EscapedPath(),
		models:              newModelTable(c),
		headerUp:            c.HeaderUp,
		weight:              float64(c.weight()),
		maxRequests:         int64(c.MaxRequests),
		failureOn:           c.FailureOn,
		limitsAll:           b.cfg.limitScope(c) == limitChannel,
		headerTimeoutStream: b.cfg.headerTimeout(c, true),
		headerTimeoutOther:  b.cfg.headerTimeout(c, false),
		firstTokenTimeout:   b.cfg.firstTokenTimeout(c),
		idleTimeout:         b.cfg.idleTimeout(c),
		secondOpinion:       b.cfg.secondOpinion(),
		breakerSettings:     b.cfg.breakerSettings(c),
		disableSettings:     b.cfg.disableSettings(c),
	}
	if c.Priority != nil {
		ch.priority = *c.Priority
	}
	if err := b.setProvider(ch, c); err != nil {
		return nil, err
	}
	if ch.headerUp != nil {
		if err := ch.headerUp.Provision(b.ctx); err != nil {
			return nil, fmt.Errorf("header_up: %v", err)
		}
	}
	if err := b.setTransport(ch, c); err != nil {
		return nil, fmt.Errorf("transport: %v", err)
	}
	ch.state = b.acquire(stateKey{b.gateway, c.Name, identity(base)}, func() *channelState {
		return &channelState{
			breakers: breaker.NewSet(ch.breakerSettings, ch.models.written()),
			disables: autodisable.NewSet(ch.disableSettings, nil),
			keys:     credential.NewPool(),
			host:     new(reverseproxy.Host),
		}
	})
	if err := b.setKeys(ch, c, repl); err != nil {
		return nil, err
	}
	for _, warning := range b.cfg.disableWarnings(c) {
		b.logger.Warn(warning, zap.String("channel", c.Name))
	}
	ch.upstream = &reverseproxy.Upstream{Host: ch.state.host, Dial: dialAddress(base)}
	ch.shadow = &reverseproxy.Upstream{Host: ch.state.host, Dial: c.Name}
	return ch, nil
}

func (b *channelBuilder) setProvider(ch *channel, c *Channel) error {
	preset, ok := presetOf(c, ch.base)
	if !ok {
		return fmt.Errorf("provider: unknown provider %q", c.Provider)
	}
	ch.preset, ch.auth = preset, authOf(c, preset)
	return nil
}

// setKeys reads the pool. A key that comes out empty (an unset environment
// variable) is no reason to refuse the config: the other keys still work.
func (b *channelBuilder) setKeys(ch *channel, c *Channel, repl *caddy.Replacer) error {
	secrets := make([]credential.Secret, 0, len(c.Keys))
	for i, raw := range c.Keys {
		text := credential.Clean(repl.ReplaceKnown(raw, ""))
		s := credential.NewSecret(text)
		switch {
		case s.Empty():
			b.logger.Warn("key is empty, the channel goes without it",
				zap.String("channel", c.Name), zap.Int("key_number", i+1))
		case !httpguts.ValidHeaderFieldValue(text):
			return fmt.Errorf("key: number %d has a character that no header can carry, like a line break in its middle", i+1)
		case slices.Contains(ch.keyIDs, s.ID()):
			return fmt.Errorf("key: number %d is the same as one before it", i+1)
		default:
			ch.keyIDs = append(ch.keyIDs, s.ID())
		}
		secrets = append(secrets, s)
	}
	ch.keys = ch.state.keys.Keys(secrets)
	disables := ch.state.disables
	ch.keys.Outside(func(now time.Time) bool { return disables.KeysOut(now) > 0 }, disables.KeyDisabled)
	ch.credentials = make(map[*credential.Key]authValue)
	for _, key := range ch.keys.All() {
		ch.credentials[key] = ch.auth.value(key.Secret())
	}
	return nil
}

func (b *channelBuilder) setTransport(ch *channel, c *Channel) error {
	raw := c.TransportRaw
	if raw == nil {
		raw = b.cfg.TransportRaw
	}
	if raw == nil {
		raw = json.RawMessage(`{"protocol":"http"}`)
	}
	holder := &Defaults{TransportRaw: raw}
	mod, err := b.ctx.LoadModule(holder, "TransportRaw")
	if err != nil {
		return err
	}
	rt, ok := mod.(*reverseproxy.HTTPTransport)
	if !ok {
		return fmt.Errorf("only Caddy's http transport can be used, not %T", mod)
	}
	completeTransport(rt.Transport)
	ch.transport = rt
	return nil
}

// identity is the base URL as far as it tells upstreams apart: with or without a
// slash at its end it is the same one.
func identity(base *url.URL) string {
	u := *base
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u.String()
}

// dialAddress returns host and port of base, for the embedded proxy's logs and
// placeholders; attempts dial by their URL.
func dialAddress(base *url.URL) string {
	port := base.Port()
	if port == "" {
		port = "443"
		if strings.EqualFold(base.Scheme, "http") {
			port = "80"
		}
	}
	return net.JoinHostPort(base.Hostname(), port)
}
