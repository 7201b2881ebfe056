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

// Package provider knows the LLM providers: how each wants its key, which
// dialects it speaks, by which hosts it is reached, how the path of a client's
// request is joined to the path of a base URL, and where its health is asked for.
//
// Everything here is a pure function of its arguments and safe for concurrent
// use.
package provider

import (
	"strings"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// AuthScheme is how a key is sent. The zero value is Bearer.
type AuthScheme uint8

const (
	// Bearer sends `Authorization: Bearer <key>`.
	Bearer AuthScheme = iota
	// Header sends the bare key in a header of its own.
	Header
	// None sends no key. No preset has it: it is for channels without keys.
	None
)

// Preset is what is known of one provider.
type Preset struct {
	// ID is the provider's name in the configuration.
	ID string
	// Scheme is how the provider wants its key: Bearer or Header.
	Scheme AuthScheme
	// Header is the key's header in canonical form, empty for Bearer.
	Header string
	// Dialects are those of the provider's usual base URL. Ask Speaks, which
	// knows about the others.
	Dialects dialect.Set
	// HealthPath is a path that answers a GET with a 2xx while the provider is
	// up, and is not billed. It is what a client would ask for that talks to the
	// provider's usual base URL: ask HealthAt for the path at another. It is
	// empty where there is no such path, or none without a model in it.
	HealthPath string

	// health tells how HealthPath is joined to the path of a base URL.
	health healthJoin
	// only names the base paths at which this provider speaks one dialect.
	only exception
}

// exception is a base path, told by its ending, behind which one dialect lives.
type exception struct {
	ending  string
	dialect dialect.Dialect
}

func (e exception) covers(basePath string) bool {
	return e.ending != "" && endsIn(basePath, e.ending)
}

var (
	openAI    = dialect.SetOf(dialect.OpenAI)
	localBoth = dialect.SetOf(dialect.OpenAI, dialect.Anthropic)
)

var presets = []Preset{
	{ID: "openai", Dialects: openAI, HealthPath: "/v1/models"},
	{
		ID: "azure", Scheme: Header, Header: "Api-Key", Dialects: dialect.SetOf(dialect.Azure, dialect.OpenAI),
		HealthPath: "/openai/models", health: likeAzure,
	},
	{
		ID: "anthropic", Scheme: Header, Header: "X-Api-Key", Dialects: dialect.SetOf(dialect.Anthropic),
		HealthPath: "/v1/models", health: likeAnthropic,
	},
	{
		ID: "gemini", Scheme: Header, Header: "X-Goog-Api-Key", Dialects: dialect.SetOf(dialect.Gemini),
		HealthPath: "/v1beta/models", health: atRoot, only: exception{"/openai", dialect.OpenAI},
	},
	{
		ID: "vertex", Dialects: dialect.SetOf(dialect.Gemini, dialect.Anthropic),
		only: exception{"/endpoints/openapi", dialect.OpenAI},
	},
	{
		ID: "bedrock", Dialects: dialect.SetOf(dialect.Bedrock),
		only: exception{"/openai", dialect.OpenAI},
	},
	{ID: "mistral", Dialects: openAI, HealthPath: "/v1/models"},
	{ID: "groq", Dialects: openAI, HealthPath: "/v1/models"},
	{ID: "deepseek", Dialects: openAI, HealthPath: "/v1/models"},
	{ID: "xai", Dialects: openAI, HealthPath: "/v1/models"},
	{ID: "openrouter", Dialects: openAI, HealthPath: "/v1/key"},
	{ID: "together", Dialects: openAI, HealthPath: "/v1/models"},
	{ID: "fireworks", Dialects: openAI, HealthPath: "/v1/models"},
	{
		ID: "cohere", Dialects: dialect.SetOf(dialect.Cohere, dialect.OpenAI),
		HealthPath: "/v1/models", health: atRoot, only: exception{"/compatibility", dialect.OpenAI},
	},
	{ID: "moonshot", Dialects: openAI, HealthPath: "/v1/models"},
	{ID: "zhipu", Dialects: openAI, HealthPath: "/v1/models"},
	{ID: "dashscope", Dialects: openAI, HealthPath: "/v1/models"},
	{ID: "vllm", Dialects: openAI, HealthPath: "/health", health: atRoot},
	{
		ID: "ollama", Dialects: dialect.SetOf(dialect.OpenAI, dialect.Anthropic, dialect.Ollama),
		HealthPath: "/api/version", health: atRoot, only: exception{"/api", dialect.Ollama},
	},
	{ID: "llamacpp", Dialects: localBoth, HealthPath: "/health", health: atRoot},
	{ID: "tgi", Dialects: openAI, HealthPath: "/health", health: atRoot},
	{ID: "lmstudio", Dialects: localBoth, HealthPath: "/v1/models"},
}

// Lookup returns the preset of that id, which is matched exactly, and whether
// there is one.
func Lookup(id string) (Preset, bool) {
	for _, p := range presets {
		if p.ID == id {
			return p, true
		}
	}
	return Preset{}, false
}

// IDs returns the ids of all presets, in the order in which they are
// documented. The slice is the caller's own.
func IDs() []string {
	ids := make([]string, len(presets))
	for i, p := range presets {
		ids[i] = p.ID
	}
	return ids
}

// Speaks reports whether a channel of this provider, at a base URL with the
// given escaped path, takes requests of dialect d.
//
// Requests of no dialect go everywhere. A base path that ends in /anthropic
// belongs to that dialect alone. So do, each to its own, the OpenAI-compatible
// endpoints of Gemini, Vertex, Bedrock and Cohere, and Ollama's /api: the other
// dialects of these providers live at other paths, and a request sent there
// would only meet a 404.
func (p Preset) Speaks(d dialect.Dialect, basePath string) bool {
	switch {
	case d == dialect.None:
		return true
	case endsIn(basePath, "/anthropic"):
		return d == dialect.Anthropic
	case p.only.covers(basePath):
		return d == p.only.dialect
	}
	return p.Dialects.Has(d)
}

// endsIn reports whether the base path ends in the given segments, or in them
// and a /v1, which documented base URLs have or lack as the client's library
// adds it or not. Trailing slashes do not matter.
func endsIn(basePath, segments string) bool {
	path := strings.TrimSuffix(strings.TrimRight(basePath, "/"), "/v1")
	return strings.HasSuffix(path, segments)
}
