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

package autodisable_test

import (
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
)

// benchmarkSets are sets of which most is fine.
var benchmarkSets = map[string]func(*rig){
	"clean":    func(*rig) {},
	"counting": func(r *rig) { r.fail(k2, 401) },
	"out":      func(r *rig) { r.Disable(k2, r.now, time.Time{}, "") },
}

func attempt(r *rig, began, now time.Time) bool {
	out := r.ChannelDisabled(now) || r.KeyDisabled(k1, now)
	r.Success(k1, began, now)
	return out
}

func BenchmarkAttempt(b *testing.B) {
	for name, prepare := range benchmarkSets {
		b.Run(name, func(b *testing.B) {
			r := benchmarkRig(prepare)
			b.ReportAllocs()
			for b.Loop() {
				attempt(r, r.now, r.now)
			}
		})
	}
}

func BenchmarkAttemptParallel(b *testing.B) {
	for name, prepare := range benchmarkSets {
		b.Run(name, func(b *testing.B) {
			r := benchmarkRig(prepare)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					attempt(r, r.now, r.now)
				}
			})
		})
	}
}

func BenchmarkLapse(b *testing.B) {
	for name, prepare := range benchmarkSets {
		b.Run(name, func(b *testing.B) {
			r := benchmarkRig(prepare)
			b.ReportAllocs()
			for b.Loop() {
				r.Lapse(r.now)
			}
		})
	}
}

func BenchmarkFailure(b *testing.B) {
	for name, status := range map[string]int{"listed": 401, "unlisted": 500} {
		b.Run(name, func(b *testing.B) {
			r := benchmarkRig(benchmarkSets["clean"])
			r.Configure(autodisable.Settings{Rules: []autodisable.Rule{{Status: 401, Times: 1 << 30}}}, []string{k1})
			b.ReportAllocs()
			for b.Loop() {
				r.now = r.now.Add(1)
				r.Failure(autodisable.Failure{Key: k1, Status: status, Began: r.now}, r.now, nil)
			}
		})
	}
}

func benchmarkRig(prepare func(*rig)) *rig {
	s := autodisable.Settings{Rules: []autodisable.Rule{on401(time.Hour)}}
	r := &rig{Set: autodisable.NewSet(s, []string{k1, k2, k3}), now: time.Now()}
	prepare(r)
	return r
}
