// Package shell is the static guard's front end for shell text: POSIX sh, bash
// and their kin.
//
// Parse reads the text with mvdan.cc/sh and then runs it in the abstract:
// variables, arrays, functions, aliases, substitutions, pipes, redirections
// and heredocs carry values with their sources (effect.Value), so that
// "echo cm0gLXJmIC8= | base64 -d | sh" is seen as the rm it is. What each
// program does is package program's knowledge.
//
// The parser has no depth limit of its own and would end the process on
// hostile nesting; see gate.go for how that is prevented.
package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

// Parse is the front end's entry point. Relative paths stay relative until the
// script changes to a known directory.
func Parse(text string, budget *effect.Budget) effect.Result {
	// Most lines have an effect or two.
	r := effect.Result{Effects: make([]effect.Effect, 0, 4+min(len(text)/24, 1024))}

	e := newEval(&r, budget)
	e.text(text)
	e.uncalled()

	// What mends a broken line is not part of the text.
	for i := range r.Effects {
		s := &r.Effects[i].Span
		s.End = min(s.End, len(text))
		s.Start = min(s.Start, s.End)
	}

	return r
}

// eval is the state of one script.
type eval struct {
	m      *program.Machine
	r      *effect.Result
	budget *effect.Budget

	vars    map[string]variable
	funcs   map[string]*function
	aliases map[string]effect.Value
	args    []effect.Value
	fds     map[string]effect.Value // sockets opened by number

	flags effect.Flag
	// base is added to positions of the parser; in nested text, span stands for
	// all of them.
	base   int
	span   effect.Span
	nested bool
	// holes is where the unknown parts of nested text came from.
	holes effect.Value
	depth int
	calls int
	fifos map[string]bool
	// pipeIn is the standard input of the statement at work, for >(…).
	pipeIn effect.Value
}

// variable is a scalar or an array.
type variable struct {
	val  effect.Value
	list []effect.Value
	arr  bool
}

type function struct {
	body   *syntax.Stmt
	base   int
	span   effect.Span
	nested bool
	holes  effect.Value
	active int
	called bool
	// self counts starts of itself, for fork bombs.
	forks bool
}

const (
	// maxEval bounds recursion of the evaluator: nested statements, functions,
	// nested text.
	maxEval = 200
	// maxText bounds text within text.
	maxText = 8
)

func newEval(r *effect.Result, budget *effect.Budget) *eval {
	e := &eval{r: r, budget: budget}
	e.m = &program.Machine{Result: r, Budget: budget, Shell: e.shellText, Start: e.start}

	return e
}

// text parses and runs a piece of shell text in the current state.
func (e *eval) text(text string) effect.Value {
	var out effect.Value

	parse(text, e.budget, func(stmts []*syntax.Stmt, base int) {
		saved := e.base
		e.base = base
		out = effect.Concat(out, e.stmts(stmts, effect.Unknown(effect.TaintInput), false))
		e.base = saved
	}, func(kind effect.NoteKind, offset int, note string) {
		if e.nested {
			offset = e.span.Start
		}

		e.r.Note(kind, offset, note)
	})

	return out
}

// shellText runs text as a shell of its own would: "sh -c", a pipe into sh.
func (e *eval) shellText(text, stdin effect.Value, args []effect.Value, flags effect.Flag, span effect.Span, via string) effect.Value {
	funcs, aliases := e.funcs, e.aliases

	// A new shell knows neither functions nor aliases of its parent.
	out := e.inner(text, span, flags, func() {
		e.funcs, e.aliases, e.args = nil, nil, nil
		if len(args) > 0 {
			e.args = args[1:]
		}
	})
	e.funcs, e.aliases = funcs, aliases

	return out
}

// inner runs nested text; its effects stand at span of the outer text.
func (e *eval) inner(text effect.Value, span effect.Span, flags effect.Flag, prepare func()) effect.Value {
	if e.depth >= maxText {
		e.r.Note(effect.NoteDepth, span.Start, "shell text within shell text")

		return effect.Unknown(effect.TaintOutput)
	}

	saved := *e
	e.depth++
	e.span, e.nested, e.base = span, true, 0
	e.holes = text
	e.flags |= flags

	if text.Has(effect.TaintDecoded) {
		e.flags |= effect.FlagHidden
	}

	if prepare != nil {
		prepare()
	}

	out := e.text(text.Text)
	if prepare != nil {
		e.uncalled()
	}

	e.depth, e.span, e.nested, e.base, e.holes, e.flags, e.args = saved.depth, saved.span, saved.nested, saved.base, saved.holes, saved.flags, saved.args

	return out
}

// uncalled runs functions that nothing called: a sourced file's functions are
// called by somebody else.
func (e *eval) uncalled() {
	for range 4 {
		ran := false

		for _, name := range sortedNames(e.funcs) {
			f := e.funcs[name]
			if f.called {
				continue
			}

			ran = true
			e.callFunction(name, f, []effect.Value{{Text: effect.HoleText, Ref: "1"}, {Text: effect.HoleText, Ref: "2"}}, effect.Unknown(effect.TaintInput), e.flags)
		}

		if !ran {
			return
		}
	}
}

