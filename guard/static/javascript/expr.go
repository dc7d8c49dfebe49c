package javascript

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// maxDepth bounds recursion.
const maxDepth = 600

// Binding powers.
const (
	bindComma  = 0
	bindAssign = 2
	bindCond   = 4
	bindUnary  = 60
)

func binding(o op) (bind int, fold byte) {
	switch o {
	case opNullish:
		return 6, '?'
	case opOf("||"):
		return 8, 'o'
	case opOf("&&"):
		return 10, 'a'
	case '|':
		return 12, '|'
	case '^':
		return 14, '^'
	case '&':
		return 16, '&'
	case opOf("=="), opOf("==="):
		return 18, '='
	case opOf("!="), opOf("!=="):
		return 18, '!'
	case '<', '>':
		return 20, byte(o)
	case opOf("<="):
		return 20, '{'
	case opOf(">="):
		return 20, '}'
	case opOf("<<"):
		return 22, 'l'
	case opOf(">>"), opOf(">>>"):
		return 22, 'r'
	case '+', '-':
		return 24, byte(o)
	case '*', '/', '%':
		return 26, byte(o)
	case opPower:
		return 28, 'p'
	}

	return 0, 0
}

// assigns is the operator of an assignment; ok is false for anything else.
func assigns(o op) (fold byte, ok bool) {
	switch o {
	case '=':
		return 0, true
	case opOf("+="), opOf("-="), opOf("*="), opOf("/="), opOf("%="), opOf("&="), opOf("|="), opOf("^="):
		return byte(o), true
	case opOf("**="):
		return 'p', true
	case opOf("<<="):
		return 'l', true
	case opOf(">>="), opOf(">>>="):
		return 'r', true
	case opOf("&&="):
		return 'a', true
	case opOf("||="):
		return 'o', true
	case opOf("??="):
		return '?', true
	}

	return 0, false
}

// enter counts a level of recursion.
func (p *parser) enter() bool {
	if p.depth >= maxDepth {
		p.t.TooDeep(p.start)

		return false
	}

	if len(p.t.Nodes) >= tree.MaxNodes {
		p.stop()

		return false
	}

	p.depth++

	return true
}

// stop ends the parse for want of room.
func (p *parser) stop() {
	p.t.Full = true
	p.pos = len(p.src)
	p.next()
}

// bad adds a node for what cannot be read, and drops the token unless it may
// end something that is open.
func (p *parser) bad() tree.ID {
	n := tree.Node{Kind: tree.Bad, Start: uint32(p.start), End: uint32(p.start)}

	if p.tok == tokEOF || p.closes() || p.is(',') || p.is(';') || p.is(':') {
		return p.t.Add(n)
	}

	p.t.Fail(p.start)
	p.next()

	return p.t.Add(n)
}

// expression parses an expression with commas.
func (p *parser) expression() tree.ID {
	start := p.start
	x := p.expr(bindAssign)

	if !p.is(',') {
		return x
	}

	var l tree.List

	l.Push(p.t, x)

	for p.accept(',') {
		l.Push(p.t, p.expr(bindAssign))
	}

	return p.t.Add(tree.Node{Kind: tree.Seq, Op: ',', Start: uint32(start), End: uint32(p.start), A: l.First})
}

// expr parses an expression whose operators bind at least as tight as bind.
func (p *parser) expr(bind int) tree.ID {
	if !p.enter() {
		p.next()

		return 0
	}
	defer func() { p.depth-- }()

	x := p.unary()

	for {
		if p.tok == tokName {
			switch p.text() {
			case "in", "instanceof":
				if p.noIn && p.text() == "in" || bind > 20 {
					return x
				}

				x = p.binary(x, 'n', 20)

				continue
			case "as", "satisfies":
				if p.newline {
					return x
				}

				p.next()
				p.skipType()

				continue
			}

			return x
		}

		if p.tok != tokOp {
			return x
		}

		if fold, ok := assigns(p.op); ok {
			if bind > bindAssign {
				return x
			}

			at := p.start
			p.next()
			v := p.expr(bindAssign)
			x = p.t.Add(tree.Node{Kind: tree.Assign, Op: fold, Start: uint32(at), End: p.t.At(v).End, A: x, B: v})

			continue
		}

		if p.is('?') {
			if bind > bindCond {
				return x
			}

			if c := p.peek(); c == ':' || c == ',' || c == ')' || c == '=' {
				// An optional parameter.
				p.next()

				continue
			}

			x = p.conditional(x)

			continue
		}

		l, fold := binding(p.op)
		if l == 0 || l < bind {
			return x
		}

		if fold == 'p' {
			x = p.binary(x, fold, l)
		} else {
			x = p.binary(x, fold, l+1)
		}
	}
}

