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

func TestPermanentUntilAnOperatorActs(t *testing.T) {
	r := newRig(t, on401(0))
	r.run("k1 401, k1 401, k1 401")
	r.now = r.now.Add(10000 * time.Hour)
	want(t, "lapses", len(r.Lapse(r.now)), 0)
	r.succeed(k1)
	r.wantOut("k1")
	r.Enable(k1, r.now, "")
	r.wantOut("")
	want(t, "trial", r.status(k1).Trial, false)
}

func TestTrialFollowsATime(t *testing.T) {
	r := newRig(t, on401(time.Hour))
	r.run("k1 401, k1 401, k1 401")
	r.now = r.now.Add(time.Hour - 1)
	r.wantOut("k1")
	want(t, "trial", r.status(k1).Trial, false)
	r.now = r.now.Add(1)
	r.wantOut("")
	status := r.status(k1)
	want(t, "trial", status.Trial, true)
	want(t, "disabled", status.Disabled, nil)
}

// wait lets the time pass that a subject is out for.
func (r *rig) wait(key string, want time.Duration) {
	r.t.Helper()
	record := r.status(key).Disabled
	if record == nil {
		r.t.Fatalf("%q is not disabled", key)
	}
	if got := record.Until.Sub(record.At); got != want {
		r.t.Fatalf("disabled for %v, want %v", got, want)
	}
	r.now = record.Until
}

func TestTrialDoublesUpTo24Hours(t *testing.T) {
	r := newRig(t, on401(time.Hour))
	r.run("k1 401, k1 401")
	for _, hours := range []time.Duration{1, 2, 4, 8, 16, 24, 24} {
		want(t, "changes", r.run("k1 401"), []string{"k1 disabled"})
		r.wait(k1, hours*time.Hour)
	}
	r.fail(k1, 401)
	want(t, "reason", r.status(k1).Disabled.Reason, "Auto-disabled after 10 consecutive errors with status 401")
}

func TestLongTimesAreNotCut(t *testing.T) {
	r := newRig(t, on401(100*time.Hour))
	r.run("k1 401, k1 401, k1 401")
	r.wait(k1, 100*time.Hour)
	r.run("k1 401")
	r.wait(k1, 100*time.Hour)
}

func TestSuccessEndsTheTrial(t *testing.T) {
	r := newRig(t, on401(time.Hour))
	r.run("k1 401, k1 401, k1 401")
	r.wait(k1, time.Hour)
	r.run("k1 ok")
	want(t, "trial", r.status(k1).Trial, false)
	want(t, "changes", len(r.run("k1 401, k1 401")), 0)
	r.run("k1 401")
	r.wait(k1, time.Hour)
}

func TestTrialIsOfOneRuleOnly(t *testing.T) {
	r := newRig(t, on401(time.Hour), autodisable.Rule{Status: 403, Times: 2, For: minute})
	r.run("k1 401, k1 401, k1 401")
	r.wait(k1, time.Hour)
	r.run("k1 403, k1 500")
	want(t, "trial", r.status(k1).Trial, true)
	r.run("k1 403")
	r.wait(k1, minute)
	want(t, "trial", r.status(k1).Trial, true)
}

func TestTrialOfAChannel(t *testing.T) {
	r := newRig(t, autodisable.Rule{Transport: true, Times: 2, For: minute})
	r.run("k1 transport, k2 transport")
	r.wait(channel, minute)
	want(t, "trial", r.status(channel).Trial, true)
	r.run("k3 transport")
	r.wait(channel, 2*minute)
	r.run("k3 ok")
	want(t, "trial", r.status(channel).Trial, false)
}

