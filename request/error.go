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
	"fmt"
	"net/http"
)

// The codes of an Error.
const (
	CodeInvalid     = "invalid_request"
	CodeTooLarge    = "request_too_large"
	CodeUnsupported = "unsupported_encoding"
	CodeBusy        = "gateway_busy"
)

// Error says what is wrong with a client's request, or that there is no room for
// it. It is meant for that
// client: Message tells what and where, and repeats no more of the request than
// a short quoted piece.
type Error struct {
	Status  int    // 400, 413, 415 or 503
	Code    string // one of the above
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &Error{Status: http.StatusBadRequest, Code: CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

func unsupported(encoding string) error {
	return &Error{
		Status: http.StatusUnsupportedMediaType,
		Code:   CodeUnsupported,
		Message: fmt.Sprintf("Content-Encoding %q is not supported; use gzip, zstd, deflate or identity, at most %d at once",
			clip(encoding), maxEncodings),
	}
}

func tooLarge(limit int64) error {
	return &Error{
		Status:  http.StatusRequestEntityTooLarge,
		Code:    CodeTooLarge,
		Message: "the request body, after decoding, is larger than the limit of " + humanSize(limit),
	}
}

// humanSize writes n bytes the way a person reads it, and exactly.
func humanSize(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), ""
	for _, u := range units {
		if value < 1024 {
			break
		}
		value, unit = value/1024, u
	}
	if unit == "" {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.4g %s (%d bytes)", value, unit, n)
}

// clip shortens a piece of the client's text for a message.
func clip(s string) string {
	const most = 32
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
