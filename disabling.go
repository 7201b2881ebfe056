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
	"time"

	"go.uber.org/zap"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// countError counts an error for auto-disable, which looks at what was received
// whatever the verdict: but a refusal of what was asked for is nobody's error.
func (a *attempt) countError(ans *answer, r verdict.Result, now time.Time) {
	f := autodisable.Failure{Key: a.key.ID(), Status: ans.status, Code: r.Code, Began: a.began}
	switch {
	case r.Content || ans.res != nil && a.ch.auth.passthrough:
		return
	case ans.res != nil && ans.status >= 400:
		f.Message = verdict.Message(ans.res.Header, ans.head)
	case (ans.res == nil || ans.cut) && r.Verdict == verdict.Failure:
		f.Transport = true
	default:
		return
	}
	change := a.ch.state.disables.Failure(f, now, func(id string) bool { return a.ch.keys.Usable(id, a.model, now) })
	a.x.gw.disableChanged(a.ch, change)
	if change.Correlated {
		a.ch.pauseKeys(now)
	}
}

// pauseKeys pauses all keys of the channel as though each had been refused: what
// they saw together is their account's trouble.
func (ch *channel) pauseKeys(now time.Time) {
	for _, key := range ch.keys.All() {
		ch.keys.Refused(key, now, now)
	}
}

// disableChanged reports that a channel or a key was disabled or enabled: one
// line each time, never under a lock.
func (gw *gateway) disableChanged(ch *channel, c autodisable.Change) {
	if c.Zero() {
		return
	}
	if !c.Correlated {
		gw.disableEvent(ch, c)
	}
	what := "channel"
	fields := []zap.Field{zap.String("channel", ch.name)}
	if c.Key != "" {
		what = "key"
		fields = append(fields, zap.String("key", c.Key))
	}
	fields = append(fields, zap.String("by", c.By), zap.String("reason", c.Reason))
	if c.DryRun {
		fields = append(fields, zap.Bool("dry_run", true))
	}
	switch {
	case c.Correlated:
		gw.logger.Warn("several keys fail alike, the channel pauses", fields...)
	case c.Disabled:
		if !c.Record.Until.IsZero() {
			fields = append(fields, zap.Time("until", c.Record.Until))
		}
		gw.logger.Warn(what+" disabled", fields...)
	default:
		gw.logger.Info(what+" enabled", fields...)
	}
}

// lapse reports the disables of the channel whose time is up.
func (gw *gateway) lapse(ch *channel, now time.Time) {
	for _, c := range ch.state.disables.Lapse(now) {
		gw.disableChanged(ch, c)
	}
}
