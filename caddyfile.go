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
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const directive = "llm_gateway"

func init() {
	httpcaddyfile.RegisterHandlerDirective(directive, parseCaddyfile)
	httpcaddyfile.RegisterDirectiveOrder(directive, httpcaddyfile.Before, "reverse_proxy")
	httpcaddyfile.RegisterGlobalOption(directive, parseGlobalOption)
}

func parseCaddyfile(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	if err := handler.Config.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return handler, nil
}

// UnmarshalCaddyfile fills c from the directive, its matcher already removed:
//
//	llm_gateway [<name>] {
//		channel <name> {
//			provider       <id>
//			base_url       <url>
//			key            <secret>...
//			auth           bearer | header <name> | none
//			header_up      <field> [<value> [<replacement>]]
//			models         <pattern>...
//			model_map      <requested> <upstream>
//			default_model  <name>
//			priority       <n>
//			weight         <n>
//			backup         <channel>...
//			max_requests   <n>
//			header_timeout <stream> [<other>]
//			idle_timeout   <duration>
//			transport http { ... }
//			breaker ...
//		}
//		header_timeout <stream> [<other>]
//		idle_timeout   <duration>
//		transport http { ... }
//		lb_policy      weighted | <policy> [<args>...]
//		retries        <n>
//		early_probe    <duration>
//		abandon_after  <duration>
//		max_body       <size>
//		errors         provider | caddy
//		breaker [off | dry_run] {
//			open_threshold     <n>
//			degrade_threshold  <n>
//			degraded_weight    <0..1>
//			half_open_weight   <0..1>
//			failure_ttl        <duration>
//			probe_interval     <duration>
//			max_probe_interval <duration>
//			jitter             <percent>
//			probe_timeout      <stream> [<other>]
//		}
//	}
//
// channel, key, header_up and model_map may be repeated, the others not. The
// result is checked as a whole; errors name file and line.
func (c *Config) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	p := &parser{d: d, places: map[place]caddyfile.Token{{}: d.Token()}}
	if err := p.gatewayName(c); err != nil {
		return err
	}
	if err := parseBlock(p, gatewayOptions, c); err != nil {
		return err
	}
	return p.locate(c.checkAdapted())
}

// parseGlobalOption refuses what may once be written at the top of a Caddyfile.
func parseGlobalOption(d *caddyfile.Dispenser, _ any) (any, error) {
	d.Next() // the option's name
	switch {
	case d.NextArg():
		return nil, d.Errf("%s takes a block and no argument", directive)
	case !d.NextBlock(0):
		return nil, d.Errf("%s has an empty block", directive)
	case d.Val() == "sync_interval":
		return nil, d.Err("sync_interval is not available yet")
	}
	return nil, d.Errf("unknown option %q of %s", d.Val(), directive)
}

// parser reads one directive.
type parser struct {
	d      *caddyfile.Dispenser
	places map[place]caddyfile.Token

	channel string // whose block is read; empty at the gateway's
	block   string // "breaker " within a breaker block, and so on; empty outside
	option  string // the one that is read, with its block
	usage   string // its arguments
}

// place is what an error found later is about: an option of a channel, or one
// of its values (see configError), or with no option the channel. The empty
// place is the directive.
type place struct{ channel, option, at string }

func (p *parser) mark(at string) { p.places[place{p.channel, p.option, at}] = p.d.Token() }

// locate adds file and line of what err is about.
func (p *parser) locate(err error) error {
	var fault *configError
	if !errors.As(err, &fault) {
		return err
	}
	for _, at := range []place{
		{fault.Channel, fault.Option, fault.at},
		{fault.Channel, fault.Option, ""},
		{fault.Channel, "", ""},
	} {
		if token, ok := p.places[at]; ok {
			return wrapAt(token, err)
		}
	}
	return wrapAt(p.places[place{}], err)
}

func wrapAt(token caddyfile.Token, err error) error {
	d := caddyfile.NewDispenser([]caddyfile.Token{token})
	d.Next()
	return d.WrapErr(err)
}

// fail returns an error about the option that is read, at the current token.
// Arguments that may be secrets must not be among args.
func (p *parser) fail(format string, args ...any) error {
	return p.d.WrapErr(&configError{Channel: p.channel, Option: p.option, Msg: fmt.Sprintf(format, args...)})
}

func (p *parser) gatewayName(c *Config) error {
	p.option = "name"
	defer func() { p.option = "" }()
	if !p.d.NextArg() {
		return nil
	}
	c.Name = p.d.Val()
	if err := checkName(c.Name); err != nil {
		return p.fail("%v", err)
	}
	if p.d.NextArg() {
		return p.fail("is one word; a matcher stands before it")
	}
	return nil
}

// option is what a block may hold.
type option[T any] struct {
	usage       string // arguments, for the error about their count
	repeat      bool   // may be written more than once
	unavailable bool   // known, but not there yet
	parse       func(*parser, T) error
}

// parseBlock reads a block, if there is one, into what the options fill.
func parseBlock[T any](p *parser, options map[string]option[T], into T) error {
	seen := make(map[string]bool)
	for nesting := p.d.Nesting(); p.d.NextBlock(nesting); {
		name := p.d.Val()
		o, known := options[name]
		if !known {
			return p.unknown(name, validNames(options))
		}
		p.option, p.usage = p.block+name, o.usage
		switch {
		case o.unavailable:
			return p.fail("is not available yet")
		case seen[name] && !o.repeat:
			return p.fail("is given twice")
		}
		if !seen[name] {
			p.mark("")
		}
		seen[name] = true
		if err := o.parse(p, into); err != nil {
			return err
		}
	}
	return nil
}
