// Package scan reads R and Java, tolerantly and far from completely, into the
// syntax tree that package flow follows: calls, assignments, functions, blocks
// and literals. Types and declarations that do nothing are stepped over.
package scan

import (
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Dialect says which language is read.
type Dialect uint8

// The dialects.
const (
	R Dialect = iota + 1
	Java
)

type token uint8

const (
	tokEOF token = iota
	tokNewline
	tokName
	tokNumber
	tokString
	tokOp
)

type parser struct {
	t          *tree.Tree
	src        string
	d          Dialect
	pos        int
	tok        token
	start, end int
	op         string
	// The inside of the current string.
	inStart, inEnd int
	raw            bool
	unclosed       map[string]bool // ends of raw strings that are not there
	newline        bool
	nest           int
	depth          int
}

var identByte = func() (t [256]bool) {
	for i := range t {
		c := byte(i)
		t[i] = c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
	}

	return t
}()

func (p *parser) identByte(c byte) bool {
	return identByte[c] || p.d == R && c == '.' || p.d == Java && c == '$'
}

func (p *parser) at(i int) byte {
	if i < len(p.src) {
		return p.src[i]
	}

	return 0
}

func (p *parser) set(tok token, start, end int) {
	p.tok, p.start, p.end, p.pos = tok, start, end, end
}

// longer marks the second bytes of the operators of more than one.
var longer = func() (t [256]bool) {
	for _, c := range []byte("=<>-+&|:.") {
		t[c] = true
	}

	return t
}()

// operators of more than one byte, longest first.
var operators = [...][]string{
	R: {"<<-", "->>", ":::", "<-", "->", "::", "|>", "==", "!=", "<=", ">=", "&&", "||", ":="},
	Java: {
		">>>=", "<<=", ">>=", ">>>", "...", "->", "::", "==", "!=", "<=", ">=", "&&", "||", "++", "--", "+=", "-=", "*=",
		"/=", "%=", "&=", "|=", "^=", "<<",
	},
}

func (p *parser) next() {
	src, n := p.src, len(p.src)
	i := p.pos
	p.newline = false

	for i < n {
		c := src[i]

		switch {
		case c == ' ' || c == '\t' || c == '\f' || c == 0:
			i++
		case c == '\n' || c == '\r':
			p.newline = true

			if p.d == R && p.nest == 0 {
				p.set(tokNewline, i, i+1)

				return
			}

			i++
		case p.d == R && c == '#' || p.d == Java && c == '/' && p.at(i+1) == '/':
			for i < n && src[i] != '\n' && src[i] != '\r' {
				i++
			}
		case p.d == Java && c == '/' && p.at(i+1) == '*':
			end := strings.Index(src[i+2:], "*/")
			if end < 0 {
				p.t.Fail(i)

				i = n
			} else {
				i += end + 4
			}
		case '0' <= c && c <= '9' || c == '.' && '0' <= p.at(i+1) && p.at(i+1) <= '9':
			j := i + 1
			for j < n && (identByte[src[j]] || src[j] == '.' || (src[j] == '+' || src[j] == '-') && src[j-1]|0x20 == 'e' && p.at(i+1)|0x20 != 'x') {
				j++
			}

			p.set(tokNumber, i, j)

			return
		case p.d == R && (c == 'r' || c == 'R') && p.rawString(i):
			return
		case p.d == Java && c == '\\' && p.at(i+1) == 'u':
			p.name(i)

			return
		case p.identByte(c):
			p.name(i)

			return
		case c == '"' || c == '\'' || c == '`' && p.d == R:
			p.str(i)

			return
		case p.d == R && c == '%':
			// %in%, %>% and the like.
			if end := strings.IndexByte(src[i+1:min(n, i+20)], '%'); end >= 0 {
				p.set(tokOp, i, i+end+2)
				p.op = src[i : i+end+2]

				return
			}

			p.setOp(i, 1)

			return
		default:
			if i+1 < n && longer[src[i+1]] {
				for _, o := range operators[p.d] {
					if o[0] == c && strings.HasPrefix(src[i:], o) {
						p.setOp(i, len(o))

						return
					}
				}
			}

			p.setOp(i, 1)

			return
		}
	}

	p.set(tokEOF, n, n)
}

func (p *parser) setOp(i, l int) {
	p.set(tokOp, i, i+l)
	p.op = p.src[i : i+l]

	switch p.op {
	case "(", "[":
		p.nest++
	case ")", "]":
		if p.nest > 0 {
			p.nest--
		}
	}
}

func (p *parser) name(i int) {
	j := i
	for j < len(p.src) {
		if p.d == Java && p.src[j] == '\\' && p.at(j+1) == 'u' && j+6 <= len(p.src) {
			j += 6

			continue
		}

		if !p.identByte(p.src[j]) {
			break
		}

		j++
	}

	p.set(tokName, i, max(j, i+1))
}

// rawString lexes R's r"(...)" with any brackets and dashes.
func (p *parser) rawString(i int) bool {
	q := p.at(i + 1)
	if q != '"' && q != '\'' {
		return false
	}

	j := i + 2
	for p.at(j) == '-' && j < i+20 {
		j++
	}

	dashes := p.src[i+2 : j]

	open := strings.IndexByte("([{", p.at(j))
	if open < 0 || j >= len(p.src) {
		return false
	}

	closing := ")]}"[open:open+1] + dashes + string(q)

	// What was not found once is not there later, and to look again and again
	// could be made to take for ever.
	if p.unclosed[closing] {
		return false
	}

	end := strings.Index(p.src[j+1:], closing)
	if end < 0 {
		if p.unclosed == nil {
			p.unclosed = map[string]bool{}
		}

		p.unclosed[closing] = true

		return false
	}

	p.inStart, p.inEnd, p.raw = j+1, j+1+end, true
	p.set(tokString, i, p.inEnd+len(closing))

	return true
}

func (p *parser) str(i int) {
	q := p.src[i]
	p.raw = false

	if p.d == Java && strings.HasPrefix(p.src[i:], `"""`) {
		end := strings.Index(p.src[i+3:], `"""`)
		if end < 0 {
			p.t.Fail(i)

			end = len(p.src) - i - 3
		}

		p.inStart, p.inEnd = i+3, i+3+end
		p.set(tokString, i, min(p.inEnd+3, len(p.src)))

		return
	}

	j := i + 1
	for j < len(p.src) && p.src[j] != q {
		if p.src[j] == '\\' && q != '`' {
			j++
		} else if p.d == Java && (p.src[j] == '\n' || p.src[j] == '\r') {
			break
		}

		j++
	}

	j = min(j, len(p.src))
	p.inStart, p.inEnd = i+1, j

	if p.at(j) == q {
		p.set(tokString, i, j+1)
	} else {
		p.t.Fail(i)
		p.set(tokString, i, j)
	}

	if q == '`' {
		// A name that is quoted.
		p.tok = tokName
	}
}

func (p *parser) is(op string) bool  { return p.tok == tokOp && p.op == op }
func (p *parser) word(s string) bool { return p.tok == tokName && p.src[p.start:p.end] == s }
func (p *parser) text() string       { return p.src[p.start:p.end] }
func (p *parser) closes() bool       { return p.is(")") || p.is("]") || p.is("}") }

func (p *parser) accept(op string) bool {
	if p.is(op) {
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

// named makes a node of the current name.
func (p *parser) named(kind tree.Kind) tree.ID {
	n := tree.Node{Kind: kind, Start: uint32(p.start), End: uint32(p.end)}
	s := p.text()

	switch {
	case s == "":
	case s[0] == '`':
		n.Start, n.End = uint32(p.inStart), uint32(p.inEnd)
	case p.d == Java && strings.Contains(s, `\u`):
		n.Alt = p.t.Alt(unicodeName(s))
	}

	return p.t.Add(n)
}

// unicodeName undoes the \u escapes in a Java identifier.
func unicodeName(s string) string {
	var b strings.Builder

	for i := 0; i < len(s); {
		if s[i] == '\\' && i+6 <= len(s) {
			r := rune(0)
			for _, c := range []byte(s[i+2 : i+6]) {
				r = r*16 + rune(hexDigit(c))
			}

			b.WriteRune(r)

			i += 6

			continue
		}

		r, size := utf8.DecodeRuneInString(s[i:])
		b.WriteRune(r)

		i += size
	}

	return b.String()
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}

	return 0
}
