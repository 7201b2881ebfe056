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
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

const minute = time.Minute

func TestConsecutiveFailuresOpen(t *testing.T) {
	for _, test := range []struct {
		results string
		state   breaker.State
		streak  int
	}{
		{"", breaker.Closed, 0},
		{"FF", breaker.Closed, 2},
		{"FFF", breaker.Open, 3},
		{"FSFSFSF", breaker.Closed, 1},
		{"FFSFF", breaker.Closed, 2},
		{"FFSFFF", breaker.Open, 3},
		{"FFNNLLF", breaker.Open, 3},
		{"FFNL", breaker.Closed, 2},
		{strings.Repeat("L", 20) + strings.Repeat("N", 20), breaker.Closed, 0},
	} {
		t.Run(test.results, func(t *testing.T) {
			r := newRig(t, nil)
			r.run(m1, 0, test.results)
			got := r.status(m1, 0)
			want(t, "state", got.State, test.state)
			want(t, "streak", got.ConsecutiveFailures, test.streak)
		})
	}
}

func TestModelsAreIndependent(t *testing.T) {
	r := newRig(t, nil)
	for range 2 {
		r.run(m1, 0, "F")
		r.run(m2, 0, "S")
		r.run("", 0, "S")
	}
	r.run(m1, 0, "F")
	r.wantState(m1, 0, breaker.Open)
	r.wantState(m2, 0, breaker.Closed)
	r.wantState("", 0, breaker.Closed)
}

func TestOpeningIsTold(t *testing.T) {
	r := newRig(t, nil)
	got := r.run(m1, time.Second, "FFF")
	want(t, "change", got, breaker.Change{
		Model: m1, From: breaker.Closed, To: breaker.Open, Reason: "status 503",
		NextProbe: at(time.Second + 5*minute),
	})
	s := r.status(m1, minute)
	want(t, "opened at", s.OpenedAt, at(time.Second))
	want(t, "last failure", s.LastFailure, "status 503")
	want(t, "last failure at", s.LastFailureAt, at(time.Second))
	v := r.Look(m1, at(2*time.Second))
	want(t, "view", v, breaker.View{State: breaker.Open, Reason: breaker.IsOpen, Return: at(11 * time.Second)})
}

func TestDegradedLosesWeight(t *testing.T) {
	for _, test := range []struct {
		name     string
		degrade  int
		results  string
		weight   float64
		degraded bool
	}{
		{"below", 2, "F", 1, false},
		{"at", 2, "FF", 0.3, true},
		{"after success", 2, "FFS", 1, false},
		{"off", 0, "FF", 1, false},
		{"threshold not below the other", 3, "FF", 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, func(s *breaker.Settings) { s.DegradeThreshold = test.degrade })
			r.run(m1, 0, test.results)
			v := r.Look(m1, at(0))
			want(t, "weight", v.Weight, test.weight)
			want(t, "degraded", v.Degraded, test.degraded)
			want(t, "status", r.status(m1, 0).Degraded, test.degraded)
		})
	}
}

func TestOldStreakIsForgotten(t *testing.T) {
	for _, test := range []struct {
		name  string
		ttl   time.Duration
		after time.Duration
		state breaker.State
	}{
		{"young", 30 * minute, 30 * minute, breaker.Open},
		{"old", 30 * minute, 30*minute + 1, breaker.Closed},
		{"never", 0, 1000 * time.Hour, breaker.Open},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, func(s *breaker.Settings) { s.FailureTTL = test.ttl })
			r.run(m1, 0, "FF")
			want(t, "degraded", r.Look(m1, at(test.after)).Degraded, test.state == breaker.Open)
			r.run(m1, test.after, "F")
			r.wantState(m1, test.after, test.state)
		})
	}
}

func TestAgeIsThatOfTheLastFailure(t *testing.T) {
	r := newRig(t, nil)
	r.run(m1, 0, "F")
	r.run(m1, 20*minute, "F")
	r.run(m1, 40*minute, "F")
	r.wantState(m1, 40*minute, breaker.Open)
}

// The time to live of failures says nothing about a breaker that is open: only a
// success closes it, however long nobody asked.
func TestOpenIsNeverForgotten(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	day := 24 * time.Hour
	r.wantState(m1, day, breaker.HalfOpen)
	want(t, "streak", r.status(m1, day).ConsecutiveFailures, 3)
	r.probe(m1, day).Failure(at(day), status503)
	r.wantState(m1, day+10*minute-1, breaker.Open)
	want(t, "streak", r.status(m1, day).ConsecutiveFailures, 4)
}

