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

package credential

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

func secrets(names ...string) []Secret {
	all := make([]Secret, len(names))
	for i, name := range names {
		all[i] = NewSecret(name)
	}
	return all
}

func keysOf(names ...string) *Keys { return NewPool().Keys(secrets(names...)) }

// key returns the key of ks with that secret.
func key(t *testing.T, ks *Keys, secret string) *Key {
	t.Helper()
	for _, k := range ks.keys {
		if k.Secret().Reveal() == secret {
			return k
		}
	}
	t.Fatalf("no key %q", secret)
	return nil
}

// picks returns the secrets of n picks in a row, "-" for none.
func picks(ks *Keys, n int, model string, now time.Time, tried ...*Key) string {
	var got []string
	for range n {
		if k := ks.Pick(model, now, tried); k != nil {
			got = append(got, k.Secret().Reveal())
		} else {
			got = append(got, "-")
		}
	}
	return strings.Join(got, " ")
}

func wantPicks(t *testing.T, ks *Keys, n int, model string, now time.Time, want string) {
	t.Helper()
	if got := picks(ks, n, model, now); got != want {
		t.Errorf("picked %s, want %s", got, want)
	}
}

func wantLook(t *testing.T, ks *Keys, model string, now time.Time, want Availability) {
	t.Helper()
	got := ks.Look(model, now)
	if got.Usable != want.Usable || got.Reason != want.Reason || !got.Return.Equal(want.Return) {
		t.Errorf("Look = %+v, want %+v", got, want)
	}
	if free := ks.Pick(model, now, nil) != nil; free != (want.Usable > 0) {
		t.Errorf("Pick finds a key: %v, Look says %+v", free, got)
	}
}

func wantTime(t *testing.T, what string, got, want time.Time) {
	t.Helper()
	if !got.Equal(want) {
		t.Errorf("%s: %v, want %v", what, got.Sub(t0), want.Sub(t0))
	}
}

func TestRotation(t *testing.T) {
	wantPicks(t, keysOf("a", "b", "c"), 7, "m", t0, "a b c a b c a")
	wantPicks(t, keysOf("a"), 3, "m", t0, "a a a")
	wantPicks(t, keysOf(""), 2, "m", t0, "- -")
}

func TestRotationIsEvenAmongUsableKeys(t *testing.T) {
	ks := keysOf("a", "b", "c", "d")
	ks.Refused(key(t, ks, "b"), t0, t0)
	counts := make(map[string]int)
	for range 300 {
		counts[ks.Pick("m", t0, nil).Secret().Reveal()]++
	}
	if counts["a"] != 100 || counts["c"] != 100 || counts["d"] != 100 {
		t.Errorf("picks are uneven: %v", counts)
	}
}

func TestSwitchSkipsTriedKeys(t *testing.T) {
	ks := keysOf("a", "b", "c")
	a, b, c := key(t, ks, "a"), key(t, ks, "b"), key(t, ks, "c")
	if got := picks(ks, 4, "m", t0, a); strings.Contains(got, "a") || !strings.Contains(got, "b c") {
		t.Errorf("with a tried: %s", got)
	}
	if got := picks(ks, 2, "m", t0, c, a); got != "b b" {
		t.Errorf("with a and c tried: %s", got)
	}
	if got := picks(ks, 1, "m", t0, a, b, c); got != "-" {
		t.Errorf("with all tried: %s", got)
	}
	ks.Refused(b, t0, t0)
	if got := picks(ks, 2, "m", t0, a); got != "c c" {
		t.Errorf("with a tried and b refused: %s", got)
	}
}

func TestMissingAndRepeatedKeys(t *testing.T) {
	for _, tc := range []struct {
		secrets      []string
		len, missing int
	}{
		{[]string{"a", "", "b"}, 2, 1},
		{[]string{"", ""}, 0, 2},
		{[]string{"a", "b", "a"}, 2, 0},
		{nil, 1, 0},
	} {
		ks := keysOf(tc.secrets...)
		if ks.Len() != tc.len || ks.Missing() != tc.missing {
			t.Errorf("%q: %d keys, %d missing", tc.secrets, ks.Len(), ks.Missing())
		}
	}
	wantLook(t, keysOf(""), "m", t0, Availability{Reason: NoKey})
}

func TestChannelWithoutKeysHasAnAnonymousOne(t *testing.T) {
	pool := NewPool()
	ks := pool.Keys(nil)
	k := ks.Pick("m", t0, nil)
	if k == nil || k.ID() != "" || !k.Secret().Empty() {
		t.Fatalf("picked %v", k)
	}
	until, pair := ks.Limited(k, "m", t0, 5*time.Second)
	wantTime(t, "until", until, at(5*time.Second))
	if !pair.IsZero() {
		t.Error("the only key pauses the pair")
	}
	wantLook(t, ks, "m", t0, Availability{Reason: Limited, Return: at(5 * time.Second)})
	pool.Retain(nil)
	wantLook(t, pool.Keys(nil), "m", t0, Availability{Reason: Limited, Return: at(5 * time.Second)})
	ks.Refused(k, t0, t0)
	wantLook(t, ks, "other", t0, Availability{Reason: NoKey, Return: at(time.Second)})
	wantLook(t, ks, "other", at(time.Second), Availability{Usable: 1})
}

