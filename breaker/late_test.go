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
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

func TestBurstTripsOnce(t *testing.T) {
	r := newRig(t, nil)
	var permits []*breaker.Permit
	for range 90 {
		permits = append(permits, r.admit(m1, 0))
	}
	changes := 0
	for i, p := range permits {
		if !p.Failure(at(time.Duration(i)*second), status503).Zero() {
			changes++
		}
	}
	want(t, "changes", changes, 1)
	r.wantNext(m1, 2*minute, 2*second+5*minute)
	want(t, "streak", r.status(m1, 2*minute).ConsecutiveFailures, 3)
}

// late are states of a breaker that a request may come back to which was
// admitted before.
var late = map[string]func(rig){
	"open":            func(r rig) { r.trip(m1, 0) },
	"half-open":       func(r rig) { r.trip(m1, -10*minute) },
	"probing":         func(r rig) { r.trip(m1, -10*minute); r.probe(m1, 0) },
	"expired":         func(r rig) { r.trip(m1, -10*minute); r.probe(m1, -4*minute) },
	"reopened":        func(r rig) { r.trip(m1, -10*minute); r.run(m1, 0, "F") },
	"closed again":    func(r rig) { r.trip(m1, -10*minute); r.run(m1, 0, "SFF") },
	"on trial":        func(r rig) { r.trip(m1, -10*minute); r.probe(m1, 0).Content(at(0)) },
	"held":            func(r rig) { r.Open(m1, at(0), time.Time{}) },
	"all held":        func(r rig) { r.OpenAll(at(0), at(minute)) },
	"reset":           func(r rig) { r.run(m1, 0, "FF"); r.Reset(m1, at(0)); r.run(m1, 0, "FF") },
	"all reset":       func(r rig) { r.run(m1, 0, "FF"); r.ResetAll(at(0)); r.run(m1, 0, "FF") },
	"new credentials": func(r rig) { r.admit(m1, 0).Failure(at(0), refused); r.ForgetCredential(at(0)); r.run(m1, 0, "FF") },
}

func TestLateResultsChangeNothing(t *testing.T) {
	for state, prepare := range late {
		for result, settle := range settlings {
			t.Run(result+" when "+state, func(t *testing.T) {
				r := newRig(t, nil)
				p := r.admit(m1, -20*minute)
				prepare(r)
				before, reset := r.status(m1, second), r.status(m1, time.Hour)
				want(t, "change", settle(p, at(second)), breaker.Change{})
				want(t, "status", r.status(m1, second), before)
				want(t, "status in an hour", r.status(m1, time.Hour), reset)
			})
		}
	}
}

func TestLateResultsOfProbesChangeNothing(t *testing.T) {
	for name, void := range map[string]func(rig){
		"reset":     func(r rig) { r.Reset(m1, at(0)) },
		"all reset": func(r rig) { r.ResetAll(at(0)) },
		"held":      func(r rig) { r.Open(m1, at(0), at(second)) },
		"all held":  func(r rig) { r.OpenAll(at(0), time.Time{}) },
		"expired":   func(r rig) { r.refuses(m1, 2*minute) },
		"next probe": func(r rig) {
			r.probe(m1, 12*minute)
		},
		"opened again": func(r rig) { r.Reset(m1, at(0)); r.trip(m1, 0) },
	} {
		for result, settle := range settlings {
			for _, content := range []bool{false, true} {
				t.Run(fmt.Sprint(result, " after ", name, " content ", content), func(t *testing.T) {
					r := newRig(t, nil)
					r.trip(m1, -5*minute)
					p := r.probe(m1, 0)
					if content {
						if name == "expired" || name == "next probe" {
							t.Skip("a breaker closed by content knows no lease")
						}
						p.Content(at(0))
					}
					void(r)
					before := r.status(m1, 12*minute)
					want(t, "change", settle(p, at(12*minute)), breaker.Change{})
					want(t, "status", r.status(m1, 12*minute), before)
				})
			}
		}
	}
}

