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

const m1, m2 = "m1", "m2"

// t0 has no monotonic reading: what holds for it holds for any clock.
var t0 = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

// threshold3 are the defaults, but for smaller thresholds and no jitter.
func threshold3() breaker.Settings {
	s := breaker.DefaultSettings()
	s.OpenThreshold, s.DegradeThreshold, s.Jitter = 3, 2, 0
	return s
}

var (
	status503 = breaker.Cause{Text: "status 503"}
	broke     = breaker.Cause{Text: "stream broke", Break: true}
	refused   = breaker.Cause{Text: "status 401", Credential: true}
)

// rig is a Set under test.
type rig struct {
	*breaker.Set
	t *testing.T
}

func newRig(t *testing.T, change func(*breaker.Settings)) rig {
	t.Helper()
	s := threshold3()
	if change != nil {
		change(&s)
	}
	return rig{breaker.NewSet(s, []string{m1, m2}), t}
}

// admit returns the permit of a request that must be let in.
func (r rig) admit(model string, d time.Duration) *breaker.Permit {
	r.t.Helper()
	p := new(breaker.Permit)
	if ok, _ := r.Admit(p, model, at(d), true); !ok {
		r.t.Fatalf("%q was not admitted at %v", model, d)
	}
	return p
}

// probe is admit for a request that must be the probe.
func (r rig) probe(model string, d time.Duration) *breaker.Permit {
	r.t.Helper()
	p := r.admit(model, d)
	if !p.Probe() {
		r.t.Fatalf("%q admitted at %v is no probe", model, d)
	}
	return p
}

func (r rig) early(model string, d time.Duration) *breaker.Permit {
	r.t.Helper()
	p := new(breaker.Permit)
	if ok, _ := r.AdmitEarly(p, model, at(d), true); !ok || !p.Probe() {
		r.t.Fatalf("%q got no early probe at %v", model, d)
	}
	return p
}

func (r rig) refuses(model string, d time.Duration) {
	r.t.Helper()
	if ok, _ := r.Admit(new(breaker.Permit), model, at(d), true); ok {
		r.t.Fatalf("%q was admitted at %v", model, d)
	}
}

func (r rig) refusesEarly(model string, d time.Duration) {
	r.t.Helper()
	if r.Look(model, at(d)).Early {
		r.t.Errorf("%q at %v: Look promises an early probe", model, d)
	}
	if ok, _ := r.AdmitEarly(new(breaker.Permit), model, at(d), true); ok {
		r.t.Fatalf("%q got an early probe at %v", model, d)
	}
}

// run lets one request after the other succeed (S), fail (F), be limited (L) or
// say nothing (N), all at d.
func (r rig) run(model string, d time.Duration, results string) (last breaker.Change) {
	r.t.Helper()
	for _, result := range results {
		p := r.admit(model, d)
		switch result {
		case 'S':
			last = p.Success(at(d))
		case 'F':
			last = p.Failure(at(d), status503)
		case 'L':
			last = p.Limited(at(d), at(d+time.Minute))
		case 'N':
			last = p.Release(at(d))
		}
	}
	return last
}

// trip opens the model's breaker at d.
func (r rig) trip(model string, d time.Duration) {
	r.t.Helper()
	if c := r.run(model, d, "FFF"); c.To != breaker.Open {
		r.t.Fatalf("three failures changed %+v", c)
	}
}

func (r rig) status(model string, d time.Duration) breaker.Status {
	r.t.Helper()
	for _, s := range r.Snapshot(at(d)) {
		if s.Model == model {
			return s
		}
	}
	r.t.Fatalf("no status of %q", model)
	return breaker.Status{}
}

func (r rig) wantState(model string, d time.Duration, want breaker.State) {
	r.t.Helper()
	if got := r.Look(model, at(d)).State; got != want {
		r.t.Fatalf("%q at %v is %v, want %v", model, d, got, want)
	}
}

func (r rig) wantNext(model string, d, next time.Duration) {
	r.t.Helper()
	if got := r.status(model, d).NextProbeAt; !got.Equal(at(next)) {
		r.t.Fatalf("next probe at %v, want %v", got.Sub(t0), next)
	}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}
