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

func TestJoinPath(t *testing.T) {
	const (
		chat     = "/v1/chat/completions"
		messages = "/v1/messages"
		generate = "/v1beta/models/m:generateContent"
	)
	for name, tc := range map[string]struct {
		base, client string
		dialect      dialect.Dialect
		want         string
	}{
		"openai":                    {"/v1", chat, dialect.OpenAI, "/v1/chat/completions"},
		"openai, no base path":      {"", chat, dialect.OpenAI, "/v1/chat/completions"},
		"openai, client without v1": {"/v1", "/chat/completions", dialect.OpenAI, "/v1/chat/completions"},
		"neither has a version":     {"", "/chat/completions", dialect.OpenAI, "/chat/completions"},
		"groq":                      {"/openai/v1", chat, dialect.OpenAI, "/openai/v1/chat/completions"},
		"openrouter":                {"/api/v1", chat, dialect.OpenAI, "/api/v1/chat/completions"},
		"zhipu":                     {"/api/paas/v4", chat, dialect.OpenAI, "/api/paas/v4/chat/completions"},
		"dashscope":                 {"/compatible-mode/v1", chat, dialect.OpenAI, "/compatible-mode/v1/chat/completions"},
		"fireworks":                 {"/inference/v1", chat, dialect.OpenAI, "/inference/v1/chat/completions"},
		"deepseek beta":             {"/beta", chat, dialect.OpenAI, "/beta/chat/completions"},
		"gemini compat":             {"/v1beta/openai", chat, dialect.OpenAI, "/v1beta/openai/chat/completions"},
		"model list":                {"/openai/v1", "/v1/models", dialect.OpenAI, "/openai/v1/models"},
		"version alone":             {"/api/paas/v4", "/v1", dialect.OpenAI, "/api/paas/v4"},
		"model in the path":         {"/v1", "/v1/models/org%2Fm:free", dialect.OpenAI, "/v1/models/org%2Fm:free"},

		"client brings the whole base path": {"/openai/v1", "/openai/v1/chat/completions", dialect.OpenAI, "/openai/v1/chat/completions"},
		"client brings the end of it":       {"/a/openai/v1", "/openai/v1/models", dialect.OpenAI, "/a/openai/v1/models"},
		"part of a segment is no overlap":   {"/av1", "/v1/models", dialect.OpenAI, "/av1/models"},
		"segment goes on":                   {"/v1", "/v1x/models", dialect.OpenAI, "/v1/v1x/models"},

		"anthropic":               {"", messages, dialect.Anthropic, "/v1/messages"},
		"anthropic base with v1":  {"/v1", messages, dialect.Anthropic, "/v1/messages"},
		"anthropic segment":       {"/anthropic", messages, dialect.Anthropic, "/anthropic/v1/messages"},
		"anthropic segment, v1":   {"/anthropic/v1", messages, dialect.Anthropic, "/anthropic/v1/messages"},
		"anthropic segment twice": {"/anthropic", "/anthropic/v1/messages", dialect.Anthropic, "/anthropic/v1/messages"},
		"anthropic deeper":        {"/api/anthropic", "/v1/messages/count_tokens", dialect.Anthropic, "/api/anthropic/v1/messages/count_tokens"},

		"gemini":                    {"", generate, dialect.Gemini, generate},
		"gemini, base has version":  {"/v1beta", generate, dialect.Gemini, generate},
		"gemini, base has another":  {"/v1", generate, dialect.Gemini, "/v1/models/m:generateContent"},
		"vertex express":            {"/v1/projects/p/locations/l", "/v1beta1/publishers/google/models/m:countTokens", dialect.Gemini, "/v1/projects/p/locations/l/publishers/google/models/m:countTokens"},
		"vertex compat":             {"/v1/projects/p/locations/l/endpoints/openapi", chat, dialect.OpenAI, "/v1/projects/p/locations/l/endpoints/openapi/chat/completions"},
		"vertex claude":             {"", "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict", dialect.Anthropic, "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict"},
		"bedrock, escaped model":    {"", "/model/us.vendor.m1-v1%3A0/invoke", dialect.Bedrock, "/model/us.vendor.m1-v1%3A0/invoke"},
		"bedrock below a prefix":    {"/aws", "/model/m/converse", dialect.Bedrock, "/aws/model/m/converse"},
		"cohere":                    {"", "/v2/chat", dialect.Cohere, "/v2/chat"},
		"cohere base with v2":       {"/v2", "/v2/chat", dialect.Cohere, "/v2/chat"},
		"cohere compat":             {"/compatibility/v1", chat, dialect.OpenAI, "/compatibility/v1/chat/completions"},
		"ollama":                    {"", "/api/chat", dialect.Ollama, "/api/chat"},
		"ollama base with api":      {"/api", "/api/chat", dialect.Ollama, "/api/chat"},
		"ollama at its openai base": {"/v1", "/api/chat", dialect.Ollama, "/api/chat"},
		"ollama below a prefix":     {"/box/v1", "/api/tags", dialect.Ollama, "/box/api/tags"},
		"ollama's openai dialect":   {"/v1", chat, dialect.OpenAI, chat},

		"azure, no base path":           {"", "/openai/deployments/m1/chat/completions", dialect.Azure, "/openai/deployments/m1/chat/completions"},
		"azure, base /openai":           {"/openai", "/openai/deployments/m1/embeddings", dialect.Azure, "/openai/deployments/m1/embeddings"},
		"azure, base /openai/v1":        {"/openai/v1", "/openai/deployments/m1/embeddings", dialect.Azure, "/openai/deployments/m1/embeddings"},
		"azure, base is a deployment":   {"/openai/deployments/d", "/openai/deployments/m1/chat/completions", dialect.Azure, "/openai/deployments/d/chat/completions"},
		"azure, same deployment":        {"/openai/deployments/d", "/openai/deployments/d/chat/completions", dialect.Azure, "/openai/deployments/d/chat/completions"},
		"azure, deployment alone":       {"/openai/deployments/d", "/openai/deployments/m1", dialect.Azure, "/openai/deployments/d"},
		"azure, deployment \"openai\"":  {"/openai/deployments/openai", "/openai/deployments/m1/embeddings", dialect.Azure, "/openai/deployments/openai/embeddings"},
		"azure, no deployment in path":  {"/openai/deployments/d", "/openai/realtime", dialect.Azure, "/openai/realtime"},
		"azure below a prefix":          {"/eu/openai/deployments/d", "/openai/deployments/m1/embeddings", dialect.Azure, "/eu/openai/deployments/d/embeddings"},
		"azure, prefix alone":           {"/eu", "/openai/deployments/m1/embeddings", dialect.Azure, "/eu/openai/deployments/m1/embeddings"},
		"openai at a deployment":        {"/openai/deployments/d", chat, dialect.OpenAI, "/openai/deployments/d/chat/completions"},
		"openai at azure's v1":          {"/openai/v1", chat, dialect.OpenAI, "/openai/v1/chat/completions"},
		"openai at azure, whole path":   {"", "/openai/v1/chat/completions", dialect.OpenAI, "/openai/v1/chat/completions"},
		"azure, escaped deployment":     {"/openai/deployments/d%20e", "/openai/deployments/m%2F1/embeddings", dialect.Azure, "/openai/deployments/d%20e/embeddings"},
		"azure, unescaped looks alike":  {"/openai-proxy", "/openai/deployments/m1/embeddings", dialect.Azure, "/openai-proxy/openai/deployments/m1/embeddings"},
		"no dialect":                    {"/v1", "/v1/made-up", dialect.None, "/v1/made-up"},
		"no dialect, version dropped":   {"/api/paas/v4", "/v1/made-up", dialect.None, "/api/paas/v4/made-up"},
		"no dialect, no base path":      {"", "/v1/made-up", dialect.None, "/v1/made-up"},
		"escapes stay":                  {"/a%2Fb", "/v1/x%252Fy/%7Ez", dialect.OpenAI, "/a%2Fb/x%252Fy/%7Ez"},
		"empty segments stay":           {"/v1", "//chat", dialect.OpenAI, "/v1//chat"},
		"client path without a slash":   {"/v1", "models", dialect.OpenAI, "/v1/models"},
		"root":                          {"/v1", "/", dialect.OpenAI, "/v1/"},
		"name that looks like a v":      {"/api", "/vector_stores", dialect.OpenAI, "/api/vector_stores"},
		"trailing slash of the request": {"/openai/v1", "/v1/models/", dialect.OpenAI, "/openai/v1/models/"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, base := range []string{tc.base, tc.base + "/"} {
				if got := JoinPath(base, tc.client, tc.dialect); got != tc.want {
					t.Errorf("JoinPath(%q, %q, %v)\n got %s\nwant %s", base, tc.client, tc.dialect, got, tc.want)
				}
			}
		})
	}
}

