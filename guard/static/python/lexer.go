package python

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// token is a token's kind.
type token uint8

const (
	tokEOF token = iota
	tokNewline
	tokName
	tokNumber
	tokString
	tokOp
)

// Operators are packed into a uint16, first byte low. Every augmented
// assignment is opAugment.
const (
	opAugment = uint16('=') | uint16('+')<<8
	opWalrus  = uint16(':') | uint16('=')<<8
	opPower   = uint16('*') | uint16('*')<<8
	opArrow   = uint16('-') | uint16('>')<<8
)

// identByte marks the bytes of identifiers; all of UTF-8 beyond ASCII is taken
// as such.
var identByte = func() (t [256]bool) {
	for i := range t {
		c := byte(i)
		t[i] = c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
	}

	return t
}()

// parser is lexer and parser in one: it is always one token ahead.
type parser struct {
	t   *tree.Tree
	src string
	pos int // where the next token is looked for
	// The current token.
	tok        token
	start, end int
	op         uint16
	augmented  byte // the operator of an opAugment
	lineStart  int  // where the current token's logical line starts
	nest       int  // open brackets: line ends are blank inside
	depth      int  // recursion
	notebook   bool // a notebook's own syntax is read
}

func (p *parser) byteAt(i int) byte {
	if i < len(p.src) {
		return p.src[i]
	}

	return 0
}

// next moves to the next token.
func (p *parser) next() {
	src, n := p.src, len(p.src)
	i := p.pos

	for i < n {
		c := src[i]

		switch {
		case c == ' ' || c == '\t' || c == '\f' || c == 0:
			i++

			continue
		case c == '#':
			for i < n && src[i] != '\n' && src[i] != '\r' {
				i++
			}

			continue
		case c == '\n' || c == '\r':
			if p.nest > 0 {
				i++

				continue
			}

			p.tok, p.start = tokNewline, i
			i++

			if c == '\r' && i < n && src[i] == '\n' {
				i++
			}

			p.end, p.pos, p.lineStart = i, i, i

			return
		case c == '\\':
			if j := lineEnd(src, i+1); j > 0 {
				i = j

				continue
			}

			p.setOp(i, i+1, '\\')

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
		}

		p.operator(i)

		return
	}

	p.set(tokEOF, n, n)
}

func (p *parser) set(tok token, start, end int) {
	p.tok, p.start, p.end, p.pos = tok, start, end, end
}

func (p *parser) setOp(start, end int, op uint16) {
	p.set(tokOp, start, end)
	p.op = op
}

// lineEnd returns the offset after a line end at i, or -1.
func lineEnd(src string, i int) int {
	switch {
	case i >= len(src):
		return -1
	case src[i] == '\n':
		return i + 1
	case src[i] != '\r':
		return -1
	case i+1 < len(src) && src[i+1] == '\n':
		return i + 2
	default:
		return i + 1
	}
}

// name lexes an identifier, or a string literal with a prefix.
func (p *parser) name(i int) {
	src, n := p.src, len(p.src)
	j := i + 1

	for j < n && identByte[src[j]] {
		j++
	}

	if j < n && j-i <= 2 && (src[j] == '"' || src[j] == '\'') && isPrefix(src[i:j]) {
		p.set(tokString, i, j)

		if !isFormat(src[i:j]) {
			p.end = stringEnd(src, j)
			p.pos = p.end
		}

		return
	}

	p.set(tokName, i, j)
}

func isPrefix(s string) bool {
	for i := range len(s) {
		switch s[i] | 0x20 {
		case 'r', 'b', 'u', 'f', 't':
		default:
			return false
		}
	}

	return true
}

// isFormat says whether a prefix is that of an f-string or t-string. Their
// extent is found by the parser.
func isFormat(prefix string) bool {
	for i := range len(prefix) {
		if c := prefix[i] | 0x20; c == 'f' || c == 't' {
			return true
		}
	}

	return false
}

