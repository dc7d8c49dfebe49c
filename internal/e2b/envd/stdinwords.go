package envd

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literal is a word's text, with the values of variables that have only one.
func (w *scriptWalk) literal(of *syntax.Word) word {
	if len(w.consts) > 0 {
		var b strings.Builder
		known := true
		for _, part := range of.Parts {
			known = known && w.literalPart(&b, part)
		}
		if known {
			return word{b.String(), true}
		}
		b.Reset()
		for _, part := range of.Parts {
			var one strings.Builder
			if w.literalPart(&one, part) {
				b.WriteString(one.String())
			} else {
				b.WriteString(strings.Trim(literal(&syntax.Word{Parts: []syntax.WordPart{part}}).text, `"`))
			}
		}
		return word{b.String(), false}
	}
	return literal(of)
}

func (w *scriptWalk) literalPart(b *strings.Builder, part syntax.WordPart) bool {
	switch part := part.(type) {
	case *syntax.ParamExp:
		c, ok := w.consts[part.Param.Value]
		if !ok || !plainParam(part) || part.Pos().Offset() < c.from {
			return false
		}
		if _, tainted := w.vars[part.Param.Value]; tainted {
			return false
		}
		b.WriteString(c.value)
		return true
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			if _, isLit := inner.(*syntax.Lit); isLit {
				if !literalPart(b, &syntax.DblQuoted{Parts: []syntax.WordPart{inner}}) {
					return false
				}
			} else if !w.literalPart(b, inner) {
				return false
			}
		}
		return true
	default:
		return literalPart(b, part)
	}
}

// literal is a word's text if it does not depend on anything.
func literal(w *syntax.Word) word {
	var b strings.Builder
	for _, part := range w.Parts {
		if !literalPart(&b, part) {
			b.Reset()
			_ = syntax.NewPrinter().Print(&b, w)
			return word{b.String(), false}
		}
	}
	return word{b.String(), true}
}

func literalPart(b *strings.Builder, part syntax.WordPart) bool {
	switch part := part.(type) {
	case *syntax.Lit:
		text := part.Value
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '*', '?', '[', '{':
				if text != "[" { // a command
					return false
				}
			}
			if i < len(text) && text[i] != '\n' {
				b.WriteByte(text[i])
			}
		}
		return true
	case *syntax.SglQuoted:
		b.WriteString(part.Value)
		return !part.Dollar
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				b.WriteString(strings.NewReplacer(`\"`, `"`, `\\`, `\`, "\\$", "$", "\\`", "`", "\\\n", "").Replace(lit.Value))
			} else if !literalPart(b, inner) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// printed is a redirection's target as the script writes it.
func printed(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return literal(w).text
}

// fixed reports whether a here-document has no substitution in it.
func fixed(w *syntax.Word) bool {
	ok := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
			ok = false
		}
		return ok
	})
	return ok
}
