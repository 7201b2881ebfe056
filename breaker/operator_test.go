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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

func TestReset(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(rig)
		from    breaker.State
		probe   breaker.ProbeResult
	}{
		"closed":    {func(r rig) { r.run(m1, 0, "FF") }, breaker.Closed, breaker.NoProbe},
		"paused":    {func(r rig) { r.Pause(m1, at(0), at(time.Hour)) }, breaker.Closed, breaker.NoProbe},
		"open":      {func(r rig) { r.trip(m1, 0) }, breaker.Open, breaker.NoProbe},
		"half-open": {func(r rig) { r.trip(m1, -time.Hour) }, breaker.HalfOpen, breaker.NoProbe},
		"probing":   {func(r rig) { r.trip(m1, -time.Hour); r.probe(m1, 0) }, breaker.HalfOpen, breaker.ProbeReleased},
		"expired":   {func(r rig) { r.trip(m1, -time.Hour); r.probe(m1, -3*minute) }, breaker.Open, breaker.ProbeReopened},
		"held":      {func(r rig) { r.Open(m1, at(0), time.Time{}) }, breaker.Open, breaker.NoProbe},
		"all held":  {func(r rig) { r.OpenAll(at(0), time.Time{}) }, breaker.Open, breaker.NoProbe},
	} {
		t.Run(name, func(t *testing.T) {
			for what, reset := range map[string]func(rig) breaker.Change{
				"one": func(r rig) breaker.Change { return r.Reset(m1, at(second)) },
				"all": func(r rig) breaker.Change {
					for _, c := range r.ResetAll(at(second)) {
						if c.Model == m1 {
							return c
						}
					}
					return breaker.Change{}
				},
			} {
				r := newRig(t, nil)
				test.prepare(r)
				expected := breaker.Change{}
				if test.from != breaker.Closed {
					expected = breaker.Change{Model: m1, From: test.from, To: breaker.Closed, Reason: "operator", Probe: test.probe}
				}
				want(t, what, reset(r), expected)
				want(t, "view", r.Look(m1, at(second)), breaker.View{Weight: 1})
				want(t, "streak", r.status(m1, second).ConsecutiveFailures, 0)
				r.trip(m1, second)
				r.wantNext(m1, second, second+5*minute)
			}
		})
	}
}

func TestResetOfAnUnknownModel(t *testing.T) {
	r := newRig(t, nil)
	want(t, "change", r.Reset("unknown", at(0)), breaker.Change{})
	want(t, "tracked", len(r.Snapshot(at(0))), 2)
}

func TestOperatorsHold(t *testing.T) {
	for _, model := range []string{m1, "never seen", ""} {
		r := newRig(t, nil)
		got := r.Open(model, at(0), at(3*time.Hour))
		want(t, "change", got, breaker.Change{
			Model: model, From: breaker.Closed, To: breaker.Open, Reason: "operator", NextProbe: at(3 * time.Hour),
		})
		s := r.status(model, time.Hour)
		want(t, "held", s.Held, true)
		want(t, "opened at", s.OpenedAt, at(0))
		want(t, "return", s.Return, at(3*time.Hour))
		want(t, "made due", r.MakeDue(model, at(time.Hour)), false)
		r.MakeAllDue(at(time.Hour))
		r.refusesEarly(model, 3*time.Hour-1)
		r.refuses(model, 3*time.Hour-1)
		r.wantState(model, 3*time.Hour, breaker.HalfOpen)
		want(t, "held", r.status(model, 3*time.Hour).Held, false)
		r.probe(model, 3*time.Hour).Failure(at(3*time.Hour), status503)
		r.wantNext(model, 3*time.Hour, 3*time.Hour+10*minute)
		r.early(model, 3*time.Hour+10*second).Success(at(4 * time.Hour))
	}
}

