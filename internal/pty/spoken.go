package pty

import "strings"

// maxSpoken bounds the lines of one language that are judged together.
const maxSpoken = 64 << 10

// spoken is a language that a program of this terminal reads, with the lines that
// it may have been given. It is not changed once made.
type spoken struct {
	language string
	text     string // all of them
	lines    string // those that are whole by themselves, so that none hides another
}

// with is spoken after one more line, nil if there is no room.
func (l *spoken) with(line string) *spoken {
	n := &spoken{l.language, l.text + line + "\n", l.lines}
	if balanced(line) {
		n.lines += line + "\n"
	}
	if len(n.text) > maxSpoken {
		return nil
	}
	return n
}

// speak notes a program's language.
func (st *state) speak(p program) {
	if p.kind != repl {
		return
	}
	for _, l := range st.spoken {
		if l.language == p.language {
			return
		}
	}
	st.spoken = append(st.spoken, &spoken{language: p.language})
}

// balanced reports whether a line opens nothing that it does not close.
func balanced(line string) bool {
	var open []byte
	var quote byte
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			open = append(open, c)
		case strings.IndexByte(")]}", c) >= 0:
			if len(open) == 0 || strings.IndexByte("([{", open[len(open)-1]) != strings.IndexByte(")]}", c) {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return quote == 0 && len(open) == 0
}
