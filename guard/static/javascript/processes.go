package javascript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// defineProcesses defines what starts programs, workers and timers.
func defineProcesses(l *flow.Language) {
	root, b := l.Root, l.Builtins

	root.Def("child_process.exec child_process.execSync shelljs.exec execa.command execa.commandSync execa.execaCommand "+
		"execa.execaCommandSync node-cmd.run node-cmd.get exec-sh sync-exec", shell)
	root.Def("child_process.spawn child_process.spawnSync child_process.execFile child_process.execFileSync "+
		"cross-spawn cross-spawn.sync cross-spawn.spawn execa execa.sync execa.execa execa.execaSync execa.node tinyexec.x "+
		"node-pty.spawn", spawn)
	root.Def("child_process.fork cluster.fork", fork)

	for _, name := range strings.Fields("child_process.exec child_process.execSync child_process.spawn child_process.spawnSync") {
		root.At(name).Callback = true
	}

	root.Def("worker_threads.Worker", worker)
	b.Def("Worker SharedWorker", worker)

	child := root.At("child()")
	child.DefGet("stdin", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("child.stdin()"), c.Recv.Object().Main)
	})
	child.DefGet("stdout stderr stdio output", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := flow.New(m.L.Root.At("child.stdout()"), c.Recv.Object().Main)
		v.Taint = effect.TaintOutput

		return v
	})
	root.At("child.stdin()").Def("write end", func(m *flow.Machine, c *flow.Call) flow.Value {
		feed(m, c, c.Recv.Object().Main, c.Val(0, ""), c.Node(0, ""))

		return flow.Value{}
	})
	child.Def("write", root.At("child.stdin()").Kid("write").Call)

	// zx and Bun run the text of a template.
	template := func(m *flow.Machine, c *flow.Call) flow.Value {
		if n := m.T.At(c.ID); m.T.Src[n.Start] == '`' {
			m.Embed(c, "bash", c.Val(0, ""), c.Node(0, ""))

			return flow.Tainted(effect.TaintOutput, "")
		}

		return flow.Value{}
	}
	b.Def("$", template)
	root.Def("zx.$ execa.$ bun.$ dax.$", template)

	// The process itself.
	env := b.At("process.env")
	b.DefGet("process.env", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Value{Kind: flow.Symbol, X: env, Taint: effect.TaintEnvAll}
	})
	root.Link("process", b.At("process"))

	for _, name := range strings.Fields("global window self root globalThis top frames") {
		b.Link(name, b.At("globalThis"))
	}

	self := func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Value{Taint: effect.TaintSelf, Ref: "__filename"}
	}
	b.DefGet("process.argv", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.Value{Kind: flow.Array, X: &flow.List{Items: []flow.Value{flow.Text("node"), self(m, c)}, Open: true, Rest: effect.TaintInput}}
	})
	b.DefGet("process.execArgv", func(*flow.Machine, *flow.Call) flow.Value { return flow.Tainted(effect.TaintInput, "") })
	b.DefGet("process.execPath process.argv0", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("node") })
	b.DefGet("__filename import.meta.filename import.meta.url require.main.filename module.filename", self)
	b.DefGet("process.stdin", func(m *flow.Machine, _ *flow.Call) flow.Value {
		v := flow.New(m.L.Root.At("stream()"), flow.Text("/dev/stdin"))
		v.Taint = effect.TaintInput

		return v
	})
	b.Def("process.kill", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Kill, Target: m.Value(c, 0, ""), Data: m.Value(c, 1, "")})

		return flow.Value{}
	})
	b.Def("process.setuid process.setgid process.seteuid process.setegid process.setgroups process.initgroups",
		func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Priv, Target: effect.Const(c.Sym.Short()), Data: m.Value(c, 0, "")})

			return flow.Value{}
		})
	root.Def("ps-list ps-list.default find-process", func(m *flow.Machine, _ *flow.Call) flow.Value {
		p := &flow.Table{}
		p.Set("pid", flow.Tainted(effect.TaintInfo, effect.Processes))

		return flow.Items(flow.Value{Kind: flow.Record, X: p})
	})
	b.Def("process.on process.once", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.CallValue(c.Val(1, ""), c.ID)

		return flow.Value{}
	})
	b.Def("process.cwd process.exit process.abort process.uptime process.memoryUsage process.hrtime", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Value{}
	})

	info := func(kind string) flow.Handler {
		return func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Info, Target: effect.Const(kind)})

			return flow.Tainted(effect.TaintInfo, "")
		}
	}
	root.Def("os.hostname os.version systeminformation.system", info("hostname"))
	root.Def("os.userInfo username", info("user"))
	root.Def("os.networkInterfaces address.ip ip.address", info("network"))
	root.Def("os.homedir", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("~") })
	root.Def("os.tmpdir", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("/tmp") })
	root.Def("os.release os.arch os.type os.platform", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintInfo, "")
	})
	root.DefGet("os.EOL", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("\n") })

	for what, names := range map[string]string{
		"clipboard":  "clipboardy.read clipboardy.readSync clipboardy.default.read",
		"screen":     "screenshot-desktop desktopCapturer.getSources",
		"keyboard":   "iohook.start uiohook-napi.uIOhook.start node-global-key-listener.GlobalKeyboardListener gkm.events.on",
		"microphone": "node-record-lpcm16.record mic",
	} {
		root.Def(names, func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Capture, Target: effect.Const(what)})

			return flow.Tainted(effect.TaintCapture, what)
		})
	}

	root.Def("keytar.getPassword keytar.findCredentials chrome-cookies-secure.getCookies", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Call, Target: effect.Const(c.Sym.Name)})

		return flow.Tainted(effect.TaintSecret, c.Sym.Name)
	})
	root.Def("crypto.randomBytes crypto.randomUUID crypto.randomInt", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintRandom, "")
	})

	// Ciphers and compression: what comes out was hidden.
	decoded := func(m *flow.Machine, c *flow.Call) flow.Value {
		return c.Result().With(effect.TaintDecoded)
	}
	root.Def("crypto.createDecipheriv().update crypto.createDecipher().update crypto.createDecipheriv().final "+
		"crypto.createDecipher().final crypto.privateDecrypt crypto-js.AES.decrypt lz-string.decompressFromBase64 "+
		"lz-string.decompress", func(m *flow.Machine, c *flow.Call) flow.Value {
		out := decoded(m, c)
		m.Emit(c, effect.Effect{Kind: effect.Decode, Target: effect.Const("cipher"), Data: out.Value()})

		return out
	})

	for names, encoding := range map[string]string{
		"zlib.inflateSync zlib.inflateRawSync pako.inflate zlib.inflate": "zlib",
		"zlib.gunzipSync zlib.unzipSync pako.ungzip zlib.gunzip":         "gzip",
		"zlib.brotliDecompressSync":                                      "brotli",
	} {
		root.Def(names, func(m *flow.Machine, c *flow.Call) flow.Value {
			v := m.Decoded(c, encoding, c.Val(0, ""), flow.Bytes)
			callback(m, c, flow.Value{Kind: flow.None}, v)

			return v
		})
	}

	root.Def("node-serialize.unserialize serialize-to-js.deserialize v8.deserialize js-yaml.load", func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Sym.Name == "js-yaml.load" || c.Sym.Name == "v8.deserialize" {
			return c.Result()
		}

		m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: "pickle", Data: m.Value(c, 0, "")})

		return c.Result().With(effect.TaintPickle)
	})
}

