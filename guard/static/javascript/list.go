package javascript

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// close expects a closing bracket, and drops what stands before it.
func (p *parser) close(c byte) {
	for !p.is(c) && p.tok != tokEOF {
		p.t.Fail(p.start)

		if p.closes() || p.is(';') && c != '}' {
			// The wrong one: what was open is taken as closed.
			if p.closes() {
				p.next()
			}

			return
		}

		p.next()
	}

	if !p.accept(c) {
		p.t.Fail(p.start)
	}
}

// items parses a list up to a closing bracket.
func (p *parser) items(end byte) tree.ID {
	p.next()

	saved, cond := p.noIn, p.inCond
	p.noIn, p.inCond = false, 0

	var l tree.List

	for !p.is(end) && p.tok != tokEOF {
		if p.is(',') {
			if end == ']' {
				// A hole in an array.
				l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Bad, Start: uint32(p.start), End: uint32(p.start)}))
			}

			p.next()

			continue
		}

		at := p.pos
		x := p.expr(bindAssign)

		if p.is(':') && end == ')' {
			// A parameter's type.
			p.next()
			p.skipType()

			if p.accept('=') {
				v := p.expr(bindAssign)
				x = p.t.Add(tree.Node{Kind: tree.Assign, Start: p.t.At(x).Start, End: uint32(p.start), A: x, B: v})
			}
		}

		l.Push(p.t, x)

		if p.is(',') {
			p.next()

			continue
		}

		if p.is(end) {
			break
		}

		if p.closes() || p.is(';') {
			break
		}

		p.t.Fail(p.start)

		if p.pos == at {
			p.next()
		}
	}

	p.close(end)

	p.noIn, p.inCond = saved, cond

	return l.First
}

func (p *parser) arguments() tree.ID { return p.items(')') }

func (p *parser) array() tree.ID {
	n := tree.Node{Kind: tree.Seq, Op: '[', Start: uint32(p.start)}
	n.A = p.items(']')
	n.End = uint32(p.lastEnd())

	return p.t.Add(n)
}

// parens parses what stands in round brackets: an expression, or the
// parameters of an arrow function.
func (p *parser) parens() tree.ID {
	start := p.start
	first := p.items(')')

	if p.is(':') && p.inCond == 0 && p.returnType() || p.isOp(opArrow) {
		if p.isOp(opArrow) {
			return p.arrow(p.asParams(first), start)
		}
	}

	if first != 0 && p.t.At(first).Next == 0 && p.t.At(first).Kind != tree.Star {
		return first
	}

	return p.t.Add(tree.Node{Kind: tree.Seq, Op: ',', Start: uint32(start), End: uint32(p.lastEnd()), A: first})
}

// returnType takes ": T" if "=>" follows, and nothing otherwise.
func (p *parser) returnType() bool {
	saved := *p
	errors, firstError := p.t.Errors, p.t.FirstError

	// Not far, or to go back from everywhere could be made to take for ever.
	p.limit = p.start + 1000

	p.next()
	p.skipType()

	p.limit = saved.limit

	if p.isOp(opArrow) {
		return true
	}

	*p = saved
	p.t.Errors, p.t.FirstError = errors, firstError

	return false
}

// asParams turns a list of expressions into parameters.
func (p *parser) asParams(id tree.ID) tree.ID {
	var l tree.List

	for id != 0 {
		n := *p.t.At(id)
		next := n.Next
		p.t.At(id).Next = 0
		l.Push(p.t, p.asParam(id))
		id = next
	}

	return l.First
}

func (p *parser) asParam(id tree.ID) tree.ID {
	n := *p.t.At(id)

	switch n.Kind {
	case tree.Name:
		p.t.At(id).Kind = tree.Param

		return id
	case tree.Assign:
		x := p.asParam(n.A)
		p.t.At(x).A = n.B

		return x
	case tree.Star:
		x := p.asParam(n.A)
		p.t.At(x).Op = '*'

		return x
	default:
		return p.t.Add(tree.Node{Kind: tree.Param, Start: n.Start, End: n.Start, B: id})
	}
}

// object parses an object literal, or the pattern of one.
func (p *parser) object() tree.ID {
	n := tree.Node{Kind: tree.Dict, Start: uint32(p.start)}
	p.next()

	saved, cond := p.noIn, p.inCond
	p.noIn, p.inCond = false, 0

	var l tree.List

	for !p.is('}') && p.tok != tokEOF {
		if p.accept(',') {
			continue
		}

		at := p.pos
		l.Push(p.t, p.property(false))

		if p.is(',') || p.is('}') {
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

	p.close('}')

	p.noIn, p.inCond = saved, cond
	n.A, n.End = l.First, uint32(p.lastEnd())

	return p.t.Add(n)
}

// modifiers are words that may stand before a member's name.
var modifiers = map[string]bool{
	"get": true, "set": true, "async": true, "static": true, "public": true, "private": true, "protected": true,
	"readonly": true, "abstract": true, "override": true, "declare": true, "accessor": true,
}

// property parses a member of an object literal or of a class.
func (p *parser) property(class bool) tree.ID {
	if p.isOp(opSpread) {
		return p.unary()
	}

	for p.is('@') {
		p.next()
		p.suffix(p.primary(), true)
	}

	for p.tok == tokName && modifiers[p.text()] {
		// A modifier, unless it is the name itself.
		if c := p.peek(); c == '(' || c == ':' || c == ',' || c == '}' || c == '=' || c == ';' || c == '<' || c == '?' || c == '!' {
			break
		}

		static := p.word("static")
		p.next()

		if static && p.is('{') {
			return p.block()
		}
	}

	p.accept('*')

	var key tree.ID

	start := p.start

	switch {
	case p.tok == tokName || p.tok == tokPrivate || p.tok == tokNumber:
		key = p.named(tree.Name)
		p.next()
	case p.tok == tokString:
		key = p.stringLiteral()
	case p.is('['):
		p.next()

		key = p.expr(bindAssign)

		if p.is(':') && class {
			// An index signature.
			p.skipMember()

			return 0
		}

		p.close(']')
	default:
		return p.bad()
	}

	if p.is('?') || p.is('!') && class {
		p.next()
	}

	if p.is('<') {
		p.skipTypeArguments()
	}

	switch {
	case p.is('('):
		f := tree.Node{Kind: tree.Func, Start: uint32(start), End: uint32(start)}
		if k := p.t.At(key); k.Kind == tree.Name || k.Kind == tree.Str {
			f.Start, f.End, f.Alt = k.Start, k.End, k.Alt
		}

		f.A, f.B = p.signature()

		if f.B == 0 {
			p.accept(';')

			return 0 // A signature without a body.
		}

		return p.t.Add(f)
	case class:
		if p.accept(':') {
			p.skipType()
		}

		pair := tree.Node{Kind: tree.Pair, Start: uint32(start), A: key}
		if p.accept('=') {
			pair.B = p.expr(bindAssign)
		}

		pair.End = uint32(p.start)
		p.accept(';')

		return p.t.Add(pair)
	case p.accept(':'):
		v := p.expr(bindAssign)

		return p.t.Add(tree.Node{Kind: tree.Pair, Start: uint32(start), End: p.t.At(v).End, A: key, B: v})
	case p.accept('='):
		v := p.expr(bindAssign)

		return p.t.Add(tree.Node{Kind: tree.Assign, Start: uint32(start), End: p.t.At(v).End, A: key, B: v})
	}

	return key
}
