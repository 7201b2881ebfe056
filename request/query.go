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

package request

import (
	"net/url"
	"strings"
)

// Query returns the raw query for an attempt: the client's own as received,
// less its `key` parameters, which are a credential. Where the query names the
// model (`model`, else `deployment`) and upstreamModel is neither empty nor the
// requested model, it takes that model's place.
func (q *Request) Query(upstreamModel string) string {
	name := ""
	if q.place == inQuery && q.replaces(upstreamModel) {
		name, _, _ = findModel(q.query)
	}
	if name == "" && !hasParam(q.query, "key") {
		return q.query
	}
	var kept []string
	for param := range strings.SplitSeq(q.query, "&") {
		switch rawName, _, _ := strings.Cut(param, "="); {
		case isParam(rawName, "key"):
		case name != "" && isParam(rawName, name):
			kept = append(kept, rawName+"="+url.QueryEscape(upstreamModel))
		default:
			kept = append(kept, param)
		}
	}
	return strings.Join(kept, "&")
}

// queryModel returns the model that the query names, "" if none.
func queryModel(query string) (string, error) {
	name, raw, times := findModel(query)
	if times == 0 {
		return "", nil
	}
	if times > 1 {
		return "", invalid("%q is given twice in the query", name)
	}
	model, err := url.QueryUnescape(raw)
	if err != nil {
		return "", invalid("%q in the query has an invalid escape", name)
	}
	return model, checkModel(model)
}

// findModel returns the parameter that names the model, its raw value and how
// often it is there.
func findModel(query string) (name, raw string, times int) {
	for _, name = range []string{"model", "deployment"} {
		for param := range strings.SplitSeq(query, "&") {
			if rawName, value, _ := strings.Cut(param, "="); isParam(rawName, name) {
				raw = value
				times++
			}
		}
		if times > 0 {
			return name, raw, times
		}
	}
	return "", "", 0
}

func hasParam(query, name string) bool {
	for param := range strings.SplitSeq(query, "&") {
		if rawName, _, _ := strings.Cut(param, "="); isParam(rawName, name) {
			return true
		}
	}
	return false
}

// isParam reports whether a raw name, which may be escaped, is name.
func isParam(rawName, name string) bool {
	if rawName == name {
		return true
	}
	if !strings.Contains(rawName, "%") {
		return false
	}
	plain, err := url.QueryUnescape(rawName)
	return err == nil && plain == name
}
