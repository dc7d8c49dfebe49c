package python

import (
	"strings"

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
	i := p.pos
	for i < len(p.src) && (p.src[i] == ' ' || p.src[i] == '\t' || p.src[i] == '\n' || p.src[i] == '\r') {
		i++
	}

	if !strings.HasPrefix(p.src[i:], "%%") {
		return 0
	}

	return p.t.Add(tree.Node{Kind: tree.Magic, Start: uint32(i), End: uint32(len(p.src))})
}
