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
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	llmgateway "github.com/llm-gateway/caddy-llm-gateway"
	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// outcome shows that an option does something: with it something else is observed
// than without it, while nothing else differs.
type outcome struct {
	// The option after its block, and the values shown: "channel auth header|query".
	// Those of the blocks shared, breaker and auto_disable may stand at the gateway
	// and at a channel: they are observed at both, and at both at once, where the
	// channel's must win if it is written.
	options string

	block   string // of the gateway. OPTION stands for the option, CHANNEL for that of channel a
	also    string // in the gateway's breaker or auto_disable block, beside the option
	with    string // the option, as it is written
	without string // another value of it; empty if nothing is written

	observe func(*stage) string
	want    [2]string // without, and with

	// A channel cannot take back what the gateway's block says here.
	inherited bool
}

// twice holds the blocks whose options stand at the gateway and at channels.
var twice = []string{"shared", "breaker", "auto_disable"}

// where returns the block and the option's name.
func (o outcome) where() (block, name string) {
	words := strings.Fields(o.options)
	return words[0], words[1]
}

// shown returns what of the grammar it shows.
func (o outcome) shown() []string {
	words := strings.Fields(o.options)
	blocks := words[:1]
	if words[0] == "shared" {
		blocks = []string{"gateway", "channel"}
	}
	var shown []string
	for _, block := range blocks {
		option := block + " " + words[1]
		shown = append(shown, option)
		for _, values := range words[2:] {
			for value := range strings.SplitSeq(values, "|") {
				shown = append(shown, option+" "+value)
			}
		}
	}
	return shown
}

// trial is one gateway of an outcome.
type trial struct{ name, gateway, channel, want string }

func (o outcome) trials() []trial {
	block, _ := o.where()
	if !slices.Contains(twice, block) {
		return []trial{{"without", o.without, "", o.want[0]}, {"with", o.with, "", o.want[1]}}
	}
	at := func(also, option string) string {
		if block == "shared" {
			return option
		}
		return block + " {\n" + also + "\n" + option + "\n}"
	}
	trials := []trial{
		{"without", at(o.also, o.without), "", o.want[0]},
		{"at the gateway", at(o.also, o.with), "", o.want[1]},
		{"at the channel", at(o.also, o.without), at("", o.with), o.want[1]},
	}
	if block != "shared" {
		trials = append(trials, trial{"not said by the channel's block", at(o.also, o.with), at("", ""), o.want[1]})
	}
	switch back := (trial{"taken back", at(o.also, o.with), at("", o.without), o.want[0]}); {
	case o.without == "": // there is nothing to write
	case o.inherited:
		back.want = o.want[1]
		fallthrough
	default:
		trials = append(trials, back)
	}
	return trials
}

func (o outcome) run(t *testing.T) {
	_, name := o.where()
	for _, written := range []string{o.with, o.without} {
		if !isStatement(written, name) && written != "" {
			t.Errorf("more or less than the option is written: %q", written)
		}
	}
	if o.want[0] == o.want[1] {
		t.Error("the same is wanted with and without it")
	}
	for _, c := range o.trials() {
		t.Run(c.name, func(t *testing.T) {
			if got := o.observe(o.stage(t, c)); got != c.want {
				t.Errorf("observed %q, want %q", got, c.want)
			}
		})
	}
}

// isStatement reports whether s is one option of that name, with its block if it
// has one.
func isStatement(s, name string) bool {
	statements, depth := 0, 0
	for line := range strings.Lines(s) {
		if depth == 0 {
			if statements++; strings.Fields(line)[0] != name {
				return false
			}
		}
		depth += strings.Count(line, "{") - strings.Count(line, "}")
	}
	return statements == 1
}

func (o outcome) stage(t *testing.T, c trial) *stage {
	t.Helper()
	s := &stage{t: t, us: upstreams(t, 3)}
	if !strings.Contains(o.block, "OPTION") || c.channel != "" && !strings.Contains(o.block, "CHANNEL") {
		t.Fatalf("no place for the option in %s", o.block)
	}
	block := strings.NewReplacer("OPTION", c.gateway, "CHANNEL", c.channel).Replace(o.block)
	for i, u := range s.us {
		block = strings.ReplaceAll(block, fmt.Sprintf("{%d}", i), u.URL)
	}
	s.block = plainBlock(block)
	s.Gateway = testrig.StartQuiet(t, s.block)
	return s
}

