package javascript

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// function parses from "function" on.
func (p *parser) function(decorators tree.ID) tree.ID {
	start := p.start
	p.next()
	p.accept('*')

	f := tree.Node{Kind: tree.Func, Start: uint32(start), End: uint32(start), C: decorators}

	if p.tok == tokName {
		f = *p.t.At(p.named(tree.Name))
		f.Kind, f.C = tree.Func, decorators

		p.next()
	}

	if p.is('<') {
		p.skipTypeArguments()
	}

	f.A, f.B = p.signature()

	if f.B == 0 {
		p.accept(';') // An overload.
	}

	return p.t.Add(f)
}

// signature parses (parameters): type {body}.
func (p *parser) signature() (params, body tree.ID) {
	if !p.is('(') {
		p.t.Fail(p.start)

		return 0, 0
	}

	params = p.parameters()

	if p.accept(':') {
		p.skipType()
	}

	if p.is('{') {
		body = p.block()
	}

	return params, body
}

func (p *parser) parameters() tree.ID {
	p.next()

	var l tree.List

	for !p.is(')') && p.tok != tokEOF {
		if p.accept(',') {
			continue
		}

		for p.is('@') {
			p.next()
			p.suffix(p.primary(), true)
		}

		for p.tok == tokName && modifiers[p.text()] && identByte[p.peek()] {
			p.next()
		}

		at := p.pos
		start := p.start
		rest := p.isOp(opSpread)

		if rest {
			p.next()
		}

		var x tree.ID

		if p.enter() {
			x = p.primary()
			p.depth--
		} else {
			p.next()
		}

		if x != 0 {
			x = p.asParam(x)
		} else {
			x = p.t.Add(tree.Node{Kind: tree.Param, Start: uint32(start), End: uint32(start)})
		}

		if rest {
			p.t.At(x).Op = '*'
		}

		if p.is('?') {
			p.next()
		}

		if p.accept(':') {
			p.skipType()
		}

		if p.accept('=') {
			v := p.expr(bindAssign)
			p.t.At(x).A = v
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

func (p *parser) class() tree.ID {
	start := p.start
	p.next()

	c := tree.Node{Kind: tree.Class, Start: uint32(start), End: uint32(start)}

	if p.tok == tokName && !p.word("extends") && !p.word("implements") {
		c = *p.t.At(p.named(tree.Name))
		c.Kind = tree.Class

		p.next()
	}

	if p.is('<') {
		p.skipTypeArguments()
	}

	if p.acceptWord("extends") {
		if p.enter() {
			c.A = p.suffix(p.primary(), true)
			p.depth--
		}

		if p.is('<') {
			p.skipTypeArguments()
		}
	}

	if p.acceptWord("implements") {
		for !p.is('{') && p.tok != tokEOF {
			p.next()
		}
	}

	b := tree.Node{Kind: tree.Block, Start: uint32(p.start)}

	if !p.accept('{') {
		p.t.Fail(p.start)
	}

	var l tree.List

	for !p.is('}') && p.tok != tokEOF {
		if p.accept(';') || p.accept(',') {
			continue
		}

		at := p.pos

		if !p.enter() {
			p.next()

			continue
		}

		l.Push(p.t, p.property(true))
		p.depth--

		if p.pos == at {
			p.t.Fail(p.start)
			p.next()
		}
	}

	p.accept('}')
	b.A, b.End = l.First, uint32(p.start)
	c.B = p.t.Add(b)

	return p.t.Add(c)
}
