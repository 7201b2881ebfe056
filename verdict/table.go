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

// google are those who answer with Google's errors: its OpenAI-compatible
// endpoint does too.
var google = words("gemini vertex openai")

// providerRules hold for some providers only. A rule on a message stands where
// no code tells what the message does, before the rule on that code.
var providerRules = []rule{
	// OpenAI and Azure
	{at: words("openai"), on: []int{401, 403}, texts: []string{"missing scopes"}, then: refused},
	{at: words("openai"), on: []int{403}, codes: words("unsupported_country_region_territory"), then: refused},
	{at: words("openai"), on: []int{429}, codes: words("slow_down"), then: limited},
	{at: words("azure"), on: []int{429}, codes: words("RateLimitReached"), then: limited},
	{at: words("azure"), on: []int{404}, codes: words("DeploymentNotFound"), then: missing},

	// Anthropic. Its docs warn against matching messages; these have nothing else.
	{at: words("anthropic"), on: []int{400}, texts: []string{"extra inputs are not permitted"}, then: clientFault}, // it repeats the name of a member
	{at: words("anthropic"), on: []int{400}, texts: []string{
		"^your credit balance is too low", "^credit balance is too low",
		"^you have reached your specified api usage limits", "^you have reached your specified workspace api usage limits",
	}, then: unpaid},
	{at: words("anthropic"), on: []int{400}, codes: words("organization_on_hold"), then: unpaid},
	{at: words("anthropic"), on: []int{400}, codes: words("claude_code_key_creator_not_member cmek_key_disabled cmek_key_network_blocked"), then: refused},
	{at: words("anthropic"), on: []int{503}, codes: words("cmek_key_unreachable cmek_context_unavailable"), then: broken},
	{at: words("anthropic"), on: []int{529}, codes: words("compaction_unavailable"), then: overloaded},
	{at: words("anthropic"), on: []int{400, 413}, codes: words(
		"image_dimensions_too_large tool_name_conflict available_tools_limit_exceeded thread_* compaction_* request_body_encoding_* request_body_too_large_after_decoding",
	), then: clientFault},
	{at: words("anthropic"), on: []int{402}, codes: words("linked_organization_billing_unavailable linked_organization_spend_limit_reached"), then: clientFault},
	{at: words("anthropic"), on: []int{429}, codes: words("enforced_spend_limit_reached contract_spend_limit_reached"), then: unpaid},
	{at: words("anthropic"), on: []int{429}, codes: words("ramp_limit_exceeded"), then: limited},

	// Google
	{at: google, on: []int{400}, codes: words("API_KEY_INVALID"), then: refused},
	{at: google, on: []int{400}, codes: words("FAILED_PRECONDITION"), texts: []string{"billing", "free tier"}, then: unpaid},
	{at: google, on: []int{400}, codes: words("FAILED_PRECONDITION"), texts: []string{"location is not supported"}, then: refused},
	{at: google, on: []int{402}, codes: words("RESOURCE_EXHAUSTED payment_required"), then: unpaid},
	{at: google, on: []int{403}, codes: words("PERMISSION_DENIED"), then: refused},
	{at: google, on: []int{404}, codes: words("NOT_FOUND"), texts: []string{"model"}, then: missing},
	{at: google, on: []int{429}, codes: words("*perday*"), until: pacificMidnight, then: limited},
	{at: google, on: []int{429}, codes: words("RESOURCE_EXHAUSTED rateLimitExceeded"), then: limited},
	{at: google, on: []int{503}, codes: words("UNAVAILABLE"), then: overloaded},

	// Bedrock
	{at: words("bedrock"), on: []int{403}, codes: words("AccessDeniedException"), names: true, then: missing},
	{at: words("bedrock"), on: []int{401, 403}, codes: words("AccessDeniedException UnrecognizedClientException InvalidSignatureException ExpiredTokenException"), then: refused},
	{at: words("bedrock"), on: []int{400}, codes: words("ValidationException"), texts: []string{"model identifier is invalid", "on-demand throughput"}, then: missing},
	{at: words("bedrock"), codes: words("ServiceQuotaExceededException ThrottlingException"), then: limited},
	{at: words("bedrock"), on: []int{404}, codes: words("ResourceNotFoundException"), then: missing},
	{at: words("bedrock"), codes: words("ModelNotReadyException ServiceUnavailableException"), then: overloaded},
	{at: words("bedrock"), codes: words("ModelTimeoutException ModelErrorException ModelStreamErrorException InternalServerException"), then: broken},

	// OpenRouter passes on what other providers say, and names it.
	{at: words("openrouter"), on: []int{402}, codes: words("openrouter_in_flight_budget"), then: limited},
	{at: words("openrouter"), codes: words("openrouter_credits openrouter_key_limit payment_required"), then: unpaid},
	{at: words("openrouter"), on: []int{400, 403}, codes: words("refusal"), then: content},
	{at: words("openrouter"), on: []int{403}, texts: []string{"guardrail"}, then: content},
	{at: words("openrouter"), on: []int{404, 410}, codes: words("404 410 not_found"), then: missing},
	{at: words("openrouter"), codes: words("provider_overloaded"), then: overloaded},
	{at: words("openrouter"), codes: words("authentication permission_denied"), then: refused},
	{at: words("openrouter"), on: []int{400, 413, 422}, codes: words(
		"max_tokens_exceeded token_limit_exceeded string_too_long invalid_prompt payload_too_large unprocessable invalid_image image_*",
	), then: clientFault},

	// Moonshot (Kimi)
	{at: words("moonshot"), codes: words("exceeded_current_quota_error"), then: unpaid},
	{at: words("moonshot"), codes: words("invalid_authentication_error incorrect_api_key_error permission_denied_error"), then: refused},
	{at: words("moonshot"), codes: words("rate_limit_reached_error"), then: limited},
	{at: words("moonshot"), codes: words("engine_overloaded_error"), then: overloaded},
	{at: words("moonshot"), codes: words("resource_not_found_error"), then: missing},
	{at: words("moonshot"), on: []int{400}, texts: []string{"exceeded model token limit"}, then: clientFault},

	// Zhipu, whose codes are numbers and whose statuses vary
	{at: words("zhipu"), codes: words("1000 1001 1002 1003 1004 1005 1220"), then: refused},
	{at: words("zhipu"), codes: words("1110 1111 1112 1113 1121 1309"), then: unpaid},
	{at: words("zhipu"), codes: words("1302 1303 1313"), then: limited},
	{at: words("zhipu"), codes: words("1304"), until: longest, then: limited},
	{at: words("zhipu"), codes: words("1308 1310"), until: untilNamedTime, then: limited},
	{at: words("zhipu"), codes: words("1305 1312"), then: overloaded},
	{at: words("zhipu"), codes: words("1211 1311"), then: missing},
	{at: words("zhipu"), codes: words("1210 1212 1213 1214 1215 1261"), then: clientFault},
	{at: words("zhipu"), codes: words("1301"), then: content},
	{at: words("zhipu"), codes: words("1200 1230 1234"), then: broken},

	// DashScope, where insufficient_quota is a limit that passes
	{at: words("dashscope"), on: []int{403, 429}, texts: []string{"free allocated quota exceeded"}, then: unpaid},
	{at: words("dashscope"), codes: words("Arrearage"), then: unpaid},
	{at: words("dashscope"), on: []int{429}, codes: words("Throttling* limit_requests insufficient_quota"), then: limited},
	{at: words("dashscope"), codes: words("InvalidApiKey"), then: refused},
	{at: words("dashscope"), on: []int{403, 404}, codes: words("ModelNotFound Model.AccessDenied"), then: missing},
	{at: words("dashscope"), on: []int{403}, codes: words("AccessDenied"), then: refused},
	{at: words("dashscope"), codes: words("DataInspectionFailed data_inspection_failed"), then: content},

	// Others
	{at: words("mistral"), on: []int{429}, codes: words("3505"), then: overloaded},
	{at: words("mistral"), on: []int{400, 404}, codes: words("unknown_model invalid_model"), then: missing},
	{at: words("deepseek"), on: []int{400}, texts: []string{"^model not exist"}, then: missing},
	{at: words("groq"), on: []int{498}, then: overloaded},
	{at: words("groq"), on: []int{400, 404}, codes: words("model_decommissioned"), then: missing},
	{at: words("xai"), on: []int{400}, texts: []string{"^incorrect api key", "^invalid api key"}, then: refused},
	{at: words("together"), on: []int{403}, texts: []string{"max_tokens", "context length", "input token"}, then: clientFault},
	{at: words("fireworks"), on: []int{412}, texts: []string{"suspended"}, then: unpaid},
	{at: words("cohere"), on: []int{498}, then: refused},
	{at: words("cohere"), on: []int{429}, texts: []string{"api calls / month"}, then: unpaid},
	{at: words("cohere"), on: []int{400}, texts: []string{"too many tokens"}, then: clientFault},
	{at: words("vllm"), on: []int{404}, codes: words("NotFoundError"), then: missing},
	{at: words("vllm"), on: []int{400}, texts: []string{"maximum context length"}, then: clientFault},
	{at: words("ollama"), on: []int{404}, texts: []string{"try pulling"}, then: missing},
	{at: words("ollama"), on: []int{503}, texts: []string{"server busy", "maximum pending requests"}, then: overloaded},
	{at: words("llamacpp"), on: []int{400}, codes: words("exceed_context_size_error"), then: clientFault},
	{at: words("llamacpp"), on: []int{503}, codes: words("unavailable_error"), then: overloaded},
	{at: words("tgi"), on: []int{429}, codes: words("overloaded"), then: overloaded},
	{at: words("tgi"), on: []int{424, 500}, codes: words("generation incomplete_generation"), then: broken},
}

