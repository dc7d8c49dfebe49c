package python

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

func (p *parser) yield() tree.ID {
	n := tree.Node{Kind: tree.Unary, Op: 'y', Start: uint32(p.start), End: uint32(p.end)}
	p.next()

	if p.keyword("from") {
		p.next()
	}

	if !p.endsList() {
		n.A = p.list(bindNone)
		n.End = p.t.At(n.A).End
	}

	return p.t.Add(n)
}

func (p *parser) lambda() tree.ID {
	n := tree.Node{Kind: tree.Func, Flag: tree.FlagExpr, Start: uint32(p.start), End: uint32(p.start)}
	p.next()
	n.A = p.parameters(':', false)

	if p.is(':') {
		p.next()
		n.B = p.expr(bindCond - 1)
	}

	return p.t.Add(n)
}

// parameters parses up to the token end, which it leaves.
func (p *parser) parameters(end uint16, annotated bool) tree.ID {
	var l tree.List

	for !p.is(end) && p.tok != tokEOF && (p.tok != tokNewline || p.nest > 0) {
		op := byte(0)

		switch {
		case p.is('*'):
			op = '*'
			p.next()
		case p.is(opPower):
			op = 'd'
			p.next()
		}

		if p.tok != tokName {
			if p.closes() {
				break
			}

			if !p.is(',') && !p.is('/') {
				p.t.Fail(p.start)
			}

			p.next()

			continue
		}

		id := p.named(tree.Param)
		p.t.At(id).Op = op
		p.next()

		if annotated && p.is(':') {
			p.next()

			ann := p.element(bindNone)
			// Annotations are evaluated, so they can do things.
			p.t.At(id).C = ann
		}

		if p.is('=') {
			p.next()

			def := p.expr(bindNone)
			p.t.At(id).A = def
		}

		l.Push(p.t, id)

		if p.is(',') {
			p.next()
		}
	}

	return l.First
}

// close expects a closing bracket and drops what stands before it.
func (p *parser) close(end uint16) {
	for !p.is(end) && p.tok != tokEOF {
		if p.closes() {
			// The wrong one: what was open is taken as closed.
			p.t.Fail(p.start)
			p.next()

			return
		}

		p.t.Fail(p.start)
		p.next()
	}

	if p.is(end) {
		p.next()
	} else {
		p.t.Fail(p.start)
	}
}

// group parses what stands in round, square or curly brackets.
func (p *parser) group() tree.ID {
	open, start := byte(p.op), p.start
	end := uint16(open) + 2
	if open == '(' {
		end = ')'
	}

	p.next()

	var (
		l     tree.List
		comma bool
		dict  bool
		comp  tree.ID
	)

	for !p.is(end) && p.tok != tokEOF {
		if p.is(',') {
			comma = true

			p.next()

			continue
		}

		at := p.pos
		x := p.element(bindNone)

		if open == '{' {
			if p.t.At(x).Kind == tree.Star {
				dict = dict || p.t.At(x).Flag&tree.FlagDouble != 0
			} else if p.is(':') {
				p.next()

				dict = true
				v := p.expr(bindNone)
				x = p.t.Add(tree.Node{Kind: tree.Pair, Start: p.t.At(x).Start, End: p.t.At(v).End, A: x, B: v})
			}
		}

		if p.keyword("as") {
			// Of a with statement, or in a pattern.
			x = p.as(x)
		}

		if p.keyword("for") || p.keyword("async") {
			comp = p.comprehension(x, open)
			l.Push(p.t, comp)
		} else {
			l.Push(p.t, x)
		}

		if p.is(',') || p.is(end) {
			continue
		}

		if p.closes() {
			break
		}

		p.t.Fail(p.start)

		if p.pos == at {
			p.next()
		}
	}

	p.close(end)

	n := tree.Node{Kind: tree.Seq, Op: open, Start: uint32(start), End: uint32(p.lastEnd()), A: l.First}
	one := l.First != 0 && l.First == l.Last

	switch {
	case one && comp != 0:
		return comp
	case open == '(' && one && !comma && p.t.At(l.First).Kind != tree.Star:
		return l.First
	case open == '{' && (dict || l.First == 0):
		n.Kind = tree.Dict
	}

	return p.t.Add(n)
}

