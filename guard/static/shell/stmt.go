package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

// streams are where a statement's standard streams lead.
type streams struct {
	out     []target
	discard bool
	netIn   effect.Value
	netOut  effect.Value
	isNetIn bool
	isNet   bool
	stdin   bool
}

type target struct {
	path   effect.Value
	flags  effect.Flag
	stderr bool
}

// copied is what a statement without a command prints: nothing. With output
// redirected it empties the file.
func (io *streams) copied(stdin effect.Value) effect.Value { return effect.Value{} }

// stmt runs one statement and returns what it prints to its standard output.
func (e *eval) stmt(s *syntax.Stmt, stdin effect.Value, piped bool) effect.Value {
	if e.calls >= maxEval {
		e.r.Note(effect.NoteDepth, e.spanOf(s).Start, "statements")

		return effect.Unknown(effect.TaintOutput)
	}

	e.calls++
	saved := e.flags

	if s.Background {
		e.flags |= effect.FlagBackground
	}

	e.pipeIn = stdin

	var io streams

	for _, r := range s.Redirs {
		stdin, piped = e.redirect(r, &io, stdin, piped)
	}

	if io.isNetIn || io.isNet {
		e.flags |= effect.FlagNetIO
	}

	out := e.command(s, s.Cmd, stdin, piped, &io)

	if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && call.Args[0].Lit() == "exec" && len(call.Args) == 1 && (io.isNetIn || io.isNet) {
		saved |= effect.FlagNetIO
	}

	out = e.flush(s, &io, out)
	e.flags = saved
	e.calls--

	return out
}

// flush gives a statement's output to the files and sockets it is redirected
// to; what is left goes on.
func (e *eval) flush(s *syntax.Stmt, io *streams, out effect.Value) effect.Value {
	span := e.spanOf(s)

	if io.isNet && (out.Taint != 0 || out.Text != "") {
		e.r.Add(effect.Effect{Kind: effect.Send, Span: span, Target: io.netOut, Data: out, Flags: e.flags, Via: "/dev/tcp"})
	}

	for _, t := range io.out {
		data := out
		if t.stderr {
			data = effect.Unknown(effect.TaintOutput)
		}

		flags := e.flags | t.flags
		if s.Cmd == nil {
			flags |= effect.FlagTruncate
		}

		e.write(t.path, data, span, flags)
	}

	if len(io.out) > 0 && !onlyStderr(io.out) || io.discard || io.isNet {
		return effect.Value{}
	}

	return out
}

func onlyStderr(out []target) bool {
	for _, t := range out {
		if !t.stderr {
			return false
		}
	}

	return true
}

// write writes a file; what the network writes into a fifo that a shell reads
// is run.
func (e *eval) write(p, data effect.Value, span effect.Span, flags effect.Flag) {
	e.m.Write(p, data, span, flags, "redirection")

	if key := place.Resolve(p.Text, e.m.Cwd); e.fifos[key] && data.Has(effect.TaintNetwork) {
		e.r.Add(effect.Effect{Kind: effect.Eval, Span: span, Lang: "bash", Data: effect.Unknown(0).From(effect.TaintNetwork, data.Origin), Flags: e.flags, Via: "fifo"})
	}
}

// call runs a simple command.
func (e *eval) call(s *syntax.Stmt, c *syntax.CallExpr, stdin effect.Value, piped bool, io *streams) effect.Value {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			e.assign(a)
		}

		return effect.Value{}
	}

	for _, a := range c.Assigns {
		e.assignTemporary(a)
	}

	words := make([]effect.Value, 0, len(c.Args)+1)

	for _, w := range c.Args {
		words = e.fields(words, w)
	}

	for len(words) > 0 && words[0].IsEmpty() {
		words = words[1:]
	}

	if len(words) == 0 {
		return effect.Value{}
	}

	if e.aliases != nil {
		if a, ok := e.aliases[words[0].Text]; ok {
			return e.runAlias(a, words, stdin, piped, e.spanOf(c))
		}
	}

	return e.dispatch(program.Call{Name: words[0], Args: words[1:], Stdin: stdin, Piped: piped, Span: e.spanOf(c), Flags: e.flags})
}

// runAlias puts an alias's text before the arguments.
func (e *eval) runAlias(a effect.Value, words []effect.Value, stdin effect.Value, piped bool, span effect.Span) effect.Value {
	saved := e.aliases
	e.aliases = nil

	parts := []effect.Value{a}
	for _, w := range words[1:] {
		w.Text = quote(w.Text)
		parts = append(parts, effect.Const(" "), w)
	}

	out := e.inner(effect.Concat(parts...), span, 0, nil)
	e.aliases = saved

	return out
}

func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// dispatch starts a command by its folded words: function, builtin, program.
func (e *eval) dispatch(call program.Call) effect.Value {
	if !e.budget.Spend(1) {
		return effect.Unknown(effect.TaintOutput)
	}

	c := e.newCall()
	*c = call

	defer e.freeCall(c)

	c.Flags |= e.flags

	if !c.Name.IsConst() {
		c.Name = e.guessName(c.Name)
	}

	if f, ok := e.funcs[c.Name.Text]; ok {
		saved := e.span
		if !e.nested {
			e.span = c.Span
		}

		out := e.callFunction(c.Name.Text, f, c.Args, c.Stdin, c.Flags)
		e.span = saved

		return out
	}

	if b, ok := builtins[c.Name.Text]; ok {
		if out, done := b(e, c); done {
			return out
		}
	}

	if isArgZero(c.Name) {
		e.r.Add(effect.Effect{Kind: effect.Spawn, Span: c.Span, Target: c.Name, Flags: c.Flags | effect.FlagRecursing, Via: "$0"})
	}

	return e.m.RunCall(c)
}

func isArgZero(name effect.Value) bool { return name.Ref == "0" }

// guessName drops the unknown parts of a command name when what is left is a
// program: r$@m and r${x}m are rm in a shell without arguments.
func (e *eval) guessName(name effect.Value) effect.Value {
	if name.IsUnknown() {
		return name
	}

	bare := strings.ReplaceAll(name.Text, effect.HoleText, "")
	if program.Known(program.Base(bare)) && !strings.HasPrefix(name.Text, effect.HoleText+"/") {
		name.Text = bare
	}

	return name
}
