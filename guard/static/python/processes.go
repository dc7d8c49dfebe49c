package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// defineProcesses defines what starts programs.
func defineProcesses(l *flow.Language) {
	root := l.Root

	root.Def("os.system os.popen os.popen2 os.popen3 os.popen4 subprocess.getoutput subprocess.getstatusoutput "+
		"asyncio.create_subprocess_shell asyncio.subprocess.create_subprocess_shell popen2.popen3 "+
		"platform.popen pexpect.run fabric.api.local invoke.run invoke.Context().run fabric.local "+
		"IPython.get_ipython().system IPython.get_ipython().getoutput IPython.get_ipython().system_raw "+
		"IPython.get_ipython().system_piped IPython.utils.process.system IPython.utils.process.getoutput "+
		"IPython.utils.process.getoutputerror os.startfile anyio.run_process trio.run_process", shell)
	root.Def("subprocess.run subprocess.call subprocess.Popen subprocess.check_output subprocess.check_call "+
		"psutil.Popen sh.Command asyncio.create_subprocess_exec asyncio.subprocess.create_subprocess_exec "+
		"plumbum.local delegator.run", subprocess)
	root.At("subprocess.Popen()").Call = nil
	root.Def("subprocess.Popen().communicate", func(m *flow.Machine, c *flow.Call) flow.Value {
		feed(m, c, c.Val(0, "input"), c.Node(0, "input"))

		return flow.Items(c.Recv.Forget(), c.Recv.Forget())
	})
	root.Def("subprocess.Popen().stdin().write subprocess.Popen().stdin().writelines",
		func(m *flow.Machine, c *flow.Call) flow.Value {
			feed(m, c, c.Val(0, ""), c.Node(0, ""))

			return flow.Value{}
		})
	root.DefGet("subprocess.Popen().stdin", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("subprocess.Popen().stdin()"), c.Recv.Object().Main)
	})

	// os.exec*: the letters say how arguments come.
	root.Def("os.execv os.execve os.execvp os.execvpe os.posix_spawn os.posix_spawnp", func(m *flow.Machine, c *flow.Call) flow.Value {
		return start(m, c, c.Val(0, "path"), c.Val(1, "argv"), 0)
	})
	root.Def("os.execl os.execle os.execlp os.execlpe", func(m *flow.Machine, c *flow.Call) flow.Value {
		return start(m, c, c.Val(0, "path"), rest(c, 1), 0)
	})
	root.Def("os.spawnv os.spawnve os.spawnvp os.spawnvpe", func(m *flow.Machine, c *flow.Call) flow.Value {
		return start(m, c, c.Val(1, "path"), c.Val(2, "args"), effect.FlagBackground)
	})
	root.Def("os.spawnl os.spawnle os.spawnlp os.spawnlpe", func(m *flow.Machine, c *flow.Call) flow.Value {
		return start(m, c, c.Val(1, "path"), rest(c, 2), effect.FlagBackground)
	})
	root.Def("pty.spawn pexpect.spawn ptyprocess.PtyProcess.spawn pexpect.pty_spawn.spawn", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "argv")
		if v.Kind == flow.Array {
			return execList(m, c, v, 0)
		}

		if v.IsText() && strings.ContainsAny(v.Text, " \t") {
			m.Embed(c, "bash", v, c.Node(0, "argv"))

			return flow.Tainted(effect.TaintOutput, "")
		}

		return start(m, c, v, flow.Items(), 0)
	})
	root.Def("distutils.spawn.spawn setuptools.distutils.spawn.spawn", subprocess)
	root.Def("IPython.get_ipython().run_line_magic IPython.get_ipython().magic IPython.get_ipython().run_cell_magic",
		runMagic)
	root.Def("IPython.core.interactiveshell.InteractiveShell.instance IPython.InteractiveShell.instance IPython.core.getipython.get_ipython "+
		"IPython.terminal.interactiveshell.TerminalInteractiveShell.instance ipykernel.zmqshell.ZMQInteractiveShell.instance",
		func(m *flow.Machine, _ *flow.Call) flow.Value {
			return flow.New(m.L.Root.At("IPython.get_ipython()"), flow.Value{})
		})
	l.Builtins.Def("get_ipython", func(m *flow.Machine, _ *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("IPython.get_ipython()"), flow.Value{})
	})

	root.Def("pip.main pip._internal.main pip._internal.cli.main.main pip._internal.main.main pipmain", func(m *flow.Machine, c *flow.Call) flow.Value {
		if l := c.Val(0, "args").List(); l != nil {
			m.Emit(c, effect.Effect{Kind: effect.Exec, Target: effect.Const("pip"), Args: values(l.Items)})
		}

		return flow.Value{}
	})

	for _, name := range strings.Fields("os.system os.popen subprocess.run subprocess.call subprocess.Popen " +
		"subprocess.check_output subprocess.getoutput pty.spawn os.execv os.remove os.unlink shutil.rmtree") {
		root.At(name).Callback = true
	}
}

