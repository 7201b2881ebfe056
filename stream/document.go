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

package stream

import "bytes"

// docState follows a JSON document, in any pieces, and gathers the members
// that tell an error or usage: those of the top-level object, or of each object
// in a top-level array.
type docState struct {
	lex    lexer
	depth  int
	base   int // the depth whose members count: 1 in an object, 2 in an array
	begun  bool
	markup bool // it begins as HTML or XML does

	object  bool // what stands at base is an object
	atKey   bool // the next string at base is a key
	inKey   bool
	key     []byte
	value   *[]byte // where the value that is being gathered belongs
	gather  buffer
	fields  fields
	onClose func(*fields) // called with the members of each such object
}

// closed reports whether a document began and all of it came.
func (d *docState) closed() bool { return d.begun && d.depth <= 0 && !d.lex.inside }

// atBase reports whether what comes next belongs to an object whose members
// count. What stands behind the document does not.
func (d *docState) atBase() bool { return d.base > 0 && d.depth == d.base }

func (w *Watcher) writeDocument(p []byte) {
	if rest, ok := w.doc.atOnce(p); ok {
		p = rest
	}
	w.doc.follow(p)
	w.arrived = w.doc.begun
	if w.doc.markup {
		w.fail(Event{Type: "markup"})
	}
}

// documentObject judges the members of a document as it does those of an event.
func (w *Watcher) documentObject(f *fields) {
	w.readUsage(f)
	if !w.findFailure(false, text(f.typ), f, nil) {
		w.chat(f.choices)
	}
}

// atOnce reads a top-level object that came in one piece, as most do: nothing
// needs to be gathered then. It reports whether p begins with one, and returns
// what follows it.
func (d *docState) atOnce(p []byte) (rest []byte, ok bool) {
	if d.begun || len(p) > plainSize || !isObject(p) {
		return nil, false
	}
	m := membersOf(p)
	for m.next() {
		if slot := d.fields.slot(m.key); slot != nil {
			*slot = m.val
		}
	}
	if rest = m.after(); rest != nil {
		d.begun = true
		d.onClose(&d.fields)
	}
	d.fields = fields{}
	return rest, rest != nil
}

func (d *docState) follow(p []byte) {
	if !d.begun {
		p = bytes.TrimLeft(p, " \t\r\n")
		if len(p) == 0 {
			return
		}
		d.begun, d.markup = true, p[0] == '<'
	}
	for len(p) > 0 {
		run, inside := d.lex.run(p)
		p = p[len(run):]
		if inside {
			d.stringRun(run)
		} else {
			d.marks(run)
		}
	}
}

func (d *docState) stringRun(run []byte) {
	if d.value != nil {
		d.gather.add(run)
	}
	if !d.inKey {
		return
	}
	if !d.lex.inside {
		d.inKey = false
		run = run[:len(run)-1]
	}
	d.key = append(d.key, run[:min(len(run), max(0, 32-len(d.key)))]...)
}

// marks reads what stands outside of strings.
func (d *docState) marks(run []byte) {
	start := 0 // of what is still to be gathered
	for i, c := range run {
		switch c {
		case '{', '[':
			d.openNest(c)
		case '"':
			d.openString()
		case ':':
			if d.atBase() && d.value == nil && len(d.key) > 0 {
				d.value = d.fields.slot(d.key)
				start = i + 1
			}
		case ',', '}', ']':
			if d.atBase() {
				d.endValue(run[start:i])
			}
			d.afterValue(c)
		}
	}
	if d.value != nil {
		d.gather.add(run[start:])
	}
}

func (d *docState) openNest(c byte) {
	d.depth++
	if d.base == 0 {
		d.base = 1
		if c == '[' {
			d.base = 2
		}
	}
	if d.depth == d.base {
		d.object = c == '{'
		d.atKey = d.object
	}
}

func (d *docState) openString() {
	if d.atBase() && d.atKey {
		d.atKey, d.inKey = false, true
		d.key = d.key[:0]
	}
}

// endValue ends a value at base; rest is its last part.
func (d *docState) endValue(rest []byte) {
	if d.value == nil {
		return
	}
	d.gather.add(rest)
	*d.value = bytes.Clone(bytes.TrimSpace(d.gather.b))
	d.value = nil
	d.gather.reset()
}

func (d *docState) afterValue(c byte) {
	if c == ',' {
		if d.atBase() {
			d.atKey, d.key = d.object, d.key[:0]
		}
		return
	}
	if c == '}' && d.atBase() {
		if d.onClose != nil {
			d.onClose(&d.fields)
		}
		d.fields, d.key = fields{}, d.key[:0]
	}
	if d.depth--; d.depth <= 0 {
		d.depth, d.base = 0, 0
	}
}