func TestAvailabilityReason(t *testing.T) {
	ks := keysOf("a", "b", "c")
	ks.Refused(key(t, ks, "a"), t0, t0)
	ks.Refused(key(t, ks, "b"), t0, t0)
	wantLook(t, ks, "m", t0, Availability{Usable: 1})
	ks.Limited(key(t, ks, "c"), "m", t0, 30*time.Second)
	wantLook(t, ks, "m", t0, Availability{Reason: Limited, Return: at(time.Second)})
	ks.Refused(key(t, ks, "c"), t0, t0)
	wantLook(t, ks, "m", t0, Availability{Reason: NoKey, Return: at(time.Second)})

	ks = keysOf("a", "b")
	ks.Limited(key(t, ks, "a"), "m", t0, time.Minute)
	ks.Refused(key(t, ks, "b"), t0, t0)
	wantLook(t, ks, "m", t0, Availability{Reason: Limited, Return: at(time.Second)})

	only := keysOf("a")
	only.Limited(key(t, only, "a"), "m", t0, 30*time.Second)
	only.Refused(key(t, only, "a"), t0, t0)
	wantLook(t, only, "m", t0, Availability{Reason: NoKey, Return: at(30 * time.Second)})
}

func TestForbiddenFromTheSecondInARow(t *testing.T) {
	ks := keysOf("a", "b")
	a, b := key(t, ks, "a"), key(t, ks, "b")
	forbidden := func(k *Key, d time.Duration, want bool) {
		t.Helper()
		if got := ks.Forbidden(k, at(d)); got != want {
			t.Errorf("at %v: %v, want %v", d, got, want)
		}
	}
	forbidden(a, 0, false)
	forbidden(b, 0, false)
	forbidden(a, time.Second, true)
	forbidden(a, 2*time.Second, true)
	ks.Succeeded(a, "any")
	forbidden(a, 3*time.Second, false)
	forbidden(b, maxRow+1, false)
	forbidden(b, 2*maxRow+1, true)
	wantLook(t, ks, "m", t0, Availability{Usable: 2})
}

func TestSnapshot(t *testing.T) {
	ks := keysOf("a", "", "b", "c")
	ks.Limited(key(t, ks, "b"), "m", t0, time.Minute)
	ks.Limited(key(t, ks, "b"), "n", t0, 2*time.Minute)
	ks.Limited(key(t, ks, "b"), "o", t0, time.Second)
	ks.Limited(key(t, ks, "c"), "m", t0, time.Minute)
	ks.Refused(key(t, ks, "c"), t0, t0)
	id := func(s string) string { return NewSecret(s).ID() }
	paused := Status{ID: id("c"), State: StatePaused, Until: at(time.Second), LimitedModels: 1}
	for _, tc := range []struct {
		now  time.Time
		want []Status
	}{
		{t0, []Status{
			{ID: id("a"), State: StateEnabled},
			{ID: id("b"), State: StateLimited, Until: at(2 * time.Minute), LimitedModels: 3},
			paused,
			{State: StatePaused, Missing: true},
		}},
		{at(time.Second), []Status{
			{ID: id("a"), State: StateEnabled},
			{ID: id("b"), State: StateLimited, Until: at(2 * time.Minute), LimitedModels: 2},
			{ID: id("c"), State: StateLimited, Until: at(time.Minute), LimitedModels: 1},
			{State: StatePaused, Missing: true},
		}},
		{at(2 * time.Minute), []Status{
			{ID: id("a"), State: StateEnabled},
			{ID: id("b"), State: StateEnabled},
			{ID: id("c"), State: StateEnabled},
			{State: StatePaused, Missing: true},
		}},
		{t0, []Status{
			{ID: id("a"), State: StateEnabled},
			{ID: id("b"), State: StateLimited, Until: at(2 * time.Minute), LimitedModels: 3},
			paused,
			{State: StatePaused, Missing: true},
		}},
	} {
		if got := ks.Snapshot(tc.now); !slices.Equal(got, tc.want) {
			t.Errorf("at %v:\n got %+v\nwant %+v", tc.now.Sub(t0), got, tc.want)
		}
	}
	if got := NewPool().Keys(nil).Snapshot(t0); len(got) != 1 || got[0] != (Status{State: StateEnabled}) {
		t.Errorf("anonymous key: %+v", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	pool := NewPool()
	old, fresh := pool.Keys(secrets("a", "b", "c")), pool.Keys(secrets("c", "b", "d"))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			ks := []*Keys{old, fresh}[g%2]
			for i := range 500 {
				now := at(time.Duration(i) * 10 * time.Millisecond)
				model := fmt.Sprint("m", i%5)
				k := ks.Pick(model, now, nil)
				if k == nil {
					k = ks.keys[i%len(ks.keys)]
				}
				switch (g + i) % 6 {
				case 0:
					ks.Limited(k, model, now, time.Duration(i%3)*time.Second)
				case 1:
					ks.Refused(k, now, now)
				case 2:
					ks.Forbidden(k, now)
				case 3:
					ks.Snapshot(now)
				default:
					ks.Succeeded(k, model)
				}
				ks.Look(model, now)
			}
		})
	}
	wg.Go(func() { pool.Retain([]string{NewSecret("b").ID(), NewSecret("c").ID()}) })
	wg.Wait()
	end := at(3 * time.Hour)
	for _, ks := range []*Keys{old, fresh} {
		for _, k := range ks.keys {
			for i := range 5 {
				ks.Succeeded(k, fmt.Sprint("m", i))
			}
			k.state.tidy("m0", end)
		}
	}
	if n := pool.noted.Load(); n != 0 {
		t.Errorf("%d keys still noted when all is over", n)
	}
}

