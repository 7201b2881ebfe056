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
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxModel is the length of a model's name in bytes.
const maxModel = 1024

// flag is a boolean that may not have been given.
type flag uint8

const (
	unset flag = iota
	yes
	no
)

// members is what a body says of itself at its top level.
type members struct {
	form     bool // multipart, else JSON
	boundary string
	models   int // members named model, in whatever case
	lastName string
	from, to int // the value of the last one; of a JSON body with its quotes
	stream   flag
}

// membersOf looks into a body.
func membersOf(body []byte, contentType string) (members, error) {
	if isForm(contentType) {
		return scanForm(body, contentType)
	}
	return scanJSON(body)
}

// note takes down a member named name whose value stands at from to to, if it
// may be meant for the model.
func (m *members) note(name string, from, to int) {
	if strings.EqualFold(name, "model") {
		m.models++
		m.lastName, m.from, m.to = name, from, to
	}
}

// model returns the requested model.
func (m *members) model(body []byte) (string, error) {
	switch {
	case m.models == 0:
		return "", invalid(`"model" is missing`)
	case m.models > 1:
		return "", invalid(`"model" is given twice; names that differ only in case count as the same`)
	case m.lastName != "model":
		return "", invalid(`"model" is missing; there is %q, but the name is lower case`, m.lastName)
	}
	value := body[m.from:m.to]
	if !m.form {
		return jsonModel(value)
	}
	if len(value) > maxModel {
		return "", errModelLength()
	}
	name := string(value)
	return name, checkModel(name)
}

// jsonModel returns the string that a valid JSON value stands for.
func jsonModel(literal []byte) (string, error) {
	if literal[0] != '"' {
		return "", invalid(`"model" must be a string, not %s`, kindOf(literal[0]))
	}
	if len(literal) > 6*maxModel+2 { // each byte written as \u00XX
		return "", errModelLength()
	}
	name := string(literal[1 : len(literal)-1])
	if strings.Contains(name, `\`) {
		if hasLoneSurrogate(name) {
			return "", invalid(`"model" is not valid Unicode: half of a surrogate pair is missing`)
		}
		if !utf8.ValidString(name) { // the decoder would replace it silently
			return "", checkModel(name)
		}
		if err := json.Unmarshal(literal, &name); err != nil {
			return "", invalid(`"model" is not a valid JSON string`)
		}
	}
	return name, checkModel(name)
}

// kindOf names the kind of JSON value that starts with c.
func kindOf(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	default:
		return "a number"
	}
}

// hasLoneSurrogate looks for a \uD800 to \uDFFF without its other half in the
// text of a valid JSON string.
func hasLoneSurrogate(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		switch surrogate(s[i:]) {
		case high:
			if surrogate(s[i+6:]) != low {
				return true
			}
			i += 11
		case low:
			return true
		default:
			i++
		}
	}
	return false
}

type half uint8

const (
	neither half = iota
	high
	low
)

// surrogate tells which half of a pair the escape at the start of s is.
func surrogate(s string) half {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' || s[2]|0x20 != 'd' {
		return neither
	}
	switch c := s[3] | 0x20; {
	case s[3] < '8': // also the digits, which the bit leaves alone
		return neither
	case c == '8' || c == '9' || c == 'a' || c == 'b':
		return high
	default:
		return low
	}
}

// checkModel refuses names that no provider has, and that would do harm in
// logs, paths and labels.
func checkModel(name string) error {
	switch {
	case name == "":
		return invalid("the model is empty")
	case len(name) > maxModel:
		return errModelLength()
	case !utf8.ValidString(name):
		return invalid("the model is not valid UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return invalid("the model contains a control character")
	}
	return nil
}

func errModelLength() error {
	return invalid("the model is longer than %d bytes", maxModel)
}