func TestJitterStaysInItsBounds(t *testing.T) {
	const base, most = 5 * minute, 5*minute + 10*time.Second
	low, high := time.Hour, time.Duration(0)
	for range 300 {
		r := newRig(t, func(s *breaker.Settings) { s.Jitter, s.MaxProbeInterval = 0.2, most })
		r.trip(m1, 0)
		d := r.status(m1, 0).NextProbeAt.Sub(t0)
		low, high = min(low, d), max(high, d)
	}
	if low < 4*minute || low > base-30*time.Second {
		t.Errorf("shortest wait %v, want from 4m on", low)
	}
	want(t, "longest wait", high, most)
}

func TestSettingsAreBroughtIntoRange(t *testing.T) {
	r := rig{breaker.NewSet(breaker.Settings{}, nil), t}
	r.run(m1, 0, "F")
	r.wantNext(m1, 0, 5*minute)
	want(t, "weight", r.Look(m1, at(5*minute)).Weight, 0)
	r.refusesEarly(m1, minute)
	p := r.probe(m1, 5*minute)
	want(t, "probe timeout", p.ProbeTimeout(), 2*minute)

	r = newRig(t, func(s *breaker.Settings) { s.ProbeInterval = time.Hour })
	r.trip(m1, 0)
	r.wantNext(m1, 0, time.Hour)
}

func TestPausedPairIsLimited(t *testing.T) {
	r := newRig(t, nil)
	for _, model := range []string{m1, "never seen"} {
		r.run(model, 0, "FF")
		r.Pause(model, at(0), at(30*time.Second))
		r.Pause(model, at(0), at(20*time.Second)) // only ever extended
		v := r.Look(model, at(minute/2-1))
		want(t, "view", v, breaker.View{
			State: breaker.Closed, Reason: breaker.IsLimited, Degraded: true,
			Return: at(30 * time.Second), Limited: at(30 * time.Second),
		})
		want(t, "status", r.status(model, 0).LimitedUntil, at(30*time.Second))
		r.refuses(model, minute/2-1)
		want(t, "after", r.Look(model, at(minute/2)).Reason, breaker.Usable)
		r.run(model, minute/2, "F") // the streak went on
		r.wantState(model, minute/2, breaker.Open)
	}
}

func TestPauseOfAnOpenPair(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	r.Pause(m1, at(0), at(6*minute))
	r.wantNext(m1, 0, 5*minute)
	r.refusesEarly(m1, minute)
	v := r.Look(m1, at(minute))
	want(t, "reason", v.Reason, breaker.IsOpen)
	want(t, "return", v.Return, at(6*minute))
	v = r.Look(m1, at(5*minute))
	want(t, "state when due", v.State, breaker.HalfOpen)
	want(t, "reason when due", v.Reason, breaker.IsLimited)
	r.refuses(m1, 5*minute)
	r.probe(m1, 6*minute).Success(at(6 * minute))
}

func TestLastSuccessIsShown(t *testing.T) {
	r := newRig(t, nil)
	want(t, "none", r.status(m1, 0).LastSuccessAt, time.Time{})
	r.run(m1, time.Second, "S")
	r.run(m1, minute, "FS")
	r.run(m1, 2*minute, "FLN")
	if got := r.status(m1, 2*minute).LastSuccessAt; !got.Equal(at(minute)) {
		t.Errorf("last success at %v", got)
	}
}

func TestSucceededSince(t *testing.T) {
	r := newRig(t, nil)
	r.run(m1, 0, "S")
	p := r.admit(m1, time.Second)
	r.run(m2, 2*time.Second, "S")
	r.run(m1, 2*time.Second, "F")
	want(t, "before", p.SucceededSince(), false)
	r.run(m1, 3*time.Second, "S")
	want(t, "after", p.SucceededSince(), true)
	want(t, "not admitted", new(breaker.Permit).SucceededSince(), false)
}

func TestWords(t *testing.T) {
	want(t, "states", breaker.Closed.String()+" "+breaker.Open.String()+" "+breaker.HalfOpen.String(), "closed open half_open")
	want(t, "results", breaker.NoProbe.String()+breaker.ProbeClosed.String()+" "+breaker.ProbeReopened.String()+" "+breaker.ProbeReleased.String(),
		"closed reopened released")
}
