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
	"net/http/httptest"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

func TestDialectOf(t *testing.T) {
	const get, pst = http.MethodGet, http.MethodPost
	for _, c := range []struct {
		method, target string
		want           dialect.Dialect
	}{
		{pst, "/v1/chat/completions", dialect.OpenAI},
		{pst, "/chat/completions", dialect.OpenAI},
		{pst, "/some/prefix/v1/chat/completions/", dialect.OpenAI},
		{pst, "//v1//chat//completions", dialect.OpenAI},
		{pst, "/v1/ch%61t/completions", dialect.OpenAI},
		{pst, "/v1/completions", dialect.OpenAI},
		{pst, "/v1/fim/completions", dialect.OpenAI},
		{pst, "/api/v1/chat/completions", dialect.OpenAI},
		{pst, "/api/chat/completions", dialect.OpenAI},
		{pst, "/models/chat/completions", dialect.OpenAI},
		{get, "/v1/chat/completions/chatcmpl-1/messages", dialect.OpenAI},
		{pst, "/v1/responses", dialect.OpenAI},
		{get, "/v1/responses/resp_1/input_items", dialect.OpenAI},
		{pst, "/v1/embeddings", dialect.OpenAI},
		{pst, "/v1/images/edits", dialect.OpenAI},
		{pst, "/v1/audio/speech", dialect.OpenAI},
		{pst, "/v1/moderations", dialect.OpenAI},
		{pst, "/v1/rerank", dialect.OpenAI},
		{pst, "/rerank", dialect.OpenAI},
		{get, "/v1/files/f/content", dialect.OpenAI},
		{get, "/v1/models", dialect.OpenAI},
		{get, "/v1/models/org/m:free", dialect.OpenAI},
		{get, "/v1/models/embeddings", dialect.OpenAI},
		{http.MethodDelete, "/v1/models/ft:gpt:org::id", dialect.OpenAI},
		{get, "/v1/realtime", dialect.OpenAI},
		{pst, "/v1/threads/t/messages", dialect.OpenAI},
		{pst, "/v1/fine_tuning/jobs", dialect.OpenAI},
		{pst, "/v1/vector_stores", dialect.OpenAI},
		{pst, "/v1/uploads/u/parts", dialect.OpenAI},
		{pst, "/v1/conversations", dialect.OpenAI},
		{http.MethodOptions, "/v1/chat/completions", dialect.OpenAI},

		{pst, "/v1/messages", dialect.Anthropic},
		{pst, "/anthropic/v1/messages", dialect.Anthropic},
		{pst, "/v1/messages/count_tokens", dialect.Anthropic},
		{pst, "/v1/messages/batches", dialect.Anthropic},
		{get, "/v1/messages/batches/b/results", dialect.Anthropic},
		{pst, "/v1/complete", dialect.Anthropic},
		{pst, "/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict", dialect.Anthropic},
		{pst, "/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", dialect.Anthropic},

		{pst, "/v1beta/models/m:generateContent", dialect.Gemini},
		{pst, "/v1/models/m:generateContent", dialect.Gemini},
		{pst, "/v1beta/models/m%3AgenerateContent", dialect.Gemini},
		{pst, "/v1beta/tunedModels/m:generateContent", dialect.Gemini},
		{get, "/v1beta/models", dialect.Gemini},
		{get, "/v1beta/models/embeddings", dialect.Gemini},
		{pst, "/v1beta/interactions", dialect.Gemini},
		{pst, "/v1beta/cachedContents", dialect.Gemini},
		{pst, "/upload/v1beta/files", dialect.Gemini},
		{get, "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", dialect.Gemini},
		{pst, "/v1/projects/p/locations/l/publishers/google/models/m:predict", dialect.Gemini},
		{pst, "/v1/publishers/google/models/m:generateContent", dialect.Gemini},
		{get, "/v1/publishers/google/models/m", dialect.Gemini},
		{pst, "/v1/projects/p/locations/l/cachedContents", dialect.Gemini},
		{pst, "/v1beta/openai/chat/completions", dialect.OpenAI},
		{get, "/v1beta/openai/models", dialect.OpenAI},
		{pst, "/v1beta1/projects/p/locations/l/endpoints/openapi/chat/completions", dialect.OpenAI},
		{pst, "/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict", dialect.None},

		{pst, "/openai/deployments/d/chat/completions?api-version=1", dialect.Azure},
		{pst, "/gw/openai/deployments/d/audio/speech", dialect.Azure},
		{pst, "/deployments/d/embeddings", dialect.Azure},
		{get, "/openai/deployments", dialect.Azure},
		{pst, "/openai/responses?api-version=1", dialect.Azure},
		{get, "/openai/realtime?api-version=1&deployment=d", dialect.Azure},
		{get, "/openai/files?api-version=1", dialect.Azure},
		{pst, "/openai/v1/chat/completions?api-version=preview", dialect.OpenAI},
		{pst, "/openai/v1/responses", dialect.OpenAI},
		{pst, "/openai/chat/completions", dialect.OpenAI},

		{pst, "/model/m/invoke", dialect.Bedrock},
		{pst, "/bedrock/model/m/converse-stream", dialect.Bedrock},
		{pst, "/model/m/count-tokens", dialect.Bedrock},
		{pst, "/model/invoke", dialect.None},
		{pst, "/model/m/apply", dialect.None},

		{pst, "/v2/chat", dialect.Cohere},
		{pst, "/v2/embed", dialect.Cohere},
		{pst, "/v2/rerank", dialect.Cohere},
		{pst, "/v1/chat", dialect.Cohere},
		{pst, "/v1/embed", dialect.Cohere},
		{pst, "/api/v1/chat", dialect.None},

		{pst, "/api/chat", dialect.Ollama},
		{pst, "/ollama/api/generate", dialect.Ollama},
		{pst, "/api/embed", dialect.Ollama},
		{pst, "/api/embeddings", dialect.Ollama},
		{get, "/api/tags", dialect.Ollama},
		{pst, "/api/show", dialect.Ollama},
		{get, "/api/version", dialect.Ollama},
		{get, "/api/ps", dialect.Ollama},
		{http.MethodHead, "/api/blobs/sha256:0", dialect.Ollama},

		{get, "/", dialect.None},
		{get, "/healthz", dialect.None},
		{pst, "/generate", dialect.None},
		{pst, "/v1/chat%2Fcompletions", dialect.None},
		{pst, "/api/v1/services/aigc/text-generation/generation", dialect.None},
	} {
		if got := DialectOf(httptest.NewRequest(c.method, c.target, nil)); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.method, c.target, got, c.want)
		}
	}
}

