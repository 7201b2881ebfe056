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

package breaker

import "time"

// Settings are those of all breakers of a Set. Values out of range are brought
// into it, as the fields tell.
type Settings struct {
	// Off admits everything and knows nothing.
	Off bool
	// DryRun counts, opens, probes and closes as usual, but admits every request
	// and shows full weight to whoever chooses.
	DryRun bool

	// OpenThreshold is the number of consecutive failures that opens a breaker:
	// at least 1. A low one leaves a failing upstream sooner; a high one is not
	// fooled by a few bad requests. Default: 5.
	OpenThreshold int
	// DegradeThreshold is the number of consecutive failures from which on a
	// closed breaker has DegradedWeight. Below 1, or not below OpenThreshold:
	// never. Default: 3.
	DegradeThreshold int
	// DegradedWeight and HalfOpenWeight are factors from 0 to 1. Default: 0.3.
	DegradedWeight, HalfOpenWeight float64
	// FailureTTL is the age of the last failure from which on a streak is
	// forgotten. It never applies to an open breaker. 0: never. Default: 30m.
	FailureTTL time.Duration

	// ProbeInterval is the time from opening to the first probe. It doubles with
	// every failed probe up to MaxProbeInterval, which is at least
	// ProbeInterval. A short one finds an upstream's recovery sooner; a long one
	// spares more clients the probe of an upstream that is still down. Defaults,
	// also in place of what is not positive: 5m, 40m.
	ProbeInterval, MaxProbeInterval time.Duration
	// Jitter is the fraction, 0 to 0.5, by which intervals vary at random in both
	// directions, but never beyond MaxProbeInterval. Default: 0.1.
	Jitter float64
	// ProbeTimeoutStream and ProbeTimeoutOther are how long a probe may be
	// without a byte of the upstream until it counts as failed, for requests that
	// stream and for others. Defaults, also in place of what is not positive: 2m,
	// 10m.
	ProbeTimeoutStream, ProbeTimeoutOther time.Duration
	// EarlyProbe is the least time between early probes, see Set.AdmitEarly. 0:
	// there are none. Default: 10s.
	EarlyProbe time.Duration
}

// DefaultSettings returns the defaults.
func DefaultSettings() Settings {
	return Settings{
		OpenThreshold:      5,
		DegradeThreshold:   3,
		DegradedWeight:     0.3,
		HalfOpenWeight:     0.3,
		FailureTTL:         30 * time.Minute,
		ProbeInterval:      5 * time.Minute,
		MaxProbeInterval:   40 * time.Minute,
		Jitter:             0.1,
		ProbeTimeoutStream: 2 * time.Minute,
		ProbeTimeoutOther:  10 * time.Minute,
		EarlyProbe:         10 * time.Second,
	}
}

// inRange returns s with every value in its range.
func (s Settings) inRange() Settings {
	d := DefaultSettings()
	s.OpenThreshold = max(s.OpenThreshold, 1)
	s.DegradedWeight = min(max(s.DegradedWeight, 0), 1)
	s.HalfOpenWeight = min(max(s.HalfOpenWeight, 0), 1)
	s.ProbeInterval = positive(s.ProbeInterval, d.ProbeInterval)
	s.MaxProbeInterval = max(positive(s.MaxProbeInterval, d.MaxProbeInterval), s.ProbeInterval)
	s.Jitter = min(max(s.Jitter, 0), 0.5)
	s.ProbeTimeoutStream = positive(s.ProbeTimeoutStream, d.ProbeTimeoutStream)
	s.ProbeTimeoutOther = positive(s.ProbeTimeoutOther, d.ProbeTimeoutOther)
	return s
}

func positive(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// degrades reports whether a streak of that length degrades a closed breaker.
func (s *Settings) degrades(streak int) bool {
	return s.DegradeThreshold > 0 && s.DegradeThreshold < s.OpenThreshold && streak >= s.DegradeThreshold
}

// doubled returns the interval after a failed probe.
func (s *Settings) doubled(interval time.Duration) time.Duration {
	return min(2*interval, s.MaxProbeInterval)
}

// wait returns the interval with its jitter, for a draw from 0 to 1. It may be
// more than MaxProbeInterval, which state.nextProbe sees to.
func (s *Settings) wait(interval time.Duration, draw float64) time.Duration {
	shift := s.Jitter * (2*draw - 1)
	return interval + time.Duration(shift*float64(interval))
}

func (s *Settings) probeTimeout(stream bool) time.Duration {
	if stream {
		return s.ProbeTimeoutStream
	}
	return s.ProbeTimeoutOther
}
