package python

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// maxDepth bounds recursion. Python itself allows 200 open brackets.
const maxDepth = 800

// Binding powers, as in Python's grammar.
const (
	bindNone    = 0
	bindWalrus  = 5
	bindCond    = 10
	bindOr      = 20
	bindAnd     = 25
	bindNot     = 30
	bindCompare = 40
	bindTarget  = 45 // for targets: stops before "in"
	bindUnary   = 80
	bindPower   = 85
	bindAwait   = 90
)

func binding(op uint16) int {
	switch op {
	case '<', '>', '=' | '='<<8, '!' | '='<<8, '<' | '='<<8, '>' | '='<<8:
		return bindCompare
	case '|':
		return 50
	case '^':
		return 55
	case '&':
		return 60
	case '<' | '<'<<8, '>' | '>'<<8:
		return 65
	case '+', '-':
		return 70
	case '*', '/', '%', '@', '/' | '/'<<8:
		return 75
	case opPower:
		return bindPower
	}

	return 0
}

// fold is the operator as package flow knows it.
func fold(op uint16) byte {
	if op>>8 == 0 {
		return byte(op)
	}

	switch op {
	case '=' | '='<<8:
		return '='
	case '!' | '='<<8:
		return '!'
	case '<' | '<'<<8:
		return 'l'
	case '>' | '>'<<8:
		return 'r'
	case '/' | '/'<<8:
		return 'f'
	case opPower:
		return 'p'
	case '<' | '='<<8:
		return '{'
	}

	return '}'
}

// bad adds a node for what cannot be read, and drops the token unless it may
// end something that is open.
func (p *parser) bad() tree.ID {
	n := tree.Node{Kind: tree.Bad, Start: uint32(p.start), End: uint32(p.end)}

	if p.tok == tokEOF || p.tok == tokNewline || p.closes() ||
		p.tok == tokOp && (p.op == ',' || p.op == ':' || p.op == '=' || p.op == ';') {
		n.End = n.Start

		return p.t.Add(n)
	}

	p.t.Fail(p.start)
	p.next()

	return p.t.Add(n)
}

// enter counts a level of recursion.
func (p *parser) enter() bool {
	if p.depth >= maxDepth {
		p.t.TooDeep(p.start)

		return false
	}

	if len(p.t.Nodes) >= tree.MaxNodes {
		p.t.Full = true
		p.pos = len(p.src)
		p.next()

		return false
	}

	p.depth++

	return true
}

// deep drops a token that is nested too deep. It makes no node, or hostile
// text would make one for each of its bytes.
func (p *parser) deep() tree.ID {
	p.next()

	return 0
}

// list parses "a, b, *c" with what may stand in a tuple without brackets.
func (p *parser) list(bind int) tree.ID {
	start := p.start
	x := p.element(bind)

	if !p.is(',') {
		return x
	}

	var l tree.List

	l.Push(p.t, x)

	for p.is(',') {
		p.next()

		if p.endsList() {
			break
		}

		l.Push(p.t, p.element(bind))
	}

	return p.t.Add(tree.Node{
		Kind: tree.Seq, Op: '(', Start: uint32(start), End: uint32(p.start), A: l.First,
	})
}

func (p *parser) endsList() bool {
	switch p.tok {
	case tokNewline, tokEOF:
		return true
	case tokOp:
		return p.op == '=' || p.op == opAugment || p.op == ':' || p.op == ';' || p.closes()
	case tokName:
		return p.keyword("in") || p.keyword("for") && p.nest > 0
	}

	return false
}

// element parses an expression that may be starred.
func (p *parser) element(bind int) tree.ID {
	if !p.is('*') && !p.is(opPower) {
		return p.expr(bind)
	}

	n := tree.Node{Kind: tree.Star, Start: uint32(p.start), End: uint32(p.end)}
	if p.op == opPower {
		n.Flag = tree.FlagDouble
	}

	p.next()

	if !p.is(',') && !p.closes() {
		n.A = p.expr(bind)
	}

	return p.t.Add(n)
}

