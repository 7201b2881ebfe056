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

import "strings"

// host tells a provider by the host of a base URL, and where one host serves
// several APIs by the base path too.
type host struct {
	pattern string // lower case; one * stands for one character or more
	ending  string // of the base path; "": any
	id      string
}

// hosts are tried in order.
var hosts = []host{
	{"api.openai.com", "", "openai"},
	{"*.api.openai.com", "", "openai"},
	{"*.openai.azure.com", "", "azure"},
	{"*.services.ai.azure.com", "", "azure"},
	{"*.cognitiveservices.azure.com", "", "azure"},
	{"api.anthropic.com", "", "anthropic"},
	// The compatible endpoint wants a bearer key, the native one a header.
	{"generativelanguage.googleapis.com", "/openai", "openai"},
	{"generativelanguage.googleapis.com", "", "gemini"},
	{"aiplatform.googleapis.com", "", "vertex"},
	{"*-aiplatform.googleapis.com", "", "vertex"},
	{"aiplatform.*.rep.googleapis.com", "", "vertex"},
	{"bedrock-runtime.*.amazonaws.com", "/openai", "openai"},
	{"bedrock-runtime.*.amazonaws.com", "", "bedrock"},
	{"bedrock-runtime-fips.*.amazonaws.com", "/openai", "openai"},
	{"bedrock-runtime-fips.*.amazonaws.com", "", "bedrock"},
	// Mantle speaks these two dialects and none of Bedrock's own.
	{"bedrock-mantle.*.api.aws", "/anthropic", "anthropic"},
	{"bedrock-mantle.*.api.aws", "", "openai"},
	{"api.mistral.ai", "", "mistral"},
	{"api.*.mistral.ai", "", "mistral"},
	{"codestral.mistral.ai", "", "mistral"},
	{"api.groq.com", "", "groq"},
	{"api.deepseek.com", "", "deepseek"},
	{"api.x.ai", "", "xai"},
	{"*.api.x.ai", "", "xai"},
	{"openrouter.ai", "", "openrouter"},
	{"api.together.ai", "", "together"},
	{"api.together.xyz", "", "together"},
	{"api.fireworks.ai", "", "fireworks"},
	{"api.cohere.com", "", "cohere"},
	{"api.cohere.ai", "", "cohere"},
	{"api.moonshot.ai", "", "moonshot"},
	{"api.moonshot.cn", "", "moonshot"},
	{"open.bigmodel.cn", "", "zhipu"},
	{"api.z.ai", "", "zhipu"},
	{"dashscope.aliyuncs.com", "", "dashscope"},
	{"dashscope-*.aliyuncs.com", "", "dashscope"},
	{"*.dashscope.aliyuncs.com", "", "dashscope"},
	{"ollama.com", "", "ollama"},
}

// ForHost returns the id of the provider that is reached at the given host,
// which comes without a port and in any case, and at the escaped path of the
// base URL. It returns "" for a host that belongs to none, as those of
// self-hosted servers do.
func ForHost(hostname, basePath string) string {
	hostname = strings.TrimSuffix(strings.ToLower(hostname), ".")
	for _, h := range hosts {
		if matches(h.pattern, hostname) && (h.ending == "" || endsIn(basePath, h.ending)) {
			return h.id
		}
	}
	return ""
}

func matches(pattern, name string) bool {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	return len(name) > len(before)+len(after) &&
		strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}
