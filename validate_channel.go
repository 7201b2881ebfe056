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
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"golang.org/x/net/http/httpguts"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/provider"
)

// checkChannel checks all of ch but its backups.
func (k *checker) checkChannel(ch *Channel) error {
	base, err := k.baseURL(ch)
	if err != nil {
		return err
	}
	return cmp.Or(
		k.checkProvider(ch.Provider),
		k.checkKeys(ch.Keys),
		k.checkAuth(ch),
		k.checkHeaderUp(ch, base),
		k.checkModels(ch),
		k.checkModelMap(ch.ModelMap),
		k.checkDefaultModel(ch),
		k.checkWeight(ch.Weight),
		k.require(ch.MaxRequests >= 0, "max_requests", "must be 1 or more"),
		k.checkStatuses("failure_on", ch.FailureOn, 200),
		k.checkLimitScope(ch.LimitScope, len(ch.Keys) > 0),
		k.checkDefaults(ch.Defaults),
		k.checkTLS(ch.TransportRaw, base),
		k.checkBreaker(ch.Breaker, k.breakerConfig(ch)),
		k.checkAutoDisable(ch.AutoDisable, len(ch.Keys) > 0),
	)
}

func (k *checker) checkProvider(id string) error {
	_, known := provider.Lookup(id)
	return k.require(known || id == "", "provider",
		"%q is unknown; the providers are %s", id, strings.Join(provider.IDs(), ", "))
}

func (k *checker) checkKeys(keys []string) error {
	for i, key := range keys {
		at := strconv.Itoa(i)
		switch {
		case strings.TrimSpace(key) == "":
			return k.fault("key", at, "number %d is empty", i+1)
		case strings.EqualFold(key, "bearer"):
			return k.fault("key", at, "number %d is the word bearer: write the key alone, auth says how it is sent", i+1)
		case strings.HasPrefix(key, "$"):
			return k.fault("key", at, "number %d begins with a dollar sign: write {env.NAME} for an environment variable", i+1)
		}
		if first := slices.Index(keys, key); first < i {
			return k.fault("key", at, "number %d is the same as number %d", i+1, first+1)
		}
	}
	return nil
}

func (k *checker) checkAuth(ch *Channel) error {
	if ch.Auth == nil {
		return nil
	}
	switch a := ch.Auth; a.Scheme {
	case authBearer, authHeader:
		named := a.Scheme == authHeader
		return cmp.Or(
			k.require(!named || httpguts.ValidHeaderFieldName(a.Name), "auth", "header needs the name of a header"),
			k.require(!framing[http.CanonicalHeaderKey(a.Name)], "auth", "header %s cannot carry a key", a.Name),
			k.require(named || a.Name == "", "auth", "bearer takes no header name"),
			k.require(len(ch.Keys) > 0, "auth", "%s has no effect without a key", a.Scheme),
		)
	case authQuery:
		return cmp.Or(
			k.require(validParam.MatchString(a.Name), "auth", "query needs the name of a parameter, of letters, digits and _.-"),
			k.require(len(ch.Keys) > 0, "auth", "query has no effect without a key"),
		)
	case authNone, authPassthrough:
		return cmp.Or(
			k.require(a.Name == "", "auth", "%s takes no name", a.Scheme),
			k.require(len(ch.Keys) == 0, "key", "has no effect with auth %s", a.Scheme),
		)
	}
	// The word is not repeated: it may be a misplaced key.
	return k.fault("auth", "", "must be bearer, header <name>, query <name>, passthrough or none")
}

// validParam are names of query parameters that need no escape.
var validParam = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// framing are the headers that net/http writes itself.
var framing = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true, "Connection": true, "Upgrade": true, "Te": true,
}

// credentialHeader returns the canonical name of the header in which the key of
// ch is sent. It is empty if there is none, or it cannot be known yet.
func credentialHeader(ch *Channel, base *url.URL) string {
	if base == nil && ch.Provider == "" && ch.Auth == nil {
		return ""
	}
	preset, _ := presetOf(ch, cmp.Or(base, &url.URL{}))
	return authOf(ch, preset).header
}

