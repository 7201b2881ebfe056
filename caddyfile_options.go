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
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/dustin/go-humanize"
)

// The options of each block. They are filled in init, since channel blocks are
// read by means of these tables too.
var (
	gatewayOptions map[string]option[*Config]
	channelOptions map[string]option[*Channel]
)

func init() {
	gatewayOptions = map[string]option[*Config]{
		"channel":        {usage: "<name>", repeat: true, parse: parseChannel},
		"lb_policy":      {usage: "weighted | <policy> [<args>...]", parse: parseLBPolicy},
		"retries":        {usage: "<n>", parse: func(p *parser, c *Config) error { return p.integer(&c.Retries) }},
		"early_probe":    {usage: "<duration> | off", parse: func(p *parser, c *Config) error { return p.durationOrOff(&c.EarlyProbe) }},
		"abandon_after":  {usage: "<duration> | off", parse: func(p *parser, c *Config) error { return p.durationOrOff(&c.AbandonAfter) }},
		"max_body":       {usage: "<size>", parse: func(p *parser, c *Config) error { return p.size(&c.MaxBody) }},
		"errors":         {usage: "provider | caddy", parse: func(p *parser, c *Config) error { return p.word(&c.Errors) }},
		"try_duration":   {usage: "<duration> | off", parse: func(p *parser, c *Config) error { return p.durationOrOff(&c.TryDuration) }},
		"retry_budget":   {usage: "<percent> [<min>] | off", parse: parseRetryBudget},
		"retry_on":       {usage: "<status>...", parse: func(p *parser, c *Config) error { return p.statuses(&c.RetryOn) }},
		"second_opinion": {usage: "<n> | off", parse: func(p *parser, c *Config) error { return p.integerOrOff(&c.SecondOpinion) }},
		"peek_timeout":   {usage: "<duration> | off", parse: func(p *parser, c *Config) error { return p.durationOrOff(&c.PeekTimeout) }},
		"stream_close_delay": {usage: "<duration> | off", parse: func(p *parser, c *Config) error {
			return p.durationOrOff(&c.StreamCloseDelay)
		}},
		"all_open": {usage: "fail_fast | best_effort | wait <duration>", parse: parseAllOpen},

		"affinity":     {usage: "header <name> | field <json.path> | prefix <bytes>", parse: parseAffinity},
		"buffer_total": {usage: "<size>", parse: func(p *parser, c *Config) error { return p.size(&c.BufferTotal) }},
	}
	channelOptions = map[string]option[*Channel]{
		"provider":      {usage: "<id>", parse: func(p *parser, c *Channel) error { return p.word(&c.Provider) }},
		"base_url":      {usage: "<url>", parse: func(p *parser, c *Channel) error { return p.word(&c.BaseURL) }},
		"key":           {usage: "<secret>...", repeat: true, parse: func(p *parser, c *Channel) error { return p.words(&c.Keys) }},
		"auth":          {usage: "bearer | header <name> | query <name> | passthrough | none", parse: parseAuth},
		"header_up":     {usage: "<field> [<value> [<replacement>]]", repeat: true, parse: parseHeaderUp},
		"models":        {usage: "<pattern>...", parse: func(p *parser, c *Channel) error { return p.words(&c.Models) }},
		"model_map":     {usage: "<requested> <upstream>", repeat: true, parse: parseModelMap},
		"default_model": {usage: "<name>", parse: func(p *parser, c *Channel) error { return p.word(&c.DefaultModel) }},
		"priority":      {usage: "<n>", parse: func(p *parser, c *Channel) error { return p.integer(&c.Priority) }},
		"weight":        {usage: "<n>", parse: func(p *parser, c *Channel) error { return p.integer(&c.Weight) }},
		"backup":        {usage: "<channel>...", parse: func(p *parser, c *Channel) error { return p.words(&c.Backup) }},
		"max_requests":  {usage: "<n>", parse: parseMaxRequests},

		"failure_on": {usage: "<status>...", parse: func(p *parser, c *Channel) error { return p.statuses(&c.FailureOn) }},

		"token": {unavailable: true},
	}
	maps.Copy(gatewayOptions, sharedOptions(func(c *Config) shared { return shared{&c.Defaults, &c.Breaker, &c.AutoDisable} }))
	maps.Copy(channelOptions, sharedOptions(func(c *Channel) shared { return shared{&c.Defaults, &c.Breaker, &c.AutoDisable} }))
}

// shared is where the options go that a gateway and a channel both have.
type shared struct {
	defaults    *Defaults
	breaker     **BreakerConfig
	autoDisable **AutoDisableConfig
}