func TestAnthropicVersionTellsSharedPaths(t *testing.T) {
	for _, c := range []struct {
		method, target string
		want           dialect.Dialect
	}{
		{http.MethodGet, "/v1/models", dialect.Anthropic},
		{http.MethodHead, "/v1/models/claude", dialect.Anthropic},
		{http.MethodDelete, "/v1/models/m", dialect.OpenAI},
		{http.MethodPost, "/v1/files", dialect.Anthropic},
		{http.MethodPost, "/v1/chat/completions", dialect.OpenAI},
		{http.MethodGet, "/v1/batches", dialect.OpenAI},
		{http.MethodGet, "/v1beta/models", dialect.Gemini},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Header.Set("anthropic-version", "2023-06-01")
		if got := DialectOf(r); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.method, c.target, got, c.want)
		}
	}
}

func TestDialectIsKnownWhereReadFails(t *testing.T) {
	r := post("/v1/messages", "{")
	refused(t, r, testLimit)
	if got := DialectOf(r); got != dialect.Anthropic {
		t.Errorf("dialect %v", got)
	}
}

func TestPathsThatNeedAModel(t *testing.T) {
	for _, target := range []string{
		"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/images/generations",
		"/v1/images/edits", "/v1/images/variations", "/v1/audio/speech", "/v1/audio/transcriptions",
		"/v1/audio/translations", "/v1/moderations", "/v1/rerank", "/v1/messages", "/v1/messages/count_tokens",
		"/v2/chat", "/v1/chat", "/v2/embed", "/v1/embed", "/v2/rerank", "/api/chat", "/api/generate", "/api/embed",
		"/api/embeddings", "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
		"/openai/responses?api-version=1",
	} {
		if q := mustRead(t, post(target, `{"model":"m"}`)); !q.NeedsModel || q.Model != "m" {
			t.Errorf("%s: needs %v, model %q", target, q.NeedsModel, q.Model)
		}
		for _, body := range []string{`{}`, ``, `[]`} {
			if e := refused(t, post(target, body), testLimit); e.Status != 400 || e.Code != CodeInvalid {
				t.Errorf("%s with %q: %+v", target, body, e)
			}
		}
	}
}