// rest is the arguments from i on, as a list.
func rest(c *flow.Call, i int) flow.Value {
	l := &flow.List{Open: c.Open, Rest: c.Rest}
	if i < len(c.Args) {
		l.Items = append(l.Items, c.Args[i:]...)
	}

	return flow.Value{Kind: flow.Array, X: l}
}

func values(items []flow.Value) []effect.Value {
	out := make([]effect.Value, len(items))
	for i := range items {
		out[i] = items[i].Value()
	}

	return out
}

// shell runs its first argument as shell text.
func shell(m *flow.Machine, c *flow.Call) flow.Value {
	v, ok := c.Arg(0, "cmd")
	node := c.Node(0, "cmd")

	if !ok {
		if v, ok = c.Arg(-1, "command"); ok {
			node = c.Node(-1, "command")
		}
	}

	if v.Kind == flow.Array {
		return execList(m, c, v, 0)
	}

	m.Embed(c, "bash", v, node)

	return flow.Printed(v)
}

// subprocess answers subprocess.run and its kin.
func subprocess(m *flow.Machine, c *flow.Call) flow.Value {
	args, ok := c.Arg(0, "args")
	if !ok && len(c.Kw) == 0 && !c.Open {
		return flow.Value{}
	}

	node := c.Node(0, "args")
	viaShell, hasShell := c.Arg(-1, "shell")
	useShell := hasShell && !(viaShell.Kind == flow.Bool && viaShell.Int == 0) && viaShell.Kind != flow.None

	var flags effect.Flag

	for _, stream := range []string{"stdin", "stdout", "stderr"} {
		if v, ok := c.Arg(-1, stream); ok {
			if v.Taint.Any(effect.TaintSocket) {
				flags |= effect.FlagNetIO
			}
		}
	}

	if c.Sym.Short() == "Popen" || strings.HasPrefix(c.Sym.Short(), "create_subprocess") {
		flags |= effect.FlagBackground
	}

	program := args

	switch {
	case strings.Contains(c.Sym.Name, "subprocess_exec") || c.Sym.Short() == "Command":
		execList(m, c, rest(c, 0), flags)
	case args.Kind == flow.Array && useShell:
		if l := args.List(); len(l.Items) > 0 {
			program = l.Items[0]
			m.Embed(c, "bash", program, node)
		}
	case args.Kind == flow.Array:
		if l := args.List(); len(l.Items) > 0 {
			program = l.Items[0]
		}

		if path, ok := c.Arg(-1, "executable"); ok && path.Kind != flow.None {
			program = path
			m.Emit(c, effect.Effect{Kind: effect.Exec, Target: path.Value(), Args: values(args.List().Items), Flags: flags})
		} else {
			execList(m, c, args, flags)
		}
	case useShell, args.IsText() && strings.ContainsAny(args.Text, " \t\n;|&"), c.Sym.Name == "delegator.run":
		// Text with blanks is no program's name: it is meant as shell text.
		m.Embed(c, "bash", args, node)
	default:
		m.Emit(c, effect.Effect{Kind: effect.Exec, Target: m.Value(c, 0, "args"), Flags: flags})
	}

	if in, ok := c.Arg(-1, "input"); ok {
		feedTo(m, c, program, in, c.Node(-1, "input"))
	}

	// What another program prints, or what is received.
	if in, ok := c.Arg(-1, "stdin"); ok && in.Taint.Any(effect.TaintDownload|effect.TaintNetwork) {
		feedTo(m, c, program, in, 0)
	}

	out := flow.Printed(args)
	if c.Sym.Short() == "Popen" || strings.HasPrefix(c.Sym.Short(), "create_subprocess") {
		p := flow.New(m.L.Root.At("subprocess.Popen()"), program)
		p.Taint, p.Origin = out.Taint, out.Origin

		return p
	}

	return out
}

