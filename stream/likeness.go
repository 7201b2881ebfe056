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

import "slices"

// likeness remembers an event that brought content and nothing else. Almost all
// events of a stream are like the one before: they differ in the text that they
// bring, in counters, and maybe in the usage so far. What differs from it nowhere
// else means the same, and needs no reading.
type likeness struct {
	name  []byte // of the event field
	text  []byte // the event's data
	holes []hole // where others may differ, in order
	// misses counts events in a row that were not like it.
	misses int
}

// hole is a value of an event that others may have in another form.
type hole struct {
	from, to int // in the text; of a string without its quotes
	kind     holeKind
}

type holeKind uint8

const (
	stringHole holeKind = iota
	numberHole
	usageHole // an object that is read again in each event
)

const (
	// maxLikeness is the longest event that is remembered.
	maxLikeness = 4 << 10
	// maxHoles is how many values of it may vary.
	maxHoles = 16
	// patience is after how many misses in a row a new event is remembered only
	// now and then.
	patience = 8
)

func (l *likeness) reset() {
	*l = likeness{name: l.name[:0], text: l.text[:0], holes: l.holes[:0]}
}

// fits reports whether an event is like the one that is remembered, and returns
// the usage in it.
func (l *likeness) fits(name, data []byte) (usage tally, ok bool) {
	if len(l.text) == 0 || string(name) != string(l.name) {
		return usage, false
	}
	pos, at := 0, 0
	for i := range l.holes {
		h := &l.holes[i]
		same := h.from - at
		if len(data)-pos <= same || string(data[pos:pos+same]) != string(l.text[at:h.from]) {
			return usage, false
		}
		pos += same
		end := -1
		if h.kind != usageHole {
			end = h.end(data, pos)
		} else if rest := usage.readFrom(data[pos:]); rest != nil {
			end = len(data) - len(rest)
		}
		if end < 0 {
			return usage, false
		}
		pos, at = end, h.to
	}
	return usage, string(data[pos:]) == string(l.text[at:])
}

// end returns where a value ends that stands in a hole; -1 if there is none of
// its kind.
func (h *hole) end(data []byte, pos int) int {
	switch h.kind {
	case stringHole:
		if end := closingQuote(data, pos); end < len(data) {
			return end
		}
	case numberHole:
		if end := numberEnd(data, pos); end > pos {
			return end
		}
	}
	return -1
}

func numberEnd(b []byte, i int) int {
	for i < len(b) && ('0' <= b[i] && b[i] <= '9' || b[i] == '-' || b[i] == '+' || b[i] == '.' || b[i]|0x20 == 'e') {
		i++
	}
	return i
}

// learns reports whether the present event is worth remembering, should it turn
// out to be one that can be.
func (l *likeness) learns(data []byte) bool {
	l.misses++
	return len(data) <= maxLikeness && (l.misses <= patience || l.misses%16 == 0)
}

// learn remembers the event. Others may differ in what was said, in the usage,
// and in the values that tell nothing. All of these are parts of data.
func (l *likeness) learn(name, data []byte, plain [][]byte, said, usage []byte) {
	l.name, l.text, l.holes = append(l.name[:0], name...), append(l.text[:0], data...), l.holes[:0]
	at := func(val []byte) int { return cap(data) - cap(val) }
	l.addStrings(data, at(said), said)
	if isObject(usage) {
		l.add(at(usage), at(usage)+len(usage), usageHole)
	}
	for _, val := range plain {
		switch c := val[0]; {
		case c == '"':
			l.addString(at(val), val)
		case c == '-' || '0' <= c && c <= '9':
			l.add(at(val), at(val)+len(val), numberHole)
		}
	}
	slices.SortFunc(l.holes, func(a, b hole) int { return a.from - b.from })
	if len(l.holes) > maxHoles {
		l.text = l.text[:0]
	}
}

func (l *likeness) add(from, to int, kind holeKind) {
	l.holes = append(l.holes, hole{from, to, kind})
}

func (l *likeness) addString(from int, raw []byte) {
	if n := len(text(raw)); n+2 == len(raw) { // it has both of its quotes
		l.add(from+1, from+1+n, stringHole)
	}
}

// addStrings adds the strings in a value that stands at from, but no names.
func (l *likeness) addStrings(data []byte, from int, val []byte) {
	for i := from; i < from+len(val); i++ {
		if data[i] != '"' {
			continue
		}
		end := stringEnd(data, i+1)
		if next := skipSpace(data, end); next >= len(data) || data[next] != ':' {
			l.addString(i, data[i:end])
		}
		i = end - 1
	}
}
