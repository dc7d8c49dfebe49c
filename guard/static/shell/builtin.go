package shell

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

// builtin runs a command that changes the shell itself; done is false if the
// command is to be run as a program after all.
type builtin func(e *eval, c *program.Call) (out effect.Value, done bool)

var builtins map[string]builtin

func init() {
	builtins = map[string]builtin{
		"cd": cd, "pushd": cd, "popd": popd, "pwd": pwd, "eval": evalText, "source": source, ".": source, "trap": trap, "alias": alias,
		"set": setArgs, "shift": shift, "unset": unset, "read": read, "mapfile": read, "readarray": read, "printf": printfVar,
		"exec": execFiles, "mkfifo": mkfifo, "mknod": mkfifo, "history": history, "export": exportText, "declare": exportText, "typeset": exportText,
		"complete": complete, "bind": bind, "enable": enable, "local": exportText, "getopts": ignore, "ulimit": ignore, "umask": ignore,
		"wait": ignore, "jobs": ignore, "hash": ignore, "return": ignore, "exit": ignore, "break": ignore, "continue": ignore, "shopt": ignore,
	}
}

func ignore(e *eval, c *program.Call) (effect.Value, bool) {
	return effect.Value{}, true
}

func cd(e *eval, c *program.Call) (effect.Value, bool) {
	dest := e.home()

	for _, a := range c.Args {
		if len(a.Text) > 1 && a.Text[0] == '-' {
			continue
		}

		dest = a
	}

	e.m.Dir = e.budget.World.In(e.m.Dir, dest.Text)
	if dest.Text == "-" {
		e.m.Dir = ""
	}

	switch {
	case dest.Text == "-" || !dest.IsConst():
		e.m.Cwd = ""

		if p := dest.Prefix(); strings.HasPrefix(p, "/") && len(p) > 1 {
			e.m.Cwd = place.Resolve(dest.Text, "")
		}
	case strings.HasPrefix(dest.Text, "/") || strings.HasPrefix(dest.Text, "~") || e.m.Cwd != "":
		e.m.Cwd = place.Resolve(dest.Text, e.m.Cwd)
	default:
		e.m.Cwd = ""
	}

	return effect.Value{}, true
}

func popd(e *eval, c *program.Call) (effect.Value, bool) {
	e.m.Cwd, e.m.Dir = "", ""

	return effect.Value{}, true
}

func pwd(e *eval, c *program.Call) (effect.Value, bool) {
	return effect.Concat(e.pwd(), effect.Const("\n")), true
}

func joinArgs(args []effect.Value) effect.Value {
	parts := make([]effect.Value, 0, 2*len(args))

	for i, a := range args {
		if i > 0 {
			parts = append(parts, effect.Const(" "))
		}

		parts = append(parts, a)
	}

	return concatOrEmpty(parts)
}

// evalText runs its arguments as text, with the state of this shell.
func evalText(e *eval, c *program.Call) (effect.Value, bool) {
	text := joinArgs(c.Args)
	if text.IsEmpty() {
		return effect.Value{}, true
	}

	if text.Taint != 0 || !text.IsConst() {
		e.r.Add(effect.Effect{Kind: effect.Eval, Span: c.Span, Lang: "bash", Data: text, Flags: c.Flags, Via: "eval"})
	}

	if text.IsUnknown() {
		return effect.Unknown(effect.TaintOutput), true
	}

	return e.inner(text, c.Span, c.Flags, nil), true
}

// stdinPaths are the names of standard input among the files.
var stdinPaths = map[string]bool{"/dev/stdin": true, "/dev/fd/0": true, "/proc/self/fd/0": true}

// source runs a file with the state of this shell.
func source(e *eval, c *program.Call) (effect.Value, bool) {
	if len(c.Args) == 0 {
		return effect.Value{}, true
	}

	content := e.m.Read(c.Args[0], c.Span, c.Flags|effect.FlagQuiet, "source")
	if stdinPaths[c.Args[0].Text] && !c.Stdin.IsEmpty() {
		content = c.Stdin
	}

	if content.Text == effect.HoleText {
		e.m.Load(c, "bash", c.Args[0])

		if content.Has(effect.TaintDownload | effect.TaintNetwork | effect.TaintDecoded) {
			e.r.Add(effect.Effect{Kind: effect.Eval, Span: c.Span, Lang: "bash", Data: content, Flags: c.Flags, Via: "source"})
		}

		return effect.Unknown(effect.TaintOutput), true
	}

	if content.Taint != 0 {
		e.r.Add(effect.Effect{Kind: effect.Eval, Span: c.Span, Lang: "bash", Data: content, Flags: c.Flags, Via: "source"})
	}

	return e.inner(content, c.Span, c.Flags, nil), true
}