func TestIsVersion(t *testing.T) {
	for segment, want := range map[string]bool{
		"v1": true, "v2": true, "v10": true, "v1beta": true, "v1beta1": true, "v1alpha": true,
		"": false, "v": false, "1": false, "vbeta": false, "v1x": false, "v1.1": false, "V1": false, "v1-beta": false,
	} {
		if got := isVersion(segment); got != want {
			t.Errorf("isVersion(%q) = %v", segment, got)
		}
	}
}

// FuzzJoinPath pins what holds for every pair of paths: the result is rooted,
// and ends with whatever follows the first three segments of the client's path.
func FuzzJoinPath(f *testing.F) {
	f.Add("/openai/v1/", "/v1/chat/completions", uint8(dialect.OpenAI))
	f.Add("/openai/deployments/d", "/openai/deployments/m/chat", uint8(dialect.Azure))
	f.Add("", "", uint8(dialect.None))
	f.Fuzz(func(t *testing.T, base, client string, d uint8) {
		base = "/" + base
		got := JoinPath(base, client, dialect.Dialect(d))
		if got == "" || got[0] != '/' {
			t.Fatalf("JoinPath(%q, %q, %d) = %q", base, client, d, got)
		}
		if again := JoinPath(base+"/", client, dialect.Dialect(d)); again != got {
			t.Fatalf("a trailing slash changes %q to %q", got, again)
		}
		if tail := afterSegments(client, 3); len(got) < len(tail) || got[len(got)-len(tail):] != tail {
			t.Fatalf("JoinPath(%q, %q, %d) = %q lost the end of the client's path", base, client, d, got)
		}
	})
}

// afterSegments returns what follows the first n segments of path.
func afterSegments(path string, n int) string {
	for i := range len(path) {
		if path[i] == '/' && i > 0 {
			if n--; n == 0 {
				return path[i:]
			}
		}
	}
	return ""
}
