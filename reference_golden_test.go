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
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// admin asks the admin endpoint, and decodes its answer into v.
func (r *reference) admin(method, path, body string, v any) {
	r.t.Helper()
	req := httptest.NewRequest(method, "http://localhost:2019/llm_gateway/"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if err := serveAdmin(w, req); err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	dec := json.NewDecoder(w.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
}

func (r *reference) status() statusAnswer {
	r.t.Helper()
	var s statusAnswer
	r.admin(http.MethodGet, "status", "", &s)
	return s
}

// act does to a channel what an operator would.
func (r *reference) act(channel, act string) {
	r.t.Helper()
	var s channelStatus
	r.admin(http.MethodPost, "default/channels/"+channel+"/"+act, `{}`, &s)
}

func (r *reference) channel(name string) channelStatus {
	r.t.Helper()
	for _, ch := range r.status().Gateways[0].Channels {
		if ch.Name == name {
			return ch
		}
	}
	r.t.Fatalf("the status shows no channel %s", name)
	return channelStatus{}
}

// explained returns what explain says of the channel.
func (r *reference) explained(channel, model string) explainedCandidate {
	r.t.Helper()
	var e explanation
	r.admin(http.MethodGet, "explain?model="+url.QueryEscape(model), "", &e)
	for _, c := range e.Candidates {
		if c.Channel == channel {
			return c
		}
	}
	r.t.Fatalf("explain shows no channel %s", channel)
	return explainedCandidate{}
}

// out fails the test unless explain gives that reason for the channel.
func (r *reference) out(channel, model, reason string) {
	r.t.Helper()
	if c := r.explained(channel, model); c.Usable || c.Reason != reason {
		r.t.Errorf("%s: explain says %+v, want it out as %s", clock(), c, reason)
	}
}

// untilDue sleeps until a probe of the channel's only open breaker is due, and
// checks that it was not due a millisecond before. Then it sleeps on until all
// jitter is over, so that what follows happens at the same time in every run.
func (r *reference) untilDue(channel, model string, interval time.Duration) {
	r.t.Helper()
	for _, b := range r.channel(channel).Breakers {
		if b.NextProbeAt == nil {
			continue
		}
		since := *b.LastFailureAt
		time.Sleep(time.Until(b.NextProbeAt.Add(-time.Millisecond)))
		r.out(channel, model, "open")
		time.Sleep(2 * time.Millisecond)
		if c := r.explained(channel, model); !c.Probe || !c.Usable {
			r.t.Errorf("%s: explain says %+v, want a probe", clock(), c)
		}
		time.Sleep(time.Until(since.Add(interval + interval/10)))
		return
	}
	r.t.Fatalf("%s: %s waits for no probe", clock(), channel)
}

// golden compares the status with the file of the step. Of what differs from run
// to run it replaces the node's name, and the jitter: breakers that wait for a
// probe must do so for the interval within its jitter, and are shown as if there
// were none.
func (r *reference) golden(step string, interval time.Duration) {
	r.t.Helper()
	s := r.status()
	s.Node = "node"
	for i, ch := range s.Gateways[0].Channels {
		for j := range ch.Breakers {
			r.smooth(&s.Gateways[0].Channels[i], &ch.Breakers[j], interval, s.Now)
		}
	}
	got := encode(r.t, s)
	r.steps++
	file := filepath.Join(r.goldens(), fmt.Sprintf("%02d-%s.json", r.steps, step))
	if *updateFixtures {
		writeFile(r.t, file, got)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	if diff := firstDifference(string(got), string(want)); diff != "" {
		r.t.Errorf("%s: %s", file, diff)
	}
}

// smooth takes the jitter out of b.
func (r *reference) smooth(ch *channelStatus, b *breakerStatus, interval time.Duration, now time.Time) {
	r.t.Helper()
	if b.NextProbeAt == nil {
		return
	}
	settings := r.handler.gateway.channel(ch.Name).breakerSettings
	since := *b.LastFailureAt
	jitter := time.Duration(settings.Jitter * float64(interval))
	earliest, latest := interval-jitter, min(interval+jitter, settings.MaxProbeInterval)
	if wait := b.NextProbeAt.Sub(since); wait < earliest || wait > latest {
		r.t.Errorf("%s: %s/%s waits %s for a probe, want %s to %s", clock(), ch.Name, b.Model, wait, earliest, latest)
	}
	even := since.Add(interval)
	b.NextProbeAt = &even
	if b.State != "open" {
		return
	}
	shown := relative(even, now)
	jittered := b.Model + " open, probe " + b.NextProbeIn
	if !strings.Contains(ch.Summary, jittered) {
		r.t.Errorf("%s: summary %q does not say %q", clock(), ch.Summary, jittered)
	}
	ch.Summary = strings.ReplaceAll(ch.Summary, jittered, b.Model+" open, probe "+shown)
	b.NextProbeIn = shown
}

var timestamp = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`)

// encode returns s as indented JSON with all times in UTC.
func encode(t interface{ Fatal(...any) }, s statusAnswer) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "\t")
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	return timestamp.ReplaceAllFunc(buf.Bytes(), func(text []byte) []byte {
		at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(text))
		if err != nil {
			t.Fatal(err)
		}
		return []byte(at.UTC().Format(`"` + time.RFC3339Nano + `"`))
	})
}

func (r *reference) goldens() string { return filepath.Join("testdata", "reference", r.example) }

// noStrayGoldens fails the test if there are goldens that no step compares.
func (r *reference) noStrayGoldens() {
	r.t.Helper()
	files, err := os.ReadDir(r.goldens())
	if err != nil {
		r.t.Fatal(err)
	}
	if len(files) != r.steps {
		r.t.Errorf("%s has %d files for %d steps", r.goldens(), len(files), r.steps)
	}
}

func writeFile(t interface{ Fatal(...any) }, file string, content []byte) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// firstDifference tells where two texts begin to differ, "" if they are equal.
func firstDifference(got, want string) string {
	if got == want {
		return ""
	}
	lines, expected := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i, line := range lines {
		if i >= len(expected) || line != expected[i] {
			return fmt.Sprintf("line %d is %q, want %q, in\n%s", i+1, line, strings.Join(expected[i:min(i+1, len(expected))], ""), got)
		}
	}
	return "it ends too early"
}
