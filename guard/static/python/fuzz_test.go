package python

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// FuzzParse looks for panics, and checks that the same text gives the same
// result, with either line end.
func FuzzParse(f *testing.F) {
	for _, c := range effectCases {
		f.Add(c.Code)
	}

	for _, s := range hostile {
		f.Add(strings.Repeat(s, 50))
	}

	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}

		budget := effect.NewBudget(50_000)
		r := Parse(text, budget)
		require.Equal(t, r, Parse(text, effect.NewBudget(50_000)))

		for _, e := range r.Effects {
			require.True(t, 0 <= e.Span.Start && e.Span.Start <= e.Span.End && e.Span.End <= len(text), "span %v of %s", e.Span, e.Kind)
		}

		if strings.Contains(text, "\r") {
			return
		}

		crlf := Parse(strings.ReplaceAll(text, "\n", "\r\n"), effect.NewBudget(50_000))
		require.Len(t, crlf.Effects, len(r.Effects))

		for i := range r.Effects {
			require.Equal(t, r.Effects[i].Kind, crlf.Effects[i].Kind)
		}
	})
}

// hostile are texts that, repeated, have brought parsers down.
var hostile = []string{
	"(", "[", "{", "f'{", "f'{f\"{", "a(", "a[", "lambda: ", "not ", "-", "a.b", "a+", "a if b else ", "\"\"\"", "'", "\\\n",
	"if x:\n ", "def f():\n", "@a\n", "x = ", "x, ", "*", "**", "a=b=", "{a:", "match x:\n case y:\n", "\r", "\x00", "(a,",
	"yield ", "await ", "for x in y: ", "[x for x in ", "f(lambda x: ", "class A(A):\n", "0x", "1e", "#", ";", "%%bash\n", "!", "x:",
	"try:\n", "x = f(x)\n", "x += x\n", "x = x + x\n", "x = [x, x]\n", "x='a'*9999;", "a.b(", "x.append(x)\n",
	"def f(x): f(f)\n", "exec('", "with a as ", "from a import ", "import a.", "\xff", "é", "eval(\"eval('", "f'{x:{",
	"s = s.replace('a', 'aa')\n", "elif x:\n", "x = not x\n", "x[x][", "x = (yield x)\n", "print >>", "''''''", "b''", "~",
}

// TestHostileInputIsBounded feeds a megabyte of each hostile text, and lines of
// a megabyte.
func TestHostileInputIsBounded(t *testing.T) {
	const size = 1 << 20

	for _, s := range hostile {
		for _, text := range []string{
			strings.Repeat(s, size/len(s)),
			"x = 1\n" + strings.Repeat(s+"\n", size/(len(s)+1)),
			"s='a'\n" + strings.Repeat("s"+s+" ", size/(len(s)+2)),
		} {
			budget := effect.NewBudget(effect.DefaultSteps)
			start := cpu()
			r := Parse(text, budget)
			took := cpu() - start

			// Generous, because the garbage of other cases is counted too.
			require.Less(t, took, time.Second, "%q", s)
			t.Logf("%8s %q %d", took.Round(time.Millisecond), s, budget.Spent())

			if budget.Exhausted() {
				require.Contains(t, notes(r), effect.NoteBudget, "%q: an exhausted budget must be told", s)
			}
		}
	}
}

// cpu is the processor time spent so far, which a busy machine does not change.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}

	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestHidingEncodingIsToldOf has code that its declared encoding turns into
// other code.
func TestHidingEncodingIsToldOf(t *testing.T) {
	for text, hidden := range map[string]bool{
		"# -*- coding: utf-7 -*-\n+AGkAbQ-":        true,
		"#!/usr/bin/python\n# coding=utf_7\nx":     true,
		"# coding: unicode_escape\nx":              true,
		"# -*- coding: utf-8 -*-\nx = 1":           false,
		"# vim: set fileencoding=latin-1 :\nx = 1": false,
		"x = 1\ny = 2\n# coding: utf-7":            false,
		"x = 'coding: utf-7'":                      false,
	} {
		r := Parse(text, effect.NewBudget(effect.DefaultSteps))
		require.Equal(t, hidden, slices.Contains(notes(r), effect.NoteDepth), "%q", text)
	}
}

func notes(r effect.Result) []effect.NoteKind {
	var kinds []effect.NoteKind
	for _, n := range r.Notes {
		kinds = append(kinds, n.Kind)
	}

	return kinds
}
