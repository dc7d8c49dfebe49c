package program

import (
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
	case "pip", "pip3", "base64":
		sub := *c
		sub.Name, sub.Args = effect.Const(mod), rest

		return m.start(sub)
	case "http.server", "SimpleHTTPServer":
		m.add(c, effect.Effect{Kind: effect.Listen, Via: "http.server"})
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

	if content, ok := m.file(p); ok {
		return m.runFile(c, content, in.lang)
	}

	if p.Has(effect.TaintDownload | effect.TaintNetwork | effect.TaintDecoded) {
		m.add(c, effect.Effect{Kind: effect.Eval, Lang: in.lang, Target: p, Data: p, Via: Base(c.Name.Text)})
	}

	return effect.Unknown(effect.TaintOutput)
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

// findModel walks a tree: what it deletes, what it runs on what it finds.
func findModel(m *Machine, c *Call) effect.Value {
	var roots []effect.Value

	i := 0
	for ; i < len(c.Args); i++ {
		a := c.Args[i].Text
		if a == "-H" || a == "-L" || a == "-P" {
			continue
		}

		if strings.HasPrefix(a, "-") || a == "(" || a == "!" || a == ")" {
			break
		}

		roots = append(roots, c.Args[i])
	}

	if len(roots) == 0 {
		roots = []effect.Value{effect.Const(".")}
	}

	names, filtered := findTests(c.Args[i:])
	found := findResults(roots, names, filtered)

	for ; i < len(c.Args); i++ {
		switch c.Args[i].Text {
		case "-delete":
			for _, f := range found {
				flags := effect.FlagRecursive
				if filtered {
					flags = 0
				}

				m.add(c, effect.Effect{Kind: effect.Delete, Target: f, Flags: flags, Via: "find -delete"})
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(c.Args) && c.Args[end].Text != ";" && !(c.Args[end].Text == "+" && end > i+1 && strings.Contains(c.Args[end-1].Text, "{}")) {
				end++
			}

			for _, f := range found {
				m.runWith(c, c.Args[i+1:min(end, len(c.Args))], "{}", f)
			}

			i = end
		case "-fprint", "-fprintf", "-fls", "-fprint0":
			if i+1 < len(c.Args) {
				m.Write(c.Args[i+1], effect.Unknown(0), c.Span, c.Flags, "find")
			}
		}
	}

	out := effect.Unknown(0)
	out.Ref = "find"

	if len(found) == 1 {
		out.Text = found[0].Text
		if out.IsConst() {
			out.Text += "/" + effect.HoleText
		}
	}

	return out
}

// runWith runs a command with every occurrence of a token replaced.
func (m *Machine) runWith(c *Call, words []effect.Value, token string, with effect.Value) {
	if len(words) == 0 {
		return
	}

	args := make([]effect.Value, len(words))

	for i, w := range words {
		args[i] = w
		if token != "" && strings.Contains(w.Text, token) {
			v := with
			v.Text = strings.ReplaceAll(w.Text, token, with.Text)
			args[i] = v
		}
	}

	m.start(Call{Name: args[0], Args: args[1:], Stdin: effect.Unknown(0), Span: c.Span, Flags: c.Flags | effect.FlagLoop})
}

// findTests collects the name tests of a find expression; filtered says that
// something narrows the result below "everything there".
func findTests(args []effect.Value) (names []string, filtered bool) {
	for i := 0; i < len(args); i++ {
		switch args[i].Text {
		case "-name", "-iname", "-path", "-ipath", "-wholename":
			if i+1 < len(args) {
				if n := strings.Trim(args[i+1].Text, "*/"); n != "" {
					if i == 0 || args[i-1].Text != "!" && args[i-1].Text != "-not" {
						names = append(names, args[i+1].Text)
					}

					filtered = true
				}

				i++
			}
		case "-regex", "-iregex", "-newer", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-size", "-user", "-group", "-perm",
			"-empty", "-nouser", "-nogroup", "-uid", "-gid", "-inum", "-links", "-samefile", "-newermt", "-lname":
			filtered = true
		case "-type", "-xtype":
			// Files and directories are everything; links and sockets are few.
			if i+1 < len(args) && args[i+1].Text != "f" && args[i+1].Text != "d" {
				filtered = true
			}
		}
	}

	return names, filtered
}

// findResults are the paths that stand for what find finds.
func findResults(roots []effect.Value, names []string, filtered bool) []effect.Value {
	var out []effect.Value

	for _, r := range roots {
		switch {
		case len(names) > 0:
			for _, n := range names[:min(len(names), 8)] {
				v := r
				if !strings.HasPrefix(n, "/") {
					n = strings.TrimPrefix(n, "*/")
					v.Text = strings.TrimSuffix(r.Text, "/") + "/" + effect.HoleText + "/" + n
				} else {
					v.Text = n
				}

				out = append(out, v)
			}
		case filtered:
			v := r
			v.Text = strings.TrimSuffix(r.Text, "/") + "/" + effect.HoleText
			out = append(out, v)
		default:
			out = append(out, r)
		}

		if len(out) > 16 {
			break
		}
	}

	return out
}

// xargs runs a command on what it reads.
func xargs(m *Machine, c *Call) effect.Value {
	args := c.Args
	token := ""
	i := 0

	for i < len(args) {
		a := args[i].Text

		if len(a) < 2 || a[0] != '-' {
			break
		}

		switch {
		case a == "-I" || a == "--replace":
			token = "{}"

			if a == "-I" && i+1 < len(args) {
				i++
				token = args[i].Text
			}
		case strings.HasPrefix(a, "-I"), strings.HasPrefix(a, "-i") && len(a) > 2:
			token = a[2:]
		case a == "-i":
			token = "{}"
		case strings.HasPrefix(a, "--replace="):
			token = a[len("--replace="):]
		case a == "-n" || a == "-P" || a == "-d" || a == "-a" || a == "-L" || a == "-s" || a == "-E" || a == "-J" || a == "-R" ||
			a == "--max-args" || a == "--max-procs" || a == "--delimiter" || a == "--arg-file" || a == "--max-lines" || a == "--eof" || a == "--max-chars":
			i++
		}

		i++
	}

	if i >= len(args) {
		return c.Stdin
	}

	words := args[i:]
	in := m.items(c.Stdin)

	if token != "" {
		// With a token an item is a line.
		for line := range strings.SplitSeq(strings.TrimSuffix(c.Stdin.Text, "\n"), "\n") {
			if len(in) >= maxItems {
				break
			}

			if strings.ContainsAny(line, " \t") {
				in = append(in, withText(c.Stdin, line))
			}
		}

		for _, item := range in {
			m.runWith(c, words, token, item)
		}

		return effect.Unknown(effect.TaintOutput | c.Stdin.Taint)
	}

	return m.start(Call{
		Name: words[0], Args: append(append([]effect.Value{}, words[1:]...), in...), Stdin: effect.Unknown(0), Span: c.Span,
		Flags: c.Flags,
	})
}

// maxItems bounds how many words of a list are run one by one.
const maxItems = 24

// items splits what a program reads into words.
func (m *Machine) items(v effect.Value) []effect.Value {
	if v.IsUnknown() {
		return []effect.Value{v}
	}

	fields := strings.FieldsFunc(v.Text, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == 0 })
	out := make([]effect.Value, 0, min(len(fields), maxItems))

	for _, f := range fields[:min(len(fields), maxItems)] {
		w := v
		w.Text = strings.Trim(f, `"'`)
		out = append(out, w)
	}

	return out
}

// parallel runs a command on each of its inputs.
func parallel(m *Machine, c *Call) effect.Value {
	var words, inputs []effect.Value

	i := 0
	for i < len(c.Args) && strings.HasPrefix(c.Args[i].Text, "-") {
		switch c.Args[i].Text {
		case "-j", "-N", "-n", "-I", "-a", "--jobs", "--delay", "--timeout", "--colsep":
			i++
		}

		i++
	}

	for ; i < len(c.Args); i++ {
		if strings.HasPrefix(c.Args[i].Text, ":::") {
			inputs = c.Args[i+1:]

			break
		}

		words = append(words, c.Args[i])
	}

	if inputs == nil {
		inputs = m.items(c.Stdin)
	}

	for _, in := range inputs[:min(len(inputs), maxItems)] {
		if len(words) == 0 {
			m.runText(c, in, "bash", "parallel")

			continue
		}

		text := make([]effect.Value, 0, 2*len(words)+1)
		seen := false

		for _, w := range words {
			if strings.Contains(w.Text, "{}") {
				seen = true
				v := in
				v.Text = strings.ReplaceAll(w.Text, "{}", in.Text)
				w = v
			}

			text = append(text, w, effect.Const(" "))
		}

		if !seen {
			text = append(text, in)
		}

		m.runText(c, effect.Concat(text...), "bash", "parallel")
	}

	return effect.Unknown(effect.TaintOutput)
}

// joined runs the operands, joined by blanks, as shell text (watch, ssh host).
func joined(short, long string, skip int, flags effect.Flag) model {
	return func(m *Machine, c *Call) effect.Value {
		pos := operandsUntilCommand(c.Args, short, long)
		if len(pos) <= skip {
			return effect.Unknown(effect.TaintOutput)
		}

		parts := make([]effect.Value, 0, 2*len(pos))
		for i, p := range pos[skip:] {
			if i > 0 {
				parts = append(parts, effect.Const(" "))
			}

			parts = append(parts, p)
		}

		inner := *c
		inner.Flags |= flags

		return m.runText(&inner, effect.Concat(parts...), "bash", Base(c.Name.Text))
	}
}

// operandsUntilCommand drops leading options only.
func operandsUntilCommand(args []effect.Value, short, long string) []effect.Value {
	var pos []effect.Value

	for i := 0; i < len(args); i++ {
		a := args[i].Text

		switch {
		case len(pos) > 0:
			// An option after the first operand still belongs to ssh; after the
			// second it belongs to the command.
			if len(pos) == 1 && len(a) == 2 && a[0] == '-' && strings.IndexByte(short, a[1]) >= 0 {
				i++

				continue
			}

			return append(pos, args[i:]...)
		case a == "--":
		case strings.HasPrefix(a, "--"):
			if strings.Contains(long, " "+a[2:]+" ") {
				i++
			}
		case len(a) > 1 && a[0] == '-':
			if j := strings.IndexAny(a[1:], short); j >= 0 && j+2 == len(a) {
				i++
			}
		default:
			pos = append(pos, args[i])
		}
	}

	return pos
}

// codeOption runs the value of an option as shell text.
func codeOption(names string) model {
	return func(m *Machine, c *Call) effect.Value {
		for i, a := range c.Args {
			for name := range strings.FieldsSeq(names) {
				if a.Text == name && i+1 < len(c.Args) {
					return m.runText(c, c.Args[i+1], "bash", Base(c.Name.Text)+" "+name)
				}

				if len(name) == 2 && len(a.Text) > 2 && a.Text[0] == '-' && a.Text[1] != '-' && a.Text[len(a.Text)-1] == name[1] && i+1 < len(c.Args) {
					return m.runText(c, c.Args[i+1], "bash", Base(c.Name.Text)+" "+name)
				}

				if v, ok := strings.CutPrefix(a.Text, name+"="); ok {
					w := a
					w.Text = v

					return m.runText(c, w, "bash", Base(c.Name.Text)+" "+name)
				}
			}
		}

		return effect.Unknown(effect.TaintOutput)
	}
}

// schedule is at and batch: what they read runs later.
func schedule(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "fqt", "")
	if o.has("l", "q", "r", "d", "c") || !c.Piped && !o.has("f") {
		return effect.Unknown(effect.TaintOutput)
	}

	m.add(c, effect.Effect{Kind: effect.Schedule, Target: effect.Const("at"), Data: c.Stdin})

	if !c.Stdin.IsUnknown() {
		m.runText(c, c.Stdin, "bash", "at")
	}

	return effect.Unknown(effect.TaintOutput)
}
