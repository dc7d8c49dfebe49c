package python

import (
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// follow parses a block that the word opens, if it stands at the column.
func (p *parser) follow(word string, col int) tree.ID {
	p.blankLines()

	if !p.keyword(word) || p.indent() != col {
		return 0
	}

	p.next()

	return p.suite(col)
}

func (p *parser) blankLines() {
	for p.tok == tokNewline {
		p.next()
	}
}

func (p *parser) ifStatement(col int) tree.ID {
	var (
		first tree.ID
		last  tree.ID
	)

	for {
		n := tree.Node{Kind: tree.If, Start: uint32(p.start)}
		p.next()
		n.A = p.expr(bindNone)
		n.B = p.suite(col)
		n.End = uint32(p.start)
		id := p.t.Add(n)

		if first == 0 {
			first = id
		} else {
			p.t.At(last).C = id
		}

		last = id

		p.blankLines()

		if !p.keyword("elif") || p.indent() != col {
			break
		}
	}

	if c := p.follow("else", col); c != 0 {
		p.t.At(last).C = c
	}

	return first
}

func (p *parser) forStatement(col int) tree.ID {
	n := tree.Node{Kind: tree.For, Start: uint32(p.start)}
	p.next()
	n.A = p.list(bindTarget)

	if p.keyword("in") {
		p.next()
	}

	n.B = p.list(bindNone)
	n.C = p.suite(col)

	if c := p.follow("else", col); c != 0 {
		// Runs after the loop: it is part of the body for our purpose.
		p.t.At(c).Next = p.t.At(n.C).A
		p.t.At(n.C).A = c
	}

	n.End = uint32(p.start)

	return p.t.Add(n)
}

func (p *parser) tryStatement(col int) tree.ID {
	n := tree.Node{Kind: tree.Try, Start: uint32(p.start)}
	p.next()
	n.A = p.suite(col)

	var l tree.List

	for {
		p.blankLines()

		if p.indent() != col {
			break
		}

		switch {
		case p.keyword("except"):
			p.next()

			if p.is('*') {
				p.next()
			}

			if !p.is(':') {
				x := p.list(bindNone)
				if p.keyword("as") {
					as := p.as(x)
					l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(x).Start, End: uint32(p.start), A: x}))

					// The name is bound to what was raised.
					a := *p.t.At(as)
					what := p.t.Add(tree.Node{Kind: tree.Name, Start: a.Start, End: a.Start, Alt: p.t.Alt(flow.Thrown())})
					x = p.t.Add(tree.Node{Kind: tree.Assign, Start: a.Start, End: a.End, A: a.B, B: what})
				}

				l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(x).Start, End: uint32(p.start), A: x}))
			}
		case p.keyword("else"), p.keyword("finally"):
			p.next()
		default:
			n.B, n.End = l.First, uint32(p.start)

			return p.t.Add(n)
		}

		l.Push(p.t, p.suite(col))
	}

	n.B, n.End = l.First, uint32(p.start)

	return p.t.Add(n)
}

func (p *parser) withStatement(col int) tree.ID {
	n := tree.Node{Kind: tree.With, Start: uint32(p.start)}
	p.next()

	var l tree.List

	for !p.is(':') && p.tok != tokNewline && p.tok != tokEOF {
		x := p.expr(bindNone)
		if p.keyword("as") {
			x = p.as(x)
		}

		l.Push(p.t, x)

		if !p.is(',') {
			break
		}

		p.next()
	}

	n.A = l.First
	n.B = p.suite(col)
	n.End = uint32(p.start)

	return p.t.Add(n)
}