func TestModelInPath(t *testing.T) {
	for _, c := range []struct {
		target, model string
		stream        bool
	}{
		{"/v1beta/models/m1:generateContent", "m1", false},
		{"/v1beta/models/m1%3agenerateContent", "m1", false},
		{"/v1beta/models/org/m1:streamGenerateContent?alt=sse", "org/m1", true},
		{"/v1beta/models/org/models/m1:generateContent", "org/models/m1", false},
		{"/models/v1beta/models/m1:generateContent", "m1", false},
		{"/v1beta/models/a:b:countTokens", "a:b", false},
		{"/v1beta/tunedModels/t1:generateContent", "t1", false},
		{"/v1/projects/p/locations/l/publishers/anthropic/models/claude@1:streamRawPredict", "claude@1", true},
		{"/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict", "m", false},
		{"/openai/deployments/my%20dep/chat/completions?api-version=x", "my dep", false},
		{"/model/us.vendor.m1-v1%3A0/invoke", "us.vendor.m1-v1:0", false},
		{"/model/arn:aws:bedrock:r:1:inference-profile%2Fm/converse-stream", "arn:aws:bedrock:r:1:inference-profile/m", true},
		{"/model/arn:aws:bedrock:r:1:inference-profile/m/invoke-with-response-stream", "arn:aws:bedrock:r:1:inference-profile/m", true},
		{"/model/a%252Fb/invoke", "a%2Fb", false},
	} {
		// What the body says of the model does not matter, nor whether it is JSON.
		for _, body := range []string{"", `{"model":"other","model":1}`, "not JSON"} {
			q := mustRead(t, post(c.target, body))
			if q.Model != c.model || q.Stream != c.stream || !q.NeedsModel {
				t.Errorf("%s: model %q, stream %v, needs %v", c.target, q.Model, q.Stream, q.NeedsModel)
			}
			if got := bodyOf(t, q, "new"); got != body {
				t.Errorf("%s: body %q became %q", c.target, body, got)
			}
		}
	}
}

func TestBadModelInPath(t *testing.T) {
	for _, target := range []string{
		"/v1beta/models/:generateContent", "/model/a%00b/invoke", "/model/%FF/invoke", "/model/a%0Ab/invoke",
	} {
		if e := refused(t, post(target, "{}"), testLimit); e.Status != 400 {
			t.Errorf("%s: %+v", target, e)
		}
	}
}

func TestStreamIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		target, body string
		want         bool
	}{
		{"/v1/chat/completions", `{"model":"m"}`, false},
		{"/v1/chat/completions", `{"model":"m","stream":true}`, true},
		{"/v1/chat/completions", `{"str\u0065am" : true,"model":"m"}`, true},
		{"/v1/chat/completions", `{"model":"m","stream":false}`, false},
		{"/v1/chat/completions", `{"model":"m","stream":null}`, false},
		{"/v1/chat/completions", `{"model":"m","stream":"true"}`, false},
		{"/v1/chat/completions", `{"model":"m","stream":1}`, false},
		{"/v1/chat/completions", `{"model":"m","Stream":true}`, false},
		{"/v1/chat/completions", `{"model":"m","x":{"stream":true}}`, false},
		{"/v1/chat/completions", `{"model":"m","stream":true,"stream":false}`, false},
		{"/v1/messages", `{"model":"m","stream":true}`, true},
		{"/openai/deployments/d/chat/completions", `{"stream":true}`, true},
		{"/openai/deployments/d/chat/completions", `{}`, false},
		{"/api/chat", `{"model":"m"}`, true},
		{"/api/generate", `{"model":"m","stream":null}`, true},
		{"/api/generate", `{"model":"m","stream":false}`, false},
		{"/api/embed", `{"model":"m"}`, false},
		{"/v1beta/interactions", `{"model":"m","stream":true}`, true},
	} {
		if q := mustRead(t, post(c.target, c.body)); q.Stream != c.want {
			t.Errorf("%s %s: stream %v", c.target, c.body, q.Stream)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/v1/responses/r?stream=true", nil)
	if !mustRead(t, r).Stream {
		t.Error("a stored response can be asked for as a stream")
	}
}
