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

package verdict

import (
	"net/http"
	"testing"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
)

func success() Answer {
	return Answer{
		Provider: "openai", Dialect: dialect.OpenAI, Status: http.StatusOK, Model: "gpt-4o", HasModel: true, Now: now,
		Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X-Request-Id": {"req_1"}, "X-Ratelimit-Remaining-Tokens": {"0"}},
	}
}

func TestSuccessAllocatesNothing(t *testing.T) {
	a := success()
	if n := testing.AllocsPerRun(100, func() { OfAnswer(a) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSuccess(b *testing.B) {
	a := success()
	b.ReportAllocs()
	for b.Loop() {
		if OfAnswer(a).Verdict != Success {
			b.Fatal("no success")
		}
	}
}

// BenchmarkError judges errors of the usual size: found in an early row, in a
// late row, by no row, and one with details.
func BenchmarkError(b *testing.B) {
	for _, name := range []string{"anthropic/credit_balance", "openai/rate_limit", "openai/invalid_request", "gemini/quota_per_day", "openai/html_502"} {
		f := readFixture(b, "testdata/"+name+".http")[0]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				OfAnswer(f.answer)
			}
		})
	}
}

func BenchmarkStreamError(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		OfStreamError("anthropic", dialect.Anthropic, "", "overloaded_error", "Overloaded", 0, now)
	}
}
