package javascript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// primary parses an operand without suffixes.
func (p *parser) primary() tree.ID {
	switch p.tok {
	case tokName:
		return p.nameExpr()
	case tokPrivate:
		x := p.named(tree.Name)
		p.next()

		return x
	case tokNumber:
		x := p.t.Add(tree.Node{Kind: tree.Num, Start: uint32(p.start), End: uint32(p.end)})
		p.next()

		return x
	case tokString:
		return p.stringLiteral()
	case tokTemplate:
		return p.template()
	case tokOp:
		switch p.op {
		case '(':
			return p.parens()
		case '[':
			return p.array()
		case '{':
			return p.object()
		case '/', opDivide:
			return p.regexp()
		case '<':
			return p.markup()
		}
	}

	return p.bad()
}

func (p *parser) stringLiteral() tree.ID {
	end := p.end
	if end-p.start >= 2 && p.src[end-1] == p.src[p.start] {
		end--
	} else {
		p.t.Fail(p.start)
	}

	x := p.t.Add(tree.Node{Kind: tree.Str, Start: uint32(p.start + 1), End: uint32(max(end, p.start+1))})
	p.next()

	return x
}

func (p *parser) nameExpr() tree.ID {
	switch p.text() {
	case "function":
		return p.function(0)
	case "class":
		return p.class()
	case "new":
		return p.newExpr()
	case "async":
		if x := p.async(); x != 0 {
			return x
		}
	}

	x := p.named(tree.Name)
	p.next()

	if p.isOp(opArrow) && !p.newline {
		n := *p.t.At(x)
		n.Kind = tree.Param
		*p.t.At(x) = n

		return p.arrow(x, int(n.Start))
	}

	return x
}

// async parses an async function, or a call of something named so: both are
// read once, for to go back could be made to take for ever.
func (p *parser) async() tree.ID {
	name := *p.t.At(p.named(tree.Name))
	start := p.start
	saved := *p
	p.next()

	switch {
	case p.newline:
	case p.word("function"):
		return p.function(0)
	case p.tok == tokName && strings.HasPrefix(strings.TrimLeft(p.src[p.pos:min(p.pos+16, len(p.src))], " "), "=>"):
		x := p.named(tree.Param)
		p.next()

		return p.arrow(x, start)
	case p.is('(') || p.is('<') && p.typeArguments():
		at := p.start
		args := p.items(')')

		if p.isOp(opArrow) || p.is(':') && p.inCond == 0 && p.returnType() {
			return p.arrow(p.asParams(args), start)
		}

		callee := p.t.Add(name)

		return p.t.Add(tree.Node{Kind: tree.Call, Start: uint32(at), End: uint32(p.lastEnd()), A: callee, B: args})
	}

	*p = saved

	return 0
}

// arrow parses from "=>" on.
func (p *parser) arrow(params tree.ID, start int) tree.ID {
	p.next()

	n := tree.Node{Kind: tree.Func, Start: uint32(start), End: uint32(start), A: params}

	if p.is('{') {
		n.B = p.block()
	} else {
		n.Flag |= tree.FlagExpr
		n.B = p.expr(bindAssign)
	}

	return p.t.Add(n)
}

func (p *parser) newExpr() tree.ID {
	at := p.start
	p.next()

	if p.is('.') {
		// new.target
		p.next()

		x := p.named(tree.Name)
		p.next()

		return x
	}

	if !p.enter() {
		p.next()

		return 0
	}

	callee := p.suffix(p.primary(), false)
	p.depth--

	n := tree.Node{Kind: tree.Call, Flag: tree.FlagNew, Start: uint32(at), End: uint32(p.start), A: callee}
	if p.is('(') {
		n.B = p.arguments()
		n.End = uint32(p.lastEnd())
	}

	return p.t.Add(n)
}

// lastEnd is the end of what stands before the current token.
func (p *parser) lastEnd() int {
	i := p.start
	for i > 0 && (p.src[i-1] == ' ' || p.src[i-1] == '\n' || p.src[i-1] == '\t' || p.src[i-1] == '\r') {
		i--
	}

	return i
}

// suffix parses members, subscripts, calls and tagged templates after x.
func (p *parser) suffix(x tree.ID, calls bool) tree.ID {
	for {
		if len(p.t.Nodes) >= tree.MaxNodes {
			p.stop()

			return x
		}

		switch {
		case p.tok == tokTemplate:
			n := tree.Node{Kind: tree.Call, Start: uint32(p.start), A: x}
			n.B = p.template()
			n.End = uint32(p.lastEnd())
			x = p.t.Add(n)
		case p.tok != tokOp:
			return x
		case p.op == '.' || p.op == opOptional:
			p.next()

			switch {
			case p.tok == tokName || p.tok == tokPrivate:
				a := p.named(tree.Attr)
				p.t.At(a).A = x
				x = a

				p.next()
			case p.is('(') || p.is('['):
			default:
				p.t.Fail(p.start)

				return x
			}
		case p.op == '(':
			if !calls {
				return x
			}

			n := tree.Node{Kind: tree.Call, Start: uint32(p.start), A: x}
			n.B = p.arguments()
			n.End = uint32(p.lastEnd())
			x = p.t.Add(n)
		case p.op == '[':
			n := tree.Node{Kind: tree.Index, Start: uint32(p.start), A: x}
			p.next()

			saved, cond := p.noIn, p.inCond
			p.noIn, p.inCond = false, 0
			n.B = p.expression()
			p.noIn, p.inCond = saved, cond

			p.close(']')
			n.End = uint32(p.lastEnd())
			x = p.t.Add(n)
		case p.op == '!' && !p.newline && p.byteAt(p.end) != '=':
			// TypeScript's x!.
			p.next()
		case p.op == '<' && p.typeArguments():
		default:
			return x
		}
	}
}
