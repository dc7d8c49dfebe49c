package javascript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/flow"
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

func (p *parser) ifStatement() tree.ID {
	var first, last tree.ID

	for {
		n := tree.Node{Kind: tree.If, Start: uint32(p.start)}
		p.next()
		n.A = p.test()
		n.B = p.body()
		n.End = uint32(p.start)
		id := p.t.Add(n)

		if first == 0 {
			first = id
		} else {
			p.t.At(last).C = id
		}

		last = id

		if !p.word("else") {
			return first
		}

		p.next()

		if !p.word("if") || len(p.t.Nodes) >= tree.MaxNodes {
			e := p.body()
			p.t.At(last).C = e

			return first
		}
	}
}

// forStatement parses all kinds of for. What it declares is in a block of its
// own.
func (p *parser) forStatement(l *tree.List) {
	outer := tree.Node{Kind: tree.Block, Start: uint32(p.start), Flag: tree.FlagDeclare}
	p.next()
	p.acceptWord("await")

	if !p.accept('(') {
		p.t.Fail(p.start)
	}

	var inner tree.List

	declares := p.declares
	p.noIn = true

	var target tree.ID

	if p.word("var") || p.word("let") || p.word("const") {
		if c := p.peek(); identByte[c] || c == '{' || c == '[' {
			hoist := p.word("var")
			p.next()

			var decl tree.List

			p.declarations(&decl, hoist)
			inner = decl

			// The first one's target, for "of" and "in".
			target = p.t.At(p.t.At(decl.First).A).A
		}
	}

	if inner.First == 0 && !p.is(';') {
		target = p.expression()
		inner.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(target).Start, End: uint32(p.start), A: target}))
	}

	p.noIn = false

	if p.word("of") || p.word("in") {
		n := tree.Node{Kind: tree.For, Start: outer.Start, A: target}
		if p.word("in") {
			n.Op = 'i'
		}

		p.next()
		n.B = p.expression()
		p.close(')')
		n.C = p.body()
		n.End = uint32(p.start)
		inner.Push(p.t, p.t.Add(n))
	} else {
		p.accept(';')

		n := tree.Node{Kind: tree.While, Start: outer.Start}
		if !p.is(';') {
			n.A = p.expression()
		}

		p.accept(';')

		if !p.is(')') {
			n.C = p.expression()
		}

		p.close(')')
		n.B = p.body()
		n.End = uint32(p.start)
		inner.Push(p.t, p.t.Add(n))
	}

	p.declares = declares
	outer.A, outer.End = inner.First, uint32(p.start)
	l.Push(p.t, p.t.Add(outer))
}

func (p *parser) switchStatement() tree.ID {
	n := tree.Node{Kind: tree.Match, Start: uint32(p.start)}
	p.next()
	n.A = p.test()

	if !p.accept('{') {
		p.t.Fail(p.start)
	}

	var l tree.List

	for !p.is('}') && p.tok != tokEOF {
		c := tree.Node{Kind: tree.Case, Start: uint32(p.start)}

		switch {
		case p.acceptWord("case"):
			p.inCond++ // A colon ends it.
			c.B = p.expression()
			p.inCond--
		case p.acceptWord("default"):
		default:
			p.t.Fail(p.start)
			p.next()

			continue
		}

		if !p.accept(':') {
			p.t.Fail(p.start)
		}

		var body tree.List
		for !p.is('}') && p.tok != tokEOF && !p.word("case") && !(p.word("default") && p.peek() == ':') {
			p.statement(&body)
		}

		c.C = p.t.Add(tree.Node{Kind: tree.Block, Start: c.Start, End: uint32(p.start), A: body.First})
		c.End = uint32(p.start)
		l.Push(p.t, p.t.Add(c))
	}

	p.accept('}')
	n.B, n.End = l.First, uint32(p.start)

	return p.t.Add(n)
}

func (p *parser) tryStatement() tree.ID {
	n := tree.Node{Kind: tree.Try, Start: uint32(p.start)}
	p.next()
	n.A = p.block()

	var l tree.List

	if p.acceptWord("catch") {
		if p.is('(') {
			p.next()

			var what tree.ID

			if !p.enter() {
				p.next()
			} else {
				what = p.primary()
				p.depth--
			}

			if p.accept(':') {
				p.skipType()
			}

			p.close(')')

			if what != 0 {
				// The name is bound to what was thrown.
				at := p.t.At(what).Start
				v := p.t.Add(tree.Node{Kind: tree.Name, Start: at, End: at, Alt: p.t.Alt(flow.Thrown())})
				a := p.t.Add(tree.Node{Kind: tree.Assign, Flag: tree.FlagDeclare, Start: at, End: at, A: what, B: v})
				l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: at, End: at, A: a}))
			}
		}

		l.Push(p.t, p.block())
	}

	if p.acceptWord("finally") {
		l.Push(p.t, p.block())
	}

	n.B, n.End = l.First, uint32(p.start)

	return p.t.Add(n)
}

