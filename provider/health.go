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

package provider

import (
	"strings"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// healthJoin is how a provider's health path and the path of a base URL meet.
type healthJoin uint8

const (
	likeOpenAI    healthJoin = iota // as a request of the OpenAI dialect
	likeAnthropic                   // as one of Anthropic's
	likeAzure                       // as one of Azure's, but at the base that needs no api-version
	atRoot                          // next to the versions of the API, not below them
)

// HealthAt returns the path under which HealthPath is found at a base URL with
// the given escaped path, and whether the provider has one. A query of the base
// URL belongs to it as to any request.
//
// What it finds says little: a list of models proves that host and key are good,
// but not that a model has capacity or that the account has money, and the
// health of vLLM, llama.cpp and TGI asks for no key at all. An Anthropic list
// needs the anthropic-version header. A 404 or 405 means that this server has no
// such path, not that it is down.
func (p Preset) HealthAt(basePath string) (path string, ok bool) {
	if p.HealthPath == "" {
		return "", false
	}
	if endsIn(basePath, "/anthropic") {
		return JoinPath(basePath, "/v1/models", dialect.Anthropic), true
	}
	switch p.health {
	case likeAnthropic:
		return JoinPath(basePath, p.HealthPath, dialect.Anthropic), true
	case likeAzure:
		if endsIn(basePath, "/openai") {
			return JoinPath(basePath, "/models", dialect.OpenAI), true
		}
		return JoinPath(basePath, p.HealthPath, dialect.Azure), true
	case atRoot:
		return p.root(basePath) + p.HealthPath, true
	}
	return JoinPath(basePath, p.HealthPath, dialect.OpenAI), true
}

// root returns the base path less the ending that leads to one of several APIs,
// and less a version segment.
func (p Preset) root(basePath string) string {
	base := withoutLastVersion(strings.TrimRight(basePath, "/"))
	if p.only.ending != "" {
		base = strings.TrimSuffix(base, p.only.ending)
	}
	return withoutLastVersion(base)
}

func withoutLastVersion(base string) string {
	if i := strings.LastIndexByte(base, '/'); i >= 0 && isVersion(base[i+1:]) {
		return base[:i]
	}
	return base
}
