package program

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// info prints a fact about host or user.
func info(what string) model {
	return func(m *Machine, c *Call) effect.Value {
		m.add(c, effect.Effect{Kind: effect.Info, Target: effect.Const(what)})

		return effect.Unknown(0).From(effect.TaintInfo, what)
	}
}

// AllProcesses is the Ref of the numbers of all processes there are.
const AllProcesses = "all processes"

// processes is ps; without a choice it lists everything that runs.
func processes(m *Machine, c *Call) effect.Value {
	v := info("processes")(m, c)

	o := getopt(c.Args, "oCpuUgGtqskO", " pid user group ppid sid tty format sort ")
	if !o.has("C", "p", "q", "pid", "ppid", "user", "group", "u", "U", "t", "g", "s") {
		v.Ref = AllProcesses
	}

	return v
}

// quiet prints nothing that matters.
func quiet(m *Machine, c *Call) effect.Value { return effect.Unknown(effect.TaintOutput) }

// printenv prints the environment or one variable.
func printenv(m *Machine, c *Call) effect.Value {
	if len(c.Args) > 0 && Base(c.Name.Text) != "env" {
		m.add(c, effect.Effect{Kind: effect.Env, Target: c.Args[0]})

		return effect.Unknown(0).From(effect.TaintEnv, c.Args[0].Text)
	}

	if Base(c.Name.Text) == "env" {
		for _, a := range c.Args {
			if len(a.Text) > 0 && a.Text[0] != '-' {
				return effect.Unknown(effect.TaintOutput)
			}
		}
	}

	m.add(c, effect.Effect{Kind: effect.Env})

	return effect.Unknown(0).From(effect.TaintEnvAll, "environment")
}

// kill signals processes by number or name.
func kill(m *Machine, c *Call) effect.Value {
	signal := effect.Const("TERM")
	name := Base(c.Name.Text)

	var targets []effect.Value

	for i := 0; i < len(c.Args); i++ {
		a := c.Args[i]

		switch {
		case a.Text == "-s" || a.Text == "-n" || a.Text == "--signal" || (a.Text == "-u" || a.Text == "-U" || a.Text == "--user") && name != "kill":
			if i+1 < len(c.Args) {
				if strings.HasPrefix(a.Text, "-u") || strings.HasPrefix(a.Text, "-U") {
					targets = append(targets, withText(c.Args[i+1], "user:"+c.Args[i+1].Text))
				} else {
					signal = c.Args[i+1]
				}
			}

			i++
		case a.Text == "-l" || a.Text == "-L":
			return effect.Unknown(0)
		case a.Text == "--":
		case len(a.Text) > 1 && a.Text[0] == '-' && len(targets) == 0 && signal.Text == "TERM" && !(a.Text == "-1" && i > 0):
			if name == "kill" || !strings.ContainsAny(a.Text, "fxionvaegtrqIO") || strings.ToUpper(a.Text) == a.Text {
				signal = withText(a, strings.TrimPrefix(a.Text[1:], "SIG"))
			}
		case len(a.Text) > 1 && a.Text[0] == '-' && name != "kill":
		default:
			targets = append(targets, a)
		}
	}

	if name == "kill" && len(targets) == 0 && signal.Text == "1" {
		targets = append(targets, effect.Const("-1"))
	}

	for _, t := range targets {
		m.add(c, effect.Effect{Kind: effect.Kill, Target: t, Data: signal})
	}

	return effect.Value{}
}

// capture records what a device of the user sees or hears: a person may do so
// on the command line to try it out.
func capture(what string) model {
	return func(m *Machine, c *Call) effect.Value {
		if hasWord(c.Args, "-l") || hasWord(c.Args, "-L") || hasWord(c.Args, "--help") || hasWord(c.Args, "--version") || hasWord(c.Args, "-h") {
			return effect.Unknown(effect.TaintOutput)
		}

		m.add(c, effect.Effect{Kind: effect.Capture, Target: effect.Const(what)})

		return effect.Unknown(0).From(effect.TaintCapture, what)
	}
}

