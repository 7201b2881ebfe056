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

package verdict

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	maxBody    = 64 << 10
	maxMessage = 4 << 10
	maxCodes   = 16
	maxQuoted  = 4
	maxNesting = 8
)

// facts is what an error body says.
type facts struct {
	words   []word // whatever may identify the error
	message string
	delay   string // how long to wait, as Google writes it
}

// word is a code, type, status or reason. Of two, the one of lower rank is the
// better name for the error.
type word struct {
	text string
	rank int
}

// ranks tells where the words stand. Arrays do not show in a path, so that a
// list of details, or a whole body in brackets, is read like an object.
var ranks = map[string]int{
	"error.details.error_code":         0,
	"error.details.reason":             1,
	"error.errors.reason":              1,
	"error.metadata.limit_source":      1,
	"error.code":                       2,
	"code":                             2,
	"error.metadata.error_type":        3,
	"error_type":                       3,
	"error.error_type":                 3,
	"error.type":                       4,
	"error.status":                     4,
	"type":                             5,
	"status":                           5,
	"__type":                           5,
	"error.innererror.code":            6,
	"error.details.violations.quotaId": 7,
	"fault.detail.errorcode":           7,
	"error.metadata.flagged_input":     flagRank,
	"error.metadata.reasons":           flagRank,
}

// flagRank marks members whose mere presence tells something; their text is
// the client's own.
const flagRank = 100

// flagged stands for such a member.
const flagged = "flagged_input"

// What a provider quotes of another's error in turn, as a JSON text within its
// own, is marked so that only rules that ask for it see it: the key that an
// upstream's upstream refuses is not ours.
const (
	quoted    = "quoted:"
	quoteRank = 50
)

// messages are the places of the message, in order of preference.
var messages = [...]string{"error.message", "message", "error", "detail", "detail.msg", "fault.faultstring"}

// readBody reads as much of an error body as there is. It takes any shape, and
// nothing from a body that is no JSON.
func readBody(h http.Header, body []byte) facts {
	var f facts
	name, _, _ := strings.Cut(h.Get("X-Amzn-Errortype"), ":")
	f.add(name, 0)
	found := map[string]string{}
	body = bytes.TrimPrefix(body[:min(len(body), maxBody)], []byte("\ufeff"))
	walk(bytes.NewReader(body), func(path, text string, isText bool) {
		switch path {
		case "error.details.retryDelay":
			if f.delay == "" {
				f.delay = text
			}
		case "error.metadata.raw", "error.message", "message":
			f.quote(text)
		}
		if _, ok := found[path]; !ok && isText {
			found[path] = text
		}
		if rank, ok := ranks[path]; ok {
			f.add(text, rank)
		}
	})
	for _, path := range messages {
		if f.message == "" {
			f.message = searchable(found[path])
		}
	}
	return f
}

// searchable returns the head of a message in lower case.
func searchable(message string) string {
	return strings.ToLower(message[:min(len(message), maxMessage)])
}

func factsOf(code, typ, message string) facts {
	var f facts
	f.add(code, 2)
	f.add(typ, 4)
	f.message = searchable(message)
	return f
}

// quote reads an error that is quoted as a JSON text.
func (f *facts) quote(text string) {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return
	}
	left := maxQuoted
	walk(strings.NewReader(text), func(path, text string, _ bool) {
		if rank, ok := ranks[path]; ok && rank < quoteRank && left > 0 {
			left--
			f.add(quoted+text, quoteRank+rank)
		}
	})
}

func (f *facts) add(text string, rank int) {
	if rank == flagRank {
		text = flagged
	}
	if i := strings.LastIndexByte(text, '#'); i >= 0 && rank < quoteRank {
		text = text[i+1:] // a namespace, as in the __type of AWS
	}
	if text != "" && len(text) <= 256 && len(f.words) < maxCodes {
		f.words = append(f.words, word{text, rank})
	}
}

// has reports whether one of the words fits one of the patterns.
func (f *facts) has(patterns []string) bool {
	for _, w := range f.words {
		for _, p := range patterns {
			if fits(p, w.text) {
				return true
			}
		}
	}
	return false
}

// fits compares without case; a * at either end of the pattern stands for
// anything.
func fits(pattern, s string) bool {
	head, open := strings.CutSuffix(pattern, "*")
	switch {
	case !open:
		return strings.EqualFold(pattern, s)
	case strings.HasPrefix(head, "*"):
		return strings.Contains(strings.ToLower(s), head[1:])
	}
	return len(s) >= len(head) && strings.EqualFold(s[:len(head)], head)
}

// code returns the best name of the error that is fit for a log: one word, not
// a repetition of the status.
func (f *facts) code(status int) string {
	best := word{rank: flagRank}
	for _, w := range f.words {
		if w.rank < best.rank && nameable(w.text) && w.text != strconv.Itoa(status) && w.text != "error" {
			best = w
		}
	}
	return best.text
}

func nameable(s string) bool {
	if len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return true
}

// walker goes through the scalars of a JSON text without recursion.
type walker struct {
	dec   *json.Decoder
	stack []level
}

type level struct {
	object bool
	key    string // of the present member
	value  bool   // the next token is a value, not a key
}

// walk calls fn with every text and number in a JSON text that is not nested too
// deep, until the text ends or breaks off.
func walk(r io.Reader, fn func(path, text string, isText bool)) {
	w := walker{dec: json.NewDecoder(r)}
	w.dec.UseNumber()
	w.each(fn)
}

func (w *walker) each(fn func(path, text string, isText bool)) {
	for {
		tok, err := w.dec.Token()
		if err != nil {
			return
		}
		switch t := tok.(type) {
		case json.Delim:
			w.delim(t)
		case string:
			if !w.key(t) {
				w.scalar(fn, t, true)
			}
		case json.Number:
			w.scalar(fn, t.String(), false)
		default:
			w.endValue()
		}
	}
}

func (w *walker) delim(d json.Delim) {
	switch d {
	case '{', '[':
		w.stack = append(w.stack, level{object: d == '{'})
	default:
		w.stack = w.stack[:len(w.stack)-1]
		w.endValue()
	}
}

// key takes a text that is a member's name.
func (w *walker) key(name string) bool {
	n := len(w.stack)
	if n == 0 || !w.stack[n-1].object || w.stack[n-1].value {
		return false
	}
	w.stack[n-1].key, w.stack[n-1].value = name, true
	return true
}

func (w *walker) scalar(fn func(path, text string, isText bool), text string, isText bool) {
	if len(w.stack) <= maxNesting {
		fn(w.path(), text, isText)
	}
	w.endValue()
}

func (w *walker) endValue() {
	if n := len(w.stack); n > 0 {
		w.stack[n-1].value = false
	}
}

func (w *walker) path() string {
	var keys [maxNesting]string
	n := 0
	for _, l := range w.stack {
		if l.object {
			keys[n] = l.key
			n++
		}
	}
	return strings.Join(keys[:n], ".")
}
