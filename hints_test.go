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
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// A limit lasts as long as the provider says, within bounds; what cannot be read,
// or lies in the past, says nothing.
func TestLimitsLastAsLongAsTheProviderSays(t *testing.T) {
	second := time.Second
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	hints := []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "7", 7 * second},
		{"Retry-After", "0", second},
		{"Retry-After", "-5", second},
		{"Retry-After", "86400", time.Hour},
		{"Retry-After", strings.Repeat("9", 20), time.Hour},
		{"Retry-After", "5.5", 5*second + second/2},
		{"Retry-After", "abc", second},
		{"Retry-After", "", second},
		{"Retry-After", in(30 * second), 30 * second},
		{"Retry-After", in(-time.Minute), second},
		{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT", time.Hour},
		{"Retry-After-Ms", "4500", 4*second + second/2},
	}
	var models []string
	for i := range hints {
		models = append(models, fmt.Sprint("m", i))
	}
	u := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u, "key k", "models "+strings.Join(models, " "))))
	for i, hint := range hints {
		u.Answer(func(w http.ResponseWriter, r *http.Request) {
			w.Header()[hint.header] = []string{hint.value}
			testrig.Fail(429, "rate_limit_exceeded")(w, r)
		})
		began := time.Now()
		g.Chat(models[i])
		until := g.Breaker("a", models[i]).LimitedUntil
		if until == nil {
			t.Errorf("%s %q: no limit", hint.header, hint.value)
			continue
		}
		// Dates have whole seconds only.
		if got := until.Sub(began); got < hint.want-1100*time.Millisecond || got > hint.want+time.Second/2 {
			t.Errorf("%s %q: %s, want %s", hint.header, hint.value, got, hint.want)
		}
	}
	if ch := g.Channel("a"); ch.Health != "yellow" {
		t.Errorf("%+v", ch)
	}
}
