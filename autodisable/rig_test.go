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
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
)

const (
	k1, k2, k3 = "sha256:111111111111", "sha256:222222222222", "sha256:333333333333"
	channel    = ""

	second = time.Second
	minute = time.Minute
)

// t0 has no monotonic reading: what holds for it holds for any clock.
var t0 = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// names are the words of rig.run for subjects.
var names = map[string]string{"k1": k1, "k2": k2, "k3": k3, "-": channel}

// rig is a Set under test with its own time.
type rig struct {
	*autodisable.Set
	t        *testing.T
	settings autodisable.Settings
	now      time.Time
	usable   func(string) bool
}

// newRig returns a set of three keys.
func newRig(t *testing.T, rules ...autodisable.Rule) *rig {
	return newRigWith(t, autodisable.Settings{Rules: rules})
}

func newRigWith(t *testing.T, s autodisable.Settings) *rig {
	return &rig{Set: autodisable.NewSet(s, []string{k1, k2, k3}), t: t, settings: s, now: t0}
}

func (r *rig) reconfigure(change func(*autodisable.Settings), keys ...string) {
	change(&r.settings)
	r.Configure(r.settings, keys)
}

// fail lets a second pass and then one attempt fail.
func (r *rig) fail(key string, status int) autodisable.Change {
	return r.failAs(autodisable.Failure{Key: key, Status: status})
}

func (r *rig) failAs(f autodisable.Failure) autodisable.Change {
	r.now = r.now.Add(second)
	f.Began = r.now.Add(-second / 2)
	return r.Failure(f, r.now, r.usable)
}

func (r *rig) succeed(key string) {
	r.now = r.now.Add(second)
	r.Success(key, r.now.Add(-second/2), r.now)
}

// run lets attempts end one after the other, each written as its key and what
// came of it: "k1 401, k2 ok, - transport". It returns the changes that are
// not zero, each as tell has it.
func (r *rig) run(attempts string) (changes []string) {
	r.t.Helper()
	for attempt := range strings.SplitSeq(attempts, ", ") {
		word, outcome, _ := strings.Cut(attempt, " ")
		key, ok := names[word]
		if !ok {
			r.t.Fatalf("no subject %q", word)
		}
		if c := r.end(key, outcome); !c.Zero() {
			changes = append(changes, tell(c))
		}
	}
	return changes
}

func (r *rig) end(key, outcome string) autodisable.Change {
	switch outcome {
	case "ok":
		r.succeed(key)
		return autodisable.Change{}
	case "transport":
		return r.failAs(autodisable.Failure{Key: key, Transport: true})
	}
	status, err := strconv.Atoi(outcome)
	if err != nil {
		r.t.Fatalf("no outcome %q", outcome)
	}
	return r.fail(key, status)
}

func tell(c autodisable.Change) string {
	what := "enabled"
	switch {
	case c.Disabled:
		what = "disabled"
	case c.Correlated:
		what = "correlated"
	}
	for name, key := range names {
		if key == c.Key {
			return name + " " + what
		}
	}
	return c.Key + " " + what
}

// out returns the names of who is disabled.
func (r *rig) out() string {
	var list []string
	if r.ChannelDisabled(r.now) {
		list = append(list, "-")
	}
	for _, name := range []string{"k1", "k2", "k3"} {
		if r.KeyDisabled(names[name], r.now) {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

func (r *rig) wantOut(want string) {
	r.t.Helper()
	if got := r.out(); got != want {
		r.t.Fatalf("disabled after %v: %q, want %q", r.now.Sub(t0), got, want)
	}
}

// status returns the key's, or the channel's.
func (r *rig) status(key string) autodisable.KeyStatus {
	s := r.Snapshot(r.now)
	if key == channel {
		return autodisable.KeyStatus{Errors: s.Errors, Disabled: s.Disabled, Trial: s.Trial, DryRun: s.DryRun}
	}
	return s.Keys[key]
}

func (r *rig) wantErrors(key string, want map[string]int) {
	r.t.Helper()
	if got := r.status(key).Errors; fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Fatalf("errors of %q: %v, want %v", key, got, want)
	}
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// on401 is the rule "status 401 3", for a time if there is one.
func on401(d time.Duration) autodisable.Rule {
	return autodisable.Rule{Status: 401, Times: 3, For: d}
}

var (
	on500       = autodisable.Rule{Status: 500, Times: 2}
	on5xx       = autodisable.Rule{Class: 5, Times: 3}
	onTransport = autodisable.Rule{Transport: true, Times: 5}
)
