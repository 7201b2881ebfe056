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
	"context"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// outcome is what became of a request as the client sees it.
type outcome string

const (
	outcomeServed      outcome = "served"
	outcomeClientFault outcome = "client_fault"
	outcomeFailed      outcome = "failed"
	outcomeRefused     outcome = "refused" // our own error
	outcomeCut         outcome = "cut"
	outcomeClientGone  outcome = "client_gone"
)

// attemptRecord is one try of a request, for the access log.
type attemptRecord struct {
	channel, model, key string
	status              int // 0: no answer
	verdict             verdict.Verdict
	reason              string
	probe               bool
	duration            time.Duration
}

// report notes and counts how a try ended.
func (a *attempt) report(ans *answer, r verdict.Result, now time.Time) {
	a.record(ans, r, now)
	a.countAttempt(ans, r)
}

// trace adds the try to the request's span, if Caddy's tracing is on.
func (r *attemptRecord) trace(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.AddEvent("llm_gateway.attempt", trace.WithAttributes(
		attribute.String("llm_gateway.channel", r.channel),
		attribute.String("llm_gateway.model", r.model),
		attribute.String("llm_gateway.key", r.key),
		attribute.String("llm_gateway.verdict", r.verdict.String()),
		attribute.String("llm_gateway.reason", r.reason),
		attribute.Int("http.response.status_code", r.status),
		attribute.Float64("llm_gateway.duration", r.duration.Seconds()),
		attribute.Bool("llm_gateway.probe", r.probe),
	))
}

// record notes how a try ended.
func (a *attempt) record(ans *answer, r verdict.Result, now time.Time) {
	a.x.records = append(a.x.records, attemptRecord{
		channel:  a.ch.name,
		model:    a.model,
		key:      ans.try.key.ID(),
		status:   ans.status,
		verdict:  r.Verdict,
		reason:   r.Reason,
		probe:    a.permit.Probe(),
		duration: now.Sub(ans.try.began),
	})
	a.x.records[len(a.x.records)-1].trace(a.x.ctx)
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (r attemptRecord) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("channel", r.channel)
	enc.AddString("model", r.model)
	if r.key != "" {
		enc.AddString("key", r.key)
	}
	if r.status != 0 {
		enc.AddInt("status", r.status)
	}
	enc.AddString("verdict", r.verdict.String())
	if r.reason != "" {
		enc.AddString("reason", r.reason)
	}
	if r.probe {
		enc.AddBool("probe", true)
	}
	enc.AddDuration("duration", r.duration)
	return nil
}

// showInLogs puts the exchange into the access log entry of its request, and
// its fields into the request's placeholders. Both read it when they are used.
func (x *exchange) showInLogs() {
	// Adding a field costs something, and only access logs show it.
	if server, ok := x.ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && server.Logs != nil {
		if extra, ok := x.ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
			extra.Add(zap.Object("llm_gateway", x))
		}
	}
	if repl, ok := x.ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(x.placeholder)
	}
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (x *exchange) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("name", x.gw.name)
	if x.req != nil {
		enc.AddString("model", x.req.Model)
		enc.AddBool("stream", x.req.Stream)
	}
	if n := len(x.records); n > 0 {
		last := &x.records[n-1]
		enc.AddString("upstream_model", last.model)
		enc.AddString("channel", last.channel)
		enc.AddString("key", last.key)
	}
	enc.AddInt("attempts", len(x.records))
	enc.AddString("outcome", string(x.outcome))
	if x.refusal != nil && x.outcome == outcomeRefused {
		enc.AddString("error", x.refusal.code)
	}
	enc.AddDuration("duration", time.Since(x.began))
	return enc.AddArray("tries", zapcore.ArrayMarshalerFunc(func(enc zapcore.ArrayEncoder) error {
		for i := range x.records {
			if err := enc.AppendObject(x.records[i]); err != nil {
				return err
			}
		}
		return nil
	}))
}

// placeholder answers {http.llm_gateway.*}. The response may be about to be
// written: then the attempt under way is the one that counts.
func (x *exchange) placeholder(key string) (any, bool) {
	const prefix = "http.llm_gateway."
	if len(key) <= len(prefix) || key[:len(prefix)] != prefix {
		return nil, false
	}
	switch key[len(prefix):] {
	case "name":
		return x.gw.name, true
	case "model":
		if x.req != nil {
			return x.req.Model, true
		}
	case "stream":
		return x.req != nil && x.req.Stream, true
	case "attempts":
		return x.tries(), true
	case "upstream_model", "channel", "key":
		return x.servedBy(key[len(prefix):])
	}
	return nil, false
}

// tries returns how often the request was sent, the try under way included.
func (x *exchange) tries() int {
	n := len(x.records)
	if x.current != nil && !x.current.settled {
		n++
	}
	return n
}

func (x *exchange) servedBy(what string) (any, bool) {
	a := x.current
	if a == nil {
		return nil, false
	}
	switch what {
	case "upstream_model":
		return a.model, true
	case "channel":
		return a.ch.name, true
	}
	return a.key.ID(), true
}
