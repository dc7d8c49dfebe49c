package redact

import (
	"cmp"
	"slices"
	"strings"
)

// finding is a secret in a text, and the pattern that found it.
type finding struct{ start, end, pattern int }

// find returns what the patterns find, in order and without overlaps: where
// several patterns overlap, all they cover is one finding, of the first of them.
func find(text string) []finding {
	lower := lowerASCII(text)
	var all []finding
	for i := range patterns {
		p := &patterns[i]
		if p.atHint {
			all = p.findAtHints(all, i, text, lower)
		} else if p.hinted(lower) {
			all = p.findAnywhere(all, i, text)
		}
	}
	if len(all) < 2 {
		return all
	}
	slices.SortFunc(all, func(a, b finding) int { return cmp.Or(a.start-b.start, a.pattern-b.pattern) })
	merged := all[:1]
	for _, f := range all[1:] {
		last := &merged[len(merged)-1]
		if f.start >= last.end {
			merged = append(merged, f)
			continue
		}
		last.end = max(last.end, f.end)
		last.pattern = min(last.pattern, f.pattern)
	}
	return merged
}

// lowerASCII lowers ASCII letters only, so that positions stay.
func lowerASCII(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
		return s
	}
	out := []byte(s)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

func (p *pattern) hinted(lower string) bool {
	for _, hint := range p.hints {
		if strings.Contains(lower, hint) {
			return true
		}
	}
	return false
}

func (p *pattern) findAnywhere(all []finding, index int, text string) []finding {
	group := 2 * p.re.SubexpIndex("s")
	for _, at := range p.re.FindAllStringSubmatchIndex(text, -1) {
		all = p.add(all, index, text, at[0], at[group], at[group+1])
	}
	return all
}

// findAtHints tries every place where a hint is; a match, accepted or not, is
// not looked into again.
func (p *pattern) findAtHints(all []finding, index int, text, lower string) []finding {
	group := 2 * p.re.SubexpIndex("s")
	hints := newCursor(lower, p.hints)
	for pos := 0; ; {
		start, hint := hints.next(pos)
		if start < 0 {
			return all
		}
		end := len(text)
		if p.window > 0 {
			end = min(end, start+p.window)
		}
		at := p.re.FindStringSubmatchIndex(text[start:end])
		if at == nil {
			pos = start + len(hint)
			continue
		}
		all = p.add(all, index, text, start, start+at[group], start+at[group+1])
		pos = start + at[1]
	}
}

func (p *pattern) add(all []finding, index int, text string, match0, start, end int) []finding {
	if p.accept != nil {
		m := match{before: text[match0:start], secret: text[start:end], after: text[end:]}
		if match0 > 0 {
			m.ahead = text[match0-1]
		}
		if !p.accept(m) {
			return all
		}
	}
	return append(all, finding{start, end, index})
}

// cursor finds the next of several literals, looking at no part of the text twice
// for the same literal.
type cursor struct {
	text     string
	literals []string
	at       []int // where the next one is: len(text) if nowhere
}

func newCursor(text string, literals []string) *cursor {
	c := &cursor{text: text, literals: literals, at: make([]int, len(literals))}
	for i := range c.at {
		c.seek(i, 0)
	}
	return c
}

func (c *cursor) seek(i, pos int) {
	if at := strings.Index(c.text[pos:], c.literals[i]); at >= 0 {
		c.at[i] = pos + at
	} else {
		c.at[i] = len(c.text)
	}
}

// next returns the first literal at or after pos, and where it is: -1 if nowhere.
func (c *cursor) next(pos int) (at int, literal string) {
	at = len(c.text)
	for i := range c.literals {
		if c.at[i] < pos {
			c.seek(i, pos)
		}
		if c.at[i] < at {
			at, literal = c.at[i], c.literals[i]
		}
	}
	if literal == "" {
		return -1, ""
	}
	return at, literal
}
