package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

// literal is text that stands in the script. Holes in it, which only text made
// from unknown values has, carry the sources of that text.
func (e *eval) literal(s string) effect.Value {
	v := effect.Value{Text: s}
	if e.nested && strings.Contains(s, effect.HoleText) {
		v.Taint, v.Origin, v.Ref = e.holes.Taint, e.holes.Origin, e.holes.Ref
	}

	return v
}

// word is a word's value without splitting it.
func (e *eval) word(w *syntax.Word) effect.Value {
	if w == nil {
		return effect.Value{}
	}

	if len(w.Parts) == 1 {
		if l, ok := w.Parts[0].(*syntax.Lit); ok {
			return e.tilde(e.literal(unquote(l.Value)))
		}
	}

	parts := make([]effect.Value, 0, len(w.Parts))

	for i, p := range w.Parts {
		vs := e.part(p, true)
		if _, ok := p.(*syntax.Lit); ok && i == 0 && len(vs) > 0 {
			vs[0] = e.tilde(vs[0])
		}

		for j, v := range vs {
			if j > 0 {
				parts = append(parts, effect.Const(" "))
			}

			parts = append(parts, v)
		}
	}

	if len(parts) == 0 {
		return effect.Value{}
	}

	return effect.Concat(parts...)
}

// onlyInput is the redirection of "$(<file)", which is the file's text.
func onlyInput(list []*syntax.Stmt) *syntax.Redirect {
	if len(list) == 1 && list[0].Cmd == nil && len(list[0].Redirs) == 1 && list[0].Redirs[0].Op == syntax.RdrIn {
		return list[0].Redirs[0]
	}

	return nil
}

// tilde expands a leading "~".
func (e *eval) tilde(v effect.Value) effect.Value {
	if v.Text == "~" || strings.HasPrefix(v.Text, "~/") {
		v.Text = e.home().Text + v.Text[1:]
	} else if strings.HasPrefix(v.Text, "~+") {
		v.Text = e.pwd().Text + v.Text[2:]
	}

	return v
}

// fields appends what a word becomes on a command line: braces expanded,
// unquoted values split.
func (e *eval) fields(out []effect.Value, w *syntax.Word) []effect.Value {
	if !e.budget.Spend(2) {
		return out
	}

	if len(w.Parts) == 1 {
		if l, ok := w.Parts[0].(*syntax.Lit); ok && strings.IndexByte(l.Value, '{') < 0 {
			return append(out, e.tilde(e.literal(unquote(l.Value))))
		}
	}

	if hasBrace(w) {
		split := *w
		split.Parts = append([]syntax.WordPart(nil), w.Parts...)

		if syntax.SplitBraces(&split) {
			for _, alt := range e.braces(split.Parts, 0) {
				out = e.split(out, alt)
			}

			return out
		}
	}

	return e.split(out, w.Parts)
}

// split evaluates parts, splits unquoted values at IFS, and appends them.
func (e *eval) split(out []effect.Value, parts []syntax.WordPart) []effect.Value {
	var (
		cur  []effect.Value
		open bool
	)

	end := func() {
		if open {
			out = append(out, concatOrEmpty(cur))
		}

		cur, open = nil, false
	}

	for i, p := range parts {
		if !e.budget.Spend(1) {
			break
		}

		switch p := p.(type) {
		case *syntax.Lit:
			v := e.literal(unquote(p.Value))
			if i == 0 {
				v = e.tilde(v)
			}

			if strings.Contains(v.Text, manyMark) {
				v = many(v)
			}

			cur, open = append(cur, v), true
		case *syntax.SglQuoted, *syntax.DblQuoted:
			vs := e.part(p, true)
			if isAtArray(p) {
				for j, v := range vs {
					if j > 0 {
						end()
					}

					cur, open = append(cur, v), true
				}

				continue
			}

			cur, open = append(cur, vs...), true
		default:
			for j, v := range e.part(p, false) {
				if j > 0 {
					end()
				}

				e.splitValue(v, &cur, &open, end)
			}
		}
	}

	end()

	return out
}

// splitValue adds an unquoted value, split at white space (or IFS).
func (e *eval) splitValue(v effect.Value, cur *[]effect.Value, open *bool, end func()) {
	ifs := " \t\n"
	if x, ok := e.vars["IFS"]; ok && x.val.IsConst() {
		ifs = x.val.Text
	}

	if ifs == "" || !strings.ContainsAny(v.Text, ifs) {
		if v.Text != "" {
			*cur, *open = append(*cur, v), true
		}

		return
	}

	rest := v.Text

	for count := 0; ; count++ {
		i := strings.IndexAny(rest, ifs)
		if i < 0 || count > 4*maxBraces {
			if rest != "" {
				*cur, *open = append(*cur, withText(v, rest)), true
			}

			return
		}

		if i > 0 {
			*cur, *open = append(*cur, withText(v, rest[:i])), true
		}

		end()

		rest = rest[i+1:]
	}
}

