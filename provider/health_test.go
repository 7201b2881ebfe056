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
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

func TestHealthPathAtDocumentedBases(t *testing.T) {
	for _, tc := range []struct{ id, base, want string }{
		{"openai", "/v1", "/v1/models"},
		{"openai", "/v1/", "/v1/models"},
		{"openai", "", "/v1/models"},
		{"openai", "/v1beta/openai", "/v1beta/openai/models"},
		{"openai", "/mounted/v1", "/mounted/v1/models"},
		{"azure", "", "/openai/models"},
		{"azure", "/openai/deployments/d", "/openai/models"},
		{"azure", "/openai", "/openai/models"},
		{"azure", "/openai/v1", "/openai/v1/models"},
		{"azure", "/openai/v1/", "/openai/v1/models"},
		{"azure", "/anthropic", "/anthropic/v1/models"},
		{"anthropic", "", "/v1/models"},
		{"anthropic", "/v1", "/v1/models"},
		{"anthropic", "/mounted", "/mounted/v1/models"},
		{"gemini", "", "/v1beta/models"},
		{"gemini", "/v1beta", "/v1beta/models"},
		{"gemini", "/v1", "/v1beta/models"},
		{"gemini", "/v1beta/openai/", "/v1beta/models"},
		{"mistral", "/v1", "/v1/models"},
		{"groq", "/openai/v1", "/openai/v1/models"},
		{"deepseek", "", "/v1/models"},
		{"deepseek", "/beta", "/beta/models"},
		{"deepseek", "/anthropic", "/anthropic/v1/models"},
		{"xai", "/v1", "/v1/models"},
		{"openrouter", "/api/v1", "/api/v1/key"},
		{"together", "/v1", "/v1/models"},
		{"fireworks", "/inference/v1", "/inference/v1/models"},
		{"cohere", "", "/v1/models"},
		{"cohere", "/v2", "/v1/models"},
		{"cohere", "/compatibility/v1", "/v1/models"},
		{"moonshot", "/v1", "/v1/models"},
		{"zhipu", "/api/paas/v4", "/api/paas/v4/models"},
		{"zhipu", "/api/coding/paas/v4", "/api/coding/paas/v4/models"},
		{"dashscope", "/compatible-mode/v1", "/compatible-mode/v1/models"},
		{"vllm", "/v1", "/health"},
		{"vllm", "", "/health"},
		{"vllm", "/llm/v1/", "/llm/health"},
		{"ollama", "", "/api/version"},
		{"ollama", "/v1", "/api/version"},
		{"ollama", "/api", "/api/version"},
		{"ollama", "/box/api/", "/box/api/version"},
		{"llamacpp", "/v1", "/health"},
		{"tgi", "/v1", "/health"},
		{"tgi", "", "/health"},
		{"lmstudio", "/v1", "/v1/models"},
		{"lmstudio", "", "/v1/models"},
	} {
		p, _ := Lookup(tc.id)
		if got, ok := p.HealthAt(tc.base); got != tc.want || !ok {
			t.Errorf("%s at %q: %q, %v, want %q", tc.id, tc.base, got, ok, tc.want)
		}
	}
}

func TestProvidersWithoutAHealthPath(t *testing.T) {
	without := map[string]bool{"vertex": true, "bedrock": true} // only with a model, or at another host
	for _, id := range IDs() {
		p, _ := Lookup(id)
		path, ok := p.HealthAt("/v1")
		if ok == without[id] || (p.HealthPath == "") != without[id] || (path == "") != without[id] {
			t.Errorf("%s: HealthPath %q, HealthAt %q, %v", id, p.HealthPath, path, ok)
		}
	}
}

// Whoever joins a health path like a client's gets the same at the usual base.
func TestHealthPathIsWhatAClientWouldAskFor(t *testing.T) {
	for _, tc := range []struct {
		id, base string
		dialect  dialect.Dialect
	}{
		{"openai", "/v1", dialect.OpenAI},
		{"azure", "/openai/deployments/d", dialect.Azure},
		{"anthropic", "", dialect.Anthropic},
		{"gemini", "/v1beta", dialect.Gemini},
		{"groq", "/openai/v1", dialect.OpenAI},
		{"openrouter", "/api/v1", dialect.OpenAI},
		{"ollama", "/v1", dialect.Ollama},
		{"vllm", "", dialect.OpenAI},
	} {
		p, _ := Lookup(tc.id)
		if got, _ := p.HealthAt(tc.base); got != JoinPath(tc.base, p.HealthPath, tc.dialect) {
			t.Errorf("%s at %q: %q is not %q", tc.id, tc.base, got, JoinPath(tc.base, p.HealthPath, tc.dialect))
		}
	}
}