// sharedOptions are those that may stand at the gateway and at a channel.
func sharedOptions[T any](of func(T) shared) map[string]option[T] {
	return map[string]option[T]{
		"header_timeout": {usage: "<stream> [<other>]", parse: func(p *parser, t T) error {
			return p.timeouts(&of(t).defaults.HeaderTimeout)
		}},
		"idle_timeout": {usage: "<duration> | off", parse: func(p *parser, t T) error {
			return p.durationOrOff(&of(t).defaults.IdleTimeout)
		}},
		"transport": {usage: "http { ... }", parse: func(p *parser, t T) error {
			return parseTransport(p, of(t).defaults)
		}},
		"breaker": {usage: "[off | dry_run] { ... }", parse: func(p *parser, t T) error {
			return parseBreaker(p, of(t).breaker)
		}},
		"auto_disable": {usage: "[off | dry_run] { ... }", parse: func(p *parser, t T) error {
			return parseAutoDisable(p, of(t).autoDisable)
		}},
		"health_check": only[T]("off"),
		"limit_scope": {usage: "key | channel", parse: func(p *parser, t T) error {
			return p.word(&of(t).defaults.LimitScope)
		}},
		"first_token_timeout": {usage: "<duration> | off", parse: func(p *parser, t T) error {
			return p.durationOrOff(&of(t).defaults.FirstTokenTimeout)
		}},
	}
}

var breakerOptions = map[string]option[*BreakerConfig]{
	"open_threshold":     {usage: "<n>", parse: func(p *parser, b *BreakerConfig) error { return p.integer(&b.OpenThreshold) }},
	"degrade_threshold":  {usage: "<n>", parse: func(p *parser, b *BreakerConfig) error { return p.integer(&b.DegradeThreshold) }},
	"degraded_weight":    {usage: "<0..1>", parse: func(p *parser, b *BreakerConfig) error { return p.number(&b.DegradedWeight, "") }},
	"half_open_weight":   {usage: "<0..1>", parse: func(p *parser, b *BreakerConfig) error { return p.number(&b.HalfOpenWeight, "") }},
	"failure_ttl":        {usage: "<duration>", parse: func(p *parser, b *BreakerConfig) error { return p.duration(&b.FailureTTL) }},
	"probe_interval":     {usage: "<duration>", parse: func(p *parser, b *BreakerConfig) error { return p.duration(&b.ProbeInterval) }},
	"max_probe_interval": {usage: "<duration>", parse: func(p *parser, b *BreakerConfig) error { return p.duration(&b.MaxProbeInterval) }},
	"jitter":             {usage: "<percent>", parse: func(p *parser, b *BreakerConfig) error { return p.number(&b.Jitter, "%") }},
	"probe_timeout":      {usage: "<stream> [<other>]", parse: func(p *parser, b *BreakerConfig) error { return p.timeouts(&b.ProbeTimeout) }},
}

func parseAffinity(p *parser, c *Config) error {
	args, err := p.args(2, 2)
	if err != nil {
		return err
	}
	c.Affinity = new(AffinityConfig)
	switch args[0] {
	case "header":
		c.Affinity.Header = args[1]
	case "field":
		c.Affinity.Field = args[1]
	case "prefix":
		n, err := humanize.ParseBytes(args[1])
		if err != nil || n == 0 || n > math.MaxInt32 {
			return p.fail("prefix must be a number of bytes above 0, not %q", args[1])
		}
		c.Affinity.Prefix = int(n)
	default:
		return p.argErr()
	}
	return nil
}

func parseAllOpen(p *parser, c *Config) error {
	args, err := p.args(1, 2)
	if err != nil {
		return err
	}
	if c.AllOpen = args[0]; (c.AllOpen == allOpenWait) != (len(args) == 2) {
		return p.argErr()
	}
	if len(args) == 2 {
		var d *caddy.Duration
		if err := p.parseDuration(&d, args[1]); err != nil {
			return err
		}
		c.AllOpenWait = *d
	}
	return nil
}

func parseRetryBudget(p *parser, c *Config) error {
	args, err := p.args(1, 2)
	if err != nil {
		return err
	}
	if args[0] == "off" && len(args) == 1 {
		c.RetryBudget = &RetryBudget{Off: true}
		return nil
	}
	b := new(RetryBudget)
	if b.Percent, err = strconv.ParseFloat(strings.TrimSuffix(args[0], "%"), 64); err != nil {
		return p.fail("must be a percentage, not %q", args[0])
	}
	if len(args) == 2 {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return p.fail("must have a whole number as its minimum, not %q", args[1])
		}
		b.Min = &n
	}
	c.RetryBudget = b
	return nil
}