func TestHoldUntilReset(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	p := r.probe(m1, 5*minute)
	got := r.Open(m1, at(6*minute), time.Time{})
	want(t, "change", got, breaker.Change{
		Model: m1, From: breaker.HalfOpen, To: breaker.Open, Reason: "operator", Probe: breaker.ProbeReleased,
	})
	p.Success(at(6 * minute))
	want(t, "opened at", r.status(m1, 6*minute).OpenedAt, at(0))
	year := 365 * 24 * time.Hour
	r.refusesEarly(m1, year)
	want(t, "view", r.Look(m1, at(year)), breaker.View{State: breaker.Open, Reason: breaker.IsOpen})
	r.Pause(m1, at(year), at(year+minute))
	want(t, "return", r.Look(m1, at(year)).Return, time.Time{})
	got = r.Open(m1, at(year), at(year+minute)) // another hold replaces it
	want(t, "next", got.NextProbe, at(year+minute))
	r.probe(m1, year+minute)
}

func TestHoldIgnoresTheClockSetBack(t *testing.T) {
	r := newRig(t, nil)
	r.Open(m1, at(0), at(minute))
	r.refuses(m1, -2*time.Hour)
}

func TestHoldOfEverything(t *testing.T) {
	r := newRig(t, nil)
	r.run("seen", 0, "F")
	p := r.admit("in flight", 0)
	changes := r.OpenAll(at(0), at(time.Hour))
	want(t, "changes", len(changes), 3)
	want(t, "sorted", slices.IsSortedFunc(changes, func(a, b breaker.Change) int { return strings.Compare(a.Model, b.Model) }), true)
	for _, model := range []string{m1, m2, "seen", "unseen", ""} {
		r.refusesEarly(model, minute)
		r.refuses(model, minute)
		v := r.Look(model, at(minute))
		want(t, model, v, breaker.View{State: breaker.Open, Reason: breaker.IsOpen, Return: at(time.Hour)})
	}
	want(t, "tracked", len(r.Snapshot(at(minute))), 3)
	p.Failure(at(minute), status503)
	r.Pause("paused", at(minute), at(2*minute))
	want(t, "entry made meanwhile", r.status("paused", minute).Held, true)
	r.Configure(threshold3(), []string{m1, m2, "written later"})
	want(t, "written meanwhile", r.status("written later", minute).Held, true)

	want(t, "reset of an unseen one", r.Reset("unseen", at(minute)).To, breaker.Closed)
	r.run("unseen", minute, "S")
	want(t, "reset of a seen one", r.Reset(m2, at(minute)).From, breaker.Open)
	r.run(m2, minute, "S")

	r.probe(m1, time.Hour)
	r.probe("seen", time.Hour)
	r.run("new", time.Hour, "F")
	want(t, "streak", r.status("new", time.Hour).ConsecutiveFailures, 1)
}

func TestResetAllEndsTheHoldOfEverything(t *testing.T) {
	r := newRig(t, nil)
	r.OpenAll(at(0), time.Time{})
	r.refuses("unseen", time.Hour)
	want(t, "changes", len(r.ResetAll(at(time.Hour))), 2)
	r.run(m1, time.Hour, "S")
	r.run("unseen", time.Hour, "FF")
	want(t, "streak", r.status("unseen", time.Hour).ConsecutiveFailures, 2)
}

func TestNewCredentials(t *testing.T) {
	run := func(r rig, d time.Duration, results string) { // C: credential failure
		for _, x := range results {
			cause := status503
			if x == 'C' {
				cause = refused
			}
			r.admit(m1, d).Failure(at(d), cause)
		}
	}
	for _, test := range []struct {
		name   string
		before string // failures at 0
		probes string // of failed probes since
		state  breaker.State
		streak int
		change bool
	}{
		{name: "closed, only credentials", before: "CC", state: breaker.Closed},
		{name: "closed, mixed", before: "CF", state: breaker.Closed, streak: 1},
		{name: "closed, others", before: "FF", state: breaker.Closed, streak: 2},
		{name: "open, only credentials", before: "CCC", state: breaker.Closed, change: true},
		{name: "open, mixed", before: "FCF", state: breaker.Closed, streak: 2, change: true},
		{name: "open, others", before: "FFF", state: breaker.Open, streak: 3},
		{name: "open, would be without", before: "CCC", probes: "FFF", state: breaker.Open, streak: 3},
		{name: "open, probes refused", before: "FFF", probes: "CC", state: breaker.Open, streak: 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, nil)
			run(r, 0, test.before)
			now := time.Duration(0)
			for _, x := range test.probes {
				now += 40 * minute
				run(r, now, string(x))
			}
			from := r.Look(m1, at(now)).State
			changes := r.ForgetCredential(at(now))
			r.wantState(m1, now, test.state)
			want(t, "streak", r.status(m1, now).ConsecutiveFailures, test.streak)
			want(t, "told", len(changes) == 1, test.change)
			if test.change {
				want(t, "change", changes[0], breaker.Change{Model: m1, From: from, To: breaker.Closed, Reason: "credentials changed"})
			}
		})
	}
}

