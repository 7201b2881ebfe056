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
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// GrammarOptions returns the options that the directive accepts, each after the
// block that it stands in, as in "channel auth", and the values that an option
// may have, as in "channel auth header". Those of breaker and auto_disable are
// there once, though these blocks stand at the gateway and at channels.
func GrammarOptions() []string {
	all := slices.Concat(
		listOptions("gateway", gatewayOptions),
		listOptions("channel", channelOptions),
		listOptions("breaker", breakerOptions),
		listOptions("auto_disable", autoDisableOptions),
	)
	for _, policy := range caddy.GetModules("http.reverse_proxy.selection_policies") {
		if name := policy.ID.Name(); refusedPolicies[name] == "" {
			all = append(all, "gateway lb_policy "+name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// listOptions leaves out what is not available yet: marked so, or off at most.
func listOptions[T any](block string, options map[string]option[T]) []string {
	var all []string
	for name, o := range options {
		if o.unavailable || o.usage == "off" || o.usage == "0 | off" {
			continue
		}
		all = append(all, block+" "+name)
		for _, value := range usageValues(o.usage) {
			all = append(all, block+" "+name+" "+value)
		}
	}
	return all
}

var usageWord = regexp.MustCompile(`<[^>]*>|[a-z_]+`)

// usageValues returns what in a usage is to be shown by itself: its literal words
// and the alternatives of a placeholder; of the other placeholders those after the
// first, unless they are the argument of a literal word before them.
func usageValues(usage string) []string {
	var values []string
	literal, placeholders := -2, 0 // where the literal word before ends
	for _, at := range usageWord.FindAllStringIndex(usage, -1) {
		word := usage[at[0]:at[1]]
		argument := literal == at[0]-1
		literal = -2
		switch names := strings.Split(strings.Trim(word, "<>"), " | "); {
		case word[0] != '<':
			values, literal = append(values, word), at[1]
		case len(names) > 1:
			values = append(values, names...)
			placeholders++
		case !argument:
			if placeholders++; placeholders > 1 {
				values = append(values, names[0])
			}
		}
	}
	if usage == "no argument" {
		return nil
	}
	return values
}
