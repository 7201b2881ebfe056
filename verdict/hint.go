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

package verdict

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxPause is the longest an upstream can ask for.
const maxPause = time.Hour

// Hint returns for how long a response asks to be left alone: the longest of
// Retry-After (seconds or a date), retry-after-ms, the reset headers of limits
// of which nothing remains, and the delay in a Google error body. Hints that are
// zero, negative, past or unreadable count as none; larger ones than an hour as
// an hour. Without a hint it returns 0.
func Hint(h http.Header, body []byte, now time.Time) time.Duration {
	d := headerHint(h, now)
	if len(body) > 0 {
		d = max(d, goDuration(readBody(nil, body).delay))
	}
	return d
}

func headerHint(h http.Header, now time.Time) time.Duration {
	var d time.Duration
	for _, v := range h.Values("Retry-After") {
		d = max(d, retryAfter(v, now))
	}
	for _, v := range h.Values("Retry-After-Ms") {
		d = max(d, inUnits(v, time.Millisecond))
	}
	for name := range h {
		if key := strings.ToLower(name); strings.Contains(key, "ratelimit-") && exhausted(h, name) {
			reset := strings.Replace(key, "remaining", "reset", 1)
			d = max(d, resetIn(h.Get(reset), now))
		}
	}
	return d
}

// exhausted reports whether a header says that nothing remains.
func exhausted(h http.Header, name string) bool {
	if !strings.Contains(strings.ToLower(name), "remaining") {
		return false
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(h.Get(name)), 64)
	return err == nil && n <= 0
}

func retryAfter(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if t, err := http.ParseTime(v); err == nil {
		return bounded(t.Sub(now))
	}
	return inUnits(v, time.Second)
}

// resetIn reads when a limit starts anew: a duration, a number of seconds, a
// timestamp, or the seconds or milliseconds since 1970, told by their size.
func resetIn(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	n, ok := decimal(v)
	switch {
	case ok && n > 1e11:
		return untilUnix(n/1000, now)
	case ok && n > 1e9:
		return untilUnix(n, now)
	case ok:
		return inUnits(v, time.Second)
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return bounded(t.Sub(now))
	}
	return goDuration(v)
}

func untilUnix(seconds float64, now time.Time) time.Duration {
	return scaled(seconds-float64(now.UnixNano())/1e9, time.Second)
}

func goDuration(v string) time.Duration {
	d, err := time.ParseDuration(strings.TrimSpace(v))
	if err != nil {
		return 0
	}
	return bounded(d)
}

func inUnits(v string, unit time.Duration) time.Duration {
	n, ok := decimal(strings.TrimSpace(v))
	if !ok {
		return 0
	}
	return scaled(n, unit)
}

func scaled(n float64, unit time.Duration) time.Duration {
	return bounded(time.Duration(min(n*float64(unit), float64(maxPause))))
}

// decimal reads a plain number: no sign, exponent, infinity or the like.
func decimal(v string) (float64, bool) {
	if v == "" || strings.Trim(v, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil && !math.IsInf(n, 1) {
		return 0, false
	}
	return n, true
}

// bounded maps what is no hint to 0, and too much to the most there is.
func bounded(d time.Duration) time.Duration { return max(0, min(d, maxPause)) }
