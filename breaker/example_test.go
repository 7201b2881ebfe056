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

package breaker_test

import (
	"fmt"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

func Example() {
	settings := breaker.DefaultSettings()
	settings.OpenThreshold = 2
	settings.Jitter = 0
	set := breaker.NewSet(settings, []string{"gpt-4o"})

	tell := func(c breaker.Change) {
		if !c.Zero() {
			fmt.Printf("%s: %v to %v (%s)\n", c.Model, c.From, c.To, c.Reason)
		}
	}
	request := func(now time.Time, ok bool) {
		var p breaker.Permit
		admitted, change := set.Admit(&p, "gpt-4o", now, true)
		tell(change)
		switch {
		case !admitted:
			fmt.Println("asked elsewhere, for", set.Look("gpt-4o", now).Return.Sub(now))
		case ok:
			tell(p.Success(now))
		default:
			tell(p.Failure(now, breaker.Cause{Text: "status 503"}))
		}
	}

	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) // time.Now() in real life
	request(now, false)
	request(now, false)
	request(now, true)
	request(now.Add(5*time.Minute), true)

	// Output:
	// gpt-4o: closed to open (status 503)
	// asked elsewhere, for 10s
	// gpt-4o: open to half_open (probe)
	// gpt-4o: half_open to closed (probe)
}
