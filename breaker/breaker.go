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

// Package breaker decides whether an upstream that keeps failing is still asked.
//
// A [Set] holds the circuit breakers of one channel, one for each upstream
// model. A breaker is closed while traffic flows, and opens after a number of
// consecutive failures. An open breaker takes no traffic until its next probe is
// due; from then on it is half-open: exactly one request, the probe, is let
// through, and its outcome closes the breaker or opens it for longer.
//
// The way of a request is: [Set.Look] while choosing, [Set.Admit] when chosen,
// and then exactly one settling call on the [Permit], whichever way the request
// ends.
//
// # Time
//
// Nothing here runs by itself: no goroutine, no timer, no callback. Every method
// takes the time, and what time alone changes (an open breaker whose probe
// became due, a probe that was silent for too long, a pause that ended) is
// derived when somebody asks. Callers pass time.Now(), whose monotonic reading
// is immune to steps of the wall clock. Where times without one are passed and
// the clock is set back, an instant that was recorded more than five seconds
// ahead of now ends the wait it began: at worst a probe goes out too early, but
// nothing waits for the clock to catch up. Only an operator's hold is a promise
// about the wall clock, and is kept.
//
// # Generations
//
// Results arrive late: a request that was admitted an hour ago may fail now.
// Every transition of a breaker carries a new generation, and a permit that is
// older than its breaker's last transition changes nothing.
//
// # Changes
//
// What a call changed is returned as a [Change], so that the caller can log,
// count and emit it after every lock is released.
package breaker

import "time"

// State is the state of a breaker.
type State uint8

const (
	Closed   State = iota // traffic flows, failures are counted
	Open                  // no traffic until the next probe is due
	HalfOpen              // one request at a time may probe, or is doing so
)

// String returns the word that admin API, logs and metrics use: closed, open or
// half_open.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	}
	return "unknown"
}

// Reason tells why a breaker takes no request now.
type Reason uint8

const (
	Usable    Reason = iota // it takes requests
	IsOpen                  // its next probe is not due
	Probing                 // another request holds the probe's lease
	IsLimited               // the upstream asked for a pause
)

// View is what a breaker is at one instant, for choosing among channels.
type View struct {
	State  State
	Reason Reason
	// Weight is the factor on the channel's weight: 1, DegradedWeight or
	// HalfOpenWeight; 0 where Reason is not Usable.
	Weight   float64
	Degraded bool // closed, but with at least DegradeThreshold failures
	// Probe tells that the next request admitted would be the probe.
	Probe bool
	// Early tells that the breaker is not usable yet, but that AdmitEarly would
	// be granted.
	Early bool
	// Return is when the breaker may be usable again: its next or early probe,
	// whichever is sooner, the end of the probe's lease, the end of a pause. It
	// is zero where Reason is Usable, and where nobody knows.
	Return time.Time
	// Limited is when the pause ends that the upstream asked for; zero if there
	// is none.
	Limited time.Time
}

// Status is a breaker as an operator sees it.
type Status struct {
	Model               string
	State               State
	Degraded            bool
	DryRun              bool
	ConsecutiveFailures int
	Weight              float64 // as in View
	LastFailure         string  // the cause of the newest failure, even if it was forgiven since; empty if none
	LastFailureAt       time.Time
	LastSuccessAt       time.Time // to a millisecond
	OpenedAt            time.Time // since when it has not been closed
	NextProbeAt         time.Time // zero unless open; zero too if held until reset
	LimitedUntil        time.Time
	ProbeInFlight       bool
	Held                bool // open by an operator's word
	Reason              Reason
	Return              time.Time
}

// Cause tells why an attempt failed.
type Cause struct {
	// Text is for humans: "status 503".
	Text string
	// Credential tells that no credential of the channel was accepted. Such
	// failures are taken back when the credentials change.
	Credential bool
	// Break tells that a stream broke after it had delivered content. After a
	// probe that was settled by Permit.Content it takes that success back.
	Break bool
}

// ProbeResult is how a probe ended.
type ProbeResult uint8

const (
	NoProbe       ProbeResult = iota // no probe ended
	ProbeClosed                      // it succeeded
	ProbeReopened                    // it failed, was limited, or was silent for too long
	ProbeReleased                    // it told nothing, or its lease was voided
)

// String returns the word that metrics use: closed, reopened or released; empty
// for NoProbe.
func (r ProbeResult) String() string {
	return [...]string{"", "closed", "reopened", "released"}[r%4]
}

// Change is what a call changed and is worth telling. Each trip, each lease and
// each closing is told once, by the call that brought it about.
type Change struct {
	Model     string
	From, To  State
	Reason    string    // the text of a Cause, "operator", "probe", "probe timeout", "released", "limited" or "credentials changed"
	NextProbe time.Time // of a breaker that is not closed; zero if held until reset, or with the lease of a probe
	Probe     ProbeResult
}

// Zero reports whether there is nothing to tell.
func (c Change) Zero() bool { return c == Change{} }

const (
	reasonOperator    = "operator"
	reasonProbe       = "probe"
	reasonTimeout     = "probe timeout"
	reasonReleased    = "released"
	reasonLimited     = "limited"
	reasonCredentials = "credentials changed"
	reasonFailure     = "failure" // for causes without a text
)
