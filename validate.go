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
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"
	"golang.org/x/net/http/httpguts"
)

// Names of values that are written in the configuration.
const (
	weightedPolicyName = "weighted"
	breakerOff         = "off"
	breakerDryRun      = "dry_run"
	errorsProvider     = "provider"
	errorsCaddy        = "caddy"
	limitKey           = "key"
	limitChannel       = "channel"
	disableOff         = "off"
	disableDryRun      = "dry_run"
	disableKey         = "key"
	disableChannel     = "channel"
	disableTransport   = "transport"
	authBearer         = "bearer"
	authHeader         = "header"
	authQuery          = "query"
	authPassthrough    = "passthrough"
	authNone           = "none"
)

const (
	maxRetries = 100
	maxWeight  = 1_000_000
)

// configError is a fault in the configuration.
type configError struct {
	Channel string // empty: the gateway's own
	Option  string // as in a Caddyfile; within a block "breaker <name>" and so on
	Msg     string // follows the option's name in a sentence; no secrets

	// at tells which of several values of the option is meant, so that the
	// Caddyfile parser can name its line: the index in a list, or a header.
	at string
}

func (e *configError) Error() string {
	s := e.Msg
	if e.Option != "" {
		s = e.Option + " " + s
	}
	if e.Channel != "" {
		s = "channel " + e.Channel + ": " + s
	}
	return s
}

// check returns the first fault of the configuration, a *configError, if there
// is one. Placeholders in base URLs are expanded first, so it belongs to the
// loading of a configuration.
func (c *Config) check() error {
	k := checker{Config: c}
	return k.check()
}

// checkAdapted is check for a configuration that is being adapted, maybe for
// another machine with another environment: base URLs with placeholders are
// taken on trust.
func (c *Config) checkAdapted() error {
	k := checker{Config: c, adapting: true}
	return k.check()
}

type checker struct {
	*Config
	adapting bool
	channel  string // the one under check
}

func (k *checker) check() error {
	if err := k.checkNames(); err != nil {
		return err
	}
	if err := k.checkGateway(); err != nil {
		return err
	}
	for _, ch := range k.Channels {
		k.channel = ch.Name
		if err := k.checkChannel(ch); err != nil {
			return err
		}
	}
	k.channel = ""
	return cmp.Or(k.checkBackups(), k.checkEarlyProbe())
}

func (k *checker) fault(option, at, format string, args ...any) error {
	return &configError{Channel: k.channel, Option: option, Msg: fmt.Sprintf(format, args...), at: at}
}

// require returns the fault unless ok. Calls are joined with cmp.Or.
func (k *checker) require(ok bool, option, format string, args ...any) error {
	if ok {
		return nil
	}
	return k.fault(option, "", format, args...)
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

// checkName tells what is wrong with the name of a gateway or channel, if
// anything.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("is missing")
	case !validName.MatchString(name):
		return fmt.Errorf("%q is not allowed: a letter or digit, then up to 63 letters, digits and ._:-", name)
	}
	return nil
}

func (k *checker) checkNames() error {
	if err := checkName(k.name()); err != nil {
		return k.fault("name", "", "%v", err)
	}
	if len(k.Channels) == 0 {
		return k.fault("channel", "", "is missing: a gateway needs at least one")
	}
	seen := make(map[string]bool)
	for i, ch := range k.Channels {
		if ch == nil {
			return k.fault("channel", "", "number %d is empty", i+1)
		}
		if err := checkName(ch.Name); err != nil {
			return k.fault("channel", "", "number %d: name %v", i+1, err)
		}
		if seen[ch.Name] {
			return k.fault("channel", "", "%s is given twice: names are unique within a gateway", ch.Name)
		}
		seen[ch.Name] = true
	}
	return nil
}

func (k *checker) checkGateway() error {
	return cmp.Or(
		k.checkPolicy(),
		k.checkAffinity(k.Affinity),
		k.require(k.Retries == nil || *k.Retries >= 0 && *k.Retries <= maxRetries, "retries", "must be 0 to %d", maxRetries),
		k.checkRetrying(),
		k.checkAllOpen(),
		k.require(or(k.EarlyProbe, 0) >= 0, "early_probe", "must not be negative"),
		k.require(or(k.AbandonAfter, 0) >= 0, "abandon_after", "must not be negative"),
		k.require(or(k.StreamCloseDelay, 0) >= 0, "stream_close_delay", "must not be negative"),
		k.require(or(k.PeekTimeout, 0) >= 0, "peek_timeout", "must not be negative"),
		k.require(k.MaxBody >= 0, "max_body", "must be above 0"),
		k.require(k.BufferTotal >= 0, "buffer_total", "must be above 0"),
		k.require(k.BufferTotal == 0 || k.BufferTotal > k.maxBody(), "buffer_total", "must be above max_body, %s", humanize.IBytes(uint64(k.maxBody()))),
		k.require(slices.Contains([]string{"", errorsProvider, errorsCaddy}, k.Errors),
			"errors", "must be %s or %s, not %q", errorsProvider, errorsCaddy, k.Errors),
		k.checkDefaults(k.Defaults),
		k.checkBreaker(k.Breaker, or(k.Breaker, BreakerConfig{})),
		k.checkAutoDisable(k.AutoDisable, k.anyKeys()),
	)
}

