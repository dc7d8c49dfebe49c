package scan

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

func (p *parser) primary() tree.ID {
	switch p.tok {
	case tokName:
		return p.name1()
	case tokNumber:
		n := tree.Node{Kind: tree.Num, Start: uint32(p.start), End: uint32(p.end)}
		p.next()

		return p.t.Add(n)
	case tokString:
		n := tree.Node{Kind: tree.Str, Start: uint32(p.inStart), End: uint32(max(p.inEnd, p.inStart))}
		if p.raw {
			n.Flag = tree.FlagRaw
		}

		p.next()

		return p.t.Add(n)
	case tokOp:
		switch p.op {
		case "(":
			return p.parens()
		case "{":
			if p.d == R {
				return p.block()
			}

			n := tree.Node{Kind: tree.Seq, Op: '[', Start: uint32(p.start)}
			n.A = p.list("}")
			n.End = uint32(p.start)

			return p.t.Add(n)
		case `\`:
			if p.d == R {
				return p.function()
			}
		case "@":
			// An annotation.
			p.next()
			p.suffix(p.primary())

			return p.expr(55)
		}
	}

	return p.bad()
}

func (p *parser) name1() tree.ID {
	if p.d == R {
		switch p.text() {
		case "function":
			return p.function()
		case "if", "for", "while", "repeat":
			var l tree.List

			p.statement(&l)

			return p.t.Add(tree.Node{Kind: tree.Block, Start: uint32(p.start), End: uint32(p.start), A: l.First})
		}
	} else {
		switch p.text() {
		case "new":
			return p.newExpr()
		case "switch":
			var l tree.List

			p.statement(&l)

			return p.t.Add(tree.Node{Kind: tree.Block, Start: uint32(p.start), End: uint32(p.start), A: l.First})
		}
	}

	x := p.named(tree.Name)
	start := p.start
	p.next()

	if p.d == Java && p.is("->") {
		p.t.At(x).Kind = tree.Param

		return p.lambda(x, start)
	}

	return x
}

// lambda parses Java's from "->" on.
func (p *parser) lambda(params tree.ID, start int) tree.ID {
	p.next()

	n := tree.Node{Kind: tree.Func, Start: uint32(start), End: uint32(start), A: params}

	if p.is("{") {
		n.B = p.block()
	} else {
		n.Flag = tree.FlagExpr
		n.B = p.expr(2)
	}

	return p.t.Add(n)
}

// function parses R's function(x) body.
func (p *parser) function() tree.ID {
	n := tree.Node{Kind: tree.Func, Start: uint32(p.start), End: uint32(p.start)}
	p.next()

	if p.is("(") {
		p.next()

		var l tree.List

		for !p.is(")") && p.tok != tokEOF {
			if p.accept(",") {
				continue
			}

			if p.tok != tokName {
				p.next()

				continue
			}

			x := p.named(tree.Param)
			if p.text() == "..." {
				p.t.At(x).Op = '*'
			}

			p.next()

			if p.accept("=") {
				v := p.expr(4)
				p.t.At(x).A = v
			}

			l.Push(p.t, x)
		}

		p.accept(")")

		n.A = l.First
	}

	p.skipNewlines()
	nest := p.nest
	p.nest = 0

	if p.is("{") {
		n.B = p.block()
		p.returnsLast(n.B)
	} else {
		n.Flag = tree.FlagExpr
		n.B = p.expr(2)
	}

	p.nest = nest

	return p.t.Add(n)
}

// returnsLast makes the last expression of a body its result.
func (p *parser) returnsLast(body tree.ID) {
	for x := p.t.At(body).A; x != 0; x = p.t.At(x).Next {
		if n := p.t.At(x); n.Next == 0 && n.Kind == tree.Expr {
			n.Kind = tree.Return
		}
	}
}

func (p *parser) newExpr() tree.ID {
	n := tree.Node{Kind: tree.Call, Flag: tree.FlagNew, Start: uint32(p.start)}
	p.next()

	callee := p.named(tree.Name)
	p.next()

	for p.is(".") {
		p.next()

		if p.tok == tokName {
			a := p.named(tree.Attr)
			p.t.At(a).A = callee
			callee = a

			p.next()
		}
	}

	p.angles()

	n.A = callee

	switch {
	case p.is("("):
		n.B = p.list(")")

		if p.is("{") {
			// An anonymous class, and an object of it.
			c := tree.Node{Kind: tree.Class, Start: n.Start, End: n.Start, A: callee}
			c.B = p.members("")
			n.A = p.t.Add(c)
			n.End = uint32(p.start)

			return p.t.Add(n)
		}
	case p.is("["):
		// new byte[n], new String[] {...}.
		var size tree.ID

		for p.is("[") {
			p.next()

			if !p.is("]") {
				size = p.expr(0)
			}

			p.accept("]")
		}

		if p.is("{") {
			return p.primary()
		}

		n.B = size
		p.t.At(callee).Alt = p.t.Alt("new[]")
	}

	n.End = uint32(p.start)

	return p.t.Add(n)
}

// angles steps over type arguments.
func (p *parser) angles() bool {
	if !p.is("<") {
		return false
	}

	depth := 0

	for j := p.start; j < len(p.src) && j < p.start+300; j++ {
		c := p.src[j]

		switch {
		case c == '<':
			depth++
		case c == '>':
			depth--
			if depth == 0 {
				p.pos = j + 1
				p.next()

				return true
			}
		case p.identByte(c), strings.IndexByte(" .,?&[]@\n", c) >= 0:
		default:
			return false
		}
	}

	return false
}

// list parses expressions up to a closing bracket.
func (p *parser) list(end string) tree.ID {
	if end == "}" {
		p.nest++ // Curly brackets do not count by themselves.
	}

	p.next()

	var l tree.List

	for !p.is(end) && p.tok != tokEOF {
		if p.is(",") || p.tok == tokNewline {
			p.next()

			continue
		}

		at := p.pos
		x := p.argument()
		l.Push(p.t, x)

		if p.is(",") || p.is(end) {
			continue
		}

		if p.closes() || p.is(";") {
			break
		}

		if p.tok != tokNewline {
			p.t.Fail(p.start)
		}

		if p.pos == at {
			p.next()
		}
	}

	if end == "}" && p.nest > 0 {
		p.nest--
	}

	if !p.accept(end) {
		p.t.Fail(p.start)

		if p.closes() {
			p.next()
		}
	}

	return l.First
}

func (p *parser) argument() tree.ID {
	if p.d == R && (p.tok == tokName || p.tok == tokString) {
		// name = value.
		i := p.pos
		for p.at(i) == ' ' || p.at(i) == '\t' {
			i++
		}

		if p.at(i) == '=' && p.at(i+1) != '=' {
			n := tree.Node{Kind: tree.Kw, Start: uint32(p.start), End: uint32(p.end)}
			if p.tok == tokString {
				n.Start, n.End = uint32(p.inStart), uint32(p.inEnd)
			}

			p.next()
			p.next()

			if !p.is(",") && !p.closes() {
				n.A = p.expr(4)
			}

			return p.t.Add(n)
		}
	}

	return p.expr(0)
}

// parens parses a group, a cast, or a lambda's parameters.
func (p *parser) parens() tree.ID {
	start := p.start

	if p.d == Java {
		if end := p.castEnd(); end > 0 {
			p.pos = end

			if p.nest > 0 {
				p.nest--
			}

			p.next()

			return p.expr(55)
		}
	}

	first := p.list(")")

	if p.d == Java && p.is("->") {
		var l tree.List

		for x := first; x != 0; {
			next := p.t.At(x).Next
			p.t.At(x).Next = 0

			if p.t.At(x).Kind == tree.Name {
				p.t.At(x).Kind = tree.Param
				l.Push(p.t, x)
			}

			x = next
		}

		return p.lambda(l.First, start)
	}

	if first != 0 && p.t.At(first).Next == 0 {
		return first
	}

	return p.t.Add(tree.Node{Kind: tree.Seq, Op: ',', Start: uint32(start), End: uint32(p.start), A: first})
}

// castEnd is the offset after "(Type)" if the current bracket opens one: only
// a type stands in it, and an operand follows.
func (p *parser) castEnd() int {
	i := p.start + 1
	from := i

	for i < len(p.src) && i < from+80 && (p.identByte(p.src[i]) || strings.IndexByte(".<>[], ?&", p.src[i]) >= 0) {
		i++
	}

	if p.at(i) != ')' || i == from || !p.identByte(p.src[from]) || '0' <= p.src[from] && p.src[from] <= '9' {
		return 0
	}

	j := i + 1
	for p.at(j) == ' ' {
		j++
	}

	c := p.at(j)
	if p.identByte(c) && !strings.HasPrefix(p.src[j:], "instanceof") || c == '"' || c == '\'' || c == '(' || c == '!' {
		// (a) (b) is a cast for lack of calls without a name.
		return i + 1
	}

	return 0
}

func (p *parser) suffix(x tree.ID) tree.ID {
	for p.tok == tokOp {
		if len(p.t.Nodes) >= tree.MaxNodes {
			p.t.Full = true
			p.pos = len(p.src)
			p.next()

			return x
		}

		switch {
		case p.d == Java && (p.is(".") || p.is("::")), p.d == R && (p.is("$") || p.is("@")):
			reference := p.is("::")

			p.next()
			p.angles()

			switch {
			case p.tok == tokName:
				a := p.named(tree.Attr)
				p.t.At(a).A = x
				x = a

				if reference {
					p.t.At(a).Op = ':'
				}

				p.next()
			case p.tok == tokString:
				n := tree.Node{Kind: tree.Attr, Start: uint32(p.inStart), End: uint32(p.inEnd), A: x}
				x = p.t.Add(n)

				p.next()
			default:
				return x
			}
		case p.d == R && (p.is("::") || p.is(":::")):
			// A package's name says nothing more than the function's.
			p.next()

			if p.tok != tokName {
				return x
			}

			x = p.named(tree.Name)
			p.next()
		case p.is("("):
			if p.newline && p.d == R {
				return x
			}

			n := tree.Node{Kind: tree.Call, Start: uint32(p.start), A: x}
			n.B = p.list(")")
			n.End = uint32(p.lastEnd())
			x = p.t.Add(n)
		case p.is("["):
			n := tree.Node{Kind: tree.Index, Start: uint32(p.start), A: x}

			double := p.d == R && p.at(p.end) == '['
			if double {
				p.next()
			}

			n.B = p.list("]")
			if double {
				p.accept("]")
			}

			n.End = uint32(p.lastEnd())
			x = p.t.Add(n)
		case p.is("++") || p.is("--"):
			o := p.op[0]
			one := p.t.Add(tree.Node{Kind: tree.Num, Start: uint32(p.start), End: uint32(p.start), Alt: p.t.Alt("1")})
			n := tree.Node{Kind: tree.Assign, Op: o, Start: uint32(p.start), End: uint32(p.end), A: x, B: one}
			p.next()
			x = p.t.Add(n)
		default:
			return x
		}
	}

	return x
}

func (p *parser) lastEnd() int {
	i := p.start
	for i > 0 && strings.IndexByte(" \t\r\n", p.src[i-1]) >= 0 {
		i--
	}

	return i
}
