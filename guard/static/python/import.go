package python

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

func (p *parser) imports(l *tree.List) {
	for p.tok == tokName {
		start, end := p.start, p.end
		first := p.named(tree.Name)
		p.next()

		for p.is('.') {
			p.next()

			if p.tok == tokName {
				end = p.end
				p.next()
			}
		}

		n := tree.Node{Kind: tree.Import, Start: uint32(start), End: uint32(end)}
		if alt := p.t.At(first).Alt; alt != 0 {
			n.Alt = alt
		}

		if p.keyword("as") {
			p.next()

			a := tree.Node{Kind: tree.Alias, Start: uint32(start), End: uint32(end), Alt: n.Alt}
			a.A = p.named(tree.Name)
			n.A = p.t.Add(a)

			p.next()
		}

		l.Push(p.t, p.t.Add(n))

		if !p.is(',') {
			break
		}

		p.next()
	}

	p.tail()
}

func (p *parser) importFrom(l *tree.List) {
	p.next()

	n := tree.Node{Kind: tree.Import, Flag: tree.FlagFrom, Start: uint32(p.start), End: uint32(p.start)}

	for p.is('.') || p.tok == tokName && !p.keyword("import") {
		if p.tok == tokName {
			if x := p.named(tree.Name); p.t.At(x).Alt != 0 {
				n.Alt = p.t.At(x).Alt
			}
		}

		n.End = uint32(p.end)
		p.next()
	}

	if p.keyword("import") {
		p.next()
	} else {
		p.t.Fail(p.start)
	}

	paren := p.is('(')
	if paren {
		p.next()
	}

	var names tree.List

	for p.tok == tokName || p.is('*') {
		a := p.named(tree.Alias)
		p.next()

		if p.keyword("as") {
			p.next()

			x := p.named(tree.Name)
			p.t.At(a).A = x

			p.next()
		}

		names.Push(p.t, a)

		if !p.is(',') {
			break
		}

		p.next()
	}

	if paren {
		p.close(')')
	}

	n.A = names.First
	l.Push(p.t, p.t.Add(n))
	p.tail()
}
