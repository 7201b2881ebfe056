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
	"fmt"
	"strings"
	"testing"

	_ "github.com/llm-gateway/caddy-llm-gateway"
	"github.com/llm-gateway/caddy-llm-gateway/credential"
	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// probeInterval is the probe interval of most tests here.
const probeInterval = "250ms"

// pair is the usual rig: channel a is preferred and asks u1, channel b stands
// behind it and asks u2.
type pair struct {
	*testrig.Gateway
	u1, u2 *testrig.Upstream
}

func startPair(t *testing.T, options ...string) *pair {
	t.Helper()
	p := &pair{u1: testrig.NewUpstream(t), u2: testrig.NewUpstream(t)}
	p.Gateway = testrig.Start(t, p.block(options...))
	return p
}

// block is the directive of the pair with more gateway options.
func (p *pair) block(options ...string) string {
	return gatewayBlock(strings.Join(options, "\n") + "\n" + fmt.Sprintf(`
		channel a {
			base_url %s
			key sk-of-a
		}
		channel b {
			base_url %s
			key sk-of-b
			priority 1
		}`, p.u1.URL, p.u2.URL))
}

// gatewayBlock is a directive with quick breakers, unless content sets its own.
func gatewayBlock(content string) string {
	if !strings.Contains(content, "breaker {") {
		content = `breaker {
			open_threshold 3
			probe_interval ` + probeInterval + `
			jitter 0
		}
		` + content
	}
	if !strings.Contains(content, "early_probe") {
		content = "early_probe off\n" + content
	}
	return "llm_gateway {\n" + content + "\n}"
}

// plainBlock is a directive with nothing but content.
func plainBlock(content string) string { return "llm_gateway {\n" + content + "\n}" }

// keyID is how a key is shown.
func keyID(secret string) string { return credential.NewSecret(secret).ID() }

// trip opens the breaker of a for the model.
func (p *pair) trip(t *testing.T, model string) {
	t.Helper()
	p.u1.Answer(testrig.Fail(500, "boom"))
	for range 3 {
		if got := p.Chat(model); got.Status != 200 {
			t.Fatalf("with b healthy: status %d: %s", got.Status, got.Body)
		}
	}
	if s := p.Breaker("a", model).State; s != "open" {
		t.Fatalf("a/%s is %s after three failures", model, s)
	}
}

// tripHalfOpen opens the breaker of a and waits until a probe is due.
func (p *pair) tripHalfOpen(t *testing.T, model string) {
	t.Helper()
	p.trip(t, model)
	p.WaitState("a", model, "half_open")
}
