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
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

func init() { caddy.RegisterModule(new(eventRecorder)) }

// eventRecorder is an event handler that keeps what it gets.
type eventRecorder struct{}

var heard struct {
	sync.Mutex
	events []string
}

func (*eventRecorder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.llm_gateway_test", New: func() caddy.Module { return new(eventRecorder) }}
}

func (*eventRecorder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { d.Next(); return nil }

func (*eventRecorder) Handle(_ context.Context, e caddy.Event) error {
	heard.Lock()
	defer heard.Unlock()
	heard.events = append(heard.events, fmt.Sprint(e.Name(), " ", e.Data["channel"], " ", e.Data["from"], " ", e.Data["to"], " ", e.Data["by"]))
	return nil
}

// Each transition is told once: to whoever asks for events, and to Caddy's
// event handlers.
func TestEventsTellEachTransitionOnce(t *testing.T) {
	us := upstreams(t, 2)
	g := testrig.StartWith(t, "events {\non * llm_gateway_test\n}", gatewayBlock(channelBlock("a", us[0])+channelBlock("b", us[1], "priority 1")))
	heard.Lock()
	heard.events = nil
	heard.Unlock()
	us[0].Answer(testrig.Fail(500, ""))
	var wg sync.WaitGroup
	for range 30 { // all at once: still one transition
		wg.Go(func() { g.Chat("m1") })
	}
	wg.Wait()
	g.WaitState("a", "m1", "half_open")
	us[0].Answer(testrig.OK)
	g.Chat("m1")
	act(t, g, "a/disable", `{"reason":"maintenance"}`)
	act(t, g, "a/enable", `{"reason":"done"}`)
	want := []string{
		"llm_breaker_opened a closed open auto",
		"llm_breaker_half_open a open half_open auto",
		"llm_breaker_closed a half_open closed auto",
		"llm_channel_disabled a enabled disabled operator",
		"llm_channel_enabled a disabled enabled operator",
	}
	heard.Lock()
	got := slices.DeleteFunc(slices.Clone(heard.events), func(e string) bool { return e[:4] != "llm_" })
	heard.Unlock()
	if !slices.Equal(got, want) {
		t.Errorf("Caddy's event handlers got %q", got)
	}
	var listed []struct {
		ID                                              uint64
		At, Gateway, Channel, Model, Kind, From, To, By string
		Reason                                          string
	}
	answer := g.AdminDo(http.MethodGet, "/llm_gateway/events", "")
	if err := json.Unmarshal([]byte(answer.Body), &listed); err != nil || len(listed) < len(want) {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	for i, e := range listed[:len(want)] { // newest first
		if text := fmt.Sprint(e.Kind, " ", e.Channel, " ", e.From, " ", e.To, " ", e.By); text != want[len(want)-1-i] || e.Gateway != "default" || e.At == "" {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if e := listed[0]; e.Reason != "done" || e.ID != listed[1].ID+1 {
		t.Errorf("%+v", e)
	}
}
