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

// JoinPath returns the path under which a request of dialect d is sent to a
// channel: the path of the channel's base URL joined with that of the request.
// Both are taken and the result is given in escaped form; escapes stay as they
// were received. A trailing slash of basePath does not matter.
//
// Base URLs are written as providers document them, and clients bring the
// version segment of the API that they think they talk to. So:
//   - a base without a path gets the client's path whole;
//   - what the base path ends with and the client's path starts with is used
//     once: /openai/v1 and /v1/chat/completions meet at /v1;
//   - else Anthropic paths are appended whole, and the others without their
//     leading version segment: /api/paas/v4 and /v1/chat/completions make
//     /api/paas/v4/chat/completions.
//
// Paths of Azure's own dialect start with /openai and meet the base there,
// wherever it goes on to, since every API of a resource lives below that
// segment. But a deployment in the base path is the one that is asked, whatever
// deployment the client named, just as it is for requests of the OpenAI dialect
// at such a base. Paths without a deployment, such as /openai/realtime, stay as
// they are. Ollama's native API likewise lives next to its /v1, not below it.
func JoinPath(basePath, clientPath string, d dialect.Dialect) string {
	base := strings.TrimRight(basePath, "/")
	if !strings.HasPrefix(clientPath, "/") {
		clientPath = "/" + clientPath
	}
	switch d {
	case dialect.Azure:
		if i := azureRoot(base); i >= 0 {
			return joinAzure(base[:i], base[i:], clientPath)
		}
	case dialect.Ollama:
		base = strings.TrimSuffix(base, "/v1")
	}
	if base == "" {
		return clientPath
	}
	if i := overlap(base, clientPath); i >= 0 {
		return base[:i] + clientPath
	}
	if d != dialect.Anthropic {
		clientPath = withoutVersion(clientPath)
	}
	return base + clientPath
}

// deployments is where Azure's deployments are found.
const deployments = "/openai/deployments/"

// azureRoot returns where in base the segment is below which base goes on into
// Azure's APIs, or -1.
func azureRoot(base string) int {
	if i := strings.LastIndex(base, deployments); i >= 0 {
		return i
	}
	return strings.LastIndex(base, "/openai/")
}

// joinAzure joins a client's path to a base of prefix and what follows it from
// /openai on.
func joinAzure(prefix, below, clientPath string) string {
	named, ok := strings.CutPrefix(clientPath, deployments)
	if !ok || !strings.HasPrefix(below, deployments) {
		return prefix + clientPath
	}
	if _, operation, ok := strings.Cut(named, "/"); ok {
		return prefix + below + "/" + operation
	}
	return prefix + below
}

// overlap returns where in base its longest ending begins that path starts
// with, in whole segments, or -1.
func overlap(base, path string) int {
	for i := range len(base) {
		if base[i] == '/' && startsWith(path, base[i:]) {
			return i
		}
	}
	return -1
}

// startsWith reports whether the first segments of path are the given ones.
func startsWith(path, segments string) bool {
	rest, ok := strings.CutPrefix(path, segments)
	return ok && (rest == "" || rest[0] == '/')
}

// withoutVersion returns path less a version segment at its start.
func withoutVersion(path string) string {
	end := strings.IndexByte(path[1:], '/') + 1
	if end == 0 {
		end = len(path)
	}
	if isVersion(path[1:end]) {
		return path[end:]
	}
	return path
}

// isVersion reports whether segment names a version of an API, such as v1, v4,
// v1beta or v1beta1.
func isVersion(segment string) bool {
	rest, ok := strings.CutPrefix(segment, "v")
	stage := strings.TrimLeft(rest, "0123456789")
	if !ok || stage == rest {
		return false
	}
	switch strings.TrimRight(stage, "0123456789") {
	case "", "alpha", "beta":
		return true
	}
	return false
}
