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
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

// The values of what is not written.
const (
	defaultName                = "default"
	defaultRetries             = 3
	defaultWeight              = 1
	defaultMaxBody             = 64 << 20
	defaultAbandonAfter        = 30 * time.Second
	defaultEarlyProbe          = 10 * time.Second
	defaultHeaderTimeoutStream = 2 * time.Minute
	defaultHeaderTimeoutOther  = 10 * time.Minute
	defaultIdleTimeout         = 10 * time.Minute
)

// or returns what v points to, or fallback where it points to nothing.
func or[T any](v *T, fallback T) T {
	if v == nil {
		return fallback
	}
	return *v
}

// pick returns the channel's value if it is written, else the gateway's.
func pick[T any](channel, gateway *T) *T {
	if channel != nil {
		return channel
	}
	return gateway
}

func durationOr(v *caddy.Duration, fallback time.Duration) time.Duration {
	return time.Duration(or(v, caddy.Duration(fallback)))
}

func (c *Config) name() string {
	if c.Name == "" {
		return defaultName
	}
	return c.Name
}

func (c *Config) retries() int                { return or(c.Retries, defaultRetries) }
func (c *Config) earlyProbe() time.Duration   { return durationOr(c.EarlyProbe, defaultEarlyProbe) }
func (c *Config) abandonAfter() time.Duration { return durationOr(c.AbandonAfter, defaultAbandonAfter) }

func (c *Config) maxBody() int64 {
	if c.MaxBody == 0 {
		return defaultMaxBody
	}
	return c.MaxBody
}

// limitScope is what a rate limit of ch pauses.
func (c *Config) limitScope(ch *Channel) string { return cmp.Or(ch.LimitScope, c.LimitScope, limitKey) }

// weightedPolicy reports whether channels are drawn by effective weight.
func (c *Config) weightedPolicy() bool {
	return c.LBPolicyRaw == nil || lbPolicyNames(c.LBPolicyRaw)[0] == weightedPolicyName
}

// lbPolicyNames returns the name of a policy and those of its fallbacks. There
// is always a first one; it is empty in what is no policy.
func lbPolicyNames(raw json.RawMessage) []string {
	var policy struct {
		Name     string          `json:"policy"`
		Fallback json.RawMessage `json:"fallback"`
	}
	if json.Unmarshal(raw, &policy) != nil || policy.Fallback == nil {
		return []string{policy.Name}
	}
	return append([]string{policy.Name}, lbPolicyNames(policy.Fallback)...)
}

func (c *Channel) weight() int { return or(c.Weight, defaultWeight) }

// headerTimeout is how long an attempt on ch may take until the final response
// headers.
func (c *Config) headerTimeout(ch *Channel, stream bool) time.Duration {
	t := mergeTimeouts(ch.HeaderTimeout, c.HeaderTimeout)
	if stream {
		return durationOr(t.Stream, defaultHeaderTimeoutStream)
	}
	return durationOr(t.Other, defaultHeaderTimeoutOther)
}

// idleTimeout is how long a response body of ch may go without a byte. 0 means
// no limit.
func (c *Config) idleTimeout(ch *Channel) time.Duration {
	return durationOr(pick(ch.IdleTimeout, c.IdleTimeout), defaultIdleTimeout)
}

func mergeTimeouts(channel, gateway *Timeouts) Timeouts {
	a, b := or(channel, Timeouts{}), or(gateway, Timeouts{})
	return Timeouts{Stream: pick(a.Stream, b.Stream), Other: pick(a.Other, b.Other)}
}

// breakerConfig is what is written for the breakers of ch, in its own block or
// in the gateway's.
func (c *Config) breakerConfig(ch *Channel) BreakerConfig {
	if ch.Breaker == nil {
		return or(c.Breaker, BreakerConfig{})
	}
	own, gateway := *ch.Breaker, or(c.Breaker, BreakerConfig{})
	merged := BreakerConfig{
		Mode:             own.Mode,
		OpenThreshold:    pick(own.OpenThreshold, gateway.OpenThreshold),
		DegradeThreshold: pick(own.DegradeThreshold, gateway.DegradeThreshold),
		DegradedWeight:   pick(own.DegradedWeight, gateway.DegradedWeight),
		HalfOpenWeight:   pick(own.HalfOpenWeight, gateway.HalfOpenWeight),
		FailureTTL:       pick(own.FailureTTL, gateway.FailureTTL),
		ProbeInterval:    pick(own.ProbeInterval, gateway.ProbeInterval),
		MaxProbeInterval: pick(own.MaxProbeInterval, gateway.MaxProbeInterval),
		Jitter:           pick(own.Jitter, gateway.Jitter),
	}
	probeTimeout := mergeTimeouts(own.ProbeTimeout, gateway.ProbeTimeout)
	merged.ProbeTimeout = &probeTimeout
	// A block of its own turns the breaker on under a gateway whose is off.
	if own.Mode == "" && gateway.Mode == breakerDryRun {
		merged.Mode = breakerDryRun
	}
	return merged
}

// breakerSettings are the effective settings of the breakers of ch.
func (c *Config) breakerSettings(ch *Channel) breaker.Settings {
	b, s := c.breakerConfig(ch), breaker.DefaultSettings()
	s.Off = b.Mode == breakerOff
	s.DryRun = b.Mode == breakerDryRun
	s.OpenThreshold = or(b.OpenThreshold, s.OpenThreshold)
	if b.DegradeThreshold == nil && s.DegradeThreshold >= s.OpenThreshold {
		s.DegradeThreshold = 0
	}
	s.DegradeThreshold = or(b.DegradeThreshold, s.DegradeThreshold)
	s.DegradedWeight = or(b.DegradedWeight, s.DegradedWeight)
	s.HalfOpenWeight = or(b.HalfOpenWeight, s.HalfOpenWeight)
	s.FailureTTL = durationOr(b.FailureTTL, s.FailureTTL)
	s.ProbeInterval = durationOr(b.ProbeInterval, s.ProbeInterval)
	s.MaxProbeInterval = durationOr(b.MaxProbeInterval, max(s.MaxProbeInterval, s.ProbeInterval))
	if b.Jitter != nil {
		s.Jitter = *b.Jitter / 100
	}
	t := or(b.ProbeTimeout, Timeouts{})
	s.ProbeTimeoutStream = durationOr(t.Stream, s.ProbeTimeoutStream)
	s.ProbeTimeoutOther = durationOr(t.Other, s.ProbeTimeoutOther)
	s.EarlyProbe = c.earlyProbe()
	return s
}
