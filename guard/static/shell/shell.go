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
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

// Parse is the front end's entry point. Relative paths stay relative until the
// script changes to a known directory.
func Parse(text string, budget *effect.Budget) effect.Result {
	// Most lines have an effect or two.
	r := effect.Result{Effects: budget.Effects(4 + min(len(text)/24, 1024))}

	e := newEval(&r, budget)
	e.text(text)
	e.uncalled()
	e.free()

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
	// spare are calls to be used again.
	spare []*program.Call
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
	e, _ := evals.Get().(*eval)
	e.r, e.m.Result = r, r
	e.budget, e.m.Budget = budget, budget

	if budget.World != nil {
		e.m.Dir = budget.World.Dir
	}

	return e
}

var evals = sync.Pool{New: func() any {
	e := &eval{}
	e.m = &program.Machine{Shell: e.shellText, Start: e.start}

	return e
}}

// free wipes the state and passes it on to the next script.
func (e *eval) free() {
	*e.m = program.Machine{Shell: e.m.Shell, Start: e.m.Start}
	*e = eval{m: e.m, spare: e.spare}

	evals.Put(e)
}

// newCall and freeCall take calls from those that are done with.
func (e *eval) newCall() *program.Call {
	if n := len(e.spare); n > 0 {
		c := e.spare[n-1]
		e.spare = e.spare[:n-1]

		return c
	}

	return &program.Call{}
}

func (e *eval) freeCall(c *program.Call) {
	*c = program.Call{}
	e.spare = append(e.spare, c)
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
	funcs, aliases, dir := e.funcs, e.aliases, e.m.Dir

	// A new shell knows neither functions nor aliases of its parent.
	out := e.inner(text, span, flags, func() {
		e.funcs, e.aliases, e.args = nil, nil, nil
		if len(args) > 0 {
			e.args = args[1:]
		}
	})
	e.funcs, e.aliases, e.m.Dir = funcs, aliases, dir

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

// home is the value of $HOME.
func (e *eval) home() effect.Value {
	if w := e.budget.World; w != nil && w.Home != "" {
		return effect.Const(w.Home)
	}

	return effect.Const(place.Home)
}
