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
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/request"
)

// provision returns the gateway of a configuration, which nobody serves.
func provision(t testing.TB, config string) *gateway {
	t.Helper()
	// Modules find their apps by the running config, so there has to be one.
	quiet := &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)}}}}
	if err := caddy.Run(&caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}, Logging: quiet}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(caddy.ActiveContext())
	t.Cleanup(func() {
		cancel()
		caddy.Stop()
	})
	h := new(Handler)
	if err := json.Unmarshal([]byte(config), h); err != nil {
		t.Fatal(err)
	}
	if err := h.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	return h.gateway
}

// asking returns an exchange for a chat with that model.
func (gw *gateway) asking(t testing.TB, model string, header ...string) *exchange {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(fmt.Sprintf(`{"model":%q}`, model)))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	q, err := request.Read(r, request.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	x := newExchange(gw, r)
	x.admit(q)
	return x
}

// fail settles n requests of the pair as failures.
func (ch *channel) fail(model string, n int, now time.Time) {
	for range n {
		var p breaker.Permit
		if ok, _ := ch.state.breakers.Admit(&p, model, now, false); ok {
			p.Failure(now, breaker.Cause{Text: "scripted"})
		}
	}
}

func channelsJSON(n int, each func(i int) string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"name":"c%d","base_url":"http://127.0.0.1:%d"%s}`, i, 1000+i, each(i)))
	}
	return strings.Join(all, ",")
}

// draws returns how often each channel is chosen for the model.
func (gw *gateway) draws(t testing.TB, model string, n int, now time.Time) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	x := gw.asking(t, model)
	for range n {
		counts[x.choose(now).name]++
	}
	return counts
}

// Weights are shares: of full, degraded and half-open channels alike.
func TestSharesFollowEffectiveWeights(t *testing.T) {
	const draws = 10_000
	gw := provision(t, `{"early_probe":0,"breaker":{"jitter":0,"half_open_weight":0.5},"channels":[`+
		channelsJSON(4, func(i int) string { return fmt.Sprintf(`,"weight":%d`, i+1) })+`]}`)
	now := time.Now()
	degraded, halfOpen := gw.channel("c1"), gw.channel("c2")
	degraded.fail("m", 3, now)
	halfOpen.fail("m", 5, now.Add(-5*time.Minute))
	weights := map[string]float64{"c0": 1, "c1": 2 * 0.3, "c2": 3 * 0.5, "c3": 4}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	counts := gw.draws(t, "m", draws, now)
	for name, w := range weights {
		if got, want := float64(counts[name])/draws, w/total; math.Abs(got-want) > 0.03 {
			t.Errorf("%s has a share of %.3f, want %.3f", name, got, want)
		}
	}
	for name, n := range gw.draws(t, "other", draws, now) {
		if got, want := float64(n)/draws, gw.channel(name).weight/10; math.Abs(got-want) > 0.03 {
			t.Errorf("of another model %s has a share of %.3f, want %.3f", name, got, want)
		}
	}
}

// Large groups are drawn from without looking at all of them: the shares are the
// same, also where most are out.
func TestSharesOfALargeGroup(t *testing.T) {
	const draws = 20_000
	for _, out := range []int{0, 30, 37} {
		t.Run(fmt.Sprint(out), func(t *testing.T) {
			gw := provision(t, `{"early_probe":0,"breaker":{"jitter":0},"channels":[`+
				channelsJSON(40, func(i int) string { return fmt.Sprintf(`,"weight":%d`, 1+i%3) })+`]}`)
			now, total := time.Now(), 0.0
			weights := make(map[string]float64)
			for i, ch := range gw.channels {
				weight := ch.weight
				switch {
				case i < out:
					ch.fail("m", 5, now)
					continue
				case i%2 == 0:
					ch.fail("m", 3, now)
					weight *= 0.3
				}
				weights[ch.name], total = weight, total+weight
			}
			counts := gw.draws(t, "m", draws, now)
			for name, n := range counts {
				if got, want := float64(n)/draws, weights[name]/total; math.Abs(got-want) > 0.015 {
					t.Errorf("%s has a share of %.3f, want %.3f", name, got, want)
				}
			}
			if len(counts) != len(weights) {
				t.Errorf("%d channels were drawn, want %d", len(counts), len(weights))
			}
		})
	}
}

func BenchmarkWeightedChoice(b *testing.B) {
	for _, out := range []int{0, 90} {
		b.Run(fmt.Sprintf("out=%d", out), func(b *testing.B) {
			gw := provision(b, `{"channels":[`+channelsJSON(100, func(int) string { return `,"keys":["k"]` })+`]}`)
			now := time.Now()
			for i, ch := range gw.channels {
				failures := 1 + i%3
				if i < out {
					failures = 5
				}
				for model := range 10 { // 1,000 tracked pairs
					ch.fail(fmt.Sprintf("m%d", model), failures, now)
				}
			}
			x := gw.asking(b, "m5")
			b.ReportAllocs()
			for b.Loop() {
				if x.choose(now) == nil {
					b.Fatal("nobody is usable")
				}
			}
		})
	}
}
