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
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"
)

// args returns the option's arguments, least to most of them.
func (p *parser) args(least, most int) ([]string, error) {
	args := p.d.RemainingArgs()
	if len(args) < least || len(args) > most {
		return nil, p.argErr()
	}
	return args, nil
}

// argErr does not repeat the arguments, as Caddy's own does: they may be keys.
func (p *parser) argErr() error { return p.fail("takes %s", p.usage) }

func (p *parser) word(into *string) error {
	args, err := p.args(1, 1)
	if err != nil {
		return err
	}
	if *into = args[0]; *into == "" {
		return p.fail("must not be empty")
	}
	return nil
}

// words appends the arguments, one or more, and marks the line of each.
func (p *parser) words(into *[]string) error {
	n := len(*into)
	for p.d.NextArg() {
		p.mark(strconv.Itoa(len(*into)))
		*into = append(*into, p.d.Val())
	}
	if len(*into) == n {
		return p.argErr()
	}
	return nil
}

func (p *parser) integer(into **int) error {
	var s string
	if err := p.word(&s); err != nil {
		return err
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return p.fail("must be a whole number, not %q", s)
	}
	*into = &n
	return nil
}

func (p *parser) integerOrOff(into **int) error {
	var s string
	if err := p.word(&s); err != nil {
		return err
	}
	if s == "off" {
		s = "0"
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return p.fail("must be a whole number or off, not %q", s)
	}
	*into = &n
	return nil
}

// statuses reads HTTP statuses and classes such as 5xx, one or more.
func (p *parser) statuses(into *[]int) error {
	for p.d.NextArg() {
		text := p.d.Val()
		n, err := strconv.Atoi(strings.TrimSuffix(text, "xx"))
		if class := strings.HasSuffix(text, "xx"); err != nil || class != (n > 0 && n < 10) {
			return p.fail("must be statuses such as 503 or 5xx, not %q", text)
		}
		p.mark(strconv.Itoa(len(*into)))
		*into = append(*into, n)
	}
	if len(*into) == 0 {
		return p.argErr()
	}
	return nil
}

// number reads a decimal number that may end in unit.
func (p *parser) number(into **float64, unit string) error {
	var s string
	if err := p.word(&s); err != nil {
		return err
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, unit), 64)
	if err != nil {
		return p.fail("must be a number, not %q", s)
	}
	*into = &n
	return nil
}

func (p *parser) size(into *int64) error {
	var s string
	if err := p.word(&s); err != nil {
		return err
	}
	n, err := humanize.ParseBytes(s)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return p.fail("must be a size above 0, such as 64MiB, not %q", s)
	}
	*into = int64(n)
	return nil
}

func (p *parser) duration(into **caddy.Duration) error {
	var s string
	if err := p.word(&s); err != nil {
		return err
	}
	return p.parseDuration(into, s)
}

func (p *parser) durationOrOff(into **caddy.Duration) error {
	var s string
	if err := p.word(&s); err != nil {
		return err
	}
	if s == "off" {
		s = "0"
	}
	return p.parseDuration(into, s)
}

func (p *parser) parseDuration(into **caddy.Duration, s string) error {
	parsed, err := caddy.ParseDuration(s)
	if err != nil {
		return p.fail("must be a duration such as 30s or 5m, not %q", s)
	}
	d := caddy.Duration(parsed)
	*into = &d
	return nil
}

func (p *parser) timeouts(into **Timeouts) error {
	args, err := p.args(1, 2)
	if err != nil {
		return err
	}
	t := new(Timeouts)
	if err := p.parseDuration(&t.Stream, args[0]); err != nil {
		return err
	}
	if len(args) == 2 {
		if err := p.parseDuration(&t.Other, args[1]); err != nil {
			return err
		}
	}
	*into = t
	return nil
}

// only is an option of which no more is there yet than the values that keep
// things as they are.
func only[T any](values ...string) option[T] {
	return option[T]{usage: strings.Join(values, " | "), parse: func(p *parser, _ T) error {
		if !p.d.NextArg() {
			return p.fail("is not available yet")
		}
		if !slices.Contains(values, p.d.Val()) {
			return p.fail("%s is not available yet", p.d.Val())
		}
		if p.d.CountRemainingArgs() > 0 {
			return p.argErr()
		}
		return nil
	}}
}

func validNames[T any](options map[string]option[T]) []string {
	var names []string
	for name, o := range options {
		if !o.unavailable {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// unknown returns the error about a name that is no option of the block. A brace
// is one that follows an option which takes none.
func (p *parser) unknown(name string, valid []string) error {
	if name == "{" {
		return p.fail("takes no block")
	}
	p.option = ""
	hint := "valid are " + strings.Join(valid, ", ")
	if near := nearest(name, valid); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return p.fail("unknown option %q; %s", p.block+name, hint)
}

// nearest returns the one of names that name is most likely a slip of, or
// nothing if none is near.
func nearest(name string, names []string) string {
	best, least := "", 1+max(1, len(name)/3)
	for _, n := range names {
		if d := editDistance(name, n); d < least {
			best, least = n, d
		}
	}
	return best
}

// editDistance counts the letters to insert, delete, replace or swap with the
// next one to make b of a.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
