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
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/stream"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

const (
	metricsNamespace = "caddy"
	metricsSubsystem = "llm_gateway"
)

// The counters live as long as the process, so that they go on over reloads:
// every configuration has a registry of its own, to which they are added.
var (
	requestsTotal = counter("requests_total", "Requests that were answered or given up.", "gateway", "model", "outcome")
	attemptsTotal = counter("attempts_total", "Attempts at channels that have ended, one for each key that was tried.",
		"gateway", "channel", "model", "verdict", "code")
	failoversTotal   = counter("failovers_total", "Moves of a request from a channel to another one.", "gateway", "channel", "reason")
	transitionsTotal = counter("breaker_transitions_total", "State changes of circuit breakers.", "gateway", "channel", "model", "to")
	probesTotal      = counter("probes_total", "Probes of half-open breakers that have ended.", "gateway", "channel", "model", "result")
	tokensTotal      = counter("tokens_total", "Tokens as upstreams report them.", "gateway", "channel", "model", "type")
	retriesRejected  = counter("retries_rejected_total", "Retries that retry_budget did not allow.", "gateway")

	firstTokenSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "first_token_seconds",
		Help:    "Time from the start of an attempt to the first content of its stream.",
		Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80},
	}, []string{"gateway", "channel", "model"})
)

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: name, Help: help,
	}, labels)
}

// registerMetrics adds the metrics to the registry of a configuration. It is
// called for the app, and for the admin endpoint, which goes on serving the
// registry of a configuration that was refused before it had an app.
func registerMetrics(ctx caddy.Context) error {
	registry := ctx.GetMetricsRegistry()
	for _, c := range []prometheus.Collector{
		requestsTotal, attemptsTotal, failoversTotal, transitionsTotal, probesTotal, tokensTotal, retriesRejected,
		firstTokenSeconds, liveCollector{},
	} {
		if err := registry.Register(c); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return fmt.Errorf("registering metrics: %v", err)
		}
	}
	return nil
}

// otherModel stands for all models beyond those that have a label of their own.
const otherModels = "_other"

// maxModelLabels is how many names that are not written in the config become
// labels.
const maxModelLabels = 100

// modelLabels are the names from requests that have become labels. Like the
// counters they outlive a config.
var modelLabels struct {
	sync.RWMutex
	names map[string]bool
}

// modelLabel returns the label for a model, which clients may have made up. The
// first names that come get labels of their own.
func (gw *gateway) modelLabel(model string) string {
	if model == "" || gw.writtenModels[model] {
		return model
	}
	modelLabels.RLock()
	known, full := modelLabels.names[model], len(modelLabels.names) >= maxModelLabels
	modelLabels.RUnlock()
	switch {
	case known:
		return model
	case full:
		return otherModels
	}
	return newModelLabel(model)
}

func newModelLabel(model string) string {
	modelLabels.Lock()
	defer modelLabels.Unlock()
	if len(modelLabels.names) >= maxModelLabels && !modelLabels.names[model] {
		return otherModels
	}
	if modelLabels.names == nil {
		modelLabels.names = make(map[string]bool)
	}
	modelLabels.names[model] = true
	return model
}

// writtenModels returns all model names that stand in the configuration of the
// channels.
func writtenModels(channels []*channel) map[string]bool {
	names := make(map[string]bool)
	for _, ch := range channels {
		for _, name := range ch.models.listed {
			names[name] = true
		}
		for _, name := range ch.models.written() {
			names[name] = true
		}
	}
	return names
}

// countRequest counts a request that is over.
func (x *exchange) countRequest() {
	model := ""
	if x.req != nil {
		model = x.gw.modelLabel(x.req.Model)
	}
	requestsTotal.WithLabelValues(x.gw.name, model, string(x.outcome)).Inc()
}

// countAttempt counts a try that is over.
func (a *attempt) countAttempt(ans *answer, r verdict.Result) {
	gw := a.x.gw
	attemptsTotal.WithLabelValues(gw.name, a.ch.name, gw.modelLabel(a.model), r.Verdict.String(), ans.code(r)).Inc()
}

// code is the label for how an attempt ended.
func (ans *answer) code(r verdict.Result) string {
	switch {
	case ans.timedOut:
		return "timeout"
	case ans.status == 0 && r.Verdict == verdict.Failure:
		return "transport"
	case ans.status == 0:
		return "" // it was not the upstream that ended it
	case ans.status < 300 && r.Verdict != verdict.Success && r.Verdict != verdict.Neutral:
		return "stream"
	}
	return strconv.Itoa(ans.status)
}