func (p *parser) binary(x tree.ID, fold byte, bind int) tree.ID {
	at := p.start
	p.next()
	y := p.expr(bind)

	return p.t.Add(tree.Node{Kind: tree.Binary, Op: fold, Start: uint32(at), End: p.t.At(y).End, A: x, B: y})
}

func (p *parser) conditional(test tree.ID) tree.ID {
	n := tree.Node{Kind: tree.Cond, Start: uint32(p.start), B: test}
	saved := p.noIn
	p.noIn = false

	p.next()

	p.inCond++
	n.A = p.expr(bindAssign)
	p.inCond--

	p.noIn = saved

	if p.accept(':') {
		n.C = p.expr(bindAssign)
	} else {
		p.t.Fail(p.start)
	}

	n.End = uint32(p.start)

	// Bounds walk down A, which stands after the test here.
	if test != 0 {
		start, _ := p.t.Bounds(test)
		n.Start = uint32(start)
	}

	return p.t.Add(n)
}

func (p *parser) prefixOp(o byte) tree.ID {
	n := tree.Node{Kind: tree.Unary, Op: o, Start: uint32(p.start)}
	p.next()
	n.A = p.expr(bindUnary)
	n.End = p.t.At(n.A).End

	return p.t.Add(n)
}

// unary parses an operand with its prefix operators and suffixes.
func (p *parser) unary() tree.ID {
	switch p.tok {
	case tokOp:
		switch p.op {
		case '-', '+', '~', '!':
			return p.prefixOp(byte(p.op))
		case opIncrement, opDecrement:
			p.next()

			return p.step(p.expr(bindUnary), '+')
		case opSpread:
			n := tree.Node{Kind: tree.Star, Start: uint32(p.start)}
			p.next()
			n.A = p.expr(bindAssign)
			n.End = p.t.At(n.A).End

			return p.t.Add(n)
		case '@':
			return p.decorated()
		}
	case tokName:
		switch p.text() {
		case "typeof", "void", "delete":
			if !p.isOperandNext() {
				break
			}

			return p.prefixOp('t')
		case "await":
			if !p.isOperandNext() {
				break
			}

			return p.prefixOp('w')
		case "yield":
			n := tree.Node{Kind: tree.Unary, Op: 'y', Start: uint32(p.start), End: uint32(p.end)}
			p.next()
			p.accept('*')

			if !p.newline && !p.closes() && !p.is(',') && !p.is(';') && !p.is(':') && p.tok != tokEOF {
				n.A = p.expr(bindAssign)
			}

			return p.t.Add(n)
		}
	}

	x := p.suffix(p.primary(), true)

	if p.tok == tokOp && !p.newline && (p.op == opIncrement || p.op == opDecrement) {
		o := byte(p.op)
		p.next()
		x = p.step(x, o)
	}

	return x
}

// decorated parses a decorator and the class expression after it.
func (p *parser) decorated() tree.ID {
	n := tree.Node{Kind: tree.Seq, Op: ',', Start: uint32(p.start)}

	var l tree.List

	for p.is('@') {
		p.next()
		l.Push(p.t, p.suffix(p.primary(), true))
	}

	l.Push(p.t, p.primary())
	n.A, n.End = l.First, uint32(p.lastEnd())

	return p.t.Add(n)
}

// isOperandNext says whether the word is an operator here and not a name.
func (p *parser) isOperandNext() bool {
	c := p.peek()

	return c != '=' && c != ',' && c != ')' && c != ';' && c != '.' && c != ':' && c != '}' && c != ']' && c != '?'
}

// step is x++ and the like: an assignment of x + 1.
func (p *parser) step(x tree.ID, o byte) tree.ID {
	start, end := p.t.Bounds(x)
	one := p.t.Add(tree.Node{Kind: tree.Num, Start: uint32(start), End: uint32(start), Alt: p.t.Alt("1")})

	if x == 0 {
		return 0
	}

	return p.t.Add(tree.Node{Kind: tree.Assign, Op: o, Start: uint32(start), End: uint32(end), A: x, B: one})
}
