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
	"testing"
	"time"
	"unsafe"
)

func ids(names ...string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = NewSecret(name).ID()
	}
	return all
}

func TestStateIsKeptByID(t *testing.T) {
	pool := NewPool()
	ks := pool.Keys(secrets("a", "b"))
	ks.Refused(key(t, ks, "a"), t0, t0)
	ks.Limited(key(t, ks, "b"), "m", t0, time.Minute)
	for _, names := range [][]string{{"b", "a"}, {"a", "b", "c"}, {"c", "", "b", "a"}} {
		ks := pool.Keys(secrets(names...))
		pool.Retain(ids(names...))
		for _, st := range ks.Snapshot(t0) {
			want := map[string]string{NewSecret("a").ID(): StatePaused, NewSecret("b").ID(): StateLimited, NewSecret("c").ID(): StateEnabled}[st.ID]
			if !st.Missing && st.State != want {
				t.Errorf("%q: key %s is %s, want %s", names, st.ID, st.State, want)
			}
		}
	}
}

func TestTwoConfigsShareWhatIsKnown(t *testing.T) {
	pool := NewPool()
	old, fresh := pool.Keys(secrets("a", "b")), pool.Keys(secrets("b", "c"))
	old.Refused(key(t, old, "b"), t0, t0)
	wantPicks(t, fresh, 2, "m", t0, "c c")
	until := fresh.Refused(key(t, fresh, "b"), at(time.Second), at(time.Second))
	wantTime(t, "doubled", until, at(3*time.Second))
	wantPicks(t, old, 2, "m", at(2*time.Second), "a a")
}

func TestWrongKeyReplacedStartsFresh(t *testing.T) {
	pool := NewPool()
	wrong := pool.Keys(secrets("wrong"))
	pool.Retain(ids("wrong"))
	now := t0
	for range 5 {
		now = wrong.Refused(key(t, wrong, "wrong"), now, now)
	}
	right := pool.Keys(secrets("right"))
	pool.Retain(ids("right"))
	wantLook(t, right, "m", t0, Availability{Usable: 1})

	back := pool.Keys(secrets("wrong"))
	wantLook(t, back, "m", t0, Availability{Usable: 1})
	wantTime(t, "first pause of the key that came back", back.Refused(key(t, back, "wrong"), t0, t0), at(time.Second))
}

func TestRefusedConfigChangesNothing(t *testing.T) {
	pool := NewPool()
	ks := pool.Keys(secrets("a"))
	pool.Retain(ids("a"))
	ks.Refused(key(t, ks, "a"), t0, t0)
	pool.Keys(secrets("b"))
	wantLook(t, ks, "m", t0, Availability{Reason: NoKey, Return: at(time.Second)})
	if pool.Retain(ids("a")) {
		t.Error("a config that never ran changed the keys")
	}
}

func TestRetainReportsChange(t *testing.T) {
	pool := NewPool()
	for i, tc := range []struct {
		ids  []string
		want bool
	}{
		{ids("a", "b"), false},
		{ids("a", "b"), false},
		{ids("b", "a"), false},
		{ids("b", "a", "b", ""), false},
		{ids("a"), true},
		{ids("c"), true},
		{nil, true},
		{nil, false},
		{ids("a"), true},
	} {
		if got := pool.Retain(tc.ids); got != tc.want {
			t.Errorf("step %d: Retain(%v) = %v", i, tc.ids, got)
		}
	}
	if first := NewPool(); first.Retain(nil) || !first.Retain(ids("a")) {
		t.Error("a first call without ids is not taken as the first")
	}
}

func TestRetainPutsThePoolBackOnTheFastPath(t *testing.T) {
	pool := NewPool()
	ks := pool.Keys(secrets("a", "b"))
	ks.Refused(key(t, ks, "a"), t0, t0)
	ks.Limited(key(t, ks, "b"), "m", t0, time.Minute)
	pool.Retain(ids("c"))
	if n := pool.noted.Load(); n != 0 {
		t.Errorf("%d keys noted", n)
	}
}

