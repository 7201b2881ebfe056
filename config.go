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

package llmgateway

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
)

// Config is the configuration of one gateway: its channels, and how requests
// move among them.
type Config struct {
	// Name of the gateway, by which its state is kept over reloads and shown
	// on the admin API. Letters, digits and `._:-`, at most 64. Default:
	// `default`. Gateways of one name with the same settings share one state.
	Name string `json:"name,omitempty"`

	// The channels, in order. At least one.
	Channels []*Channel `json:"channels,omitempty"`

	// How a channel is drawn from the best group of candidates: `weighted`
	// (the default, by effective weight), or one of Caddy's own selection
	// policies, which picks from the filtered pool and knows no weights.
	LBPolicyRaw json.RawMessage `json:"lb_policy,omitempty" caddy:"namespace=http.reverse_proxy.selection_policies inline_key=policy"`

	// Binds requests that have something in common to one channel and key of the
	// group that is their turn, as long as that can be used. It decides before
	// lb_policy, which decides for requests that have nothing of it. Default: off.
	Affinity *AffinityConfig `json:"affinity,omitempty"`

	// How many attempts may follow the first one; key switches within a
	// channel apart. 0 turns failover off. Default: 3.
	Retries *int `json:"retries,omitempty"`

	// How long after a request came a new attempt may still begin. 0 turns the
	// limit off. Default: off.
	TryDuration *caddy.Duration `json:"try_duration,omitempty"`

	// The statuses of answers that are tried elsewhere; a number below 10 is a
	// class, as 5 for 5xx. A fault of the caller's own request is tried elsewhere
	// only if its status is written here. Missing models, failure_on and errors of
	// the transport always are. Default: 401, 402, 403, 408, 425, 429 and 5xx.
	RetryOn []int `json:"retry_on,omitempty"`

	// How many retries may be in flight at once, so that an outage does not double
	// the load. The first move of a request to a channel whose breaker is closed
	// is free. Default: 20 percent of the requests in flight, and at least 10.
	RetryBudget *RetryBudget `json:"retry_budget,omitempty"`

	// What is done with a request for which nobody is usable: `fail_fast` (the
	// default) refuses it at once, `best_effort` probes the open channel that is
	// due soonest, `wait` lets it wait in line for somebody to come back.
	AllOpen string `json:"all_open,omitempty"`

	// How long a request may wait, with `wait`.
	AllOpenWait caddy.Duration `json:"all_open_wait,omitempty"`

	// How long after opening, and then how often, one request may probe an
	// open pair before its time when the candidates of the request are all
	// open. 0 turns it off. Default: 10s.
	EarlyProbe *caddy.Duration `json:"early_probe,omitempty"`

	// A client that leaves after waiting at least this long without a single
	// byte from the upstream counts as a failure of the upstream. 0 turns it
	// off. Default: 30s.
	AbandonAfter *caddy.Duration `json:"abandon_after,omitempty"`

	// How many requests in a row a model of a channel may refuse as the caller's
	// fault, without a code that says why, until such a request is asked elsewhere
	// too, one at a time: an answer there makes the refusal a failure. 0 turns it
	// off. Default: 5.
	SecondOpinion *int `json:"second_opinion,omitempty"`

	// How long the head of an event stream is held back for its first content, so
	// that a stream that begins with an error is replaced by another channel's.
	// 0 turns holding back off, of other answers too. Default: 2s.
	PeekTimeout *caddy.Duration `json:"peek_timeout,omitempty"`

	// The largest request body, in bytes, after decoding. Larger ones are
	// answered with 413. Default: 64 MiB.
	MaxBody int64 `json:"max_body,omitempty"`

	// The memory for the bodies of all requests together, in bytes: they are kept
	// until an answer begins, to be sent again if need be. Beyond it requests are
	// refused with 503. Default: 1 GiB, or max_body where that is larger.
	BufferTotal int64 `json:"buffer_total,omitempty"`

	// How long websockets outlive a reload of the configuration. 0 closes them at
	// once. Default: 1h.
	StreamCloseDelay *caddy.Duration `json:"stream_close_delay,omitempty"`

	// Who renders the errors that the gateway itself makes: `provider` (the
	// default: the shape of the request's dialect) or `caddy` (the error goes
	// to the server's error routes).
	Errors string `json:"errors,omitempty"`

	// The circuit breakers' settings for all channels.
	Breaker *BreakerConfig `json:"breaker,omitempty"`

	// When channels and keys are taken out until an operator acts. Default: never.
	AutoDisable *AutoDisableConfig `json:"auto_disable,omitempty"`

	// Defaults for the channels' own options of the same names.
	Defaults
}

