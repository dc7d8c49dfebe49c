package envd

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// set notes that a variable may hold something of the input.
func (w *scriptWalk) set(name string, holds flow) {
	if !holds.reaches {
		return
	}
	if old, known := w.vars[name]; known {
		holds = either(old, holds)
	}
	w.vars[name] = holds
	if codeVariable(name) {
		if strings.HasPrefix(name, "PS") {
			holds = either(holds, flow{changed: "the shell"}) // prompts have escapes of their own
		}
		w.found = append(w.found, holds.use())
	}
}

// read notes the variables that read and its kin fill.
func (w *scriptWalk) read(command string, args []word, in flow) {
	if !in.reaches {
		return
	}
	names, asItIs := []string{}, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.known:
			names = append(names, strings.Trim(a.text, `"$`))
			in.parts = true
		case a.text == "-r":
			asItIs = true
		case len(a.text) > 1 && a.text[0] == '-' && strings.Trim(a.text[1:], "rse") == "":
			asItIs = asItIs || strings.Contains(a.text, "r")
		case len(a.text) > 1 && a.text[0] == '-':
			valued := "adinNptu"
			if command != "read" {
				valued = "dnOsuCc"
			}
			if last := a.text[len(a.text)-1]; strings.ContainsRune(valued, rune(last)) {
				if last == 'a' && i+1 < len(args) {
					names = append(names, args[i+1].text)
				}
				if last == 'C' && i+1 < len(args) {
					w.found = append(w.found, Use{Changed: command}) // it runs that, with each line
				}
				i++
			}
			in.parts = in.parts || !strings.ContainsAny(a.text, "ptu")
			if command == "read" && strings.ContainsAny(a.text, "dnN") {
				in.changed = either(in, flow{changed: command}).changed // it ends within a line, or after some
			}
		default:
			names = append(names, a.text)
		}
	}
	if command != "read" {
		in.parts = true
		names = append(names, "MAPFILE")
	}
	in.parts = in.parts || !asItIs || len(names) > 1
	if w.separator && in.parts {
		in.changed = either(in, flow{changed: "IFS"}).changed
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	for _, name := range names {
		name, _, _ = strings.Cut(name, "[")
		w.set(name, in)
	}
}

// assign notes the variables that are given something of the input. Those of a
// declaration may be evaluated, and those before a command are in its environment.
func (w *scriptWalk) assign(assigns []*syntax.Assign, declared bool) {
	for _, a := range assigns {
		holds := w.holds(a.Value)
		if a.Array != nil {
			for _, e := range a.Array.Elems {
				holds = either(holds, w.holds(e.Value))
			}
			holds.parts = true
		}
		switch {
		case a.Name == nil:
			if holds.reaches && declared {
				w.found = append(w.found, holds.use()) // declare "$x"
			}
		default:
			if a.Append && (holds.reaches || w.vars[a.Name.Value].reaches) {
				holds = flow{reaches: true, changed: "the script"}
			}
			if declared && holds.reaches && slices.ContainsFunc(assigns, func(o *syntax.Assign) bool {
				return o.Naked && o.Value != nil && strings.HasPrefix(literal(o.Value).text, "-") && strings.Contains(literal(o.Value).text, "i")
			}) {
				w.found = append(w.found, holds.use()) // declare -i
			}
			w.set(a.Name.Value, holds)
		}
	}
}

// plainParam reports whether an expansion is the value of its variable, unchanged.
func plainParam(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0
}

// holds is what a word holds of the input.
func (w *scriptWalk) holds(of *syntax.Word) flow {
	if of == nil {
		return flow{}
	}
	parts := of.Parts
	if len(parts) == 1 {
		if q, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = q.Parts
		}
	}
	if len(parts) == 1 {
		switch part := parts[0].(type) {
		case *syntax.ParamExp:
			holds := w.param(part)
			if holds.reaches && !plainParam(part) {
				holds.parts = true
				if part.Repl != nil || part.Exp != nil && part.Exp.Op != syntax.AlternateUnset && part.Exp.Op != syntax.DefaultUnset || part.Length {
					holds.changed = either(holds, flow{changed: "the script"}).changed
				}
			}
			return holds
		case *syntax.CmdSubst:
			return w.quietly(part.Stmts)
		case *syntax.ProcSubst:
			if part.Op == syntax.CmdIn {
				return w.quietly(part.Stmts)
			}
			return flow{}
		}
	}
	holds := flow{}
	syntax.Walk(of, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			holds = either(holds, w.param(n))
		case *syntax.CmdSubst:
			holds = either(holds, w.quietly(n.Stmts))
			return false
		case *syntax.ProcSubst:
			if n.Op == syntax.CmdIn {
				holds = either(holds, w.quietly(n.Stmts))
			}
			return false
		}
		return true
	})
	if holds.reaches {
		holds = either(holds, flow{changed: "the script"})
	}
	return holds
}

// quietly is what statements write of the input; what they do with it is noted
// elsewhere.
func (w *scriptWalk) quietly(stmts []*syntax.Stmt) flow {
	found := w.found
	defer func() { w.found = found }()
	if len(stmts) == 1 && stmts[0].Cmd == nil {
		for _, r := range stmts[0].Redirs { // $(</dev/stdin)
			if r.Op == syntax.RdrIn && stdinFile.MatchString(printed(r.Word)) {
				return flow{reaches: true}
			}
		}
	}
	return w.stmts(stmts, flow{reaches: true})
}

func (w *scriptWalk) param(p *syntax.ParamExp) flow {
	if p.Param == nil {
		return flow{}
	}
	name := p.Param.Value
	if strings.Trim(name, "0123456789") == "" || name == "*" {
		name = "@"
	}
	return w.vars[name]
}

// evaluated notes where a command evaluates what a variable holds: in arithmetic, as
// a subscript, as the name of another variable, as a prompt.
func (w *scriptWalk) evaluated(cmd syntax.Command) {
	if len(w.vars) == 0 {
		return
	}
	note := func(n syntax.Node) {
		if n == nil {
			return
		}
		syntax.Walk(n, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Stmt:
				return false
			case *syntax.ParamExp:
				if f := w.param(n); f.reaches {
					w.found = append(w.found, f.use())
				}
			case *syntax.Lit:
				if f, held := w.vars[n.Value]; held {
					w.found = append(w.found, f.use())
				}
			}
			return true
		})
	}
	syntax.Walk(cmd, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			return false
		case *syntax.ArithmExp:
			note(n.X)
		case *syntax.ArithmCmd:
			note(n.X)
		case *syntax.LetClause:
			note(n)
		case *syntax.CStyleLoop:
			note(n)
		case *syntax.Assign:
			if n.Index != nil {
				note(n.Index)
			}
		case *syntax.TestClause:
			syntax.Walk(n, func(n syntax.Node) bool {
				switch n := n.(type) {
				case *syntax.BinaryTest:
					switch n.Op {
					case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
						note(n)
					}
				case *syntax.UnaryTest:
					if n.Op == syntax.TsVarSet {
						note(n)
					}
				}
				return true
			})
		case *syntax.ParamExp:
			if n.Index != nil {
				note(n.Index)
			}
			if n.Slice != nil {
				note(n.Slice.Offset)
				note(n.Slice.Length)
			}
			f := w.param(n)
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps {
				f = either(f, flow{changed: "the shell"}) // as for a prompt
			} else if !n.Excl {
				break
			}
			if f.reaches {
				w.found = append(w.found, f.use())
			}
		}
		return true
	})
}
