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

const second = time.Second

func TestOneProbeAtATime(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	r.refuses(m1, 5*minute-1)
	v := r.Look(m1, at(5*minute))
	want(t, "due", v, breaker.View{State: breaker.HalfOpen, Weight: 0.3, Probe: true})

	var p breaker.Permit
	ok, c := r.Admit(&p, m1, at(5*minute), true)
	want(t, "admitted", ok && p.Probe(), true)
	want(t, "lease", c, breaker.Change{Model: m1, From: breaker.Open, To: breaker.HalfOpen, Reason: "probe"})
	v = r.Look(m1, at(6*minute))
	want(t, "probing", v, breaker.View{State: breaker.HalfOpen, Reason: breaker.Probing, Return: at(7 * minute)})
	want(t, "in flight", r.status(m1, 6*minute).ProbeInFlight, true)
	ok, c = r.Admit(new(breaker.Permit), m1, at(6*minute), true)
	want(t, "second admitted", ok, false)
	want(t, "second lease", c, breaker.Change{})
	r.refusesEarly(m1, 6*minute)
}

func TestProbeResults(t *testing.T) {
	const began, ended = 5 * minute, 5*minute + 3*second
	for _, test := range []struct {
		name   string
		settle func(*breaker.Permit, time.Time) breaker.Change
		want   breaker.Change
		next   time.Duration // of the probe; 0: closed
	}{
		{"success", (*breaker.Permit).Success,
			breaker.Change{To: breaker.Closed, Reason: "probe", Probe: breaker.ProbeClosed}, 0},
		{"content", (*breaker.Permit).Content,
			breaker.Change{To: breaker.Closed, Reason: "probe", Probe: breaker.ProbeClosed}, 0},
		{"failure", func(p *breaker.Permit, now time.Time) breaker.Change { return p.Failure(now, status503) },
			breaker.Change{To: breaker.Open, Reason: "status 503", Probe: breaker.ProbeReopened}, ended + 10*minute},
		{"no credential accepted", func(p *breaker.Permit, now time.Time) breaker.Change { return p.Failure(now, refused) },
			breaker.Change{To: breaker.Open, Reason: "status 401", Probe: breaker.ProbeReopened}, ended + 10*minute},
		{"limited", func(p *breaker.Permit, now time.Time) breaker.Change { return p.Limited(now, now.Add(second)) },
			breaker.Change{To: breaker.Open, Reason: "limited", Probe: breaker.ProbeReopened}, ended + second},
		{"limited for long", func(p *breaker.Permit, now time.Time) breaker.Change { return p.Limited(now, now.Add(time.Hour)) },
			breaker.Change{To: breaker.Open, Reason: "limited", Probe: breaker.ProbeReopened}, ended + time.Hour},
		{"limited without a hint", func(p *breaker.Permit, now time.Time) breaker.Change { return p.Limited(now, time.Time{}) },
			breaker.Change{To: breaker.Open, Reason: "limited", Probe: breaker.ProbeReopened}, ended + 5*minute},
		{"limited until before", func(p *breaker.Permit, now time.Time) breaker.Change { return p.Limited(now, now.Add(-second)) },
			breaker.Change{To: breaker.Open, Reason: "limited", Probe: breaker.ProbeReopened}, ended + 5*minute},
		{"release", (*breaker.Permit).Release,
			breaker.Change{To: breaker.HalfOpen, Reason: "released", Probe: breaker.ProbeReleased}, 5 * minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.trip(m1, 0)
			p := r.probe(m1, began)
			test.want.Model, test.want.From = m1, breaker.HalfOpen
			if test.next != 0 {
				test.want.NextProbe = at(test.next)
			}
			want(t, "change", test.settle(p, at(ended)), test.want)
			if test.next == 0 {
				want(t, "view", r.Look(m1, at(ended)), breaker.View{Weight: 1})
				want(t, "streak", r.status(m1, ended).ConsecutiveFailures, 0)
				return
			}
			due := max(test.next, ended)
			if due > ended {
				r.refuses(m1, due-1)
			}
			r.probe(m1, due).Success(at(due)) // never stuck beyond one period
			r.wantState(m1, due, breaker.Closed)
		})
	}
}

func TestFailedProbesDoubleTheInterval(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	now := 5 * minute
	for _, wait := range []time.Duration{10 * minute, 20 * minute, 40 * minute, 40 * minute} {
		r.probe(m1, now).Failure(at(now), status503)
		r.wantNext(m1, now, now+wait)
		want(t, "opened at", r.status(m1, now).OpenedAt, at(0))
		now += wait
	}
	r.probe(m1, now).Limited(at(now), at(now+second))
	now += second
	r.probe(m1, now).Success(at(now))
	r.trip(m1, now)
	r.wantNext(m1, now, now+5*minute) // starts anew
}

func TestLimitedDoublesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	r.probe(m1, 5*minute).Limited(at(5*minute), at(6*minute))
	r.refusesEarly(m1, 6*minute-1)
	r.probe(m1, 6*minute).Limited(at(6*minute), time.Time{})
	r.probe(m1, 11*minute).Failure(at(11*minute), status503)
	r.wantNext(m1, 11*minute, 21*minute)
}

func TestEarlyProbe(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	r.refusesEarly(m1, 10*second-1)
	want(t, "return", r.Look(m1, at(second)).Return, at(10*second))
	want(t, "promised", r.Look(m1, at(10*second)).Early, true)
	want(t, "return is not in the past", r.Look(m1, at(12*second)).Return, at(12*second))
	r.refuses(m1, 10*second)

	p := r.early(m1, 10*second)
	r.wantState(m1, 11*second, breaker.HalfOpen)
	r.refusesEarly(m1, 30*second)
	c := p.Failure(at(31*second), status503)
	want(t, "failed", c, breaker.Change{
		Model: m1, From: breaker.HalfOpen, To: breaker.Open, Reason: "status 503",
		NextProbe: at(5 * minute), Probe: breaker.ProbeReopened,
	})
	p = r.early(m1, 31*second) // the last one was granted long ago
	p.Failure(at(31*second), status503)
	r.refusesEarly(m1, 41*second-1)
	r.early(m1, 41*second).Limited(at(41*second), time.Time{})
	r.wantNext(m1, minute, 5*minute)
	r.probe(m1, 5*minute).Failure(at(5*minute), status503)
	r.wantNext(m1, 5*minute, 15*minute) // early ones doubled nothing
	r.refusesEarly(m1, 5*minute+10*second-1)
	r.early(m1, 5*minute+10*second).Success(at(6 * minute))
	r.wantState(m1, 6*minute, breaker.Closed)
}

func TestReleasedEarlyProbeMayBeTakenAgain(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	c := r.early(m1, 10*second).Release(at(11 * second))
	want(t, "released", c, breaker.Change{
		Model: m1, From: breaker.HalfOpen, To: breaker.Open, Reason: "released",
		NextProbe: at(5 * minute), Probe: breaker.ProbeReleased,
	})
	r.early(m1, 11*second)
}

func TestEarlyProbeNeverPushesTheNextProbe(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	r.early(m1, 4*minute).Limited(at(4*minute), at(4*minute+30*second))
	r.wantNext(m1, 4*minute, 4*minute+30*second)
	r.probe(m1, 4*minute+30*second).Release(at(4*minute + 30*second))

	r = newRig(t, nil)
	r.trip(m1, 0)
	c := r.early(m1, 4*minute).Failure(at(5*minute+30*second), status503)
	want(t, "change", c.To, breaker.Open)
	r.probe(m1, 5*minute+30*second) // its time came meanwhile
}

func TestAdmitEarlyOfOthersIsAdmit(t *testing.T) {
	r := newRig(t, nil)
	p := new(breaker.Permit)
	ok, _ := r.AdmitEarly(p, m1, at(0), true)
	want(t, "closed", ok && !p.Probe(), true)
	r.trip(m1, 0)
	want(t, "due is not early", r.Look(m1, at(5*minute)).Early, false)
	r.early(m1, 5*minute).Failure(at(5*minute), status503)
	r.wantNext(m1, 5*minute, 15*minute)
}

func TestStreamThatBreaksAfterItsContent(t *testing.T) {
	for _, test := range []struct {
		name  string
		early bool
		since string // results of others between content and break
		cause breaker.Cause
		state breaker.State
		next  time.Duration
	}{
		{name: "before another success", cause: broke, state: breaker.Open, next: 6*minute + 10*minute},
		{name: "another failed, too", since: "F", cause: broke, state: breaker.Open, next: 6*minute + 10*minute},
		{name: "after another success", since: "S", cause: broke, state: breaker.Closed},
		{name: "after failure and success", since: "FS", cause: broke, state: breaker.Closed},
		{name: "early", early: true, cause: broke, state: breaker.Open, next: 5 * minute},
		{name: "failure of another kind", cause: status503, state: breaker.Closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.trip(m1, 0)
			began, brokeAt := 5*minute, 6*minute
			p := new(breaker.Permit)
			if test.early {
				began, brokeAt = minute, 2*minute
				p = r.early(m1, began)
			} else {
				p = r.probe(m1, began)
			}
			p.Content(at(began))
			r.wantState(m1, began, breaker.Closed)
			want(t, "expired", p.Expired(at(time.Hour)), false)
			r.run(m1, began+second, test.since)
			p.Failure(at(brokeAt), test.cause)
			r.wantState(m1, brokeAt, test.state)
			if test.state == breaker.Open {
				r.wantNext(m1, brokeAt, test.next)
				want(t, "opened at", r.status(m1, brokeAt).OpenedAt, at(0))
			} else {
				want(t, "streak", r.status(m1, brokeAt).ConsecutiveFailures, 1)
			}
		})
	}
}

