package javascript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

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

		switch p.text() {
		case "const", "let", "var", "function": // What is declared is defined elsewhere.
			p.statement(new(tree.List))
		case "global":
			if p.next(); p.is('{') {
				l.Push(p.t, p.block())
			}
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
