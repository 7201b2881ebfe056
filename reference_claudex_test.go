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
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// claudex is the reference of Claudex's chain: three channels one behind the
// other, each of which is asked for a model of its own.
type claudex struct{ *reference }

// claudexInterval is how long a breaker stays open, whatever its probes did.
const claudexInterval = 30 * time.Second

// anyModel is what the clients ask for; no provider knows it.
const anyModel = "claude-sonnet-4"

var (
	atGrok     = asked{"grok", "api.x.ai", "/v1/chat/completions", "Bearer xai-of-grok", "grok-4"}
	atDeepSeek = asked{"deepseek", "api.deepseek.com", "/v1/chat/completions", "Bearer sk-of-deepseek", "deepseek-chat"}
	atChatGPT  = asked{"chatgpt", "api.openai.com", "/v1/chat/completions", "Bearer sk-of-chatgpt", "gpt-4o"}
)

func TestReferenceClaudex(t *testing.T) {
	t.Setenv("XAI_API_KEY", "xai-of-grok")
	t.Setenv("DEEPSEEK_API_KEY", "sk-of-deepseek")
	t.Setenv("OPENAI_API_KEY", "sk-of-chatgpt")
	playReference(t, "claudex", func(r *reference) {
		x := &claudex{r}
		x.followsTheChain()
		x.opens()
		x.probesFail()
		x.recovers()
		x.chainMovesOn()
		x.everythingIsOut()
		x.everythingRecovers()
	})
}

// goes sends n requests, one after the other, each of which must succeed after
// just these attempts.
func (x *claudex) goes(n int, want ...asked) {
	x.t.Helper()
	for range n {
		start := len(x.since(0))
		x.served(anyModel)
		if got := x.since(start); !slices.Equal(got, want) {
			x.t.Errorf("%s: asked %+v, want %+v", clock(), got, want)
		}
	}
}

func (x *claudex) fail(channels ...string) {
	for _, name := range channels {
		x.upstreams[name].does(testrig.Fail(http.StatusServiceUnavailable, "server_error"))
	}
}

func (x *claudex) heal(channels ...string) {
	for _, name := range channels {
		x.upstreams[name].does(testrig.OK)
	}
}

func (x *claudex) followsTheChain() {
	x.goes(5, atGrok)
	x.golden("healthy", 0)
	time.Sleep(time.Minute)
	x.fail("grok", "deepseek")
	x.goes(1, atGrok, atDeepSeek, atChatGPT)
	x.golden("two-failed-over", 0)
}

func (x *claudex) opens() {
	x.heal("deepseek")
	time.Sleep(time.Second)
	x.goes(1, atGrok, atDeepSeek)
	x.golden("not-yet-open", 0)
	time.Sleep(time.Second)
	x.goes(1, atGrok, atDeepSeek)
	x.golden("open", claudexInterval)
	x.out("grok", anyModel, "open")
	x.goes(20, atDeepSeek)
}

// probesFail shows that the interval stays what it is.
func (x *claudex) probesFail() {
	for _, step := range []string{"reopened", "reopened-again", "reopened-a-third-time"} {
		x.untilDue("grok", anyModel, claudexInterval)
		x.stampede()
		x.golden(step, claudexInterval)
		x.goes(20, atDeepSeek)
	}
}

// stampede sends 50 requests at once while a probe is due, which fails.
func (x *claudex) stampede() {
	x.t.Helper()
	release := x.upstreams["grok"].hold()
	before := len(x.since(0))
	wait := x.crowd(50, anyModel)
	x.out("grok", anyModel, "probing")
	if got := x.since(before); x.among(got, atGrok) != 1 || x.among(got, atDeepSeek) != 49 || len(got) != 50 {
		x.t.Errorf("%s: of 50 requests %d went to the due grok and %d to deepseek", clock(), x.among(got, atGrok), x.among(got, atDeepSeek))
	}
	release()
	wait()
	if got := x.since(before); len(got) != 51 || x.among(got, atGrok) != 1 {
		x.t.Errorf("%s: the failed probe was not served by deepseek alone: %+v", clock(), got)
	}
}

func (x *claudex) among(list []asked, what asked) int {
	n := 0
	for _, a := range list {
		if a == what {
			n++
		}
	}
	return n
}

func (x *claudex) recovers() {
	x.untilDue("grok", anyModel, claudexInterval)
	x.golden("half-open", claudexInterval)
	x.heal("grok")
	x.goes(1, atGrok)
	x.golden("recovered", 0)
	x.goes(20, atGrok)
}

// chainMovesOn has the first two of the chain open.
func (x *claudex) chainMovesOn() {
	time.Sleep(time.Minute)
	x.fail("grok", "deepseek")
	x.goes(3, atGrok, atDeepSeek, atChatGPT)
	x.goes(20, atChatGPT)
	x.golden("two-open", claudexInterval)
}

// everythingIsOut relays what the last of the chain answers as long as it is
// asked; then the gateway itself refuses.
func (x *claudex) everythingIsOut() {
	x.fail("chatgpt")
	for range 3 {
		if w := x.chat(anyModel); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "" {
			x.t.Errorf("%s: status %d, Retry-After %q: %s", clock(), w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
	x.golden("everything-open", claudexInterval)
	time.Sleep(10 * time.Second)
	before := len(x.since(0))
	w := x.chat(anyModel)
	x.isRefused(w.Code, w.Header().Get("Retry-After"), w.Body.String())
	if n := len(x.since(before)); n != 0 {
		x.t.Errorf("%s: %d attempts while everything is open", clock(), n)
	}
}

// isRefused checks our own answer: it sends the client back when the first
// breaker lets a probe through.
func (x *claudex) isRefused(status int, after, body string) {
	x.t.Helper()
	soonest := time.Duration(1 << 62)
	for _, ch := range x.status().Gateways[0].Channels {
		soonest = min(soonest, time.Until(*ch.Breakers[0].NextProbeAt))
	}
	seconds, err := strconv.Atoi(after)
	if late := time.Duration(seconds)*time.Second - soonest; err != nil || late < -time.Millisecond || late > time.Second {
		x.t.Errorf("%s: Retry-After %q, want %s rounded up", clock(), after, soonest)
	}
	var answer struct {
		Error struct{ Code string } `json:"error"`
	}
	err = json.Unmarshal([]byte(body), &answer)
	if err != nil || status != http.StatusServiceUnavailable || answer.Error.Code != "no_channel_available" {
		x.t.Errorf("%s: status %d: %s", clock(), status, body)
	}
}

func (x *claudex) everythingRecovers() {
	x.heal("grok", "deepseek", "chatgpt")
	time.Sleep(claudexInterval)
	x.goes(1, atGrok)
	x.golden("everything-half-open-but-grok", claudexInterval)
	x.goes(20, atGrok)
	x.fail("grok")
	x.goes(1, atGrok, atDeepSeek)
	x.fail("deepseek")
	x.goes(1, atGrok, atDeepSeek, atChatGPT)
	x.golden("everything-closed", 0)
}
