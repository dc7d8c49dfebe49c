package python

import "github.com/e2bguard/e2bguard/guard/static/tree"

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

func (p *parser) yield() tree.ID {
	n := tree.Node{Kind: tree.Unary, Op: 'y', Start: uint32(p.start), End: uint32(p.end)}
	p.next()

	if p.keyword("from") {
		p.next()
	}

	if !p.endsList() {
		n.A = p.list(bindNone)
		n.End = p.t.At(n.A).End
	}

	return p.t.Add(n)
}

func (p *parser) lambda() tree.ID {
	n := tree.Node{Kind: tree.Func, Flag: tree.FlagExpr, Start: uint32(p.start), End: uint32(p.start)}
	p.next()
	n.A = p.parameters(':', false)

	if p.is(':') {
		p.next()
		n.B = p.expr(bindCond - 1)
	}

	return p.t.Add(n)
}

// parameters parses up to the token end, which it leaves.
func (p *parser) parameters(end uint16, annotated bool) tree.ID {
	var l tree.List

	for !p.is(end) && p.tok != tokEOF && (p.tok != tokNewline || p.nest > 0) {
		op := byte(0)

		switch {
		case p.is('*'):
			op = '*'
			p.next()
		case p.is(opPower):
			op = 'd'
			p.next()
		}

		if p.tok != tokName {
			if p.closes() {
				break
			}

			if !p.is(',') && !p.is('/') {
				p.t.Fail(p.start)
			}

			p.next()

			continue
		}

		id := p.named(tree.Param)
		p.t.At(id).Op = op
		p.next()

		if annotated && p.is(':') {
			p.next()

			ann := p.element(bindNone)
			// Annotations are evaluated, so they can do things.
			p.t.At(id).C = ann
		}

		if p.is('=') {
			p.next()

			def := p.expr(bindNone)
			p.t.At(id).A = def
		}

		l.Push(p.t, id)

		if p.is(',') {
			p.next()
		}
	}

	return l.First
}

// close expects a closing bracket and drops what stands before it.
func (p *parser) close(end uint16) {
	for !p.is(end) && p.tok != tokEOF {
		if p.closes() {
			// The wrong one: what was open is taken as closed.
			p.t.Fail(p.start)
			p.next()

			return
		}

		p.t.Fail(p.start)
		p.next()
	}

	if p.is(end) {
		p.next()
	} else {
		p.t.Fail(p.start)
	}
}

