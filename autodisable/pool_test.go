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
	"slices"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
)

const (
	k1out = "k1 401, k1 401, k1 401"
	k2out = "k2 401, k2 401, k2 401"
	k3out = "k3 401, k3 401, k3 401"
)

func newPool(t *testing.T, change func(*autodisable.Settings)) *rig {
	s := autodisable.Settings{Rules: []autodisable.Rule{on401(0)}}
	change(&s)
	return newRigWith(t, s)
}

func TestKeysOut(t *testing.T) {
	r := newRig(t, on401(time.Hour), on500)
	want(t, "none", r.KeysOut(r.now), 0)
	r.run(k1out + ", k2 401, k3 500, k3 500")
	r.wantOut("- k1")
	want(t, "one", r.KeysOut(r.now), 1)
	r.Disable(k3, r.now, time.Time{}, "")
	want(t, "two", r.KeysOut(r.now), 2)
	want(t, "on trial", r.KeysOut(r.now.Add(time.Hour)), 1)
}

func TestKeepLastKey(t *testing.T) {
	for _, test := range []struct {
		name     string
		unusable []string // otherwise
		disabled []string // by an operator
		attempts string
		out      string
	}{
		{"the last of three", nil, nil, k1out + ", " + k2out + ", " + k3out, "k1 k2"},
		{"the rest is unusable otherwise", []string{k2, k3}, nil, k1out, ""},
		{"its own usability does not matter", []string{k1}, nil, k1out, "k1"},
		{"the rest is disabled", nil, []string{k2, k3}, k1out, "k2 k3"},
		{"each of the rest for another reason", []string{k2}, []string{k3}, k1out, "k3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newPool(t, func(s *autodisable.Settings) { s.KeepLastKey = true })
			r.usable = func(key string) bool { return !slices.Contains(test.unusable, key) }
			for _, key := range test.disabled {
				r.Disable(key, r.now, time.Time{}, "")
			}
			r.run(test.attempts)
			r.wantOut(test.out)
		})
	}
}

func TestKeptKeyGoesWhenItIsNotTheLastAnyMore(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) { s.KeepLastKey = true })
	r.usable = func(key string) bool { return false }
	want(t, "alone", len(r.run(k1out+", k1 401")), 0)
	r.wantErrors(k1, map[string]int{"401": 4})
	r.usable = nil
	want(t, "not alone", r.run("k1 401"), []string{"k1 disabled"})
	r.reconfigure(func(s *autodisable.Settings) {}, k3)
	want(t, "a pool of one", len(r.run(k3out)), 0)
}

func TestKeepLastKeySparesNoChannelAndNoOperatorsKey(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) { s.KeepLastKey, s.Rules = true, append(s.Rules, on500) })
	for _, key := range []string{k1, k2, k3} {
		r.Disable(key, r.now, time.Time{}, "")
	}
	r.run("k1 500, k1 500")
	r.wantOut("- k1 k2 k3")
}

func TestCorrelatedKeysAreNotDisabled(t *testing.T) {
	for _, test := range []struct {
		name     string
		keys     int
		attempts string
		told     []string
		out      string
	}{
		{"alone", 2, k1out, []string{"k1 disabled"}, "k1"},
		{"two of two", 2, "k2 401, " + k1out, []string{"k1 correlated"}, ""},
		{"two of three", 3, "k2 401, " + k1out, []string{"k1 disabled"}, "k1"},
		{"three of three", 3, "k2 401, k3 401, " + k1out, []string{"k1 correlated"}, ""},
		{"off", 0, "k2 401, k3 401, " + k1out, []string{"k1 disabled"}, "k1"},
		{"one is off", 1, k1out, []string{"k1 disabled"}, "k1"},
		{"another status", 2, "k2 403, " + k1out, []string{"k1 disabled"}, "k1"},
		{"the other works again", 2, "k2 401, k2 ok, " + k1out, []string{"k1 disabled"}, "k1"},
		{"counters return to 0", 2, "k2 401, k2 401, " + k1out + ", k1 401, k2 401, k1 401, k2 401", []string{"k1 correlated"}, ""},
		{"again", 2, "k2 401, " + k1out + ", " + k1out, []string{"k1 correlated", "k1 correlated"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newPool(t, func(s *autodisable.Settings) { s.CorrelateKeys, s.CorrelateWindow = test.keys, minute })
			want(t, "told", r.run(test.attempts), test.told)
			r.wantOut(test.out)
		})
	}
}

func TestCorrelationIsTold(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) { s.CorrelateKeys, s.CorrelateWindow = 2, minute })
	r.run("k3 401, k2 500, k1 401, k1 401")
	want(t, "change", r.fail(k1, 401), autodisable.Change{
		Key: k1, By: autodisable.ByAuto, Correlated: true, Reason: "2 keys saw errors with status 401 within 1m",
	})
	r.wantErrors(k1, map[string]int{})
	r.wantErrors(k3, map[string]int{})
}

func TestCorrelationHasAWindow(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) { s.CorrelateKeys, s.CorrelateWindow = 2, minute })
	r.run("k2 401")
	r.now = r.now.Add(minute - 3*second + 1)
	want(t, "after", r.run(k1out), []string{"k1 disabled"})
	r.wantErrors(k2, map[string]int{"401": 1})

	r = newPool(t, func(s *autodisable.Settings) { s.CorrelateKeys, s.CorrelateWindow = 2, minute })
	r.run("k2 401")
	r.now = r.now.Add(minute - 3*second)
	want(t, "within", r.run(k1out), []string{"k1 correlated"})
}

// An error that is left of a burst counts nothing, but was seen.
func TestUncountedErrorsCorrelate(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) { s.CorrelateKeys, s.CorrelateWindow = 2, 10*second })
	r.run("k2 401")
	began := r.now
	r.now = r.now.Add(minute)
	r.Failure(autodisable.Failure{Key: k2, Status: 401, Began: began}, r.now, nil)
	r.wantErrors(k2, map[string]int{"401": 1})
	want(t, "told", r.run(k1out), []string{"k1 correlated"})
}

func TestSuccessForgetsUncountedErrors(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) { s.CorrelateKeys, s.CorrelateWindow = 2, minute })
	r.run("k2 401, k2 ok")
	r.Failure(autodisable.Failure{Key: k2, Status: 401, Began: t0}, r.now, nil)
	r.run("k2 ok")
	want(t, "told", r.run(k1out), []string{"k1 disabled"})
}

func TestCorrelationLeavesWhatIsDisabled(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) { s.CorrelateKeys, s.CorrelateWindow = 2, minute })
	want(t, "told", r.run(k2out+", "+k1out), []string{"k2 disabled", "k1 correlated"})
	r.wantOut("k2")
	r.wantErrors(k2, map[string]int{"401": 3})
}

func TestCorrelationOnTrial(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) {
		s.CorrelateKeys, s.CorrelateWindow = 2, minute
		s.Rules = []autodisable.Rule{on401(time.Hour)}
	})
	r.run(k1out)
	r.wait(k1, time.Hour)
	want(t, "told", r.run("k2 401, k1 401"), []string{"k1 correlated"})
	r.now = r.now.Add(2 * minute)
	want(t, "still on trial", r.run("k1 401"), []string{"k1 disabled"})
	r.wait(k1, 2*time.Hour)
}

func TestChannelRulesDoNotCorrelate(t *testing.T) {
	r := newPool(t, func(s *autodisable.Settings) {
		s.CorrelateKeys, s.CorrelateWindow, s.Rules = 2, minute, []autodisable.Rule{on500}
	})
	want(t, "told", r.run("k1 500, k2 500"), []string{"- disabled"})
}
