package javascript

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// names are a module's members of those names, and their synchronous twins.
func names(module, members string) string {
	var b strings.Builder

	for m := range strings.FieldsSeq(members) {
		b.WriteString(module + "." + m + " " + module + "." + m + "Sync ")
	}

	return b.String()
}

// defineFiles defines the file system and paths.
func defineFiles(l *flow.Language) {
	root := l.Root

	root.Def(names("fs", "readFile readJson readJSON outputJson"), func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Read, Target: m.Value(c, 0, "")})

		v := fileContent(m, c)
		callback(m, c, flow.Value{Kind: flow.None}, v)

		return v
	})
	root.Def("fs.createReadStream", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Read, Target: m.Value(c, 0, "")})

		v := flow.New(m.L.Root.At("stream()"), c.Val(0, ""))
		content := fileContent(m, c)
		v.Taint, v.Origin = content.Taint, content.Origin

		return v
	})
	root.Def(names("fs", "writeFile appendFile outputFile writeJson writeJSON write-file-atomic"), func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, ""), Data: m.Value(c, 1, "")}

		if strings.HasPrefix(c.Sym.Short(), "append") {
			e.Flags |= effect.FlagAppend
		}

		if v, ok := option(c, "flag"); ok && strings.HasPrefix(v.Text, "a") {
			e.Flags |= effect.FlagAppend
		}

		if o := c.Val(0, "").Object(); o != nil {
			e.Target = m.ValueOf(o.Main, c.Node(0, ""))
		}

		m.Emit(c, e)

		if v, ok := option(c, "mode"); ok && v.Kind == flow.Int {
			m.Emit(c, effect.Effect{Kind: effect.Mode, Target: e.Target, Data: effect.Const(strconv.FormatInt(v.Int, 8))})
		}

		callback(m, c)

		return flow.Value{}
	})
	root.Def("fs.createWriteStream", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, ""), Flags: effect.FlagTruncate})

		return flow.New(m.L.Root.At("file()"), c.Val(0, ""))
	})
	root.Def(names("fs", "open"), func(m *flow.Machine, c *flow.Call) flow.Value {
		f := flow.New(m.L.Root.At("file()"), c.Val(0, ""))
		f.Taint, f.Origin = 0, ""
		mode := c.Val(1, "").Text

		switch {
		case strings.HasPrefix(mode, "w"):
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, ""), Flags: effect.FlagTruncate})
		case strings.HasPrefix(mode, "a"):
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, ""), Flags: effect.FlagAppend})
		default:
			m.Emit(c, effect.Effect{Kind: effect.Read, Target: m.Value(c, 0, "")})

			content := fileContent(m, c)
			f.Taint, f.Origin = content.Taint, content.Origin
		}

		callback(m, c, flow.Value{Kind: flow.None}, f)

		return f
	})
	root.Def("fs.write fs.writeSync", func(m *flow.Machine, c *flow.Call) flow.Value {
		if o := c.Val(0, "").Object(); o != nil {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: o.Main.Value(), Data: m.Value(c, 1, "")})
		}

		return flow.Value{}
	})
	root.Def("fs.read fs.readSync", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "").Forget() })
	root.Def("file().write file().writeFile file().end file().appendFile", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) > 0 {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: c.Recv.Object().Main.Value(), Data: m.Value(c, 0, "")})
		}

		return flow.Value{}
	})
	root.Def("file().read file().readFile", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return flow.Tainted(c.Recv.Taint, c.Recv.Origin)
	})

	remove := func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Delete, Target: m.Value(c, 0, "")}
		if v, ok := option(c, "recursive"); ok && v.Int != 0 {
			e.Flags |= effect.FlagRecursive
		}

		if v, ok := option(c, "force"); ok && v.Int != 0 {
			e.Flags |= effect.FlagForce
		}

		switch name := c.Sym.Name; {
		case strings.HasPrefix(name, "rimraf"), strings.HasPrefix(name, "del"), strings.HasPrefix(name, "fs.remove"),
			strings.HasPrefix(name, "fs.emptyDir"), strings.HasPrefix(name, "trash"):
			e.Flags |= effect.FlagRecursive
		case name == "shelljs.rm":
			if strings.HasPrefix(c.Val(0, "").Text, "-") {
				e.Target = m.Value(c, 1, "")

				if strings.ContainsAny(c.Val(0, "").Text, "rR") {
					e.Flags |= effect.FlagRecursive
				}
			}
		}

		m.Emit(c, e)
		callback(m, c, flow.Value{Kind: flow.None})

		return flow.Value{}
	}
	root.Def(names("fs", "unlink rm rmdir remove emptyDir")+names("rimraf", "rimraf")+
		"rimraf rimraf.sync rimraf.native del del.sync del.deleteAsync del.deleteSync shelljs.rm trash", remove)

	root.Def(names("fs", "rename move copyFile cp copy"), func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Move, Args: []effect.Value{m.Value(c, 0, "")}, Target: m.Value(c, 1, "")}
		if n := c.Sym.Short(); strings.HasPrefix(n, "c") {
			e.Flags |= effect.FlagCopy
		}

		m.Emit(c, e)
		callback(m, c, flow.Value{Kind: flow.None})

		return flow.Value{}
	})
	root.Def(names("fs", "symlink link"), func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Link, Data: m.Value(c, 0, ""), Target: m.Value(c, 1, "")})

		return flow.Value{}
	})
	root.Def(names("fs", "chmod lchmod fchmod chown lchown fchown")+"shelljs.chmod", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(1, "")
		e := effect.Effect{Kind: effect.Mode, Target: m.Value(c, 0, ""), Data: v.Value()}

		switch {
		case strings.Contains(c.Sym.Short(), "chown"):
			e.Data = effect.Const(v.Value().Text + ":" + c.Val(2, "").Value().Text)
		case v.Kind == flow.Int:
			e.Data.Text = strconv.FormatInt(v.Int, 8)
		case c.Sym.Name == "shelljs.chmod":
			e.Data, e.Target = m.Value(c, 0, ""), m.Value(c, 1, "")
		}

		m.Emit(c, e)
		callback(m, c, flow.Value{Kind: flow.None})

		return flow.Value{}
	})
	root.Def(names("fs", "truncate ftruncate"), func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 0, ""), Flags: effect.FlagTruncate})

		return flow.Value{}
	})
	root.Def(names("fs", "readdir opendir")+"glob glob.sync glob.globSync fast-glob fast-glob.sync globby", func(m *flow.Machine, c *flow.Call) flow.Value {
		dir := c.Val(0, "")
		if dir.IsText() && dir.Text != "" {
			m.Emit(c, effect.Effect{Kind: effect.Call, Target: effect.Const(c.Via()), Args: []effect.Value{m.Value(c, 0, "")}})
		}

		// Any file of the folder, as a shell would write it.
		entry := flow.Entry(dir)
		if strings.Contains(c.Sym.Name, "glob") && dir.IsText() {
			entry = dir
		}

		if _, ok := option(c, "withFileTypes"); ok {
			entry = flow.New(m.L.Root.At("dirent()"), entry)
		}

		v := flow.Items(entry)
		callback(m, c, flow.Value{Kind: flow.None}, v)

		return v
	})
	root.DefGet("dirent().name", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv.Object().Main })
	root.Def(names("fs", "stat lstat exists access mkdir mkdtemp realpath readlink utimes watch ensureDir mkdirp pathExists"), func(m *flow.Machine, c *flow.Call) flow.Value {
		callback(m, c, flow.Value{Kind: flow.None}, flow.Value{})

		return flow.Value{}
	})

	defineDatabases(root)
	root.Def("path.join path.resolve path.posix.join path.normalize path.posix.resolve", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 0 {
			return flow.Text(".")
		}

		out := c.Args[0]

		for _, a := range c.Args[1:] {
			if c.Sym.Short() == "join" && a.IsText() {
				// join never starts over.
				a.Text = strings.TrimLeft(a.Text, "/")
			}

			out = m.JoinPath(out, a)
		}

		return out
	})
	root.Def("path.dirname", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if i := strings.LastIndexByte(v.Text, '/'); v.IsText() && i > 0 {
			v.Text = v.Text[:i]
		}

		return v
	})
	root.Def("path.basename", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		v.Text = v.Text[strings.LastIndexByte(v.Text, '/')+1:]

		return v
	})
	root.DefGet("path.sep", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("/") })
	root.Def("url.fileURLToPath url.pathToFileURL untildify expand-tilde", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		v.Text = strings.TrimPrefix(v.Text, "file://")

		return v
	})
	l.Builtins.Def("URL", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if v.IsText() {
			v.Text = strings.TrimPrefix(v.Text, "file://")
		}

		return v
	})
}

// fileContent is what a file holds.
func fileContent(m *flow.Machine, c *flow.Call) flow.Value {
	return m.Content(m.Value(c, 0, ""))
}

// defineDatabases defines statements, which are code of their own.
func defineDatabases(root *flow.Sym) {
	query := func(m *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(0, ""); v.IsText() && len(v.Text) > 4 {
			m.Embed(c, "sql", v, c.Node(0, ""))
		}

		callback(m, c, flow.Value{Kind: flow.None}, flow.Value{})

		return flow.Value{}
	}

	for _, module := range strings.Fields("mysql mysql2 pg sqlite3 better-sqlite3") {
		for _, maker := range strings.Fields("createConnection() createPool() Client() Pool() Database()") {
			root.Def(module+"."+maker+".query "+module+"."+maker+".execute "+module+"."+maker+".run "+
				module+"."+maker+".exec "+module+"."+maker+".all "+module+"."+maker+".prepare", query)
		}
	}
}
