package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

func hasBrace(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.IndexByte(l.Value, '{') >= 0 {
			return true
		}
	}

	return false
}

// maxBraces bounds how many words one word may become.
const maxBraces = 64

// braces expands {a,b} and {1..n} into alternatives.
func (e *eval) braces(parts []syntax.WordPart, depth int) [][]syntax.WordPart {
	out := [][]syntax.WordPart{nil}

	for _, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok || depth > 8 {
			for i := range out {
				out[i] = append(out[i], p)
			}

			continue
		}

		var alts [][]syntax.WordPart

		if b.Sequence {
			alts = sequence(b)
		} else {
			for _, el := range b.Elems {
				alts = append(alts, e.braces(el.Parts, depth+1)...)
			}
		}

		var next [][]syntax.WordPart

		for _, o := range out {
			for _, a := range alts {
				if len(next) >= maxBraces || !e.budget.Spend(1) {
					break
				}

				next = append(next, append(append([]syntax.WordPart(nil), o...), a...))
			}
		}

		out = next
	}

	return out
}

// sequence expands {from..to..step}; a long one stands for itself.
func sequence(b *syntax.BraceExp) [][]syntax.WordPart {
	lit := func(s string) [][]syntax.WordPart { return [][]syntax.WordPart{{&syntax.Lit{Value: s}}} }

	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	a, errA := strconv.Atoi(from)
	z, errZ := strconv.Atoi(to)

	if errA != nil || errZ != nil {
		if len(from) == 1 && len(to) == 1 {
			a, z = int(from[0]), int(to[0])
		} else {
			return lit(effect.HoleText)
		}
	}

	step := 1
	if len(b.Elems) > 2 {
		if s, err := strconv.Atoi(b.Elems[2].Lit()); err == nil && s != 0 {
			step = max(s, -s)
		}
	}

	n := max(z-a, a-z)/step + 1
	if n > maxRounds+8 {
		return lit(manyMark + strconv.Itoa(n) + manyMark)
	}

	var out [][]syntax.WordPart

	for i := range n {
		v := a + i*step
		if z < a {
			v = a - i*step
		}

		s := strconv.Itoa(v)
		if errA != nil {
			s = string(rune(v))
		}

		out = append(out, []syntax.WordPart{&syntax.Lit{Value: s}})
	}

	return out
}

// manyMark encloses, in a literal made by sequence, how many numbers it stands
// for.
const manyMark = "\uF8FE"

// many turns a marked literal into a value that stands for many numbers.
func many(v effect.Value) effect.Value {
	before, rest, _ := strings.Cut(v.Text, manyMark)
	n, after, _ := strings.Cut(rest, manyMark)

	return effect.Value{Text: before + effect.HoleText + after, Ref: program.ManyRef + n}
}