// Defaults are options that may stand at the gateway and at a channel; the
// channel's value wins.
type Defaults struct {
	// How long an attempt may take until the final response headers, from its
	// start: for streams and for other requests. Default: 2m and 10m.
	HeaderTimeout *Timeouts `json:"header_timeout,omitempty"`

	// How long an attempt may take until the first content event of a stream, from
	// its start; until then nothing of the stream reaches the client. 0 turns it
	// off. Default: off.
	FirstTokenTimeout *caddy.Duration `json:"first_token_timeout,omitempty"`

	// How long a response body may go without a byte. 0 turns it off.
	// Default: 10m.
	IdleTimeout *caddy.Duration `json:"idle_timeout,omitempty"`

	// What a rate limit pauses: `key` (the default: the key that ran into it, for
	// that model) or `channel` (all of the channel, for that model).
	LimitScope string `json:"limit_scope,omitempty"`

	// Caddy's HTTP transport to the upstream (`"protocol": "http"`), less the
	// options that the gateway sets itself.
	TransportRaw json.RawMessage `json:"transport,omitempty" caddy:"namespace=http.reverse_proxy.transport inline_key=protocol"`
}

// Timeouts is a pair of time limits. A nil one keeps its default.
type Timeouts struct {
	// For requests that ask for a stream.
	Stream *caddy.Duration `json:"stream,omitempty"`

	// For all other requests.
	Other *caddy.Duration `json:"other,omitempty"`
}

// Channel is one account at one provider: where it is, what opens it, and
// which models it serves.
type Channel struct {
	// Name, unique within the gateway. Same alphabet as the gateway's name.
	Name string `json:"name,omitempty"`

	// The provider's id; it decides the auth header, the dialects spoken and
	// how errors are read. Default: by the host of base_url, else `openai`.
	Provider string `json:"provider,omitempty"`

	// The base URL as the provider documents it, e.g.
	// `https://api.openai.com/v1`. http or https; no user info, no fragment.
	// Placeholders are expanded when the configuration is loaded.
	BaseURL string `json:"base_url,omitempty"`

	// The pool of keys. Write them as `{env.NAME}` or `{file./path}`, so that
	// they do not stand in the configuration.
	Keys []string `json:"keys,omitempty"`

	// How the key is sent. Default: by provider; `none` without keys.
	Auth *Auth `json:"auth,omitempty"`

	// Header operations on the request to this channel, as `header_up` of
	// `reverse_proxy`. They must not touch the credential's own header.
	HeaderUp *headers.HeaderOps `json:"header_up,omitempty"`

	// Names or globs (`*` matches any run of characters) of the models that
	// are asked for under their own name. Default: `*`, but none where
	// model_map or default_model is set.
	Models []string `json:"models,omitempty"`

	// Renames models: exact names first, then globs in order. A `*` in the
	// upstream name takes what the first `*` of the requested name matched.
	ModelMap []ModelMapping `json:"model_map,omitempty"`

	// Asked for when neither models nor model_map accepts the requested model.
	DefaultModel string `json:"default_model,omitempty"`

	// Lower is preferred. Default: 0.
	Priority *int `json:"priority,omitempty"`

	// Share of the traffic within its group under the `weighted` policy, 1 or
	// more. Default: 1.
	Weight *int `json:"weight,omitempty"`

	// The channels to fail over to after this one, in order. A channel named
	// here takes no other traffic, unless it sets priority itself.
	Backup []string `json:"backup,omitempty"`

	// How many attempts may run on this channel at once. Default: unlimited.
	MaxRequests int `json:"max_requests,omitempty"`

	// Statuses that are failures of this channel, whatever they mean elsewhere; a
	// number below 10 is a class, as 5 for 5xx.
	FailureOn []int `json:"failure_on,omitempty"`

	// Replaces the gateway's breaker settings, value by value.
	Breaker *BreakerConfig `json:"breaker,omitempty"`

	// Starts from the gateway's; a rule replaces the gateway's rule of the same
	// status and text.
	AutoDisable *AutoDisableConfig `json:"auto_disable,omitempty"`

	// The options that default to the gateway's.
	Defaults
}

// Auth says how a key is sent upstream.
type Auth struct {
	// `bearer` (Authorization: Bearer), `header` (the header of that name),
	// `query` (the query parameter of that name), `passthrough` (the client's own
	// credential, whose failures never count) or `none`.
	Scheme string `json:"scheme,omitempty"`

	// The name of the header or parameter.
	Name string `json:"name,omitempty"`
}

// ModelMapping renames one model, or all that a glob matches.
type ModelMapping struct {
	// What the client asks for: a name, or a glob.
	Requested string `json:"requested,omitempty"`

	// What the channel is asked for.
	Upstream string `json:"upstream,omitempty"`
}

