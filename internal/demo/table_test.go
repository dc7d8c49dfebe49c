package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPrintTableCountsAndMarksWhatDidNotHold(t *testing.T) {
	var out strings.Builder
	held := printTable(&out, []result{
		{step{tried: "echo", surface: "command", want: pass}, answer{pass, "hello"}, time.Millisecond},
		{step{tried: "rm -rf /", surface: "command", want: block}, answer{pass, ""}, time.Millisecond},
	})
	assert.Equal(t, 1, held)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	assert.True(t, strings.HasPrefix(lines[1], "ok"), lines[1])
	assert.True(t, strings.HasPrefix(lines[2], "WRONG"), lines[2])
}

func TestWrap(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                   {"", []string{""}},
		"what fits":                 {"one two", []string{"one two"}},
		"at spaces":                 {"one two three", []string{"one two", "three"}},
		"a long word on its own":    {"a averylongword b", []string{"a", "averylongword", "b"}},
		"counted in characters":     {"äöü äöü", []string{"äöü äöü"}},
		"line breaks become spaces": {"one\ntwo", []string{"one two"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, wrap(tc.text, 8)) })
	}
}
