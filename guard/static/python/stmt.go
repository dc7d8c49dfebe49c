package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// parse reads a text into a tree. It never fails: what cannot be read is
// skipped and counted.
func parse(src string) *tree.Tree {
	p := &parser{t: tree.New(src), src: src, notebook: true}

	if strings.HasPrefix(src, "\ufeff") {
		p.pos = 3
		p.lineStart = 3
	}

	if i := hidingEncoding(src); i >= 0 {
		// What the interpreter reads is not what stands here.
		p.t.TooDeep(i)
	}

	if x := p.cellMagic(); x != 0 {
		p.t.Root = p.t.Add(tree.Node{Kind: tree.Block, End: uint32(len(src)), A: x})

		return p.t
	}

	var l tree.List

	p.autoMagic(&l)
	p.next()

	for p.tok != tokEOF {
		p.line(&l)
	}

	p.t.Root = p.t.Add(tree.Node{Kind: tree.Block, End: uint32(len(src)), A: l.First})

	return p.t
}

// hidingEncoding is the offset of a declaration, in the first two lines, of an
// encoding in which plain letters stand for other text; -1 if there is none.
func hidingEncoding(src string) int {
	offset := 0

	for range 2 {
		line, rest, _ := strings.Cut(src[offset:], "\n")

		_, name, found := strings.Cut(line, "coding")
		if found && strings.HasPrefix(strings.TrimLeft(line, " \t\f\ufeff"), "#") {
			name = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(strings.TrimLeft(name, ":= \t")))
			for _, bad := range []string{"utf7", "unicodeescape", "rawunicodeescape", "utf16", "utf32", "punycode", "idna"} {
				if strings.HasPrefix(name, bad) {
					return offset
				}
			}
		}

		if rest == "" {
			break
		}

		offset += len(line) + 1
	}

	return -1
}

// line parses the statements of one logical line, with the blocks they open.
func (p *parser) line(l *tree.List) {
	if p.tok == tokNewline {
		p.next()

		return
	}

	if !p.enter() {
		p.skipLine()

		return
	}
	defer func() { p.depth-- }()

	at := p.pos
	p.nest = 0

	// The token was read when brackets may have been open.
	if p.tok == tokOp && (p.op == '(' || p.op == '[' || p.op == '{') {
		p.nest = 1
	}

	p.statement(l)

	if p.pos == at && p.tok != tokEOF {
		// Nothing was taken; take one token.
		p.t.Fail(p.start)
		p.next()
	}
}

// skipLine drops tokens up to the end of the logical line.
func (p *parser) skipLine() {
	p.nest = 0

	for p.tok != tokNewline && p.tok != tokEOF {
		p.next()
	}
}

// suite parses what a colon opens: the rest of the line, or the lines indented
// deeper than col.
func (p *parser) suite(col int) tree.ID {
	n := tree.Node{Kind: tree.Block, Start: uint32(p.start)}

	var l tree.List

	if p.is(':') {
		p.nest = 0
		p.next()
	} else {
		p.t.Fail(p.start)
		p.skipLine()
	}

	if p.tok != tokNewline {
		// Simple statements on the same line.
		for p.tok != tokNewline && p.tok != tokEOF {
			at := p.pos
			p.line(&l)

			if p.tok == tokEOF || p.pos == at || p.lineStart > int(n.Start) {
				break
			}
		}
	}

	if l.First == 0 {
		for p.tok != tokEOF {
			if p.tok == tokNewline {
				p.next()

				continue
			}

			if p.indent() <= col {
				break
			}

			p.line(&l)
		}
	}

	n.A, n.End = l.First, uint32(p.start)

	return p.t.Add(n)
}

// tail expects the end of a simple statement.
func (p *parser) tail() {
	switch {
	case p.tok == tokNewline || p.is(';'):
		p.next()
	case p.tok == tokEOF:
	default:
		p.t.Fail(p.start)
		p.nest = 0

		if p.closes() || p.is(':') || p.is('=') {
			p.next()
		}
	}
}

// statement parses one statement.
func (p *parser) statement(l *tree.List) {
	start := p.start

	switch p.tok {
	case tokName:
		if p.word(l) {
			return
		}
	case tokOp:
		switch p.op {
		case '@':
			p.decorated(l)

			return
		case ';', '%', '!', '?', '/', ',', '%' | '='<<8, '!' | '='<<8, '/' | '/'<<8:
			if p.magic(l) {
				return
			}
		}
	}

	x := p.list(bindNone)

	switch {
	case p.is(':'):
		p.next()

		if p.tok == tokNewline || p.tok == tokEOF {
			break
		}

		ann := p.element(bindNone)
		l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(ann).Start, End: uint32(p.start), A: ann}))

		if p.is('=') {
			x = p.assignment(x)
		}
	case p.is('=') || p.is(opAugment):
		x = p.assignment(x)
	case p.is('?'):
		// A question to the notebook: name? and name??.
		for p.is('?') {
			p.next()
		}
	}

	l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: uint32(start), End: uint32(p.lastEnd()), A: x}))
	p.tail()
}