func (k *checker) checkHeaderUp(ch *Channel, base *url.URL) error {
	own := credentialHeader(ch, base)
	if ch.HeaderUp == nil || own == "" {
		return nil
	}
	for _, field := range headerFields(ch.HeaderUp) {
		if fieldMatches(field, own) {
			return k.fault("header_up", headerPlace(field), "must not touch %s, which carries the key", own)
		}
	}
	return nil
}

// headerFields returns the fields that ops touch, as they are written.
func headerFields(ops *headers.HeaderOps) []string {
	fields := slices.Clone(ops.Delete)
	for field := range ops.Add {
		fields = append(fields, field)
	}
	for field := range ops.Set {
		fields = append(fields, field)
	}
	for field := range ops.Replace {
		fields = append(fields, field)
	}
	return fields
}

// headerPlace is how a header operation is told from the others of a channel.
func headerPlace(field string) string { return strings.ToLower(strings.TrimLeft(field, "+-?>")) }

// fieldMatches reports whether a field of a header operation stands for name.
// Caddy knows stars at both ends of it, in what is deleted, and a lone one.
func fieldMatches(field, name string) bool {
	field, name = strings.ToLower(field), strings.ToLower(name)
	rest, anyStart := strings.CutPrefix(field, "*")
	rest, anyEnd := strings.CutSuffix(rest, "*")
	switch {
	case anyStart && anyEnd:
		return strings.Contains(name, rest)
	case anyStart:
		return strings.HasSuffix(name, rest)
	case anyEnd:
		return strings.HasPrefix(name, rest)
	}
	return field == name
}

func (k *checker) checkModels(ch *Channel) error {
	for i, pattern := range ch.Models {
		at := strconv.Itoa(i)
		if pattern == "" {
			return k.fault("models", at, "has an empty name")
		}
		if strings.HasSuffix(pattern, ",") {
			return k.fault("models", at, "has %q: names are separated by spaces", pattern)
		}
		if slices.Contains(ch.Models[:i], pattern) {
			return k.fault("models", at, "has %q twice", pattern)
		}
		if slices.ContainsFunc(ch.ModelMap, func(m ModelMapping) bool { return m.Requested == pattern }) {
			return k.fault("models", at, "has %q, which has no effect: model_map renames it", pattern)
		}
	}
	return k.require(len(ch.Models) == 0 || !mapsAll(ch.ModelMap), "models", "has no effect: model_map accepts every model")
}

func mapsAll(mappings []ModelMapping) bool {
	return slices.ContainsFunc(mappings, func(m ModelMapping) bool { return m.Requested == "*" })
}

func (k *checker) checkModelMap(mappings []ModelMapping) error {
	for i, m := range mappings {
		if msg := mappingFault(m, mappings[:i]); msg != "" {
			return k.fault("model_map", strconv.Itoa(i), "%s", msg)
		}
	}
	return nil
}

func mappingFault(m ModelMapping, before []ModelMapping) string {
	same := func(o ModelMapping) bool { return o.Requested == m.Requested }
	switch {
	case m.Requested == "" || m.Upstream == "":
		return "has an empty name"
	case slices.ContainsFunc(before, same):
		return "has " + strconv.Quote(m.Requested) + " twice"
	case strings.Count(m.Upstream, "*") > 1:
		return "may have one * in the upstream name, not more"
	case isGlob(m.Upstream) && !isGlob(m.Requested):
		return "has a * in the upstream name but none in the requested name"
	case isGlob(m.Requested) && mapsAll(before):
		return "has no effect after a mapping of *"
	}
	return ""
}

func (k *checker) checkDefaultModel(ch *Channel) error {
	all := mapsAll(ch.ModelMap) || slices.Contains(ch.Models, "*")
	return cmp.Or(
		k.require(!isGlob(ch.DefaultModel), "default_model", "must be a name, without *"),
		k.require(ch.DefaultModel == "" || !all, "default_model", "has no effect: the channel accepts every model"),
	)
}

func (k *checker) checkWeight(weight *int) error {
	return cmp.Or(
		k.require(weight == nil || *weight >= 1 && *weight <= maxWeight, "weight", "must be 1 to %d", maxWeight),
		k.require(weight == nil || k.weightedPolicy(), "weight", "has no effect: the lb_policy knows no weights"),
	)
}

