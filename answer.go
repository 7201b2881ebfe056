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
	"net/http"

	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// answer is how one try ended: with a response, or with an error of the
// transport.
type answer struct {
	try     *try
	res     *http.Response // nil: there was none
	status  int
	verdict verdict.Result

	inner int // the status that an error inside the body claims; 0: none

	head     []byte // of an error's body
	complete bool   // head is all of it

	cut      bool // it broke off before anything of it reached the client
	unsent   bool // nothing of the request was sent
	timedOut bool
}

// fit reports whether the answer may go to the client when no attempt is left.
// What it says about our credentials is not the client's business, a missing
// model has one shape whoever misses it, and a 2xx that is none would be taken
// for a success, as would a 101.
func (ans *answer) fit() bool {
	return ans.verdict.Verdict != verdict.Credential && !ans.verdict.ModelMissing &&
		(ans.status >= 300 || ans.verdict.Verdict == verdict.Neutral)
}

// drop closes the answer's body. Its head stays.
func (ans *answer) drop() {
	if ans.res != nil {
		ans.res.Body.Close()
	}
}
