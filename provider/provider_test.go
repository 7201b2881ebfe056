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
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

const documentedOrder = "openai azure anthropic gemini vertex bedrock mistral groq deepseek xai openrouter together " +
	"fireworks cohere moonshot zhipu dashscope vllm ollama llamacpp tgi lmstudio"

func TestIDsInDocumentedOrder(t *testing.T) {
	if got := strings.Join(IDs(), " "); got != documentedOrder {
		t.Errorf("IDs() = %s\nwant    %s", got, documentedOrder)
	}
}

func TestIDsAreTheCallersOwn(t *testing.T) {
	IDs()[0] = "changed"
	if IDs()[0] != "openai" {
		t.Error("a caller's change to the ids was kept")
	}
}

func TestLookupIsExact(t *testing.T) {
	for _, id := range []string{"", "OpenAI", "openai ", "gpt", "none"} {
		if p, ok := Lookup(id); ok {
			t.Errorf("Lookup(%q) = %v", id, p)
		}
	}
	for _, id := range IDs() {
		if p, ok := Lookup(id); !ok || p.ID != id {
			t.Errorf("Lookup(%q) = %v, %v", id, p.ID, ok)
		}
	}
}

func TestAuthByProvider(t *testing.T) {
	headers := map[string]string{"azure": "Api-Key", "anthropic": "X-Api-Key", "gemini": "X-Goog-Api-Key"}
	for _, id := range IDs() {
		p, _ := Lookup(id)
		scheme := Bearer
		if headers[id] != "" {
			scheme = Header
		}
		if p.Scheme != scheme || p.Header != headers[id] {
			t.Errorf("%s: scheme %v, header %q; want %v, %q", id, p.Scheme, p.Header, scheme, headers[id])
		}
		if p.Header != http.CanonicalHeaderKey(p.Header) {
			t.Errorf("%s: header %q is not in canonical form", id, p.Header)
		}
	}
}

var all = []dialect.Dialect{
	dialect.OpenAI, dialect.Anthropic, dialect.Gemini, dialect.Azure, dialect.Bedrock, dialect.Cohere, dialect.Ollama,
}

// spoken lists the dialects, none apart, that provider id speaks at basePath.
func spoken(t *testing.T, id, basePath string) string {
	t.Helper()
	p, ok := Lookup(id)
	if !ok {
		t.Fatalf("no provider %q", id)
	}
	if !p.Speaks(dialect.None, basePath) {
		t.Errorf("%s at %q refuses requests of no dialect", id, basePath)
	}
	var names []string
	for _, d := range all {
		if p.Speaks(d, basePath) {
			names = append(names, d.String())
		}
	}
	return strings.Join(names, " ")
}

func TestDialectsByProvider(t *testing.T) {
	others := map[string]string{
		"anthropic": "anthropic",
		"gemini":    "gemini",
		"azure":     "openai azure",
		"bedrock":   "bedrock",
		"cohere":    "openai cohere",
		"vertex":    "anthropic gemini",
		"ollama":    "openai anthropic ollama",
		"llamacpp":  "openai anthropic",
		"lmstudio":  "openai anthropic",
	}
	for _, id := range IDs() {
		want := others[id]
		if want == "" {
			want = "openai"
		}
		for _, base := range []string{"", "/", "/v1", "/v1/", "/mounted/here"} {
			if got := spoken(t, id, base); got != want {
				t.Errorf("%s at %q speaks %q, want %q", id, base, got, want)
			}
		}
	}
}

func TestAnthropicBasePathSpeaksAnthropicOnly(t *testing.T) {
	for _, id := range IDs() {
		for _, base := range []string{"/anthropic", "/anthropic/", "/api/anthropic", "/anthropic/v1", "/anthropic/v1/"} {
			if got := spoken(t, id, base); got != "anthropic" {
				t.Errorf("%s at %s speaks %q", id, base, got)
			}
		}
	}
}

func TestBasePathsThatSpeakOneDialect(t *testing.T) {
	for _, tc := range []struct{ id, base, want string }{
		{"gemini", "/v1beta/openai", "openai"},
		{"gemini", "/v1beta/openai/", "openai"},
		{"gemini", "/v1beta", "gemini"},
		{"vertex", "/v1/projects/p/locations/l/endpoints/openapi", "openai"},
		{"bedrock", "/openai/v1", "openai"},
		{"cohere", "/compatibility/v1", "openai"},
		{"cohere", "/v2", "openai cohere"},
		{"ollama", "/api", "ollama"},
		{"ollama", "/api/", "ollama"},
		{"openrouter", "/api", "openai"},
		// The name of the last segment has to be the whole of it.
		{"gemini", "/notopenai", "gemini"},
		{"openai", "/not-anthropic", "openai"},
		{"openai", "/anthropic/more", "openai"},
		// Azure's own paths start with /openai, so it says nothing there.
		{"azure", "/openai", "openai azure"},
		{"azure", "/openai/v1", "openai azure"},
		{"azure", "/openai/deployments/d", "openai azure"},
		{"groq", "/openai/v1", "openai"},
	} {
		if got := spoken(t, tc.id, tc.base); got != tc.want {
			t.Errorf("%s at %s speaks %q, want %q", tc.id, tc.base, got, tc.want)
		}
	}
}

