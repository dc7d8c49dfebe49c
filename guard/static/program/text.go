package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

func withText(v effect.Value, s string) effect.Value {
	v.Text = s

	return v
}

// input is what a filter reads: its file operands, or standard input.
func (m *Machine) input(c *Call, files []effect.Value) effect.Value {
	if len(files) == 0 {
		return c.Stdin
	}

	parts := make([]effect.Value, 0, len(files))

	for _, f := range files[:min(len(files), 64)] {
		if f.Text == "-" {
			parts = append(parts, c.Stdin)
		} else {
			parts = append(parts, m.Read(f, c.Span, c.Flags, Base(c.Name.Text)))
		}
	}

	return effect.Concat(parts...)
}

// opaque hides the text of a value and keeps its sources.
func opaque(v effect.Value) effect.Value {
	v.Text = effect.HoleText

	return v
}

// filter reads files or standard input and prints some of it. skip operands
// are not files (a pattern, a program).
func filter(short, long string, skip int) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, long)

		pos := o.pos
		if len(pos) < skip {
			pos = nil
		} else {
			pos = pos[skip:]
		}

		return opaque(m.input(c, pos))
	}
}

// grep is a filter; with -e or -f the first operand is a file.
func grep(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "efmABCdD", " regexp file max-count include exclude exclude-dir include-dir context after-context before-context color colour ")

	pos := o.pos
	if !o.has("e", "f", "regexp", "file") && len(pos) > 0 {
		pos = pos[1:]
	}

	if o.has("q", "quiet", "silent", "l", "L", "c", "count", "files-with-matches") {
		for _, p := range pos {
			m.Read(p, c.Span, c.Flags|effect.FlagQuiet, "grep")
		}

		return effect.Unknown(0)
	}

	v := m.input(c, pos)
	if o.has("v", "invert-match") && (v.Ref == everythingRef || v.Ref == AllProcesses) {
		// All but a few is still all.
		return v
	}

	v = opaque(v)
	if v.Ref == AllProcesses {
		v.Ref = ""
	}

	return v
}

// cat prints whole files.
func cat(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "", "")

	return m.input(c, o.pos)
}

// tac and friends keep the text of one line.
func sameLine(short string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, " lines bytes key output ")

		v := m.input(c, o.pos)
		if strings.Contains(strings.TrimRight(v.Text, "\n"), "\n") && len(v.Text) > 4096 {
			return opaque(v)
		}

		return v
	}
}
