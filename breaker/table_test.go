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
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

const tableSize = 1000 // of models that no config names

func name(i int) string { return fmt.Sprint("random-", i) }

// tracked returns what is tracked, by model.
func (r rig) tracked(now time.Duration) map[string]breaker.Status {
	found := map[string]breaker.Status{}
	for _, s := range r.Snapshot(at(now)) {
		found[s.Model] = s
	}
	return found
}

func TestSuccessTracksNothing(t *testing.T) {
	r := newRig(t, nil)
	r.run("unknown", 0, "SLNS")
	want(t, "tracked", len(r.Snapshot(at(0))), 2)
	r.run("unknown", 0, "F")
	want(t, "tracked", len(r.Snapshot(at(0))), 3)
}

func TestLeastRecentlyUsedIsGivenUp(t *testing.T) {
	r := newRig(t, nil)
	for i := range tableSize {
		r.run(name(i), time.Duration(i)*second, "F")
	}
	now := tableSize * second
	r.run(name(0), now, "S") // use of any kind
	r.run("one more", now, "F")
	r.run("and one more", now, "F")
	found := r.tracked(now)
	want(t, "tracked", len(found), tableSize+2)
	for _, gone := range []string{name(1), name(2)} {
		if _, ok := found[gone]; ok {
			t.Errorf("%q is still tracked", gone)
		}
	}
	for _, kept := range []string{m1, m2, name(0), name(3), "one more"} {
		if _, ok := found[kept]; !ok {
			t.Errorf("%q is no longer tracked", kept)
		}
	}
}

func TestWhatIsNotGivenUp(t *testing.T) {
	r := newRig(t, func(s *breaker.Settings) { s.FailureTTL = 0 })
	r.trip("open", 0)
	r.trip("probed", 0)
	r.trip("silent", 0)
	r.probe("silent", 5*minute) // runs out
	p := r.probe("probed", 9*minute)
	r.Open("held", at(0), time.Time{})
	r.Open("was held", at(0), at(minute))
	for i := range 2 * tableSize {
		r.run(name(i), 10*minute, "F")
	}
	found := r.tracked(10 * minute)
	want(t, "tracked", len(found), tableSize+2)
	for _, kept := range []string{"open", "probed", "held", "was held", "silent"} {
		if _, ok := found[kept]; !ok {
			t.Errorf("%q was given up for closed ones", kept)
		}
	}
	for i := range tableSize {
		r.run(name(i), 10*minute+30*second, "FFF"[found[name(i)].ConsecutiveFailures:])
	}
	found = r.tracked(10*minute + 30*second)
	for model, expected := range map[string]bool{"open": false, "was held": false, "silent": false, "probed": true, "held": true} {
		_, ok := found[model]
		want(t, model+" kept among open ones", ok, expected)
	}
	want(t, "closed by its probe", p.Success(at(10*minute+30*second)).To, breaker.Closed)
}

func TestResultsOfPairsGivenUp(t *testing.T) {
	r := newRig(t, nil)
	const model = "given up"
	var permits []*breaker.Permit
	for range 4 {
		permits = append(permits, r.admit(model, 0))
	}
	r.trip(model, 0)
	old := r.probe(model, 5*minute) // silent from now on
	for i := range tableSize {
		r.trip(name(i), 10*minute)
	}
	if _, ok := r.tracked(10 * minute)[model]; ok {
		t.Fatal("still tracked")
	}
	permits[0].Failure(at(10*minute), status503)
	permits[1].Success(at(10 * minute))
	old.Failure(at(10*minute), status503)
	if _, ok := r.tracked(10 * minute)[model]; ok {
		t.Fatal("tracked because of a stale result")
	}
	r.run(model, 10*minute, "FF")
	before := r.status(model, 10*minute)
	permits[2].Failure(at(10*minute), status503)
	permits[3].Success(at(10 * minute))
	want(t, "status", r.status(model, 10*minute), before)
}