func parseChannel(p *parser, c *Config) error {
	var name string
	if err := p.word(&name); err != nil {
		return err
	}
	if err := checkName(name); err != nil {
		return p.fail("name %v", err)
	}
	if _, taken := p.places[place{channel: name}]; taken {
		return p.fail("%s is given twice: names are unique within a gateway", name)
	}
	p.channel, p.option = name, ""
	p.mark("")
	ch := &Channel{Name: name}
	c.Channels = append(c.Channels, ch)
	if err := parseBlock(p, channelOptions, ch); err != nil {
		return err
	}
	p.channel = ""
	return nil
}

func parseBreaker(p *parser, into **BreakerConfig) error {
	*into = new(BreakerConfig)
	return parseModeBlock(p, &(*into).Mode, breakerOptions, *into)
}

// parseModeBlock reads the options within a block that may have a mode before
// it.
func parseModeBlock[T any](p *parser, mode *string, options map[string]option[T], into T) error {
	if p.d.NextArg() {
		if *mode = p.d.Val(); *mode == "" || p.d.NextArg() {
			return p.argErr()
		}
	}
	p.block = p.option + " "
	defer func() { p.block = "" }()
	return parseBlock(p, options, into)
}

func parseLBPolicy(p *parser, c *Config) error {
	if !p.d.NextArg() {
		return p.argErr()
	}
	name := p.d.Val()
	if why, refused := refusedPolicies[name]; refused {
		return p.fail("%s %s", name, why)
	}
	if name == weightedPolicyName {
		if p.d.NextArg() {
			return p.fail("weighted takes no arguments")
		}
		return nil // the default
	}
	unm, err := caddyfile.UnmarshalModule(p.d, "http.reverse_proxy.selection_policies."+name)
	if err != nil {
		return err
	}
	if _, ok := unm.(reverseproxy.Selector); !ok {
		return p.fail("%s is no selection policy", name)
	}
	c.LBPolicyRaw = caddyconfig.JSONModuleObject(unm, "policy", name, nil)
	return nil
}

func parseTransport(p *parser, into *Defaults) error {
	if !p.d.NextArg() || p.d.Val() != "http" {
		return p.fail("must be http")
	}
	segment := p.d.NewFromNextSegment()
	segment.Next() // http
	for segment.NextBlock(0) {
		if why, refused := refusedTransport[segment.Val()]; refused {
			return segment.WrapErr(&configError{
				Channel: p.channel, Option: p.option, Msg: "must not set " + segment.Val() + ": " + why,
			})
		}
		segment.NextSegment() // the option's arguments and block
	}
	segment.Reset()
	segment.Next()
	unm, err := caddyfile.UnmarshalModule(segment, "http.reverse_proxy.transport.http")
	if err != nil {
		return err
	}
	if _, ok := unm.(http.RoundTripper); !ok {
		return p.fail("%T is no transport", unm)
	}
	into.TransportRaw = caddyconfig.JSONModuleObject(unm, "protocol", "http", nil)
	return nil
}

func parseAuth(p *parser, c *Channel) error {
	args, err := p.args(1, 2)
	if err != nil {
		return err
	}
	c.Auth = &Auth{Scheme: args[0]}
	if len(args) == 2 {
		c.Auth.Name = args[1]
	}
	return nil
}

func parseHeaderUp(p *parser, c *Channel) error {
	args, err := p.args(1, 3)
	if err != nil {
		return err
	}
	if c.HeaderUp == nil {
		c.HeaderUp = new(headers.HeaderOps)
	}
	p.mark(headerPlace(args[0]))
	value, replacement := "", (*string)(nil)
	if len(args) > 1 {
		value = args[1]
	}
	if len(args) > 2 {
		replacement = &args[2]
	}
	if err := headers.CaddyfileHeaderOp(c.HeaderUp, args[0], value, replacement); err != nil {
		return p.fail("%v", err)
	}
	return nil
}

func parseModelMap(p *parser, c *Channel) error {
	args, err := p.args(2, 2)
	if err != nil {
		return err
	}
	p.mark(strconv.Itoa(len(c.ModelMap)))
	c.ModelMap = append(c.ModelMap, ModelMapping{Requested: args[0], Upstream: args[1]})
	return nil
}

// parseMaxRequests takes no 0, which in JSON means that nothing is written.
func parseMaxRequests(p *parser, c *Channel) error {
	var n *int
	if err := p.integer(&n); err != nil {
		return err
	}
	if *n < 1 {
		return p.fail("must be 1 or more")
	}
	c.MaxRequests = *n
	return nil
}
