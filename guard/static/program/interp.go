package program

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// interpreter describes a program that runs code.
type interpreter struct {
	lang string
	// code are the options whose value is code, as getopt letters and names.
	code string
	// short and long are the options that take a value.
	short, long string
	// stdin says that code is read from standard input when none is named.
	stdin bool
}

var (
	shellInterp  = interpreter{lang: "bash", code: "c", short: "cOo", long: " rcfile init-file ", stdin: true}
	fishInterp   = interpreter{lang: "bash", code: "c command C init-command", short: "cCdD", long: " command init-command ", stdin: true}
	pythonInterp = interpreter{lang: "python", code: "c", short: "cmWXQ", stdin: true}
	perlInterp   = interpreter{lang: "perl", code: "e E", short: "eEIMmCDxF", stdin: true}
	rubyInterp   = interpreter{lang: "ruby", code: "e", short: "eIrCEFKTW", stdin: true}
	phpInterp    = interpreter{lang: "php", code: "r R B E run", short: "rRBEdcfFzSt", long: " run define file ", stdin: true}
	nodeInterp   = interpreter{lang: "javascript", code: "e p eval print", short: "eprC", long: " eval print require import conditions loader ", stdin: true}
	denoInterp   = interpreter{lang: "typescript", code: "eval e p print", short: "ep", long: " eval print ", stdin: false}
	luaInterp    = interpreter{lang: "lua", code: "e", short: "el", stdin: true}
	rInterp      = interpreter{lang: "r", code: "e", short: "ef", long: " args file ", stdin: true}
	tclInterp    = interpreter{lang: "tcl", stdin: true}
)

func interp(in *interpreter) model {
	return func(m *Machine, c *Call) effect.Value { return m.interpret(c, in) }
}

func python(m *Machine, c *Call) effect.Value {
	o := getopt(cutAfterCode(c.Args, "cm"), "cmWXQ", "")
	if mod, ok := o.val("m"); ok {
		return m.pythonModule(c, mod.Text)
	}

	return m.interpret(c, &pythonInterp)
}

// pythonModule knows the modules that people run.
func (m *Machine) pythonModule(c *Call, mod string) effect.Value {
	i := 0
	for i < len(c.Args) && c.Args[i].Text != mod {
		i++
	}

	rest := []effect.Value{}
	if i+1 < len(c.Args) {
		rest = c.Args[i+1:]
	}

	switch mod {
	case "pytest", "unittest":
		pytest(m, &Call{Name: effect.Const("pytest"), Args: rest, Span: c.Span, Flags: c.Flags})
	case "pip", "pip3", "venv", "http.server", "json.tool", "ensurepip", "build", "base64", "SimpleHTTPServer", "timeit", "pdb", "cProfile":
	default:
		name := strings.ReplaceAll(mod, ".", "/")
		m.load(c, effect.FlagOptional, "python", effect.Const(name+"/__main__.py"), effect.Const(name+".py"))
	}

	switch mod {
	case "pip", "pip3", "base64":
		sub := *c
		sub.Name, sub.Args = effect.Const(mod), rest

		return m.start(sub)
	case "http.server", "SimpleHTTPServer":
		m.add(c, effect.Effect{Kind: effect.Listen, Via: "http.server"})
	}

	return effect.Unknown(effect.TaintOutput)
}

// pytest runs the tests it is given, and what stands beside them for all.
func pytest(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "kmcpnorW", " rootdir confcutdir ignore cov cov-report junitxml maxfail durations tb color timeout ")
	m.load(c, effect.FlagOptional, "python", effect.Const("conftest.py"))

	for _, p := range o.pos {
		file, _, _ := strings.Cut(p.Text, "::")

		if strings.HasSuffix(file, ".py") {
			m.load(c, 0, "python", withText(p, file))
			file = path.Dir(file)
		}

		if file != "." {
			m.load(c, effect.FlagOptional, "python", withText(p, file+"/conftest.py"))
		}
	}

	return effect.Unknown(effect.TaintOutput)
}

// javaModel runs a source file, or compiles it.
func javaModel(m *Machine, c *Call) effect.Value {
	for _, a := range c.Args {
		if strings.HasSuffix(a.Text, ".java") || strings.HasSuffix(a.Text, ".jsh") {
			m.interpretFile(c, &interpreter{lang: "java"}, []effect.Value{a})
		}
	}

	return effect.Unknown(effect.TaintOutput)
}

// cutAfterCode drops what follows the value of an option after which an
// interpreter takes the rest as the script's own arguments.
func cutAfterCode(args []effect.Value, letters string) []effect.Value {
	for i, a := range args {
		if len(a.Text) > 1 && a.Text[0] == '-' && a.Text[1] != '-' {
			j := strings.IndexAny(a.Text[1:], letters)
			if j < 0 {
				continue
			}

			if j+2 < len(a.Text) {
				return args[:i+1]
			}

			return args[:min(i+2, len(args))]
		}

		if a.Text == "" || a.Text[0] != '-' {
			break
		}
	}

	return args
}