// group parses what stands in round, square or curly brackets.
func (p *parser) group() tree.ID {
	open, start := byte(p.op), p.start
	end := uint16(open) + 2
	if open == '(' {
		end = ')'
	}

	p.next()

	var (
		l     tree.List
		comma bool
		dict  bool
		comp  tree.ID
	)

	for !p.is(end) && p.tok != tokEOF {
		if p.is(',') {
			comma = true

			p.next()

			continue
		}

		at := p.pos
		x := p.element(bindNone)

		if open == '{' {
			if p.t.At(x).Kind == tree.Star {
				dict = dict || p.t.At(x).Flag&tree.FlagDouble != 0
			} else if p.is(':') {
				p.next()

				dict = true
				v := p.expr(bindNone)
				x = p.t.Add(tree.Node{Kind: tree.Pair, Start: p.t.At(x).Start, End: p.t.At(v).End, A: x, B: v})
			}
		}

		if p.keyword("as") {
			// Of a with statement, or in a pattern.
			x = p.as(x)
		}

		if p.keyword("for") || p.keyword("async") {
			comp = p.comprehension(x, open)
			l.Push(p.t, comp)
		} else {
			l.Push(p.t, x)
		}

		if p.is(',') || p.is(end) {
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

	p.close(end)

	n := tree.Node{Kind: tree.Seq, Op: open, Start: uint32(start), End: uint32(p.lastEnd()), A: l.First}
	one := l.First != 0 && l.First == l.Last

	switch {
	case one && comp != 0:
		return comp
	case open == '(' && one && !comma && p.t.At(l.First).Kind != tree.Star:
		return l.First
	case open == '{' && (dict || l.First == 0):
		n.Kind = tree.Dict
	}

	return p.t.Add(n)
}

// as parses "as target" after x.
func (p *parser) as(x tree.ID) tree.ID {
	n := tree.Node{Kind: tree.As, Start: uint32(p.start), A: x}
	p.next()
	n.B = p.expr(bindTarget)
	n.End = uint32(p.lastEnd())

	return p.t.Add(n)
}

// comprehension parses the clauses after the element x.
func (p *parser) comprehension(x tree.ID, open byte) tree.ID {
	n := tree.Node{Kind: tree.Comp, Op: open, Start: p.t.At(x).Start, A: x}

	var l tree.List

	for {
		switch {
		case p.keyword("async"):
			p.next()
		case p.keyword("for"):
			f := tree.Node{Kind: tree.CompFor, Start: uint32(p.start)}
			p.next()
			f.A = p.list(bindTarget)

			if p.keyword("in") {
				p.next()
			}

			f.B = p.expr(bindCond)
			l.Push(p.t, p.t.Add(f))
		case p.keyword("if"):
			f := tree.Node{Kind: tree.CompIf, Start: uint32(p.start)}
			p.next()
			// No conditional without brackets, but a walrus may stand here.
			f.A = p.expr(bindCond)

			if p.is(opWalrus) {
				p.next()

				v := p.expr(bindCond)
				f.A = p.t.Add(tree.Node{Kind: tree.Assign, Start: f.Start, End: uint32(p.start), A: f.A, B: v})
			}

			l.Push(p.t, p.t.Add(f))
		default:
			n.B = l.First
			n.End = uint32(p.lastEnd())

			return p.t.Add(n)
		}
	}
}

// arguments parses a call's arguments from its bracket on.
func (p *parser) arguments() tree.ID {
	p.next()

	var l tree.List

	for !p.is(')') && p.tok != tokEOF {
		if p.is(',') {
			p.next()

			continue
		}

		at := p.pos
		x := p.element(bindNone)

		switch {
		case p.is('='):
			p.next()

			v := p.expr(bindNone)
			k := tree.Node{Kind: tree.Kw, Start: p.t.At(x).Start, End: p.t.At(x).End, A: v, Alt: p.t.At(x).Alt}
			x = p.t.Add(k)
		case p.keyword("for") || p.keyword("async"):
			x = p.comprehension(x, '(')
		}

		if p.keyword("as") {
			x = p.as(x) // In a pattern.
		}

		l.Push(p.t, x)

		if p.is(',') || p.is(')') {
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

	p.close(')')

	return l.First
}

// subscript parses what stands in square brackets after an expression.
func (p *parser) subscript() tree.ID {
	start := p.start
	p.next()

	var (
		l     tree.List
		comma bool
	)

	for !p.is(']') && p.tok != tokEOF {
		if p.is(',') {
			comma = true

			p.next()

			continue
		}

		at := p.pos
		l.Push(p.t, p.slice())

		if p.is(',') || p.is(']') {
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

	p.close(']')

	if l.First != 0 && l.First == l.Last && !comma {
		return l.First
	}

	return p.t.Add(tree.Node{Kind: tree.Seq, Op: '(', Start: uint32(start), End: uint32(p.start), A: l.First})
}

func (p *parser) slice() tree.ID {
	n := tree.Node{Kind: tree.Slice, Start: uint32(p.start)}

	if !p.is(':') {
		x := p.element(bindNone)
		if !p.is(':') {
			return x
		}

		n.A = x
	}

	p.next()

	if !p.is(':') && !p.is(',') && !p.closes() {
		n.B = p.expr(bindNone)
	}

	if p.is(':') {
		p.next()

		if !p.is(',') && !p.closes() {
			n.C = p.expr(bindNone)
		}
	}

	n.End = uint32(p.start)

	return p.t.Add(n)
}
