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

package verdict

import (
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

// errorBody is an error object as most providers write it.
func errorBody(typ, code, message string) string {
	return `{"error":{"message":"` + message + `","type":"` + typ + `","param":null,"code":"` + code + `"}}`
}

func anthropicBody(typ, message, code string) string {
	return `{"type":"error","error":{"type":"` + typ + `","message":"` + message + `","details":{"error_code":"` + code + `"}},"request_id":"r"}`
}

func googleBody(status, message, details string) string {
	return `{"error":{"code":400,"message":"` + message + `","status":"` + status + `","details":[` + details + `]}}`
}

func TestProviderRules(t *testing.T) {
	const dailyQuota = `{"@type":"q","violations":[{"quotaMetric":"m","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"r","retryDelay":"5s"}`
	tests := []struct {
		provider string
		status   int
		body     string
		want     string
	}{
		{"openai", 400, errorBody("invalid_request_error", "context_length_exceeded", ""), asClient + known},
		{"openai", 401, errorBody("invalid_request_error", "invalid_api_key", ""), asRefused + known},
		{"openai", 403, errorBody("", "", "You have insufficient permissions. Missing scopes: model.request"), asRefused + known},
		{"openai", 403, errorBody("request_forbidden", "unsupported_country_region_territory", ""), asRefused + known},
		{"openai", 404, errorBody("invalid_request_error", "model_not_found", ""), asMissing + known},
		{"openai", 404, `{"error":{"message":"Invalid URL (POST /v1/x)","type":"invalid_request_error","code":null}}`, asClient},
		{"openai", 429, errorBody("requests", "rate_limit_exceeded", "slow"), asLimited + known},
		{"openai", 429, errorBody("tokens", "rate_limit_exceeded", "Request too large for gpt-4o on tokens per min (TPM)"), "neutral elsewhere" + known},
		{"openai", 429, errorBody("rate_limit_error", "slow_down", ""), asLimited + known},
		{"openai", 429, errorBody("insufficient_quota", "insufficient_quota", ""), asUnpaid + known},
		{"openai", 429, errorBody("insufficient_quota", "credit_balance_exhausted", ""), asUnpaid + known},
		{"openai", 429, errorBody("x", "organization_spend_limit_exceeded", ""), asUnpaid + known},
		{"openai", 429, errorBody("x", "project_spend_limit_exceeded", ""), asUnpaid + known},
		{"openai", 429, errorBody("x", "organization_usage_limit_exceeded", ""), asUnpaid + known},
		{"openai", 429, errorBody("x", "billing_not_active", ""), asUnpaid + known},
		{"openai", 400, errorBody("x", "billing_hard_limit_reached", ""), asUnpaid + known},
		{"openai", 400, errorBody("x", "content_policy_violation", ""), asClient + known},
		{"openai", 400, errorBody("x", "moderation_blocked", ""), asClient + known},
		{"openai", 500, errorBody("server_error", "", ""), asFailure},
		{"openai", 503, errorBody("service_unavailable_error", "server_is_overloaded", ""), asOverload + known},

		{"anthropic", 400, anthropicBody("invalid_request_error", "messages: required", ""), asClient},
		{"anthropic", 400, anthropicBody("invalid_request_error", "Your credit balance is too low to access the API", ""), asUnpaid + known},
		{"anthropic", 400, anthropicBody("invalid_request_error", "You have reached your specified API usage limits.", ""), asUnpaid + known},
		{"anthropic", 400, anthropicBody("invalid_request_error", "You have reached your specified workspace API usage limits.", ""), asUnpaid + known},
		{"anthropic", 400, anthropicBody("invalid_request_error", "", "organization_on_hold"), asUnpaid + known},
		{"anthropic", 400, anthropicBody("invalid_request_error", "", "claude_code_key_creator_not_member"), asRefused + known},
		{"anthropic", 400, anthropicBody("invalid_request_error", "", "cmek_key_disabled"), asRefused + known},
		{"anthropic", 400, anthropicBody("invalid_request_error", "", "thread_x"), asClient + known},
		{"anthropic", 400, anthropicBody("invalid_request_error", "", "image_dimensions_too_large"), asClient + known},
		{"anthropic", 401, anthropicBody("authentication_error", "", ""), asRefused + known},
		{"anthropic", 402, anthropicBody("billing_error", "", ""), asUnpaid + known},
		{"anthropic", 402, anthropicBody("billing_error", "", "linked_organization_spend_limit_reached"), asClient + known},
		{"anthropic", 403, anthropicBody("permission_error", "", ""), asRefused + known},
		{"anthropic", 403, anthropicBody("permission_error", "no access to m1", ""), asMissing + known},
		{"anthropic", 404, anthropicBody("not_found_error", "model: m1", ""), asMissing + known},
		{"anthropic", 404, anthropicBody("not_found_error", "Not Found", ""), asClient},
		{"anthropic", 409, anthropicBody("conflict_error", "", ""), asClient},
		{"anthropic", 413, anthropicBody("request_too_large", "", ""), asClient},
		{"anthropic", 429, anthropicBody("rate_limit_error", "", ""), asLimited + known},
		{"anthropic", 429, anthropicBody("rate_limit_error", "", "ramp_limit_exceeded"), asLimited + known},
		{"anthropic", 429, anthropicBody("rate_limit_error", "", "enforced_spend_limit_reached"), asUnpaid + known},
		{"anthropic", 429, anthropicBody("rate_limit_error", "", "contract_spend_limit_reached"), asUnpaid + known},
		{"anthropic", 500, anthropicBody("api_error", "", ""), asFailure},
		{"anthropic", 503, anthropicBody("x", "", "cmek_key_unreachable"), asFailure + known},
		{"anthropic", 504, anthropicBody("timeout_error", "", ""), asFailure},
		{"anthropic", 529, anthropicBody("overloaded_error", "", ""), asOverload + known},
		{"anthropic", 529, anthropicBody("x", "", "compaction_unavailable"), asOverload + known},

		{"gemini", 400, googleBody("INVALID_ARGUMENT", "API key not valid", `{"@type":"i","reason":"API_KEY_INVALID"}`), asRefused + known},
		{"gemini", 400, "[" + googleBody("INVALID_ARGUMENT", "API key not valid", `{"reason":"API_KEY_INVALID"}`) + "]", asRefused + known},
		{"gemini", 400, googleBody("INVALID_ARGUMENT", "bad", ""), asClient},
		{"gemini", 400, googleBody("FAILED_PRECONDITION", "The free tier is not available in your country. Enable billing.", ""), asUnpaid + known},
		{"gemini", 400, googleBody("FAILED_PRECONDITION", "The file is not active", ""), asClient},
		{"gemini", 402, googleBody("RESOURCE_EXHAUSTED", "", ""), asUnpaid + known},
		{"gemini", 403, googleBody("PERMISSION_DENIED", "", ""), asRefused + known},
		{"gemini", 404, googleBody("NOT_FOUND", "models/m1 is not found for API version v1beta", ""), asMissing + known},
		{"vertex", 404, googleBody("NOT_FOUND", "Publisher Model x was not found", ""), asMissing + known},
		{"gemini", 404, googleBody("NOT_FOUND", "Requested entity was not found.", ""), asClient},
		{"gemini", 429, googleBody("RESOURCE_EXHAUSTED", "", ""), asLimited + known},
		{"gemini", 429, googleBody("RESOURCE_EXHAUSTED", "", dailyQuota), asLimited + known},
		{"gemini", 500, googleBody("INTERNAL", "", ""), asFailure},
		{"gemini", 503, googleBody("UNAVAILABLE", "", ""), asOverload + known},
		{"gemini", 504, googleBody("DEADLINE_EXCEEDED", "", ""), asFailure},

		{"azure", 400, `{"error":{"code":"content_filter","message":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, asClient + known},
		{"azure", 401, errorBody("", "401", ""), asRefused},
		{"azure", 403, errorBody("", "403", ""), "neutral elsewhere forbidden"},
		{"azure", 404, errorBody("", "DeploymentNotFound", ""), asMissing + known},
		{"azure", 404, errorBody("", "404", "Resource not found"), asClient},
		{"azure", 429, errorBody("", "429", ""), asLimited},
		{"azure", 429, errorBody("", "RateLimitReached", ""), asLimited + known},

		{"bedrock", 400, `{"__type":"a.b#ValidationException","message":"bad input"}`, asClient},
		{"bedrock", 400, `{"__type":"ValidationException","message":"The provided model identifier is invalid."}`, asMissing + known},
		{"bedrock", 400, `{"__type":"ValidationException","message":"Invocation with on-demand throughput isn't supported."}`, asMissing + known},
		{"bedrock", 400, `{"__type":"ServiceQuotaExceededException","message":""}`, asLimited + known},
		{"bedrock", 403, `{"__type":"AccessDeniedException","message":"no"}`, asRefused + known},
		{"bedrock", 403, `{"__type":"AccessDeniedException","message":"no access to m1"}`, asMissing + known},
		{"bedrock", 403, `{"__type":"ExpiredTokenException","message":"no"}`, asRefused + known},
		{"bedrock", 404, `{"__type":"ResourceNotFoundException","message":"no"}`, asMissing + known},
		{"bedrock", 408, `{"__type":"ModelTimeoutException","message":"no"}`, asFailure + known},
		{"bedrock", 424, `{"__type":"ModelErrorException","message":"no"}`, asFailure + known},
		{"bedrock", 429, `{"__type":"ThrottlingException","message":"no"}`, asLimited + known},
		{"bedrock", 429, `{"__type":"ModelNotReadyException","message":"no"}`, asOverload + known},
		{"bedrock", 500, `{"__type":"InternalServerException","message":"no"}`, asFailure + known},
		{"bedrock", 503, `{"__type":"ServiceUnavailableException","message":"no"}`, asOverload + known},

		{"mistral", 400, `{"object":"error","message":"no","type":"t","code":"unknown_model"}`, asMissing + known},
		{"mistral", 402, `{"object":"error","message":"no"}`, asUnpaid},
		{"mistral", 422, `{"detail":[{"msg":"field required","type":"missing"}]}`, asClient},
		{"mistral", 429, `{"object":"error","message":"no","code":"3505"}`, asOverload + known},
		{"groq", 400, errorBody("x", "model_decommissioned", ""), asMissing + known},
		{"groq", 404, errorBody("x", "model_not_found", ""), asMissing + known},
		{"groq", 424, errorBody("x", "", ""), asFailure},
		{"groq", 498, errorBody("x", "capacity_exceeded", ""), asOverload + known},
		{"deepseek", 402, errorBody("x", "invalid_request_error", "Insufficient Balance"), asUnpaid},
		{"deepseek", 422, errorBody("x", "", ""), asClient},
		{"xai", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xx"}`, asRefused + known},
		{"xai", 400, `{"code":"Client specified an invalid argument","error":"bad"}`, asClient},
		{"openrouter", 402, `{"error":{"code":402,"message":"x","metadata":{"limit_source":"openrouter_in_flight_budget"}}}`, asLimited + known},
		{"openrouter", 402, `{"error":{"code":402,"message":"x","metadata":{"limit_source":"openrouter_credits"}}}`, asUnpaid},
		{"openrouter", 403, `{"error":{"code":403,"message":"x","metadata":{"reasons":["violence"],"flagged_input":"y"}}}`, asClient + known},
		{"openrouter", 403, `{"error":{"code":403,"message":"x","metadata":{"error_type":"permission_denied"}}}`, asRefused + known},
		{"openrouter", 403, `{"error":{"code":403,"message":"x","metadata":{"error_type":"content_policy_violation"}}}`, asClient + known},
		{"openrouter", 404, `{"error":{"code":404,"message":"No endpoints found"}}`, asMissing + known},
		{"openrouter", 410, `{"error":{"code":410,"message":"gone"}}`, asMissing + known},
		{"openrouter", 400, `{"error":{"code":400,"message":"x","metadata":{"error_type":"context_length_exceeded"}}}`, asClient + known},
		{"openrouter", 502, `{"error":{"code":502,"message":"x"}}`, asFailure},
		{"openrouter", 524, `{"error":{"code":524,"message":"x"}}`, asFailure},
		{"openrouter", 529, `{"error":{"code":529,"message":"x","metadata":{"error_type":"provider_overloaded"}}}`, asOverload + known},
		{"together", 403, errorBody("x", "", "The token count of your input plus max_tokens is too high"), asClient + known},
		{"together", 403, errorBody("x", "", "no"), "neutral elsewhere forbidden"},
		{"fireworks", 403, `{"fault":{"faultstring":"no"}}`, "neutral elsewhere forbidden"},
		{"fireworks", 404, errorBody("x", "NOT_FOUND", "Model not found, inaccessible, and/or not deployed"), asMissing + known},
		{"fireworks", 412, errorBody("x", "", "Account is suspended"), asUnpaid + known},
		{"fireworks", 412, errorBody("x", "", "LoRA failed to load"), asFailure},
		{"cohere", 400, `{"message":"too many tokens: 9"}`, asClient + known},
		{"cohere", 404, `{"message":"model 'm1' not found"}`, asMissing + known},
		{"cohere", 498, `{"message":"invalid token"}`, asRefused + known},
		{"moonshot", 400, `{"error":{"message":"bad","type":"content_filter"}}`, asClient + known},
		{"moonshot", 400, `{"error":{"message":"Your request exceeded model token limit: 8192","type":"invalid_request_error"}}`, asClient + known},
		{"moonshot", 401, `{"error":{"message":"bad","type":"invalid_authentication_error"}}`, asRefused + known},
		{"moonshot", 403, `{"error":{"message":"bad","type":"permission_denied_error"}}`, asRefused + known},
		{"moonshot", 404, `{"error":{"message":"bad","type":"resource_not_found_error"}}`, asMissing + known},
		{"moonshot", 429, `{"error":{"message":"bad","type":"exceeded_current_quota_error"}}`, asUnpaid + known},
		{"moonshot", 429, `{"error":{"message":"bad","type":"rate_limit_reached_error"}}`, asLimited + known},
		{"moonshot", 429, `{"error":{"message":"bad","type":"engine_overloaded_error"}}`, asOverload + known},
		{"zhipu", 401, errorBody("", "1002", ""), asRefused + known},
		{"zhipu", 403, errorBody("", "1220", ""), asRefused + known},
		{"zhipu", 429, errorBody("", "1113", ""), asUnpaid + known},
		{"zhipu", 429, errorBody("", "1309", ""), asUnpaid + known},
		{"zhipu", 429, errorBody("", "1302", ""), asLimited + known},
		{"zhipu", 429, errorBody("", "1304", ""), asLimited + known},
		{"zhipu", 429, errorBody("", "1305", ""), asOverload + known},
		{"zhipu", 400, errorBody("", "1211", ""), asMissing + known},
		{"zhipu", 429, errorBody("", "1311", ""), asMissing + known},
		{"zhipu", 400, errorBody("", "1261", ""), asClient + known},
		{"zhipu", 400, errorBody("", "1301", ""), asClient + known},
		{"zhipu", 400, errorBody("", "1210", ""), asClient + known},
		{"zhipu", 500, errorBody("", "1234", ""), asFailure + known},
		{"dashscope", 400, `{"code":"Arrearage","message":"x","request_id":"r"}`, asUnpaid + known},
		{"dashscope", 400, errorBody("x", "data_inspection_failed", ""), asClient + known},
		{"dashscope", 401, `{"code":"InvalidApiKey","message":"x"}`, asRefused + known},
		{"dashscope", 403, `{"code":"Model.AccessDenied","message":"x"}`, asMissing + known},
		{"dashscope", 403, `{"code":"AccessDenied","message":"x"}`, asRefused + known},
		{"dashscope", 404, `{"code":"ModelNotFound","message":"x"}`, asMissing + known},
		{"dashscope", 429, errorBody("insufficient_quota", "insufficient_quota", "You exceeded your current quota"), asLimited + known},
		{"dashscope", 429, errorBody("insufficient_quota", "insufficient_quota", "Free allocated quota exceeded."), asUnpaid + known},
		{"dashscope", 429, `{"code":"Throttling.RateQuota","message":"x"}`, asLimited + known},
		{"vllm", 400, `{"error":{"message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}}`, asClient + known},
		{"vllm", 401, `{"error":"Unauthorized"}`, asRefused},
		{"vllm", 404, `{"error":{"message":"The model x does not exist.","type":"NotFoundError","code":404}}`, asMissing + known},
		{"vllm", 404, `{"error":{"message":"Not Found","type":"Not Found","code":404}}`, asClient},
		{"ollama", 404, `{"error":"model \"m9\" not found, try pulling it first"}`, asMissing + known},
		{"ollama", 503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, asOverload + known},
		{"llamacpp", 400, `{"error":{"code":400,"message":"x","type":"exceed_context_size_error","n_ctx":1}}`, asClient + known},
		{"llamacpp", 501, `{"error":{"code":501,"message":"x","type":"not_supported_error"}}`, asClient},
		{"llamacpp", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, asOverload + known},
		{"tgi", 422, `{"error":"x","error_type":"validation"}`, asClient},
		{"tgi", 424, `{"error":"x","error_type":"generation"}`, asFailure + known},
		{"tgi", 429, `{"error":"x","error_type":"overloaded"}`, asOverload + known},
		{"lmstudio", 404, errorBody("x", "model_not_found", ""), asMissing + known},

		{"openai", 403, errorBody("", "moderation_flag", ""), asClient + known},
		{"openai", 403, errorBody("", "", "Your input violates our content policy"), asClient + known},
		{"openai", 403, errorBody("", "some_other_code", ""), "neutral elsewhere forbidden"},
	}
	for _, tt := range tests {
		r := OfAnswer(Answer{Provider: tt.provider, Dialect: dialect.OpenAI, Status: tt.status, Header: header(), Body: []byte(tt.body), Model: "m1", HasModel: true, Now: now})
		if got := brief(r); got != tt.want {
			t.Errorf("%s %d %s:\n got %s\nwant %s", tt.provider, tt.status, tt.body, got, tt.want)
		}
	}
}

func TestDialectBringsItsRules(t *testing.T) {
	body := []byte(anthropicBody("invalid_request_error", "Your credit balance is too low", ""))
	for d, want := range map[dialect.Dialect]string{dialect.Anthropic: asUnpaid + known, dialect.OpenAI: asClient} {
		r := OfAnswer(Answer{Provider: "vertex", Dialect: d, Status: 400, Header: header(), Body: body, HasModel: true, Now: now})
		if brief(r) != want {
			t.Errorf("%v: %s, want %s", d, brief(r), want)
		}
	}
}

func TestErrorTypeHeader(t *testing.T) {
	h := header("X-Amzn-Errortype", "ResourceNotFoundException:http://internal.amazon.com/x/")
	r := OfAnswer(Answer{Provider: "bedrock", Dialect: dialect.Bedrock, Status: 404, Header: h, Body: []byte(`{"message":"x"}`), HasModel: true, Now: now})
	if brief(r) != asMissing+known || r.Code != "ResourceNotFoundException" {
		t.Errorf("%s %q", brief(r), r.Code)
	}
}

func TestLimitsThatNameTheirEndInTheText(t *testing.T) {
	perDay := googleBody("RESOURCE_EXHAUSTED", "", `{"violations":[{"quotaId":"RequestsPerDay"}]},{"retryDelay":"5s"}`)
	perMinute := googleBody("RESOURCE_EXHAUSTED", "", `{"violations":[{"quotaId":"RequestsPerMinute"}]},{"retryDelay":"5s"}`)
	nearMidnight := time.Date(2026, 12, 1, 7, 50, 0, 0, time.UTC) // 23:50 in Los Angeles
	tests := []struct {
		provider, body string
		now            time.Time
		want           time.Duration
	}{
		{"gemini", perDay, now, time.Hour},
		{"gemini", perDay, nearMidnight, 10 * time.Minute},
		{"gemini", perMinute, now, 5 * time.Second},
		{"zhipu", errorBody("", "1304", ""), now, time.Hour},
		{"zhipu", errorBody("", "1308", "resets at 2026-11-30 20:05:00"), now, 5 * time.Minute},
		{"zhipu", errorBody("", "1308", "resets at 2026-11-30 19:05:00"), now, 0},
		{"zhipu", errorBody("", "1310", "resets some day"), now, 0},
	}
	for _, tt := range tests {
		r := OfAnswer(Answer{Provider: tt.provider, Status: 429, Header: header(), Body: []byte(tt.body), HasModel: true, Now: tt.now})
		if r.Verdict != Limited || r.Pause != tt.want {
			t.Errorf("%s: %v for %v, want %v", tt.body, r.Verdict, r.Pause, tt.want)
		}
	}
}
