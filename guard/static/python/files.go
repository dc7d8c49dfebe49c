package python

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineFiles defines what reads, writes and removes files.
func defineFiles(l *flow.Language) {
	root := l.Root

	l.Builtins.Def("open file", open)
	root.Def("io.open codecs.open gzip.open bz2.open lzma.open os.fdopen aiofiles.open "+
		"tempfile.open io.FileIO mmap.open wave.open tokenize.open pyfakefs.open "+
		"linecache.getlines linecache.getline pandas.read_csv pandas.read_json pandas.read_excel "+
		"pandas.read_pickle pandas.read_table numpy.loadtxt numpy.genfromtxt numpy.fromfile dotenv.dotenv_values "+
		"dotenv.load_dotenv sqlite3.connect PIL.Image.open h5py.File", open)
	root.Def("fileinput.input fileinput.FileInput", func(m *flow.Machine, c *flow.Call) flow.Value {
		f := open(m, c)

		if v, ok := c.Arg(1, "inplace"); ok && v.Int != 0 {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, "files"), Flags: effect.FlagTruncate})
		}

		return f
	})
	root.Def("os.open", func(m *flow.Machine, c *flow.Call) flow.Value {
		flags := m.Source(c.Node(1, "flags"))
		path := c.Val(0, "path")

		switch {
		case strings.Contains(flags, "O_TRUNC"):
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, "path"), Flags: effect.FlagTruncate})
		case strings.Contains(flags, "O_WRONLY"), strings.Contains(flags, "O_RDWR"), strings.Contains(flags, "O_APPEND"):
		default:
			m.Emit(c, effect.Effect{Kind: effect.Read, Target: m.Value(c, 0, "path")})

			return flow.Tainted(effect.TaintFile, path.Value().Text)
		}

		return flow.New(m.L.Root.At("file()"), path)
	})

	for _, alias := range []string{"file()", "builtins.open()", "builtins.file()"} {
		f := root.At(alias)
		f.Def("write writelines writestr write_text", writeFile)
		f.Def("read readline readlines read1 readall getvalue fetchall namelist", readFile)
		f.Def("truncate", func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: c.Recv.Object().Main.Value(), Flags: effect.FlagTruncate})

			return flow.Value{}
		})
		f.Def("extractall extract", func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, "path")})

			return flow.Value{}
		})
		f.Def("add", func(m *flow.Machine, c *flow.Call) flow.Value {
			// Into an archive.
			m.Emit(c, effect.Effect{Kind: effect.Read, Target: m.Value(c, 0, "name")})
			m.AbsorbFile(c, c.Val(0, "name"))

			return flow.Value{}
		})
		f.DefGet("buffer name", func(m *flow.Machine, c *flow.Call) flow.Value {
			if c.Sym.Short() == "name" {
				return c.Recv.Object().Main
			}

			return c.Recv
		})
	}

	root.Def("os.read", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "").Forget() })
	root.Def("os.write os.pwrite", func(m *flow.Machine, c *flow.Call) flow.Value {
		fd := c.Val(0, "fd")
		if fd.Taint.Any(effect.TaintSocket) {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: fd.Forget().Value(), Data: m.Value(c, 1, "")})
		} else if o := fd.Object(); o != nil {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: o.Main.Value(), Data: m.Value(c, 1, "")})
		}

		return flow.Value{}
	})

	root.Def("os.remove os.unlink os.rmdir send2trash.send2trash pathlib.Path().rmdir pathlib.Path().unlink "+
		"path.Path().remove", remove)
	root.Def("os.removedirs shutil.rmtree distutils.dir_util.remove_tree path.Path().rmtree tree.remove", remove)
	root.Def("os.rename os.replace os.renames shutil.move pathlib.Path().rename pathlib.Path().replace", move)
	root.Def("shutil.copy shutil.copy2 shutil.copyfile shutil.copytree distutils.file_util.copy_file "+
		"distutils.dir_util.copy_tree shutil.copyfileobj", move)
	root.Def("os.link os.symlink pathlib.Path().symlink_to pathlib.Path().hardlink_to pathlib.Path().link_to", link2)
	root.Def("os.chmod os.lchmod os.fchmod os.chown os.lchown os.fchown shutil.chown pathlib.Path().chmod "+
		"pathlib.Path().lchmod os.chflags", mode)
	root.Def("os.truncate os.ftruncate", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, "path"), Flags: effect.FlagTruncate})

		return flow.Value{}
	})
	root.Def("os.mkfifo os.mknod", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, "path")})

		return flow.Value{}
	})
	// A listing names files; what matters is where from.
	root.Def("os.listdir os.scandir os.walk glob.glob glob.iglob pathlib.Path().iterdir pathlib.Path().glob "+
		"pathlib.Path().rglob", list)

	definePaths(root)

	for name, n := range map[string]int64{
		"S_ISUID": 0o4000, "S_ISGID": 0o2000, "S_ISVTX": 0o1000, "S_IRWXU": 0o700, "S_IRUSR": 0o400, "S_IWUSR": 0o200,
		"S_IXUSR": 0o100, "S_IRWXG": 0o70, "S_IRGRP": 0o40, "S_IWGRP": 0o20, "S_IXGRP": 0o10, "S_IRWXO": 0o7,
		"S_IROTH": 0o4, "S_IWOTH": 0o2, "S_IXOTH": 0o1, "S_IREAD": 0o400, "S_IWRITE": 0o200, "S_IEXEC": 0o100,
	} {
		root.DefGet("stat."+name, func(*flow.Machine, *flow.Call) flow.Value { return flow.Number(n) })
	}
}

