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

package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Secret holds a key such that it cannot be printed, logged or encoded by
// accident: whatever formats or marshals a Secret, or a value with a Secret in
// it, gets the id. Only Reveal gives the secret itself.
//
// The zero value is the empty secret. Secrets are immutable, safe for concurrent
// use, and not comparable; compare their ids.
type Secret struct {
	// reveal is a function because nothing that walks a value, not even one
	// that follows pointers and reads unexported fields, looks inside of it.
	reveal func() string
	id     string
}

// NewSecret returns the Secret that holds s, byte for byte.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	sum := sha256.Sum256([]byte(s))
	return Secret{
		reveal: func() string { return s },
		id:     "sha256:" + hex.EncodeToString(sum[:6]),
	}
}

// ID returns the name by which the secret is shown: "sha256:" and the first 12
// hex digits of its SHA-256. It is "" for the empty secret.
func (s Secret) ID() string { return s.id }

// Reveal returns the secret itself. It is for the request that is about to be
// sent, and for nothing that is kept or printed.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.reveal == nil }

// String returns the id.
func (s Secret) String() string { return s.id }

// GoString returns the id.
func (s Secret) GoString() string { return s.id }

// Format writes the id, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.id) }

// MarshalJSON returns the id as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.id) }

// MarshalText returns the id.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.id), nil }

// LogValue returns the id.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.id) }

// Clean returns s without the newlines at its end, as files and environment
// variables often bring one. Nothing else is touched: a space may belong to a
// key.
func Clean(s string) string { return strings.TrimRight(s, "\r\n") }
