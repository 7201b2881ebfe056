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

package autodisable_test

import (
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
)

func TestRuleIsWrittenAsInTheCaddyfile(t *testing.T) {
	for text, rule := range map[string]autodisable.Rule{
		"status 401 3":                        {Status: 401, Times: 3},
		"status 401 3 for 1h scope key":       {Status: 401, Times: 3, For: time.Hour, Scope: autodisable.ScopeKey},
		"status 5xx 10 for 1h30m":             {Class: 5, Times: 10, For: 90 * minute},
		"status 5xx 10 for 10m":               {Class: 5, Times: 10, For: 10 * minute},
		"status 5xx 10 for 20s":               {Class: 5, Times: 10, For: 20 * second},
		"status 5xx 10 for 1m20s":             {Class: 5, Times: 10, For: 80 * second},
		"status 5xx 10 for 100h":              {Class: 5, Times: 10, For: 100 * time.Hour},
		"status 4xx 2":                        {Class: 4, Times: 2},
		"status transport 5 scope channel":    {Transport: true, Times: 5, Scope: autodisable.ScopeChannel},
		`match 429 "no Quota" 2`:              {Status: 429, Match: "no Quota", Times: 2},
		"match 429 `\"quota\"` 2 scope key":   {Status: 429, Match: `"quota"`, Times: 2, Scope: autodisable.ScopeKey},
		"match 400 `a\\b` 2 for 1h":           {Status: 400, Match: `a\b`, Times: 2, For: time.Hour},
		"match 400 \"a`\\\"b\" 2":             {Status: 400, Match: "a`\"b", Times: 2},
		`match transport "x509" 1 scope key`:  {Transport: true, Match: "x509", Times: 1, Scope: autodisable.ScopeKey},
		`match 4xx "billing" 1 scope channel`: {Class: 4, Match: "billing", Times: 1, Scope: autodisable.ScopeChannel},
	} {
		want(t, "text", rule.String(), text)
	}
}

func TestDefaultRules(t *testing.T) {
	var texts []string
	for _, rule := range autodisable.DefaultRules() {
		texts = append(texts, rule.String())
	}
	want(t, "rules", texts, []string{"status 401 3", "status 402 3 for 1h"})

	r := newRig(t, autodisable.DefaultRules()...)
	want(t, "changes", r.run("k1 401, k1 402, k1 401, k1 402, k1 401, k2 402, k2 402, k2 402"), []string{"k1 disabled", "k2 disabled"})
	r.now = r.now.Add(time.Hour)
	r.wantOut("k1")
}