// TestKeysReturnToTheFastPath pins that whatever was noted leaves no trace in
// the long run, with a success or without one.
func TestKeysReturnToTheFastPath(t *testing.T) {
	for name, tc := range map[string]struct {
		note func(ks *Keys, k *Key)
		ok   bool // a success follows
		wait time.Duration
	}{
		"limit with a hint":     {func(ks *Keys, k *Key) { ks.Limited(k, "m", t0, time.Minute) }, false, time.Minute},
		"limit without a hint":  {func(ks *Keys, k *Key) { ks.Limited(k, "m", t0, 0) }, true, time.Second},
		"limit without success": {func(ks *Keys, k *Key) { ks.Limited(k, "m", t0, 0) }, false, time.Second + maxStreak + 1},
		"limit of other models": {func(ks *Keys, k *Key) { ks.Limited(k, "x", t0, time.Minute) }, false, time.Minute + maxStreak + 1},
		"refusal":               {func(ks *Keys, k *Key) { ks.Refused(k, t0, t0) }, true, time.Second},
		"bare 403":              {func(ks *Keys, k *Key) { ks.Forbidden(k, t0) }, true, 0},
		"old bare 403":          {func(ks *Keys, k *Key) { ks.Forbidden(k, t0) }, false, maxRow + 1},
	} {
		t.Run(name, func(t *testing.T) {
			ks := keysOf("a")
			a := key(t, ks, "a")
			tc.note(ks, a)
			if ks.pool.noted.Load() != 1 {
				t.Fatal("nothing noted")
			}
			if tc.ok {
				ks.Succeeded(a, "m")
			}
			if ks.Pick("m", at(tc.wait), nil) != a {
				t.Error("the key is still out")
			}
			if ks.pool.noted.Load() != 0 {
				t.Error("the key is still noted")
			}
		})
	}
}

func TestLookAndSnapshotChangeNothing(t *testing.T) {
	ks := keysOf("a")
	ks.Limited(key(t, ks, "a"), "m", t0, 0)
	later := at(3 * maxStreak)
	ks.Look("m", later)
	ks.Snapshot(later)
	until, _ := ks.Limited(key(t, ks, "a"), "m", later, 0)
	wantTime(t, "doubled", until, later.Add(2*time.Second))
}

func TestLimitsAreBounded(t *testing.T) {
	ks := keysOf("a", "b")
	a := key(t, ks, "a")
	model := func(i int) string { return fmt.Sprint("model-", i) }
	for i := range maxModels {
		ks.Limited(a, model(i), t0, time.Duration(i+1)*time.Second)
	}
	// None is over: the one that ends first makes room.
	ks.Limited(a, "one more", t0, 2*time.Hour)
	if n := len(a.state.limits); n != maxModels {
		t.Fatalf("%d limits, want %d", n, maxModels)
	}
	wantLook(t, ks, model(0), t0, Availability{Usable: 2})
	wantLook(t, ks, model(1), t0, Availability{Usable: 1})
	wantLook(t, ks, "one more", t0, Availability{Usable: 1})

	// Those that are over go first, all at once.
	now := at(500 * time.Second)
	ks.Limited(a, "and another", now, time.Second)
	if n := len(a.state.limits); n != maxModels-499+1 {
		t.Errorf("%d limits are left", n)
	}
	wantLook(t, ks, model(500), now, Availability{Usable: 1})

	for i := range 3 * maxModels {
		ks.Limited(a, "late "+model(i), now.Add(time.Duration(i)), time.Hour)
		if n := len(ks.pool.recent); n > maxModels {
			t.Fatalf("%d models in the pool", n)
		}
	}
	if n := len(a.state.limits); n != maxModels {
		t.Errorf("%d limits, want %d", n, maxModels)
	}
}

func TestModelNamesAreCopied(t *testing.T) {
	body := []byte("a body of many megabytes with model-1 in it")
	model := unsafe.String(&body[30], 7)
	ks := keysOf("a", "b")
	ks.Limited(key(t, ks, "a"), model, t0, time.Minute)
	want := string([]byte(model))
	copy(body, make([]byte, len(body)))
	wantLook(t, ks, want, t0, Availability{Usable: 1})
	if _, pair := ks.Limited(key(t, ks, "b"), want, t0, time.Minute); pair.IsZero() {
		t.Error("the pool lost the model")
	}
}

func TestFastPathDoesNotAllocate(t *testing.T) {
	for name, ks := range map[string]*Keys{"one key": keysOf("a"), "pool": keysOf("a", "b", "c"), "anonymous": keysOf(), "noted": notedKeys(t)} {
		if n := testing.AllocsPerRun(100, func() {
			ks.Look("m", t0)
			ks.Succeeded(ks.Pick("m", t0, nil), "m")
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func notedKeys(tb testing.TB) *Keys {
	tb.Helper()
	ks := keysOf("a", "b", "c")
	ks.Limited(ks.keys[0], "m", t0, time.Hour)
	return ks
}

func BenchmarkKeys(b *testing.B) {
	for _, bc := range []struct {
		name string
		keys *Keys
	}{
		{"one", keysOf("a")},
		{"pool", keysOf("a", "b", "c")},
		{"noted", notedKeys(b)},
	} {
		use := func() {
			if bc.keys.Look("m", t0).Usable > 0 {
				bc.keys.Succeeded(bc.keys.Pick("m", t0, nil), "m")
			}
		}
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				use()
			}
		})
		b.Run(bc.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					use()
				}
			})
		})
	}
}