// trap runs its text later.
func trap(e *eval, c *program.Call) (effect.Value, bool) {
	args := c.Args
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		args = args[1:]
	}

	if len(args) >= 2 && !args[0].IsEmpty() && !args[0].IsUnknown() {
		e.inner(args[0], c.Span, c.Flags, nil)
	}

	return effect.Value{}, true
}

// alias defines names; a name for a common command is reported.
func alias(e *eval, c *program.Call) (effect.Value, bool) {
	for _, a := range c.Args {
		name, text, ok := strings.Cut(a.Text, "=")
		if !ok {
			continue
		}

		v := withText(a, text)
		if e.aliases == nil {
			e.aliases = map[string]effect.Value{}
		}

		if len(e.aliases) < maxVars {
			e.aliases[name] = v
		}

		e.r.Add(effect.Effect{Kind: effect.Call, Span: c.Span, Target: effect.Const("alias"), Args: []effect.Value{effect.Const(name), v}, Flags: c.Flags, Via: "alias"})

		if text != "" && !v.IsUnknown() {
			saved := e.aliases
			e.aliases = nil
			e.inner(v, c.Span, c.Flags, nil)
			e.aliases = saved
		}
	}

	return effect.Value{}, true
}

// setArgs is set: positional arguments, or the list of all variables.
func setArgs(e *eval, c *program.Call) (effect.Value, bool) {
	if len(c.Args) == 0 {
		return effect.Unknown(0).From(effect.TaintEnvAll, "environment"), true
	}

	for i, a := range c.Args {
		if a.Text == "--" {
			e.args = c.Args[i+1:]

			return effect.Value{}, true
		}

		if a.Text != "" && a.Text[0] != '-' && a.Text[0] != '+' && i == 0 {
			e.args = c.Args

			return effect.Value{}, true
		}
	}

	if len(c.Args) == 2 && c.Args[0].Text == "+o" && c.Args[1].Text == "history" {
		e.r.Add(effect.Effect{Kind: effect.Call, Span: c.Span, Target: effect.Const("set +o history"), Flags: c.Flags, Via: "set"})
	}

	return effect.Value{}, true
}

func shift(e *eval, c *program.Call) (effect.Value, bool) {
	if len(e.args) > 0 {
		e.args = e.args[1:]
	}

	return effect.Value{}, true
}

func unset(e *eval, c *program.Call) (effect.Value, bool) {
	for _, a := range c.Args {
		delete(e.vars, a.Text)

		if a.Text == "HISTFILE" {
			e.r.Add(effect.Effect{Kind: effect.SetEnv, Span: c.Span, Target: a, Flags: c.Flags, Via: "unset"})
		}
	}

	return effect.Value{}, true
}

// read sets variables from standard input: a word each, the last the rest.
func read(e *eval, c *program.Call) (effect.Value, bool) {
	v := c.Stdin
	line, _, _ := strings.Cut(v.Text, "\n")
	v.Text = line

	var names []string

	for i := 0; i < len(c.Args); i++ {
		a := c.Args[i].Text

		if len(a) < 2 || a[0] != '-' {
			names = append(names, a)

			continue
		}

		if a[len(a)-1] == 'a' && i+1 < len(c.Args) {
			i++
			e.setList(c.Args[i].Text, v)

			return effect.Value{}, true
		}

		fd, isFD := strings.CutPrefix(a, "-u")

		if strings.IndexByte("pnNtduiCc", a[len(a)-1]) >= 0 {
			i++

			if isFD && fd == "" && i < len(c.Args) {
				fd = c.Args[i].Text
			}
		}

		if sock, ok := e.fds[fd]; ok && isFD {
			v = effect.Unknown(0).From(effect.TaintNetwork, sock.Text)
		}
	}

	if len(names) == 0 {
		e.set("REPLY", v)
		e.set("MAPFILE", v)
	}

	for i, name := range names {
		val := v

		if v.IsConst() && i+1 < len(names) {
			word, rest, _ := strings.Cut(strings.TrimLeft(v.Text, " \t"), " ")
			val.Text, v.Text = word, rest
		}

		if !val.IsConst() {
			val.Ref = name
		}

		e.set(name, val)
	}

	return effect.Value{}, true
}

