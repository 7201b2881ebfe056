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
	"encoding/json"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
)

func TestConfigureKeepsWhatIsTheSame(t *testing.T) {
	type rules = []autodisable.Rule
	for _, test := range []struct {
		name   string
		before autodisable.Rule
		after  rules
		kept   bool
	}{
		{"nothing new", on401(0), rules{on401(0)}, true},
		{"moved", on401(0), rules{on500, onTransport, on401(0)}, true},
		{"other numbers", on401(0), rules{{Status: 401, Times: 9, For: time.Hour}}, true},
		{"scope written out", on401(0), rules{{Status: 401, Times: 9, Scope: autodisable.ScopeKey}}, true},
		{"match in another case", autodisable.Rule{Status: 401, Match: "No", Times: 9}, rules{{Status: 401, Match: "nO", Times: 9}}, true},
		{"another scope", on401(0), rules{{Status: 401, Times: 9, Scope: autodisable.ScopeChannel}}, false},
		{"another match", on401(0), rules{{Status: 401, Match: "no", Times: 9}}, false},
		{"class instead of status", on401(0), rules{{Class: 4, Times: 9}}, false},
		{"gone", on401(0), nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, test.before)
			for range 2 {
				r.failAs(autodisable.Failure{Key: k1, Status: 401, Message: "no"})
			}
			r.reconfigure(func(s *autodisable.Settings) { s.Rules = test.after }, k1, k2, k3)
			errors := 0
			for _, n := range r.status(k1).Errors {
				errors += n
			}
			want(t, "kept", errors == 2, test.kept)
			r.reconfigure(func(s *autodisable.Settings) { s.Rules = rules{test.before} }, k1, k2, k3)
			want(t, "kept when all is as before", len(r.status(k1).Errors) == 1, test.kept)
		})
	}
}

func TestNewTimesApplyWithTheNextError(t *testing.T) {
	r := newRig(t, on401(0))
	r.run("k1 401, k1 401")
	r.reconfigure(func(s *autodisable.Settings) { s.Rules = []autodisable.Rule{{Status: 401, Times: 1}} }, k1, k2, k3)
	r.wantOut("")
	r.run("k1 401")
	r.wantOut("k1")
}

func TestCallersRulesAreCopied(t *testing.T) {
	rules := []autodisable.Rule{on401(0)}
	r := newRig(t, rules...)
	r.run("k1 401, k1 401")
	rules[0].Status = 500
	r.run("k1 401")
	r.wantOut("k1")
	r.reconfigure(func(s *autodisable.Settings) { s.Rules = rules }, k1, k2, k3)
	r.run("k2 500, k2 500, k2 500")
	r.wantOut("- k1")
}

func TestKeysAreKnownByTheirIDs(t *testing.T) {
	r := newRig(t, on401(0))
	r.run(k1out + ", k2 401, k3 401")
	nothing := func(*autodisable.Settings) {}
	r.reconfigure(nothing, k3, k1, "", "sha256:new", k1)
	r.wantOut("k1")
	want(t, "keys", len(r.Snapshot(r.now).Keys), 3)
	r.wantErrors(k3, map[string]int{"401": 1})
	r.wantErrors("sha256:new", map[string]int{})
	r.reconfigure(nothing, k2)
	want(t, "keys out", r.KeysOut(r.now), 0)
	r.reconfigure(nothing, k1, k2, k3)
	r.wantOut("")
	for _, key := range []string{k1, k2, k3} {
		r.wantErrors(key, map[string]int{})
	}
}

func TestRecordsOutliveTheirRule(t *testing.T) {
	r := newRig(t, on401(0), autodisable.Rule{Status: 402, Times: 1, For: time.Hour})
	r.run(k1out + ", k2 402")
	r.reconfigure(func(s *autodisable.Settings) { s.Rules = []autodisable.Rule{on500} }, k1, k2, k3)
	r.wantOut("k1 k2")
	r.now = r.now.Add(time.Hour)
	r.wantOut("k1")
	want(t, "trial", r.status(k2).Trial, false)
	r.run("k2 500, k2 ok")
	want(t, "record", r.Save().Keys[k2], autodisable.Disable{})
}

func TestTrialFollowsItsRule(t *testing.T) {
	r := newRig(t, on401(time.Hour))
	r.run(k1out)
	r.reconfigure(func(s *autodisable.Settings) {
		s.Rules = []autodisable.Rule{on500, {Status: 401, Times: 9, For: minute}}
	}, k1, k2, k3)
	r.wait(k1, time.Hour)
	want(t, "trial", r.status(k1).Trial, true)
	r.run("k1 401")
	r.wait(k1, 2*time.Hour)
}

func TestOffForgetsWhatWasAutomatic(t *testing.T) {
	r := newRig(t, on401(0))
	r.run(k1out + ", k2 401")
	for _, off := range []bool{true, false} {
		r.reconfigure(func(s *autodisable.Settings) { s.Off = off }, k1, k2, k3)
		r.wantOut("")
		r.wantErrors(k2, map[string]int{})
	}
	r.run("k1 401, k1 401")
	r.wantOut("")
}