// expr parses an expression whose operators bind tighter than bind.
func (p *parser) expr(bind int) tree.ID {
	if !p.enter() {
		return p.deep()
	}
	defer func() { p.depth-- }()

	x := p.prefix()

	for {
		switch p.tok {
		case tokOp:
			if p.op == opWalrus && bind < bindWalrus {
				at := p.start
				p.next()
				v := p.expr(bindWalrus)
				x = p.t.Add(tree.Node{Kind: tree.Assign, Start: uint32(at), End: p.t.At(v).End, A: x, B: v})

				continue
			}

			l := binding(p.op)
			// Power binds to the right.
			if l == 0 || l <= bind && (l != bindPower || bind != bindPower) {
				return x
			}

			x = p.binary(x, fold(p.op), l)
		case tokName:
			switch p.src[p.start:p.end] {
			case "if":
				if bind >= bindCond {
					return x
				}

				x = p.conditional(x)
			case "or":
				if bind >= bindOr {
					return x
				}

				x = p.binary(x, 'o', bindOr)
			case "and":
				if bind >= bindAnd {
					return x
				}

				x = p.binary(x, 'a', bindAnd)
			case "in", "is":
				if bind >= bindCompare {
					return x
				}

				x = p.binary(x, p.src[p.start+1], bindCompare)
			case "not":
				if bind >= bindCompare {
					return x
				}

				x = p.binary(x, 'N', bindCompare)
			default:
				return x
			}
		default:
			return x
		}
	}
}

func (p *parser) binary(x tree.ID, op byte, bind int) tree.ID {
	at := p.start
	p.next()

	switch {
	case op == 'N': // not in
		if p.keyword("in") {
			p.next()
		}
	case op == 's' && p.keyword("not"): // is not
		p.next()
	}

	y := p.expr(bind)

	return p.t.Add(tree.Node{Kind: tree.Binary, Op: op, Start: uint32(at), End: p.t.At(y).End, A: x, B: y})
}

func (p *parser) conditional(x tree.ID) tree.ID {
	n := tree.Node{Kind: tree.Cond, Start: uint32(p.start), A: x}
	p.next()
	n.B = p.expr(bindCond)

	if p.keyword("else") {
		p.next()
		n.C = p.expr(bindCond - 1)
	}

	n.End = uint32(p.start)

	return p.t.Add(n)
}

func (p *parser) unary(op byte, bind int) tree.ID {
	n := tree.Node{Kind: tree.Unary, Op: op, Start: uint32(p.start)}
	p.next()
	n.A = p.expr(bind)
	n.End = p.t.At(n.A).End

	return p.t.Add(n)
}

// prefix parses an operand with what follows it: calls, subscripts, attributes.
func (p *parser) prefix() tree.ID {
	var x tree.ID

	switch p.tok {
	case tokName:
		switch p.src[p.start:p.end] {
		case "not":
			return p.unary('!', bindNot)
		case "await":
			return p.unary('w', bindAwait)
		case "yield":
			return p.yield()
		case "lambda":
			return p.lambda()
		}

		x = p.named(tree.Name)
		p.next()
	case tokNumber:
		x = p.t.Add(tree.Node{Kind: tree.Num, Start: uint32(p.start), End: uint32(p.end)})
		p.next()
	case tokString:
		x = p.strings()
	case tokOp:
		switch p.op {
		case '-', '+', '~':
			return p.unary(byte(p.op), bindUnary)
		case '(', '[', '{':
			x = p.group()
		case '.':
			// An ellipsis.
			n := tree.Node{Kind: tree.Name, Start: uint32(p.start)}

			for p.is('.') {
				n.End = uint32(p.end)
				p.next()
			}

			x = p.t.Add(n)
		case '`':
			// Python 2's repr.
			p.next()
			x = p.expr(bindNone)

			if p.is('`') {
				p.next()
			}
		default:
			return p.bad()
		}
	default:
		return p.bad()
	}

	return p.suffix(x)
}

func (p *parser) suffix(x tree.ID) tree.ID {
	for p.tok == tokOp {
		switch p.op {
		case '.':
			p.next()

			if p.tok != tokName {
				return x
			}

			a := p.named(tree.Attr)
			p.t.At(a).A = x
			x = a

			p.next()
		case '(':
			n := tree.Node{Kind: tree.Call, Start: uint32(p.start), A: x}
			n.B = p.arguments()
			n.End = uint32(p.lastEnd())
			x = p.t.Add(n)
		case '[':
			n := tree.Node{Kind: tree.Index, Start: uint32(p.start), A: x}
			n.B = p.subscript()
			n.End = uint32(p.lastEnd())
			x = p.t.Add(n)
		default:
			return x
		}

		if len(p.t.Nodes) >= tree.MaxNodes {
			p.t.Full = true
			p.pos = len(p.src)
			p.next()

			return x
		}
	}

	return x
}

// lastEnd is the end of the text before the current token, blanks excluded.
func (p *parser) lastEnd() int {
	i := min(p.start, len(p.src))
	for i > 0 && (p.src[i-1] == ' ' || p.src[i-1] == '\n' || p.src[i-1] == '\t' || p.src[i-1] == '\r') {
		i--
	}

	return i
}
