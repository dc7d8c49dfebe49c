package scan

import (
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

		// In R an else may not start a line, but inside brackets it does.
		saved := *p
		p.skipNewlines()

		if !p.word("else") {
			*p = saved

			return first
		}

		p.next()
		p.skipNewlines()

		if !p.word("if") || len(p.t.Nodes) >= tree.MaxNodes {
			e := p.body()
			p.t.At(last).C = e

			return first
		}
	}
}

func (p *parser) forStatement(l *tree.List) {
	outer := tree.Node{Kind: tree.Block, Flag: tree.FlagDeclare, Start: uint32(p.start)}
	p.next()

	var inner tree.List

	if p.d == R {
		n := tree.Node{Kind: tree.For, Start: outer.Start}
		p.accept("(")

		if p.tok == tokName {
			n.A = p.named(tree.Name)
			p.next()
		}

		p.acceptWord("in")

		n.B = p.expr(0)

		if p.is(")") {
			p.next()
		}

		n.C = p.body()
		n.End = uint32(p.start)
		l.Push(p.t, p.t.Add(n))

		return
	}

	if p.is("(") {
		p.next()
	}

	if name := p.declaration(&inner, true); name != 0 && p.accept(":") {
		n := tree.Node{Kind: tree.For, Start: outer.Start, A: name}
		n.B = p.expr(0)
		p.accept(")")
		n.C = p.body()
		n.End = uint32(p.start)
		inner.Push(p.t, p.t.Add(n))
	} else {
		if name == 0 && !p.is(";") {
			x := p.expr(0)
			inner.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(x).Start, End: uint32(p.start), A: x}))
		}

		n := tree.Node{Kind: tree.While, Start: outer.Start}
		p.accept(";")

		if !p.is(";") {
			n.A = p.expr(0)
		}

		p.accept(";")

		if !p.is(")") {
			n.C = p.expr(0)

			for p.accept(",") {
				p.expr(0)
			}
		}

		p.accept(")")
		n.B = p.body()
		n.End = uint32(p.start)
		inner.Push(p.t, p.t.Add(n))
	}

	outer.A, outer.End = inner.First, uint32(p.start)
	l.Push(p.t, p.t.Add(outer))
}

// javaWords are modifiers.
var javaWords = map[string]bool{
	"public": true, "private": true, "protected": true, "static": true, "final": true, "abstract": true, "native": true,
	"synchronized": true, "transient": true, "volatile": true, "strictfp": true, "default": true, "sealed": true,
}
