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

package llmgateway_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// series is the value of every series of the gateway, as "name{label=value,…}".
type series map[string]float64

// scrape reads the metrics from the admin endpoint.
func scrape(t *testing.T, g *testrig.Gateway) series {
	t.Helper()
	answer := g.AdminDo("GET", "/metrics", "")
	if answer.Status != 200 {
		t.Fatalf("metrics: %d %s", answer.Status, answer.Body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(answer.Body))
	if err != nil {
		t.Fatal(err)
	}
	all := make(series)
	for name, family := range families {
		if name, ok := strings.CutPrefix(name, "caddy_llm_gateway_"); ok {
			for _, m := range family.Metric {
				all[name+labelsOf(m)] = valueOf(m)
			}
		}
	}
	return all
}

func labelsOf(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.Label {
		pairs = append(pairs, l.GetName()+"="+l.GetValue())
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	}
	return m.Gauge.GetValue()
}

// since returns what has grown, and the present value of gauges.
func (s series) since(before series) series {
	grown := make(series)
	for name, value := range s {
		if strings.Contains(name, "_total{") || strings.HasPrefix(name, "first_token") {
			value -= before[name]
		}
		if value != 0 {
			grown[name] = value
		}
	}
	return grown
}

func wantSeries(t *testing.T, got, want series) {
	t.Helper()
	if !maps.Equal(got, want) {
		for name := range got {
			if got[name] != want[name] {
				t.Errorf("%s is %v, want %v", name, got[name], want[name])
			}
		}
		for name := range want {
			if _, ok := got[name]; !ok {
				t.Errorf("%s is missing, want %v", name, want[name])
			}
		}
	}
}

func TestMetricsTellWhatHappened(t *testing.T) {
	us := upstreams(t, 2)
	block := func(retries int) string {
		return gatewayBlock(fmt.Sprintf("retries %d\nbreaker {\nopen_threshold 3\nprobe_interval 1h\nmax_probe_interval 1h\n}\n", retries) +
			channelBlock("a", us[0], "models m1", "key sk-of-a") + channelBlock("b", us[1], "priority 1"))
	}
	g := testrig.Start(t, block(2))
	before := scrape(t, g)
	us[0].Answer(func(w http.ResponseWriter, r *http.Request) {
		plainJSON(`{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":3}}}`)(w, r)
	})
	g.Chat("m1")
	g.Do(g.Request("/v1/chat/completions", "{"))
	us[0].Answer(testrig.Fail(503, ""))
	us[1].Answer(testrig.OK)
	g.Do(g.Request("/v1/chat/completions", testrig.StreamChat("m1")))
	us[0].Answer(sse(openAIError))
	g.Do(g.Request("/v1/chat/completions", testrig.StreamChat("m1")))
	us[0].Answer(testrig.Reset)
	g.Do(g.Request("/v1/chat/completions", testrig.StreamChat("m1")))
	if got := g.AdminDo("POST", "/llm_gateway/default/channels/b/disable", "{}"); got.Status != 200 {
		t.Fatal(got.Status, got.Body)
	}
	g.Chat("m1")
	id := keyID("sk-of-a")
	want := series{
		"requests_total{gateway=default,model=m1,outcome=served}":                           4,
		"requests_total{gateway=default,model=,outcome=refused}":                            1,
		"requests_total{gateway=default,model=m1,outcome=refused}":                          1,
		"attempts_total{channel=a,code=200,gateway=default,model=m1,verdict=success}":       1,
		"attempts_total{channel=a,code=503,gateway=default,model=m1,verdict=failure}":       1,
		"attempts_total{channel=a,code=stream,gateway=default,model=m1,verdict=failure}":    1,
		"attempts_total{channel=a,code=transport,gateway=default,model=m1,verdict=failure}": 1,
		"attempts_total{channel=b,code=200,gateway=default,model=m1,verdict=success}":       3,
		"failovers_total{channel=a,gateway=default,reason=failure}":                         3,
		"breaker_transitions_total{channel=a,gateway=default,model=m1,to=open}":             1,
		"breaker_state{channel=a,gateway=default,model=m1}":                                 2,
		"tokens_total{channel=a,gateway=default,model=m1,type=input}":                       7,
		"tokens_total{channel=a,gateway=default,model=m1,type=cached}":                      3,
		"tokens_total{channel=a,gateway=default,model=m1,type=output}":                      5,
		"first_token_seconds{channel=b,gateway=default,model=m1}":                           3,
		"channel_disabled{channel=b,gateway=default}":                                       1,
	}
	got := scrape(t, g).since(before)
	wantSeries(t, got, want)
	if _, ok := scrape(t, g)["key_disabled{channel=a,gateway=default,key="+id+"}"]; !ok {
		t.Error("no key_disabled")
	}

	// A reload, also a refused one, loses nothing.
	for _, directives := range []string{block(3), block(-1)} {
		if err := g.Reload(directives); (err == nil) != (directives == block(3)) {
			t.Fatal(err)
		}
		wantSeries(t, scrape(t, g).since(before), want)
	}

	// The probe that closes the breaker is counted.
	us[0].Answer(testrig.OK)
	act(t, g, "a/breaker/open?model=m1", `{"for":"1ms"}`)
	g.WaitState("a", "m1", "half_open")
	if v := scrape(t, g)["breaker_state{channel=a,gateway=default,model=m1}"]; v != 1 {
		t.Errorf("half-open is %v", v)
	}
	g.Chat("m1")
	got = scrape(t, g).since(before)
	for name, value := range map[string]float64{
		"probes_total{channel=a,gateway=default,model=m1,result=closed}":             1,
		"breaker_transitions_total{channel=a,gateway=default,model=m1,to=half_open}": 1,
		"breaker_transitions_total{channel=a,gateway=default,model=m1,to=closed}":    1,
		"candidates_usable{gateway=default,model=m1}":                                1,
	} {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
}

func TestMetricsFollowTheConventions(t *testing.T) {
	p := startPair(t)
	p.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")))
	answer := p.AdminDo("GET", "/metrics", "")
	var ours []string
	for line := range strings.SplitSeq(answer.Body, "\n") {
		if strings.Contains(line, "caddy_llm_gateway_") {
			ours = append(ours, line)
		}
	}
	problems, err := promlint.New(strings.NewReader(strings.Join(ours, "\n") + "\n")).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// Clients make model names up: that must not make series up.
func TestModelLabelsAreBounded(t *testing.T) {
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u)))
	for n := range 300 {
		if n%10 == 0 {
			u.Answer(testrig.Fail(500, ""))
		} else {
			u.Answer(testrig.OK)
		}
		g.Chat(fmt.Sprintf("made-up-%d", n))
	}
	got := scrape(t, g)
	models, other := make(map[string]bool), 0.0
	for name, value := range got {
		if strings.HasPrefix(name, "requests_total{") {
			_, rest, _ := strings.Cut(name, "model=")
			label, _, _ := strings.Cut(rest, ",")
			models[label] = true
			if label == "_other" {
				other += value
			}
		}
	}
	if len(models) > 150 || other < 200 {
		t.Errorf("%d models, %v requests of others", len(models), other)
	}
	if _, ok := got["breaker_state{channel=a,gateway=default,model=_other}"]; !ok {
		t.Error("the state of the others is not shown")
	}
}

func TestStreamsThatWereLeftAreCounted(t *testing.T) {
	p := startPair(t)
	before := scrape(t, p.Gateway)
	p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
		testrig.EventStream(w, testrig.Chunk("a"))
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	res, err := p.Client.Do(p.Request("/v1/chat/completions", testrig.StreamChat("m1")).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	res.Body.Close()
	testrig.Eventually(t, "the request is counted", func() bool {
		return scrape(t, p.Gateway).since(before)["requests_total{gateway=default,model=m1,outcome=client_gone}"] == 1
	})
	if n := scrape(t, p.Gateway).since(before)["attempts_total{channel=a,code=200,gateway=default,model=m1,verdict=neutral}"]; n != 1 {
		t.Errorf("%v neutral attempts", n)
	}
	if f := p.Breaker("a", "m1").FirstToken; f != nil {
		t.Errorf("a breaker that was never made has first tokens: %v", f)
	}
}
