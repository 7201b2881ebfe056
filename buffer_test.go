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
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// buffer_total bounds the bodies of all requests together, also over a reload,
// and is free again when they are over.
func TestBufferTotalBoundsTheBodiesOfAllRequests(t *testing.T) {
	p := startPair(t, "max_body 30kB", "buffer_total 50kB")
	release := make(chan struct{})
	p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
		<-release
		testrig.OK(w, r)
	})
	body := strings.Replace(testrig.Chat("m1"), "hi", strings.Repeat("x", 25_000), 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := p.Do(p.Request("/v1/chat/completions", body)); got.Status != 200 {
			t.Errorf("the first got %d", got.Status)
		}
	})
	testrig.Eventually(t, "the first at a", func() bool { return p.u1.Count() == 1 })
	for range 2 {
		got := p.Do(p.Request("/v1/chat/completions", body))
		if got.Status != 503 || !strings.Contains(got.Body, "gateway_busy") || got.Header.Get("Retry-After") != "1" {
			t.Errorf("with no room left: %d %s %v", got.Status, got.Body, got.Header)
		}
		if err := p.Reload(p.block("max_body 30kB", "buffer_total 50kB", "retries 1")); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	wg.Wait()
	if got := p.Do(p.Request("/v1/chat/completions", body)); got.Status != 200 {
		t.Errorf("with room again: %d %s", got.Status, got.Body)
	}
}