func TestLapseIsToldOnce(t *testing.T) {
	r := newRig(t, on401(minute), autodisable.Rule{Status: 500, Times: 1, For: minute})
	r.run("k2 401, k2 401, k2 401, k1 401, k1 401, k1 401, k1 500")
	record := *r.status(channel).Disabled
	r.Disable(k3, r.now, r.now.Add(minute), "nap")
	want(t, "early", len(r.Lapse(r.now)), 0)
	r.now = r.now.Add(minute)
	before := r.Snapshot(r.now)
	changes := r.Lapse(r.now)
	var told []string
	for _, c := range changes {
		told = append(told, tell(c))
	}
	want(t, "told", told, []string{"- enabled", "k1 enabled", "k2 enabled", "k3 enabled"})
	want(t, "first", changes[0], autodisable.Change{Record: record, By: autodisable.ByAuto, Reason: "time is up"})
	want(t, "record of the operator's", changes[3].Record.Reason, "nap")
	want(t, "again", len(r.Lapse(r.now)), 0)
	want(t, "saved trials", len(r.Save().Keys), 2)
	want(t, "status", r.Snapshot(r.now), before)
	want(t, "changes", r.run("k1 401"), []string{"k1 disabled"})
	r.now = r.now.Add(2 * minute)
	want(t, "next", len(r.Lapse(r.now)), 1)
}

func TestDisabledSubjectsLateOutcomesDoNothing(t *testing.T) {
	for name, disable := range map[string]func(*rig){
		"by itself":      func(r *rig) { r.run("k1 401, k1 401, k1 401") },
		"by an operator": func(r *rig) { r.Disable(k1, r.now, r.now.Add(time.Hour), "") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, on401(time.Hour))
			began := r.now
			disable(r)
			during, later := r.status(k1), r.now.Add(time.Hour+minute)
			for _, began := range []time.Time{began, r.now, r.now.Add(second)} {
				now := r.now.Add(second)
				want(t, "change", r.Failure(autodisable.Failure{Key: k1, Status: 401, Began: began}, now, nil), autodisable.Change{})
				r.Success(k1, began, now)
				want(t, "status", r.status(k1), during)
			}
			// Even those that come when it is enabled again.
			r.now = later
			after := r.status(k1)
			late := autodisable.Failure{Key: k1, Status: 401, Began: began}
			want(t, "late change", r.Failure(late, later, nil), autodisable.Change{})
			want(t, "status after a late error", r.status(k1), after)
			r.Success(k1, began, later)
			want(t, "status after a late success", r.status(k1), after)
		})
	}
}

func TestClockSetBack(t *testing.T) {
	back := func(r *rig) { r.now = r.now.Add(-24 * time.Hour) }
	for name, test := range map[string]func(*rig){
		"counting goes on": func(r *rig) {
			r.run("k1 401, k1 401")
			back(r)
			r.run("k1 401")
			r.wantOut("k1")
		},
		"a disable for a time ends early": func(r *rig) {
			r.run("k1 401, k1 401, k1 401")
			back(r)
			r.wantOut("")
			want(r.t, "trial", r.status(k1).Trial, true)
			want(r.t, "told", len(r.Lapse(r.now)), 1)
			r.now = r.now.Add(24 * time.Hour) // and does not come back with the clock
			r.wantOut("")
			back(r)
			r.run("k1 ok")
			want(r.t, "trial", r.status(k1).Trial, false)
		},
		"a small step does not": func(r *rig) {
			r.run("k1 401, k1 401, k1 401")
			r.now = r.now.Add(-minute)
			r.wantOut("k1")
		},
		"errors count after an enable": func(r *rig) {
			r.Enable(k1, r.now, "")
			back(r)
			r.run("k1 401, k1 401, k1 401")
			r.wantOut("k1")
		},
		"successes too": func(r *rig) {
			r.Enable(k1, r.now, "")
			back(r)
			r.run("k1 401, k1 ok")
			r.wantErrors(k1, map[string]int{})
		},
		"an operator's word is kept": func(r *rig) {
			r.Disable(k1, r.now, r.now.Add(minute), "")
			back(r)
			r.wantOut("k1")
		},
	} {
		t.Run(name, func(t *testing.T) { test(newRig(t, on401(time.Hour))) })
	}
}