// execList starts the program that a list names first.
func execList(m *flow.Machine, c *flow.Call, v flow.Value, flags effect.Flag) flow.Value {
	l := v.List()

	e := effect.Effect{Kind: effect.Exec, Flags: flags, Target: effect.Unknown(l.Rest)}
	if len(l.Items) > 0 {
		e.Target = l.Items[0].Value()
		e.Args = values(l.Items[1:])

		if l.Open {
			e.Args = append(e.Args, effect.Unknown(l.Rest))
		}
	}

	m.Emit(c, e)

	return flow.Printed(v)
}

// start starts a program; argv has its name first.
func start(m *flow.Machine, c *flow.Call, program, argv flow.Value, flags effect.Flag) flow.Value {
	e := effect.Effect{Kind: effect.Exec, Target: program.Value(), Flags: flags}

	if l := argv.List(); l != nil && argv.Kind == flow.Array {
		if len(l.Items) > 0 {
			e.Args = values(l.Items[1:])
		}

		if l.Open {
			e.Args = append(e.Args, effect.Unknown(l.Rest))
		}
	} else if argv.Kind != flow.None {
		e.Args = []effect.Value{argv.Forget().Value()}
	}

	m.Emit(c, e)

	return flow.Printed(argv)
}

// feed gives text to a running program's standard input.
func feed(m *flow.Machine, c *flow.Call, v flow.Value, node tree.ID) {
	if o := c.Recv.Object(); o != nil {
		feedTo(m, c, o.Main, v, node)
	}
}

// interpreters read their standard input as code.
var interpreters = map[string]string{
	"sh": "bash", "bash": "bash", "dash": "bash", "zsh": "bash", "ash": "bash", "ksh": "bash", "python": "python",
	"python3": "python", "node": "javascript", "perl": "perl", "ruby": "ruby", "php": "php", "cmd.exe": "", "cmd": "",
	"powershell": "", "powershell.exe": "",
}

func feedTo(m *flow.Machine, c *flow.Call, program, v flow.Value, node tree.ID) {
	if v.Kind == flow.None || v.Kind == flow.Unknown && v.Taint == 0 && node == 0 {
		return
	}

	name := program.Text
	if program.Kind == flow.Array && len(program.List().Items) > 0 {
		name = program.List().Items[0].Text
	}

	name = name[strings.LastIndexByte(name, '/')+1:]
	name, _, _ = strings.Cut(name, " ")

	if lang, ok := interpreters[name]; ok {
		m.Embed(c, lang, v, node)
	}
}

// runMagic answers get_ipython().run_line_magic(name, line) and its kin: it is the
// magic, written as a notebook would.
func runMagic(m *flow.Machine, c *flow.Call) flow.Value {
	name, line, body := c.Val(0, ""), c.Val(1, ""), c.Val(2, "")

	switch {
	case c.Sym.Short() == "magic":
		name.Text = strings.TrimLeft(name.Text, "%! ")
		m.Embed(c, "python", m.Operate('+', flow.Text("%"), name, c.ID), 0)
	case !name.IsConst():
		m.Embed(c, "", line, 0)
		m.Embed(c, "", body, 0)
	case c.Sym.Short() == "run_cell_magic":
		text := m.Operate('+', flow.Text("%%"+name.Text+" "), line, c.ID)
		m.Embed(c, "python", m.Operate('+', m.Operate('+', text, flow.Text("\n"), c.ID), body, c.ID), 0)
	default:
		m.Embed(c, "python", m.Operate('+', flow.Text("%"+name.Text+" "), line, c.ID), 0)
	}

	return flow.Tainted(effect.TaintOutput, "")
}