// ffmpeg records where its input is a device.
func ffmpeg(m *Machine, c *Call) effect.Value {
	for i, a := range c.Args {
		if a.Text != "-f" || i+1 >= len(c.Args) {
			continue
		}

		switch c.Args[i+1].Text {
		case "v4l2", "video4linux2":
			return capture("picture")(m, c)
		case "x11grab", "kmsgrab", "fbdev":
			return capture("screen")(m, c)
		case "alsa", "pulse", "oss", "jack":
			return capture("sound")(m, c)
		}
	}

	return effect.Unknown(effect.TaintOutput)
}

// xinput tells what is typed when it is asked to test a device.
func xinput(m *Machine, c *Call) effect.Value {
	for _, a := range c.Args {
		if strings.HasPrefix(strings.TrimLeft(a.Text, "-"), "test") {
			return capture("keys")(m, c)
		}
	}

	return effect.Unknown(effect.TaintOutput)
}

// windowGrab is ImageMagick's import, which is told what to take.
func windowGrab(m *Machine, c *Call) effect.Value {
	if hasWord(c.Args, "-window") || hasWord(c.Args, "-screen") {
		return capture("screen")(m, c)
	}

	return effect.Unknown(effect.TaintOutput)
}

// xclip reads the clipboard with -o.
func xclip(m *Machine, c *Call) effect.Value {
	if hasWord(c.Args, "-o") || hasWord(c.Args, "-out") || hasWord(c.Args, "--output") {
		return capture("clipboard")(m, c)
	}

	return effect.Unknown(effect.TaintOutput)
}

// crontab installs a table of commands from a file or standard input.
func crontab(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "us", "")
	if o.has("l", "e", "V") || len(c.Args) == 0 && !c.Piped {
		return effect.Unknown(effect.TaintOutput)
	}

	if o.has("r") {
		return effect.Value{}
	}

	data := c.Stdin
	if len(o.pos) > 0 && o.pos[0].Text != "-" {
		data = m.Read(o.pos[0], c.Span, c.Flags, "crontab")
	}

	m.add(c, effect.Effect{Kind: effect.Schedule, Target: effect.Const("cron"), Data: data})

	if !data.IsUnknown() {
		m.Result.Embed(effect.Embedded{Lang: "cron", Text: data, Span: c.Span, Offset: -1, Via: "crontab", Flags: c.Flags})
	}

	return effect.Value{}
}

// enter changes the directory that files are looked for in to an option's value,
// if it was given, and returns the one before.
func (m *Machine) enter(to effect.Value, ok bool) (before string) {
	before = m.Dir
	if ok {
		m.Dir = m.where(to)
	}

	return before
}

// packageScripts are the subcommands that run scripts of package.json.
const packageScripts = " run run-script install i ci add test t tst start restart stop rebuild pack publish prepare build dev watch exec "

// project loads the file in which a package manager finds what to run.
func (m *Machine) project(c *Call, lang string, o *options) {
	switch {
	case lang == "npm" && (len(o.pos) == 0 || strings.Contains(packageScripts, " "+o.pos[0].Text+" ")):
		dir := m.enter(o.val("prefix", "cwd", "dir", "C"))
		m.load(c, effect.FlagOptional, "package.json", effect.Const("package.json"))
		m.Dir = dir
	case lang == "pip" && len(o.pos) > 0 && o.pos[0].Text == "install":
		local := o.vals("e", "editable")

		for _, p := range o.pos[1:] {
			if strings.HasPrefix(p.Text, ".") || strings.HasPrefix(p.Text, "/") {
				local = append(local, p)
			}
		}

		for _, p := range local {
			if !strings.Contains(p.Text, "://") && path.Ext(p.Text) == "" || p.Text == "." || p.Text == ".." {
				m.load(c, effect.FlagOptional, "python", withText(p, p.Text+"/setup.py"))
			}
		}
	}
}

