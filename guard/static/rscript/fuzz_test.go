package rscript

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// FuzzParse looks for panics, and checks that the same text gives the same
// result.
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

		r := Parse(text, effect.NewBudget(50_000))
		require.Equal(t, r, Parse(text, effect.NewBudget(50_000)))

		for _, e := range r.Effects {
			require.True(t, 0 <= e.Span.Start && e.Span.Start <= e.Span.End && e.Span.End <= len(text), "span %v of %s", e.Span, e.Kind)
		}
	})
}

// TestHostileInputIsBounded feeds a megabyte of each hostile text.
func TestHostileInputIsBounded(t *testing.T) {
	const size = 1 << 20

	for _, s := range hostile {
		for _, text := range []string{strings.Repeat(s, size/len(s)), strings.Repeat(s+"\n", size/(len(s)+1))} {
			start := time.Now()
			budget := effect.NewBudget(effect.DefaultSteps)
			r := Parse(text, budget)
			t.Logf("%8s %q %d", time.Since(start).Round(time.Millisecond), s, budget.Spent())

			// Generous: the machine may be busy.
			require.Less(t, time.Since(start), 3*time.Second, "%q", s)

			if budget.Exhausted() {
				require.NotEmpty(t, r.Notes, "%q: an exhausted budget must be told", s)
			}
		}
	}
}

var hostile = []string{
	"(", "[", "[[", "{", "a(", "a[", "a$", "a@", "a::", "a<-", "->a", "a|>", "a%>%b", "%a%", "!", "-", "a+", "a^", "a:", "~", "'", "\"", "`", "r\"(",
	"#", "function(x)", "\\(x)", "function(x){", "function(x=", "if(a)", "else ", "if(a){}else ", "for(a in b)", "while(a)", "repeat ", "a=", "f(a=",
	"x<-c(x,x);", "x<-paste0(x,x)\n", "f<-function()f()\n", "sapply(x,function(y)", "eval(parse(text='", "\xff", "\x00", "\r", "}", ")", "]", ";", ",", "return(",
	"do.call('f',", "x|>f()|>", "a%",
}
