package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

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
