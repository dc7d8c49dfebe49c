package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// strings parses a string literal and those that follow it, which are one.
func (p *parser) strings() tree.ID {
	x := p.literal()
	if p.tok != tokString {
		return x
	}

	start := p.t.At(x).Start

	var l tree.List

	l.Push(p.t, x)

	for p.tok == tokString {
		if len(p.t.Nodes) >= tree.MaxNodes {
			p.t.Full = true

			break
		}

		l.Push(p.t, p.literal())
	}

	return p.t.Add(tree.Node{
		Kind: tree.Format, Start: start, End: uint32(p.lastEnd()), A: l.First,
		Flag: p.t.At(l.First).Flag & tree.FlagBytes,
	})
}

// literal parses one string literal.
func (p *parser) literal() tree.ID {
	i := p.start
	for i < len(p.src) && p.src[i] != '"' && p.src[i] != '\'' {
		i++
	}

	prefix := p.src[p.start:i]

	var flag tree.Flag

	format := false

	for j := range len(prefix) {
		switch prefix[j] | 0x20 {
		case 'b':
			flag |= tree.FlagBytes
		case 'r':
			flag |= tree.FlagRaw
		case 'f', 't':
			format = true
		}
	}

	if format {
		return p.format(i, flag)
	}

	q := quotes(p.src, i)
	end := p.end

	if end-i >= 2*q && strings.HasSuffix(p.src[i+q:end], p.src[i:i+q]) {
		end -= q
	} else {
		p.t.Fail(p.start)
	}

	x := p.t.Add(tree.Node{Kind: tree.Str, Flag: flag, Start: uint32(i + q), End: uint32(max(end, i+q))})
	p.next()

	return x
}

// quotes is how many quotes open the literal at i: three, or one.
func quotes(src string, i int) int {
	if i+2 < len(src) && src[i+1] == src[i] && src[i+2] == src[i] {
		return 3
	}

	return 1
}

// format parses an f-string whose first quote is at i, as Python 3.12 does:
// the same quotes may be used again inside the braces.
func (p *parser) format(i int, flag tree.Flag) tree.ID {
	n := tree.Node{Kind: tree.Format, Start: uint32(p.start), Flag: flag & tree.FlagBytes}
	q := quotes(p.src, i)
	quote := p.src[i : i+q]

	var l tree.List

	end := p.formatParts(i+q, quote, flag, &l, false)
	n.A, n.End = l.First, uint32(end)
	p.pos = end
	p.next()

	return p.t.Add(n)
}

// formatParts reads text and interpolations from i to the quote, or in a
// format specification to the brace. It returns the offset after the quote, or
// of the brace.
func (p *parser) formatParts(i int, quote string, flag tree.Flag, l *tree.List, spec bool) int {
	src, n := p.src, len(p.src)
	from := i
	text := func(to int) {
		if to > from && !spec {
			l.Push(p.t, p.t.Add(tree.Node{Kind: tree.Str, Flag: flag, Start: uint32(from), End: uint32(to)}))
		}
	}

	for i < n {
		c := src[i]

		switch {
		case c == quote[0] && strings.HasPrefix(src[i:], quote):
			text(i)

			if spec {
				return i
			}

			return i + len(quote)
		case (c == '\n' || c == '\r') && len(quote) == 1:
			text(i)
			p.t.Fail(i)

			return i
		case c == '\\' && flag&tree.FlagRaw == 0:
			// A named character has braces of its own.
			if strings.HasPrefix(src[i:], `\N{`) {
				if j := strings.IndexByte(src[i:], '}'); j > 0 {
					i += j
				}
			} else if i+1 < n && src[i+1] != '{' {
				i++
			}

			i++
		case c == '\\' && i+1 < n && (src[i+1] == quote[0] || src[i+1] == '\\'):
			i += 2
		case c == '{' && i+1 < n && src[i+1] == '{' && !spec:
			// One brace of the two is text.
			text(i + 1)
			i += 2
			from = i
		case c == '}' && spec:
			return i
		case c == '}' && i+1 < n && src[i+1] == '}':
			text(i + 1)
			i += 2
			from = i
		case c == '{':
			text(i)

			i = p.interpolation(i, quote, flag, l)
			from = i
		default:
			i++
		}
	}

	text(n)
	p.t.Fail(n)

	return n
}

// interpolation parses "{expression!r:spec}" at i and returns the offset after
// it.
func (p *parser) interpolation(i int, quote string, flag tree.Flag, l *tree.List) int {
	if !p.enter() {
		return i + 1
	}
	defer func() { p.depth-- }()

	nest := p.nest
	p.pos, p.nest = i+1, 1
	p.next()

	n := tree.Node{Kind: tree.Interp, Start: uint32(i)}

	// A colon starts the specification, so that ":=" is no walrus here.
	if p.keyword("yield") {
		n.A = p.yield()
	} else {
		n.A = p.list(bindWalrus)
	}

	p.nest = nest
	j := p.start
	src := p.src

	for j < len(src) && (src[j] == '=' || src[j] == ' ') {
		j++
	}

	if j+1 < len(src) && src[j] == '!' {
		j++

		for j < len(src) && identByte[src[j]] {
			j++
		}
	}

	for j < len(src) && src[j] == ' ' {
		j++
	}

	if j < len(src) && src[j] == ':' {
		var spec tree.List

		j = p.formatParts(j+1, quote, flag, &spec, true)
		n.B = spec.First
	}

	if j < len(src) && src[j] == '}' {
		j++
	} else {
		p.t.Fail(j)
	}

	// Never go back, or a broken literal would never end.
	j = max(j, i+1)
	n.End = uint32(j)
	l.Push(p.t, p.t.Add(n))

	return j
}
