package static

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
)

// FuzzReview holds what must be true of any text: no panic (Inspect turns one
// into a hit, which is looked for), no run far beyond the budget, the same
// verdict each time, spans inside the text, and the same verdict for CRLF and
// LF where no line is continued.
func FuzzReview(f *testing.F) {
	for _, s := range allSamples() {
		for _, list := range [][]string{s.block, s.pass} {
			for _, text := range list[:min(len(list), 1)] {
				f.Add(s.lang, text)
			}
		}
	}

	f.Add("bash", "$((1<<2)) ${a[@]:1:2} <<<x `a` $'\\x41' {1..9} @(a|b)")
	f.Add("", "#!/usr/bin/env python3\nprint(1)")

	g, err := New(Options{})
	require.NoError(f, err)

	f.Fuzz(func(t *testing.T, lang, text string) {
		s := guard.Subject{Kind: guard.KindCode, Language: lang, Text: text}
		a, b := g.Inspect(s), g.Inspect(s)
		require.Equal(t, a.Verdict(), b.Verdict())
		require.LessOrEqual(t, a.Steps, 2*g.opts.MaxSteps+len(text))

		for _, h := range a.Hits {
			require.NotEqual(t, "the analysis failed on it", h.Detail)
			require.LessOrEqual(t, h.Span.End, len(text))
			require.LessOrEqual(t, h.Span.Start, h.Span.End)
		}

		if lang == "bash" && !strings.ContainsAny(text, "\r\\'\"`<") {
			crlf := s
			crlf.Text = strings.ReplaceAll(text, "\n", "\r\n")
			c := g.Inspect(crlf)
			require.Equal(t, a.Verdict().Decision, c.Verdict().Decision)
		}
	})
}