func TestNewCredentialsDuringAProbe(t *testing.T) {
	r := newRig(t, nil)
	for range 3 {
		r.admit(m1, 0).Failure(at(0), refused)
	}
	p := r.probe(m1, 5*minute)
	changes := r.ForgetCredential(at(6 * minute))
	want(t, "probe", changes[0].Probe, breaker.ProbeReleased)
	want(t, "late", p.Failure(at(6*minute), refused), breaker.Change{})
	want(t, "view", r.Look(m1, at(6*minute)), breaker.View{Weight: 1})

	r = newRig(t, nil)
	r.trip(m1, 0)
	r.probe(m1, 5*minute).Failure(at(5*minute), refused)
	p = r.probe(m1, 15*minute)
	want(t, "changes", len(r.ForgetCredential(at(15*minute))), 0)
	want(t, "probe of one that stays open", p.Success(at(15*minute)).To, breaker.Closed)
}

func TestNewCredentialsLeaveTheOperatorsHold(t *testing.T) {
	r := newRig(t, nil)
	r.admit(m1, 0).Failure(at(0), refused)
	r.Open(m1, at(0), time.Time{})
	r.ForgetCredential(at(0))
	r.refuses(m1, time.Hour)
}

func TestDryRun(t *testing.T) {
	r := newRig(t, func(s *breaker.Settings) { s.DryRun = true })
	full := func(d time.Duration, state breaker.State) {
		t.Helper()
		v := r.Look(m1, at(d))
		want(t, "state", v.State, state)
		v.State, v.Degraded, v.Limited = 0, false, time.Time{}
		want(t, "view", v, breaker.View{Weight: 1})
	}
	r.Pause(m1, at(0), at(minute))
	r.run(m1, 0, "FF")
	full(0, breaker.Closed)
	want(t, "opening is told", r.run(m1, 0, "F").To, breaker.Open)
	full(second, breaker.Open)
	want(t, "status", r.status(m1, second).DryRun, true)
	r.run(m1, minute, "FFS") // their results decide nothing
	want(t, "streak", r.status(m1, minute).ConsecutiveFailures, 3)
	r.wantNext(m1, minute, 5*minute)

	var p breaker.Permit
	ok, c := r.Admit(&p, m1, at(5*minute), true)
	want(t, "probe is told", ok && c.To == breaker.HalfOpen, true)
	want(t, "probe is hidden", p.Probe() || p.ProbeTimeout() != 0 || p.Expired(at(time.Hour)), false)
	full(5*minute, breaker.HalfOpen)
	r.run(m1, 5*minute, "SF")
	r.wantState(m1, 5*minute, breaker.HalfOpen)
	c = p.Success(at(5 * minute))
	want(t, "closing is told", c, breaker.Change{
		Model: m1, From: breaker.HalfOpen, To: breaker.Closed, Reason: "probe", Probe: breaker.ProbeClosed,
	})

	r.OpenAll(at(time.Hour), time.Time{})
	for _, model := range []string{m1, "unseen"} {
		r.run(model, time.Hour, "S")
		ok, _ = r.AdmitEarly(&p, model, at(2*time.Hour), true)
		want(t, "held", ok && !p.Probe(), true)
		want(t, "look", r.Look(model, at(time.Hour)).Reason, breaker.Usable)
	}
}

