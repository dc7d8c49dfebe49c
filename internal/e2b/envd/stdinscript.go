package envd

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/internal/e2b/files"
)

// flow is what reaches a command's standard input, or what a variable or a word
// holds of it.
type flow struct {
	reaches bool
	parts   bool   // it is some of its words, or without its quotes
	changed string // what changed it on the way
}

func either(a, b flow) flow {
	if a.changed == "" {
		a.changed = b.changed
	}
	a.reaches, a.parts = a.reaches || b.reaches, a.parts || b.parts
	return a
}

// use is what becomes of the flow where it is run.
func (f flow) use() Use {
	if f.changed != "" {
		return Use{Changed: f.changed}
	}
	return Use{Language: "bash", Parts: f.parts}
}

// scriptWalk collects what the commands of a script do with its standard input.
type scriptWalk struct {
	depth int
	funcs map[string]*syntax.FuncDecl
	// inside are the functions that are being followed.
	inside map[string]bool
	// vars are the variables that hold something of the input. "@" stands for all
	// positional parameters.
	vars map[string]flow
	// consts are variables with one value, from a place in the script on; dirs the
	// folders that the script goes to.
	consts map[string]constant
	dirs   []string
	// renamed says that a program may go by the name of another.
	renamed bool
	// separator says that words are parted by something else than blanks.
	separator bool
	found     uses
}

type constant struct {
	value string
	from  uint
}

// walkRounds is how often a script is followed: a loop may run what a later line of
// it reads.
const walkRounds = 3

func scriptUses(script string, depth int) uses {
	if depth > maxNested || len(script) > maxScript {
		return maybeShell
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return maybeShell
	}
	w := &scriptWalk{depth: depth, funcs: map[string]*syntax.FuncDecl{}, inside: map[string]bool{}, vars: map[string]flow{}, consts: map[string]constant{}}
	w.learn(file)
	for range walkRounds {
		known := len(w.vars)
		w.found = nil
		for _, s := range file.Stmts {
			w.stmt(s, flow{reaches: true})
		}
		if len(w.vars) == known {
			break
		}
	}
	return w.found
}

func (w *scriptWalk) stmts(stmts []*syntax.Stmt, in flow) (out flow) {
	for _, s := range stmts {
		out = either(out, w.stmt(s, in))
	}
	return out
}

// stmt follows the input into one statement and returns what comes out of it.
func (w *scriptWalk) stmt(s *syntax.Stmt, in flow) (out flow) {
	var to []*syntax.Word
	for _, r := range s.Redirs {
		w.nested(r, in)
		if r.N != nil && r.N.Value != "0" && (r.Op == syntax.RdrIn || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc) {
			continue
		}
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut:
			if r.Word != nil && literal(r.Word).known && !stdinFile.MatchString(printed(r.Word)) {
				in = flow{}
			} else if holds := w.holds(r.Word); holds.reaches {
				in = holds // a substitution
			}
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			text := r.Hdoc
			if text == nil {
				text = r.Word
			}
			in = flow{}
			if text != nil && !fixed(text) {
				if in = w.holds(text); !in.reaches && len(w.vars) > 0 {
					in = flow{reaches: true, changed: "the script"} // by what way, it does not tell
				}
			}
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob:
			to = append(to, r.Word)
		}
	}
	before := len(w.found)
	out = w.command(s.Cmd, in)
	if in.reaches && (out.reaches || len(w.found) > before) || out.reaches {
		for _, path := range to {
			w.write(path, either(in, out))
		}
	}
	return out
}

// write notes a file that the input is written to. What runs by itself, nobody
// judges again, so that it must be what was sent.
func (w *scriptWalk) write(path *syntax.Word, what flow) {
	if path == nil {
		return
	}
	use := target(w.literal(path))
	if use.Path == "/dev/null" || strings.HasPrefix(use.Path, "/dev/std") || strings.HasPrefix(use.Path, ">(") || temporary(path) {
		return
	}
	w.found = append(w.found, w.placed(use, what)...)
}

// placed is a file to which a flow is written, wherever the script may be.
func (w *scriptWalk) placed(use Use, what flow) uses {
	u := uses{use}
	if !strings.HasPrefix(use.Path, "/") && !strings.HasPrefix(use.Path, "~") {
		for _, dir := range w.dirs {
			u = append(u, Use{Path: strings.TrimSuffix(dir, "/") + "/" + use.Path, Made: use.Made})
		}
	}
	if what.changed == "" {
		return u
	}
	for _, at := range u {
		if _, runs := files.SelfRunning(at.Path); runs || at.Made {
			return append(u, Use{Changed: what.changed})
		}
	}
	return u
}

