package scan

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

func (p *parser) javaStatement(l *tree.List, word string) bool {
	n := tree.Node{Start: uint32(p.start)}

	switch word {
	case "import", "package":
		p.next()
		p.acceptWord("static")

		n.Kind, n.Start = tree.Import, uint32(p.start)

		for p.tok == tokName || p.is(".") || p.is("*") {
			n.End = uint32(p.end)
			p.next()
		}

		if word == "import" && n.End > n.Start {
			l.Push(p.t, p.t.Add(n))
		}

		p.tail()
	case "class", "interface", "enum", "record":
		if c := p.peek(); !p.identByte(c) {
			return false
		}

		l.Push(p.t, p.class())
	case "do":
		p.next()
		n.Kind, n.B = tree.While, p.body()

		if p.acceptWord("while") {
			n.A = p.test()
		}

		n.End = uint32(p.start)
		l.Push(p.t, p.t.Add(n))
		p.accept(";")
	case "switch":
		p.switchStatement(l)
	case "try":
		l.Push(p.t, p.tryStatement())
	case "else", "catch", "finally", "case":
		p.t.Fail(p.start)
		p.next()
	case "synchronized":
		if p.peek() != '(' {
			break
		}

		p.next()
		p.test()
		l.Push(p.t, p.body())
	default:
		if word == "new" || word == "this" || word == "super" || word == "assert" {
			if word == "assert" {
				p.next()
			}

			return false
		}

		at := p.pos
		if p.declaration(l, false) != 0 {
			p.tail()

			return true
		}

		return p.pos != at
	}

	return true
}

func (p *parser) peek() byte {
	i := p.pos
	for p.at(i) == ' ' || p.at(i) == '\t' {
		i++
	}

	return p.at(i)
}

func (p *parser) switchStatement(l *tree.List) {
	n := tree.Node{Kind: tree.Match, Start: uint32(p.start)}
	p.next()
	n.A = p.test()
	p.accept("{")

	var cases tree.List

	for !p.is("}") && p.tok != tokEOF {
		if p.acceptWord("case") || p.acceptWord("default") {
			for p.tok != tokEOF && !p.is(":") && !p.is("->") && !p.is("}") {
				p.next()
			}

			if p.is(":") || p.is("->") {
				p.next()
			}

			continue
		}

		at := p.pos
		p.statement(&cases)

		if p.pos == at {
			p.next()
		}
	}

	p.accept("}")
	n.B, n.End = cases.First, uint32(p.start)
	l.Push(p.t, p.t.Add(n))
}

func (p *parser) tryStatement() tree.ID {
	n := tree.Node{Kind: tree.Try, Start: uint32(p.start)}
	p.next()

	var body tree.List

	if p.is("(") {
		p.next()

		for !p.is(")") && p.tok != tokEOF {
			at := p.pos
			if p.declaration(&body, true) == 0 {
				p.expr(0)
			}

			p.accept(";")

			if p.pos == at {
				p.next()
			}
		}

		p.accept(")")
	}

	if p.is("{") {
		body.Push(p.t, p.block())
	}

	n.A = p.t.Add(tree.Node{Kind: tree.Block, Flag: tree.FlagDeclare, Start: n.Start, End: uint32(p.start), A: body.First})

	var l tree.List

	for {
		switch {
		case p.acceptWord("catch"):
			if p.is("(") {
				for !p.is(")") && p.tok != tokEOF {
					p.next()
				}

				p.accept(")")
			}
		case p.acceptWord("finally"):
		default:
			n.B, n.End = l.First, uint32(p.start)

			return p.t.Add(n)
		}

		if p.is("{") {
			l.Push(p.t, p.block())
		}
	}
}

// declaration parses "Type name = value, ..." or "Type name(...) {...}" if one
// starts here. It returns the first name; 0 if there is no declaration, in
// which case nothing but modifiers was taken. With one set it stops before
// what follows the first.
func (p *parser) declaration(l *tree.List, one bool) tree.ID {
	for p.tok == tokName && javaWords[p.text()] || p.is("@") && !strings.HasPrefix(p.src[p.end:], "interface") {
		if p.is("@") {
			p.next()
			p.suffix(p.primary())

			continue
		}

		p.next()
	}

	if p.word("class") || p.word("interface") || p.word("enum") || p.word("record") && p.identByte(p.peek()) {
		l.Push(p.t, p.class())

		return 0
	}

	if p.is("{") {
		l.Push(p.t, p.block()) // An initialiser.

		return 0
	}

	if p.is("<") {
		p.angles() // A generic method's parameters.
	}

	end := p.typeEnd()
	if end < 0 {
		return 0
	}

	p.pos = end
	p.next()

	first := tree.ID(0)

	for p.tok == tokName {
		name := p.named(tree.Name)
		n := tree.Node{Kind: tree.Assign, Flag: tree.FlagDeclare, Start: uint32(p.start), End: uint32(p.end), A: name}
		p.next()

		if p.is("(") {
			f := *p.t.At(name)
			f.Kind = tree.Func
			f.A, f.B = p.signature()
			l.Push(p.t, p.t.Add(f))

			return 0
		}

		for p.is("[") {
			p.next()
			p.accept("]")
		}

		if p.accept("=") {
			n.B = p.expr(2)
			n.End = p.t.At(n.B).End
		}

		id := p.t.Add(n)
		l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: n.Start, End: n.End, A: id}))

		if first == 0 {
			first = name
		}

		if one || !p.accept(",") {
			break
		}
	}

	return first
}