func TestDryRunAdmitsEarlyWithoutAProbe(t *testing.T) {
	r := newRig(t, func(s *breaker.Settings) { s.DryRun = true })
	r.trip(m1, 0)
	var p breaker.Permit
	ok, c := r.AdmitEarly(&p, m1, at(minute), true)
	want(t, "admitted", ok, true)
	want(t, "change", c, breaker.Change{})
	p.Success(at(minute))
	r.wantState(m1, minute, breaker.Open)
}

func TestOff(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	running := r.admit(m2, 0)
	r.Configure(breaker.Settings{Off: true}, []string{m1, "m3"})
	running.Failure(at(0), status503)
	r.run(m1, 0, "FFFFLFF")
	r.Pause(m1, at(0), at(time.Hour))
	want(t, "open", r.Open(m1, at(0), time.Time{}), breaker.Change{})
	want(t, "open all", len(r.OpenAll(at(0), time.Time{})), 0)
	want(t, "view", r.Look(m1, at(0)), breaker.View{Weight: 1})
	list := r.Snapshot(at(0))
	want(t, "written", len(list), 2)
	want(t, "status", list[0], breaker.Status{Model: m1, Weight: 1})

	r.Configure(threshold3(), []string{m1, m2})
	running.Success(at(0))
	r.run("unseen", 0, "S")
	want(t, "on again", r.Look(m1, at(0)), breaker.View{Weight: 1})
}

func TestNewSettingsApplyToRunningBreakers(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	r.run(m2, 0, "FF")
	s := threshold3()
	s.OpenThreshold, s.DegradeThreshold, s.HalfOpenWeight = 2, 1, 0.5
	s.ProbeInterval, s.MaxProbeInterval = second, minute
	r.Configure(s, []string{m1, m2})
	r.wantState(m2, 0, breaker.Closed)
	r.run(m2, 0, "F")
	r.wantNext(m2, 0, second)
	r.wantNext(m1, 0, minute) // pulled in
	want(t, "weight", r.Look(m1, at(minute)).Weight, 0.5)
	r.probe(m1, minute).Failure(at(minute), status503)
	r.wantNext(m1, minute, 2*minute)

	r.Open(m1, at(2*minute), at(time.Hour))
	r.refuses(m1, time.Hour-1) // a hold is not pulled in
}

func TestNamesOfANewConfig(t *testing.T) {
	r := newRig(t, nil)
	r.run("glob", 0, "FF")
	r.trip(m1, 0)
	r.Configure(threshold3(), []string{"glob", "new", "new"})
	var names []string
	for _, s := range r.Snapshot(at(0)) {
		names = append(names, fmt.Sprintf("%s:%d:%v", s.Model, s.ConsecutiveFailures, s.State))
	}
	want(t, "tracked", strings.Join(names, " "), "glob:2:closed m1:3:open new:0:closed")
	r.Configure(threshold3(), []string{m1})
	r.probe(m1, 5*minute).Success(at(5 * minute))
	r.run("glob", 0, "F")
	r.wantState("glob", 0, breaker.Open)
}

func TestEndPausesLeavesBreakersAlone(t *testing.T) {
	r := newRig(t, nil)
	r.run(m1, 0, "FF")
	r.Pause(m1, at(0), at(time.Hour))
	r.trip("m2", 0)
	r.Pause("m2", at(0), at(time.Hour))
	r.EndPauses()
	if v := r.Look(m1, at(second)); v.Reason != breaker.Usable || !v.Limited.IsZero() {
		t.Errorf("paused: %+v", v)
	}
	if v := r.Look("m2", at(second)); v.State != breaker.Open || !v.Limited.IsZero() {
		t.Errorf("open: %+v", v)
	}
	if s := r.Snapshot(at(second)); s[0].ConsecutiveFailures != 2 {
		t.Errorf("the streak changed: %+v", s[0])
	}
}

func TestLastFailureIsTheNewestCause(t *testing.T) {
	r := newRig(t, nil)
	if got := r.LastFailure(m1); got != "" {
		t.Errorf("of an unknown pair: %q", got)
	}
	for _, text := range []string{"first", "second"} {
		var p breaker.Permit
		r.Admit(&p, m1, at(0), false)
		p.Failure(at(0), breaker.Cause{Text: text})
	}
	if got := r.LastFailure(m1); got != "second" {
		t.Errorf("%q", got)
	}
}
