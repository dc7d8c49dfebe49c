package guard

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// meta-llama/PurpleLlama codeshield.py: an exception in the scanner meant "not
// insecure".
func TestPanicIsAFaultAndTellsNoText(t *testing.T) {
	const text = "the secret text"
	for name, panics := range map[string]func(s Subject){
		"runtime": func(s Subject) { _ = s.Text[len(s.Text):][7] },
		"value":   func(s Subject) { panic(s.Text) },
		"error":   func(s Subject) { panic(errors.New(s.Text)) },
		"nil map": func(Subject) { var m map[string]int; m["x"] = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			g := guardFunc(func(_ context.Context, s Subject) (Verdict, error) {
				panics(s)
				return Verdict{Decision: Pass}, nil
			})
			for _, remote := range []bool{false, true} {
				_, err := chain(t, Link{Guard: g, Remote: remote}).Review(t.Context(), Subject{Kind: KindCode, Text: text})
				assert.Equal(t, Panicked, faultOf(t, err))
				assert.NotContains(t, err.Error(), text)
				assert.Contains(t, err.Error(), "TestPanic", "where it happened")
			}
		})
	}
}

func TestVerdictsAreBounded(t *testing.T) {
	long := Verdict{Decision: Block, Reasoning: strings.Repeat("ü", 3000) + "\n\x1b[31m"}
	for range 100 {
		long.Violations = append(long.Violations, Violation{Type: strings.Repeat("t", 500), CWE: "CWE-1\n2", Rule: strings.Repeat("r", 500)})
	}
	v, err := chain(t, Link{Guard: says(long, nil)}).Review(t.Context(), command)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(v.Reasoning), maxReasoning)
	assert.Len(t, v.Violations, maxViolations)
	assert.Len(t, v.Violations[0].Type, maxWord)
	assert.Equal(t, "CWE-1 2", v.Violations[0].CWE)
	assert.Len(t, long.Violations[0].Type, 500, "the guard's own verdict is untouched")

	v, err = chain(t, Link{Guard: says(Verdict{Decision: Block, Reasoning: " a\nb\x1b[31mc\u0085d "}, nil)}).Review(t.Context(), command)
	require.NoError(t, err)
	assert.Equal(t, "a b [31mc d", v.Reasoning)
}
