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

// Package autodisable takes a channel or a key out of use that keeps answering
// with the same error, and keeps an operator's own word on either.
//
// A [Set] is the state of one channel and of its keys, the subjects. Every
// [Rule] counts, for each subject, the consecutive errors of one status; when a
// subject reaches the rule's number, it is disabled until an operator acts, or
// for a time.
//
// # Counting
//
// Consecutive means that no success came in between: errors of another kind
// neither count nor end a streak. An error counts only if its attempt began
// after the rule's last counted error of that subject was received, so a burst
// of requests that are refused together counts once. Each rule that matches an
// error counts it for itself.
//
// One error disables one subject at most. Where a rule of the channel and a rule
// of the key are fulfilled by the same error the channel is disabled, and the
// key with its next error. Where several rules of one subject are, it is
// disabled for the longest of their times.
//
// # Trials
//
// A subject that was disabled for a time is enabled on trial when the time is
// up: until its first success one more error of the same rule disables it for
// twice as long, up to 24 hours.
//
// # Operators
//
// An operator's disable is lifted by an operator only, or by the end that it was
// given, which is no trial. An operator's enable voids what was counted, and
// errors of attempts that began before it do not count. Both are worth the same
// whether the rules are off, or only rehearsed.
//
// # Time
//
// Nothing here runs by itself: no goroutine, no timer, no callback that is kept.
// Every method takes the time, and a disable that is over is over for whoever
// asks next; [Set.Lapse] tells of it. Callers pass time.Now(), whose monotonic
// reading is immune to steps of the wall clock. Where times without one are
// passed and the clock is set back, an instant that was recorded more than a
// minute ahead of now is ignored: errors count again, and an automatic disable
// for a time ends early. Only the end of an operator's disable is a promise
// about the wall clock, and is kept.
//
// # Changes
//
// What a call changed is returned as a [Change], so that the caller can log,
// count, store and emit it after every lock is released.
package autodisable

import "time"

// Who made a Record or a Change.
const (
	ByAuto     = "auto"
	ByOperator = "operator"
)

// Record tells why a subject is disabled.
type Record struct {
	By     string `json:"by"` // ByAuto or ByOperator
	Reason string `json:"reason"`
	// Status is that of the last error, Count how many there were in a row. Both
	// are 0 with an operator's record, Status also with transport errors.
	Status int       `json:"status,omitempty"`
	Count  int       `json:"count,omitempty"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"` // zero: until an operator acts
}

// Change is what a call changed and is worth telling. Each is told once, by the
// call that brought it about.
type Change struct {
	Key      string // the key's id; empty for the channel
	Disabled bool   // disabled now; else enabled, unless Correlated
	Record   Record // the new one, or the one that ended; zero if Correlated
	By       string // ByAuto, also when a time is up, or ByOperator
	Reason   string
	// DryRun tells that nothing was removed, or had been.
	DryRun bool
	// Correlated tells that nothing was disabled, since other keys saw the same
	// status as Key: the channel is to be paused as a refused key is.
	Correlated bool
}

// Zero reports whether there is nothing to tell.
func (c Change) Zero() bool { return c == Change{} }

// Failure is the error that an attempt ended with.
type Failure struct {
	Key string // the id of the key that was used; empty if the channel has none
	// Status is the status received: that of the answer, or of the error within.
	Status int
	// Transport marks an error in transport, or a timeout. Status is ignored.
	Transport bool
	// Code and Message are what the provider's error says, for rules with a Match.
	Code, Message string
	Began         time.Time // when the attempt began
}

// Status is a channel as an operator sees it.
type Status struct {
	// Errors are the streaks that are not 0, by the rule's name: "401", "5xx",
	// "transport", "429 text". Never nil.
	Errors   map[string]int
	Disabled *Record // nil while it is enabled
	Trial    bool    // enabled on trial
	DryRun   bool    // Disabled or Trial is a rehearsal: nothing was removed
	// Keys has every key of the set, by id.
	Keys map[string]KeyStatus
}

// KeyStatus is a key as an operator sees it. The fields are as in Status.
type KeyStatus struct {
	Errors   map[string]int
	Disabled *Record
	Trial    bool
	DryRun   bool
}