// AffinityConfig says what binds requests together. Exactly one of its fields is
// set.
type AffinityConfig struct {
	// The value of this request header.
	Header string `json:"header,omitempty"`

	// The string or number in the JSON body under these names, from the outermost
	// in, with dots between them, as in `metadata.user_id`; of a multipart body the
	// field of that name. Values of more than 4 KiB bind nothing.
	Field string `json:"field,omitempty"`

	// The model and the first bytes of the prompt, this many: of the system prompt,
	// and if that is shorter, of the messages or whatever else the model reads. It
	// is for providers that cache what prompts begin with.
	Prefix int `json:"prefix,omitempty"`
}

// RetryBudget bounds the retries in flight.
type RetryBudget struct {
	// No bound.
	Off bool `json:"off,omitempty"`

	// Percent of the requests in flight, 0 to 1000.
	Percent float64 `json:"percent,omitempty"`

	// This many are always allowed. Default: 10.
	Min *int `json:"min,omitempty"`
}

// AutoDisableConfig says after how many consecutive errors of one status a key or
// a channel is taken out. That stands above the breaker: what is disabled is not
// even probed.
type AutoDisableConfig struct {
	// Empty for normal operation, `off`, or `dry_run`: record and show as if it
	// disabled, but take nothing out.
	Mode string `json:"mode,omitempty"`

	// The rules. Default: 401 three times, and 402 three times for an hour.
	Rules []DisableRule `json:"rules,omitempty"`

	// Never disable the last usable key of a channel.
	KeepLastKey bool `json:"keep_last_key,omitempty"`

	// When several keys of a channel see the same status at once, it is not the
	// keys: none is disabled, the channel pauses. Default: 2 keys within 60s for
	// pools of 3 or more keys, else off.
	Correlate *Correlate `json:"correlate,omitempty"`
}

// DisableRule disables after a number of consecutive errors.
type DisableRule struct {
	// `401`, a class such as `5xx`, or `transport` (errors of the transport, and
	// timeouts).
	Status string `json:"status,omitempty"`

	// Counts only errors in whose code or message this stands.
	Match string `json:"match,omitempty"`

	// How many in a row, 1 or more.
	Times int `json:"times,omitempty"`

	// For how long. Default: until an operator acts.
	For caddy.Duration `json:"for,omitempty"`

	// What is disabled: `key` or `channel`. Default: the key for 401, 402, 403 and
	// 429, else the channel.
	Scope string `json:"scope,omitempty"`
}

// Correlate says when errors of several keys are one error of their account.
type Correlate struct {
	// How many keys, 2 or more. 0: off.
	Keys int `json:"keys"`

	// Within which time.
	Window caddy.Duration `json:"window,omitempty"`
}

// BreakerConfig are the settings of circuit breakers. What is not set keeps
// the default, or in a channel the gateway's value.
type BreakerConfig struct {
	// Empty for normal operation, `off`, or `dry_run`: count, log and show as
	// if it opened, but remove no traffic.
	Mode string `json:"mode,omitempty"`

	// Consecutive failures until the breaker opens, 1 or more. Default: 5.
	OpenThreshold *int `json:"open_threshold,omitempty"`

	// Consecutive failures until the weight is reduced, 1 or more. Default: 3,
	// or never where open_threshold is not above it.
	DegradeThreshold *int `json:"degrade_threshold,omitempty"`

	// The factor on the weight of a degraded pair, 0 to 1. Default: 0.3.
	DegradedWeight *float64 `json:"degraded_weight,omitempty"`

	// The factor on the weight of a half-open pair whose probe lease is free,
	// above 0 up to 1. Default: 0.3.
	HalfOpenWeight *float64 `json:"half_open_weight,omitempty"`

	// A streak of failures whose last one is older than this is forgotten.
	// Never applies while open. Default: 30m.
	FailureTTL *caddy.Duration `json:"failure_ttl,omitempty"`

	// How long an open breaker waits for its first probe. Default: 5m.
	ProbeInterval *caddy.Duration `json:"probe_interval,omitempty"`

	// The longest interval; it doubles with each failed probe. Default: 40m,
	// or probe_interval where that is longer.
	MaxProbeInterval *caddy.Duration `json:"max_probe_interval,omitempty"`

	// How much a probe's time may stray, in percent of the interval, 0 to 50.
	// Default: 10.
	Jitter *float64 `json:"jitter,omitempty"`

	// How long a probe may go without a byte from the upstream: for streams
	// and for other requests. Default: 2m and 10m.
	ProbeTimeout *Timeouts `json:"probe_timeout,omitempty"`
}