// function parses from "function" on.
func (p *parser) function(decorators tree.ID) tree.ID {
	start := p.start
	p.next()
	p.accept('*')

	f := tree.Node{Kind: tree.Func, Start: uint32(start), End: uint32(start), C: decorators}

	if p.tok == tokName {
		f = *p.t.At(p.named(tree.Name))
		f.Kind, f.C = tree.Func, decorators

		p.next()
	}

	if p.is('<') {
		p.skipTypeArguments()
	}

	f.A, f.B = p.signature()

	if f.B == 0 {
		p.accept(';') // An overload.
	}

	return p.t.Add(f)
}

// signature parses (parameters): type {body}.
func (p *parser) signature() (params, body tree.ID) {
	if !p.is('(') {
		p.t.Fail(p.start)

		return 0, 0
	}

	params = p.parameters()

	if p.accept(':') {
		p.skipType()
	}

	if p.is('{') {
		body = p.block()
	}

	return params, body
}

func (p *parser) parameters() tree.ID {
	p.next()

	var l tree.List

	for !p.is(')') && p.tok != tokEOF {
		if p.accept(',') {
			continue
		}

		for p.is('@') {
			p.next()
			p.suffix(p.primary(), true)
		}

		for p.tok == tokName && modifiers[p.text()] && identByte[p.peek()] {
			p.next()
		}

		at := p.pos
		start := p.start
		rest := p.isOp(opSpread)

		if rest {
			p.next()
		}

		var x tree.ID

		if p.enter() {
			x = p.primary()
			p.depth--
		} else {
			p.next()
		}

		if x != 0 {
			x = p.asParam(x)
		} else {
			x = p.t.Add(tree.Node{Kind: tree.Param, Start: uint32(start), End: uint32(start)})
		}

		if rest {
			p.t.At(x).Op = '*'
		}

		if p.is('?') {
			p.next()
		}

		if p.accept(':') {
			p.skipType()
		}

		if p.accept('=') {
			v := p.expr(bindAssign)
			p.t.At(x).A = v
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

func (p *parser) class() tree.ID {
	start := p.start
	p.next()

	c := tree.Node{Kind: tree.Class, Start: uint32(start), End: uint32(start)}

	if p.tok == tokName && !p.word("extends") && !p.word("implements") {
		c = *p.t.At(p.named(tree.Name))
		c.Kind = tree.Class

		p.next()
	}

	if p.is('<') {
		p.skipTypeArguments()
	}

	if p.acceptWord("extends") {
		if p.enter() {
			c.A = p.suffix(p.primary(), true)
			p.depth--
		}

		if p.is('<') {
			p.skipTypeArguments()
		}
	}

	if p.acceptWord("implements") {
		for !p.is('{') && p.tok != tokEOF {
			p.next()
		}
	}

	b := tree.Node{Kind: tree.Block, Start: uint32(p.start)}

	if !p.accept('{') {
		p.t.Fail(p.start)
	}

	var l tree.List

	for !p.is('}') && p.tok != tokEOF {
		if p.accept(';') || p.accept(',') {
			continue
		}

		at := p.pos

		if !p.enter() {
			p.next()

			continue
		}

		l.Push(p.t, p.property(true))
		p.depth--

		if p.pos == at {
			p.t.Fail(p.start)
			p.next()
		}
	}

	p.accept('}')
	b.A, b.End = l.First, uint32(p.start)
	c.B = p.t.Add(b)

	return p.t.Add(c)
}

// importStatement parses an import declaration; import(x) and import.meta are
// expressions.
func (p *parser) importStatement(l *tree.List) bool {
	if c := p.peek(); c == '(' || c == '.' {
		return false
	}

	start := p.start
	p.next()

	if p.word("type") && p.peek() != ',' && !strings.HasPrefix(strings.TrimLeft(p.src[p.pos:], " "), "from") {
		p.next()
	}

	var names tree.List

	for p.tok != tokString && p.tok != tokEOF && !p.is(';') {
		switch {
		case p.is('*'):
			p.next()
			p.acceptWord("as")

			a := tree.Node{Kind: tree.Alias, Start: uint32(start), End: uint32(start), Alt: p.t.Alt("*")}
			a.A = p.named(tree.Name)
			names.Push(p.t, p.t.Add(a))
			p.next()
		case p.is('{'):
			p.next()
			p.importNames(&names)
		case p.word("from"):
			p.next()

			if p.tok != tokString && !p.is('{') {
				break
			}
		case p.tok == tokName:
			// The default; or "import x = require(...)".
			local := p.named(tree.Name)
			p.next()

			if p.accept('=') {
				v := p.expr(bindAssign)
				id := p.t.Add(tree.Node{Kind: tree.Assign, Start: uint32(start), End: uint32(p.start), A: local, B: v})
				l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: uint32(start), End: uint32(p.start), A: id}))
				p.tail()

				return true
			}

			names.Push(p.t, p.t.Add(tree.Node{
				Kind: tree.Alias, Start: uint32(start), End: uint32(start), Alt: p.t.Alt("default"), A: local,
			}))
		case p.is(','):
			p.next()
		default:
			p.t.Fail(p.start)
			p.next()
		}
	}

	n := tree.Node{Kind: tree.Import, Flag: tree.FlagFrom, Start: uint32(p.start), End: uint32(p.start), A: names.First}

	if p.tok == tokString {
		s := *p.t.At(p.stringLiteral())
		n.Start, n.End = s.Start, s.End

		if text := p.src[s.Start:s.End]; strings.IndexByte(text, '\\') >= 0 {
			n.Alt = p.t.Alt(unescape(text))
		}
	}

	if p.word("with") || p.word("assert") {
		p.next()

		if p.is('{') {
			p.skipBrackets()
		}
	}

	l.Push(p.t, p.t.Add(n))
	p.tail()

	return true
}

