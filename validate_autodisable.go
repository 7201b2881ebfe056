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
	"slices"
	"strconv"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
)

// checkAutoDisable checks a written block; keys tells whether a channel that it
// is for has any.
func (k *checker) checkAutoDisable(a *AutoDisableConfig, keys bool) error {
	const correlate = "auto_disable correlate"
	if a == nil {
		return nil
	}
	if !slices.Contains([]string{"", disableOff, disableDryRun}, a.Mode) {
		return k.fault("auto_disable", "", "must be off or dry_run, not %q", a.Mode)
	}
	if a.Mode == disableOff {
		bare := len(a.Rules) == 0 && !a.KeepLastKey && a.Correlate == nil
		return k.require(bare, "auto_disable", "is off, so its options have no effect")
	}
	return cmp.Or(
		k.checkDisableRules(a.Rules, keys),
		k.require(keys || !a.KeepLastKey, "auto_disable keep_last_key", "has no effect without a key"),
		k.require(validCorrelate(a.Correlate), correlate, "must be 2 keys or more within a time above 0, or off"),
		k.require(keys || a.Correlate == nil, correlate, "has no effect without a key"),
	)
}

func validCorrelate(c *Correlate) bool {
	return c == nil || *c == Correlate{} || c.Keys >= 2 && c.Window > 0
}

func (k *checker) checkDisableRules(rules []DisableRule, keys bool) error {
	for i, r := range rules {
		msg := disableRuleFault(r, rules[:i])
		if msg == "" && r.Scope == disableKey && !keys {
			msg = "scope key has no effect without a key"
		}
		if msg != "" {
			return k.fault("auto_disable "+r.option(), strconv.Itoa(i), "%s", msg)
		}
	}
	return nil
}

// option returns the name under which the rule stands in a Caddyfile.
func (r DisableRule) option() string {
	if r.Match == "" {
		return "status"
	}
	return "match"
}

func disableRuleFault(r DisableRule, before []DisableRule) string {
	rule, known := r.rule()
	switch {
	case !known && r.Match == "":
		return "must be a status from 400 to 599, 4xx, 5xx or transport, not " + strconv.Quote(r.Status)
	case !known:
		return "must have a status from 400 to 599, 4xx or 5xx, not " + strconv.Quote(r.Status)
	case rule.Transport && r.Match != "":
		return "must not have transport, whose errors have no text of the provider"
	case r.Times < 1:
		return "times must be 1 or more"
	case r.For < 0:
		return "for must be above 0"
	case !slices.Contains([]string{"", disableKey, disableChannel}, r.Scope):
		return "scope must be key or channel, not " + strconv.Quote(r.Scope)
	}
	return repeatedRule(r, before)
}

func repeatedRule(r DisableRule, before []DisableRule) string {
	rule, _ := r.rule()
	same := func(o autodisable.Rule) bool { return sameErrors(o, rule) }
	switch {
	case !slices.ContainsFunc(compileRules(before), same):
		return ""
	case r.Match == "":
		return "has " + r.Status + " twice"
	}
	return "has " + r.Status + " " + strconv.Quote(r.Match) + " twice"
}