// as parses "as target" after x.
func (p *parser) as(x tree.ID) tree.ID {
	n := tree.Node{Kind: tree.As, Start: uint32(p.start), A: x}
	p.next()
	n.B = p.expr(bindTarget)
	n.End = uint32(p.lastEnd())

	return p.t.Add(n)
}

// comprehension parses the clauses after the element x.
func (p *parser) comprehension(x tree.ID, open byte) tree.ID {
	n := tree.Node{Kind: tree.Comp, Op: open, Start: p.t.At(x).Start, A: x}

	var l tree.List

	for {
		switch {
		case p.keyword("async"):
			p.next()
		case p.keyword("for"):
			f := tree.Node{Kind: tree.CompFor, Start: uint32(p.start)}
			p.next()
			f.A = p.list(bindTarget)

			if p.keyword("in") {
				p.next()
			}

			f.B = p.expr(bindCond)
			l.Push(p.t, p.t.Add(f))
		case p.keyword("if"):
			f := tree.Node{Kind: tree.CompIf, Start: uint32(p.start)}
			p.next()
			// No conditional without brackets, but a walrus may stand here.
			f.A = p.expr(bindCond)

			if p.is(opWalrus) {
				p.next()

				v := p.expr(bindCond)
				f.A = p.t.Add(tree.Node{Kind: tree.Assign, Start: f.Start, End: uint32(p.start), A: f.A, B: v})
			}

			l.Push(p.t, p.t.Add(f))
		default:
			n.B = l.First
			n.End = uint32(p.lastEnd())

			return p.t.Add(n)
		}
	}
}

// arguments parses a call's arguments from its bracket on.
func (p *parser) arguments() tree.ID {
	p.next()

	var l tree.List

	for !p.is(')') && p.tok != tokEOF {
		if p.is(',') {
			p.next()

			continue
		}

		at := p.pos
		x := p.element(bindNone)

		switch {
		case p.is('='):
			p.next()

			v := p.expr(bindNone)
			k := tree.Node{Kind: tree.Kw, Start: p.t.At(x).Start, End: p.t.At(x).End, A: v, Alt: p.t.At(x).Alt}
			x = p.t.Add(k)
		case p.keyword("for") || p.keyword("async"):
			x = p.comprehension(x, '(')
		}

		if p.keyword("as") {
			x = p.as(x) // In a pattern.
		}

		l.Push(p.t, x)

		if p.is(',') || p.is(')') {
			continue
		}

		if p.closes() {
			break
		}

		p.t.Fail(p.start)

		if p.pos == at {
			p.next()
		}
	}

	p.close(')')

	return l.First
}

// subscript parses what stands in square brackets after an expression.
func (p *parser) subscript() tree.ID {
	start := p.start
	p.next()

	var (
		l     tree.List
		comma bool
	)

	for !p.is(']') && p.tok != tokEOF {
		if p.is(',') {
			comma = true

			p.next()

			continue
		}

		at := p.pos
		l.Push(p.t, p.slice())

		if p.is(',') || p.is(']') {
			continue
		}

		if p.closes() {
			break
		}

		p.t.Fail(p.start)

		if p.pos == at {
			p.next()
		}
	}

	p.close(']')

	if l.First != 0 && l.First == l.Last && !comma {
		return l.First
	}

	return p.t.Add(tree.Node{Kind: tree.Seq, Op: '(', Start: uint32(start), End: uint32(p.start), A: l.First})
}

func (p *parser) slice() tree.ID {
	n := tree.Node{Kind: tree.Slice, Start: uint32(p.start)}

	if !p.is(':') {
		x := p.element(bindNone)
		if !p.is(':') {
			return x
		}

		n.A = x
	}

	p.next()

	if !p.is(':') && !p.is(',') && !p.closes() {
		n.B = p.expr(bindNone)
	}

	if p.is(':') {
		p.next()

		if !p.is(',') && !p.closes() {
			n.C = p.expr(bindNone)
		}
	}

	n.End = uint32(p.start)

	return p.t.Add(n)
}
