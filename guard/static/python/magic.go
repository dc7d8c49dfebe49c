package python

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// magic takes a line in IPython's own syntax (!cmd, %magic, ;f text, ,f a b,
// /f a) that starts at the current token.
func (p *parser) magic(l *tree.List) bool {
	if !p.notebook || !p.atLineStart() {
		return false
	}

	// Any of these is an error in Python itself, so nothing is lost.
	end := magicEnd(p.src, p.start)
	l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Magic, Start: uint32(p.start), End: uint32(end)}))
	p.pos = end
	p.nest = 0
	p.next()

	return true
}

// atLineStart says whether only blanks stand before the token.
func (p *parser) atLineStart() bool {
	i := p.start
	for i > 0 && (p.src[i-1] == ' ' || p.src[i-1] == '\t') {
		i--
	}

	return i == 0 || p.src[i-1] == '\n' || p.src[i-1] == '\r' || i == 3 && strings.HasPrefix(p.src, "\ufeff")
}

// magicEnd is the end of the line, continued by backslashes, at i.
func magicEnd(src string, i int) int {
	for i < len(src) {
		switch src[i] {
		case '\n', '\r':
			return i
		case '\\':
			if j := lineEnd(src, i+1); j > 0 {
				i = j

				continue
			}
		}

		i++
	}

	return len(src)
}

// magicValue takes the "!cmd" or "%magic" of "x = !cmd", where at is the end
// of the "=".
func (p *parser) magicValue(at int) tree.ID {
	if !p.notebook || !p.is('!') && !p.is('%') || p.start < at {
		return 0
	}

	end := magicEnd(p.src, p.start)
	x := p.t.Add(tree.Node{Kind: tree.Magic, Start: uint32(p.start), End: uint32(end)})
	p.pos = end
	p.next()

	return x
}

// cellMagic takes a text that is a %% cell of another language, and steps over
// the line of one whose body is Python. It returns 0 for the latter.
func (p *parser) cellMagic() tree.ID {
	i := len(p.src) - len(strings.TrimLeftFunc(p.src[p.pos:], isCellSpace))

	if !strings.HasPrefix(p.src[i:], "%%") {
		return 0
	}

	return p.t.Add(tree.Node{Kind: tree.Magic, Start: uint32(i), End: uint32(len(p.src))})
}

// isCellSpace says what may stand before a cell's first line.
func isCellSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// cutLine cuts a cell at the end of its first line, which any of the line breaks
// that Python's splitlines knows may be.
func cutLine(cell string) (line, rest string) {
	i := strings.IndexFunc(cell, func(r rune) bool {
		return r == '\n' || r == '\r' || r == '\v' || r == '\f' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
	})
	if i < 0 {
		return cell, ""
	}

	_, size := utf8.DecodeRuneInString(cell[i:])
	if strings.HasPrefix(cell[i:], "\r\n") {
		size = 2
	}

	return cell[:i], cell[i+size:]
}

// autoMagic takes a text of one line that IPython runs as a magic though nothing
// marks it: it starts with a magic's name that is no variable. Python's reading
// of the line is judged as well.
func (p *parser) autoMagic(l *tree.List) {
	line := strings.TrimSpace(p.src[p.pos:])
	if strings.ContainsAny(line, "\n\r") {
		return
	}

	// What assigns or makes a tuple is Python.
	name, rest := cutName(line)
	if !autoMagics[name] || rest == "" || rest[0] == '=' || rest[0] == ',' {
		return
	}

	start := strings.Index(p.src, line)
	l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Magic, Start: uint32(start), End: uint32(start + len(line))}))
}

// cutName cuts a line behind the name it starts with: where no name goes on.
func cutName(line string) (name, rest string) {
	end := strings.IndexFunc(line, func(r rune) bool { return r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end < 0 {
		return line, ""
	}

	return line[:end], strings.TrimSpace(line[end:])
}

// autoMagics are the magics that run something.
var autoMagics = map[string]bool{
	"system": true, "sx": true, "sc": true, "rm": true, "rmdir": true, "mv": true, "cp": true, "cat": true, "ls": true, "ll": true,
	"lx": true, "lf": true, "lk": true, "ldir": true, "man": true, "less": true, "more": true, "ln": true, "mkdir": true,
	"pip": true, "conda": true, "mamba": true, "uv": true, "run": true, "load": true, "alias": true, "time": true,
	"timeit": true, "prun": true, "debug": true, "env": true, "set_env": true,
}

// prompts are what IPython takes off the lines of a pasted session.
var (
	firstPrompt = regexp.MustCompile(`^\s*(?:>>>|In \[\d+\]:)(?: |$)`)
	linePrompt  = regexp.MustCompile(`(?m)^[ \t]*(?:>>>|\.\.\.+:?|In \[\d+\]:)(?: |$)`)
)

// withoutPrompts blanks the prompts of a pasted session, so that positions stay.
func withoutPrompts(text string) string {
	if !strings.Contains(text, ">>>") && !strings.Contains(text, "In [") || !firstPrompt.MatchString(text) {
		return text
	}

	return linePrompt.ReplaceAllStringFunc(text, func(prompt string) string { return strings.Repeat(" ", len(prompt)) })
}