// checkRetrying checks what has to do with further attempts.
func (k *checker) checkRetrying() error {
	none := k.Retries != nil && *k.Retries == 0
	return cmp.Or(
		k.require(or(k.TryDuration, 0) >= 0, "try_duration", "must not be negative"),
		k.require(k.TryDuration == nil || !none, "try_duration", "has no effect with retries 0"),
		k.checkRetryBudget(k.RetryBudget),
		k.require(k.RetryBudget == nil || !none, "retry_budget", "has no effect with retries 0"),
		k.require(or(k.SecondOpinion, 0) >= 0, "second_opinion", "must not be negative"),
		k.require(or(k.SecondOpinion, 0) == 0 || !none, "second_opinion", "has no effect with retries 0"),
		k.checkStatuses("retry_on", k.RetryOn, 300),
		k.require(len(k.RetryOn) == 0 || !none, "retry_on", "has no effect with retries 0"),
		k.checkLimitScope(k.LimitScope, k.anyKeys()),
	)
}

// anyKeys reports whether a channel has a key.
func (k *checker) anyKeys() bool {
	return slices.ContainsFunc(k.Channels, func(ch *Channel) bool { return len(ch.Keys) > 0 })
}

func (k *checker) checkAffinity(a *AffinityConfig) error {
	if a == nil {
		return nil
	}
	set := 0
	for _, given := range []bool{a.Header != "", a.Field != "", a.Prefix != 0} {
		if given {
			set++
		}
	}
	names := strings.Split(a.Field, ".")
	several := len(k.Channels) > 1 || len(k.Channels[0].Keys) > 1
	return cmp.Or(
		k.require(several, "affinity", "has no effect with one channel of one key"),
		k.require(set == 1, "affinity", "must be one of header, field and prefix"),
		k.require(a.Header == "" || httpguts.ValidHeaderFieldName(a.Header), "affinity", "header %q is no name of a header", a.Header),
		k.require(a.Field == "" || !slices.Contains(names, ""), "affinity", "field %q has an empty name", a.Field),
		k.require(a.Prefix >= 0, "affinity", "prefix must be above 0"),
	)
}

func (k *checker) checkAllOpen() error {
	modes := []string{"", allOpenFailFast, allOpenBestEffort, allOpenWait}
	return cmp.Or(
		k.require(slices.Contains(modes, k.AllOpen), "all_open", "must be %s, %s or %s, not %q", allOpenFailFast, allOpenBestEffort, allOpenWait, k.AllOpen),
		k.require(k.AllOpen != allOpenWait || k.AllOpenWait > 0, "all_open", "wait needs a time above 0"),
		k.require(k.AllOpen == allOpenWait || k.AllOpenWait == 0, "all_open", "takes a time with wait only"),
	)
}

func (k *checker) checkRetryBudget(b *RetryBudget) error {
	if b == nil {
		return nil
	}
	return cmp.Or(
		k.require(b.Percent >= 0 && b.Percent <= 1000, "retry_budget", "must be 0 to 1000 percent"),
		k.require(or(b.Min, 0) >= 0, "retry_budget", "must not have a negative minimum"),
		k.require(!b.Off || b.Percent == 0 && b.Min == nil, "retry_budget", "has no effect with off"),
	)
}

// checkStatuses checks a list of statuses and classes, none below least.
func (k *checker) checkStatuses(option string, list []int, least int) error {
	for i, n := range list {
		at := strconv.Itoa(i)
		lowest := n
		if n < 10 {
			lowest = n * 100
		}
		if lowest < least || lowest > 599 {
			return k.fault(option, at, "must have statuses from %d to 599, or classes, not %d", least, n)
		}
		if slices.Contains(list[:i], n) {
			return k.fault(option, at, "has %d twice", n)
		}
	}
	return nil
}

func (k *checker) checkLimitScope(scope string, keys bool) error {
	return cmp.Or(
		k.require(slices.Contains([]string{"", limitKey, limitChannel}, scope), "limit_scope", "must be %s or %s, not %q", limitKey, limitChannel, scope),
		k.require(scope == "" || keys, "limit_scope", "has no effect without a key"),
	)
}

// refusedPolicies are the policies that cannot work here, and why.
var refusedPolicies = map[string]string{
	"weighted_round_robin": "picks by position; use weight with lb_policy weighted",
	"llm_gateway":          "is this gateway itself; use weighted or one of Caddy's policies",
}

