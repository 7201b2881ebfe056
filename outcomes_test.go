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

// outcome shows that an option does something: what is observed with it differs
// from what is observed without.
type outcome struct {
	options string // it shows, each with its block, separated by commas
	block   string // in which OPTION stands for the option; {0} and so on are upstreams
	with    string // the option, as it is written
	without string // what is written in its place, mostly nothing
	observe func(*stage) string
	want    [2]string // without, and with
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

// one and two are the blocks of a channel, and of one with another behind it.
const (
	one = "early_probe off\nchannel a {\nbase_url {0}\nkey k-of-a\nOPTION\n}"
	two = "early_probe off\nOPTION\nchannel a {\nbase_url {0}\nkey k-of-a\n}\nchannel b {\nbase_url {1}\npriority 1\n}"
	// chan2 has the option in the first of two channels.
	chan2 = "early_probe off\nchannel a {\nbase_url {0}\nkey k-of-a\nOPTION\n}\nchannel b {\nbase_url {1}\npriority 1\n}"
)

func (o outcome) observed(t *testing.T, option string) string {
	t.Helper()
	s := &stage{t: t, us: upstreams(t, 3)}
	block := strings.Replace(o.block, "OPTION", option, 1)
	for i, u := range s.us {
		block = strings.ReplaceAll(block, fmt.Sprintf("{%d}", i), u.URL)
	}
	s.block = "llm_gateway {\n" + block + "\n}"
	s.Gateway = testrig.StartQuiet(t, s.block)
	return o.observe(s)
}

// variants are the values of options that are modes of their own.
var variants = []string{
	"gateway lb_policy first", "gateway all_open best_effort", "gateway all_open wait", "gateway errors caddy",
	"gateway affinity header", "gateway affinity field", "gateway affinity prefix",
	"gateway header_timeout stream", "gateway header_timeout other", "channel header_timeout stream", "channel header_timeout other",
	"channel auth bearer", "channel auth header", "channel auth query", "channel auth passthrough", "channel auth none",
	"breaker off", "breaker dry_run", "breaker probe_timeout stream", "breaker probe_timeout other",
	"auto_disable off", "auto_disable dry_run", "auto_disable for", "auto_disable scope",
	"channel breaker off", "channel auto_disable off",
}

// Every option that the grammar accepts is shown to change something.
func TestEveryOptionHasAnOutcome(t *testing.T) {
	shown := make(map[string]bool)
	for _, o := range slices.Concat(gatewayOutcomes, channelOutcomes, breakerOutcomes, disableOutcomes) {
		if o.want[0] == o.want[1] {
			t.Errorf("%s: the same is wanted with and without it", o.options)
		}
		for option := range strings.SplitSeq(o.options, ", ") {
			shown[option] = true
		}
		t.Run(o.options, func(t *testing.T) {
			for i, option := range []string{o.without, o.with} {
				t.Run([]string{"without", "with"}[i], func(t *testing.T) {
					if got := o.observed(t, option); got != o.want[i] {
						t.Errorf("observed %q, want %q", got, o.want[i])
					}
				})
			}
		})
	}
	for _, option := range slices.Concat(llmgateway.GrammarOptions(), variants) {
		if !shown[option] {
			t.Errorf("%s: nothing shows that it has an outcome", option)
		}
	}
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

// spread returns how many of the letters are in what the requests of ten
// sessions were answered by, five each.
func (s *stage) spread(request func(session int) *http.Request) string {
	moved := 0
	for n := range 10 {
		first := s.do(request(n))
		for range 5 {
			if s.do(request(n)) != first {
				moved++
			}
		}
	}
	if moved > 0 {
		return "sessions move"
	}
	return "sessions stay"
}
