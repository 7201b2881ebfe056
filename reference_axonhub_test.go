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
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/credential"
	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// The two models of the example, as clients ask for them.
const (
	gpt4o     = "gpt-4o"
	gpt4oMini = "gpt-4o-mini"
)

// axonHub is the reference of AxonHub's rules: two channels of equal priority,
// the second of which works all the time.
type axonHub struct {
	*reference
	first *virtualUpstream
}

func TestReferenceAxonHub(t *testing.T) {
	t.Setenv("FIRST_KEY", "sk-of-first")
	t.Setenv("SECOND_KEY", "sk-of-second")
	playReference(t, "axonhub", func(r *reference) {
		x := &axonHub{r, r.upstreams["first"]}
		x.healthy()
		x.degrades()
		x.opens()
		x.probesFail()
		x.probeSucceeds()
		x.refusedKeyIsDisabled()
		x.failingChannelIsDisabled()
		x.limitedKeyIsDisabled()
		x.everythingIsOut()
		x.burstCountsOnce()
	})
}

// fails sends requests until n of them failed at the first channel, a second
// apart; an error counts for auto-disable only if its attempt began after the
// last one that did. The clients are served by the second channel.
func (x *axonHub) fails(n int, apart time.Duration) {
	x.t.Helper()
	for range n {
		x.reach("first", gpt4o)
		time.Sleep(apart)
	}
}

// bothServe sends requests until both channels served some.
func (x *axonHub) bothServe(model string) {
	x.t.Helper()
	x.reach("first", model)
	x.reach("second", model)
}

// share checks which part of the requests goes to the first channel. They are
// answered with the client's own fault, which moves no breaker.
func (x *axonHub) share(want float64) {
	x.t.Helper()
	const requests, tolerance = 1000, 0.08 // 5 standard deviations or more
	for _, u := range x.upstreams {
		defer u.does(u.doing())
		u.does(testrig.Fail(http.StatusBadRequest, "context_length_exceeded"))
	}
	start, first := len(x.since(0)), x.count("first")
	for range requests {
		if w := x.chat(gpt4o); w.Code != http.StatusBadRequest {
			x.t.Fatalf("status %d", w.Code)
		}
	}
	if n := len(x.since(start)); n != requests {
		x.t.Errorf("%d attempts for %d requests", n, requests)
	}
	if got := float64(x.count("first")-first) / requests; math.Abs(got-want) > tolerance {
		x.t.Errorf("%s: %.3f of the requests go to the first channel, want %.3f", clock(), got, want)
	}
}

func (x *axonHub) healthy() {
	for _, m := range []string{gpt4o, gpt4oMini} {
		x.bothServe(m)
	}
	for _, a := range x.since(0) {
		want := asked{"first", "api.openai.com", "/v1/chat/completions", "Bearer sk-of-first", a.model}
		if a.channel == "second" {
			want = asked{"second", "openrouter.ai", "/api/v1/chat/completions", "Bearer sk-of-second", a.model}
		}
		if a != want {
			x.t.Errorf("asked %+v, want %+v", a, want)
		}
	}
	x.golden("healthy", 0)
	x.share(0.5)
}

func (x *axonHub) degrades() {
	time.Sleep(time.Minute)
	x.first.does(testrig.Fail(http.StatusServiceUnavailable, "server_error"))
	x.fails(2, time.Second)
	x.golden("not-yet-degraded", 0)
	x.fails(1, time.Second)
	x.golden("degraded", 0)
	x.share(0.3 / 1.3)
}

func (x *axonHub) opens() {
	x.fails(1, time.Second)
	x.golden("not-yet-open", 0)
	x.fails(1, time.Second)
	x.golden("open", 5*time.Minute)
	x.out("first", gpt4o, "open")
	x.spares("first", gpt4o)

	x.first.does(testrig.OK)
	time.Sleep(time.Minute)
	x.bothServe(gpt4oMini)
	x.spares("first", gpt4o)
	x.golden("other-model-untouched", 5*time.Minute)
}

func (x *axonHub) probesFail() {
	x.untilDue("first", gpt4o, 5*time.Minute)
	x.golden("half-open", 5*time.Minute)
	wait := x.stampede()
	x.golden("probing", 5*time.Minute)
	wait()
	x.golden("reopened-for-10m", 10*time.Minute)
	x.probeFailsAfter(10*time.Minute, "reopened-for-20m", 20*time.Minute)
	x.probeFailsAfter(20*time.Minute, "reopened-for-40m", 40*time.Minute)
	x.probeFailsAfter(40*time.Minute, "reopened-for-40m-again", 40*time.Minute)
}

func (x *axonHub) probeFailsAfter(interval time.Duration, step string, next time.Duration) {
	x.t.Helper()
	x.spares("first", gpt4o)
	x.untilDue("first", gpt4o, interval)
	x.stampede()()
	x.golden(step, next)
}

