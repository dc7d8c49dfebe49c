package scan

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

const maxDepth = 500

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

// binding is how tight an operator binds, and how flow knows it.
func (p *parser) binding() (int, byte) {
	if p.tok == tokName {
		if p.d == Java && p.word("instanceof") {
			return 30, 's'
		}

		return 0, 0
	}

	if p.tok != tokOp {
		return 0, 0
	}

	switch p.op {
	case "||":
		return 10, 'o'
	case "|":
		if p.d == R {
			return 10, 'o'
		}

		return 14, '|'
	case "&&":
		return 12, 'a'
	case "&":
		if p.d == R {
			return 12, 'a'
		}

		return 16, '&'
	case "^":
		if p.d == R {
			return 60, 'p'
		}

		return 15, '^'
	case "==":
		return 28, '='
	case "!=":
		return 28, '!'
	case "<", ">":
		return 30, p.op[0]
	case "<=":
		return 30, '{'
	case ">=":
		return 30, '}'
	case "<<":
		return 32, 'l'
	case ">>", ">>>":
		return 32, 'r'
	case "+", "-":
		return 40, p.op[0]
	case "*", "/":
		return 44, p.op[0]
	case "%":
		return 44, '%'
	case "~":
		if p.d == R {
			return 6, '~'
		}
	case ":":
		if p.d == R {
			return 50, ':'
		}
	}

	if p.d == R && strings.HasPrefix(p.op, "%") {
		return 48, 'x'
	}

	return 0, 0
}

// assigns says whether the token assigns to what stands before it, and with
// which operator.
func (p *parser) assigns() (fold byte, ok bool) {
	if p.tok != tokOp {
		return 0, false
	}

	switch p.op {
	case "=", "<-", "<<-", ":=":
		if p.d == Java && p.op != "=" {
			return 0, false
		}

		return 0, true
	case "+=", "-=", "*=", "/=", "%=", "^=", "|=", "&=":
		return p.op[0], p.d == Java
	case "<<=", ">>=", ">>>=":
		return map[byte]byte{'<': 'l', '>': 'r'}[p.op[0]], p.d == Java
	}

	return 0, false
}

func (p *parser) bad() tree.ID {
	n := tree.Node{Kind: tree.Bad, Start: uint32(p.start), End: uint32(p.start)}

	if p.tok == tokEOF || p.tok == tokNewline || p.closes() || p.is(",") || p.is(";") {
		return p.t.Add(n)
	}

	p.t.Fail(p.start)
	p.next()

	return p.t.Add(n)
}

func (p *parser) expr(bind int) tree.ID {
	if !p.enter() {
		p.next()

		return 0
	}
	defer func() { p.depth-- }()

	x := p.unary()

	for {
		if fold, ok := p.assigns(); ok {
			if bind > 2 {
				return x
			}

			n := tree.Node{Kind: tree.Assign, Op: fold, Start: uint32(p.start), A: x}
			p.next()
			p.skipNewlines()
			n.B = p.expr(2)
			n.End = p.t.At(n.B).End
			x = p.t.Add(n)

			continue
		}

		switch {
		case p.d == R && (p.is("->") || p.is("->>")):
			if bind > 2 {
				return x
			}

			n := tree.Node{Kind: tree.Assign, Start: uint32(p.start), B: x}
			p.next()
			n.A = p.expr(4)
			n.End = p.t.At(n.A).End
			x = p.t.Add(n)

			continue
		case p.d == R && (p.is("|>") || p.is("%>%") || p.is("%<>%") || p.is("%T>%")):
			if bind > 48 {
				return x
			}

			p.next()
			p.skipNewlines()
			x = p.piped(x, p.expr(49))

			continue
		case p.d == Java && p.is("?"):
			if bind > 4 {
				return x
			}

			n := tree.Node{Kind: tree.Cond, Start: uint32(p.start), B: x}
			p.next()
			n.A = p.expr(3)

			if p.accept(":") {
				n.C = p.expr(3)
			}

			n.End = uint32(p.start)
			start, _ := p.t.Bounds(x)
			n.Start = uint32(start)
			x = p.t.Add(n)

			continue
		}

		l, fold := p.binding()
		if l == 0 || l <= bind {
			return x
		}

		n := tree.Node{Kind: tree.Binary, Op: fold, Start: uint32(p.start), A: x}
		p.next()
		p.skipNewlines()
		n.B = p.expr(l)
		n.End = p.t.At(n.B).End

		if fold == ':' {
			// R's sequences.
			callee := p.t.Add(tree.Node{Kind: tree.Name, Start: n.Start, End: n.Start, Alt: p.t.Alt("seq")})
			p.t.At(n.A).Next = n.B
			n = tree.Node{Kind: tree.Call, Start: n.Start, End: n.End, A: callee, B: n.A}
		}

		x = p.t.Add(n)
	}
}

// piped is x |> f(y): f(x, y).
func (p *parser) piped(x, f tree.ID) tree.ID {
	if f == 0 || x == 0 {
		return x
	}

	n := p.t.At(f)
	if n.Kind == tree.Call {
		p.t.At(x).Next = n.B
		p.t.At(f).B = x

		return f
	}

	return p.t.Add(tree.Node{Kind: tree.Call, Start: n.Start, End: n.End, A: f, B: x})
}

func (p *parser) skipNewlines() {
	for p.tok == tokNewline {
		p.next()
	}
}

func (p *parser) unary() tree.ID {
	if p.tok == tokOp {
		switch p.op {
		case "++", "--":
			n := tree.Node{Kind: tree.Assign, Op: p.op[0], Start: uint32(p.start)}
			p.next()
			n.A = p.expr(55)
			n.End = p.t.At(n.A).End
			n.B = p.t.Add(tree.Node{Kind: tree.Num, Start: n.Start, End: n.Start, Alt: p.t.Alt("1")})

			return p.t.Add(n)
		case "-", "+", "!", "~", "?":
			n := tree.Node{Kind: tree.Unary, Op: p.op[0], Start: uint32(p.start)}
			p.next()
			n.A = p.expr(55)
			n.End = p.t.At(n.A).End

			return p.t.Add(n)
		}
	}

	return p.suffix(p.primary())
}
