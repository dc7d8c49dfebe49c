package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

// maxRounds bounds how many elements of a list a loop body is run for.
const maxRounds = 16

// binary runs chains of && || | without recursing on their length.
func (e *eval) binary(c *syntax.BinaryCmd, stdin effect.Value, piped bool) effect.Value {
	chain := []*syntax.BinaryCmd{c}

	for len(chain) < maxChain {
		x := chain[len(chain)-1].X
		b, ok := x.Cmd.(*syntax.BinaryCmd)

		if !ok || len(x.Redirs) > 0 || x.Background {
			break
		}

		chain = append(chain, b)
	}

	out := e.stmt(chain[len(chain)-1].X, stdin, piped)

	for i := len(chain) - 1; i >= 0; i-- {
		if !e.budget.Spend(1) {
			return out
		}

		b := chain[i]

		switch b.Op {
		case syntax.Pipe, syntax.PipeAll:
			out = e.stmt(b.Y, out, true)
		case syntax.OrStmt:
			// One of both prints; the first that is known to.
			alt := e.stmt(b.Y, stdin, piped)
			if out.IsEmpty() || out.IsUnknown() && alt.IsConst() && !alt.IsEmpty() && out.Taint == effect.TaintOutput {
				out = alt
			} else {
				out.Taint |= alt.Taint
			}
		default:
			out = effect.Concat(out, e.stmt(b.Y, stdin, piped))
		}
	}

	return out
}

const maxChain = 20_000

// subshell runs a list whose changes of state do not last.
func (e *eval) subshell(list []*syntax.Stmt, stdin effect.Value, piped bool) effect.Value {
	cwd, dir, vars := e.m.Cwd, e.m.Dir, e.vars

	if len(vars) > 0 {
		e.vars = make(map[string]variable, len(vars))
		for k, v := range vars {
			e.vars[k] = v
		}
	}

	out := e.stmts(list, stdin, piped)
	e.m.Cwd, e.m.Dir, e.vars = cwd, dir, vars

	return out
}

func (e *eval) ifClause(c *syntax.IfClause, stdin effect.Value, piped bool) effect.Value {
	var out effect.Value

	for ; c != nil; c = c.Else {
		out = effect.Concat(out, e.stmts(c.Cond, stdin, piped))
		e.assume(c.Cond)
		out = effect.Concat(out, e.stmts(c.Then, stdin, piped))
	}

	return out
}

// assume takes a condition at its word: behind [ "$x" ] and [ -n "$x" ] the
// variable is not empty, whatever it was set to before.
func (e *eval) assume(cond []*syntax.Stmt) {
	if len(cond) != 1 {
		return
	}

	var word *syntax.Word

	switch c := cond[0].Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) < 2 || c.Args[0].Lit() != "[" && c.Args[0].Lit() != "test" || cond[0].Negated {
			return
		}

		word = c.Args[1]
		if c.Args[1].Lit() == "-n" && len(c.Args) > 2 {
			word = c.Args[2]
		} else if c.Args[0].Lit() == "[" && len(c.Args) > 3 {
			return
		}
	case *syntax.TestClause:
		switch x := c.X.(type) {
		case *syntax.Word:
			word = x
		case *syntax.UnaryTest:
			if w, ok := x.X.(*syntax.Word); ok && x.Op == syntax.TsNempStr {
				word = w
			}
		}
	}

	if word == nil {
		return
	}

	parts := word.Parts
	if len(parts) == 1 {
		if q, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = q.Parts
		}
	}

	if len(parts) != 1 {
		return
	}

	if p, ok := parts[0].(*syntax.ParamExp); ok && p.Param != nil {
		if v, ok := e.vars[p.Param.Value]; ok && !v.arr && v.val.IsEmpty() {
			e.set(p.Param.Value, effect.Value{Text: effect.HoleText, Ref: p.Param.Value})
		}
	}
}

func (e *eval) caseClause(c *syntax.CaseClause, stdin effect.Value, piped bool) effect.Value {
	e.word(c.Word)

	var out effect.Value
	for _, item := range c.Items {
		out = effect.Concat(out, e.stmts(item.Stmts, stdin, piped))
	}

	return out
}

func (e *eval) while(c *syntax.WhileClause, stdin effect.Value, piped bool) effect.Value {
	saved := e.flags
	e.flags |= effect.FlagLoop

	if endless(c.Cond, c.Until) && !hasBreak(c.Do) {
		e.flags |= effect.FlagUnbounded
		e.r.Add(effect.Effect{Kind: effect.Loop, Span: e.spanOf(c), Flags: e.flags, Via: "while"})
	}

	out := effect.Concat(e.stmts(c.Cond, stdin, piped), e.stmts(c.Do, stdin, piped))
	e.flags = saved

	return out
}

// endless says whether a condition never changes.
func endless(cond []*syntax.Stmt, until bool) bool {
	if len(cond) != 1 {
		return false
	}

	switch c := cond[0].Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false
		}

		want := "true"
		if until {
			want = "false"
		}

		switch name := c.Args[0].Lit(); name {
		case want:
			return true
		case ":":
			return !until
		case "[", "test":
			return len(c.Args) >= 2 && (c.Args[1].Lit() == "1" || c.Args[1].Lit() == "true") && len(c.Args) <= 3
		}
	case *syntax.ArithmCmd:
		w, ok := c.X.(*syntax.Word)

		return ok && w.Lit() == "1" && !until
	case *syntax.TestClause:
		u, ok := c.X.(*syntax.Word)

		return ok && u.Lit() != "" && !until
	}

	return false
}

// hasBreak says whether a loop body can leave the loop.
func hasBreak(body []*syntax.Stmt) bool {
	found := false

	for _, s := range body {
		syntax.Walk(s, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
				switch c.Args[0].Lit() {
				case "break", "exit", "return":
					found = true
				}
			}

			return !found
		})
	}

	return found
}

func (e *eval) forClause(c *syntax.ForClause, stdin effect.Value, piped bool) effect.Value {
	saved := e.flags
	e.flags |= effect.FlagLoop

	defer func() { e.flags = saved }()

	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		var items []effect.Value

		for _, w := range loop.Items {
			items = e.fields(items, w)
		}

		if !loop.InPos.IsValid() {
			items = e.args
		}

		if len(items) > maxRounds {
			items = append(items[:maxRounds:maxRounds], effect.Value{Text: effect.HoleText, Ref: program.ManyRef + "100"})
		}

		var out effect.Value

		for _, it := range items {
			e.set(loop.Name.Value, it)
			out = effect.Concat(out, e.stmts(c.Do, stdin, piped))
		}

		return out
	case *syntax.CStyleLoop:
		e.sideEffects(loop)

		if loop.Cond == nil && !hasBreak(c.Do) {
			e.flags |= effect.FlagUnbounded
			e.r.Add(effect.Effect{Kind: effect.Loop, Span: e.spanOf(c), Flags: e.flags, Via: "for"})
		}

		if name := loopVariable(loop); name != "" {
			e.set(name, effect.Value{Text: effect.HoleText, Ref: program.ManyRef + "100"})
		}
	}

	return e.stmts(c.Do, stdin, piped)
}

func loopVariable(loop *syntax.CStyleLoop) string {
	if b, ok := loop.Init.(*syntax.BinaryArithm); ok {
		if w, ok := b.X.(*syntax.Word); ok {
			return w.Lit()
		}
	}

	return ""
}
