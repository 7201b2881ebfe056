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
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

// listen opens a stream of events, after the one with that id if it is not empty.
func listen(t *testing.T, g *testrig.Gateway, lastID string) (*bufio.Scanner, *http.Response) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.Admin+"/llm_gateway/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return bufio.NewScanner(res.Body), res
}

// nextEvent reads up to the next event. It returns false at the end.
func nextEvent(t *testing.T, lines *bufio.Scanner) (id, kind string, e map[string]any, ok bool) {
	t.Helper()
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				t.Fatal(err)
			}
			return id, kind, e, true
		}
	}
	return "", "", nil, false
}

// The stream tells events as they happen, begins after the one that the client
// knows, and ends when the configuration changes.
func TestEventsAreStreamedLive(t *testing.T) {
	p := startPair(t)
	live, res := listen(t, p.Gateway, "")
	if kind := res.Header.Get("Content-Type"); res.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatal(res.StatusCode, kind)
	}
	act(t, p.Gateway, "a/disable", `{"reason":"one"}`)
	act(t, p.Gateway, "a/enable", `{"reason":"two"}`)
	first, kind, e, _ := nextEvent(t, live)
	if kind != "llm_channel_disabled" || e["reason"] != "one" || fmt.Sprint(e["id"]) != first {
		t.Errorf("first event: %s %s %v", first, kind, e)
	}
	second, kind, e, _ := nextEvent(t, live)
	if kind != "llm_channel_enabled" || e["reason"] != "two" {
		t.Errorf("second event: %s %v", kind, e)
	}
	resumed, _ := listen(t, p.Gateway, first)
	if id, _, _, _ := nextEvent(t, resumed); id != second {
		t.Errorf("after %s came %s, want %s", first, id, second)
	}
	ofOtherProcess, _ := listen(t, p.Gateway, "999999999")
	if id, _, _, ok := nextEvent(t, ofOtherProcess); !ok {
		t.Errorf("an id of another process: %s", id)
	}
	if _, res := listen(t, p.Gateway, "abc"); res.StatusCode != 400 {
		t.Errorf("a bad id: %d", res.StatusCode)
	}
	began := time.Now()
	if err := p.Reload(p.block("retries 1")); err != nil {
		t.Fatal(err)
	}
	if _, _, e, ok := nextEvent(t, live); ok {
		t.Errorf("after the reload: %v", e)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the stream ended after %s", took)
	}
}