func withText(v effect.Value, s string) effect.Value {
	v.Text = s

	return v
}

func concatOrEmpty(vs []effect.Value) effect.Value {
	if len(vs) == 0 {
		return effect.Value{}
	}

	return effect.Concat(vs...)
}

func isAtArray(p syntax.WordPart) bool {
	q, ok := p.(*syntax.DblQuoted)
	if !ok || len(q.Parts) != 1 {
		return false
	}

	pe, ok := q.Parts[0].(*syntax.ParamExp)
	if !ok || pe.Length {
		return false
	}

	if pe.Param != nil && pe.Param.Value == "@" {
		return true
	}

	w, ok := pe.Index.(*syntax.Word)

	return ok && w.Lit() == "@"
}

// part evaluates one part of a word. Arrays give several values.
func (e *eval) part(p syntax.WordPart, quoted bool) []effect.Value {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			return []effect.Value{e.literal(unquote(p.Value))}
		}

		return []effect.Value{e.literal(unquote(p.Value))}
	case *syntax.SglQuoted:
		if p.Dollar {
			return []effect.Value{e.literal(program.Unescape(p.Value))}
		}

		return []effect.Value{e.literal(p.Value)}
	case *syntax.DblQuoted:
		return e.doubleQuoted(p)
	case *syntax.ParamExp:
		return e.param(p)
	case *syntax.CmdSubst:
		if e.calls >= maxEval {
			return []effect.Value{effect.Unknown(effect.TaintOutput)}
		}

		e.calls++

		var v effect.Value
		if r := onlyInput(p.Stmts); r != nil {
			v, _ = e.redirect(r, &streams{}, effect.Value{}, false)
		} else {
			v = e.subshell(p.Stmts, effect.Unknown(effect.TaintInput), false)
		}

		e.calls--
		v.Text = strings.TrimRight(v.Text, "\n")

		return []effect.Value{v}
	case *syntax.ArithmExp:
		e.sideEffects(p)

		if n, ok := e.arith(p.X, 0); ok {
			return []effect.Value{effect.Const(strconv.Itoa(n))}
		}

		return []effect.Value{{Text: effect.HoleText, Ref: e.arithRef(p.X)}}
	case *syntax.ProcSubst:
		return []effect.Value{e.procSubst(p)}
	case *syntax.ExtGlob:
		return []effect.Value{effect.Const(p.Op.String() + p.Pattern.Value + ")")}
	case *syntax.BraceExp:
		return []effect.Value{effect.Unknown(0)}
	}

	return []effect.Value{effect.Unknown(0)}
}

func (e *eval) doubleQuoted(q *syntax.DblQuoted) []effect.Value {
	if len(q.Parts) == 0 {
		return []effect.Value{{}}
	}

	if isAtArray(q) {
		vs := e.part(q.Parts[0], true)
		if len(vs) > 0 {
			return vs
		}

		return nil
	}

	parts := make([]effect.Value, 0, len(q.Parts))

	for _, p := range q.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			parts = append(parts, e.literal(unquoteDouble(l.Value)))

			continue
		}

		for i, v := range e.part(p, true) {
			if i > 0 {
				parts = append(parts, effect.Const(" "))
			}

			parts = append(parts, v)
		}
	}

	return []effect.Value{concatOrEmpty(parts)}
}

// procSubst is <(…) and >(…): a path with the inner command behind it.
func (e *eval) procSubst(p *syntax.ProcSubst) effect.Value {
	if e.calls >= maxEval {
		return effect.Unknown(effect.TaintOutput)
	}

	e.calls++
	defer func() { e.calls-- }()

	if p.Op == syntax.CmdOut {
		e.stmts(p.Stmts, e.pipeIn, true)

		return effect.Const("/dev/fd/63")
	}

	v := e.subshell(p.Stmts, effect.Unknown(effect.TaintInput), false)
	name := "/dev/fd/" + strconv.Itoa(1000+len(e.m.Files))

	if e.m.Files == nil {
		e.m.Files = map[string]effect.Value{}
	}

	e.m.Files[name] = v

	return effect.Const(name)
}