// Every option that the grammar accepts is shown to change something, and so is
// each of its values.
func TestEveryOptionHasAnOutcome(t *testing.T) {
	shown := make(map[string]bool)
	for _, o := range slices.Concat(gatewayOutcomes, policyOutcomes, sharedOutcomes, channelOutcomes, breakerOutcomes, disableOutcomes) {
		for _, option := range o.shown() {
			shown[option] = true
		}
		t.Run(o.options, o.run)
	}
	for _, option := range llmgateway.GrammarOptions() {
		if !shown[option] {
			t.Errorf("%s: nothing shows that it has an outcome", option)
		}
		delete(shown, option)
	}
	for option := range shown {
		t.Errorf("%s: an outcome of what the grammar does not accept", option)
	}
}

// stage is a gateway with its upstreams, which are called a, b and c.
type stage struct {
	*testrig.Gateway
	t     *testing.T
	us    []*testrig.Upstream
	block string
}

// answers sets what the upstreams answer, in their order.
func (s *stage) answers(handlers ...http.HandlerFunc) {
	for i, h := range handlers {
		s.us[i].Answer(h)
	}
}

// asked does what f does and returns the letters of the upstreams that were
// asked.
func (s *stage) asked(f func()) string {
	var before []int
	for _, u := range s.us {
		before = append(before, u.Count())
	}
	f()
	letters := ""
	for i, u := range s.us {
		letters += strings.Repeat(string(rune('a'+i)), u.Count()-before[i])
	}
	return letters
}

// do sends a request and returns the status and who was asked, as in "200 ab".
func (s *stage) do(r *http.Request) string {
	var got testrig.Answer
	letters := s.asked(func() { got = s.Do(r) })
	status := fmt.Sprint(got.Status)
	if got.Err != nil {
		status += " cut"
	}
	return strings.TrimSpace(status + " " + letters)
}

func (s *stage) post(body string) string { return s.do(s.Request("/v1/chat/completions", body)) }
func (s *stage) chat() string            { return s.post(testrig.Chat("m1")) }
func (s *stage) stream() string          { return s.post(testrig.StreamChat("m1")) }

// times repeats what f does and returns its last observation.
func (s *stage) times(n int, f func() string) (last string) {
	for range n {
		last = f()
	}
	return last
}

// settles repeats what f does until want is observed, or it has been tried for
// long enough.
func (s *stage) settles(want string, f func() string) (last string) {
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if last = f(); last == want {
			break
		}
	}
	return last
}

// hold makes the first n upstreams answer only once release is called.
func (s *stage) hold(n int) (release func()) {
	held := make(chan struct{})
	for _, u := range s.us[:n] {
		u.Answer(func(w http.ResponseWriter, r *http.Request) { <-held; testrig.OK(w, r) })
	}
	return func() { close(held) }
}

// arrive sends a request and waits until an upstream has it.
func (s *stage) arrive() {
	count := func() int { return s.us[0].Count() + s.us[1].Count() + s.us[2].Count() }
	before := count()
	go s.Chat("m1")
	testrig.Eventually(s.t, "the request is there", func() bool { return count() > before })
}

// leave sends a request whose client leaves after a time, and returns how many
// failures that counts as.
func (s *stage) leave(after time.Duration) string {
	s.answers(testrig.Hang)
	ctx, cancel := context.WithTimeout(s.t.Context(), after)
	defer cancel()
	s.Do(s.Request("/v1/chat/completions", testrig.Chat("m1")).WithContext(ctx))
	testrig.Eventually(s.t, "nothing in flight", func() bool { return s.InFlight() == 0 })
	return fmt.Sprint(s.Breaker("a", "m1").ConsecutiveFailures)
}

// later answers as h does, but only after a time.
func later(d time.Duration, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			h(w, r)
		case <-r.Context().Done():
		}
	}
}

var (
	ok   http.HandlerFunc = testrig.OK
	fail                  = testrig.Fail(500, "")
)

// chats is what most outcomes observe: who is asked for an answer, and which one
// the client gets.
func chats(s *stage) string { return s.chat() }

// chatsWhen is that while the upstreams answer like this.
func chatsWhen(a ...http.HandlerFunc) func(*stage) string {
	return func(s *stage) string { s.answers(a...); return s.chat() }
}

func streamsWhen(a http.HandlerFunc) func(*stage) string {
	return func(s *stage) string { s.answers(a); return s.stream() }
}

// recovers observes whether a request is served soon after one has failed.
func recovers(s *stage) string {
	s.answers(fail)
	s.chat()
	s.answers(ok)
	return s.settles("200 a", s.chat)
}