// assignment parses "= value" after a target; the value may be an assignment.
func (p *parser) assignment(x tree.ID) tree.ID {
	first := tree.ID(0)
	last := tree.ID(0)

	for p.is('=') || p.is(opAugment) {
		n := tree.Node{Kind: tree.Assign, Start: uint32(p.start), A: x}
		if p.op == opAugment {
			n.Op = p.augmented
		}

		at := p.end
		p.next()

		var v tree.ID
		if m := p.magicValue(at); m != 0 {
			v = m
		} else {
			v = p.list(bindNone)
		}

		n.End = p.t.At(v).End
		n.B = v
		id := p.t.Add(n)

		if first == 0 {
			first = id
		} else {
			// a = b = v: b is a target too.
			p.t.At(last).B = id
		}

		last, x = id, v
	}

	return first
}

// word parses a statement that starts with a keyword. It returns false if the
// word is an ordinary name here.
func (p *parser) word(l *tree.List) bool {
	start, col := p.start, 0
	n := tree.Node{Start: uint32(start)}
	word := p.src[p.start:p.end]

	switch word {
	case "if", "while", "for", "try", "with", "def", "class", "match", "async", "elif", "else", "except", "finally":
		col = p.indent()
	}

	switch word {
	case "import":
		p.next()
		p.imports(l)
	case "from":
		p.importFrom(l)
	case "if", "elif":
		l.Push(p.t, p.ifStatement(col))
	case "while":
		p.next()
		n.Kind, n.A = tree.While, p.expr(bindNone)
		n.B = p.suite(col)
		n.C = p.follow("else", col)
		n.End = uint32(p.start)
		l.Push(p.t, p.t.Add(n))
	case "for":
		l.Push(p.t, p.forStatement(col))
	case "try":
		l.Push(p.t, p.tryStatement(col))
	case "with":
		l.Push(p.t, p.withStatement(col))
	case "async":
		p.next()

		switch {
		case p.keyword("for"):
			l.Push(p.t, p.forStatement(col))
		case p.keyword("with"):
			l.Push(p.t, p.withStatement(col))
		case p.keyword("def"):
			l.Push(p.t, p.function(col, 0))
		default:
			p.t.Fail(p.start)
		}
	case "def":
		l.Push(p.t, p.function(col, 0))
	case "class":
		l.Push(p.t, p.class(col, 0))
	case "else", "finally", "except":
		// Without what it belongs to: the code is broken, and read all the same.
		p.t.Fail(p.start)
		p.next()

		if word == "except" && !p.is(':') {
			p.list(bindNone)
		}

		l.Push(p.t, p.suite(col))
	case "return", "raise":
		n.Kind = tree.Return
		if word == "raise" {
			n.Kind = tree.Raise
		}

		p.next()

		if !p.endsList() {
			n.A = p.list(bindNone)
		}

		if p.keyword("from") {
			p.next()

			l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: uint32(start), A: p.expr(bindNone)}))
		}

		n.End = uint32(p.lastEnd())
		l.Push(p.t, p.t.Add(n))
		p.tail()
	case "del", "global", "nonlocal", "assert":
		switch word {
		case "del":
			n.Kind = tree.Delete
		case "assert":
			n.Kind = tree.Expr
		default:
			n.Kind = tree.Global
		}

		p.next()
		n.A = p.list(bindNone)
		n.End = uint32(p.lastEnd())
		l.Push(p.t, p.t.Add(n))
		p.tail()
	case "pass", "break", "continue":
		l.Push(p.t, p.named(tree.Jump))
		p.next()
		p.tail()
	case "print", "exec":
		// Python 2's statements are read as calls.
		if c := p.peek(); !(identByte[c] || c == '"' || c == '\'') || p.nextIsOperatorWord() {
			return false
		}

		callee := p.named(tree.Name)
		p.next()

		n.Kind, n.A, n.Start = tree.Call, callee, uint32(p.start)
		n.B = p.expr(bindNone)

		if p.keyword("in") {
			p.next()
			p.list(bindNone)
		}

		n.End = uint32(p.lastEnd())
		call := p.t.Add(n)
		l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: uint32(start), End: n.End, A: call}))

		for p.is(',') {
			p.next()

			if !p.endsList() {
				x := p.expr(bindNone)
				l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: p.t.At(x).Start, End: uint32(p.start), A: x}))
			}
		}

		p.tail()
	case "match":
		return p.matchStatement(l, col)
	case "type":
		if !identByte[p.peek()] || p.nextIsOperatorWord() {
			return false
		}

		p.next() // What follows reads as an assignment.

		return false
	default:
		return false
	}

	return true
}

// peek is the first byte of the next token, on the same line.
func (p *parser) peek() byte {
	i := p.pos
	for i < len(p.src) && (p.src[i] == ' ' || p.src[i] == '\t') {
		i++
	}

	return p.byteAt(i)
}

// nextIsOperatorWord says whether the next token is a word that makes the
// current name an operand.
func (p *parser) nextIsOperatorWord() bool {
	i := p.pos
	for i < len(p.src) && (p.src[i] == ' ' || p.src[i] == '\t') {
		i++
	}

	j := i
	for j < len(p.src) && identByte[p.src[j]] {
		j++
	}

	switch p.src[i:j] {
	case "in", "is", "and", "or", "not", "if", "else", "for", "as":
		return true
	}

	return false
}

func (p *parser) nextIsEllipsis() bool {
	return strings.HasPrefix(strings.TrimLeft(p.src[p.pos:], " \t"), "...")
}
