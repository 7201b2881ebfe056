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

func TestLeaseWithoutAByteRunsOut(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	p := r.probe(m1, 5*minute)
	want(t, "timeout", p.ProbeTimeout(), 2*minute)
	p.Renew(at(6 * minute))
	p.Renew(at(5*minute + second)) // late news
	end := 8 * minute
	want(t, "before", p.Expired(at(end-1)), false)
	r.refuses(m1, end-1)
	want(t, "at", p.Expired(at(end)), true)

	looked := r.Look(m1, at(end+minute))
	r.wantState(m1, end+minute, breaker.Open)
	r.wantNext(m1, end+minute, end+10*minute)
	want(t, "cause", r.status(m1, end+minute).LastFailure, "probe timeout")
	p.Renew(at(end + minute)) // nothing revives it
	want(t, "again", r.Look(m1, at(end+minute)), looked)

	ok, c := r.Admit(new(breaker.Permit), m1, at(end+minute), true)
	want(t, "admitted", ok, false)
	want(t, "settled", c, breaker.Change{
		Model: m1, From: breaker.HalfOpen, To: breaker.Open, Reason: "probe timeout",
		NextProbe: at(end + 10*minute), Probe: breaker.ProbeReopened,
	})
	_, c = r.Admit(new(breaker.Permit), m1, at(end+minute), true)
	want(t, "told once", c, breaker.Change{})
	want(t, "late success", p.Success(at(end+2*minute)), breaker.Change{})
	r.wantNext(m1, end+2*minute, end+10*minute)
}

func TestLeaseOfOtherRequestsIsLonger(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	p := new(breaker.Permit)
	r.Admit(p, m1, at(5*minute), false)
	want(t, "timeout", p.ProbeTimeout(), 10*minute)
	want(t, "return", r.Look(m1, at(6*minute)).Return, at(15*minute))
	want(t, "no probe", r.admit(m2, 0).ProbeTimeout(), 0)
}

// A jittered reopening must look the same whenever one looks.
func TestExpiredLeaseReopensAsLookSaid(t *testing.T) {
	r := newRig(t, func(s *breaker.Settings) { s.Jitter = 0.5 })
	r.trip(m1, 0)
	due := r.status(m1, 0).NextProbeAt.Sub(t0)
	r.probe(m1, due)
	end := due + 2*minute
	before := r.status(m1, end)
	_, c := r.Admit(new(breaker.Permit), m1, at(end), true)
	want(t, "next probe", c.NextProbe, before.NextProbeAt)
	want(t, "status", r.status(m1, end), before)
}

// Without traffic nobody settles a lease: the next request does, and may find
// that the probe after it is due as well.
func TestExpiredLeaseAndNextProbeAtOnce(t *testing.T) {
	r := newRig(t, nil)
	r.trip(m1, 0)
	p := r.probe(m1, 5*minute)
	r.wantState(m1, time.Hour, breaker.HalfOpen)
	q := new(breaker.Permit)
	ok, c := r.Admit(q, m1, at(time.Hour), true)
	want(t, "admitted", ok && q.Probe(), true)
	want(t, "change", c, breaker.Change{Model: m1, From: breaker.Open, To: breaker.HalfOpen, Reason: "probe", Probe: breaker.ProbeReopened})
	want(t, "late failure", p.Failure(at(time.Hour), status503), breaker.Change{})
	want(t, "late content", p.Content(at(time.Hour)), breaker.Change{})
	r.refuses(m1, time.Hour)
	q.Failure(at(time.Hour), status503)
	r.wantNext(m1, time.Hour, time.Hour+20*minute)
}

// The attempt that notices its own expiry settles it, however it ends.
func TestHolderOfAnExpiredLeaseSettlesIt(t *testing.T) {
	for name, settle := range settlings {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.trip(m1, 0)
			p := r.probe(m1, 5*minute)
			want(t, "change", settle(p, at(7*minute)), breaker.Change{
				Model: m1, From: breaker.HalfOpen, To: breaker.Open, Reason: "probe timeout",
				NextProbe: at(17 * minute), Probe: breaker.ProbeReopened,
			})
			want(t, "streak", r.status(m1, 7*minute).ConsecutiveFailures, 4)
		})
	}
}

var settlings = map[string]func(*breaker.Permit, time.Time) breaker.Change{
	"success": (*breaker.Permit).Success,
	"failure": func(p *breaker.Permit, now time.Time) breaker.Change { return p.Failure(now, status503) },
	"break":   func(p *breaker.Permit, now time.Time) breaker.Change { return p.Failure(now, broke) },
	"limited": func(p *breaker.Permit, now time.Time) breaker.Change { return p.Limited(now, now.Add(time.Hour)) },
	"release": (*breaker.Permit).Release,
	"content": (*breaker.Permit).Content,
}
