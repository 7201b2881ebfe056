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
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/credential"
)

// statusAnswer is what GET /llm_gateway/status answers.
type statusAnswer struct {
	Node     string          `json:"node"`
	Now      time.Time       `json:"now"`
	Gateways []gatewayStatus `json:"gateways"`
}

type gatewayStatus struct {
	Name     string          `json:"name"`
	Waiting  int             `json:"waiting,omitempty"` // requests in line, with all_open wait
	Channels []channelStatus `json:"channels"`
}

type channelStatus struct {
	Name     string          `json:"name"`
	Provider string          `json:"provider"`
	BaseURL  string          `json:"base_url"`
	State    string          `json:"state"`
	Health   health          `json:"health"`
	Summary  string          `json:"summary"`
	Priority int             `json:"priority"`
	Weight   float64         `json:"weight"`
	InFlight int64           `json:"in_flight"`
	Errors   map[string]int  `json:"errors"`
	Disabled *recordStatus   `json:"disabled"`
	Keys     []keyStatus     `json:"keys"`
	Breakers []breakerStatus `json:"breakers"`
	Check    *struct{}       `json:"health_check"`
}

type keyStatus struct {
	ID       string         `json:"id"`
	State    string         `json:"state"`
	Errors   map[string]int `json:"errors"`
	Until    *time.Time     `json:"until"`
	Disabled *recordStatus  `json:"disabled"`
}

// recordStatus is why and since when something is disabled.
type recordStatus struct {
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	Status int        `json:"status"`
	Count  int        `json:"count"`
	At     *time.Time `json:"at"`
	Until  *time.Time `json:"until"`
	DryRun bool       `json:"dry_run,omitempty"`
}

func recordOf(r *autodisable.Record, dryRun bool) *recordStatus {
	if r == nil {
		return nil
	}
	return &recordStatus{r.By, r.Reason, r.Status, r.Count, timeOrNil(r.At), timeOrNil(r.Until), dryRun && r.By == autodisable.ByAuto}
}

type breakerStatus struct {
	Model               string       `json:"model"`
	State               string       `json:"state"`
	Degraded            bool         `json:"degraded"`
	DryRun              bool         `json:"dry_run"`
	ConsecutiveFailures int          `json:"consecutive_failures"`
	EffectiveWeight     float64      `json:"effective_weight"`
	LastFailure         string       `json:"last_failure"`
	LastFailureAt       *time.Time   `json:"last_failure_at"`
	LastSuccessAt       *time.Time   `json:"last_success_at"`
	OpenedAt            *time.Time   `json:"opened_at"`
	NextProbeAt         *time.Time   `json:"next_probe_at"`
	NextProbeIn         string       `json:"next_probe_in"`
	ProbeInFlight       bool         `json:"probe_in_flight"`
	LimitedUntil        *time.Time   `json:"limited_until"`
	Suspect             bool         `json:"suspect"`
	FirstToken          *percentiles `json:"first_token_ms"`
}

// health is a channel's colour on the status page.
type health string

const (
	gray   health = "gray"
	green  health = "green"
	yellow health = "yellow"
	red    health = "red"
)

// currentStatus returns the status of the config that serves, of one gateway or
// channel only if they are named.
func currentStatus(gatewayName, channelName string, now time.Time) (statusAnswer, error) {
	node, _ := os.Hostname()
	answer := statusAnswer{Node: node, Now: now, Gateways: []gatewayStatus{}}
	app := liveApp()
	if app == nil {
		if gatewayName != "" {
			return answer, adminError(http.StatusNotFound, "there is no gateway %q", gatewayName)
		}
		return answer, nil
	}
	found := false
	for _, gw := range app.list() {
		if gatewayName != "" && gw.name != gatewayName {
			continue
		}
		s := gatewayStatus{Name: gw.name, Waiting: gw.queues.len(), Channels: []channelStatus{}}
		for _, ch := range gw.channels {
			if channelName == "" || ch.name == channelName {
				s.Channels = append(s.Channels, ch.status(now))
				found = true
			}
		}
		if channelName == "" || len(s.Channels) > 0 {
			answer.Gateways = append(answer.Gateways, s)
		}
	}
	if !found && gatewayName+channelName != "" {
		return answer, adminError(http.StatusNotFound, "there is no such gateway or channel: %q %q", gatewayName, channelName)
	}
	slices.SortFunc(answer.Gateways, func(a, b gatewayStatus) int { return cmp.Compare(a.Name, b.Name) })
	return answer, nil
}