func TestDryRunBeginsAndEnds(t *testing.T) {
	r := newRig(t, on401(0))
	r.run(k1out)
	r.reconfigure(func(s *autodisable.Settings) { s.DryRun = true }, k1, k2, k3)
	r.wantOut("")
	want(t, "told as rehearsed", r.status(k1).DryRun, true)
	r.run(k2out + ", k3 401")
	r.reconfigure(func(s *autodisable.Settings) { s.DryRun = false }, k1, k2, k3)
	r.wantOut("k1")
	r.wantErrors(k2, map[string]int{})
	r.wantErrors(k3, map[string]int{"401": 1})
}

// reload is Save and Restore by way of JSON.
func (r *rig) reload(rules ...autodisable.Rule) *rig {
	r.t.Helper()
	text, err := json.Marshal(r.Save())
	if err != nil {
		r.t.Fatal(err)
	}
	var state autodisable.State
	if err := json.Unmarshal(text, &state); err != nil {
		r.t.Fatal(err)
	}
	next := newRig(r.t, rules...)
	next.now = r.now
	next.Restore(state, next.now)
	return next
}

func TestRecordsComeBack(t *testing.T) {
	rules := []autodisable.Rule{on401(time.Hour), {Transport: true, Times: 1}}
	r := newRig(t, rules...)
	r.run(k1out + ", k2 401, - transport")
	r.Disable(k3, r.now, r.now.Add(minute), "nap")
	next := r.reload(on500, rules[0], rules[1])
	next.wantOut("- k1 k3")
	for _, key := range []string{channel, k1, k3} {
		want(t, "record of "+key, *next.status(key).Disabled, *r.status(key).Disabled)
	}
	next.wantErrors(k1, map[string]int{"401": 3})
	next.wantErrors(k2, map[string]int{})
	next.now = next.now.Add(minute)
	next.wantOut("- k1")
	want(t, "trial after the operator's", next.status(k3).Trial, false)
}

func TestTrialComesBack(t *testing.T) {
	r := newRig(t, on401(time.Hour))
	r.run(k1out)
	r.wait(k1, time.Hour)
	r.run("k1 401")
	r.wait(k1, 2*time.Hour)
	next := r.reload(on500, on401(time.Hour))
	want(t, "trial", next.status(k1).Trial, true)
	want(t, "lapse", len(next.Lapse(next.now)), 0)
	next.run("k1 401")
	want(t, "count", next.status(k1).Disabled.Count, 5)
	next.wait(k1, 4*time.Hour)
	next.run("k1 ok")
	want(t, "trial", next.status(k1).Trial, false)
}

func TestRestorePassesOver(t *testing.T) {
	r := newRig(t, on401(0), on500)
	r.run(k1out + ", k2 500, k2 500")
	r.Disable(k3, r.now, r.now.Add(minute), "nap")
	state := r.Save()
	for name, test := range map[string]struct {
		settings autodisable.Settings
		keys     []string
		later    time.Duration
		out      string
	}{
		"nothing":                {r.settings, []string{k1, k2, k3}, 0, "- k1 k3"},
		"keys that are gone":     {r.settings, []string{k3}, 0, "- k3"},
		"operator's that ended":  {r.settings, []string{k1, k2, k3}, minute, "- k1"},
		"automatic ones if off":  {autodisable.Settings{Off: true}, []string{k1, k2, k3}, 0, "k3"},
		"nothing for lost rules": {autodisable.Settings{}, []string{k1, k2, k3}, 0, "- k1 k3"},
	} {
		t.Run(name, func(t *testing.T) {
			next := newRigWith(t, test.settings)
			next.Configure(test.settings, test.keys)
			next.now = r.now.Add(test.later)
			next.Restore(state, next.now)
			next.wantOut(test.out)
		})
	}
	next := newRig(t)
	next.Restore(autodisable.State{Channel: &autodisable.Disable{Record: autodisable.Record{By: "nobody"}}}, t0)
	next.Restore(autodisable.State{Keys: map[string]autodisable.Disable{"": *state.Channel}}, t0)
	next.wantOut("")
	want(t, "saved", next.Save(), autodisable.State{})
}

func TestLateSuccessEndsNoRestoredTrial(t *testing.T) {
	r := newRig(t, on401(time.Hour))
	began := r.now
	r.run(k1out)
	next := r.reload(on401(time.Hour))
	next.now = next.now.Add(time.Hour)
	next.Success(k1, began, next.now)
	want(t, "trial", next.status(k1).Trial, true)
	next.run("k1 ok")
	want(t, "trial after a new one", next.status(k1).Trial, false)
}

func TestEndedRecordReplacesNothing(t *testing.T) {
	nap := newRig(t)
	nap.Disable(k1, t0, t0.Add(second), "nap")
	r := newRig(t, on401(0))
	r.run(k1out)
	r.Restore(nap.Save(), r.now)
	r.wantOut("k1")
}

func TestRestoredRecordIsNotTheCallers(t *testing.T) {
	r := newRig(t, on401(0))
	r.Disable(channel, r.now, time.Time{}, "mine")
	state := r.Save()
	next := newRig(t)
	next.Restore(state, t0)
	state.Channel.Reason = "changed"
	next.Snapshot(t0).Disabled.Reason = "changed"
	want(t, "reason", next.status(channel).Disabled.Reason, "mine")
}
