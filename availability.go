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

package llmgateway

import (
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/breaker"
	"github.com/llm-gateway/caddy-llm-gateway/credential"
)

// outReason is why a candidate takes no traffic. The words are those of the
// admin API.
type outReason string

const (
	usable   outReason = ""
	disabled outReason = "disabled"
	noKey    outReason = "no_key"
	limited  outReason = "limited"
	full     outReason = "full"
	open     outReason = "open"
	probing  outReason = "probing"
)

// availability tells whether a candidate can take a request, and if not, when
// it may again. A zero until means that nobody knows.
type availability struct {
	reason outReason
	until  time.Time
}

// look returns the effective weight of c and its availability. It changes
// nothing.
func (c *candidate) look(now time.Time) (weight float64, out availability) {
	if out = c.blocked(now); out.reason != usable {
		return 0, out
	}
	v := c.state.breakers.Look(c.model, now)
	switch v.Reason {
	case breaker.IsOpen:
		return 0, availability{open, v.Return}
	case breaker.Probing:
		return 0, availability{probing, v.Return}
	case breaker.IsLimited:
		return 0, availability{limited, v.Return}
	}
	return c.weight * v.Weight, availability{}
}

// blocked is look without the breaker.
func (c *candidate) blocked(now time.Time) availability {
	if c.state.disables.ChannelDisabled(now) {
		return availability{reason: disabled}
	}
	if keys := c.keys.Look(c.model, now); keys.Usable == 0 {
		switch keys.Reason {
		case credential.Limited:
			return availability{limited, keys.Return}
		case credential.Disabled:
			return availability{reason: disabled}
		}
		return availability{noKey, keys.Return}
	}
	if c.maxRequests > 0 && c.state.inFlight.Load() >= c.maxRequests {
		return availability{reason: full}
	}
	return availability{}
}