// status describes the channel. Looking changes nothing.
func (ch *channel) status(now time.Time) channelStatus {
	s := channelStatus{
		Name:     ch.name,
		Provider: ch.preset.ID,
		BaseURL:  ch.shownURL(),
		State:    "enabled",
		Priority: ch.priority,
		Weight:   ch.weight,
		InFlight: ch.state.inFlight.Load(),
		Errors:   map[string]int{},
		Keys:     []keyStatus{},
		Breakers: []breakerStatus{},
	}
	disables := ch.state.disables.Snapshot(now)
	s.Errors, s.Disabled = disables.Errors, recordOf(disables.Disabled, disables.DryRun)
	if s.Disabled != nil && !s.Disabled.DryRun {
		s.State = stateDisabled
	}
	keys := ch.keys.Snapshot(now)
	for _, k := range keys {
		if k.ID == "" && !k.Missing {
			continue // a channel without keys
		}
		s.Keys = append(s.Keys, keyStatusOf(k, disables.Keys[k.ID]))
	}
	breakers := ch.state.breakers.Snapshot(now)
	for _, b := range breakers {
		s.Breakers = append(s.Breakers, ch.breakerStatus(b, now))
	}
	for _, model := range ch.state.doubts.suspects(ch.secondOpinion) {
		ch.markSuspect(&s, model, now)
	}
	if s.State == stateDisabled {
		for i := range s.Breakers {
			s.Breakers[i].EffectiveWeight = 0
		}
	}
	s.summarise(keys, breakers, now)
	return s
}

// markSuspect shows that the next refusal of the model would be doubted, also
// where the model has no breaker yet.
func (ch *channel) markSuspect(s *channelStatus, model string, now time.Time) {
	i := slices.IndexFunc(s.Breakers, func(b breakerStatus) bool { return b.Model == model })
	if i < 0 {
		i = len(s.Breakers)
		s.Breakers = append(s.Breakers, ch.breakerStatus(breaker.Status{Model: model, Weight: 1}, now))
	}
	s.Breakers[i].Suspect = true
}

const stateDisabled = "disabled"

func keyStatusOf(k credential.Status, d autodisable.KeyStatus) keyStatus {
	s := keyStatus{ID: k.ID, State: k.State, Errors: d.Errors, Until: timeOrNil(k.Until), Disabled: recordOf(d.Disabled, d.DryRun)}
	if s.Errors == nil {
		s.Errors = map[string]int{}
	}
	if s.Disabled != nil && !s.Disabled.DryRun {
		s.State, s.Until = stateDisabled, s.Disabled.Until
	}
	return s
}

// shownURL is the base URL without its query, which may hold what is nobody's
// business.
func (ch *channel) shownURL() string {
	u := *ch.base
	u.RawQuery = ""
	return u.String()
}

func (ch *channel) breakerStatus(b breaker.Status, now time.Time) breakerStatus {
	s := breakerStatus{
		Model:               b.Model,
		State:               b.State.String(),
		Degraded:            b.Degraded,
		DryRun:              b.DryRun,
		ConsecutiveFailures: b.ConsecutiveFailures,
		EffectiveWeight:     ch.weight * b.Weight,
		LastFailure:         b.LastFailure,
		LastFailureAt:       timeOrNil(b.LastFailureAt),
		LastSuccessAt:       timeOrNil(b.LastSuccessAt),
		OpenedAt:            timeOrNil(b.OpenedAt),
		NextProbeAt:         timeOrNil(b.NextProbeAt),
		ProbeInFlight:       b.ProbeInFlight,
		FirstToken:          ch.state.firstTokens.of(b.Model),
	}
	if b.LimitedUntil.After(now) {
		s.LimitedUntil = timeOrNil(b.LimitedUntil)
	}
	// With every key out the pair takes nothing, whatever its breaker says.
	if keys := ch.keys.Look(b.Model, now); keys.Usable == 0 {
		s.EffectiveWeight = 0
		if keys.Reason == credential.Limited && s.LimitedUntil == nil {
			s.LimitedUntil = timeOrNil(keys.Return)
		}
	}
	switch {
	case b.NextProbeAt.IsZero():
	case b.State == breaker.HalfOpen:
		s.NextProbeIn = "due"
	default:
		s.NextProbeIn = relative(b.NextProbeAt, now)
	}
	return s
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.Round(time.Millisecond)
	return &t
}

