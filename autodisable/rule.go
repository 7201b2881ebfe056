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

package autodisable

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Scope tells whom a rule counts for.
type Scope uint8

const (
	ScopeDefault Scope = iota // the key for 401, 402, 403 and 429; the channel for everything else
	ScopeKey                  // the key; the channel where it has no keys
	ScopeChannel              // the channel, whatever its key
)

// String returns the word that the Caddyfile uses: key or channel; empty for the
// default.
func (s Scope) String() string {
	return [...]string{"", "key", "channel", ""}[s&3]
}

// Rule tells after how many consecutive errors of a kind a subject is disabled.
// It has one of Status, Class and Transport; without them it matches nothing.
type Rule struct {
	Status    int  // an exact status; 0: any of Class
	Class     int  // 4 or 5 for 4xx or 5xx
	Transport bool // transport errors and timeouts
	// Match is a text that the error's code or message has, whatever the case.
	// Empty: the text does not matter.
	Match string
	// Times is the number of errors, at least 1. A low one is sooner done with a
	// key that was revoked; a high one forgives a provider that errs in passing.
	Times int
	For   time.Duration // how long; 0: until an operator acts
	Scope Scope
}

// DefaultRules are those of an auto_disable without rules of its own:
// "status 401 3" and "status 402 3 for 1h".
func DefaultRules() []Rule {
	return []Rule{{Status: 401, Times: 3}, {Status: 402, Times: 3, For: time.Hour}}
}

// String returns the rule as the Caddyfile has it: "status 401 3 for 1h scope
// key".
func (r Rule) String() string {
	s := r.what() + " " + strconv.Itoa(r.Times)
	if r.For > 0 {
		s += " for " + short(r.For)
	}
	if scope := r.Scope.String(); scope != "" {
		s += " scope " + scope
	}
	return s
}

// what returns the part of the rule that tells which errors it is about.
func (r Rule) what() string {
	if r.Match == "" {
		return "status " + r.kind()
	}
	return "match " + r.kind() + " " + quote(r.Match)
}

// kind returns the word for the rule's statuses: "401", "5xx" or "transport".
func (r Rule) kind() string {
	switch {
	case r.Transport:
		return "transport"
	case r.Status == 0:
		return strconv.Itoa(r.Class) + "xx"
	}
	return strconv.Itoa(r.Status)
}

// name returns what the status lists the rule's streak under.
func (r Rule) name() string {
	if r.Match == "" {
		return r.kind()
	}
	return r.kind() + " " + r.Match
}

// reason returns what a record says after n errors.
func (r Rule) reason(n int) string {
	return fmt.Sprintf("Auto-disabled after %d consecutive %s", n, r.errors(n))
}

// errors names n of the errors that the rule counts.
func (r Rule) errors(n int) string {
	what := "error"
	if r.Transport {
		what = "transport error"
	}
	if n != 1 {
		what += "s"
	}
	if !r.Transport {
		what += " with status " + r.kind()
	}
	if r.Match != "" {
		what += fmt.Sprintf(" matching %q", r.Match)
	}
	return what
}

// short writes a duration without its empty tail: 1h for 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// quote writes a text as one token of a Caddyfile. Within double quotes only
// they can be escaped, within backquotes nothing.
func quote(s string) string {
	if strings.ContainsAny(s, `"\`) && !strings.Contains(s, "`") {
		return "`" + s + "`"
	}
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}

// rule is a Rule in use, within its bounds.
type rule struct {
	Rule
	id   string // the same for rules that count the same errors for the same subjects
	text string // Match in lower case
}

func compile(rules []Rule) []rule {
	list := make([]rule, len(rules))
	for i, r := range rules {
		r.Times, r.For = max(r.Times, 1), max(r.For, 0)
		if r.Scope == ScopeDefault && (r.Status != 0 || r.Transport || r.Class != 4) {
			r.Scope = scopeOf(r.Status)
		}
		list[i] = rule{r, strings.ToLower(r.what()) + " scope " + r.Scope.String(), strings.ToLower(r.Match)}
	}
	return list
}

// find returns the index of the rule with that id, -1 if there is none.
func find(rules []rule, id string) int {
	for i := range rules {
		if rules[i].id == id {
			return i
		}
	}
	return -1
}

// scopeOf returns whom errors of that status count for by default.
func scopeOf(status int) Scope {
	switch status {
	case 401, 402, 403, 429:
		return ScopeKey
	}
	return ScopeChannel
}

// scope returns whom the rule counts the failure for.
func (r *rule) scope(f *Failure) Scope {
	switch {
	case f.Key == "":
		return ScopeChannel
	case r.Scope == ScopeDefault:
		return scopeOf(f.Status)
	}
	return r.Scope
}

// lists reports whether the rule is about such failures.
func (r *rule) lists(f *Failure) bool {
	return r.listsKind(f) && (r.text == "" || r.says(f.Code) || r.says(f.Message))
}

func (r *rule) listsKind(f *Failure) bool {
	switch {
	case r.Transport || f.Transport:
		return r.Transport && f.Transport
	case r.Status != 0:
		return r.Status == f.Status
	}
	return r.Class != 0 && r.Class == f.Status/100
}

func (r *rule) says(text string) bool { return strings.Contains(strings.ToLower(text), r.text) }

// longer reports whether the rule disables for longer than the other.
func (r *rule) longer(other *rule) bool {
	return other.For != 0 && (r.For == 0 || r.For > other.For)
}