func (k *checker) checkPolicy() error {
	if k.LBPolicyRaw == nil {
		return nil
	}
	names := lbPolicyNames(k.LBPolicyRaw)
	for _, name := range names {
		if why, refused := refusedPolicies[name]; refused {
			return k.fault("lb_policy", "", "%s %s", name, why)
		}
	}
	return k.require(names[0] != "", "lb_policy", "has no policy name")
}

// checkEarlyProbe comes after the channels' own checks: it asks for their modes.
func (k *checker) checkEarlyProbe() error {
	on := slices.ContainsFunc(k.Channels, func(ch *Channel) bool { return k.breakerConfig(ch).Mode != breakerOff })
	return k.require(on || k.EarlyProbe == nil, "early_probe", "has no effect: the breaker of every channel is off")
}

// checkDefaults checks what may stand at the gateway and at a channel.
func (k *checker) checkDefaults(d Defaults) error {
	return cmp.Or(
		k.checkTimeouts("header_timeout", d.HeaderTimeout),
		k.require(or(d.FirstTokenTimeout, 0) >= 0, "first_token_timeout", "must not be negative"),
		k.require(or(d.IdleTimeout, 0) >= 0, "idle_timeout", "must not be negative"),
		k.checkTransport(d.TransportRaw),
	)
}

func (k *checker) checkTimeouts(option string, t *Timeouts) error {
	if t == nil {
		return nil
	}
	return k.require(or(t.Stream, 1) > 0 && or(t.Other, 1) > 0, option, "must be above 0")
}

// refusedTransport are the options of Caddy's HTTP transport that the gateway
// sets itself, or that would work against it, by their names in both a Caddyfile
// and JSON.
var refusedTransport = map[string]string{
	"response_header_timeout": "use header_timeout of the gateway or channel",
	"compression":             "the gateway decides per request",
	"max_conns_per_host":      "use max_requests of the channel: waiting for a connection would look like a slow upstream",
	"proxy_protocol":          "connections are shared by many clients",
}

func (k *checker) checkTransport(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var options map[string]json.RawMessage
	if json.Unmarshal(raw, &options) != nil || string(options["protocol"]) != `"http"` {
		return k.fault("transport", "", "must be http")
	}
	for name := range options {
		if why, refused := refusedTransport[strings.ToLower(name)]; refused {
			return k.fault("transport", "", "must not set %s: %s", name, why)
		}
	}
	return nil
}

// checkBackups checks the chains: each names channels that exist, each once,
// and none leads back to where it began.
func (k *checker) checkBackups() error {
	byName := make(map[string]*Channel, len(k.Channels))
	for _, ch := range k.Channels {
		byName[ch.Name] = ch
	}
	for _, ch := range k.Channels {
		k.channel = ch.Name
		for i, name := range ch.Backup {
			if err := k.checkBackup(ch, i, byName[name] != nil); err != nil {
				return err
			}
		}
	}
	walk := backupWalk{byName: byName, done: make(map[string]bool)}
	for _, ch := range k.Channels {
		if cycle := walk.cycle(ch.Name); cycle != nil {
			k.channel = cycle[len(cycle)-2]
			at := slices.Index(byName[k.channel].Backup, cycle[len(cycle)-1])
			return k.fault("backup", strconv.Itoa(at), "leads back to itself: %s", strings.Join(cycle, " > "))
		}
	}
	k.channel = ""
	return nil
}

func (k *checker) checkBackup(ch *Channel, i int, known bool) error {
	name, at := ch.Backup[i], strconv.Itoa(i)
	switch {
	case name == ch.Name:
		return k.fault("backup", at, "names the channel itself")
	case !known:
		return k.fault("backup", at, "names %q, which is no channel of this gateway", name)
	case slices.Contains(ch.Backup[:i], name):
		return k.fault("backup", at, "names %s twice", name)
	}
	return nil
}

// backupWalk looks for a cycle in the chains, each channel once.
type backupWalk struct {
	byName map[string]*Channel
	done   map[string]bool
	path   []string
}

// cycle returns the names along a cycle that can be reached from name, with
// the first one at the end again, or nil.
func (w *backupWalk) cycle(name string) []string {
	if i := slices.Index(w.path, name); i >= 0 {
		return append(slices.Clone(w.path[i:]), name)
	}
	if w.done[name] {
		return nil
	}
	w.path = append(w.path, name)
	for _, next := range w.byName[name].Backup {
		if cycle := w.cycle(next); cycle != nil {
			return cycle
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.done[name] = true
	return nil
}

func hasPlaceholder(s string) bool { return strings.Contains(s, "{") }

// baseURL returns the base URL of ch, or nil if it cannot be known before the
// configuration is loaded.
func (k *checker) baseURL(ch *Channel) (*url.URL, error) {
	s := ch.BaseURL
	if hasPlaceholder(s) {
		if k.adapting {
			return nil, nil
		}
		s = caddy.NewReplacer().ReplaceKnown(s, "")
	}
	base, err := parseBaseURL(s)
	if err != nil {
		return nil, k.fault("base_url", "", "%v", err)
	}
	return base, nil
}
