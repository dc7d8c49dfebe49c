package python

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// function parses from "def" on.
func (p *parser) function(col int, decorators tree.ID) tree.ID {
	p.next()

	id := p.named(tree.Func)

	if p.tok == tokName {
		p.next()
	}

	p.typeParameters()

	var params, body tree.ID

	if p.is('(') {
		p.next()
		params = p.parameters(')', true)
		p.close(')')
	}

	var returns tree.ID

	if p.is(opArrow) {
		p.next()

		returns = p.expr(bindNone)
	}

	body = p.suite(col)

	if returns != 0 {
		// Evaluated when the function is defined, as a decorator is.
		p.t.At(returns).Next = decorators
		decorators = returns
	}

	f := p.t.At(id)
	f.A, f.B, f.C = params, body, decorators

	return id
}

// typeParameters skips [T: bound] after a name.
func (p *parser) typeParameters() {
	if p.is('[') {
		p.subscript()
	}
}

func (p *parser) class(col int, decorators tree.ID) tree.ID {
	p.next()

	id := p.named(tree.Class)

	if p.tok == tokName {
		p.next()
	}

	p.typeParameters()

	var bases tree.ID
	if p.is('(') {
		bases = p.arguments()
	}

	body := p.suite(col)
	c := p.t.At(id)
	c.A, c.B, c.C = bases, body, decorators

	return id
}

func (p *parser) decorated(l *tree.List) {
	col := p.indent()

	var d tree.List

	for p.is('@') {
		p.next()
		d.Push(p.t, p.expr(bindNone))

		if p.tok != tokNewline {
			p.tail()
		}

		p.blankLines()
	}

	if p.keyword("async") {
		p.next()
	}

	switch {
	case p.keyword("def"):
		l.Push(p.t, p.function(col, d.First))
	case p.keyword("class"):
		l.Push(p.t, p.class(col, d.First))
	default:
		p.t.Fail(p.start)

		for x := d.First; x != 0; {
			next := p.t.At(x).Next
			p.t.At(x).Next = 0
			l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(x).Start, End: p.t.At(x).End, A: x}))
			x = next
		}
	}
}

// matchStatement parses a match statement, or says that the word is a name
// here.
func (p *parser) matchStatement(l *tree.List, col int) bool {
	if c := p.peek(); c == '=' || c == '.' && !p.nextIsEllipsis() || c == ',' || c == ')' || c == ':' || c == ';' || c == 0 ||
		c == '\n' || c == '\r' || p.nextIsOperatorWord() {
		return false
	}

	saved, nodes := *p, len(p.t.Nodes)
	errors, first := p.t.Errors, p.t.FirstError
	n := tree.Node{Kind: tree.Match, Start: uint32(p.start)}

	p.next()
	n.A = p.list(bindNone)

	colon := p.is(':')
	if colon {
		p.next()
	}

	if !colon || p.tok != tokNewline {
		p.t.Nodes = p.t.Nodes[:nodes]
		p.t.Errors, p.t.FirstError = errors, first
		*p = saved

		return false
	}

	var cases tree.List

	for p.tok != tokEOF {
		if p.tok == tokNewline {
			p.next()

			continue
		}

		in := p.indent()
		if in <= col {
			break
		}

		if !p.keyword("case") {
			p.line(&cases)

			continue
		}

		c := tree.Node{Kind: tree.Case, Start: uint32(p.start)}
		p.next()
		c.A = p.pattern()

		if p.keyword("if") {
			p.next()

			c.B = p.expr(bindNone)
		}

		c.C = p.suite(in)
		c.End = uint32(p.start)
		cases.Push(p.t, p.t.Add(c))
	}

	n.B, n.End = cases.First, uint32(p.start)
	l.Push(p.t, p.t.Add(n))

	return true
}

// pattern parses what stands after "case".
func (p *parser) pattern() tree.ID {
	start := p.start

	var l tree.List

	for !p.endsList() {
		x := p.element(bindCond)
		if p.keyword("as") {
			x = p.as(x)
		}

		l.Push(p.t, x)

		if !p.is(',') {
			break
		}

		p.next()
	}

	return p.t.Add(tree.Node{Kind: tree.Seq, Op: '(', Start: uint32(start), End: uint32(p.start), A: l.First})
}
