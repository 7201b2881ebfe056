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

package breaker_test

import (
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

var benchmarkPairs = map[string]string{"known": "gpt-4o", "unknown": "llama-3.3-70b"}

func BenchmarkAdmitSettleClosed(b *testing.B) {
	for name, model := range benchmarkPairs {
		b.Run(name, func(b *testing.B) {
			s := breaker.NewSet(breaker.DefaultSettings(), []string{"gpt-4o"})
			now := time.Now()
			var p breaker.Permit
			b.ReportAllocs()
			for b.Loop() {
				s.Admit(&p, model, now, true)
				p.Success(now)
			}
		})
	}
}

func BenchmarkAdmitSettleClosedParallel(b *testing.B) {
	for name, model := range benchmarkPairs {
		b.Run(name, func(b *testing.B) {
			s := breaker.NewSet(breaker.DefaultSettings(), []string{"gpt-4o"})
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				now := time.Now()
				var p breaker.Permit
				for pb.Next() {
					s.Admit(&p, model, now, true)
					p.Success(now)
				}
			})
		})
	}
}

func BenchmarkLook(b *testing.B) {
	s := breaker.NewSet(breaker.DefaultSettings(), []string{"gpt-4o"})
	now := time.Now()
	s.Open("held", now, time.Time{})
	for _, model := range []string{"gpt-4o", "llama-3.3-70b", "held"} {
		b.Run(model, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Look(model, now)
			}
		})
	}
}
