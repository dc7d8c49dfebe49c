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

// redirect applies one redirection.
func (e *eval) redirect(r *syntax.Redirect, io *streams, stdin effect.Value, piped bool) (effect.Value, bool) {
	fd := ""
	if r.N != nil {
		fd = r.N.Value
	}

	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc == nil {
			return effect.Value{}, true
		}

		return e.heredoc(r), true
	case syntax.WordHdoc:
		return effect.Concat(e.word(r.Word), effect.Const("\n")), true
	}

	w := e.word(r.Word)
	span := e.spanOf(r)

	if host, ok := socketPath(w); ok {
		e.openSocket(r, io, fd, w, host, span)

		if r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut && (fd == "" || fd == "0") {
			return effect.Unknown(0).From(effect.TaintNetwork, host.Text), true
		}

		return stdin, piped
	}

	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut:
		if fd != "" && fd != "0" {
			e.m.Read(w, span, e.flags|effect.FlagQuiet, "redirection")

			return stdin, piped
		}

		v := e.m.Read(w, span, e.flags, "redirection")
		if key := place.Resolve(w.Text, e.m.Cwd); e.fifos[key] && v.IsUnknown() {
			v.Ref = "fifo:" + key
		}

		return v, true
	case syntax.DplIn, syntax.DplOut:
		if sock, ok := e.fds[w.Text]; ok {
			if r.Op == syntax.DplIn {
				io.isNetIn, io.netIn = true, sock

				return effect.Unknown(0).From(effect.TaintNetwork, sock.Text), true
			}

			if fd == "" || fd == "1" {
				io.isNet, io.netOut = true, sock
			} else if fd == "0" {
				io.isNetIn, io.netIn = true, sock
			}

			return stdin, piped
		}

		if w.Text == "0" && io.isNetIn && (fd == "" || fd == "1") {
			io.isNet, io.netOut = true, io.netIn

			return stdin, piped
		}

		if r.Op == syntax.DplOut && fd == "0" && w.Text == "1" && io.isNet {
			io.isNetIn, io.netIn = true, io.netOut

			return effect.Unknown(0).From(effect.TaintNetwork, io.netOut.Text), true
		}

		if r.Op == syntax.DplIn && (fd == "" || fd == "0") && w.Text == "1" && io.isNet {
			io.isNetIn = true

			return effect.Unknown(0).From(effect.TaintNetwork, io.netOut.Text), true
		}

		if r.Op == syntax.DplOut && fd == "" && !isNumber(w.Text) && w.Text != "-" {
			e.redirectOut(io, w, 0, false)
		}
	case syntax.RdrOut, syntax.RdrClob:
		e.redirectOut(io, w, 0, fd == "2")
	case syntax.AppOut:
		e.redirectOut(io, w, effect.FlagAppend, fd == "2")
	case syntax.RdrAll:
		e.redirectOut(io, w, 0, false)
	case syntax.AppAll:
		e.redirectOut(io, w, effect.FlagAppend, false)
	}

	return stdin, piped
}

func (e *eval) redirectOut(io *streams, w effect.Value, flags effect.Flag, stderr bool) {
	switch w.Text {
	case "/dev/null":
		io.discard = io.discard || !stderr
	case "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2":
	default:
		io.out = append(io.out, target{path: w, flags: flags, stderr: stderr})
	}
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// socketPath is the host of bash's /dev/tcp/HOST/PORT.
func socketPath(w effect.Value) (effect.Value, bool) {
	for _, pre := range []string{"/dev/tcp/", "/dev/udp/"} {
		if i := strings.Index(w.Text, pre); i >= 0 && strings.Trim(w.Text[:i], "/.") == "" {
			host, port, _ := strings.Cut(w.Text[i+len(pre):], "/")
			v := w
			v.Text = host

			if port != "" {
				v.Text += ":" + port
			}

			return v, true
		}
	}

	return effect.Value{}, false
}

func (e *eval) openSocket(r *syntax.Redirect, io *streams, fd string, path, host effect.Value, span effect.Span) {
	flags := e.flags
	name, port, _ := strings.Cut(host.Text, ":")
	h, p := host, host
	h.Text, p.Text = name, port

	if strings.HasPrefix(path.Ref, program.ManyRef) {
		if strings.Contains(port, effect.HoleText) {
			flags |= effect.FlagManyPorts
		}

		if strings.Contains(name, effect.HoleText) {
			flags |= effect.FlagManyHosts
		}
	}

	e.r.Add(effect.Effect{Kind: effect.Connect, Span: span, Target: h, Port: p, Flags: flags, Via: "/dev/tcp"})

	if fd != "" && fd != "0" && fd != "1" && fd != "2" {
		if e.fds == nil {
			e.fds = map[string]effect.Value{}
		}

		fd = strings.Trim(fd, "{}")
		e.fds[fd] = host
		e.fds["$"+fd] = host

		return
	}

	switch r.Op {
	case syntax.RdrIn:
		io.isNetIn, io.netIn = true, host
	case syntax.RdrInOut:
		io.isNetIn, io.netIn = true, host
	default:
		if fd != "2" {
			io.isNet, io.netOut = true, host
		}
	}
}

// heredoc is the text of a here-document; a quoted delimiter keeps it as it
// stands.
func (e *eval) heredoc(r *syntax.Redirect) effect.Value {
	quoted := false

	for _, part := range r.Word.Parts {
		if _, lit := part.(*syntax.Lit); !lit {
			quoted = true
		} else if l, _ := part.(*syntax.Lit); strings.Contains(l.Value, `\`) {
			quoted = true
		}
	}

	parts := make([]effect.Value, 0, len(r.Hdoc.Parts))

	for _, part := range r.Hdoc.Parts {
		if l, ok := part.(*syntax.Lit); ok {
			text := l.Value
			if !quoted {
				text = unquoteDouble(text)
			}

			if r.Op == syntax.DashHdoc {
				text = strings.ReplaceAll(text, "\n\t", "\n")
			}

			parts = append(parts, e.literal(text))

			continue
		}

		parts = append(parts, e.part(part, true)...)
	}

	if len(parts) == 0 {
		return effect.Value{}
	}

	return effect.Concat(parts...)
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
		words = append(words, e.fields(w)...)
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
func (e *eval) dispatch(c program.Call) effect.Value {
	if !e.budget.Spend(1) {
		return effect.Unknown(effect.TaintOutput)
	}

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
		if out, done := b(e, &c); done {
			return out
		}
	}

	if isArgZero(c.Name) {
		e.r.Add(effect.Effect{Kind: effect.Spawn, Span: c.Span, Target: c.Name, Flags: c.Flags | effect.FlagRecursing, Via: "$0"})
	}

	return e.m.Run(c)
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