// stampede sends 50 requests at once while a probe is due, and again in the
// unlikely case that the weights sent none of them to the first channel. The
// probe is held until wait is called, then it fails, and its client is served by
// the second channel.
func (x *axonHub) stampede() (wait func()) {
	x.t.Helper()
	x.first.does(testrig.Fail(http.StatusServiceUnavailable, "server_error"))
	release := x.first.hold()
	before := x.count("first")
	var waits []func()
	for x.count("first") == before {
		waits = append(waits, x.crowd(50, gpt4o))
	}
	if n := x.count("first") - before; n != 1 {
		x.t.Errorf("%s: %d requests probe at a time", clock(), n)
	}
	x.out("first", gpt4o, "probing")
	return func() {
		release()
		for _, wait := range waits {
			wait()
		}
	}
}

func (x *axonHub) probeSucceeds() {
	x.untilDue("first", gpt4o, 40*time.Minute)
	x.first.does(testrig.OK)
	x.bothServe(gpt4o)
	x.golden("closed", 0)
	x.share(0.5)
}

// refusedKeyIsDisabled leaves the key's pause time to end between its errors.
func (x *axonHub) refusedKeyIsDisabled() {
	time.Sleep(time.Minute)
	x.first.does(testrig.Fail(http.StatusUnauthorized, "invalid_api_key"))
	x.fails(2, 10*time.Second)
	x.golden("401-twice", 0)
	x.fails(1, 10*time.Second)
	x.golden("401-disabled-the-key", 0)
	x.first.does(testrig.OK)
	x.out("first", gpt4o, "disabled")
	x.spares("first", gpt4o)
	time.Sleep(6 * time.Hour)
	x.out("first", gpt4o, "disabled")
	x.spares("first", gpt4o)
	x.golden("key-disabled-6h-later", 0)
	x.enableKey("401-key-enabled")
}

// enableKey lifts the disable as an operator would, after which the channel is
// as good as new.
func (x *axonHub) enableKey(step string) {
	x.t.Helper()
	x.act("first", "keys/"+credential.NewSecret("sk-of-first").ID()+"/enable")
	x.golden(step, 0)
	x.first.does(testrig.OK)
	x.bothServe(gpt4o)
}

// failingChannelIsDisabled meets both limits at once: the breaker opens when the
// channel is disabled, and is not probed before an operator acts.
func (x *axonHub) failingChannelIsDisabled() {
	time.Sleep(time.Minute)
	x.first.does(testrig.Fail(http.StatusInternalServerError, "server_error"))
	x.fails(4, time.Second)
	x.golden("500-four-times", 0)
	x.fails(1, time.Second)
	x.golden("500-disabled-the-channel", 5*time.Minute)
	x.first.does(testrig.OK)
	for range 6 {
		x.out("first", gpt4o, "disabled")
		x.out("first", gpt4oMini, "disabled")
		x.spares("first", gpt4o)
		x.spares("first", gpt4oMini)
		time.Sleep(time.Hour)
	}
	x.golden("channel-disabled-6h-later", 5*time.Minute)
	x.act("first", "enable")
	x.golden("500-channel-enabled", 5*time.Minute)
	x.bothServe(gpt4oMini)
	x.bothServe(gpt4o)
	x.golden("channel-serves-again", 0)
}

func (x *axonHub) limitedKeyIsDisabled() {
	time.Sleep(time.Minute)
	x.first.does(testrig.Fail(http.StatusTooManyRequests, "rate_limit_exceeded"))
	x.fails(4, time.Minute)
	x.reach("first", gpt4o)
	x.golden("429-disabled-the-key", 0)
	x.first.does(testrig.OK)
	time.Sleep(6 * time.Hour)
	x.out("first", gpt4o, "disabled")
	x.spares("first", gpt4o)
	x.enableKey("429-key-enabled")
}

// everythingIsOut has both channels open, neither of which is probed before its
// time.
func (x *axonHub) everythingIsOut() {
	time.Sleep(time.Minute)
	for _, u := range x.upstreams {
		u.does(testrig.Fail(http.StatusServiceUnavailable, "server_error"))
	}
	for range 5 {
		x.chat(gpt4o)
	}
	x.golden("both-open", 5*time.Minute)
	time.Sleep(time.Minute)
	attempts := len(x.since(0))
	w := x.chat(gpt4o)
	if after := w.Header().Get("Retry-After"); w.Code != http.StatusServiceUnavailable || after != "120" {
		x.t.Errorf("%s: status %d, Retry-After %q: %s", clock(), w.Code, after, w.Body)
	}
	if n := len(x.since(attempts)); n > 0 {
		x.t.Errorf("%s: %d attempts while everything is open", clock(), n)
	}
	time.Sleep(5 * time.Minute)
	for _, u := range x.upstreams {
		u.does(testrig.OK)
	}
	x.bothServe(gpt4o)
	x.golden("both-closed", 0)
}

// burstCountsOnce sends requests at once, many of which fail: as their attempts
// began before the first of these errors was counted, the others are not.
func (x *axonHub) burstCountsOnce() {
	time.Sleep(time.Minute)
	before := x.count("first")
	x.first.does(testrig.Fail(http.StatusTooManyRequests, "rate_limit_exceeded"))
	release := x.first.hold()
	wait := x.crowd(50, gpt4o)
	if n := x.count("first") - before; n < 5 {
		x.t.Errorf("%d of 50 requests got to the first channel, too few to tell", n)
	}
	release()
	wait()
	key := x.channel("first").Keys[0]
	if key.Disabled != nil || key.Errors["429"] != 1 {
		x.t.Errorf("after one burst: %+v", key)
	}
}
