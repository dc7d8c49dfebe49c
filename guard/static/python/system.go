package python

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

// defineSystem defines the environment, processes, privileges and facts about
// the host.
func defineSystem(l *flow.Language) {
	root := l.Root

	environ := root.At("os.environ")
	root.At("os").Link("environb", environ)
	root.DefGet("os.environ", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Value{Kind: flow.Symbol, X: environ, Taint: effect.TaintEnvAll}
	})
	root.Def("os.getenv os.getenvb os.environ.get os.environ.pop os.environ.setdefault os.environ.__getitem__ "+
		"decouple.config environs.Env().str", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := variable(m, c, c.Val(0, "key"))
		if d, ok := c.Arg(1, "default"); ok && d.IsText() {
			return flow.Join(v, d)
		}

		return v
	})
	root.Def("os.environ.items os.environ.copy os.environ.values os.environ.keys os.environ.__repr__ os.environ.__str__",
		func(m *flow.Machine, c *flow.Call) flow.Value {
			v := flow.Tainted(effect.TaintEnvAll, "")

			switch c.Sym.Short() {
			case "copy":
				return v
			case "keys":
				return flow.Value{}
			}

			wholeEnvironment(m, c, flow.Value{Kind: flow.Symbol, X: environ})

			if c.Sym.Short() == "items" {
				return flow.Items(flow.Items(flow.Value{}, v))
			}

			return flow.Items(v)
		})
	root.Def("os.environ.update os.putenv os.unsetenv", func(m *flow.Machine, c *flow.Call) flow.Value {
		if t := c.Val(0, "").Table(); t != nil {
			for _, k := range t.Keys {
				m.Emit(c, effect.Effect{Kind: effect.SetEnv, Target: effect.Const(k), Data: t.Values[k].Value()})
			}

			return flow.Value{}
		}

		if c.Sym.Short() == "putenv" {
			m.Emit(c, effect.Effect{Kind: effect.SetEnv, Target: m.Value(c, 0, ""), Data: m.Value(c, 1, "")})
		}

		return flow.Value{}
	})

	root.Def("os.kill os.killpg signal.pidfd_send_signal psutil.Process().kill psutil.Process().terminate "+
		"psutil.Process().send_signal signal.pthread_kill", func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Kill, Target: m.Value(c, 0, "pid"), Data: m.Value(c, 1, "sig")}
		if !e.Data.IsConst() {
			e.Data = effect.Const(strings.TrimPrefix(m.Source(c.Node(1, "sig")), "signal."))
		}

		if o := c.Recv.Object(); o != nil {
			e.Target = o.Main.Value()
			e.Data = effect.Const(c.Sym.Short())
		}

		m.Emit(c, e)

		return flow.Value{}
	})
	root.Def("psutil.process_iter psutil.pids", func(m *flow.Machine, c *flow.Call) flow.Value {
		all := flow.Tainted(effect.TaintInfo, effect.Processes)
		all.Ref = program.AllProcesses

		if c.Sym.Short() == "pids" {
			return flow.Items(all)
		}

		return flow.Items(flow.New(m.L.Root.At("psutil.Process()"), all))
	})

	root.Def("os.setuid os.setgid os.seteuid os.setegid os.setreuid os.setregid os.setresuid os.setresgid "+
		"os.setgroups os.initgroups os.chroot os.unshare os.setns os.ptrace", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Priv, Target: effect.Const(c.Sym.Short()), Data: m.Value(c, 0, "")})

		return flow.Value{}
	})
	root.Def("os.fork os.forkpty pty.fork", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Spawn, Target: effect.Const("process")})

		return flow.Value{}
	})
	root.Def("threading.Thread multiprocessing.Process threading.Timer _thread.start_new_thread "+
		"multiprocessing.context.Process", thread)
	root.Def("os.dup2", func(m *flow.Machine, c *flow.Call) flow.Value {
		fd := c.Val(0, "fd")
		data := m.Value(c, 0, "fd")
		data.Taint |= fd.Taint

		c.Val(1, "fd2").Each(func(v flow.Value) {
			m.Emit(c, effect.Effect{Kind: effect.Dup, Target: v.Value(), Data: data})
		})

		return flow.Value{}
	})
	root.Def("sys.exit os._exit os.abort", quiet)

	root.DefGet("sys.stdin", func(m *flow.Machine, _ *flow.Call) flow.Value {
		f := flow.New(m.L.Root.At("file()"), flow.Text("/dev/stdin"))
		f.Taint = effect.TaintInput

		return f
	})

	info := func(kind string) flow.Handler {
		return func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Info, Target: effect.Const(kind)})

			return flow.Tainted(effect.TaintInfo, "")
		}
	}
	root.Def("socket.gethostname platform.node os.uname platform.uname socket.getfqdn platform.platform", info("hostname"))
	root.Def("getpass.getuser os.getlogin pwd.getpwuid pwd.getpwnam pwd.getpwall grp.getgrall", info("user"))
	root.Def("psutil.net_if_addrs psutil.net_connections netifaces.interfaces netifaces.ifaddresses uuid.getnode "+
		"ifaddr.get_adapters psutil.net_io_counters", info("network"))
	root.Def("os.getcwd os.getuid os.geteuid os.getpid os.getppid os.cpu_count platform.system platform.machine "+
		"platform.release platform.python_version platform.version", func(_ *flow.Machine, c *flow.Call) flow.Value {
		switch c.Sym.Short() {
		case "getcwd", "release", "version", "machine":
			return flow.Tainted(effect.TaintInfo, "")
		}

		return flow.Value{}
	})

	root.Def("random.choice random.choices random.randint random.random random.randbytes random.getrandbits "+
		"random.sample random.randrange secrets.token_hex secrets.token_bytes secrets.choice os.urandom uuid.uuid4 "+
		"secrets.token_urlsafe random.uniform", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if c.Sym.Short() == "choice" && v.Kind == flow.Array && len(v.List().Items) > 0 {
			return flow.OneOf(v.List().Items)
		}

		return flow.Tainted(effect.TaintRandom, "")
	})
	root.Def("itertools.count itertools.repeat", func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Sym.Short() == "repeat" && len(c.Args) > 1 {
			return flow.Items(c.Args[0])
		}

		return flow.New(m.L.Root.At("itertools.count()"), flow.Value{})
	})
	root.At("itertools.count()").Endless = true
	l.Builtins.Def("iter", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) < 2 {
			return c.Val(0, "")
		}
		// iter(f, sentinel) calls f until it returns the sentinel; iter(int, 1) does
		// so for ever.
		if s := c.Args[0].Sym(); c.Args[0].Kind == flow.Symbol && (s.Name == "builtins.int" || s.Name == "builtins.list" || s.Name == "builtins.str") {
			return flow.New(m.L.Root.At("itertools.count()"), flow.Value{})
		}

		return flow.Items(m.CallValue(c.Args[0], c.ID))
	})

	// Foreign functions and machine code.
	root.Def("ctypes.CDLL ctypes.PyDLL ctypes.WinDLL ctypes.cdll.LoadLibrary ctypes.windll.LoadLibrary "+
		"ctypes.OleDLL cffi.FFI().dlopen", func(m *flow.Machine, c *flow.Call) flow.Value {
		loadNative(m, c, m.Value(c, 0, "name"))

		return flow.New(m.L.Root.At("ctypes.CDLL()"), c.Val(0, "name"))
	})
	libc := root.At("ctypes.CDLL()")
	libc.Def("system popen", shell)

	for _, name := range strings.Fields("setuid setgid seteuid setresuid ptrace chroot unshare setns capset") {
		libc.Def(name, func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Priv, Target: effect.Const(c.Sym.Short()), Data: m.Value(c, 0, "")})

			return flow.Value{}
		})
	}

	libc.Def("execve execv execl execlp execvp", func(m *flow.Machine, c *flow.Call) flow.Value {
		return start(m, c, c.Val(0, ""), c.Val(1, ""), 0)
	})

	for _, lib := range []string{"libc", "kernel32", "ntdll", "user32", "advapi32", "msvcrt"} {
		for _, loader := range []string{"ctypes.windll.", "ctypes.cdll."} {
			root.At(loader + lib).Inst = nil
		}
	}

	native := func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const(c.Sym.Short()), Data: m.Value(c, 0, "")})

		return c.Result()
	}
	libc.Def("mmap mprotect", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(2, ""); v.Kind == flow.Int && v.Int&4 != 0 || strings.Contains(m.Source(c.Node(2, "")), "EXEC") {
			m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const(c.Sym.Short())})
		}

		return flow.Value{}
	})

	names := "VirtualAlloc VirtualAllocEx VirtualProtect RtlMoveMemory CreateThread CreateRemoteThread " +
		"WriteProcessMemory memfd_create syscall memmove"

	for name := range strings.FieldsSeq(names) {
		libc.Def(name, native)
		root.Def("ctypes.windll.kernel32."+name+" ctypes.windll.ntdll."+name+" ctypes.cdll.libc."+name, native)
	}

	root.Def("os.memfd_create ctypes.memmove ctypes.CFUNCTYPE ctypes.string_at", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const(c.Sym.Short()), Data: m.Value(c, 0, "")})

		if c.Sym.Short() == "memfd_create" {
			return flow.New(m.L.Root.At("file()"), flow.Text("/proc/self/fd/memfd"))
		}

		return c.Result()
	})
	root.Def("mmap.mmap", func(m *flow.Machine, c *flow.Call) flow.Value {
		for k := range c.Nodes {
			if strings.Contains(m.Source(c.Nodes[k]), "PROT_EXEC") {
				m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const("mmap")})
			}
		}

		for k := range c.Kw {
			if strings.Contains(m.Source(c.Kw[k].Node), "PROT_EXEC") {
				m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const("mmap")})
			}
		}

		return c.Val(0, "").Forget()
	})

	// Large blocks of memory.
	root.Def("numpy.zeros numpy.ones numpy.empty numpy.full", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "shape")

		size := int64(8)
		for _, it := range append([]flow.Value{v}, itemsOf(v)...) {
			if it.Kind == flow.Int && it.Int > 0 {
				size = m.Operate('*', flow.Number(size), it, c.ID).Int
			}
		}

		if size >= 1<<30 {
			m.Emit(c, effect.Effect{
				Kind: effect.Alloc, Target: effect.Const("memory"), Data: effect.Const(strconv.FormatInt(size, 10)),
			})
		}

		return flow.Value{}
	})
	root.Def("setuptools.setup distutils.core.setup", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v, ok := c.Arg(-1, "cmdclass"); ok {
			if t := v.Table(); t == nil || len(t.Keys) > 0 {
				m.Emit(c, effect.Effect{
					Kind: effect.Call, Target: effect.Const("setuptools.setup"), Args: []effect.Value{effect.Const("cmdclass")},
				})
			}
		}

		return flow.Value{}
	})
	root.Def("crontab.CronTab().new", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Schedule, Target: effect.Const("cron"), Data: m.Value(c, 0, "command")})

		return flow.Value{}
	})
	root.Def("resource.setrlimit sys.setrecursionlimit gc.disable faulthandler.disable", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Call, Target: effect.Const(c.Sym.Name), Args: []effect.Value{m.Value(c, 0, ""), m.Value(c, 1, "")}})

		return flow.Value{}
	})
}

