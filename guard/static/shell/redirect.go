package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

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