// callback calls the last argument, if it is a function, after the statement.
func callback(m *flow.Machine, c *flow.Call, args ...flow.Value) {
	if n := len(c.Args); n > 0 {
		callLater(m, c, c.Args[n-1], args...)
	}
}

func callLater(m *flow.Machine, c *flow.Call, f flow.Value, args ...flow.Value) {
	callLaterOn(m, c, flow.Value{}, f, args...)
}

// callLaterOn is callLater for functions that are called as methods.
func callLaterOn(m *flow.Machine, c *flow.Call, this, f flow.Value, args ...flow.Value) {
	if f.First().Callable() {
		id := c.ID
		m.Later(func() { m.CallOn(this, f, id, args...) })
	}
}

// option is a member of an options object among the arguments.
func option(c *flow.Call, name string) (flow.Value, bool) {
	for i := range c.Args {
		if t := c.Args[i].Table(); c.Args[i].Kind == flow.Record {
			if v, ok := t.Values[name]; ok {
				return v, true
			}
		}
	}

	return flow.Value{}, false
}

func shell(m *flow.Machine, c *flow.Call) flow.Value {
	cmd := c.Val(0, "")
	m.EmbedWith(c, "bash", cmd, c.Node(0, ""), goesOn(c))

	out := flow.Printed(cmd)
	callback(m, c, flow.Value{Kind: flow.None}, out, out)

	return childOf(m, cmd, out)
}

// goesOn says of a call that starts a program that it does not wait for its end.
func goesOn(c *flow.Call) effect.Flag {
	if c.Sym == nil || strings.HasSuffix(c.Sym.Name, "Sync") || strings.HasSuffix(c.Sym.Name, ".sync") {
		return 0
	}

	return effect.FlagBackground
}

// childOf is a running program that is also what it prints.
func childOf(m *flow.Machine, program, out flow.Value) flow.Value {
	v := flow.New(m.L.Root.At("child()"), program)
	v.Taint, v.Origin = out.Taint, out.Origin

	return v
}

