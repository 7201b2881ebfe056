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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

// The values of what is not written.
const (
	defaultName                = "default"
	defaultRetries             = 3
	defaultWeight              = 1
	defaultMaxBody             = 64 << 20
	defaultBufferTotal         = 1 << 30
	defaultAbandonAfter        = 30 * time.Second
	defaultEarlyProbe          = 10 * time.Second
	defaultHeaderTimeoutStream = 2 * time.Minute
	defaultHeaderTimeoutOther  = 10 * time.Minute
	defaultIdleTimeout         = 10 * time.Minute
	defaultPeekTimeout         = 2 * time.Second
	defaultSecondOpinion       = 5
	defaultStreamCloseDelay    = time.Hour
	defaultCorrelateWindow     = time.Minute
	defaultCorrelateKeys       = 2
	defaultCorrelatePool       = 3 // from so many keys on
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

func (c *Config) peekTimeout() time.Duration { return durationOr(c.PeekTimeout, defaultPeekTimeout) }
func (c *Config) streamCloseDelay() time.Duration {
	return durationOr(c.StreamCloseDelay, defaultStreamCloseDelay)
}
func (c *Config) secondOpinion() int { return or(c.SecondOpinion, defaultSecondOpinion) }

func (c *Config) maxBody() int64 {
	if c.MaxBody == 0 {
		return defaultMaxBody
	}
	return c.MaxBody
}

func (c *Config) bufferTotal() int64 {
	if c.BufferTotal == 0 {
		return max(defaultBufferTotal, c.maxBody())
	}
	return c.BufferTotal
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

// firstTokenTimeout is how long a stream of ch may go without content. 0 means no
// limit.
func (c *Config) firstTokenTimeout(ch *Channel) time.Duration {
	return durationOr(pick(ch.FirstTokenTimeout, c.FirstTokenTimeout), 0)
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

// disableSettings are the effective settings of auto_disable for ch.
func (c *Config) disableSettings(ch *Channel) autodisable.Settings {
	own, gateway := ch.AutoDisable, c.AutoDisable
	if gateway != nil && gateway.Mode == disableOff {
		gateway = nil // a block of the channel's own starts from nothing
	}
	if own == nil {
		own = gateway
	}
	if own == nil || own.Mode == disableOff {
		return autodisable.Settings{Off: true}
	}
	inherited := or(gateway, AutoDisableConfig{})
	s := autodisable.Settings{
		DryRun:      cmp.Or(own.Mode, inherited.Mode) == disableDryRun,
		Rules:       disableRules(ch.AutoDisable, gateway),
		KeepLastKey: own.KeepLastKey || inherited.KeepLastKey,
	}
	correlate := or(pick(own.Correlate, inherited.Correlate), defaultCorrelate(len(ch.Keys)))
	s.CorrelateKeys, s.CorrelateWindow = correlate.Keys, time.Duration(correlate.Window)
	return s
}

func defaultCorrelate(keys int) Correlate {
	if keys < defaultCorrelatePool {
		return Correlate{}
	}
	return Correlate{Keys: defaultCorrelateKeys, Window: caddy.Duration(defaultCorrelateWindow)}
}

// disableRules returns the gateway's rules, each replaced by the channel's for
// the same errors, and then the others of the channel.
func disableRules(channel, gateway *AutoDisableConfig) []autodisable.Rule {
	own := or(channel, AutoDisableConfig{}).Rules
	if gateway == nil && len(own) > 0 {
		return compileRules(own)
	}
	rules := autodisable.DefaultRules()
	if inherited := or(gateway, AutoDisableConfig{}).Rules; len(inherited) > 0 {
		rules = compileRules(inherited)
	}
	for _, rule := range compileRules(own) {
		same := func(o autodisable.Rule) bool { return sameErrors(o, rule) }
		if i := slices.IndexFunc(rules, same); i >= 0 {
			rules[i] = rule
		} else {
			rules = append(rules, rule)
		}
	}
	return rules
}

func compileRules(written []DisableRule) []autodisable.Rule {
	rules := make([]autodisable.Rule, len(written))
	for i, r := range written {
		rules[i], _ = r.rule()
	}
	return rules
}

// rule returns the rule as it is counted, and false if there is no such status.
func (r DisableRule) rule() (autodisable.Rule, bool) {
	rule := autodisable.Rule{Match: r.Match, Times: r.Times, For: time.Duration(r.For), Scope: disableScopes[r.Scope]}
	switch r.Status {
	case "4xx":
		rule.Class = 4
	case "5xx":
		rule.Class = 5
	case disableTransport:
		rule.Transport = true
	default:
		n, err := strconv.Atoi(r.Status)
		rule.Status = n
		return rule, err == nil && len(r.Status) == 3 && n >= 400 && n <= 599
	}
	return rule, true
}

var disableScopes = map[string]autodisable.Scope{disableKey: autodisable.ScopeKey, disableChannel: autodisable.ScopeChannel}

// sameErrors reports whether two rules count the same errors. The case of a text
// does not matter.
func sameErrors(a, b autodisable.Rule) bool {
	return a.Status == b.Status && a.Class == b.Class && a.Transport == b.Transport &&
		strings.EqualFold(a.Match, b.Match)
}

// disableWarnings tells of each rule of ch that ends for good what an outage
// would end for a while only, since the breaker comes too late to prevent it.
func (c *Config) disableWarnings(ch *Channel) []string {
	b := c.breakerSettings(ch)
	if b.Off {
		return nil
	}
	var warnings []string
	for _, r := range c.disableSettings(ch).Rules {
		outage := r.Transport || r.Class == 5 || r.Status >= 500
		if outage && r.For == 0 && r.Times <= b.OpenThreshold {
			warnings = append(warnings, fmt.Sprintf(
				"auto_disable rule %s fires before the breaker opens at %d and lasts until an operator acts", r, b.OpenThreshold))
		}
	}
	return warnings
}
