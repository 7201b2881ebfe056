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
	"slices"
	"strings"
)

// modelTable answers which upstream model, if any, a channel serves a
// requested model with. It is immutable.
type modelTable struct {
	exact    map[string]string // requested → upstream
	mapGlobs []ModelMapping
	names    map[string]bool // served under their own name
	globs    []string
	fallback string   // default_model
	listed   []string // the requested names that are written, in config order
}

func newModelTable(c *Channel) *modelTable {
	t := &modelTable{
		exact:    make(map[string]string),
		names:    make(map[string]bool),
		fallback: c.DefaultModel,
	}
	for _, m := range c.ModelMap {
		if isGlob(m.Requested) {
			t.mapGlobs = append(t.mapGlobs, m)
		} else {
			t.exact[m.Requested] = m.Upstream
			t.listed = append(t.listed, m.Requested)
		}
	}
	for _, p := range c.Models {
		if isGlob(p) {
			t.globs = append(t.globs, p)
		} else {
			t.names[p] = true
			t.listed = append(t.listed, p)
		}
	}
	if len(c.Models) == 0 && len(c.ModelMap) == 0 && c.DefaultModel == "" {
		t.globs = []string{"*"}
	}
	return t
}

// upstream returns what the channel is asked for when the client asks for
// requested. ok is false if the channel does not serve it.
func (t *modelTable) upstream(requested string) (model string, ok bool) {
	if up, ok := t.exact[requested]; ok {
		return up, true
	}
	for _, m := range t.mapGlobs {
		if star, ok := matchGlob(m.Requested, requested); ok {
			// An empty star may leave no name at all.
			if up := strings.Replace(m.Upstream, "*", star, 1); up != "" {
				return up, true
			}
		}
	}
	if t.names[requested] {
		return requested, true
	}
	for _, g := range t.globs {
		if _, ok := matchGlob(g, requested); ok {
			return requested, true
		}
	}
	return t.fallback, t.fallback != ""
}

// written returns the upstream names that stand in the configuration, sorted,
// each once. Their breakers are always tracked and shown.
func (t *modelTable) written() []string {
	var names []string
	for _, up := range t.exact {
		names = append(names, up)
	}
	for _, m := range t.mapGlobs {
		if !isGlob(m.Upstream) {
			names = append(names, m.Upstream)
		}
	}
	for name := range t.names {
		names = append(names, name)
	}
	if t.fallback != "" {
		names = append(names, t.fallback)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isGlob(s string) bool { return strings.Contains(s, "*") }

// matchGlob reports whether s matches pattern, in which each `*` stands for
// any run of characters (also `/` and `:`, which model names contain), and
// what the first `*` stood for: the shortest run that lets the rest match.
func matchGlob(pattern, s string) (star string, ok bool) {
	prefix, rest, found := strings.Cut(pattern, "*")
	if !found {
		return "", pattern == s
	}
	if !strings.HasPrefix(s, prefix) {
		return "", false
	}
	s = s[len(prefix):]
	if !isGlob(rest) {
		return strings.TrimSuffix(s, rest), strings.HasSuffix(s, rest)
	}
	for i := range len(s) + 1 {
		if matchTail(rest, s[i:]) {
			return s[:i], true
		}
	}
	return "", false
}

// matchTail is matchGlob without the capture, linear in the number of stars:
// each literal between two stars is taken where it stands first.
func matchTail(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	last := parts[len(parts)-1]
	return len(parts) == 1 && s == "" || len(parts) > 1 && strings.HasSuffix(s, last)
}