func TestForHost(t *testing.T) {
	for _, tc := range []struct{ host, base, want string }{
		{"api.openai.com", "/v1", "openai"},
		{"API.OpenAI.com", "", "openai"},
		{"api.openai.com.", "", "openai"},
		{"eu.api.openai.com", "/v1", "openai"},
		{"res.openai.azure.com", "/openai/deployments/d", "azure"},
		{"res.openai.azure.com", "/openai/v1/", "azure"},
		{"res.services.ai.azure.com", "/openai/v1", "azure"},
		{"res.services.ai.azure.com", "/anthropic", "azure"},
		{"westeurope.cognitiveservices.azure.com", "", "azure"},
		{"api.anthropic.com", "", "anthropic"},
		{"generativelanguage.googleapis.com", "", "gemini"},
		{"generativelanguage.googleapis.com", "/v1beta", "gemini"},
		{"generativelanguage.googleapis.com", "/v1beta/openai", "openai"},
		{"generativelanguage.googleapis.com", "/v1beta/openai/", "openai"},
		{"aiplatform.googleapis.com", "", "vertex"},
		{"us-central1-aiplatform.googleapis.com", "", "vertex"},
		{"aiplatform.us.rep.googleapis.com", "", "vertex"},
		{"aiplatform.eu.rep.googleapis.com", "", "vertex"},
		{"bedrock-runtime.eu-west-1.amazonaws.com", "", "bedrock"},
		{"bedrock-runtime.eu-west-1.amazonaws.com", "/anthropic", "bedrock"},
		{"bedrock-runtime.eu-west-1.amazonaws.com", "/openai/v1", "openai"},
		{"bedrock-runtime-fips.us-east-1.amazonaws.com", "", "bedrock"},
		{"bedrock-runtime-fips.us-east-1.amazonaws.com", "/openai/v1", "openai"},
		{"bedrock-mantle.us-east-1.api.aws", "/openai/v1", "openai"},
		{"bedrock-mantle.us-east-1.api.aws", "/v1", "openai"},
		{"bedrock-mantle.us-east-1.api.aws", "/anthropic", "anthropic"},
		{"bedrock-mantle.us-east-1.api.aws", "/anthropic/", "anthropic"},
		{"api.mistral.ai", "/v1", "mistral"},
		{"api.eu.mistral.ai", "/v1", "mistral"},
		{"codestral.mistral.ai", "/v1", "mistral"},
		{"api.groq.com", "/openai/v1", "groq"},
		{"api.deepseek.com", "", "deepseek"},
		{"api.deepseek.com", "/anthropic", "deepseek"},
		{"api.x.ai", "/v1", "xai"},
		{"us-east-1.api.x.ai", "/v1", "xai"},
		{"openrouter.ai", "/api/v1", "openrouter"},
		{"api.together.ai", "/v1", "together"},
		{"api.together.xyz", "/v1", "together"},
		{"api.fireworks.ai", "/inference/v1", "fireworks"},
		{"api.cohere.com", "", "cohere"},
		{"api.cohere.ai", "/compatibility/v1", "cohere"},
		{"api.moonshot.ai", "/v1", "moonshot"},
		{"api.moonshot.cn", "/v1", "moonshot"},
		{"open.bigmodel.cn", "/api/paas/v4", "zhipu"},
		{"api.z.ai", "/api/coding/paas/v4", "zhipu"},
		{"dashscope.aliyuncs.com", "/compatible-mode/v1", "dashscope"},
		{"dashscope-intl.aliyuncs.com", "/compatible-mode/v1", "dashscope"},
		{"cn-hongkong.dashscope.aliyuncs.com", "/compatible-mode/v1", "dashscope"},
		{"ollama.com", "/api", "ollama"},

		{"", "", ""},
		{"localhost", "/v1", ""},
		{"127.0.0.1", "", ""},
		{"::1", "/openai", ""},
		{"example.com", "/anthropic", ""},
		{"api.openai.com.evil.example", "", ""},
		{"evil-api.openai.com", "", ""},
		{"openai.azure.com", "", ""},
		{".openai.azure.com", "", ""},
		{"bedrock-runtime.amazonaws.com", "", ""},
		{"api.openai.com:443", "", ""},
	} {
		if got := ForHost(tc.host, tc.base); got != tc.want {
			t.Errorf("ForHost(%q, %q) = %q, want %q", tc.host, tc.base, got, tc.want)
		}
	}
}

func TestHostsNameKnownProviders(t *testing.T) {
	for _, h := range hosts {
		if !slices.Contains(IDs(), h.id) {
			t.Errorf("%s: unknown provider %q", h.pattern, h.id)
		}
		if strings.Count(h.pattern, "*") > 1 || h.pattern != strings.ToLower(h.pattern) {
			t.Errorf("%s can never match", h.pattern)
		}
	}
}
