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

// hints tell for how long an answer asks to be left alone. What is zero,
// negative, past or unreadable is no hint; longer ones than an hour count as an
// hour; of several the longest counts.
type hints struct {
	// asked is what Retry-After and retry-after-ms say. It is apart because it
	// changes what a status means.
	asked time.Duration
	// reset is the end of the limits of which nothing remains.
	reset time.Duration
}

func (h hints) longest() time.Duration { return max(h.asked, h.reset) }

func headerHints(h http.Header, now time.Time) hints {
	var found hints
	for _, v := range h["Retry-After"] {
		found.asked = max(found.asked, retryAfter(v, now))
	}
	for _, v := range h["Retry-After-Ms"] {
		found.asked = max(found.asked, inUnits(v, time.Millisecond))
	}
	for name, values := range h {
		key := strings.ToLower(name)
		// A reset comes with each answer, and mostly tells when all is full again.
		if strings.Contains(key, "ratelimit-") && strings.Contains(key, "remaining") && exhausted(values) {
			for _, v := range h.Values(strings.Replace(key, "remaining", "reset", 1)) {
				found.reset = max(found.reset, resetIn(v, now))
			}
		}
	}
	return found
}

// exhausted reports whether one of the values says that nothing remains.
func exhausted(remaining []string) bool {
	for _, v := range remaining {
		if n, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && n <= 0 {
			return true
		}
	}
	return false
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
	return wholeDuration(v)
}

func untilUnix(seconds float64, now time.Time) time.Duration {
	return scaled(seconds-float64(now.UnixNano())/1e9, time.Second)
}

// waitPhrases stand before a duration in the messages of limits.
var waitPhrases = [...]string{"try again in ", "retry after ", "retry in "}

// textHint reads a duration out of a message in lower case, such as
// "please try again in 1m2.5s" or "please retry after 20 seconds".
func textHint(message string) time.Duration {
	var d time.Duration
	for _, phrase := range waitPhrases {
		for _, rest, ok := strings.Cut(message, phrase); ok; _, rest, ok = strings.Cut(rest, phrase) {
			found, _ := leadingDuration(rest)
			d = max(d, found)
		}
	}
	return d
}

// units are those of Go's durations and the words for them, less a plural s.
var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond, "millisecond": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour, "day": 24 * time.Hour,
}

// wholeDuration reads v, which has to be a duration and nothing else. Unlike
// time.ParseDuration it takes one that is too long for what it is.
func wholeDuration(v string) time.Duration {
	d, rest := leadingDuration(strings.TrimSpace(v))
	if rest != "" {
		return 0
	}
	return d
}

// leadingDuration reads the numbers with units that s begins with, and returns
// what follows them.
func leadingDuration(s string) (d time.Duration, rest string) {
	var sum float64
	for rest = s; ; {
		number, tail := prefix(strings.TrimLeft(rest, " "), func(c byte) bool { return c >= '0' && c <= '9' || c == '.' })
		word, tail := prefix(strings.TrimPrefix(tail, " "), func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 0x80 })
		unit, known := units[word]
		if !known {
			unit, known = units[strings.TrimSuffix(word, "s")]
		}
		n, ok := decimal(number)
		if !ok || !known {
			return scaled(sum, 1), rest
		}
		sum, rest = sum+n*float64(unit), tail
	}
}

func prefix(s string, of func(byte) bool) (head, tail string) {
	n := 0
	for n < len(s) && of(s[n]) {
		n++
	}
	return s[:n], s[n:]
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
