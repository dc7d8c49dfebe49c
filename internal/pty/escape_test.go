package pty

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommandsOfOtherProgramsAreJudgedAsAShells: many programs run a command line
// when told so, each in its own way.
func TestCommandsOfOtherProgramsAreJudgedAsAShells(t *testing.T) {
	for program, lines := range map[string][]string{
		"vim x": {":!touch marker", ":r !touch marker", ":w !touch marker", ":%!touch marker", ":.,$!touch marker", "!!touch marker", "!Gtouch marker", "ione\x1b:!touch marker",
			":call system('touch marker')", ":echo system(\"touch marker\")", ":terminal touch marker", ":exe '!touch marker'"},
		"less x":     {"!touch marker", "|.touch marker", "/x\x1b!touch marker"},
		"man ls":     {"!touch marker"},
		"more x":     {"!touch marker"},
		"git log":    {"!touch marker"},
		"journalctl": {"!touch marker"},
		"ipython":    {"!touch marker", "x = !touch marker", "!!touch marker"},
		"gdb":        {"shell touch marker", "!touch marker", "make touch marker"},
		"psql":       {`\! touch marker`},
		"mysql":      {`\! touch marker`, "system touch marker"},
		"sqlite3":    {".shell touch marker", ".system touch marker"},
		"bc":         {"!touch marker"},
		"ftp x":      {"!touch marker"},
		"nano x":     {"\x12\x18touch marker", "\x14touch marker"},
		"emacs x":    {"\x1b!touch marker"},
		"mc":         {"touch marker"},
		"./a-vim x":  {":!touch marker", "!touch marker"},
		"python3":    {"import os; os.system('touch marker')"},
		"irb":        {"system 'touch marker'", "`touch marker`"},
		"node":       {"require('child_process').execSync('touch marker')"},
	} {
		for _, line := range lines {
			s := New(Options{Command: "bash", Cols: 80, Rows: 24, UTF8: true})
			s.Output([]byte(prompt))
			s.Commit(s.Keys([]byte(program + "\r")))
			s.Output([]byte("\x1b[?2004l\r\n\x1b[?1049h"))
			p := answeredBy(t, s, line)
			if p.Refusal != "" {
				continue
			}
			judged := slices.ContainsFunc(p.Reviews, func(r Review) bool {
				return r.Language == "bash" && r.Text == "touch marker" || r.Language != "bash" && r.Text == line
			})
			require.True(t, judged, "%s, %q: %q", program, line, p.Reviews)
		}
	}
}

// answeredBy types a line into a program that fills the screen, and answers its keys.
func answeredBy(t *testing.T, s *Session, line string) *Plan {
	t.Helper()
	p := s.Keys([]byte(line + "\r"))
	for p.Look != nil {
		s.Commit(p)
		s.Output([]byte("."))
		next, ok := s.Read(p.Look, true)
		require.True(t, ok)
		p = next
	}
	return p
}

// TestPaddingHidesNoCommand: what has too many parts to be judged is refused.
func TestPaddingHidesNoCommand(t *testing.T) {
	var padding strings.Builder
	for i := range 200 {
		fmt.Fprintf(&padding, "|%d", i)
	}
	for _, line := range []string{"i" + padding.String() + "\x1b:!touch marker", ":!touch marker # " + padding.String()} {
		s := New(Options{Command: "bash", Cols: 80, Rows: 24, UTF8: true})
		s.Output([]byte(prompt))
		s.Commit(s.Keys([]byte("vim x\r")))
		s.Output([]byte("\x1b[?2004l\r\n\x1b[?1049h"))
		require.Equal(t, longHint, answeredBy(t, s, line).Refusal)
	}
}

// TestAnEditorsTextIsNotHandedToAShell: only what was typed since the last Enter is
// known of it.
func TestAnEditorsTextIsNotHandedToAShell(t *testing.T) {
	for line, refused := range map[string]bool{
		":w !sh": true, ":%!bash": true, ":.!sh": true, ":1,5!python3": true, ":'<,'>!/bin/sh -s": true, "!!sh": true, "!Gbash": true, ":write !sudo bash": true,
		":!sh": false, ":!bash": false, ":w !sudo tee %": false, ":%!sort": false, "!}fmt": false, ":r !ls": false, ":!python3 x.py": false, ":%!python3 -m json.tool": false,
	} {
		s := New(Options{Command: "bash", Cols: 80, Rows: 24, UTF8: true})
		s.Output([]byte(prompt))
		s.Commit(s.Keys([]byte("vim x\r")))
		s.Output([]byte("\x1b[?2004l\r\n\x1b[?1049h"))
		require.Equal(t, refused, s.Keys([]byte(line+"\r")).Refusal != "", "%q", line)
	}
}
