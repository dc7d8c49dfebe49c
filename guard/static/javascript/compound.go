package javascript

import (
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

func (p *parser) ifStatement() tree.ID {
	var first, last tree.ID

	for {
		n := tree.Node{Kind: tree.If, Start: uint32(p.start)}
		p.next()
		n.A = p.test()
		n.B = p.body()
		n.End = uint32(p.start)
		id := p.t.Add(n)

		if first == 0 {
			first = id
		} else {
			p.t.At(last).C = id
		}

		last = id

		if !p.word("else") {
			return first
		}

		p.next()

		if !p.word("if") || len(p.t.Nodes) >= tree.MaxNodes {
			e := p.body()
			p.t.At(last).C = e

			return first
		}
	}
}

// forStatement parses all kinds of for. What it declares is in a block of its
// own.
func (p *parser) forStatement(l *tree.List) {
	outer := tree.Node{Kind: tree.Block, Start: uint32(p.start), Flag: tree.FlagDeclare}
	p.next()
	p.acceptWord("await")

	if !p.accept('(') {
		p.t.Fail(p.start)
	}

	var inner tree.List

	declares := p.declares
	p.noIn = true

	var target tree.ID

	if p.word("var") || p.word("let") || p.word("const") {
		if c := p.peek(); identByte[c] || c == '{' || c == '[' {
			hoist := p.word("var")
			p.next()

			var decl tree.List

			p.declarations(&decl, hoist)
			inner = decl

			// The first one's target, for "of" and "in".
			target = p.t.At(p.t.At(decl.First).A).A
		}
	}

	if inner.First == 0 && !p.is(';') {
		target = p.expression()
		inner.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(target).Start, End: uint32(p.start), A: target}))
	}

	p.noIn = false

	if p.word("of") || p.word("in") {
		n := tree.Node{Kind: tree.For, Start: outer.Start, A: target}
		if p.word("in") {
			n.Op = 'i'
		}

		p.next()
		n.B = p.expression()
		p.close(')')
		n.C = p.body()
		n.End = uint32(p.start)
		inner.Push(p.t, p.t.Add(n))
	} else {
		p.accept(';')

		n := tree.Node{Kind: tree.While, Start: outer.Start}
		if !p.is(';') {
			n.A = p.expression()
		}

		p.accept(';')

		if !p.is(')') {
			n.C = p.expression()
		}

		p.close(')')
		n.B = p.body()
		n.End = uint32(p.start)
		inner.Push(p.t, p.t.Add(n))
	}

	p.declares = declares
	outer.A, outer.End = inner.First, uint32(p.start)
	l.Push(p.t, p.t.Add(outer))
}

func (p *parser) switchStatement() tree.ID {
	n := tree.Node{Kind: tree.Match, Start: uint32(p.start)}
	p.next()
	n.A = p.test()

	if !p.accept('{') {
		p.t.Fail(p.start)
	}

	var l tree.List

	for !p.is('}') && p.tok != tokEOF {
		c := tree.Node{Kind: tree.Case, Start: uint32(p.start)}

		switch {
		case p.acceptWord("case"):
			p.inCond++ // A colon ends it.
			c.B = p.expression()
			p.inCond--
		case p.acceptWord("default"):
		default:
			p.t.Fail(p.start)
			p.next()

			continue
		}

		if !p.accept(':') {
			p.t.Fail(p.start)
		}

		var body tree.List
		for !p.is('}') && p.tok != tokEOF && !p.word("case") && !(p.word("default") && p.peek() == ':') {
			p.statement(&body)
		}

		c.C = p.t.Add(tree.Node{Kind: tree.Block, Start: c.Start, End: uint32(p.start), A: body.First})
		c.End = uint32(p.start)
		l.Push(p.t, p.t.Add(c))
	}

	p.accept('}')
	n.B, n.End = l.First, uint32(p.start)

	return p.t.Add(n)
}

func (p *parser) tryStatement() tree.ID {
	n := tree.Node{Kind: tree.Try, Start: uint32(p.start)}
	p.next()
	n.A = p.block()

	var l tree.List

	if p.acceptWord("catch") {
		if p.is('(') {
			p.next()

			var what tree.ID

			if !p.enter() {
				p.next()
			} else {
				what = p.primary()
				p.depth--
			}

			if p.accept(':') {
				p.skipType()
			}

			p.close(')')

			if what != 0 {
				// The name is bound to what was thrown.
				at := p.t.At(what).Start
				v := p.t.Add(tree.Node{Kind: tree.Name, Start: at, End: at, Alt: p.t.Alt(flow.Thrown())})
				a := p.t.Add(tree.Node{Kind: tree.Assign, Flag: tree.FlagDeclare, Start: at, End: at, A: what, B: v})
				l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: at, End: at, A: a}))
			}
		}

		l.Push(p.t, p.block())
	}

	if p.acceptWord("finally") {
		l.Push(p.t, p.block())
	}

	n.B, n.End = l.First, uint32(p.start)

	return p.t.Add(n)
}