func itemsOf(v flow.Value) []flow.Value {
	if l := v.List(); v.Kind == flow.Array {
		return l.Items
	}

	return nil
}

// variable reads one environment variable.
func variable(m *flow.Machine, c *flow.Call, name flow.Value) flow.Value {
	m.Emit(c, effect.Effect{Kind: effect.Env, Target: m.ValueOf(name, c.Node(0, "key")), Via: "os.environ"})

	return environment(name)
}

// environment is the value of an environment variable. The home folder is
// written "~", so that paths below it can be told.
func environment(name flow.Value) flow.Value {
	switch name.Text {
	case "HOME", "USERPROFILE":
		return flow.Text("~")
	}

	text := name.Text
	if !name.IsConst() {
		text = ""
	}

	return flow.Tainted(effect.TaintEnv, text)
}

// wholeEnvironment reports that all of the environment is read.
func wholeEnvironment(m *flow.Machine, c *flow.Call, v flow.Value) {
	if s := v.Sym(); s != nil && s.Name == "os.environ" {
		m.Emit(c, effect.Effect{Kind: effect.Env, Via: "os.environ"})
	}
}

// thread starts a function beside the code.
func thread(m *flow.Machine, c *flow.Call) flow.Value {
	f, ok := c.Arg(1, "target")
	args := c.Val(3, "args")

	if !ok || c.Sym.Short() == "start_new_thread" || c.Sym.Short() == "Timer" {
		f, args = c.Val(0, "target"), c.Val(1, "args")
		if c.Sym.Short() == "Timer" {
			f, args = c.Val(1, "function"), c.Val(2, "args")
		}
	}

	target := "thread"
	if c.Sym.Short() == "Process" {
		target = "process"
	}

	m.Emit(c, effect.Effect{Kind: effect.Spawn, Target: effect.Const(target)})

	if f.First().Callable() {
		m.CallValue(f, c.ID, itemsOf(args)...)
	}

	return flow.New(m.L.Root.At("threading.Thread()"), flow.Value{})
}
