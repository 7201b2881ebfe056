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

// Path returns the path for an attempt, escaped. It is the client's own, with
// each escape as it was received; only bytes that may not stand in a path
// are escaped. Where the path names the model and upstreamModel is neither
// empty nor the requested model, it takes that model's place, escaped as one
// segment.
func (q *Request) Path(upstreamModel string) (escaped string) {
	if q.place != inPath || !q.replaces(upstreamModel) {
		return q.path
	}
	return q.path[:q.from] + escapeSegment(upstreamModel) + q.path[q.to:]
}

// escapeSegment escapes a model for a path. A name that would make a dot
// segment is escaped twice: then the provider finds no such model, and no
// server on the way takes the name for a step upwards.
func escapeSegment(name string) string {
	escaped := url.PathEscape(name)
	if hasDotSegment(name) {
		return strings.ReplaceAll(escaped, ".", "%252E")
	}
	return escaped
}

// escapedPath returns the path as received. URL.EscapedPath alone would not do:
// one byte that should have been escaped makes it forget how all of the others
// were, and an escaped slash would come out as a plain one.
func escapedPath(u *url.URL) string {
	if u.RawPath == "" {
		return u.EscapedPath()
	}
	if plain, err := url.PathUnescape(u.RawPath); err != nil || plain != u.Path {
		return u.EscapedPath()
	}
	return escapeRest(u.RawPath)
}

// escapeRest escapes what may not stand in a path, and leaves escapes alone.
func escapeRest(path string) string {
	if strings.IndexFunc(path, mustEscape) < 0 {
		return path
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if mustEscape(rune(c)) {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func mustEscape(c rune) bool {
	if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
		return false
	}
	return c >= 0x80 || !strings.ContainsRune("-._~!$&'()*+,;=:@[]/%", c)
}

// refuseDotSegments gives an error if any segment is "." or "..", plain or
// encoded, also where the slash beside it is encoded or a backslash: servers
// disagree about those, and one that takes the step would leave the base path
// that the operator configured.
func refuseDotSegments(escaped string) error {
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		return invalid("the path has an invalid escape")
	}
	if hasDotSegment(plain) {
		return invalid(`the path has a "." or ".." segment`)
	}
	return nil
}

func hasDotSegment(plain string) bool {
	if !strings.Contains(plain, ".") {
		return false
	}
	for {
		end := strings.IndexAny(plain, `/\`)
		if end < 0 {
			return isDot(plain)
		}
		if isDot(plain[:end]) {
			return true
		}
		plain = plain[end+1:]
	}
}

// isDot also knows "..;x": some servers cut the parameter off first.
func isDot(segment string) bool {
	name, _, _ := strings.Cut(segment, ";")
	return name == "." || name == ".."
}

// pathModel decodes the model's part of a path, once.
func pathModel(escaped string) (string, error) {
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return "", invalid("the model in the path has an invalid escape")
	}
	return name, checkModel(name)
}