// open answers open(path, mode) in all its forms.
func open(m *flow.Machine, c *flow.Call) flow.Value {
	path := c.Val(0, "file")

	node := c.Node(0, "file")
	if _, ok := c.Arg(0, "file"); !ok {
		for _, name := range []string{"name", "filename", "filepath_or_buffer", "path"} {
			if v, ok := c.Arg(-1, name); ok {
				path, node = v, c.Node(-1, name)
			}
		}
	}

	at := 1
	if c.Sym != nil && c.Sym.Name == "os.fdopen" {
		if path.Kind == flow.Instance || path.Taint.Any(effect.TaintSocket) {
			return path
		}
	}

	mode, ok := c.Arg(at, "mode")
	if !ok || !mode.IsText() {
		mode = flow.Text("r")
	}

	if path.Kind == flow.Int || path.Kind == flow.None {
		return flow.Value{}
	}

	if o := path.Object(); path.Kind == flow.Instance && o.Sym != nil && !o.Sym.Path {
		return path // A file object.
	}

	target := m.ValueOf(path, node)
	f := flow.New(m.L.Root.At("file()"), pathText(path))
	f.Taint, f.Origin = 0, ""

	if strings.ContainsAny(mode.Text, "wxa+") && !(strings.HasPrefix(mode.Text, "r") && !strings.Contains(mode.Text, "+")) {
		o := f.Object()
		o.Mode = mode.Text

		switch {
		case strings.Contains(mode.Text, "a"):
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: target, Flags: effect.FlagAppend})
		case !strings.Contains(mode.Text, "r"):
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: target, Flags: effect.FlagTruncate})
		}

		if !strings.Contains(mode.Text, "+") {
			return f
		}
	}

	m.Emit(c, effect.Effect{Kind: effect.Read, Target: target})

	// What the path itself came from says nothing of the content.
	f.Taint = effect.TaintFile
	f.Origin = target.Text

	if target.Text == effect.HoleText {
		f.Origin = target.Ref
	}

	if w, ok := m.Written(target); ok {
		f = f.From(flow.Tainted(w.Taint, w.Origin))
	}

	return f
}

// pathText is a path object's text.
func pathText(v flow.Value) flow.Value {
	if o := v.Object(); v.Kind == flow.Instance && o.Sym != nil && o.Sym.Path {
		return o.Main
	}

	return v
}

func readFile(m *flow.Machine, c *flow.Call) flow.Value {
	if w, ok := m.Written(c.Recv.Object().Main.Value()); ok && w.IsConst() && c.Recv.Taint.Any(effect.TaintFile) {
		return m.Content(c.Recv.Object().Main.Value())
	}

	return flow.Tainted(c.Recv.Taint, c.Recv.Origin)
}

func writeFile(m *flow.Machine, c *flow.Call) flow.Value {
	o := c.Recv.Object()

	e := effect.Effect{Kind: effect.Write, Target: o.Main.Value(), Data: m.Value(c, 0, "")}
	if c.Name == "writestr" {
		e.Data = m.Value(c, 1, "")
	}

	if strings.Contains(o.Mode, "a") {
		e.Flags |= effect.FlagAppend
	}

	if e.Target.Ref == "" && !e.Target.IsConst() {
		e.Target.Ref = o.Main.Ref
	}

	m.Emit(c, e)

	return flow.Value{}
}

