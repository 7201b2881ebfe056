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
	"slices"
)

// GrammarOptions returns the options that the directive accepts, each after the
// block that it stands in.
func GrammarOptions() []string {
	var all []string
	all = appendOptions(all, "gateway", gatewayOptions)
	all = appendOptions(all, "channel", channelOptions)
	all = appendOptions(all, "breaker", breakerOptions)
	all = appendOptions(all, "auto_disable", autoDisableOptions)
	slices.Sort(all)
	return all
}

func appendOptions[T any](all []string, block string, options map[string]option[T]) []string {
	for name := range maps.Keys(options) {
		if o := options[name]; !o.unavailable && o.usage != "off" { // what can only be off is not there yet
			all = append(all, block+" "+name)
		}
	}
	return all
}
