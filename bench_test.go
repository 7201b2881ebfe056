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
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// BenchmarkHandler measures the gateway beside a plain reverse_proxy, with
// client and upstream in the same process: compare the cpu-ns/op. The command in
// bench measures Caddy's process alone.
func BenchmarkHandler(b *testing.B) {
	u := testrig.NewUpstream(b)
	u.Forget()
	u.Answer(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, testrig.Completion)
	})
	g := testrig.StartQuiet(b, fmt.Sprintf(`
		handle_path /plain/* {
			reverse_proxy %s
		}
		handle_path /gateway/* {
			llm_gateway {
				channel a {
					base_url %s/v1
					key sk-bench
				}
			}
		}`, strings.TrimPrefix(u.URL, "http://"), u.URL))
	body := strings.Replace(testrig.Chat("m1"), "hi", strings.Repeat("x", 1024-len(testrig.Chat("m1"))), 1)
	for _, site := range []string{"plain", "gateway"} {
		b.Run(site, func(b *testing.B) {
			b.ReportAllocs()
			began := cpuTime()
			for b.Loop() {
				if got := g.Do(g.Request("/"+site+"/v1/chat/completions", body)); got.Status != 200 {
					b.Fatal(got.Status, got.Err)
				}
			}
			b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
