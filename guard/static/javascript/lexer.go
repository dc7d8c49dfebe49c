package javascript

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// token is a token's kind.
type token uint8

const (
	tokEOF token = iota
	tokName
	tokNumber
	tokString
	tokTemplate
	tokPrivate // #name
	tokOp
)

// op is an operator of up to four bytes, the first one lowest.
type op uint32

func opOf(s string) op {
	var o op
	for i := range len(s) {
		o |= op(s[i]) << (8 * i)
	}

	return o
}

var (
	opArrow     = opOf("=>")
	opSpread    = opOf("...")
	opOptional  = opOf("?.")
	opIncrement = opOf("++")
	opDecrement = opOf("--")
	opNullish   = opOf("??")
	opPower     = opOf("**")
	opDivide    = opOf("/=")
)

var identByte = func() (t [256]bool) {
	for i := range t {
		c := byte(i)
		t[i] = c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80 || c == '\\'
	}

	return t
}()

// parser is lexer and parser in one: it is always one token ahead.
type parser struct {
	t   *tree.Tree
	src string
	pos int
	// The current token.
	tok        token
	start, end int
	op         op
	newline    bool // a line end stands before the token
	depth      int
	// inCond is how many conditionals are open whose colon is still to come.
	inCond int
	// noIn stops expressions before "in" (the head of a for).
	noIn bool
	// limit, if not 0, is how far types are skipped.
	limit int
	// declares is set when the block being parsed declares something.
	declares bool
}

func (p *parser) byteAt(i int) byte {
	if i < len(p.src) {
		return p.src[i]
	}

	return 0
}

func (p *parser) set(tok token, start, end int) {
	p.tok, p.start, p.end, p.pos = tok, start, end, end
}

// next moves to the next token.
func (p *parser) next() {
	src, n := p.src, len(p.src)
	i := p.pos
	p.newline = false

	for i < n {
		c := src[i]

		switch {
		case c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == 0:
			i++
		case c == '\n' || c == '\r':
			p.newline = true
			i++
		case c == '/' && i+1 < n && src[i+1] == '/':
			i = lineComment(src, i)
		case c == '/' && i+1 < n && src[i+1] == '*':
			end := strings.Index(src[i+2:], "*/")
			if end < 0 {
				p.t.Fail(i)

				i = n

				break
			}

			if strings.IndexByte(src[i:i+2+end], '\n') >= 0 {
				p.newline = true
			}

			i += end + 4
		case c >= 0x80:
			r, size := utf8.DecodeRuneInString(src[i:])
			if r == '\u2028' || r == '\u2029' {
				p.newline = true
				i += size

				break
			}

			if r == '\ufeff' || unicode.Is(unicode.Zs, r) {
				i += size

				break
			}

			p.name(i)

			return
		case '0' <= c && c <= '9' || c == '.' && i+1 < n && '0' <= src[i+1] && src[i+1] <= '9':
			p.set(tokNumber, i, number(src, i))

			return
		case identByte[c]:
			p.name(i)

			return
		case c == '"' || c == '\'':
			p.set(tokString, i, stringEnd(src, i))

			return
		case c == '`':
			p.set(tokTemplate, i, i+1)

			return
		case c == '#' && i+1 < n && identByte[src[i+1]]:
			p.name(i + 1)
			p.tok, p.start = tokPrivate, i

			return
		default:
			l := operator(src[i:])
			p.set(tokOp, i, i+l)
			p.op = opOf(src[i : i+l])

			return
		}
	}

	p.set(tokEOF, n, n)
}

// lineComment is the end of the comment at i. Line and paragraph separators
// end it too.
func lineComment(src string, i int) int {
	for ; i < len(src); i++ {
		switch src[i] {
		case '\n', '\r':
			return i
		case 0xe2:
			if strings.HasPrefix(src[i:], "\u2028") || strings.HasPrefix(src[i:], "\u2029") {
				return i
			}
		}
	}

	return len(src)
}

func (p *parser) name(i int) {
	j := i
	for j < len(p.src) {
		c := p.src[j]

		if c == '\\' && j+2 < len(p.src) && p.src[j+1] == 'u' && p.src[j+2] == '{' {
			// \u{65}: the braces belong to the name.
			k := strings.IndexByte(p.src[j:min(j+12, len(p.src))], '}')
			if k < 0 {
				break
			}

			j += k + 1

			continue
		}

		if !identByte[c] || c >= 0x80 && isSpace(p.src[j:]) {
			break
		}

		j++
	}

	p.set(tokName, i, max(j, i+1))
}

func isSpace(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)

	return r == '\u2028' || r == '\u2029' || r == '\ufeff' || unicode.Is(unicode.Zs, r)
}

