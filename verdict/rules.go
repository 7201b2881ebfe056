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

package verdict

import (
	"slices"
	"strings"
	"time"
)

// rule tells what an error means. All that it states must hold; what it leaves
// out may be anything. The first that fits decides.
type rule struct {
	at    []string                         // providers
	on    []int                            // statuses; one that is not known does for codes and texts
	codes []string                         // one of them, see fits
	texts []string                         // one of them is in the message, in lower case; with ^ at its beginning
	names bool                             // the message names the model that was asked for
	until func(c *candidate) time.Duration // for how long a limit lasts, where the text tells
	then  outcome
}

var rules = slices.Concat(providerRules, generalRules)

func (c *candidate) rule() *rule {
	for i := range rules {
		if rules[i].fits(c) {
			return &rules[i]
		}
	}
	return nil
}

func (r *rule) fits(c *candidate) bool {
	return (r.at == nil || slices.Contains(r.at, c.provider) || c.family != "" && slices.Contains(r.at, c.family)) &&
		(r.on == nil || slices.Contains(r.on, c.status) || c.status == 0 && (r.codes != nil || r.texts != nil)) &&
		(r.codes == nil || c.facts.has(r.codes)) &&
		(r.texts == nil || containsAny(c.facts.message, r.texts)) &&
		(!r.names || namesModel(c.facts.message, c.model))
}

// containsAny reports whether one of the texts is in s, those with a ^ at its
// beginning: an echo of the request stands further on.
func containsAny(s string, texts []string) bool {
	for _, t := range texts {
		if start, anchored := strings.CutPrefix(t, "^"); anchored && strings.HasPrefix(s, start) || strings.Contains(s, t) {
			return true
		}
	}
	return false
}

// namesModel looks for the model's name in a message in lower case, not as a
// part of a longer name.
func namesModel(message, model string) bool {
	model = strings.ToLower(model)
	if model == "" {
		return false
	}
	for rest := message; ; {
		i := strings.Index(rest, model)
		if i < 0 {
			return false
		}
		end := i + len(model)
		if (i == 0 || !nameByte(rest[i-1])) && (end == len(rest) || !nameByte(rest[end]) || endsSentence(rest[end:])) {
			return true
		}
		rest = rest[i+1:]
	}
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

func endsSentence(s string) bool { return s == "." || strings.HasPrefix(s, ". ") }

func words(s string) []string { return strings.Fields(s) }

// pacificMidnight returns the time until the daily quotas of Google start anew.
func pacificMidnight(c *candidate) time.Duration {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		zone = time.FixedZone("PST", -8*60*60)
	}
	t := c.now.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, zone).Sub(c.now)
}

// untilNamedTime reads a date and time in the message. They are those of China,
// where the only provider that writes them is.
func untilNamedTime(c *candidate) time.Duration {
	const layout = "2006-01-02 15:04:05"
	zone := time.FixedZone("CST", 8*60*60)
	for i := 0; i+len(layout) <= len(c.facts.message); i++ {
		if t, err := time.ParseInLocation(layout, c.facts.message[i:i+len(layout)], zone); err == nil {
			return t.Sub(c.now)
		}
	}
	return 0
}

func longest(*candidate) time.Duration { return maxPause }
