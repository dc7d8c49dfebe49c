package javascript

import (
	"strings"

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

// template parses a template literal.
func (p *parser) template() tree.ID {
	n := tree.Node{Kind: tree.Format, Start: uint32(p.start)}

	var l tree.List

	i := p.start + 1
	from := i
	text := func(to int) {
		if to > from {
			l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Str, Start: uint32(from), End: uint32(to)}))
		}
	}

loop:
	for {
		if i >= len(p.src) {
			text(len(p.src))
			p.t.Fail(p.start)

			i = len(p.src)

			break
		}

		switch {
		case p.src[i] == '\\':
			i += 2
		case p.src[i] == '`':
			text(i)

			i++

			break loop
		case p.src[i] == '$' && p.byteAt(i+1) == '{':
			text(i)

			part := tree.Node{Kind: tree.Interp, Start: uint32(i)}
			p.pos = i + 2

			if !p.enter() {
				i += 2

				break
			}

			saved, cond := p.noIn, p.inCond
			p.noIn, p.inCond = false, 0

			p.next()
			part.A = p.expression()

			// To the brace, whatever stands before it.
			for !p.is('}') && p.tok != tokEOF {
				p.t.Fail(p.start)
				p.next()
			}

			p.noIn, p.inCond = saved, cond
			p.depth--

			i = max(p.end, i+2)
			part.End = uint32(i)
			l.Push(p.t, p.t.Add(part))

			from = i
		default:
			i++
		}
	}

	i = min(i, len(p.src))
	n.A, n.End = l.First, uint32(i)
	p.pos = i
	p.next()

	return p.t.Add(n)
}

// markup parses JSX for the expressions in it, or skips a type in angle
// brackets.
func (p *parser) markup() tree.ID {
	start := p.start

	if !p.enter() {
		p.next()

		return 0
	}
	defer func() { p.depth-- }()

	// <T>x and <T,>(x) => y are TypeScript.
	if end := angleEnd(p.src, p.start); end > 0 && p.byteAt(end) == '(' || end > 0 && strings.IndexByte(p.src[start:end], ',') > 0 {
		p.pos = end
		p.next()

		return p.unary()
	}

	var l tree.List

	p.tag(&l)

	return p.t.Add(tree.Node{Kind: tree.Seq, Op: '[', Start: uint32(start), End: uint32(p.lastEnd()), A: l.First})
}

// tag parses an element from "<" on.
func (p *parser) tag(l *tree.List) {
	p.next()

	for !p.is('>') && p.tok != tokEOF {
		switch {
		case p.is('{'):
			p.next()
			l.Push(p.t, p.expr(bindAssign))
			p.close('}')
		case p.is('/'):
			p.next()

			if p.is('>') {
				p.next()

				return
			}
		case p.is(';'), p.closes():
			// No markup after all.
			p.t.Fail(p.start)

			return
		default:
			p.next()
		}
	}

	// Children: text, expressions and elements up to the closing tag.
	i := p.end

	for i < len(p.src) {
		switch p.src[i] {
		case '{':
			p.pos = i + 1
			p.next()

			if !p.is('}') {
				l.Push(p.t, p.expr(bindAssign))
			}

			for !p.is('}') && p.tok != tokEOF {
				p.next()
			}

			i = p.end
		case '<':
			p.pos = i

			if p.byteAt(i+1) == '/' {
				end := strings.IndexByte(p.src[i:], '>')
				if end < 0 {
					p.pos = len(p.src)
				} else {
					p.pos = i + end + 1
				}

				p.next()

				return
			}

			p.next()

			if !p.enter() {
				p.next()

				return
			}

			p.tag(l)

			p.depth--
			i = max(p.start, i+1)
		default:
			i++
		}
	}

	p.pos = len(p.src)
	p.next()
}