// interpret runs the code an interpreter is given: by option, by file, by
// standard input.
func (m *Machine) interpret(c *Call, in *interpreter) effect.Value {
	args := c.Args
	if in.lang == "python" {
		args = cutAfterCode(args, "cm")
	}

	o := getopt(args, in.short, in.long)
	out := effect.Unknown(effect.TaintOutput | c.Stdin.Taint&^effect.TaintInput)
	out.Origin = c.Stdin.Origin

	if o.has("version", "help", "V") {
		return out
	}

	if in.code != "" {
		for name := range strings.FieldsSeq(in.code) {
			if codes := o.vals(name); len(codes) > 0 {
				return m.interpretCode(c, in, &o, codes)
			}
		}
	}

	if in == &denoInterp && len(o.pos) > 0 {
		if o.pos[0].Text == "eval" && len(o.pos) > 1 {
			return m.runText(c, o.pos[1], in.lang, "deno eval")
		}

		if o.pos[0].Text == "run" {
			o.pos = o.pos[1:]
		}
	}

	if in == &nodeInterp {
		for _, v := range o.vals("r", "require", "import", "loader") {
			if strings.ContainsAny(v.Text, "/.") {
				m.load(c, effect.FlagOptional, in.lang, scriptPaths(in.lang, v)...)
			}
		}
	}

	if len(o.pos) > 0 && o.pos[0].Text != "-" && !o.has("s") {
		return m.interpretFile(c, in, o.pos)
	}

	if in.stdin {
		return m.interpretStdin(c, in, &o)
	}

	return out
}

func (m *Machine) interpretCode(c *Call, in *interpreter, o *options, codes []effect.Value) effect.Value {
	text := codes[0]
	if len(codes) > 1 {
		parts := make([]effect.Value, 0, 2*len(codes))
		for _, p := range codes {
			parts = append(parts, p, effect.Const("\n"))
		}

		text = effect.Concat(parts...)
	}

	via := Base(c.Name.Text) + " -" + in.code[:1]

	if in.lang == "bash" && m.Shell != nil && !text.IsUnknown() {
		if text.Taint != 0 || !text.IsConst() {
			m.add(c, effect.Effect{Kind: effect.Eval, Lang: "bash", Data: text, Via: via})
		}

		return m.Shell(text, c.Stdin, o.pos, c.Flags, c.Span, via)
	}

	out := m.runText(c, text, in.lang, via)
	if in.lang == "perl" && o.has("n", "p") || c.Piped {
		out.Taint |= c.Stdin.Taint &^ effect.TaintInput
		out.Origin = c.Stdin.Origin
	}

	return out
}

func (m *Machine) interpretFile(c *Call, in *interpreter, pos []effect.Value) effect.Value {
	p := pos[0]

	switch p.Text {
	case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
		return m.interpretStdin(c, in, &options{pos: pos[1:]})
	}

	m.add(c, effect.Effect{Kind: effect.Read, Target: p, Via: Base(c.Name.Text)})

	for _, found := range scriptPaths(in.lang, p) {
		if content, ok := m.file(found); ok {
			pos[0] = found

			return m.runFile(c, content, in.lang, pos)
		}
	}

	m.load(c, 0, in.lang, scriptPaths(in.lang, p)...)

	if p.Has(effect.TaintDownload | effect.TaintNetwork | effect.TaintDecoded) {
		m.add(c, effect.Effect{Kind: effect.Eval, Lang: in.lang, Target: p, Data: p, Via: Base(c.Name.Text)})
	}

	return effect.Unknown(effect.TaintOutput)
}

// scriptPaths are where an interpreter looks for the script it is given.
func scriptPaths(lang string, p effect.Value) []effect.Value {
	paths := []effect.Value{p}
	if path.Ext(p.Text) != "" {
		return paths
	}

	for _, more := range scriptEndings[lang] {
		paths = append(paths, withText(p, strings.TrimSuffix(p.Text, "/")+more))
	}

	return paths
}

// scriptEndings are, by language, what an interpreter puts behind a path.
var scriptEndings = map[string][]string{
	"python": {"/__main__.py"}, "javascript": {".js", ".mjs", ".cjs", "/index.js"}, "typescript": {".ts", ".js", "/index.ts"},
}

func (m *Machine) interpretStdin(c *Call, in *interpreter, o *options) effect.Value {
	if !c.Piped {
		return effect.Unknown(effect.TaintOutput)
	}

	if in.lang == "bash" && m.Shell != nil && !c.Stdin.IsUnknown() {
		if c.Stdin.Taint != 0 || !c.Stdin.IsConst() {
			m.add(c, effect.Effect{Kind: effect.Eval, Lang: "bash", Data: c.Stdin, Via: Base(c.Name.Text)})
		}

		return m.Shell(c.Stdin, effect.Unknown(effect.TaintInput), o.pos, c.Flags, c.Span, Base(c.Name.Text))
	}

	return m.runText(c, c.Stdin, in.lang, Base(c.Name.Text))
}
