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

func TestConsecutiveErrorsDisable(t *testing.T) {
	type rules = []autodisable.Rule
	on4xx := autodisable.Rule{Class: 4, Times: 2}
	for _, test := range []struct {
		name     string
		rules    rules
		attempts string
		out      string
	}{
		{"below", rules{on401(0)}, "k1 401, k1 401", ""},
		{"at", rules{on401(0)}, "k1 401, k1 401, k1 401", "k1"},
		{"once", rules{{Status: 401, Times: 1}}, "k1 401", "k1"},
		{"times below 1", rules{{Status: 401}}, "k1 401", "k1"},
		{"success ends a streak", rules{on401(0)}, "k1 401, k1 401, k1 ok, k1 401, k1 401", ""},
		{"success then enough", rules{on401(0)}, "k1 401, k1 ok, k1 401, k1 401, k1 401", "k1"},
		{"another key's success ends no key's streak", rules{on401(0)}, "k1 401, k1 401, k2 ok, k1 401", "k1"},
		{"another key's error is not this one's", rules{on401(0)}, "k1 401, k2 401, k3 401", ""},
		{"another status neither counts nor resets", rules{on401(0)}, "k1 401, k1 500, k1 401, k1 429, k1 transport, k1 401", "k1"},
		{"another listed status neither", rules{on401(0), on500}, "k1 401, k1 500, k1 401, k1 401", "k1"},
		{"unlisted", rules{on401(0)}, "k1 403, k1 403, k1 403, k1 403", ""},
		{"no rules", nil, "k1 401, k1 401, k1 401", ""},
		{"a rule of nothing", rules{{Times: 1}}, "k1 401, k1 0, k1 99, k1 transport", ""},

		{"the channel's", rules{on500}, "k1 500, k2 500", "-"},
		{"any key's success ends the channel's streak", rules{on500}, "k1 500, k2 ok, k1 500", ""},
		{"a success without key too", rules{on500}, "k1 500, - ok, k1 500", ""},

		{"class", rules{on5xx}, "k1 500, k1 503, k1 529", "-"},
		{"class is not its neighbour", rules{on5xx}, "k1 500, k1 503, k1 499, k1 600", ""},
		{"class of transport", rules{on5xx}, "k1 500, k1 503, k1 transport", ""},
		{"class 4 counts per status", rules{on4xx}, "k1 401, k1 404", ""},
		{"class 4 of keys", rules{on4xx}, "k1 401, k1 429", "k1"},
		{"class 4 of channels", rules{on4xx}, "k1 404, k2 410", "-"},

		{"transport", rules{onTransport}, "k1 transport, k2 transport, k1 transport, - transport, k1 transport", "-"},
		{"transport is no status", rules{onTransport}, "k1 500, k1 500, k1 500, k1 500, k1 500", ""},

		{"scope of 401", rules{{Status: 401, Times: 1}}, "k1 401", "k1"},
		{"scope of 402", rules{{Status: 402, Times: 1}}, "k1 402", "k1"},
		{"scope of 403", rules{{Status: 403, Times: 1}}, "k1 403", "k1"},
		{"scope of 429", rules{{Status: 429, Times: 1}}, "k1 429", "k1"},
		{"scope of 404", rules{{Status: 404, Times: 1}}, "k1 404", "-"},
		{"scope key", rules{{Status: 500, Times: 2, Scope: autodisable.ScopeKey}}, "k1 500, k2 500, k1 500", "k1"},
		{"scope channel", rules{{Status: 401, Times: 2, Scope: autodisable.ScopeChannel}}, "k1 401, k2 401", "-"},
		{"transport of keys", rules{{Transport: true, Times: 2, Scope: autodisable.ScopeKey}}, "k1 transport, k2 transport, k1 transport", "k1"},
		{"a channel without keys", rules{on401(0)}, "- 401, - 401, - 401", "-"},
		{"a channel without keys, scope key", rules{{Status: 500, Times: 1, Scope: autodisable.ScopeKey}}, "- 500", "-"},

		{"each rule counts for itself", rules{{Status: 500, Times: 3}, on5xx}, "k1 503, k1 500, k1 502", "-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, test.rules...)
			changes := r.run(test.attempts)
			r.wantOut(test.out)
			if told := len(changes); told != min(len(test.out), 1) {
				t.Errorf("changes: %v", changes)
			}
		})
	}
}

func TestDisableIsTold(t *testing.T) {
	for _, test := range []struct {
		rule   autodisable.Rule
		fail   autodisable.Failure
		status int
		reason string
	}{
		{on401(0), autodisable.Failure{Key: k1, Status: 401}, 401, "Auto-disabled after 3 consecutive errors with status 401"},
		{on401(time.Hour), autodisable.Failure{Key: k1, Status: 401}, 401, "Auto-disabled after 3 consecutive errors with status 401"},
		{autodisable.Rule{Status: 401, Times: 1}, autodisable.Failure{Key: k1, Status: 401}, 401, "Auto-disabled after 1 consecutive error with status 401"},
		{on5xx, autodisable.Failure{Key: k1, Status: 503}, 503, "Auto-disabled after 3 consecutive errors with status 5xx"},
		{onTransport, autodisable.Failure{Key: k1, Transport: true, Status: 200}, 0, "Auto-disabled after 5 consecutive transport errors"},
		{
			autodisable.Rule{Status: 429, Match: "Insufficient", Times: 2},
			autodisable.Failure{Key: k1, Status: 429, Code: "insufficient_quota"}, 429,
			`Auto-disabled after 2 consecutive errors with status 429 matching "Insufficient"`,
		},
	} {
		t.Run(test.rule.String(), func(t *testing.T) {
			r := newRig(t, test.rule)
			var c autodisable.Change
			for range test.rule.Times {
				want(t, "early change", c, autodisable.Change{})
				c = r.failAs(test.fail)
			}
			key, until := k1, time.Time{}
			if test.rule.Class != 0 || test.rule.Transport {
				key = channel
			}
			if test.rule.For > 0 {
				until = r.now.Add(test.rule.For)
			}
			record := autodisable.Record{
				By: autodisable.ByAuto, Reason: test.reason, Status: test.status, Count: test.rule.Times, At: r.now, Until: until,
			}
			want(t, "change", c, autodisable.Change{Key: key, Disabled: true, Record: record, By: autodisable.ByAuto, Reason: test.reason})
			want(t, "status", *r.status(key).Disabled, record)
		})
	}
}