// A permit that was admitted before its pair was given up works on the entry
// that the pair has now.
func TestSuccessFindsTheNewEntry(t *testing.T) {
	r := newRig(t, nil)
	const model = "given up"
	r.run(model, 0, "FS")
	p := r.admit(model, 0)
	for i := range tableSize {
		r.run(name(i), minute, "F")
	}
	r.run(model, 2*minute, "FF")
	p.Success(at(2 * minute))
	want(t, "streak", r.status(model, 2*minute).ConsecutiveFailures, 0)
}

func TestFullTableOfHeldPairs(t *testing.T) {
	r := newRig(t, nil)
	for i := range tableSize + 1 {
		r.Open(name(i), at(0), time.Time{}) // an operator may do so beyond the bound
	}
	want(t, "tracked", len(r.Snapshot(at(0))), tableSize+3)
	r.run("no room", 0, "FFFF")
	r.Pause("no room", at(0), at(minute))
	r.run("no room", 0, "S")
	want(t, "tracked", len(r.Snapshot(at(0))), tableSize+3)
	r.trip(m1, 0)
}

func TestNamesNoLongerWrittenFillTheTable(t *testing.T) {
	var names []string
	for i := range tableSize + 200 {
		names = append(names, name(i))
	}
	r := rig{breaker.NewSet(threshold3(), names), t}
	for i, name := range names {
		r.run(name, time.Duration(i)*second, "F")
	}
	want(t, "written", len(r.Snapshot(at(0))), tableSize+200)
	r.Configure(threshold3(), nil)
	want(t, "bounded", len(r.Snapshot(at(0))), tableSize)
	r.Configure(threshold3(), names)
	want(t, "written again", len(r.Snapshot(at(0))), tableSize+200)
	want(t, "kept", r.status(name(tableSize), 0).ConsecutiveFailures, 1)
	want(t, "given up", r.status(name(0), 0).ConsecutiveFailures, 0)
}

func TestEndlessNamesAreNotTracked(t *testing.T) {
	endless := strings.Repeat("x", 4096)
	r := newRig(t, nil)
	r.run(endless, 0, "FFFF")
	want(t, "tracked", len(r.Snapshot(at(0))), 2)
	want(t, "but can be held", r.Open(endless, at(0), time.Time{}).To, breaker.Open)
	r.refuses(endless, 0)
	r.Configure(threshold3(), []string{endless})
	r.Reset(endless, at(0))
	r.trip(endless, 0)
}

func TestMemoryStaysFlat(t *testing.T) {
	r := newRig(t, nil)
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			r.run(name(i), time.Duration(i)*time.Millisecond, []string{"F", "FFF", "FS"}[i%3])
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	names := 10_000
	if *steps > shortSteps {
		names = 50_000
	}
	fill(0, 2000)
	before := heap()
	fill(2000, names)
	if grown := int64(heap()) - int64(before); grown > 256<<10 {
		t.Errorf("grew by %d bytes", grown)
	}
	want(t, "tracked", len(r.Snapshot(at(0))), tableSize+2)
}

func TestClosedPathAllocatesNothing(t *testing.T) {
	r := newRig(t, nil)
	now := time.Now()
	r.Open("held", now, time.Time{})
	var p breaker.Permit
	for _, model := range []string{m1, "unknown"} {
		got := testing.AllocsPerRun(100, func() {
			r.Look(model, now)
			r.Admit(&p, model, now, true)
			p.Renew(now)
			p.Success(now)
		})
		want(t, model, got, 0)
	}
	want(t, "open", testing.AllocsPerRun(100, func() { r.Look("held", now); r.Admit(&p, "held", now, true) }), 0)
}

// together runs f in n goroutines at once.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-start; f(i) })
	}
	close(start)
	wg.Wait()
}