// setList makes an array of a value's words.
func (e *eval) setList(name string, v effect.Value) {
	var list []effect.Value

	if v.IsConst() {
		for w := range strings.FieldsSeq(v.Text) {
			list = append(list, withText(v, w))
		}
	} else {
		list = []effect.Value{v}
	}

	e.set(name, v)

	if _, ok := e.vars[name]; ok {
		e.vars[name] = variable{list: list, arr: true}
	}
}

// printfVar is printf -v NAME.
func printfVar(e *eval, c *program.Call) (effect.Value, bool) {
	if len(c.Args) > 2 && c.Args[0].Text == "-v" {
		e.set(c.Args[1].Text, program.Format(e.budget, c.Args[2], c.Args[3:]))

		return effect.Value{}, true
	}

	return effect.Value{}, false
}

// execFiles is exec without a command: only its redirections count.
func execFiles(e *eval, c *program.Call) (effect.Value, bool) {
	return effect.Value{}, len(c.Args) == 0
}

func mkfifo(e *eval, c *program.Call) (effect.Value, bool) {
	if c.Name.Text == "mknod" && !(len(c.Args) > 1 && c.Args[len(c.Args)-1].Text == "p") {
		return effect.Value{}, false
	}

	for _, a := range c.Args {
		if strings.HasPrefix(a.Text, "-") || a.Text == "p" && c.Name.Text == "mknod" {
			continue
		}

		if e.fifos == nil {
			e.fifos = map[string]bool{}
		}

		e.fifos[place.Resolve(a.Text, e.m.Cwd)] = true
	}

	return effect.Value{}, true
}

func history(e *eval, c *program.Call) (effect.Value, bool) {
	e.r.Add(effect.Effect{Kind: effect.Exec, Span: c.Span, Target: c.Name, Args: c.Args, Flags: c.Flags, Via: "history"})

	return effect.Unknown(0).From(effect.TaintFile, place.Home+"/.bash_history"), true
}

// exportText is export and declare when the parser saw them as a command.
func exportText(e *eval, c *program.Call) (effect.Value, bool) {
	for _, a := range c.Args {
		if name, val, ok := strings.Cut(a.Text, "="); ok {
			e.set(name, withText(a, val))
			e.r.Add(effect.Effect{Kind: effect.SetEnv, Span: c.Span, Target: effect.Const(name), Data: withText(a, val), Flags: c.Flags})
		}
	}

	if len(c.Args) == 0 || len(c.Args) == 1 && c.Args[0].Text == "-p" {
		return effect.Unknown(0).From(effect.TaintEnvAll, "environment"), true
	}

	return effect.Value{}, true
}

// complete -C runs a command on every completion; bind -x on a key.
func complete(e *eval, c *program.Call) (effect.Value, bool) {
	for i, a := range c.Args {
		if a.Text == "-C" && i+1 < len(c.Args) && !c.Args[i+1].IsUnknown() {
			e.inner(c.Args[i+1], c.Span, c.Flags, nil)
		}
	}

	return effect.Value{}, true
}

func bind(e *eval, c *program.Call) (effect.Value, bool) {
	if len(c.Args) == 2 && c.Args[0].Text == "-x" {
		if _, cmd, ok := strings.Cut(c.Args[1].Text, ":"); ok {
			e.inner(withText(c.Args[1], strings.Trim(cmd, ` "'`)), c.Span, c.Flags, nil)
		}
	}

	return effect.Value{}, true
}

// enable -f loads a shared object into the shell.
func enable(e *eval, c *program.Call) (effect.Value, bool) {
	for i, a := range c.Args {
		if a.Text == "-f" && i+1 < len(c.Args) {
			e.r.Add(effect.Effect{Kind: effect.Eval, Span: c.Span, Lang: "native", Target: c.Args[i+1], Data: c.Args[i+1], Flags: c.Flags, Via: "enable -f"})
		}
	}

	return effect.Value{}, true
}