// target is the path an operation is on: the first argument, or the path
// object it is called on. more is the position of the next argument.
func target(m *flow.Machine, c *flow.Call) (v effect.Value, more int) {
	if o := c.Recv.Object(); c.Recv.Kind == flow.Instance && o.Sym != nil && o.Sym.Path {
		return m.ValueOf(o.Main, c.RecvNode), 0
	}

	v = m.Value(c, 0, "path")
	if v.Text == "" && len(c.Kw) > 0 && len(c.Args) == 0 {
		v = c.Kw[0].Value.Value()
	}

	return v, 1
}

func remove(m *flow.Machine, c *flow.Call) flow.Value {
	path, _ := target(m, c)
	e := effect.Effect{Kind: effect.Delete, Target: path}

	switch c.Sym.Short() {
	case "rmtree", "remove_tree":
		e.Flags |= effect.FlagRecursive

		if v, ok := c.Arg(1, "ignore_errors"); ok && v.Int != 0 {
			e.Flags |= effect.FlagForce
		}
	}

	m.Emit(c, e)

	return flow.Value{Kind: flow.None}
}

func move(m *flow.Machine, c *flow.Call) flow.Value {
	from, more := target(m, c)

	name := "dst"
	if more == 0 {
		name = "target"
	}

	e := effect.Effect{Kind: effect.Move, Target: m.Value(c, more, name), Args: []effect.Value{from}}
	if strings.Contains(c.Sym.Name, "copy") {
		e.Flags |= effect.FlagCopy
	}

	if c.Sym.Short() == "copyfileobj" {
		// Data from one object to another.
		src, dst := c.Val(0, "fsrc"), c.Val(1, "fdst")
		if o := dst.Object(); o != nil {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: o.Main.Value(), Data: src.Forget().Value()})
		}

		return flow.Value{}
	}

	m.Emit(c, e)

	return c.Val(more, name)
}

func link2(m *flow.Machine, c *flow.Call) flow.Value {
	e := effect.Effect{Kind: effect.Link, Data: m.Value(c, 0, "src"), Target: m.Value(c, 1, "dst")}

	if path, more := target(m, c); more == 0 {
		e.Target, e.Data = path, m.Value(c, 0, "target")
	}

	m.Emit(c, e)

	return flow.Value{}
}

func mode(m *flow.Machine, c *flow.Call) flow.Value {
	path, more := target(m, c)
	v := c.Val(more, "mode")
	data := v.Value()

	if v.Kind == flow.Int {
		data.Text = strconv.FormatInt(v.Int, 8)
	} else if !v.IsConst() {
		data.Ref = m.Source(c.Node(more, "mode")) // stat.S_IXUSR and the like
	}

	if strings.Contains(c.Sym.Short(), "chown") {
		uid, gid := c.Val(more, "uid"), c.Val(more+1, "gid")
		data = effect.Const(uid.Value().Text + ":" + gid.Value().Text)
	}

	m.Emit(c, effect.Effect{Kind: effect.Mode, Target: path, Data: data})

	return flow.Value{}
}

func list(m *flow.Machine, c *flow.Call) flow.Value {
	path, _ := target(m, c)
	if path.Text != "" && path.Text != effect.HoleText {
		m.Emit(c, effect.Effect{Kind: effect.Call, Target: effect.Const(c.Via()), Args: []effect.Value{path}})
	}

	name := c.Sym.Short()
	root := c.Val(0, "top")

	if o := c.Recv.Object(); o != nil {
		root = o.Main
	}

	if root.Kind == flow.Instance {
		root = pathText(root)
	}

	// Any file of the folder, as a shell would write it.
	below := flow.Entry(root)

	switch {
	case strings.HasPrefix(name, "glob"), name == "iglob", name == "rglob":
		pattern := root
		if o := c.Recv.Object(); o != nil {
			pattern = m.JoinPath(o.Main, c.Val(0, ""))
		}

		pattern.Text = strings.ReplaceAll(pattern.Text, "**", "*")
		if !pattern.IsText() {
			pattern = below
		}

		return flow.Items(asPath(m, c, pattern))
	case name == "walk":
		dir := root
		if root.IsText() && root.Text != "" {
			dir.Ref = "walk"
		}

		return flow.Items(flow.Items(dir, flow.Items(below), flow.Items(below)))
	case name == "listdir":
		return flow.Items(below)
	}

	return flow.Items(asPath(m, c, m.JoinPath(root, below)))
}

// asPath makes a path object where the list is of such.
func asPath(m *flow.Machine, c *flow.Call, v flow.Value) flow.Value {
	if c.Recv.Kind == flow.Instance || c.Sym.Short() == "scandir" {
		return flow.New(m.L.Root.At("pathlib.Path()"), v)
	}

	return v
}

