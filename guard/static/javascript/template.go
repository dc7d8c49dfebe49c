package javascript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// template parses a template literal.
func (p *parser) template() tree.ID {
	n := tree.Node{Kind: tree.Format, Start: uint32(p.start)}

	var l tree.List

	i := p.start + 1
	from := i
	text := func(to int) {
		if to > from {
			l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Str, Start: uint32(from), End: uint32(to)}))
		}
	}

loop:
	for {
		if i >= len(p.src) {
			text(len(p.src))
			p.t.Fail(p.start)

			i = len(p.src)

			break
		}

		switch {
		case p.src[i] == '\\':
			i += 2
		case p.src[i] == '`':
			text(i)

			i++

			break loop
		case p.src[i] == '$' && p.byteAt(i+1) == '{':
			text(i)

			part := tree.Node{Kind: tree.Interp, Start: uint32(i)}
			p.pos = i + 2

			if !p.enter() {
				i += 2

				break
			}

			saved, cond := p.noIn, p.inCond
			p.noIn, p.inCond = false, 0

			p.next()
			part.A = p.expression()

			// To the brace, whatever stands before it.
			for !p.is('}') && p.tok != tokEOF {
				p.t.Fail(p.start)
				p.next()
			}

			p.noIn, p.inCond = saved, cond
			p.depth--

			i = max(p.end, i+2)
			part.End = uint32(i)
			l.Push(p.t, p.t.Add(part))

			from = i
		default:
			i++
		}
	}

	i = min(i, len(p.src))
	n.A, n.End = l.First, uint32(i)
	p.pos = i
	p.next()

	return p.t.Add(n)
}

// markup parses JSX for the expressions in it, or skips a type in angle
// brackets.
func (p *parser) markup() tree.ID {
	start := p.start

	if !p.enter() {
		p.next()

		return 0
	}
	defer func() { p.depth-- }()

	// <T>x and <T,>(x) => y are TypeScript.
	if end := angleEnd(p.src, p.start); end > 0 && p.byteAt(end) == '(' || end > 0 && strings.IndexByte(p.src[start:end], ',') > 0 {
		p.pos = end
		p.next()

		return p.unary()
	}

	var l tree.List

	p.tag(&l)

	return p.t.Add(tree.Node{Kind: tree.Seq, Op: '[', Start: uint32(start), End: uint32(p.lastEnd()), A: l.First})
}

// tag parses an element from "<" on.
func (p *parser) tag(l *tree.List) {
	p.next()

	for !p.is('>') && p.tok != tokEOF {
		switch {
		case p.is('{'):
			p.next()
			l.Push(p.t, p.expr(bindAssign))
			p.close('}')
		case p.is('/'):
			p.next()

			if p.is('>') {
				p.next()

				return
			}
		case p.is(';'), p.closes():
			// No markup after all.
			p.t.Fail(p.start)

			return
		default:
			p.next()
		}
	}

	// Children: text, expressions and elements up to the closing tag.
	i := p.end

	for i < len(p.src) {
		switch p.src[i] {
		case '{':
			p.pos = i + 1
			p.next()

			if !p.is('}') {
				l.Push(p.t, p.expr(bindAssign))
			}

			for !p.is('}') && p.tok != tokEOF {
				p.next()
			}

			i = p.end
		case '<':
			p.pos = i

			if p.byteAt(i+1) == '/' {
				end := strings.IndexByte(p.src[i:], '>')
				if end < 0 {
					p.pos = len(p.src)
				} else {
					p.pos = i + end + 1
				}

				p.next()

				return
			}

			p.next()

			if !p.enter() {
				p.next()

				return
			}

			p.tag(l)

			p.depth--
			i = max(p.start, i+1)
		default:
			i++
		}
	}

	p.pos = len(p.src)
	p.next()
}
