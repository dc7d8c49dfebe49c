package envd

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// flow is what reaches a command's standard input.
type flow struct {
	reaches bool
	changed string // the program that changed it on the way
}

// scriptWalk collects what the commands of a script do with its standard input.
type scriptWalk struct {
	depth int
	funcs map[string]bool
	found uses
}

func scriptUses(script string, depth int) uses {
	if depth > maxNested || len(script) > maxScript {
		return maybeShell
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return maybeShell
	}
	w := &scriptWalk{depth: depth, funcs: make(map[string]bool)}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
			w.funcs[f.Name.Value] = true
		}
		return true
	})
	for _, s := range file.Stmts {
		w.stmt(s, flow{reaches: true})
	}
	return w.found
}

func (w *scriptWalk) stmts(stmts []*syntax.Stmt, in flow) {
	for _, s := range stmts {
		w.stmt(s, in)
	}
}

// stmt follows the input into one statement and returns what comes out of it.
func (w *scriptWalk) stmt(s *syntax.Stmt, in flow) (out flow) {
	var to []string
	for _, r := range s.Redirs {
		w.nested(r, in)
		target := printed(r.Word)
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut:
			if (r.N == nil || r.N.Value == "0") && r.Word != nil && literal(r.Word).known && !stdinFile.MatchString(target) {
				in = flow{}
			}
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			text := r.Hdoc
			if text == nil {
				text = r.Word
			}
			if (r.N == nil || r.N.Value == "0") && (text == nil || fixed(text)) {
				in = flow{}
			}
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob:
			to = append(to, target)
		}
	}
	before := len(w.found)
	out = w.command(s.Cmd, in)
	read := in.reaches && (out.reaches || len(w.found) > before)
	for _, path := range to {
		if read && path != "/dev/null" && !strings.HasPrefix(path, "/dev/std") {
			w.found = append(w.found, Use{Path: path})
		}
	}
	return out
}

// command follows the input into a command.
func (w *scriptWalk) command(cmd syntax.Command, in flow) (out flow) {
	switch cmd := cmd.(type) {
	case nil:
		return flow{}
	case *syntax.CallExpr:
		w.nested(cmd, in)
		return w.call(cmd, in)
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			return w.stmt(cmd.Y, w.stmt(cmd.X, in))
		}
		x, y := w.stmt(cmd.X, in), w.stmt(cmd.Y, in)
		return either(x, y)
	}
	// Whatever the control structure, each statement in it may read the input.
	syntax.Walk(cmd, func(n syntax.Node) bool {
		if s, ok := n.(*syntax.Stmt); ok {
			out = either(out, w.stmt(s, in))
			return false
		}
		return true
	})
	return out
}

func either(a, b flow) flow {
	if a.changed == "" {
		a.changed = b.changed
	}
	a.reaches = a.reaches || b.reaches
	return a
}

// nested follows the input into the substitutions of a node.
func (w *scriptWalk) nested(n syntax.Node, in flow) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.stmts(n.Stmts, in)
			return false
		case *syntax.ProcSubst:
			w.stmts(n.Stmts, in)
			return false
		}
		return true
	})
}

func (w *scriptWalk) call(call *syntax.CallExpr, in flow) flow {
	if !in.reaches || len(call.Args) == 0 {
		return flow{}
	}
	argv := make([]word, len(call.Args))
	for i, a := range call.Args {
		argv[i] = literal(a)
	}
	if argv[0].known && w.funcs[argv[0].text] {
		return flow{reaches: true}
	}
	u := usesOf(argv, w.depth)
	name := programName(argv[0].text)
	if in.changed != "" {
		if len(u) > 0 && slices.ContainsFunc(u, func(use Use) bool { return use.Language != "" }) {
			w.found = append(w.found, Use{Changed: in.changed})
			return in
		}
	}
	w.found = append(w.found, u...)
	switch {
	case argv[0].known && deaf[name] && len(u) == 0:
		if !slices.ContainsFunc(argv, func(a word) bool { return !a.known }) {
			return flow{}
		}
		return in // a variable or a substitution may hold the input
	case openers[name] && slices.ContainsFunc(argv[1:], namesFile):
		return flow{}
	case in.changed != "" || argv[0].known && plain[name]:
		return flow{true, in.changed}
	case !argv[0].known || name == "":
		return flow{true, argv[0].text + "?"}
	default:
		return flow{true, name}
	}
}

// literal is a word's text if it does not depend on anything.
func literal(w *syntax.Word) word {
	var b strings.Builder
	for _, part := range w.Parts {
		if !literalPart(&b, part) {
			b.Reset()
			_ = syntax.NewPrinter().Print(&b, w)
			return word{b.String(), false}
		}
	}
	return word{b.String(), true}
}

func literalPart(b *strings.Builder, part syntax.WordPart) bool {
	switch part := part.(type) {
	case *syntax.Lit:
		text := part.Value
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '*', '?', '[', '{':
				return false
			}
			if i < len(text) && text[i] != '\n' {
				b.WriteByte(text[i])
			}
		}
		return true
	case *syntax.SglQuoted:
		b.WriteString(part.Value)
		return !part.Dollar
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				b.WriteString(strings.NewReplacer(`\"`, `"`, `\\`, `\`, "\\$", "$", "\\`", "`", "\\\n", "").Replace(lit.Value))
			} else if !literalPart(b, inner) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// printed is a redirection's target as the script writes it.
func printed(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return literal(w).text
}

// fixed reports whether a here-document has no substitution in it.
func fixed(w *syntax.Word) bool {
	ok := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
			ok = false
		}
		return ok
	})
	return ok
}