func TestKeysDisabledFromOutsideAreNotPicked(t *testing.T) {
	ks := keysOf("a", "b", "c")
	out := map[string]bool{}
	ks.Outside(func(time.Time) bool { return len(out) > 0 }, func(id string, _ time.Time) bool { return out[id] })
	out[key(t, ks, "b").ID()] = true
	for _, got := range strings.Fields(picks(ks, 6, "m", t0)) {
		if got == "b" {
			t.Error("a disabled key was picked")
		}
	}
	if got := ks.Look("m", t0); got.Usable != 2 {
		t.Errorf("%+v", got)
	}
	out[key(t, ks, "a").ID()], out[key(t, ks, "c").ID()] = true, true
	if got := ks.Look("m", t0); got.Usable != 0 || got.Reason != Disabled || !got.Return.IsZero() {
		t.Errorf("all disabled: %+v", got)
	}
	delete(out, key(t, ks, "a").ID())
	ks.Limited(key(t, ks, "a"), "m", t0, time.Minute)
	if got := ks.Look("m", t0); got.Reason != Limited || !got.Return.Equal(at(time.Minute)) {
		t.Errorf("disabled or limited: %+v", got)
	}
}

func TestForgiveEndsPausesAndLimits(t *testing.T) {
	ks := keysOf("a", "b")
	a := key(t, ks, "a")
	ks.Refused(a, t0, t0)
	ks.Limited(a, "m", t0, time.Hour)
	if ks.Usable(a.ID(), "m", t0) {
		t.Error("a refused key is usable")
	}
	if !ks.Forgive(a.ID()) || ks.Forgive("sha256:000000000000") {
		t.Error("which keys there are")
	}
	if !ks.Usable(a.ID(), "m", t0) || ks.Look("m", t0).Usable != 2 {
		t.Error("forgiven, but not usable")
	}
}

// The highest of the keys that can be used: what other requests do changes
// nothing, and of those that are out only their own users move.
func TestPickHighestOfTheKeysThatCanBeUsed(t *testing.T) {
	ks := keysOf("a", "b", "c")
	a, b, c := key(t, ks, "a"), key(t, ks, "b"), key(t, ks, "c")
	order := map[string]float64{a.ID(): 0.2, b.ID(): 0.3, c.ID(): 0.1}
	want := func(now time.Time, tried []*Key, want *Key) {
		t.Helper()
		got := ks.PickHighest("m", now, tried, func(id string) float64 { return order[id] })
		if got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	want(t0, nil, b)
	ks.Pick("m", t0, nil)
	want(t0, nil, b)
	want(t0, []*Key{b}, a)
	ks.Refused(a, t0, t0)
	want(t0, nil, b)
	want(t0, []*Key{b}, c)
	ks.Limited(b, "m", t0, time.Minute)
	want(t0, nil, c)
	want(t0, []*Key{c}, nil)
	want(at(2*time.Second), nil, a)
	want(at(2*time.Minute), nil, b)

	ks.Outside(func(time.Time) bool { return true }, func(id string, _ time.Time) bool { return id == b.ID() })
	want(at(2*time.Minute), nil, a)

	if k := keysOf("").PickHighest("m", t0, nil, func(string) float64 { return 0 }); k != nil {
		t.Errorf("of keys that are all missing: %v", k)
	}
	single := keysOf()
	if k := single.PickHighest("m", t0, nil, func(string) float64 { return 0 }); k != single.keys[0] {
		t.Errorf("of a channel without keys: %v", k)
	}
}