// relative says how far t is from now: "4 minutes from now", "12 seconds ago".
func relative(t, now time.Time) string { return humanize.RelTime(t, now, "ago", "from now") }

// summarise sets the channel's colour and the reasons for it, the worst first.
func (s *channelStatus) summarise(keys []credential.Status, breakers []breaker.Status, now time.Time) {
	var bad, poor []string
	if s.State == stateDisabled {
		bad = append(bad, disabledText(s.Disabled, now))
	}
	for _, b := range breakers {
		if what, worst := breakerTrouble(b, now); worst {
			bad = append(bad, what)
		} else if what != "" {
			poor = append(poor, what)
		}
	}
	for _, b := range s.Breakers {
		if b.Suspect {
			poor = append(poor, b.Model+" refuses everything, its next refusal is checked elsewhere")
		}
	}
	if what, worst := s.keyTrouble(keys); worst {
		bad = append([]string{what}, bad...)
	} else if what != "" {
		poor = append(poor, what)
	}
	s.Health, s.Summary = green, "ok"
	if all := append(bad, poor...); len(all) > 0 {
		s.Health, s.Summary = yellow, strings.Join(all, "; ")
	}
	switch {
	case s.State == stateDisabled && s.Disabled.By == autodisable.ByOperator:
		s.Health = gray
	case len(bad) > 0:
		s.Health = red
	}
}

func disabledText(r *recordStatus, now time.Time) string {
	text := "disabled by an operator"
	if r.By == autodisable.ByAuto {
		text = r.Reason
	} else if r.Reason != "" {
		text += ": " + r.Reason
	}
	if r.Until != nil {
		text += ", until " + relative(*r.Until, now)
	}
	return text
}

func breakerTrouble(b breaker.Status, now time.Time) (what string, worst bool) {
	model := b.Model
	if model == "" {
		model = "requests without a model"
	}
	if b.DryRun {
		model += " (dry run)"
	}
	switch {
	case b.State == breaker.Open && b.Held && b.NextProbeAt.IsZero():
		return model + " opened by an operator", true
	case b.State == breaker.Open && b.Held:
		return fmt.Sprintf("%s opened by an operator, back %s", model, relative(b.NextProbeAt, now)), true
	case b.State == breaker.Open:
		return fmt.Sprintf("%s open, probe %s", model, relative(b.NextProbeAt, now)), true
	case b.State == breaker.HalfOpen && b.ProbeInFlight:
		return model + " half-open, probe in flight", false
	case b.State == breaker.HalfOpen:
		return model + " half-open, the next request probes", false
	case b.LimitedUntil.After(now):
		return fmt.Sprintf("%s limited, back %s", model, relative(b.LimitedUntil, now)), false
	case b.Degraded:
		return fmt.Sprintf("%s degraded after %s", model, failures(b.ConsecutiveFailures)), false
	case b.ConsecutiveFailures > 0:
		return fmt.Sprintf("%s had %s", model, failures(b.ConsecutiveFailures)), false
	}
	return "", false
}

func failures(n int) string {
	if n == 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d consecutive failures", n)
}

func (s *channelStatus) keyTrouble(keys []credential.Status) (what string, worst bool) {
	out, limited := 0, 0
	for _, k := range keys {
		disabled := slices.ContainsFunc(s.Keys, func(shown keyStatus) bool { return shown.ID == k.ID && shown.State == stateDisabled })
		switch {
		case disabled || k.State == credential.StatePaused:
			out++
		case k.State == credential.StateLimited:
			limited++
		}
	}
	switch {
	case len(keys) > 0 && out == len(keys):
		return "no usable key", true
	case out > 0:
		return fmt.Sprintf("%d of %d keys out", out, len(keys)), false
	case limited > 0:
		return fmt.Sprintf("%d of %d keys limited", limited, len(keys)), false
	}
	return "", false
}
