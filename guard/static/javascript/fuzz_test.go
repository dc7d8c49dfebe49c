package javascript

import (
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
	"(", "[", "{", "`${", "a(", "a[", "a=>", "()=>", "()=>{", "!", "-", "++", "a.b", "a?.b", "a+", "a?b:", "a?", "a,", "'", "\"", "`",
	"/", "/*", "//", "<", "<a>", "<a b={", "</a>", "</", "async ", "async(", "await ", "new ", "function(){", "class A{a(){", "class A extends ",
	"if(a)", "else ", "if(a){}else ", "for(;;)", "for(a of ", "while(a)", "do ", "switch(a){case ", "try{", "catch", "x=", "x=x+x;", "x+=x;",
	"x=[x,x];", "({a:", "({[", "({get a(){", "[...", "a`", "a<b>(", "a<", "let x:", "type A=", "interface A{", "enum A{", "a as ", "a!",
	"import {", "export ", "@a ", "#a", "\\u0061", "\\u{", "\xe2\x80\xa8", "\r", "\x00", "\xff", "é", "x.push(x);", "x='a'.repeat(9999);",
	"eval('", "eval(\"eval('", "Function('", "f(f);function f(a){a(f)}", "let a=()=>a(a);", "x=x.replace('a','aa');", "x=x.concat(x);", "0x", "1e", "1n",
	"return ", "yield ", "label:", "(a,", "(a)=>(", "{a:{", "case ", "}", ")", "]", ";", ":", "?.", "=>", "*", "**", "...",
	"a.constructor", "[].map(x=>", "[1,2].forEach(x=>[1,2].forEach(x=>", "throw ", "var a=", "setTimeout(()=>", "p.then(()=>",
}

// TestHostileInputIsBounded feeds a megabyte of each hostile text, and lines of
// a megabyte.
func TestHostileInputIsBounded(t *testing.T) {
	const size = 1 << 20

	for _, s := range hostile {
		for _, text := range []string{
			strings.Repeat(s, size/len(s)),
			"x = 1\n" + strings.Repeat(s+"\n", size/(len(s)+1)),
			"s='a';" + strings.Repeat("s"+s+" ", size/(len(s)+2)),
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

func notes(r effect.Result) []effect.NoteKind {
	var kinds []effect.NoteKind
	for _, n := range r.Notes {
		kinds = append(kinds, n.Kind)
	}

	return kinds
}
