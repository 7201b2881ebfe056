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
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// parseBaseURL parses the base URL of a channel, its placeholders expanded. The
// query and a slash at the end are kept. Errors follow the option's name in a
// sentence and repeat nothing of the URL, which may hold a secret.
func parseBaseURL(s string) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("is missing")
	}
	if strings.ContainsAny(s, "{}") {
		return nil, errors.New("has a placeholder that is not known when the configuration is loaded")
	}
	lower := strings.ToLower(s)
	if !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "http://") {
		return nil, errors.New("must begin with https:// or http://")
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("is not a valid URL")
	}
	return u, checkBaseURL(u, s)
}

func checkBaseURL(u *url.URL, s string) error {
	switch {
	case u.User != nil:
		return errors.New("must not have user info; use key or header_up")
	case u.Hostname() == "":
		return errors.New("has no host")
	case !validPort(u.Port()):
		return errors.New("has a port that is not 1 to 65535")
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("must not have spaces or control characters")
	case strings.Contains(s, "#"):
		return errors.New("must not have a fragment")
	case endpoint.MatchString(u.Path):
		return errors.New("must end before the endpoint, as in https://api.openai.com/v1")
	case hasDotSegment(u.Path):
		return errors.New("must not have . or .. in its path")
	}
	return nil
}

// endpoint finds paths that clients append themselves.
var endpoint = regexp.MustCompile(`/(chat/completions|completions|responses|embeddings|messages)/?$`)

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// hasDotSegment looks at a path whose escapes are resolved, since an encoded
// dot is one to many servers.
func hasDotSegment(path string) bool {
	segments := strings.Split(path, "/")
	return slices.Contains(segments, ".") || slices.Contains(segments, "..")
}
