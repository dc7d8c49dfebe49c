package javascript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// parse reads JavaScript or TypeScript, with or without JSX. It never fails:
// what cannot be read is skipped and counted.
func parse(src string) *tree.Tree {
	p := &parser{t: tree.New(src), src: src}

	if strings.HasPrefix(src, "#!") {
		p.pos = lineComment(src, 0)
	}

	p.next()

	var l tree.List

	for p.tok != tokEOF {
		if p.is('}') || p.is(')') || p.is(']') {
			p.t.Fail(p.start)
			p.next()

			continue
		}

		p.statement(&l)
	}

	p.t.Root = p.t.Add(tree.Node{Kind: tree.Block, End: uint32(len(src)), A: l.First})

	return p.t
}

// block parses statements in curly brackets.
func (p *parser) block() tree.ID {
	n := tree.Node{Kind: tree.Block, Start: uint32(p.start)}
	declares, noIn, cond := p.declares, p.noIn, p.inCond
	p.declares, p.noIn, p.inCond = false, false, 0

	if !p.accept('{') {
		p.t.Fail(p.start)
	}

	var l tree.List

	for !p.is('}') && p.tok != tokEOF {
		p.statement(&l)
	}

	n.A, n.End = l.First, uint32(p.end)

	if !p.accept('}') {
		p.t.Fail(p.start)
	}

	if p.declares {
		n.Flag |= tree.FlagDeclare
	}

	p.declares, p.noIn, p.inCond = declares, noIn, cond

	return p.t.Add(n)
}

// body parses a statement as a block of its own.
func (p *parser) body() tree.ID {
	if p.is('{') {
		return p.block()
	}

	n := tree.Node{Kind: tree.Block, Start: uint32(p.start)}

	var l tree.List

	p.statement(&l)
	n.A, n.End = l.First, uint32(p.start)

	return p.t.Add(n)
}

// statement parses one statement. It always takes a token.
func (p *parser) statement(l *tree.List) {
	if p.accept(';') {
		return
	}

	if !p.enter() {
		p.next()

		return
	}
	defer func() { p.depth-- }()

	start, at := p.start, p.pos

	switch p.tok {
	case tokName:
		if p.keyword(l) {
			return
		}
	case tokOp:
		switch p.op {
		case '{':
			l.Push(p.t, p.block())

			return
		case '@':
			// Decorators of a class.
			for p.is('@') {
				p.next()
				x := p.suffix(p.primary(), true)
				l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(x).Start, End: p.t.At(x).End, A: x}))
			}

			return
		}
	}

	x := p.expression()

	if p.is(':') && p.t.At(x).Kind == tree.Name {
		p.next() // A label.

		return
	}

	l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: uint32(start), End: uint32(p.lastEnd()), A: x}))
	p.tail()

	if p.pos == at && p.tok != tokEOF {
		p.next()
	}
}

// tail expects the end of a statement: a semicolon, a line end or a bracket.
func (p *parser) tail() {
	if p.accept(';') || p.newline || p.is('}') || p.tok == tokEOF {
		return
	}

	p.t.Fail(p.start)

	if p.closes() || p.is(',') || p.is(':') {
		p.next()
	}
}

// keyword parses a statement that starts with a keyword, and returns false if
// the word is an ordinary name here.
func (p *parser) keyword(l *tree.List) bool {
	n := tree.Node{Start: uint32(p.start)}

	switch word := p.text(); word {
	case "var", "let", "const", "using":
		if c := p.peek(); !identByte[c] && c != '{' && c != '[' || word == "using" && !identByte[c] {
			return false
		}

		p.next()

		if p.word("enum") {
			return p.typeDeclaration(l)
		}

		p.declarations(l, word == "var")
		p.tail()
	case "if":
		l.Push(p.t, p.ifStatement())
	case "for":
		p.forStatement(l)
	case "while":
		p.next()
		n.Kind, n.A = tree.While, p.test()
		n.B = p.body()
		n.End = uint32(p.start)
		l.Push(p.t, p.t.Add(n))
	case "do":
		p.next()
		n.Kind, n.B = tree.While, p.body()

		if p.acceptWord("while") {
			n.A = p.test()
		}

		n.End = uint32(p.start)
		l.Push(p.t, p.t.Add(n))
		p.accept(';')
	case "switch":
		l.Push(p.t, p.switchStatement())
	case "try":
		l.Push(p.t, p.tryStatement())
	case "with":
		p.next()
		x := p.test()
		l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: n.Start, End: uint32(p.start), A: x}))
		l.Push(p.t, p.body())
	case "return", "throw":
		n.Kind = tree.Return
		if word == "throw" {
			n.Kind = tree.Raise
		}

		p.next()

		if !p.newline && !p.is(';') && !p.is('}') && p.tok != tokEOF {
			n.A = p.expression()
		}

		n.End = uint32(p.lastEnd())
		l.Push(p.t, p.t.Add(n))
		p.tail()
	case "break", "continue", "debugger":
		l.Push(p.t, p.named(tree.Jump))
		p.next()

		if p.tok == tokName && !p.newline {
			p.next()
		}

		p.tail()
	case "function":
		l.Push(p.t, p.function(0))
		p.declares = true
	case "async":
		i := p.pos
		for i < len(p.src) && (p.src[i] == ' ' || p.src[i] == '\t') {
			i++
		}

		if !strings.HasPrefix(p.src[i:], "function") || identByte[p.byteAt(i+8)] {
			return false
		}

		p.next()
		l.Push(p.t, p.function(0))
		p.declares = true
	case "class":
		l.Push(p.t, p.class())
		p.declares = true
	case "import":
		return p.importStatement(l)
	case "export":
		p.export(l)
	case "interface", "type", "enum", "declare", "namespace", "module", "abstract":
		return p.typeDeclaration(l)
	case "else", "catch", "finally", "case", "default":
		if c := p.peek(); c == '.' || c == '=' || c == '(' && word != "catch" {
			return false
		}

		p.t.Fail(p.start)
		p.next()
	default:
		return false
	}

	return true
}

func (p *parser) test() tree.ID {
	if !p.accept('(') {
		p.t.Fail(p.start)

		return p.expression()
	}

	x := p.expression()
	p.close(')')

	return x
}

// declarations parses "a = 1, {b} = c".
func (p *parser) declarations(l *tree.List, hoist bool) {
	flag := tree.FlagDeclare
	if hoist {
		flag = tree.FlagHoist
	} else {
		p.declares = true
	}

	for {
		n := tree.Node{Kind: tree.Assign, Flag: flag, Start: uint32(p.start)}

		if !p.enter() {
			p.next()

			return
		}

		n.A = p.primary()
		p.depth--

		if p.is('!') {
			p.next()
		}

		if p.accept(':') {
			p.skipType()
		}

		if p.accept('=') {
			n.B = p.expr(bindAssign)
		}

		n.End = uint32(p.lastEnd())
		id := p.t.Add(n)
		l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: n.Start, End: n.End, A: id}))

		if !p.accept(',') {
			return
		}
	}
}
