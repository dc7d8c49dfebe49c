package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// assign runs NAME=value.
func (e *eval) assign(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}

	name := a.Name.Value

	if a.Array != nil {
		var list []effect.Value

		for _, el := range a.Array.Elems {
			if el.Value != nil {
				list = e.fields(list, el.Value)
			}
		}

		if e.vars == nil {
			e.vars = map[string]variable{}
		}

		if a.Append {
			list = append(append([]effect.Value(nil), e.vars[name].list...), list...)
		}

		if len(e.vars) < maxVars {
			e.vars[name] = variable{list: list, arr: true}
		}

		return
	}

	v := e.word(a.Value)

	if a.Index != nil {
		old := e.vars[name]
		list := append([]effect.Value(nil), old.list...)

		if i, ok := e.arith(a.Index, 0); ok && i >= 0 && i < maxVars {
			for len(list) <= i {
				list = append(list, effect.Value{})
			}

			list[i] = v
		} else {
			list = append(list, v)
		}

		if e.vars == nil {
			e.vars = map[string]variable{}
		}

		if len(e.vars) < maxVars {
			e.vars[name] = variable{list: list, arr: true}
		}

		return
	}

	if a.Append {
		if old, ok := e.vars[name]; ok {
			e.budget.Spend(len(old.val.Text) / 32)
			v = effect.Concat(old.val, v)
		}
	}

	e.set(name, v)
	e.codeVariable(a, name, v)
}

// assignTemporary is an assignment before a command.
func (e *eval) assignTemporary(a *syntax.Assign) {
	e.assign(a)

	if a.Name != nil && !a.Naked && a.Array == nil {
		if v, ok := e.vars[a.Name.Value]; ok && !v.arr {
			e.r.Add(effect.Effect{Kind: effect.SetEnv, Span: e.spanOf(a), Target: effect.Const(a.Name.Value), Data: v.val, Flags: e.flags})
		}
	}
}

// codeVariable runs what a shell will run by itself.
func (e *eval) codeVariable(a *syntax.Assign, name string, v effect.Value) {
	if name == "PROMPT_COMMAND" && v.Text != "" && !v.IsUnknown() {
		e.inner(v, e.spanOf(a), 0, nil)
	}

	if (name == "PS0" || name == "PS1" || name == "PS2" || name == "PS4") && strings.ContainsAny(v.Text, "`(") {
		e.inner(effect.Concat(effect.Const(": \""), v, effect.Const("\"")), e.spanOf(a), 0, nil)
	}

	switch name {
	case "HISTFILE", "HISTSIZE", "HISTFILESIZE", "HISTCONTROL", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV":
		e.r.Add(effect.Effect{Kind: effect.SetEnv, Span: e.spanOf(a), Target: effect.Const(name), Data: v, Flags: e.flags})
	}
}

// declClause is export, local, declare, readonly, typeset, nameref.
func (e *eval) declClause(c *syntax.DeclClause) effect.Value {
	print := false

	for _, a := range c.Args {
		if a.Name == nil {
			if a.Value != nil {
				switch a.Value.Lit() {
				case "-p", "-x":
					print = true
				}
			}

			continue
		}

		if a.Naked {
			if c.Variant.Value == "export" {
				if v, ok := e.vars[a.Name.Value]; ok && !v.arr {
					e.r.Add(effect.Effect{Kind: effect.SetEnv, Span: e.spanOf(a), Target: effect.Const(a.Name.Value), Data: v.val, Flags: e.flags})
				}
			}

			continue
		}

		e.assign(a)

		if v, ok := e.vars[a.Name.Value]; ok && !v.arr && c.Variant.Value != "local" {
			e.r.Add(effect.Effect{Kind: effect.SetEnv, Span: e.spanOf(a), Target: effect.Const(a.Name.Value), Data: v.val, Flags: e.flags})
		}
	}

	if len(c.Args) == 0 || print && len(c.Args) == 1 {
		return effect.Unknown(0).From(effect.TaintEnvAll, "environment")
	}

	return effect.Value{}
}