// A pair gets its entry with its first failure: results of requests admitted
// before are fresh until it opens.
func TestResultsFromBeforeTheFirstFailure(t *testing.T) {
	r := newRig(t, nil)
	const model = "never seen"
	var permits []*breaker.Permit
	for range 5 {
		permits = append(permits, r.admit(model, 0))
	}
	r.trip(m1, 0) // other pairs' transitions do not matter
	permits[0].Failure(at(second), status503)
	permits[1].Success(at(second))
	want(t, "streak", r.status(model, second).ConsecutiveFailures, 0)
	r.run(model, second, "FFF")
	before := r.status(model, minute)
	permits[2].Success(at(minute))
	permits[3].Failure(at(minute), status503)
	want(t, "status", r.status(model, minute), before)
}

func TestUnknownPairsOfBeforeAnOperatorsAct(t *testing.T) {
	for name, act := range map[string]func(rig){
		"reset":     func(r rig) { r.Reset("unknown", at(0)) },
		"all reset": func(r rig) { r.ResetAll(at(0)) },
		"all held":  func(r rig) { r.OpenAll(at(0), at(second)) },
		"off and on": func(r rig) {
			r.Configure(breaker.Settings{Off: true}, nil)
			r.Configure(threshold3(), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			p := r.admit("unknown", 0)
			act(r)
			p.Failure(at(minute), status503)
			r.run("unknown", minute, "F")
			want(t, "streak", r.status("unknown", minute).ConsecutiveFailures, 1)
		})
	}
}

// No step of a wall clock may keep a breaker from being probed for longer than
// the longest interval. Times with a monotonic reading do not step at all.
func TestClockSteps(t *testing.T) {
	const slack = 5 * second
	for name, prepare := range map[string]func(rig){
		"open":     func(r rig) { r.trip(m1, 0) },
		"reopened": func(r rig) { r.trip(m1, -10*minute); r.run(m1, -minute, "F") },
		"probing":  func(r rig) { r.trip(m1, -10*minute); r.probe(m1, 0) },
		"early":    func(r rig) { r.trip(m1, -2*minute); r.early(m1, 0) },
		"limited":  func(r rig) { r.trip(m1, -5*minute); r.probe(m1, 0).Limited(at(0), at(10*minute)) },
		"paused":   func(r rig) { r.Pause(m1, at(0), at(10*minute)) },
		"closed":   func(r rig) { r.run(m1, 0, "FF") },
	} {
		for _, step := range []time.Duration{-10 * 365 * 24 * time.Hour, -2 * time.Hour, -30 * minute, -second, minute, 2 * time.Hour} {
			t.Run(fmt.Sprint(name, step), func(t *testing.T) {
				r := newRig(t, nil)
				prepare(r)
				var waited time.Duration
				p := new(breaker.Permit)
				for {
					now := at(step + waited)
					if ok, _ := r.Admit(p, m1, now, true); ok {
						break
					}
					r.Look(m1, now)
					r.Snapshot(now)
					if waited += second; waited > 40*minute+slack {
						t.Fatal("not admitted in time")
					}
				}
				p.Success(at(step + waited))
				r.wantState(m1, step+waited, breaker.Closed)
			})
		}
	}
}

// Callers read the clock before they get to ask. That must not look like a clock
// that was set back.
func TestSlightlyOldTimesAreNoClockStep(t *testing.T) {
	r := newRig(t, func(s *breaker.Settings) { s.ProbeInterval = s.MaxProbeInterval })
	r.trip(m1, 0)
	r.refuses(m1, -4*second)
	r.probe(m1, 40*minute)
	r.refuses(m1, 40*minute-4*second)
	want(t, "in flight", r.status(m1, 40*minute).ProbeInFlight, true)
}

func TestRealClock(t *testing.T) {
	r := newRig(t, nil)
	now := time.Now()
	var p breaker.Permit
	for range 3 {
		r.Admit(&p, m1, now, true)
		p.Failure(now, status503)
	}
	want(t, "open", r.Look(m1, time.Now()).Reason, breaker.IsOpen)
	later := now.Add(5 * minute)
	ok, _ := r.Admit(&p, m1, later, true)
	want(t, "probe", ok && p.Probe(), true)
	p.Success(later)
	want(t, "success seen", r.Snapshot(later)[0].LastSuccessAt.Sub(later), 0)
}