// spanOf is where a node stands in the outer text.
func (e *eval) spanOf(n syntax.Node) effect.Span {
	if e.nested {
		return e.span
	}

	start, end := n.Pos(), n.End()
	if !start.IsValid() || !end.IsValid() {
		return effect.Span{Start: e.base, End: e.base}
	}

	return effect.Span{Start: e.base + int(start.Offset()), End: e.base + int(end.Offset())}
}

// stmts runs a list and returns all that it prints.
func (e *eval) stmts(list []*syntax.Stmt, stdin effect.Value, piped bool) effect.Value {
	var out effect.Value

	for _, s := range list {
		if !e.budget.Spend(1) {
			return out
		}

		v := e.stmt(s, stdin, piped)
		if len(list) == 1 {
			return v
		}

		if v.Text != "" || v.Taint != 0 {
			e.budget.Spend(len(out.Text) / 32)
			out = effect.Concat(out, v)
		}
	}

	return out
}

// maxRounds bounds how many elements of a list a loop body is run for.
const maxRounds = 16

func (e *eval) command(s *syntax.Stmt, cmd syntax.Command, stdin effect.Value, piped bool, io *streams) effect.Value {
	switch c := cmd.(type) {
	case nil:
		return io.copied(stdin)
	case *syntax.CallExpr:
		return e.call(s, c, stdin, piped, io)
	case *syntax.BinaryCmd:
		return e.binary(c, stdin, piped)
	case *syntax.Block:
		return e.stmts(c.Stmts, stdin, piped)
	case *syntax.Subshell:
		return e.subshell(c.Stmts, stdin, piped)
	case *syntax.IfClause:
		return e.ifClause(c, stdin, piped)
	case *syntax.WhileClause:
		return e.while(c, stdin, piped)
	case *syntax.ForClause:
		return e.forClause(c, stdin, piped)
	case *syntax.CaseClause:
		return e.caseClause(c, stdin, piped)
	case *syntax.FuncDecl:
		e.declare(c)
	case *syntax.DeclClause:
		return e.declClause(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return e.stmt(c.Stmt, stdin, piped)
		}
	case *syntax.CoprocClause:
		if c.Stmt != nil {
			return e.stmt(c.Stmt, stdin, piped)
		}
	case *syntax.TestClause:
		e.sideEffects(c)
	case *syntax.ArithmCmd:
		e.sideEffects(c)
	case *syntax.LetClause:
		e.sideEffects(c)
	case *syntax.TestDecl:
		return e.stmt(c.Body, stdin, piped)
	}

	return effect.Value{}
}

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
	cwd, vars := e.m.Cwd, e.vars

	if len(vars) > 0 {
		e.vars = make(map[string]variable, len(vars))
		for k, v := range vars {
			e.vars[k] = v
		}
	}

	out := e.stmts(list, stdin, piped)
	e.m.Cwd, e.vars = cwd, vars

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
			items = append(items, e.fields(w)...)
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

func (e *eval) declare(c *syntax.FuncDecl) {
	if e.funcs == nil {
		e.funcs = map[string]*function{}
	}

	f := &function{body: c.Body, base: e.base, span: e.span, nested: e.nested, holes: e.holes}

	if c.Name != nil {
		e.funcs[c.Name.Value] = f
	}

	for _, n := range c.Names {
		e.funcs[n.Value] = f
	}
}

// callFunction runs a function's body. A function that starts itself again, in
// the background or in a pipe, is a fork bomb.
func (e *eval) callFunction(name string, f *function, args []effect.Value, stdin effect.Value, flags effect.Flag) effect.Value {
	f.called = true

	if f.active > 0 {
		f.forks = true
		e.r.Add(effect.Effect{Kind: effect.Spawn, Span: e.span, Target: effect.Const(name), Flags: flags | e.flags | effect.FlagRecursing, Via: name})

		return effect.Unknown(effect.TaintOutput)
	}

	if e.calls >= maxEval {
		e.r.Note(effect.NoteDepth, e.span.Start, "function calls")

		return effect.Unknown(effect.TaintOutput)
	}

	e.calls++
	f.active++

	saved := *e
	e.args, e.base, e.span, e.nested, e.holes = args, f.base, f.span, f.nested, f.holes
	e.flags |= flags

	out := e.stmt(f.body, stdin, true)

	e.args, e.base, e.span, e.nested, e.holes, e.flags = saved.args, saved.base, saved.span, saved.nested, saved.holes, saved.flags
	f.active--
	e.calls--

	return out
}

// start runs a command that may be a function or builtin: what sudo, env,
// xargs and find -exec start.
func (e *eval) start(c program.Call) effect.Value {
	if e.calls >= maxEval {
		return effect.Unknown(effect.TaintOutput)
	}

	e.calls++
	defer func() { e.calls-- }()

	return e.dispatch(c)
}

// home is the value of $HOME.
var home = effect.Const(place.Home)