// stringEnd returns the end of the literal whose opening quote is at i. A
// literal without an end ends at its line, or at the text's end.
func stringEnd(src string, i int) int {
	q, n := src[i], len(src)

	if i+2 < n && src[i+1] == q && src[i+2] == q {
		triple := src[i : i+3]
		j := i + 3

		for j < n {
			k := strings.IndexByte(src[j:], q)
			if k < 0 {
				return n
			}

			// The quote may be escaped, so count the backslashes before it.
			k += j
			e := k

			for e > j && src[e-1] == '\\' {
				e--
			}

			if (k-e)%2 == 1 {
				j = k + 1

				continue
			}

			if strings.HasPrefix(src[k:], triple) {
				return k + 3
			}

			j = k + 1
		}

		return n
	}

	for j := i + 1; j < n; j++ {
		switch c := src[j]; c {
		case q:
			return j + 1
		case '\\':
			j++

			if j+1 < n && src[j] == '\r' && src[j+1] == '\n' {
				j++
			}
		case '\n', '\r':
			return j
		}
	}

	return n
}

// number returns the end of the number that starts at i.
func number(src string, i int) int {
	n := len(src)
	j := i + 1

	if src[i] == '0' && j < n {
		ok := func(byte) bool { return false }

		switch src[j] | 0x20 {
		case 'x':
			ok = func(c byte) bool {
				return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' || c == '_'
			}
		case 'o', 'b':
			ok = func(c byte) bool { return '0' <= c && c <= '9' || c == '_' }
		}

		k := j + 1
		for k < n && ok(src[k]) {
			k++
		}

		if k > j+1 {
			return k
		}
	}

	dot := src[i] == '.'

	for j < n {
		c := src[j]

		switch {
		case '0' <= c && c <= '9' || c == '_':
			j++
		case c == '.' && !dot:
			dot = true
			j++
		case c|0x20 == 'e' && j+1 < n && '0' <= src[j+1] && src[j+1] <= '9':
			dot = true
			j += 2
		case c|0x20 == 'e' && j+2 < n && (src[j+1] == '+' || src[j+1] == '-') && '0' <= src[j+2] && src[j+2] <= '9':
			dot = true
			j += 3
		case c|0x20 == 'j':
			return j + 1
		default:
			return j
		}
	}

	return j
}

// operator lexes an operator or delimiter, and counts brackets.
func (p *parser) operator(i int) {
	src, n := p.src, len(p.src)
	c := src[i]
	op, l := uint16(c), 1

	if i+1 < n {
		d := src[i+1]
		two := false

		switch c {
		case '=', '!', ':':
			two = d == '='
		case '<', '>', '*', '/':
			two = d == '=' || d == c
		case '-':
			two = d == '=' || d == '>'
		case '+', '%', '&', '|', '^', '@':
			two = d == '='
		}

		if two {
			op, l = op|uint16(d)<<8, 2

			switch {
			case d == c && c != '=' && i+2 < n && src[i+2] == '=':
				op, l, p.augmented = opAugment, 3, c
				if c == '*' || c == '/' {
					p.augmented = c + 1 // neither folds
				}
			case d == '=' && strings.IndexByte("+-*/%&|^@", c) >= 0:
				op, p.augmented = opAugment, c
			}
		}
	}

	switch c {
	case '(', '[', '{':
		p.nest++
	case ')', ']', '}':
		if p.nest > 0 {
			p.nest--
		}
	}

	p.setOp(i, i+l, op)
}

func (p *parser) is(op uint16) bool { return p.tok == tokOp && p.op == op }

func (p *parser) keyword(s string) bool {
	return p.tok == tokName && p.src[p.start:p.end] == s
}

// closes says whether the token is a closing bracket.
func (p *parser) closes() bool {
	return p.tok == tokOp && (p.op == ')' || p.op == ']' || p.op == '}')
}

// indent is the column of the current token, tabs to multiples of eight.
func (p *parser) indent() int {
	col := 0

	for i := p.lineStart; i < p.start; i++ {
		switch p.src[i] {
		case '\t':
			col = col&^7 + 8
		case '\f':
			col = 0
		case ' ', 0:
			col++
		default:
			// A continued blank line, or the inside of a line.
			return col
		}
	}

	return col
}

// named gives a node the text of the current token. Python normalises
// identifiers to NFKC, so that full-width letters name the same function.
func (p *parser) named(kind tree.Kind) tree.ID {
	n := tree.Node{Kind: kind, Start: uint32(p.start), End: uint32(p.end)}
	s := p.src[p.start:p.end]

	for i := range len(s) {
		if s[i] >= 0x80 {
			if k := norm.NFKC.String(s); k != s {
				n.Alt = p.t.Alt(k)
			}

			break
		}
	}

	return p.t.Add(n)
}