func TestMatchLooksAtCodeAndMessage(t *testing.T) {
	rule := autodisable.Rule{Status: 429, Match: "Exceeded your quota", Times: 1}
	for name, test := range map[string]struct {
		code, message string
		status        int
		out           string
	}{
		"message":        {"x", "You exceeded your QUOTA today", 429, "k1"},
		"code":           {"EXCEEDED YOUR QUOTA", "x", 429, "k1"},
		"neither":        {"rate_limited", "slow down", 429, ""},
		"across the two": {"exceeded your", "quota", 429, ""},
		"nothing":        {"", "", 429, ""},
		"other status":   {"", "exceeded your quota", 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rule)
			r.failAs(autodisable.Failure{Key: k1, Status: test.status, Code: test.code, Message: test.message})
			r.wantOut(test.out)
		})
	}
}

func TestBurstCountsOnce(t *testing.T) {
	r := newRig(t, on401(0), autodisable.Rule{Class: 4, Times: 2, Scope: autodisable.ScopeChannel})
	began := r.now
	burst := func(n int, key string) {
		for i := range n {
			f := autodisable.Failure{Key: key, Status: 401, Began: began.Add(time.Duration(i) * time.Millisecond)}
			r.now = began.Add(second + time.Duration(i)*time.Millisecond)
			if c := r.Failure(f, r.now, nil); !c.Zero() {
				t.Fatalf("changed %+v", c)
			}
		}
	}
	burst(90, k1)
	burst(90, k2)
	r.wantErrors(k1, map[string]int{"401": 1})
	r.wantErrors(k2, map[string]int{"401": 1})
	r.wantErrors(channel, map[string]int{"4xx": 1})
	r.succeed(k1)
	burst(90, k1) // what is left of it begins no new streak
	r.wantErrors(k1, map[string]int{})
	r.now = began.Add(minute)
	want(t, "changes", r.run("k1 401, k2 401"), []string{"- disabled"})
}

func TestAttemptThatBeganWithTheLastErrorDoesNotCount(t *testing.T) {
	r := newRig(t, on401(0))
	for range 5 {
		r.Failure(autodisable.Failure{Key: k1, Status: 401, Began: t0}, t0, nil)
	}
	r.wantErrors(k1, map[string]int{"401": 1})
}

// An error may fulfil more than one rule.
func TestRulesFulfilledTogether(t *testing.T) {
	hour, permanent := autodisable.Rule{Status: 500, Times: 2, For: time.Hour}, autodisable.Rule{Class: 5, Times: 2}
	for name, rules := range map[string][]autodisable.Rule{
		"longer last":  {hour, permanent},
		"longer first": {permanent, hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rules...)
			r.run("k1 500, k1 500")
			want(t, "reason", r.status(channel).Disabled.Reason, "Auto-disabled after 2 consecutive errors with status 5xx")
		})
	}
	t.Run("of key and channel", func(t *testing.T) {
		r := newRig(t, on401(0), autodisable.Rule{Class: 4, Times: 3, For: minute, Scope: autodisable.ScopeChannel})
		want(t, "changes", r.run("k1 401, k1 401, k1 401"), []string{"- disabled"})
		r.wantErrors(k1, map[string]int{"401": 3})
		r.Enable(channel, r.now, "")
		want(t, "changes", r.run("k1 401"), []string{"k1 disabled"})
	})
}

func TestTransportErrorHasNoStatus(t *testing.T) {
	r := newRig(t, on500, onTransport)
	r.failAs(autodisable.Failure{Key: k1, Status: 500, Transport: true})
	r.wantErrors(channel, map[string]int{"transport": 1})
}

func TestStatusHasListedErrorsOnly(t *testing.T) {
	r := newRig(t, on401(0), on500, on5xx, onTransport,
		autodisable.Rule{Status: 429, Match: "Quota", Times: 9}, autodisable.Rule{Status: 429, Times: 9})
	r.run("k1 401, k1 500, k2 403, k1 401, k2 transport, k3 404")
	r.failAs(autodisable.Failure{Key: k2, Status: 429, Message: "no quota"})
	r.run("k2 429")
	r.wantErrors(k1, map[string]int{"401": 2})
	r.wantErrors(k2, map[string]int{"429": 2, "429 Quota": 1})
	r.wantErrors(k3, map[string]int{})
	r.wantErrors(channel, map[string]int{"500": 1, "5xx": 1, "transport": 1})
	want(t, "keys", len(r.Snapshot(r.now).Keys), 3)
}

func TestOutcomesOfUnknownKeys(t *testing.T) {
	r := newRig(t, on401(0), on500)
	for range 3 {
		r.fail("sha256:gone", 401)
	}
	r.wantOut("")
	r.fail("sha256:gone", 500)
	r.wantErrors(channel, map[string]int{"500": 1})
	r.succeed("sha256:gone")
	r.wantErrors(channel, map[string]int{})
}