func (x *exchange) countFailover(a *attempt, r verdict.Result) {
	failoversTotal.WithLabelValues(x.gw.name, a.ch.name, r.Verdict.String()).Inc()
}

// countTransition counts what a breaker did.
func (gw *gateway) countTransition(ch *channel, c breaker.Change) {
	model := gw.modelLabel(c.Model)
	if c.From != c.To {
		transitionsTotal.WithLabelValues(gw.name, ch.name, model, c.To.String()).Inc()
	}
	if c.Probe != breaker.NoProbe {
		probesTotal.WithLabelValues(gw.name, ch.name, model, c.Probe.String()).Inc()
	}
}

// countTokens counts what the upstream says that it has used.
func (a *attempt) countTokens(u stream.Usage) {
	if u == (stream.Usage{}) {
		return
	}
	gw := a.x.gw
	model := gw.modelLabel(a.model)
	for kind, n := range map[string]int64{"input": u.Input, "cached": u.Cached, "output": u.Output} {
		if n > 0 {
			tokensTotal.WithLabelValues(gw.name, a.ch.name, model, kind).Add(float64(n))
		}
	}
}

// firstToken notes how long the first content of a stream took.
func (a *attempt) firstToken(took time.Duration) {
	gw := a.x.gw
	firstTokenSeconds.WithLabelValues(gw.name, a.ch.name, gw.modelLabel(a.model)).Observe(took.Seconds())
	a.ch.state.firstTokens.add(a.model, took)
}

// liveCollector reads the state of the config that serves at every scrape.
type liveCollector struct{}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, metricsSubsystem, name), help, labels, nil)
}

var (
	breakerStateDesc     = gauge("breaker_state", "State of the circuit breaker: 0 closed, 1 half-open, 2 open.", "gateway", "channel", "model")
	candidatesUsableDesc = gauge("candidates_usable", "Channels that a request for the model could be sent to now.", "gateway", "model")
	channelDisabledDesc  = gauge("channel_disabled", "1 if the channel is disabled.", "gateway", "channel")
	keyDisabledDesc      = gauge("key_disabled", "1 if the key is disabled.", "gateway", "channel", "key")
	inFlightDesc         = gauge("in_flight", "Attempts under way.", "gateway", "channel")
)

// Describe implements prometheus.Collector.
func (liveCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{breakerStateDesc, candidatesUsableDesc, channelDisabledDesc, keyDisabledDesc, inFlightDesc} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (liveCollector) Collect(metrics chan<- prometheus.Metric) {
	app := liveApp()
	if app == nil {
		return
	}
	now := time.Now()
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, gw := range app.list() {
		for _, ch := range gw.channels {
			gw.collectChannel(send, ch, now)
		}
		for model := range gw.requestable() {
			send(candidatesUsableDesc, float64(gw.usable(model, now)), gw.name, model)
		}
	}
}

func (gw *gateway) collectChannel(send func(*prometheus.Desc, float64, ...string), ch *channel, now time.Time) {
	send(inFlightDesc, float64(ch.state.inFlight.Load()), gw.name, ch.name)
	send(channelDisabledDesc, oneIf(ch.state.disables.ChannelDisabled(now)), gw.name, ch.name)
	for _, id := range ch.keyIDs {
		send(keyDisabledDesc, oneIf(ch.state.disables.KeyDisabled(id, now)), gw.name, ch.name, id)
	}
	states := make(map[string]float64) // the worst of those that share a label
	for _, b := range ch.state.breakers.Snapshot(now) {
		label := gw.modelLabel(b.Model)
		states[label] = max(states[label], stateValue(b.State))
	}
	for model, value := range states {
		send(breakerStateDesc, value, gw.name, ch.name, model)
	}
}

func stateValue(s breaker.State) float64 {
	return map[breaker.State]float64{breaker.HalfOpen: 1, breaker.Open: 2}[s]
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// requestable returns the names that clients can ask for and that stand in the
// configuration.
func (gw *gateway) requestable() map[string]bool {
	names := make(map[string]bool)
	for _, ch := range gw.channels {
		for _, name := range ch.models.listed {
			names[name] = true
		}
	}
	return names
}

// usable returns how many channels a request for the model could go to now.
func (gw *gateway) usable(model string, now time.Time) (n int) {
	for _, ch := range gw.channels {
		upstream, ok := ch.models.upstream(model)
		if !ok {
			continue
		}
		c := candidate{channel: ch, model: upstream}
		if _, out := c.look(now); out.reason == usable {
			n++
		}
	}
	return n
}