// installer finds the packages that a package manager is asked to fetch.
func installer(lang, verbs, short, long string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, long)
		m.project(c, lang, &o)

		if len(o.pos) == 0 {
			return effect.Unknown(effect.TaintOutput)
		}

		if verbs != "" && !strings.Contains(" "+verbs+" ", " "+o.pos[0].Text+" ") {
			return effect.Unknown(effect.TaintOutput)
		}

		pkgs := o.pos
		if verbs != "" {
			pkgs = pkgs[1:]
		}

		local := o.has("no-index", "offline", "no-download", "download-only") && !o.has("download-only")

		for _, p := range pkgs[:min(len(pkgs), 64)] {
			if local {
				break
			}

			m.add(c, effect.Effect{Kind: effect.Install, Target: p, Lang: lang})
		}

		if len(pkgs) == 0 && !local {
			m.add(c, effect.Effect{Kind: effect.Install, Target: effect.Value{}, Lang: lang})
		}

		for _, u := range o.vals("index-url", "i", "extra-index-url", "registry") {
			m.add(c, effect.Effect{Kind: effect.Install, Target: u, Lang: lang})
		}

		for _, r := range o.vals("r", "requirement") {
			if lang == "pip" && !local {
				m.add(c, effect.Effect{Kind: effect.Install, Target: r, Lang: lang})
			}
		}

		return effect.Unknown(effect.TaintOutput)
	}
}

// containerRun runs a command in a container.
func containerRun(m *Machine, c *Call) effect.Value {
	const long = " name volume publish env env-file network net user workdir entrypoint mount memory cpus restart platform label hostname add-host " +
		"cap-add cap-drop device gpus ipc pid security-opt shm-size tmpfs ulimit log-driver log-opt userns uts pull runtime link expose dns init-path stop-signal " +
		"container namespace context "

	i := 0
	for i < len(c.Args) && strings.HasPrefix(c.Args[i].Text, "-") {
		if a := c.Args[i].Text; a == "-H" || a == "--host" || a == "--context" || a == "-n" || a == "--namespace" {
			i++
		}

		i++
	}

	if i < len(c.Args) && (c.Args[i].Text == "container" || c.Args[i].Text == "compose") {
		i++
	}

	if i >= len(c.Args) {
		return effect.Unknown(effect.TaintOutput)
	}

	switch c.Args[i].Text {
	case "get":
		return m.printsSecret(c)
	case "run", "exec", "create":
		pos := operandsUntilCommand(c.Args[i+1:], "vpeulwmhacn", long)
		if dash := dashDash(c.Args[i+1:]); dash != nil {
			m.start(Call{Name: dash[0], Args: dash[1:], Stdin: c.Stdin, Piped: c.Piped, Span: c.Span, Flags: c.Flags | effect.FlagElsewhere})
		} else if len(pos) > 1 {
			m.start(Call{Name: pos[1], Args: pos[2:], Stdin: c.Stdin, Piped: c.Piped, Span: c.Span, Flags: c.Flags | effect.FlagElsewhere})
		}
	}

	return effect.Unknown(effect.TaintOutput)
}

func dashDash(args []effect.Value) []effect.Value {
	for i, a := range args {
		if a.Text == "--" && i+1 < len(args) {
			return args[i+1:]
		}
	}

	return nil
}

