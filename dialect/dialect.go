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

// Package dialect names the APIs that a request can speak.
//
// A dialect is told by the path of a request; a channel speaks one or more of
// them. Nothing is ever translated from one dialect to another.
package dialect

// Dialect is the API that a request speaks. The zero value is None.
type Dialect uint8

// The dialects. None is a request whose path belongs to no known API; it may
// go to every channel.
const (
	None Dialect = iota
	OpenAI
	Anthropic
	Gemini
	Azure
	Bedrock
	Cohere
	Ollama
)

var names = [...]string{"none", "openai", "anthropic", "gemini", "azure", "bedrock", "cohere", "ollama"}

// String returns the name of d as it stands in configuration and answers.
func (d Dialect) String() string {
	if int(d) < len(names) {
		return names[d]
	}
	return "unknown"
}

// Set is a set of dialects. The zero value is empty.
type Set uint16

// SetOf returns the set of the given dialects.
func SetOf(ds ...Dialect) Set {
	var s Set
	for _, d := range ds {
		s |= 1 << d
	}
	return s
}

// Has reports whether d is in s.
func (s Set) Has(d Dialect) bool { return s&(1<<d) != 0 }
