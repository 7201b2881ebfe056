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
	"strconv"

	"github.com/caddyserver/caddy/v2"
)

const (
	disableTail  = " <times> [for <duration>] [scope key | channel]"
	disableUsage = "<code | class | transport>" + disableTail
	matchUsage   = "<code | class> <text>" + disableTail
)

var autoDisableOptions = map[string]option[*AutoDisableConfig]{
	"status":        {usage: disableUsage, repeat: true, parse: parseDisableStatus},
	"match":         {usage: matchUsage, repeat: true, parse: parseDisableMatch},
	"keep_last_key": {usage: "no argument", parse: parseKeepLastKey},
	"correlate":     {usage: "<keys> <window> | off", parse: parseCorrelate},
	"recover":       {unavailable: true},
}

func parseAutoDisable(p *parser, into **AutoDisableConfig) error {
	*into = new(AutoDisableConfig)
	return parseModeBlock(p, &(*into).Mode, autoDisableOptions, *into)
}

func parseDisableStatus(p *parser, a *AutoDisableConfig) error {
	args, err := p.args(2, 6)
	if err != nil {
		return err
	}
	return p.disableRule(a, DisableRule{Status: args[0]}, args[1:])
}

func parseDisableMatch(p *parser, a *AutoDisableConfig) error {
	args, err := p.args(3, 7)
	if err != nil {
		return err
	}
	if args[1] == "" {
		return p.fail("must not have an empty text")
	}
	return p.disableRule(a, DisableRule{Status: args[0], Match: args[1]}, args[2:])
}

// disableRule appends r with what args say of it: how many times, then for how
// long and for whom.
func (p *parser) disableRule(a *AutoDisableConfig, r DisableRule, args []string) error {
	times, err := strconv.Atoi(args[0])
	if err != nil {
		return p.fail("times must be a whole number, not %q", args[0])
	}
	r.Times = times
	for args = args[1:]; len(args) > 0; args = args[2:] {
		switch {
		case len(args) > 1 && args[0] == "for" && r.For == 0:
			d, err := caddy.ParseDuration(args[1])
			if err != nil || d <= 0 {
				return p.fail("for must be a duration above 0, such as 30m or 1h, not %q", args[1])
			}
			r.For = caddy.Duration(d)
		case len(args) > 1 && args[0] == "scope" && args[1] != "" && r.Scope == "":
			r.Scope = args[1]
		default:
			return p.argErr()
		}
	}
	p.mark(strconv.Itoa(len(a.Rules)))
	a.Rules = append(a.Rules, r)
	return nil
}

func parseKeepLastKey(p *parser, a *AutoDisableConfig) error {
	a.KeepLastKey = true
	_, err := p.args(0, 0)
	return err
}

func parseCorrelate(p *parser, a *AutoDisableConfig) error {
	args, err := p.args(1, 2)
	if err != nil {
		return err
	}
	a.Correlate = new(Correlate)
	if len(args) == 1 && args[0] == "off" {
		return nil
	}
	if len(args) == 1 {
		return p.argErr()
	}
	keys, err := strconv.Atoi(args[0])
	if err != nil {
		return p.argErr()
	}
	window, err := caddy.ParseDuration(args[1])
	if err != nil {
		return p.argErr()
	}
	*a.Correlate = Correlate{Keys: keys, Window: caddy.Duration(window)}
	return nil
}