// definePaths defines what puts paths together.
func definePaths(root *flow.Sym) {
	path := root.At("pathlib.Path()")
	path.Path = true
	makePath := func(m *flow.Machine, c *flow.Call) flow.Value {
		var v flow.Value
		if len(c.Args) == 0 {
			v = flow.Text(".")
		} else {
			v = m.JoinPath(pathText(c.Args[0]), c.Args[1:]...)
		}

		return flow.New(path, pathText(v))
	}
	root.Def("pathlib.Path pathlib.PosixPath pathlib.PurePath pathlib.PurePosixPath pathlib.WindowsPath "+
		"path.Path anyio.Path aiopath.AsyncPath", makePath)
	root.Def("pathlib.Path.home pathlib.PosixPath.home", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.New(path, flow.Text("~"))
	})
	root.Def("pathlib.Path.cwd", func(*flow.Machine, *flow.Call) flow.Value { return flow.New(path, flow.Text(".")) })
	path.Def("joinpath", func(m *flow.Machine, c *flow.Call) flow.Value { return m.JoinPath(c.Recv, c.Args...) })
	path.Def("expanduser resolve absolute as_posix with_suffix", func(_ *flow.Machine, c *flow.Call) flow.Value {
		if c.Sym.Short() == "as_posix" {
			return c.Recv.Object().Main
		}

		return c.Recv
	})
	path.DefGet("parent", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Recv.Object().Main
		v.Text = dirname(v.Text)
		v.Taint &^= effect.TaintSelf

		return flow.New(path, v)
	})
	path.DefGet("name", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Recv.Object().Main
		v.Text = v.Text[strings.LastIndexByte(v.Text, '/')+1:]

		return v
	})
	path.DefGet("path", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv.Object().Main })
	path.Def("read_text read_bytes", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := m.ValueOf(c.Recv.Object().Main, c.RecvNode)
		m.Emit(c, effect.Effect{Kind: effect.Read, Target: v})

		return m.Content(v)
	})
	path.Def("write_text write_bytes", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{
			Kind: effect.Write, Target: m.ValueOf(c.Recv.Object().Main, c.RecvNode), Data: m.Value(c, 0, "data"),
		})

		return flow.Value{}
	})
	path.Def("open", func(m *flow.Machine, c *flow.Call) flow.Value {
		// open(self, mode) has its path in front.
		mode := c.Val(0, "mode")
		v := c.Recv.Object().Main
		c.Args = append(c.Args[:0], v, mode)
		c.Nodes = append(c.Nodes[:0], c.RecvNode, 0)

		return open(m, c)
	})
	path.Def("exists is_file is_dir stat is_symlink touch mkdir", func(*flow.Machine, *flow.Call) flow.Value { return flow.Value{} })

	root.Def("os.path.join", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 0 {
			return flow.Value{}
		}

		return m.JoinPath(pathText(c.Args[0]), c.Args[1:]...)
	})
	root.Def("os.path.expanduser os.path.abspath os.path.realpath os.path.normpath os.path.normcase os.fspath "+
		"os.fsdecode os.fsencode", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return pathText(c.Val(0, "path"))
	})
	root.Def("os.path.expandvars string.Template().substitute", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "path")
		if v.IsText() {
			v.Text = strings.NewReplacer("${HOME}", "~", "$HOME", "~").Replace(v.Text)
		}

		return v
	})
	root.Def("os.path.dirname", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := pathText(c.Val(0, "p"))
		v.Taint &^= effect.TaintSelf

		if v.IsText() {
			v.Text = dirname(v.Text)
		}

		return v
	})
	root.Def("os.path.basename", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := pathText(c.Val(0, "p"))
		if v.IsText() {
			v.Text = v.Text[strings.LastIndexByte(v.Text, '/')+1:]
		}

		return v
	})
	root.Def("os.path.exists os.path.isfile os.path.isdir os.path.getsize os.stat os.access os.path.islink "+
		"os.path.samefile os.path.getmtime", quiet)
	root.DefGet("os.sep os.path.sep", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("/") })
	root.DefGet("os.linesep", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("\n") })
	root.DefGet("os.devnull", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("/dev/null") })
	root.DefGet("sys.executable", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("python3") })
	root.DefGet("string.ascii_lowercase", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Text("abcdefghijklmnopqrstuvwxyz")
	})
	root.DefGet("string.ascii_uppercase", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Text("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	})
	root.DefGet("string.ascii_letters", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	})
	root.DefGet("string.digits", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("0123456789") })
}

func dirname(s string) string {
	i := strings.LastIndexByte(s, '/')

	switch {
	case i < 0:
		return "."
	case i == 0:
		return "/"
	}

	return s[:i]
}
