package scan

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Parse reads a text. It never fails: what cannot be read is skipped and
// counted.
func Parse(src string, d Dialect) *tree.Tree {
	p := &parser{t: tree.New(src), src: src, d: d}
	p.next()

	var l tree.List

	for p.tok != tokEOF {
		if p.closes() {
			p.t.Fail(p.start)
			p.next()

			continue
		}

		p.statement(&l)
	}

	p.t.Root = p.t.Add(tree.Node{Kind: tree.Block, Flag: tree.FlagDeclare, End: uint32(len(src)), A: l.First})

	return p.t
}

func (p *parser) block() tree.ID {
	n := tree.Node{Kind: tree.Block, Start: uint32(p.start)}
	if p.d == Java {
		n.Flag = tree.FlagDeclare
	}

	nest := p.nest
	p.nest = 0

	p.next()

	var l tree.List

	for !p.is("}") && p.tok != tokEOF {
		if p.is(")") || p.is("]") {
			p.t.Fail(p.start)
			p.next()

			continue
		}

		p.statement(&l)
	}

	n.A, n.End = l.First, uint32(p.end)
	p.nest = nest

	if !p.accept("}") {
		p.t.Fail(p.start)
	}

	return p.t.Add(n)
}

// body parses a statement as a block.
func (p *parser) body() tree.ID {
	p.skipNewlines()

	if p.is("{") {
		return p.block()
	}

	n := tree.Node{Kind: tree.Block, Start: uint32(p.start)}

	var l tree.List

	p.statement(&l)
	n.A, n.End = l.First, uint32(p.start)

	return p.t.Add(n)
}

func (p *parser) statement(l *tree.List) {
	if p.tok == tokNewline || p.is(";") {
		p.next()

		return
	}

	if !p.enter() {
		p.next()

		return
	}
	defer func() { p.depth-- }()

	start, at := p.start, p.pos

	if p.tok == tokName && p.keyword(l) {
		return
	}

	if p.is("{") {
		l.Push(p.t, p.block())

		return
	}

	x := p.expr(0)
	l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: uint32(start), End: uint32(p.lastEnd()), A: x}))

	if p.pos == at && p.tok != tokEOF {
		p.t.Fail(p.start)
		p.next()
	}

	p.tail()
}

func (p *parser) tail() {
	if p.tok == tokNewline || p.tok == tokEOF || p.is("}") || p.accept(";") || p.newline {
		return
	}

	if p.d == Java && p.is(":") {
		p.next() // A label.

		return
	}

	p.t.Fail(p.start)
}

func (p *parser) test() tree.ID {
	if !p.is("(") {
		return p.expr(0)
	}

	first := p.list(")")
	if first != 0 && p.t.At(first).Next == 0 {
		return first
	}

	return p.t.Add(tree.Node{Kind: tree.Seq, Op: ',', Start: uint32(p.start), End: uint32(p.start), A: first})
}

func (p *parser) keyword(l *tree.List) bool {
	n := tree.Node{Start: uint32(p.start)}

	switch word := p.text(); word {
	case "if":
		l.Push(p.t, p.ifStatement())
	case "while":
		p.next()
		n.Kind, n.A = tree.While, p.test()
		n.B = p.body()
		n.End = uint32(p.start)
		l.Push(p.t, p.t.Add(n))
	case "repeat":
		if p.d != R {
			return false
		}

		p.next()
		n.Kind, n.B = tree.While, p.body()
		n.End = uint32(p.start)
		l.Push(p.t, p.t.Add(n))
	case "for":
		p.forStatement(l)
	case "break", "next", "continue":
		n.Kind, n.End = tree.Jump, uint32(p.end)
		p.next()

		if p.d == Java && p.tok == tokName {
			p.next()
		}

		l.Push(p.t, p.t.Add(n))
		p.tail()
	case "return":
		if p.d == R {
			n.Kind = tree.Return

			p.next()

			n.A = p.test()
			n.End = uint32(p.start)
			l.Push(p.t, p.t.Add(n))
			p.tail()

			return true
		}

		fallthrough
	case "throw", "yield":
		if p.d == R {
			return false
		}

		n.Kind = tree.Return
		if word == "throw" {
			n.Kind = tree.Raise
		}

		p.next()

		if !p.is(";") && !p.closes() {
			n.A = p.expr(0)
		}

		n.End = uint32(p.start)
		l.Push(p.t, p.t.Add(n))
		p.tail()
	default:
		return p.d == Java && p.javaStatement(l, word)
	}

	return true
}
