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
	"slices"
	"sync/atomic"
	"time"
)

// Key is one key of a channel in one config. Keys are compared by pointer.
type Key struct {
	secret Secret
	state  *state
}

// ID returns the id of the key's secret, "" for the anonymous key.
func (k *Key) ID() string { return k.secret.ID() }

// Secret returns the key's secret, which is empty for the anonymous key.
func (k *Key) Secret() Secret { return k.secret }

// Reason is why no key of a channel can be used. The zero value is Ok.
type Reason uint8

const (
	// Ok means that a key can be used.
	Ok Reason = iota
	// NoKey means that every key was refused and is paused, or is missing.
	NoKey
	// Limited means that every key is out, and at least one of them only
	// because it is over its limit.
	Limited
	// Disabled means that every key was disabled from outside.
	Disabled
)

// Availability tells how many keys can be used.
type Availability struct {
	// Usable is the number of keys that can be used.
	Usable int
	// Reason is Ok unless Usable is 0.
	Reason Reason
	// Return is when the first key returns, if Usable is 0. It is zero if no
	// key ever does.
	Return time.Time
}

// Keys are the keys of a channel in one config. They are safe for concurrent
// use. All methods that take a key want one of their own.
type Keys struct {
	pool    *Pool
	keys    []*Key
	missing int
	// disabled tells of keys that were disabled from outside, anyDisabled whether
	// it needs to be asked.
	disabled    func(id string, now time.Time) bool
	anyDisabled func(now time.Time) bool

	// turn is written by every Pick, the fields above are only read: it has a
	// cache line of its own.
	_    [64]byte
	turn atomic.Uint32
}

// Outside sets who disables keys from outside: anyDisabled tells quickly whether
// any is, disabled whether that one is. Call it before the first Pick.
func (ks *Keys) Outside(anyDisabled func(now time.Time) bool, disabled func(id string, now time.Time) bool) {
	ks.anyDisabled, ks.disabled = anyDisabled, disabled
}

func (ks *Keys) outside(now time.Time) bool { return ks.anyDisabled != nil && ks.anyDisabled(now) }

func (ks *Keys) isDisabled(k *Key, now time.Time) bool {
	return ks.disabled != nil && k.ID() != "" && ks.disabled(k.ID(), now)
}

// Forgive forgets what is known of the key with that id, its pauses too. It
// reports whether there is such a key.
func (ks *Keys) Forgive(id string) bool {
	for _, k := range ks.keys {
		if k.ID() == id {
			k.state.forget()
			return true
		}
	}
	return false
}

// Usable reports whether the key with that id is neither refused nor limited for
// model. It does not ask who disables keys from outside.
func (ks *Keys) Usable(id, model string, now time.Time) bool {
	for _, k := range ks.keys {
		if k.ID() == id {
			reason, _ := k.state.standing(model, now)
			return reason == Ok
		}
	}
	return false
}

// Len returns the number of keys, 1 for a channel without keys, which has the
// anonymous one.
func (ks *Keys) Len() int { return len(ks.keys) }

// All returns the keys, in the order of the config. The caller must not change
// the slice.
func (ks *Keys) All() []*Key { return ks.keys }

// Missing returns how many of the configured keys were empty.
func (ks *Keys) Missing() int { return ks.missing }

// Pick returns the next key that can be used for model and is not among tried,
// round robin over such keys, or nil if there is none.
func (ks *Keys) Pick(model string, now time.Time, tried []*Key) *Key {
	if !ks.allUsable(now, tried) {
		return ks.pick(model, now, tried)
	}
	if len(ks.keys) == 0 {
		return nil
	}
	return ks.keys[ks.next(len(ks.keys))]
}

// allUsable is the fast path: nothing is known against any key.
func (ks *Keys) allUsable(now time.Time, tried []*Key) bool {
	return len(tried) == 0 && ks.pool.noted.Load() == 0 && !ks.outside(now)
}

// PickHighest is Pick, but of the keys that can be used it returns the one whose
// id has the highest score, of equals the first. Which one that is depends on
// nothing that other requests do, as long as the same keys can be used.
func (ks *Keys) PickHighest(model string, now time.Time, tried []*Key, score func(id string) float64) *Key {
	all := ks.allUsable(now, tried)
	var best *Key
	most := 0.0
	for _, k := range ks.keys {
		if !all && !ks.usable(k, model, now, tried) {
			continue
		}
		if s := score(k.ID()); best == nil || s > most {
			best, most = k, s
		}
	}
	if best != nil && !all {
		best.state.tidy(model, now)
	}
	return best
}

// pick is Pick where keys may be out. It counts first: to go on to the next key
// where one is out would give that one twice its share.
func (ks *Keys) pick(model string, now time.Time, tried []*Key) *Key {
	usable := 0
	for _, k := range ks.keys {
		if ks.usable(k, model, now, tried) {
			usable++
		}
	}
	if usable == 0 {
		return nil
	}
	chosen := ks.nth(ks.next(usable), model, now, tried)
	if chosen != nil {
		chosen.state.tidy(model, now)
	}
	return chosen
}