// typeEnd is the end of the type that starts at the current token, if a name
// and then a declaration follow; -1 otherwise.
func (p *parser) typeEnd() int {
	if p.tok != tokName {
		return -1
	}

	i := p.start
	ident := func() bool {
		from := i
		for i < len(p.src) && p.identByte(p.src[i]) {
			i++
		}

		return i > from
	}
	blanks := func() {
		for i < len(p.src) && strings.IndexByte(" \t\r\n", p.src[i]) >= 0 {
			i++
		}
	}

	for {
		if !ident() {
			return -1
		}

		if p.at(i) == '<' {
			depth := 0

			for ; i < len(p.src) && i < p.start+300; i++ {
				c := p.src[i]
				if c == '<' {
					depth++
				} else if c == '>' {
					depth--
					if depth == 0 {
						i++

						break
					}
				} else if !p.identByte(c) && strings.IndexByte(" .,?&[]\n", c) < 0 {
					return -1
				}
			}
		}

		if p.at(i) != '.' || p.at(i+1) == '.' {
			break
		}

		i++
	}

	for p.at(i) == '[' && p.at(i+1) == ']' {
		i += 2
	}

	end := i

	if strings.HasPrefix(p.src[i:], "...") {
		i += 3
		end = i
	}

	if c := p.at(i); c != ' ' && c != '\t' && c != '\n' && c != '\r' {
		return -1
	}

	blanks()

	name := i
	if !ident() {
		return -1
	}

	if w := p.src[name:i]; w == "instanceof" {
		return -1
	}

	blanks()

	if c := p.at(i); c == '=' && p.at(i+1) != '=' || c == ';' || c == ':' && p.at(i+1) != ':' || c == ',' || c == '(' || c == ')' || c == '[' {
		return end
	}

	return -1
}

// signature parses a method's (parameters) throws X {body}.
func (p *parser) signature() (params, body tree.ID) {
	p.next()

	var l tree.List

	for !p.is(")") && p.tok != tokEOF {
		// The name is the last word before a comma or bracket.
		var last tree.ID

		for !p.is(",") && !p.is(")") && p.tok != tokEOF {
			switch {
			case p.is("<") && p.angles():
				continue
			case p.tok == tokName:
				last = p.named(tree.Param)
			}

			p.next()
		}

		l.Push(p.t, last)
		p.accept(",")
	}

	p.accept(")")

	for p.tok == tokName && p.word("throws") || p.tok == tokName || p.is(",") || p.is(".") {
		p.next()
	}

	if p.is("{") {
		body = p.block()
	} else {
		p.accept(";")
	}

	return l.First, body
}

func (p *parser) class() tree.ID {
	p.next()

	name := p.text()
	c := *p.t.At(p.named(tree.Name))
	c.Kind = tree.Class
	p.next()
	p.angles()

	if p.is("(") {
		p.list(")") // A record's components.
	}

	if p.acceptWord("extends") {
		c.A = p.named(tree.Name)
		p.next()
		p.angles()
	}

	for p.tok != tokEOF && !p.is("{") && !p.is(";") {
		p.next()
	}

	if p.is("{") {
		c.B = p.members(name)
	}

	return p.t.Add(c)
}

// members parses a class's body; name is the class's, by which constructors
// are known.
func (p *parser) members(name string) tree.ID {
	b := tree.Node{Kind: tree.Block, Start: uint32(p.start)}
	nest := p.nest
	p.nest = 0

	p.next()

	var l tree.List

	for !p.is("}") && p.tok != tokEOF {
		if p.accept(";") || p.accept(",") {
			continue
		}

		if !p.enter() {
			p.next()

			continue
		}

		at := p.pos

		for p.tok == tokName && javaWords[p.text()] {
			p.next()
		}

		if p.word(name) && p.peek() == '(' {
			f := *p.t.At(p.named(tree.Name))
			f.Kind, f.Alt = tree.Func, p.t.Alt("<init>")
			p.next()

			f.A, f.B = p.signature()
			l.Push(p.t, p.t.Add(f))
		} else {
			var members tree.List

			p.declaration(&members, false)

			for x := members.First; x != 0; {
				next := p.t.At(x).Next
				p.t.At(x).Next = 0
				l.Push(p.t, p.field(x))
				x = next
			}
		}

		p.depth--

		if p.pos == at {
			// Constants of an enum, and what cannot be read.
			x := p.expr(0)
			l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Expr, Start: uint32(p.start), End: uint32(p.start), A: x}))

			if p.pos == at {
				p.next()
			}
		}
	}

	b.A, b.End = l.First, uint32(p.end)
	p.nest = nest

	p.accept("}")

	return p.t.Add(b)
}

// field turns a declaration into a member.
func (p *parser) field(id tree.ID) tree.ID {
	n := *p.t.At(id)
	if n.Kind != tree.Expr {
		return id
	}

	a := *p.t.At(n.A)
	if a.Kind != tree.Assign {
		return id
	}

	return p.t.Add(tree.Node{Kind: tree.Pair, Start: n.Start, End: n.End, A: a.A, B: a.B})
}