// generalRules hold for codes that mean one thing wherever they are used.
var generalRules = []rule{
	{codes: words("insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded project_spend_limit_exceeded " +
		"organization_usage_limit_exceeded billing_not_active billing_hard_limit_reached billing_error"), then: unpaid},
	{codes: words("invalid_api_key authentication_error"), then: refused},
	{on: []int{403}, codes: words("permission_error"), names: true, then: missing},
	{on: []int{401, 403}, codes: words("permission_error"), then: refused},
	{codes: words("overloaded_error server_is_overloaded"), then: overloaded},
	{on: []int{413, 429}, codes: words("rate_limit_exceeded"), texts: []string{"request too large"}, then: otherAccount},
	{on: []int{429}, codes: words("rate_limit_exceeded rate_limit_error"), then: limited},
	{on: []int{400, 403, 404, 410}, codes: words("model_not_found"), then: missing},
	{codes: words("context_length_exceeded quoted:context_length_exceeded"), then: clientFault},
	{on: []int{400, 403, 422}, codes: words("content_filter content_policy_violation moderation_blocked ResponsibleAIPolicyViolation bio_policy " +
		"quoted:content_filter quoted:content_policy_violation quoted:moderation_blocked"), then: content},
	{on: []int{400, 403}, codes: words(flagged + " *moderation* *content_policy* *content_filter*"), then: content},
	{on: []int{403}, texts: []string{"moderation", "content policy", "violates usage guidelines"}, then: content},
	{codes: words("data_residency_mismatch"), then: otherAccount},
	{on: []int{404, 410}, names: true, then: missing},
	{on: []int{404, 410}, texts: []string{"model not found", "model does not exist"}, then: missing},
}

// innerRules judge errors inside a 200 that no rule knows by a part of their
// name.
var innerRules = []rule{
	{codes: words("rate_limit*"), then: limited},
	{codes: words("*overloaded*"), then: overloaded},
	{codes: words("server_* internal*"), then: broken},
	{codes: words("authentication*"), then: refused},
	{codes: words("invalid_* validation* image_* request_too_large"), then: clientFault},
}
