package javascript

import "strings"

// skipType steps over a TypeScript type.
func (p *parser) skipType() {
	operand := true // an operand must follow

	for p.tok != tokEOF && (p.limit == 0 || p.start < p.limit) {
		switch p.tok {
		case tokName:
			switch p.text() {
			case "keyof", "typeof", "readonly", "infer", "unique", "asserts", "new", "abstract":
				if operand {
					p.next()

					continue
				}
			case "extends", "is", "in", "as":
				if !operand {
					p.next()

					operand = true

					continue
				}
			}

			if !operand {
				return
			}

			imported := p.word("import")
			p.next()

			if imported && p.is('(') {
				p.skipBrackets()
			}

			operand = false
		case tokNumber, tokString:
			if !operand {
				return
			}

			p.next()

			operand = false
		case tokTemplate:
			if !operand {
				return
			}

			p.template()

			operand = false
		case tokOp:
			switch p.op {
			case '|', '&', '?', ':', opOf("=>"), '.', '-':
				// A colon ends a type, unless it is that of a conditional type,
				// which follows a question mark.
				if p.op == ':' || p.op == '?' && operand || p.isOp(opArrow) && !p.arrowInType(operand) {
					return
				}

				if p.op == '?' && !p.conditionalType() {
					return
				}

				p.next()

				operand = true
			case '(', '[':
				if !operand && p.newline {
					return
				}

				if p.op == '(' && !operand {
					return
				}

				p.skipBrackets()

				operand = false
			case '{':
				if !operand {
					return // A body.
				}

				p.skipBrackets()

				operand = false
			case '<':
				if !p.skipTypeArguments() {
					return
				}
			default:
				return
			}
		case tokPrivate, tokEOF:
			return
		}
	}
}

// arrowInType says whether "=>" belongs to a function type: it does after its
// parameters, that is after a closing bracket.
func (p *parser) arrowInType(operand bool) bool {
	if operand {
		return false
	}

	i := p.start - 1
	for i >= 0 && (p.src[i] == ' ' || p.src[i] == '\n' || p.src[i] == '\t') {
		i--
	}

	return i >= 0 && p.src[i] == ')'
}

// conditionalType takes "? A : B" after a type, if it is there.
func (p *parser) conditionalType() bool {
	if p.depth >= maxDepth {
		return false
	}

	saved := *p
	p.depth++

	p.next()
	p.skipType()
	p.depth--

	if p.is(':') {
		return true // The caller steps over the colon, and the other type follows.
	}

	*p = saved

	return false
}

// skipBrackets steps over everything in a pair of brackets.
func (p *parser) skipBrackets() {
	depth := 0

	for p.tok != tokEOF && (p.limit == 0 || p.start < p.limit) {
		switch {
		case p.tok == tokTemplate:
			p.template()

			continue
		case p.tok != tokOp:
		case p.op == '(' || p.op == '[' || p.op == '{':
			depth++
		case p.closes():
			depth--
		}

		p.next()

		if depth <= 0 {
			return
		}
	}
}

// skipTypeArguments steps over <A, B<C>>.
func (p *parser) skipTypeArguments() bool {
	depth, start := 0, p.start

	for p.tok != tokEOF && p.start-start < 4000 {
		if p.tok == tokTemplate {
			p.template()

			continue
		}

		if p.tok == tokOp {
			switch {
			case p.op == '<':
				depth++
			case p.op == opOf("<<"):
				depth += 2
			case p.src[p.start] == '>':
				// >> and >>> close several.
				for i := p.start; i < p.end && p.src[i] == '>'; i++ {
					depth--
					if depth == 0 {
						p.pos = i + 1
						p.next()

						return true
					}
				}
			case p.op == '(' || p.op == '[' || p.op == '{':
				p.skipBrackets()

				continue
			case p.op == ';' || p.closes():
				return false
			}
		}

		p.next()
	}

	return false
}

// typeArguments steps over type arguments in a call, f<T>(x), and says whether
// they were some.
func (p *parser) typeArguments() bool {
	end := angleEnd(p.src, p.start)
	if end < 0 || p.byteAt(end) != '(' && p.byteAt(end) != '`' {
		return false
	}

	p.pos = end
	p.next()

	return true
}

// angleEnd is the offset after the bracket that closes the "<" at i, if only
// what types are made of stands between them; -1 otherwise. No call may be
// among it, or a comparison could hide one.
func angleEnd(src string, i int) int {
	depth, braces := 0, 0

	for j := i; j < len(src) && j < i+400 && depth < 8; j++ {
		c := src[j]

		switch {
		case c == '<':
			depth++
		case c == '>':
			if src[j-1] == '=' {
				continue
			}

			depth--
			if depth == 0 {
				return j + 1
			}
		case c == '{':
			braces++
		case c == '}':
			braces--
		case c == ';' && braces > 0:
		case c == '&' || c == '|':
			if j+1 < len(src) && src[j+1] == c {
				return -1
			}
		case c == '(':
			// The parameters of a function type.
			end := parenEnd(src, j)
			if end < 0 || !strings.HasPrefix(strings.TrimLeft(src[end:min(end+8, len(src))], " "), "=>") {
				return -1
			}

			j = end - 1
		case identByte[c], strings.IndexByte(" .,[]:'\"?=\n", c) >= 0:
		default:
			return -1
		}
	}

	return -1
}

// parenEnd is the offset after the bracket that closes the one at i.
func parenEnd(src string, i int) int {
	depth := 0

	for j := i; j < len(src) && j < i+400; j++ {
		switch src[j] {
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				return j + 1
			}
		}
	}

	return -1
}

// skipMember steps over the rest of a class member or interface.
func (p *parser) skipMember() {
	for p.tok != tokEOF && !p.is(';') && !p.is('}') {
		switch {
		case p.is('('), p.is('['), p.is('{'):
			p.skipBrackets()
		default:
			p.next()

			if p.newline && p.tok == tokName {
				return
			}
		}
	}

	p.accept(';')
}
