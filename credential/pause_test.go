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
)

func TestLimitStandsForOneModelOnly(t *testing.T) {
	ks := keysOf("a", "b")
	ks.Limited(key(t, ks, "a"), "m", t0, time.Minute)
	wantPicks(t, ks, 3, "m", t0, "b b b")
	wantLook(t, ks, "m", t0, Availability{Usable: 1})
	wantLook(t, ks, "other", t0, Availability{Usable: 2})
	wantLook(t, ks, "m", at(time.Minute-1), Availability{Usable: 1})
	wantLook(t, ks, "m", at(time.Minute), Availability{Usable: 2})
}

func TestLimitedDoublesWithoutAHint(t *testing.T) {
	ks := keysOf("a")
	a := key(t, ks, "a")
	now := t0
	limited := func(model string, wait time.Duration) {
		t.Helper()
		until, _ := ks.Limited(a, model, now, 0)
		wantTime(t, "until", until, now.Add(wait))
		now = until
	}
	for _, seconds := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		limited("m", seconds*time.Second)
	}
	limited("other", time.Second)
	ks.Succeeded(a, "other")
	limited("m", time.Minute)
	ks.Succeeded(a, "m")
	limited("m", time.Second)
	limited("m", 2*time.Second)
}

func TestLimitedBurstCountsOnce(t *testing.T) {
	ks := keysOf("a")
	a := key(t, ks, "a")
	for i := range 50 {
		until, _ := ks.Limited(a, "m", at(time.Duration(i)*time.Millisecond), 0)
		wantTime(t, "until", until, at(time.Second))
	}
	until, _ := ks.Limited(a, "m", at(time.Second), 0)
	wantTime(t, "until of the next", until, at(3*time.Second))
}

func TestLimitedHints(t *testing.T) {
	for _, tc := range []struct {
		name  string
		hints []time.Duration
		want  time.Duration
	}{
		{"as said", []time.Duration{90 * time.Second}, 90 * time.Second},
		{"fraction", []time.Duration{1500 * time.Millisecond}, 1500 * time.Millisecond},
		{"less than a second", []time.Duration{20 * time.Millisecond}, 20 * time.Millisecond},
		{"capped", []time.Duration{25 * time.Hour}, time.Hour},
		{"none", []time.Duration{0}, time.Second},
		{"negative", []time.Duration{-time.Minute}, time.Second},
		{"extended", []time.Duration{time.Second, time.Minute}, time.Minute},
		{"never shortened", []time.Duration{time.Minute, time.Second}, time.Minute},
		{"not shortened by none", []time.Duration{time.Minute, 0}, time.Minute},
		{"none, then said", []time.Duration{0, time.Minute}, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ks := keysOf("a")
			var until time.Time
			for _, hint := range tc.hints {
				until, _ = ks.Limited(key(t, ks, "a"), "m", t0, hint)
			}
			wantTime(t, "until", until, at(tc.want))
			wantLook(t, ks, "m", at(tc.want-1), Availability{Reason: Limited, Return: until})
			wantLook(t, ks, "m", at(tc.want), Availability{Usable: 1})
		})
	}
}

func TestSuccessDoesNotLiftAPauseThatLasts(t *testing.T) {
	ks := keysOf("a")
	a := key(t, ks, "a")
	ks.Limited(a, "m", t0, time.Minute)
	ks.Refused(a, t0, t0)
	ks.Succeeded(a, "m")
	wantLook(t, ks, "other", t0, Availability{Reason: NoKey, Return: at(time.Second)})
	wantLook(t, ks, "m", at(time.Second), Availability{Reason: Limited, Return: at(time.Minute)})
}