// nth returns usable key number n, counted from 0, or the last one if some went
// out meanwhile.
func (ks *Keys) nth(n int, model string, now time.Time, tried []*Key) (chosen *Key) {
	for _, k := range ks.keys {
		if !ks.usable(k, model, now, tried) {
			continue
		}
		chosen = k
		if n == 0 {
			break
		}
		n--
	}
	return chosen
}

// next returns whose turn it is among n keys.
func (ks *Keys) next(n int) int {
	if n == 1 {
		return 0
	}
	return int((ks.turn.Add(1) - 1) % uint32(n))
}

func (ks *Keys) usable(k *Key, model string, now time.Time, tried []*Key) bool {
	reason, _ := k.state.standing(model, now)
	return reason == Ok && !slices.Contains(tried, k) && !ks.isDisabled(k, now)
}

// Look tells whether Pick would find a key for model. It changes nothing.
func (ks *Keys) Look(model string, now time.Time) Availability {
	if n := len(ks.keys); n > 0 && ks.allUsable(now, nil) {
		return Availability{Usable: n}
	}
	return ks.look(model, now)
}

func (ks *Keys) look(model string, now time.Time) Availability {
	usable, disabled, out := 0, 0, Availability{Reason: NoKey}
	for _, k := range ks.keys {
		if ks.isDisabled(k, now) {
			disabled++
			continue
		}
		reason, until := k.state.standing(model, now)
		if reason == Ok {
			usable++
			continue
		}
		out.Reason = max(out.Reason, reason)
		if out.Return.IsZero() || until.Before(out.Return) {
			out.Return = until
		}
	}
	switch {
	case usable > 0:
		return Availability{Usable: usable}
	case disabled > 0 && disabled == len(ks.keys):
		return Availability{Reason: Disabled}
	}
	return out
}

// Limited notes that the provider limited k for model, and pauses the two for
// hint, at most an hour. Without a hint (0 or less) the pause is 1 s and doubles
// from one to the next, to at most 1 min, until a success. A pause is only ever
// extended. Limited returns its end.
//
// If another key was limited for the same model within a second before, the
// limit is the account's: then pairUntil is the end of the longer of both
// limits, for the whole channel's pause of that model. Else it is zero.
func (ks *Keys) Limited(k *Key, model string, now time.Time, hint time.Duration) (until, pairUntil time.Time) {
	until = k.state.limit(model, now, hint)
	if len(ks.keys) > 1 {
		pairUntil = ks.pool.limited(model, limiting{k.ID(), now, until})
	}
	return until, pairUntil
}

// Refused notes that the provider refused k, and pauses it for all models: 1 s,
// doubled from one refusal to the next, to at most 30 min, until a success. Of
// the refusals of one burst only the first counts: those of attempts that began
// before it change nothing. Refused returns the end of the pause.
func (ks *Keys) Refused(k *Key, began, now time.Time) (until time.Time) {
	return k.state.refuse(began, now)
}

// Forbidden notes a 403 that does not say why, and reports whether it is at
// least the second in a row for k, so that it is the key's fault rather than the
// request's. A success ends the row, and so do 30 min without another.
func (ks *Keys) Forbidden(k *Key, now time.Time) bool { return k.state.forbid(now) }

// Succeeded ends the streaks of k, and that of its limits for model: what comes
// next is paused for the first time again. A pause that lasts still goes on.
func (ks *Keys) Succeeded(k *Key, model string) {
	if k.state.noted.Load() {
		k.state.succeed(model)
	}
}

// The states of a key.
const (
	StateEnabled = "enabled"
	StateLimited = "limited" // for some models
	StatePaused  = "paused"  // refused, or missing
)

// Status is how one key is doing.
type Status struct {
	ID            string    // "" for the anonymous key and for missing ones
	State         string    // StateEnabled, StateLimited or StatePaused
	Until         time.Time // when the state ends, for all models; zero: never or not applicable
	LimitedModels int       // how many models the key is limited for
	Missing       bool      // configured, but empty
}

// Snapshot returns the status of every key, in config order, then of the missing
// ones. It changes nothing.
func (ks *Keys) Snapshot(now time.Time) []Status {
	all := make([]Status, 0, len(ks.keys)+ks.missing)
	for _, k := range ks.keys {
		all = append(all, k.status(now))
	}
	for range ks.missing {
		all = append(all, Status{State: StatePaused, Missing: true})
	}
	return all
}

func (k *Key) status(now time.Time) Status {
	s := k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	n, until := s.limitsAt(now)
	st := Status{ID: k.ID(), State: StateEnabled, Until: until, LimitedModels: n}
	if n > 0 {
		st.State = StateLimited
	}
	if s.refused.holds(now) {
		st.State, st.Until = StatePaused, s.refused.until
	}
	return st
}