// editor runs the shell commands that vi and ed take on the command line.
func editor(m *Machine, c *Call) effect.Value {
	if c.Piped && c.Stdin.IsConst() && oneOf(Base(c.Name.Text), "ed", "ex", "vi", "vim") {
		for line := range strings.SplitSeq(c.Stdin.Text, "\n") {
			if cmd, ok := strings.CutPrefix(strings.TrimLeft(line, ":"), "!"); ok {
				m.runText(c, withText(c.Stdin, cmd), "bash", Base(c.Name.Text))
			}
		}
	}

	for i, a := range c.Args {
		t := a.Text
		if (t == "-c" || t == "--cmd") && i+1 < len(c.Args) {
			t = c.Args[i+1].Text
		} else if !strings.HasPrefix(t, "+") {
			continue
		}

		t = strings.TrimLeft(t, "+: ")

		switch {
		case strings.HasPrefix(t, "!"):
			m.runText(c, withText(a, t[1:]), "bash", "vim")
		case strings.HasPrefix(t, "py "), strings.HasPrefix(t, "py3 "), strings.HasPrefix(t, "python "), strings.HasPrefix(t, "python3 "):
			_, code, _ := strings.Cut(t, " ")
			m.runText(c, withText(a, code), "python", "vim")
		}
	}

	return effect.Value{}
}

// makeModel runs recipes: those of its Makefile, on standard input, or with
// --eval.
func makeModel(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "fCIjlo", " file makefile directory include-dir jobs load-average ")
	dir := m.enter(o.val("C", "directory"))

	if files := o.vals("f", "file", "makefile"); len(files) > 0 {
		for _, f := range files {
			if f.Text != "-" {
				m.load(c, 0, "makefile", f)
			}
		}
	} else if !o.has("version", "help", "v", "h") {
		m.load(c, effect.FlagOptional, "makefile", effect.Const("GNUmakefile"), effect.Const("makefile"), effect.Const("Makefile"))
	}

	m.Dir = dir
	if c.Piped && hasWord(c.Args, "-f") && hasWord(c.Args, "-") && c.Stdin.IsConst() {
		for line := range strings.SplitSeq(c.Stdin.Text, "\n") {
			if cmd, ok := strings.CutPrefix(line, "\t"); ok {
				m.runText(c, withText(c.Stdin, strings.TrimLeft(cmd, "@-+")), "bash", "make")
			}
		}
	}

	for _, a := range c.Args {
		if v, ok := strings.CutPrefix(a.Text, "--eval="); ok {
			if _, cmd, ok := strings.Cut(v, ":"); ok {
				m.runText(c, withText(a, strings.TrimLeft(cmd, " \t\n")), "bash", "make --eval")
			}
		}
	}

	return effect.Unknown(effect.TaintOutput)
}

// database runs SQL given as an option or on standard input.
func database(options string) model {
	return func(m *Machine, c *Call) effect.Value {
		for i, a := range c.Args {
			for name := range strings.FieldsSeq(options) {
				var sql effect.Value

				switch {
				case a.Text == name && i+1 < len(c.Args):
					sql = c.Args[i+1]
				case len(name) == 2 && strings.HasPrefix(a.Text, name) && len(a.Text) > 2, strings.HasPrefix(a.Text, name+"="):
					sql = withText(a, strings.TrimPrefix(a.Text[len(name):], "="))
				default:
					continue
				}

				m.Result.Embed(effect.Embedded{Lang: "sql", Text: sql, Span: c.Span, Offset: -1, Via: Base(c.Name.Text), Flags: c.Flags})
			}
		}

		if c.Piped && !c.Stdin.IsUnknown() {
			m.Result.Embed(effect.Embedded{Lang: "sql", Text: c.Stdin, Span: c.Span, Offset: -1, Via: Base(c.Name.Text), Flags: c.Flags})
		}

		if Base(c.Name.Text) == "sqlite3" {
			for _, a := range c.Args {
				if !strings.HasPrefix(a.Text, "-") {
					m.Read(a, c.Span, c.Flags, "sqlite3")

					break
				}
			}
		}

		if Base(c.Name.Text) == "sqlite3" && len(c.Args) > 1 {
			m.Result.Embed(effect.Embedded{Lang: "sql", Text: c.Args[len(c.Args)-1], Span: c.Span, Offset: -1, Via: "sqlite3", Flags: c.Flags})
		}

		return effect.Unknown(effect.TaintOutput)
	}
}

func oneOf(s string, names ...string) bool {
	for _, n := range names {
		if s == n {
			return true
		}
	}

	return false
}