func number(src string, i int) int {
	j := i + 1

	if src[i] == '0' && j < len(src) && strings.IndexByte("xXbBoO", src[j]) >= 0 {
		j++
		for j < len(src) && (src[j] == '_' || '0' <= src[j] && src[j] <= '9' || 'a' <= src[j]|0x20 && src[j]|0x20 <= 'f') {
			j++
		}
	} else {
		for j < len(src) {
			c := src[j]

			switch {
			case '0' <= c && c <= '9', c == '_', c == '.' && strings.IndexByte(src[i:j], '.') < 0:
				j++
			case c|0x20 == 'e' && j+1 < len(src) && ('0' <= src[j+1] && src[j+1] <= '9' || src[j+1] == '-' || src[j+1] == '+'):
				j += 2
			default:
				goto done
			}
		}
	}
done:
	if j < len(src) && src[j] == 'n' {
		j++
	}

	return j
}

// stringEnd is the end of the literal whose quote is at i; without an end it
// stops at the line's.
func stringEnd(src string, i int) int {
	q := src[i]

	for j := i + 1; j < len(src); j++ {
		switch src[j] {
		case q:
			return j + 1
		case '\\':
			j++

			if j+1 < len(src) && src[j] == '\r' && src[j+1] == '\n' {
				j++
			}
		case '\n', '\r':
			return j
		}
	}

	return len(src)
}

// operator is the length of the operator that s starts with.
func operator(s string) int {
	at := func(i int) byte {
		if i < len(s) {
			return s[i]
		}

		return 0
	}
	c, d := s[0], at(1)

	switch c {
	case '=':
		switch {
		case d == '=' && at(2) == '=':
			return 3
		case d == '=' || d == '>':
			return 2
		}
	case '!':
		switch {
		case d == '=' && at(2) == '=':
			return 3
		case d == '=':
			return 2
		}
	case '+', '-':
		if d == c || d == '=' {
			return 2
		}
	case '*', '&', '|', '<':
		switch {
		case d == c && at(2) == '=':
			return 3
		case d == c || d == '=':
			return 2
		}
	case '>':
		switch {
		case d == '>' && at(2) == '>' && at(3) == '=':
			return 4
		case d == '>' && (at(2) == '>' || at(2) == '='):
			return 3
		case d == '>' || d == '=':
			return 2
		}
	case '/', '%', '^':
		if d == '=' {
			return 2
		}
	case '?':
		switch {
		case d == '?' && at(2) == '=':
			return 3
		case d == '?':
			return 2
		case d == '.' && !('0' <= at(2) && at(2) <= '9'):
			return 2
		}
	case '.':
		if d == '.' && at(2) == '.' {
			return 3
		}
	}

	return 1
}

// regexp reads a regular expression whose first slash is the current token.
func (p *parser) regexp() tree.ID {
	class := false
	i := p.start + 1

loop:
	for ; i < len(p.src); i++ {
		switch p.src[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				break loop
			}
		case '\n', '\r':
			// No regular expression after all.
			p.t.Fail(p.start)
			p.next()

			return p.t.Add(tree.Node{Kind: tree.Bad, Start: uint32(p.start), End: uint32(p.start)})
		}
	}

	n := tree.Node{Kind: tree.Regexp, Start: uint32(p.start + 1), End: uint32(min(i, len(p.src)))}
	i++

	for i < len(p.src) && 'a' <= p.src[i] && p.src[i] <= 'z' {
		i++
	}

	p.pos = min(i, len(p.src))
	p.next()

	return p.t.Add(n)
}

func (p *parser) is(c byte) bool     { return p.tok == tokOp && p.op == op(c) }
func (p *parser) isOp(o op) bool     { return p.tok == tokOp && p.op == o }
func (p *parser) word(s string) bool { return p.tok == tokName && p.src[p.start:p.end] == s }
func (p *parser) text() string       { return p.src[p.start:p.end] }
func (p *parser) closes() bool       { return p.is(')') || p.is(']') || p.is('}') }
func (p *parser) accept(c byte) bool {
	if p.is(c) {
		p.next()

		return true
	}

	return false
}

func (p *parser) acceptWord(s string) bool {
	if p.word(s) {
		p.next()

		return true
	}

	return false
}

// peek is the first byte after the current token, blanks left out.
func (p *parser) peek() byte {
	i := p.pos
	for i < len(p.src) && (p.src[i] == ' ' || p.src[i] == '\t' || p.src[i] == '\n' || p.src[i] == '\r') {
		i++
	}

	return p.byteAt(i)
}

// named makes a node of the current token's text; escapes in identifiers name
// the same thing.
func (p *parser) named(kind tree.Kind) tree.ID {
	n := tree.Node{Kind: kind, Start: uint32(p.start), End: uint32(p.end)}

	if s := p.src[p.start:p.end]; strings.IndexByte(s, '\\') >= 0 {
		n.Alt = p.t.Alt(flow.Escapes(s, false, false))
	}

	if p.tok == tokString {
		// A quoted key.
		n.Start++
		n.End = max(n.End-1, n.Start)

		if s := p.src[n.Start:n.End]; strings.IndexByte(s, '\\') >= 0 {
			n.Alt = p.t.Alt(flow.Escapes(s, false, false))
		}
	}

	return p.t.Add(n)
}