func spawn(m *flow.Machine, c *flow.Call) flow.Value {
	program, args := c.Val(0, ""), c.Val(1, "")

	flags := goesOn(c)

	if v, ok := option(c, "detached"); ok && v.Int != 0 {
		flags |= effect.FlagBackground
	}

	if v, ok := option(c, "stdio"); ok {
		t, _ := v.Sources()
		if t.Any(effect.TaintSocket) {
			flags |= effect.FlagNetIO
		}

		if v.Text == "ignore" {
			flags |= effect.FlagQuiet
		}
	}

	out := flow.Printed(command(program, args)).From(program)

	if v, ok := option(c, "shell"); ok && !(v.Kind == flow.Bool && v.Int == 0) {
		line := program
		for _, a := range itemsOf(args) {
			line = m.Operate('+', m.Operate('+', line, flow.Text(" "), c.ID), a, c.ID)
		}

		m.Embed(c, "bash", line, c.Node(0, ""))
	} else {
		e := effect.Effect{Kind: effect.Exec, Target: m.Value(c, 0, ""), Flags: flags}

		switch {
		case args.Kind == flow.Array:
			e.Args = values(args.List().Items)
			if args.List().Open {
				e.Args = append(e.Args, effect.Unknown(args.List().Rest))
			}
		case args.Kind == flow.Unknown && len(c.Args) > 1:
			e.Args = []effect.Value{m.Value(c, 1, "")}
		}

		// Text with blanks is no program's name.
		if args.Kind != flow.Array && program.IsText() && strings.ContainsAny(program.Text, " \t;|&") {
			m.Embed(c, "bash", program, c.Node(0, ""))
		} else {
			m.Emit(c, e)
		}
	}

	if in, ok := option(c, "input"); ok {
		feed(m, c, program, in, 0)
	}

	callback(m, c, flow.Value{Kind: flow.None}, out, out)

	v := childOf(m, program, out)
	v.Object().Set("args", args)

	return v
}

// interpreters read their standard input as code.
var interpreters = map[string]string{
	"sh": "bash", "bash": "bash", "dash": "bash", "zsh": "bash", "ash": "bash", "ksh": "bash", "python": "python",
	"python3": "python", "node": "javascript", "perl": "perl", "ruby": "ruby", "php": "php",
}

// feed gives text to a program's standard input.
func feed(m *flow.Machine, c *flow.Call, program, v flow.Value, node tree.ID) {
	if v.Kind == flow.None || v.Kind == flow.Unknown && v.Taint == 0 && node == 0 {
		return
	}

	name := program.Text[strings.LastIndexByte(program.Text, '/')+1:]
	if lang, ok := interpreters[name]; ok {
		m.Embed(c, lang, v, node)
	}
}

func fork(m *flow.Machine, c *flow.Call) flow.Value {
	e := effect.Effect{Kind: effect.Spawn, Target: effect.Const("process")}

	// A program that starts itself.
	itself := c.Val(0, "").Taint.Any(effect.TaintSelf)
	if itself || c.Sym.Name == "cluster.fork" {
		e.Flags |= effect.FlagRecursing
	}

	m.Emit(c, e)

	if len(c.Args) > 0 {
		run := effect.Effect{Kind: effect.Exec, Target: effect.Const("node"), Args: []effect.Value{m.Value(c, 0, "")}, Flags: effect.FlagBackground}
		run.Args = append(run.Args, values(itemsOf(c.Val(1, "")))...)
		m.Emit(c, run)
	}

	return childOf(m, flow.Text("node"), flow.Value{})
}

func worker(m *flow.Machine, c *flow.Call) flow.Value {
	if v, ok := option(c, "eval"); ok && v.Int != 0 {
		m.Embed(c, "javascript", c.Val(0, ""), c.Node(0, ""))
	}

	e := effect.Effect{Kind: effect.Spawn, Target: effect.Const("worker")}
	if c.Val(0, "").Taint.Any(effect.TaintSelf) {
		e.Flags |= effect.FlagRecursing
	} else if path := m.Value(c, 0, ""); path.Text != "" {
		runModule(m, c, path)
	}

	m.Emit(c, e)

	return flow.Value{}
}

// runModule runs a module that the code wrote itself.
func runModule(m *flow.Machine, c *flow.Call, path effect.Value) {
	if strings.HasSuffix(path.Text, ".json") {
		return
	}

	for _, end := range []string{"", ".js", ".mjs", ".cjs", "/index.js"} {
		at := path
		at.Text += end

		if w, ok := m.Written(at); ok {
			v := flow.Value{Kind: flow.Str, Text: w.Text, Taint: w.Taint, Origin: w.Origin}
			if w.IsUnknown() {
				v = flow.Tainted(w.Taint, w.Origin)
			}

			m.Embed(c, "javascript", v, 0)

			return
		}
	}
}

// command is a program and its arguments as one list of words.
func command(program, args flow.Value) flow.Value {
	return flow.Items(append([]flow.Value{program}, itemsOf(args)...)...)
}
