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

func TestOperatorsActsAreTold(t *testing.T) {
	for _, key := range []string{channel, k1} {
		r := newRig(t, on401(0))
		until := t0.Add(time.Hour)
		record := autodisable.Record{By: autodisable.ByOperator, Reason: "maintenance", At: t0, Until: until}
		want(t, "disable", r.Disable(key, t0, until, "maintenance"), autodisable.Change{
			Key: key, Disabled: true, Record: record, By: autodisable.ByOperator, Reason: "maintenance",
		})
		want(t, "status", *r.status(key).Disabled, record)
		want(t, "enable", r.Enable(key, t0.Add(minute), "done"), autodisable.Change{
			Key: key, Record: record, By: autodisable.ByOperator, Reason: "done",
		})
		want(t, "again", r.Enable(key, t0.Add(minute), "done"), autodisable.Change{})
		r.wantOut("")
	}
}

func TestOnlyAnOperatorLiftsAnOperatorsDisable(t *testing.T) {
	for name, try := range map[string]func(*rig){
		"success":      func(r *rig) { r.run("k1 ok") },
		"errors":       func(r *rig) { r.run(k1out) },
		"time":         func(r *rig) { r.now = r.now.Add(10000 * time.Hour); r.Lapse(r.now) },
		"new rules":    func(r *rig) { r.reconfigure(func(s *autodisable.Settings) { s.Rules = nil }, k1, k2, k3) },
		"off":          func(r *rig) { r.reconfigure(func(s *autodisable.Settings) { s.Off = true }, k1, k2, k3) },
		"dry run":      func(r *rig) { r.reconfigure(func(s *autodisable.Settings) { s.DryRun = true }, k1, k2, k3) },
		"other keys":   func(r *rig) { r.reconfigure(func(s *autodisable.Settings) {}, k1) },
		"another's":    func(r *rig) { r.Enable(k2, r.now, ""); r.Enable(channel, r.now, "") },
		"a past until": func(r *rig) { r.Disable(k1, r.now, r.now, "") },
		"a stored automatic record": func(r *rig) {
			other := newRig(r.t, on401(second))
			other.run(k1out)
			r.Restore(other.Save(), r.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, on401(second))
			r.Disable(k1, r.now, time.Time{}, "leaked")
			try(r)
			r.wantOut("k1")
			want(t, "reason", r.status(k1).Disabled.Reason, "leaked")
			r.Enable(k1, r.now, "")
			r.wantOut("")
		})
	}
}

func TestOperatorReplacesAnAutomaticRecord(t *testing.T) {
	r := newRig(t, on401(time.Hour))
	r.run(k1out)
	r.Disable(k1, r.now, r.now.Add(2*time.Hour), "mine")
	r.now = r.now.Add(2*time.Hour - 1)
	r.wantOut("k1")
	r.now = r.now.Add(1)
	r.wantOut("")
	want(t, "trial", r.status(k1).Trial, false)
	r.wantErrors(k1, map[string]int{})
	want(t, "early", len(r.run("k1 401, k1 401")), 0)
	r.run("k1 401")
	r.wait(k1, time.Hour)
}

func TestOperatorReplacesAnOperatorsEnd(t *testing.T) {
	r := newRig(t)
	r.Disable(k1, r.now, time.Time{}, "for good")
	r.Disable(k1, r.now, r.now.Add(minute), "for a minute")
	r.now = r.now.Add(minute)
	r.wantOut("")
}

func TestEnableVoidsWhatWasBefore(t *testing.T) {
	for name, before := range map[string]string{
		"disabled": k1out,
		"enabled":  "k1 401, k1 401",
		"fresh":    "k2 ok",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, on401(time.Hour))
			began := r.now
			r.run(before)
			r.Enable(k1, r.now, "")
			r.wantErrors(k1, map[string]int{})
			want(t, "trial", r.status(k1).Trial, false)
			enabled := r.now
			for _, began := range []time.Time{began, enabled} {
				r.now = r.now.Add(minute)
				r.Failure(autodisable.Failure{Key: k1, Status: 401, Began: began}, r.now, nil)
			}
			r.wantErrors(k1, map[string]int{})
			r.run("k1 401")
			r.wantErrors(k1, map[string]int{"401": 1})
			r.Success(k1, enabled, r.now) // of before, too
			r.wantErrors(k1, map[string]int{"401": 1})
			r.run("k1 401, k1 401")
			r.wait(k1, time.Hour)
		})
	}
}