// command follows the input into a command.
func (w *scriptWalk) command(cmd syntax.Command, in flow) (out flow) {
	if cmd == nil {
		return flow{}
	}
	w.evaluated(cmd)
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		w.nested(cmd, in)
		w.assign(cmd.Assigns, len(cmd.Args) > 0)
		return w.call(cmd, in)
	case *syntax.DeclClause:
		w.nested(cmd, in)
		w.assign(cmd.Args, true)
		return flow{}
	case *syntax.FuncDecl:
		return flow{} // followed where it is called
	case *syntax.ForClause:
		if each, ok := cmd.Loop.(*syntax.WordIter); ok {
			w.nested(each, in)
			holds := flow{}
			for _, item := range each.Items {
				holds = either(holds, w.holds(item))
			}
			if len(each.Items) == 0 {
				holds = w.vars["@"]
			}
			holds.parts = true
			w.set(each.Name.Value, holds)
		}
		return w.stmts(cmd.Do, in)
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
		case *syntax.Stmt:
			return false
		}
		return true
	})
}

func (w *scriptWalk) call(call *syntax.CallExpr, in flow) flow {
	if len(call.Args) == 0 {
		return flow{}
	}
	argv := make([]word, len(call.Args))
	held := flow{}
	for i, a := range call.Args {
		argv[i] = w.literal(a)
		held = either(held, w.holds(a))
	}
	name := programName(argv[0].text)
	if !argv[0].known {
		name = ""
	}
	if f, ok := w.funcs[argv[0].text]; ok && argv[0].known {
		if f == nil {
			w.found = append(w.found, maybeAny...) // an alias
			return either(in, flow{changed: argv[0].text})
		}
		return w.callFunc(argv[0].text, f, either(in, flow{}), held)
	}
	w.runs(name, argv, call.Args, held)
	if name == "read" || name == "mapfile" || name == "readarray" {
		w.read(name, argv[1:], in)
	}
	if name == "set" && held.reaches {
		held.parts = true
		w.set("@", held)
	}
	var u uses
	if in.reaches {
		u = usesOf(argv, w.depth)
		if w.renamed && !builtins[name] {
			u = append(slices.Clip(u), maybeAny...)
		}
		w.found = append(w.found, w.whereUsed(u, in)...)
	}
	return w.output(name, argv, call.Args, u, in, held)
}

// whereUsed is what a program does with its input, given what has become of that
// before.
func (w *scriptWalk) whereUsed(u uses, in flow) (out uses) {
	for _, use := range u {
		switch {
		case use.Path != "":
			out = append(out, w.placed(use, in)...)
		case use.Language != "" && in.changed != "":
			out = append(out, Use{Changed: in.changed})
		default:
			use.Parts = use.Parts || in.parts
			use.Sure = use.Sure && !in.parts
			out = append(out, use)
		}
	}
	return out
}

// runs notes what becomes of words that hold something of the input: most programs
// may run them.
func (w *scriptWalk) runs(name string, argv []word, args []*syntax.Word, held flow) {
	if !held.reaches {
		return
	}
	switch {
	case evaluators[name]:
		if (name == "test" || name == "[") && w.compares(argv, args) {
			return
		}
	case name == "printf":
		if len(argv) < 2 || argv[1].known && argv[1].text != "-v" && !strings.HasPrefix(argv[1].text, "-") {
			return
		}
	case name != "" && (readers[name] && starters[name].long == nil || deaf[name]):
		return
	}
	for _, a := range args {
		if f := w.holds(a); f.reaches {
			w.found = append(w.found, f.use())
		}
	}
}

// compares reports whether a test only compares what its words hold.
func (w *scriptWalk) compares(argv []word, args []*syntax.Word) bool {
	operator := false
	for i, a := range argv {
		if _, quoted := args[i].Parts[0].(*syntax.DblQuoted); !a.known && (!quoted || len(args[i].Parts) > 1) || a.text == "-v" || a.text == "-R" {
			return false
		}
		operator = operator || a.known && i > 0 && a.text != "" && (a.text[0] == '-' || strings.Trim(a.text, "=!<>") == "")
	}
	return operator
}

// callFunc follows the input into a function.
func (w *scriptWalk) callFunc(name string, f *syntax.FuncDecl, in, held flow) flow {
	if held.reaches {
		w.set("@", held)
	}
	if w.inside[name] {
		return in
	}
	w.inside[name] = true
	defer delete(w.inside, name)
	return w.stmt(f.Body, in)
}

// output is what a command writes of the input.
func (w *scriptWalk) output(name string, argv []word, args []*syntax.Word, u uses, in, held flow) flow {
	switch {
	case name == "printf" || name == "echo":
		if !held.reaches {
			return flow{}
		}
		if name == "printf" && len(args) == 3 && argv[1].known && (argv[1].text == `%s\n` || argv[1].text == "%s") {
			return held // as it is
		}
		return flow{true, held.parts, name}
	case name != "" && deaf[name] && len(u) == 0:
		return flow{}
	case !in.reaches:
		if held.reaches {
			return flow{true, held.parts, name}
		}
		return flow{}
	case openers[name] && slices.ContainsFunc(argv[1:], namesFile):
		return flow{}
	case in.changed != "":
		return in
	case name == "cat" && slices.ContainsFunc(argv[1:], func(a word) bool { return a.text != "-" && a.text != "-u" }):
		return flow{true, in.parts, name}
	case plain[name]:
		return in
	case name == "":
		return flow{true, in.parts, argv[0].text + "?"}
	default:
		return flow{true, in.parts, name}
	}
}
