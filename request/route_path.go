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

package request

import (
	"net/http"
	"strings"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// google matches the Gemini API and Vertex. Their paths end in model and verb,
// /models/m:generateContent; what has no verb is known by Google's version
// names and by the words that stand in all of Vertex's paths.
func (m *matcher) google() (route, bool) {
	if rt, ok := m.verb(); ok {
		return rt, true
	}
	if !m.googlePath() {
		return route{}, false
	}
	rt := route{dialect: dialect.Gemini}
	if m.end(1) == "interactions" {
		rt.look = lookMaybe
	}
	return rt, true
}

// verb matches …/models/{model}:{verb}. Only for POST: other methods meet
// colons in OpenAI's /v1/models/{model}, where they are a part of the name.
func (m *matcher) verb() (route, bool) {
	if m.r.Method != http.MethodPost && m.r.Method != http.MethodOptions {
		return route{}, false
	}
	i := m.modelsIndex()
	if i < 0 {
		return route{}, false
	}
	last := m.segs[len(m.segs)-1]
	colon, verb := cutVerb(m.path[last.from:last.to])
	if verb == "" {
		return route{}, false
	}
	rt := route{
		dialect: dialect.Gemini,
		look:    lookStream,
		from:    m.segs[i+1].from,
		to:      last.from + colon,
		stream:  strings.HasPrefix(verb, "stream"),
	}
	if m.at(i-2) == "publishers" {
		rt.publisher(m.at(i-1), m.path, verb)
	}
	return rt, true
}

// publisher corrects the route of a model that Vertex serves for a publisher.
// Vertex passes raw predictions on unchanged, so they speak the publisher's API.
func (rt *route) publisher(name, path, verb string) {
	raw := strings.EqualFold(strings.TrimPrefix(verb, "stream"), "rawPredict")
	switch {
	case name == "anthropic":
		rt.dialect = dialect.Anthropic
		// Tokens are counted under a name that is no model; the body has it.
		if path[rt.from:rt.to] == "count-tokens" {
			rt.look, rt.from, rt.to = lookModel, 0, 0
		}
	case name != "google" && raw:
		rt.dialect = dialect.None
	}
}

// modelsIndex returns the segment behind which the model begins, -1 if there is
// none. The model may itself have segments, even one named models, and so may
// the prefix; behind a version or publisher is the right one.
func (m *matcher) modelsIndex() int {
	first := -1
	for i := range len(m.segs) - 1 {
		if name := m.segs[i].name; name != "models" && name != "tunedModels" {
			continue
		}
		if isVersion(m.at(i-1)) || m.at(i-2) == "publishers" {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

// cutVerb cuts the verb off a segment and returns where its colon stands. Some
// clients escape the colon.
func cutVerb(escaped string) (colon int, verb string) {
	colon, verb = cutLast(escaped, ":")
	for _, c := range []string{"%3A", "%3a"} {
		if i, v := cutLast(escaped, c); i > colon {
			colon, verb = i, v
		}
	}
	if strings.ContainsFunc(verb, notLetter) {
		return -1, ""
	}
	return colon, verb
}

func cutLast(s, sep string) (at int, after string) {
	at = strings.LastIndex(s, sep)
	if at < 0 {
		return -1, ""
	}
	return at, s[at+len(sep):]
}

func notLetter(c rune) bool { return (c|0x20) < 'a' || (c|0x20) > 'z' }

// isVersion knows v1, v2beta and the like.
func isVersion(s string) bool {
	return len(s) >= 2 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9'
}

// googlePath reports whether the path is one of Google's own APIs, and not of
// the OpenAI dialect that Google offers beside them.
func (m *matcher) googlePath() bool {
	found := false
	for i, s := range m.segs {
		switch {
		case s.name == "openai", s.name == "openapi":
			return false
		case isVersion(s.name) && (strings.Contains(s.name, "alpha") || strings.Contains(s.name, "beta")),
			s.name == "locations" && m.at(i-2) == "projects",
			s.name == "google" && m.at(i-1) == "publishers",
			strings.HasPrefix(s.name, "google.ai.generativelanguage."),
			strings.HasPrefix(s.name, "google.cloud.aiplatform."):
			found = true
		}
	}
	return found
}

// azureDeployment matches /openai/deployments/{model}/….
func (m *matcher) azureDeployment() (route, bool) {
	i := m.index("deployments")
	if i < 0 || (i > 0 && m.at(i-1) != "openai") {
		return route{}, false
	}
	rt := route{dialect: dialect.Azure}
	if len(m.segs) > i+2 {
		rt.look, rt.from, rt.to = lookStream, m.segs[i+1].from, m.segs[i+1].to
	}
	return rt, true
}

// azureVersioned knows Azure's paths without a deployment, such as
// /openai/responses?api-version=…; /openai/v1/… is of the OpenAI dialect.
func (m *matcher) azureVersioned() bool {
	i := m.index("openai")
	return i >= 0 && m.at(i+1) != "v1" && hasParam(m.r.URL.RawQuery, "api-version")
}

// bedrock matches /model/{model}/{operation}.
func (m *matcher) bedrock() (route, bool) {
	op := m.end(1)
	switch op {
	case "invoke", "invoke-with-response-stream", "converse", "converse-stream", "count-tokens":
	default:
		return route{}, false
	}
	i, last := m.index("model"), len(m.segs)-2
	if i < 0 || i >= last {
		return route{}, false
	}
	return route{
		dialect: dialect.Bedrock,
		look:    lookStream,
		from:    m.segs[i+1].from,
		to:      m.segs[last].to,
		stream:  strings.HasSuffix(op, "-stream"),
	}, true
}