func TestContentOfAProbeIsNotTheEnd(t *testing.T) {
	for name, settle := range settlings {
		if name == "content" || name == "failure" || name == "break" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.trip(m1, 0)
			p := r.probe(m1, 5*minute)
			p.Content(at(5 * minute))
			want(t, "settled", p.Settled(), false)
			want(t, "second content", p.Content(at(5*minute)), breaker.Change{})
			want(t, "end", settle(p, at(6*minute)), breaker.Change{})
			want(t, "settled", p.Settled(), true)
			want(t, "view", r.Look(m1, at(6*minute)), breaker.View{Weight: 1})
			p.Failure(at(6*minute), broke)
			want(t, "streak", r.status(m1, 6*minute).ConsecutiveFailures, 0)
		})
	}
}

func TestContentOfOthersDoesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.run(m1, 0, "FF")
	p := r.admit(m1, 0)
	want(t, "change", p.Content(at(0)), breaker.Change{})
	want(t, "streak", r.status(m1, 0).ConsecutiveFailures, 2)
	want(t, "break counts", p.Failure(at(0), broke).To, breaker.Open)
}

func TestPermitSettlesOnce(t *testing.T) {
	for name, first := range settlings {
		if name == "content" {
			continue
		}
		for again, second := range settlings {
			t.Run(name+" "+again, func(t *testing.T) {
				r := newRig(t, nil)
				r.run(m1, 0, "F")
				p := r.admit(m1, 0)
				want(t, "settled", p.Settled(), false)
				first(p, at(0))
				want(t, "settled", p.Settled(), true)
				before := r.status(m1, 0)
				want(t, "change", second(p, at(0)), breaker.Change{})
				want(t, "status", r.status(m1, 0), before)
			})
		}
	}
}

func TestPermitThatWasNotAdmitted(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	r.Pause(m2, at(0), at(minute))
	refusedOpen, refusedLimited := new(breaker.Permit), new(breaker.Permit)
	r.Admit(refusedOpen, m1, at(0), true)
	r.Admit(refusedLimited, m2, at(0), true)
	for _, p := range []*breaker.Permit{new(breaker.Permit), refusedOpen, refusedLimited} {
		want(t, "settled", p.Settled(), true)
		for name, settle := range settlings {
			want(t, name, settle(p, at(5*minute)), breaker.Change{})
		}
		p.Failure(at(5*minute), status503)
		p.Renew(at(0))
		want(t, "probe", p.Probe() || p.Expired(at(time.Hour)), false)
	}
	r.wantState(m1, 5*minute, breaker.HalfOpen)
	want(t, "streak", r.status(m2, 5*minute).ConsecutiveFailures, 0)
}

func TestUnhealthyDelaysTheProbe(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	r.SetUnhealthy(true)
	r.wantState(m1, 39*minute, breaker.Open)
	r.refuses(m1, 39*minute)
	r.early(m1, 39*minute).Release(at(39 * minute))
	r.probe(m1, 40*minute).Failure(at(40*minute), status503)
	r.refuses(m1, 55*minute)
	r.SetUnhealthy(false)
	r.probe(m1, 55*minute).Release(at(55 * minute))
	r.SetUnhealthy(true)
	r.refuses(m1, 55*minute)
	want(t, "made due", r.MakeDue(m1, at(55*minute)), true)
	r.probe(m1, 55*minute)
	r.run(m2, 0, "S") // closed ones stay in use
}

func TestMadeDue(t *testing.T) {
	r := newRig(t, nil)
	want(t, "closed", r.MakeDue(m1, at(0)), false)
	want(t, "unknown", r.MakeDue("unknown", at(0)), false)
	r.trip(m1, 0)
	r.trip(m2, 0)
	want(t, "open", r.MakeDue(m1, at(second)), true)
	r.wantNext(m1, second, second)
	r.wantState(m2, second, breaker.Open)
	r.probe(m1, second).Failure(at(2*second), status503)
	r.wantNext(m1, 2*second, 10*minute+2*second)
	r.refuses(m1, minute)
	r.MakeAllDue(at(minute))
	r.probe(m1, minute)
	r.probe(m2, minute)
}

// A lease that ran out before its probe was made due has failed before, even if
// nobody noticed until afterwards.
func TestMadeDueAfterAnExpiredLease(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	r.probe(m1, 5*minute)
	r.MakeAllDue(at(8 * minute))
	var p breaker.Permit
	ok, c := r.Admit(&p, m1, at(8*minute), true)
	want(t, "admitted", ok && p.Probe(), true)
	want(t, "result", c.Probe, breaker.ProbeReopened)
}