func TestSecondKeyPausesThePair(t *testing.T) {
	type step struct {
		key, model string
		at, hint   time.Duration
		pair       time.Duration // 0: none
	}
	const s, ms = time.Second, time.Millisecond
	for name, steps := range map[string][]step{
		"within a second":                   {{"a", "m", 0, 0, 0}, {"b", "m", 900 * ms, 0, 1900 * ms}},
		"a second later":                    {{"a", "m", 0, 0, 0}, {"b", "m", s, 0, 2 * s}},
		"later":                             {{"a", "m", 0, 0, 0}, {"b", "m", s + 1, 0, 0}},
		"the same key":                      {{"a", "m", 0, 0, 0}, {"a", "m", 100 * ms, 0, 0}},
		"another model":                     {{"a", "m", 0, 0, 0}, {"b", "n", 100 * ms, 0, 0}},
		"the first is longer":               {{"a", "m", 0, 30 * s, 0}, {"b", "m", 100 * ms, 5 * s, 30 * s}},
		"the second is longer":              {{"a", "m", 0, 5 * s, 0}, {"b", "m", 0, 30 * s, 30 * s}},
		"the later of one key":              {{"a", "m", 0, 0, 0}, {"a", "m", 900 * ms, 0, 0}, {"b", "m", 1800 * ms, 0, 2800 * ms}},
		"seen past the same key":            {{"a", "m", 0, 0, 0}, {"b", "m", 500 * ms, 0, 1500 * ms}, {"b", "m", 600 * ms, 10 * s, 10600 * ms}},
		"three, each on its own":            {{"a", "m", 0, 0, 0}, {"b", "m", 2 * s, 0, 0}, {"c", "m", 4 * s, 0, 0}},
		"results in wrong order":            {{"a", "m", 500 * ms, 0, 0}, {"b", "m", 0, 0, 1500 * ms}},
		"results in wrong order, far apart": {{"a", "m", 5 * s, 0, 0}, {"b", "m", 0, 0, 0}},
		"back to the first again":           {{"a", "m", 0, 0, 0}, {"b", "m", 2 * s, 0, 0}, {"a", "m", 2500 * ms, 0, 4500 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			ks := keysOf("a", "b", "c")
			for i, st := range steps {
				_, pair := ks.Limited(key(t, ks, st.key), st.model, at(st.at), st.hint)
				if st.pair == 0 {
					if !pair.IsZero() {
						t.Errorf("step %d pauses the pair until %v", i, pair.Sub(t0))
					}
					continue
				}
				wantTime(t, fmt.Sprintf("step %d: pair", i), pair, at(st.pair))
			}
		})
	}
}

func TestRefusedDoublesForAllModels(t *testing.T) {
	ks := keysOf("a")
	a := key(t, ks, "a")
	now := t0
	refused := func(wait time.Duration) {
		t.Helper()
		until := ks.Refused(a, now, now)
		wantTime(t, "until", until, now.Add(wait))
		wantLook(t, ks, "any", now, Availability{Reason: NoKey, Return: until})
		wantLook(t, ks, "any", until, Availability{Usable: 1})
		now = until
	}
	for _, seconds := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1800, 1800, 1800} {
		refused(seconds * time.Second)
	}
	ks.Succeeded(a, "m")
	refused(time.Second)
}

func TestRefusedBurstCountsOnce(t *testing.T) {
	ks := keysOf("a")
	a := key(t, ks, "a")
	first := ks.Refused(a, t0, at(300*time.Millisecond))
	wantTime(t, "first", first, at(1300*time.Millisecond))
	for i := range 50 {
		began := at(time.Duration(i) * time.Millisecond)
		wantTime(t, "of the same burst", ks.Refused(a, began, at(time.Second)), first)
	}
	late := at(10 * time.Second)
	wantTime(t, "late one of the burst", ks.Refused(a, at(299*time.Millisecond), late), first)
	wantTime(t, "one that began later", ks.Refused(a, at(9*time.Second), late), late.Add(2*time.Second))
}

func TestOnlyKeyLeftPausesNoPair(t *testing.T) {
	pool := NewPool()
	both, one := pool.Keys(secrets("a", "b")), pool.Keys(secrets("b"))
	both.Limited(key(t, both, "a"), "m", t0, 0)
	if _, pair := one.Limited(key(t, one, "b"), "m", t0, 0); !pair.IsZero() {
		t.Error("a key that is gone pauses the pair")
	}
}