func (p *parser) importNames(names *tree.List) {
	for !p.is('}') && p.tok != tokEOF {
		if p.accept(',') {
			continue
		}

		if p.word("type") && identByte[p.peek()] && !strings.HasPrefix(strings.TrimLeft(p.src[p.pos:], " "), "as ") {
			p.next()
		}

		if p.tok != tokName && p.tok != tokString {
			p.t.Fail(p.start)
			p.next()

			continue
		}

		a := p.named(tree.Alias)
		p.next()

		if p.acceptWord("as") {
			x := p.named(tree.Name)
			p.t.At(a).A = x

			p.next()
		}

		names.Push(p.t, a)
	}

	p.accept('}')
}

// export parses what follows "export" as if it stood alone.
func (p *parser) export(l *tree.List) {
	p.next()

	switch {
	case p.acceptWord("default"), p.accept('='):
		if p.word("function") || p.word("class") || p.word("async") || p.word("abstract") || p.word("interface") {
			p.statement(l)

			return
		}

		x := p.expr(bindAssign)
		l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(x).Start, End: uint32(p.start), A: x}))
		p.tail()
	case p.is('*'), p.is('{'), p.word("type") && (p.peek() == '{' || p.peek() == '*'):
		for p.tok != tokEOF && !p.is(';') && !p.word("from") && p.tok != tokString {
			if p.is('{') {
				p.skipBrackets()

				break
			}

			p.next()
		}

		if p.acceptWord("from") && p.tok == tokString {
			s := *p.t.At(p.stringLiteral())
			l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Import, Flag: tree.FlagFrom, Start: s.Start, End: s.End}))
		}

		p.tail()
	case p.word("import"):
		p.importStatement(l)
	default:
		p.statement(l)
	}
}

// typeDeclaration steps over what TypeScript declares and does not run, and
// parses what does.
func (p *parser) typeDeclaration(l *tree.List) bool {
	word := p.text()
	rest := strings.TrimLeft(p.src[p.pos:], " \t")

	if rest == "" || !identByte[rest[0]] && !(rest[0] == '"' || rest[0] == '\'') || strings.HasPrefix(rest, "in ") ||
		strings.HasPrefix(rest, "instanceof ") {
		return false
	}

	switch word {
	case "abstract":
		p.next()

		return true // The class follows.
	case "declare":
		p.next()

		if p.acceptWord("global") && p.is('{') {
			l.Push(p.t, p.block())
		}

		return true
	case "interface":
		p.next()
		p.next()

		for p.tok != tokEOF && !p.is('{') && !p.is(';') {
			if p.is('<') && p.skipTypeArguments() {
				continue
			}

			p.next()
		}

		p.skipBrackets()
	case "type":
		p.next()
		p.next()

		if p.is('<') {
			p.skipTypeArguments()
		}

		if p.accept('=') {
			if p.is('|') || p.is('&') {
				p.next()
			}

			p.skipType()
		}

		p.tail()
	case "enum":
		p.next()

		n := tree.Node{Kind: tree.Assign, Flag: tree.FlagDeclare, Start: uint32(p.start)}
		n.A = p.named(tree.Name)
		p.next()

		if p.is('{') {
			n.B = p.object()
		}

		n.End = uint32(p.start)
		id := p.t.Add(n)
		l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: n.Start, End: n.End, A: id}))
	case "namespace", "module":
		p.next()

		for p.tok == tokName || p.tok == tokString || p.is('.') {
			p.next()
		}

		if p.is('{') {
			l.Push(p.t, p.block())
		}
	}

	return true
}