func TestEnableOnTrial(t *testing.T) {
	r := newRig(t, on401(time.Hour))
	r.run(k1out)
	r.wait(k1, time.Hour)
	want(t, "untold", r.Enable(k1, r.now, "").Zero(), false)

	r.run(k1out)
	r.wait(k1, time.Hour)
	r.Lapse(r.now)
	want(t, "told", r.Enable(k1, r.now, ""), autodisable.Change{})
	want(t, "trial", r.status(k1).Trial, false)
	r.run("k1 401, k1 401")
	r.wantOut("")
}

func TestEnableIsOfOneSubject(t *testing.T) {
	r := newRig(t, on401(0), on500)
	r.run(k1out + ", k2 401, k2 500, k2 500")
	r.Enable(channel, r.now, "")
	r.wantOut("k1")
	r.wantErrors(k2, map[string]int{"401": 1})
	r.Enable(k1, r.now, "")
	r.wantOut("")
}

func TestOperatorsActsOnUnknownKeys(t *testing.T) {
	r := newRig(t)
	want(t, "disable", r.Disable("sha256:gone", r.now, time.Time{}, ""), autodisable.Change{})
	want(t, "enable", r.Enable("sha256:gone", r.now, ""), autodisable.Change{})
	want(t, "disabled", r.KeyDisabled("sha256:gone", r.now), false)
	r.Disable(k1, r.now, time.Time{}, "")
	want(t, "disabled while others are", r.KeyDisabled("sha256:gone", r.now), false)
}

func TestOffCountsNothing(t *testing.T) {
	r := newRigWith(t, autodisable.Settings{Off: true, Rules: []autodisable.Rule{on401(0)}})
	r.run(k1out)
	r.wantErrors(k1, map[string]int{})
	r.wantOut("")
	r.Disable(k1, r.now, time.Time{}, "")
	r.Disable(channel, r.now, r.now.Add(minute), "")
	r.wantOut("- k1")
	r.now = r.now.Add(minute)
	r.wantOut("k1")
	r.Enable(k1, r.now, "")
	r.wantOut("")
}

func TestDryRunRemovesNothing(t *testing.T) {
	r := newRigWith(t, autodisable.Settings{DryRun: true, Rules: []autodisable.Rule{on401(time.Hour), on500}})
	r.run("k1 401, k1 401, k2 500")
	for _, c := range []autodisable.Change{r.fail(k1, 401), r.fail(k2, 500)} {
		want(t, "disabled", c.Disabled, true)
		want(t, "dry run", c.DryRun, true)
		want(t, "status", *r.status(c.Key).Disabled, c.Record)
		want(t, "status dry run", r.status(c.Key).DryRun, true)
	}
	r.wantOut("")
	want(t, "keys out", r.KeysOut(r.now), 0)
	want(t, "once", len(r.run("k1 ok, "+k1out)), 0)
	want(t, "saved", r.Save(), autodisable.State{})

	r.now = r.now.Add(time.Hour)
	want(t, "trial", r.status(k1).Trial && r.status(k1).DryRun, true)
	want(t, "lapse", r.Lapse(r.now)[0].DryRun, true)
	want(t, "enable", r.Enable(channel, r.now, "").DryRun, true)

	r.Disable(k2, r.now, time.Time{}, "")
	r.wantOut("k2")
	want(t, "operator's is none", r.status(k2).DryRun, false)
}

func TestDryRunRehearsesKeepLastKey(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) { s.KeepLastKey, s.DryRun = true, true })
	want(t, "told", r.run(k1out+", "+k2out+", "+k3out), []string{"k1 disabled", "k2 disabled"})
}