// checkTLS refuses TLS options of a channel's own transport where the base URL
// goes without TLS.
func (k *checker) checkTLS(transport json.RawMessage, base *url.URL) error {
	var options struct {
		TLS json.RawMessage `json:"tls"`
	}
	if base == nil || base.Scheme != "http" || transport == nil {
		return nil
	}
	set := json.Unmarshal(transport, &options) == nil && options.TLS != nil
	return k.require(!set, "transport", "has TLS options, but the base_url is http")
}

// checkBreaker checks a written block; merged is it with what it inherits.
func (k *checker) checkBreaker(b *BreakerConfig, merged BreakerConfig) error {
	if b == nil {
		return nil
	}
	if !slices.Contains([]string{"", breakerOff, breakerDryRun}, b.Mode) {
		return k.fault("breaker", "", "must be off or dry_run, not %q", b.Mode)
	}
	if b.Mode == breakerOff {
		return k.require(*b == BreakerConfig{Mode: breakerOff}, "breaker", "is off, so its options have no effect")
	}
	return cmp.Or(
		k.checkThresholds(b, merged),
		k.checkBreakerWeights(b),
		k.checkProbes(b, merged),
	)
}

func (k *checker) checkThresholds(b *BreakerConfig, merged BreakerConfig) error {
	const open, degrade = "breaker open_threshold", "breaker degrade_threshold"
	opens := or(merged.OpenThreshold, defaultBreaker.OpenThreshold)
	below := merged.DegradeThreshold == nil || *merged.DegradeThreshold < opens
	return cmp.Or(
		k.require(or(b.OpenThreshold, 1) >= 1, open, "must be 1 or more"),
		k.require(or(b.DegradeThreshold, 1) >= 1, degrade, "must be 1 or more"),
		k.require(below || b.DegradeThreshold == nil, degrade, "must be below open_threshold, which is %d", opens),
		k.require(below || b.OpenThreshold == nil, open, "must be above degrade_threshold, which is %d", or(merged.DegradeThreshold, 0)),
	)
}

func (k *checker) checkBreakerWeights(b *BreakerConfig) error {
	const degraded, halfOpen = "breaker degraded_weight", "breaker half_open_weight"
	const noWeights = "has no effect: the lb_policy knows no weights"
	d, h := or(b.DegradedWeight, 0), or(b.HalfOpenWeight, 1)
	return cmp.Or(
		k.require(d >= 0 && d <= 1, degraded, "must be 0 to 1"),
		k.require(h > 0 && h <= 1, halfOpen, "must be above 0 and at most 1"),
		k.require(b.DegradedWeight == nil || k.weightedPolicy(), degraded, noWeights),
		k.require(b.HalfOpenWeight == nil || k.weightedPolicy(), halfOpen, noWeights),
	)
}

func (k *checker) checkProbes(b *BreakerConfig, merged BreakerConfig) error {
	const interval, longest = "breaker probe_interval", "breaker max_probe_interval"
	first := durationOr(merged.ProbeInterval, defaultBreaker.ProbeInterval)
	last := durationOr(merged.MaxProbeInterval, first)
	jitter := or(b.Jitter, 0)
	return cmp.Or(
		k.require(or(b.FailureTTL, 1) > 0, "breaker failure_ttl", "must be above 0"),
		k.require(or(b.ProbeInterval, 1) > 0, interval, "must be above 0"),
		k.require(or(b.MaxProbeInterval, 1) > 0, longest, "must be above 0"),
		k.require(last >= first || b.MaxProbeInterval == nil, longest, "must not be below probe_interval, which is %s", first),
		k.require(last >= first || b.ProbeInterval == nil, interval, "must not be above max_probe_interval, which is %s", last),
		k.require(jitter >= 0 && jitter <= 50, "breaker jitter", "must be 0 to 50 percent"),
		k.checkTimeouts("breaker probe_timeout", b.ProbeTimeout),
	)
}

var defaultBreaker = breaker.DefaultSettings()