func TestOneLeaseForAllAtOnce(t *testing.T) {
	for round := range 20 {
		r := newRig(t, nil)
		r.trip(m1, 0)
		when := at(5 * minute)
		ask := r.Admit
		if round%2 == 1 {
			when, ask = at(minute), r.AdmitEarly
		}
		var leases, told atomic.Int32
		permits := make([]breaker.Permit, 200)
		together(200, func(i int) {
			ok, c := ask(&permits[i], m1, when, true)
			if ok != permits[i].Probe() {
				t.Error("admitted, but no probe")
			}
			if ok {
				leases.Add(1)
			}
			if !c.Zero() {
				told.Add(1)
			}
			r.Look(m1, when)
			r.Snapshot(when)
		})
		want(t, "leases", leases.Load(), 1)
		want(t, "changes", told.Load(), 1)
	}
}

func TestOneTripForAllAtOnce(t *testing.T) {
	for _, model := range []string{m1, "unknown"} {
		r := newRig(t, nil)
		permits := make([]breaker.Permit, 200)
		for i := range permits {
			r.Admit(&permits[i], model, at(0), true)
		}
		var told atomic.Int32
		together(200, func(i int) {
			if c := permits[i].Failure(at(0), status503); c.To == breaker.Open {
				told.Add(1)
			}
		})
		want(t, "trips", told.Load(), 1)
		want(t, "streak", r.status(model, 0).ConsecutiveFailures, 3)
	}
}

// Whoever wins, a permit settles once, and content and end do not mind in which
// order they get to the lock.
func TestSettlingAtOnce(t *testing.T) {
	for range 50 {
		r := newRig(t, nil)
		r.trip(m1, 0)
		p := r.probe(m1, 5*minute)
		var ends atomic.Int32
		together(6, func(i int) {
			var c breaker.Change
			switch i {
			case 0:
				c = p.Content(at(5 * minute))
			case 1:
				c = p.Success(at(5 * minute))
			case 2:
				c = p.Failure(at(5*minute), status503)
			case 3:
				c = p.Release(at(5 * minute))
			case 4:
				c = p.Limited(at(5*minute), at(6*minute))
			default:
				p.Renew(at(5*minute + second))
				p.Expired(at(6 * minute))
				p.SucceededSince()
			}
			if c.Probe != breaker.NoProbe {
				ends.Add(1)
			}
		})
		want(t, "results of the probe", ends.Load(), 1)
		want(t, "in flight", r.status(m1, 5*minute).ProbeInFlight, false)
	}
}

// Everything at once, for the race detector; afterwards everything must be
// usable again.
func TestEverythingAtOnce(t *testing.T) {
	r := newRig(t, nil)
	var clock atomic.Int64
	now := func() time.Time { return at(time.Duration(clock.Add(int64(100 * time.Millisecond)))) }
	together(16, func(g int) {
		var p breaker.Permit
		for i := range 300 {
			model := []string{m1, m2, name(i), name(g)}[(g+i)%4]
			r.Look(model, now())
			if ok, _ := r.Admit(&p, model, now(), i%2 == 0); ok {
				switch (g*7 + i) % 9 {
				case 0:
					p.Success(now())
				case 1:
					p.Limited(now(), now())
				case 2:
					p.Release(now())
				case 3:
					p.Content(now())
					p.Failure(now(), broke)
				default:
					p.Failure(now(), refused)
				}
			} else {
				r.AdmitEarly(&p, model, now(), true)
				p.Release(now())
			}
			switch {
			case g == 0 && i%50 == 0:
				s := threshold3()
				s.DryRun = i%100 == 0
				r.Configure(s, []string{m1, name(i)})
			case g == 1 && i%40 == 0:
				r.OpenAll(now(), now())
				r.Open(model, now(), now())
			case g == 2 && i%30 == 0:
				r.ForgetCredential(now())
				r.MakeAllDue(now())
				r.SetUnhealthy(i%60 == 0)
			case g == 3 && i%20 == 0:
				r.Reset(model, now())
				r.Snapshot(now())
				r.Pause(model, now(), now())
			}
		}
	})
	r.Configure(threshold3(), []string{m1, m2})
	r.ResetAll(now())
	for _, s := range r.Snapshot(now()) {
		p := new(breaker.Permit)
		ok, _ := r.Admit(p, s.Model, now(), true)
		want(t, s.Model, ok && !p.Probe(), true)
	}
}
