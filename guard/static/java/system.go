package java

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

func defineFiles(l *flow.Language) {
	root := l.Root

	path := root.At("Path()")
	path.Path = true
	makePath := func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 0 {
			return flow.New(path, flow.Text("."))
		}

		v := m.JoinPath(text(c.Args[0]), c.Args[1:]...)

		return flow.New(path, text(v))
	}
	root.Def("Paths.get Path.of File FileSystems.getDefault().getPath URI.create URI", makePath)
	path.Def("resolve resolveSibling", func(m *flow.Machine, c *flow.Call) flow.Value { return m.JoinPath(c.Recv, text(c.Val(0, ""))) })
	path.Def("toPath toFile toAbsolutePath normalize toRealPath getCanonicalFile getAbsoluteFile toURL toURI toUri", self)
	path.Def("toString getPath getAbsolutePath getName getCanonicalPath", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Recv.Object().Main
	})
	path.Def("listFiles list", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.Items(m.JoinPath(c.Recv, flow.Text("*")))
	})
	path.Def("exists isDirectory isFile length mkdir mkdirs getParentFile getParent createNewFile canRead", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Value{}
	})

	read := func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if o := v.Object(); v.Kind == flow.Instance && (o.Sym == nil || !o.Sym.Path) || v.Kind == flow.Unknown && v.Taint != 0 {
			return stream(m, v) // A reader around another.
		}

		e := m.ValueOf(text(v), c.Node(0, ""))
		m.Emit(c, effect.Effect{Kind: effect.Read, Target: e})

		return stream(m, m.Content(e))
	}
	root.Def("Files.readAllBytes Files.readString Files.readAllLines Files.lines Files.newInputStream Files.newBufferedReader "+
		"FileInputStream FileReader FileUtils.readFileToString FileUtils.readFileToByteArray", read)
	root.Def("Scanner BufferedReader InputStreamReader BufferedInputStream DataInputStream ObjectInputStream XMLDecoder", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if o := v.Object(); v.Kind == flow.Instance && o.Sym != nil && o.Sym.Path && c.Sym.Name == "Scanner" {
			return read(m, c)
		}

		if c.Sym.Inst != nil {
			w := flow.New(c.Sym.Inst, flow.Value{})
			w.Taint, w.Origin = v.Sources()

			return w
		}

		return stream(m, v)
	})
	root.DefGet("System.in", func(m *flow.Machine, _ *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintInput, "")
	})

	write := func(flags effect.Flag) flow.Handler {
		return func(m *flow.Machine, c *flow.Call) flow.Value {
			e := effect.Effect{Kind: effect.Write, Target: m.ValueOf(text(c.Val(0, "")), c.Node(0, "")), Data: m.Value(c, 1, ""), Flags: flags}

			for i := range c.Nodes {
				if strings.Contains(m.Source(c.Nodes[i]), "APPEND") {
					e.Flags |= effect.FlagAppend
				}
			}

			m.Emit(c, e)

			return flow.Value{}
		}
	}
	root.Def("Files.write Files.writeString FileUtils.writeStringToFile FileUtils.write", write(0))

	writer := root.At("writer()")
	root.Def("FileWriter FileOutputStream PrintWriter Files.newBufferedWriter Files.newOutputStream PrintStream", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if o := v.Object(); v.Kind == flow.Instance && (o.Sym == nil || !o.Sym.Path) || v.Kind == flow.Unknown && v.Taint != 0 {
			return v // A writer around another.
		}

		e := effect.Effect{Kind: effect.Write, Target: m.ValueOf(text(v), c.Node(0, "")), Flags: effect.FlagTruncate}
		if a := c.Val(1, ""); a.Kind == flow.Bool && a.Int != 0 {
			e.Flags = effect.FlagAppend
		}

		m.Emit(c, e)

		return flow.New(writer, text(v))
	})
	root.Def("BufferedWriter OutputStreamWriter BufferedOutputStream DataOutputStream ObjectOutputStream", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Val(0, "")
	})
	root.Def("RandomAccessFile FileChannel.open Files.newByteChannel", func(m *flow.Machine, c *flow.Call) flow.Value {
		mode := c.Val(1, "").Text
		for i := range c.Nodes[min(1, len(c.Nodes)):] {
			mode += m.Source(c.Nodes[i+1])
		}

		if !strings.Contains(mode, "w") && !strings.Contains(mode, "WRITE") {
			return read(m, c)
		}

		return flow.New(writer, text(c.Val(0, "")))
	})
	writer.Def("writeInt writeByte writeUTF writeLong setLength seek", func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Sym.Short() != "seek" {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: c.Recv.Object().Main.Value(), Data: m.Value(c, 0, "")})
		}

		return c.Recv
	})
	writer.Def("write println print append printf writeBytes", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: c.Recv.Object().Main.Value(), Data: m.Value(c, 0, "")})

		return c.Recv
	})

	// What is read into an array is what the stream holds.
	for _, name := range []string{"read", "readNBytes", "readFully"} {
		l.Methods[name] = func(m *flow.Machine, c *flow.Call) flow.Value {
			t, origin := c.Recv.Sources()
			if t.Any(effect.TaintSocket) {
				t = t&^effect.TaintSocket | effect.TaintNetwork
			}

			if t != 0 && len(c.Nodes) > 0 {
				m.TaintNode(c.Nodes[0], flow.Tainted(t, origin))
			}

			return c.Result()
		}
	}

	copyTo := func(m *flow.Machine, c *flow.Call, from, to flow.Value) flow.Value {
		t, origin := from.Sources()
		data := flow.Tainted(t&^effect.TaintSocket, origin)

		if t.Any(effect.TaintSocket) {
			data.Taint |= effect.TaintNetwork
		}

		if o := to.Object(); to.Kind == flow.Instance && o.Sym != nil {
			switch o.Sym {
			case writer:
				m.Emit(c, effect.Effect{Kind: effect.Write, Target: o.Main.Value(), Data: data.Value()})
			case root.At("socket()"):
				m.Emit(c, effect.Effect{Kind: effect.Send, Target: o.Main.Value(), Port: portOf(o), Data: data.Value()})
			case root.At("process.in()"):
				fed(m, c, o.Main, data)
			}
		}

		return flow.Value{}
	}
	l.Methods["transferTo"] = func(m *flow.Machine, c *flow.Call) flow.Value { return copyTo(m, c, c.Recv, c.Val(0, "")) }
	l.Methods["transferFrom"] = func(m *flow.Machine, c *flow.Call) flow.Value { return copyTo(m, c, c.Val(0, ""), c.Recv) }
	root.Def("socket().transferTo process().transferTo", l.Methods["transferTo"])
	root.Def("IOUtils.copy IOUtils.copyLarge ByteStreams.copy FileCopyUtils.copy StreamUtils.copy", func(m *flow.Machine, c *flow.Call) flow.Value {
		return copyTo(m, c, c.Val(0, ""), c.Val(1, ""))
	})
	writer.Def("getChannel", self)
	writer.Def("transferFrom", l.Methods["transferFrom"])
	root.Def("Channels.newChannel Channels.newInputStream Channels.newOutputStream", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	root.Def("Files.createTempFile File.createTempFile Files.createTempDirectory", func(m *flow.Machine, c *flow.Call) flow.Value {
		suffix := flow.Value{}
		for _, a := range c.Args {
			if a.IsConst() {
				suffix = a
			}
		}

		if !strings.HasPrefix(suffix.Text, ".") {
			suffix = flow.Value{}
		}

		return flow.New(path, m.Temporary(c, suffix))
	})

	remove := func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		node := c.Node(0, "")

		if o := c.Recv.Object(); c.Recv.Kind == flow.Instance && o.Sym == path {
			v, node = c.Recv, c.RecvNode
		}

		e := effect.Effect{Kind: effect.Delete, Target: m.ValueOf(text(v), node)}
		if strings.Contains(c.Sym.Name, "Directory") || strings.Contains(c.Sym.Name, "forceDelete") || strings.Contains(c.Sym.Name, "Recursively") {
			e.Flags |= effect.FlagRecursive
		}

		m.Emit(c, e)

		return flow.Value{}
	}
	root.Def("Files.delete Files.deleteIfExists FileUtils.deleteDirectory FileUtils.forceDelete FileUtils.cleanDirectory "+
		"FileUtils.deleteQuietly FileSystemUtils.deleteRecursively MoreFiles.deleteRecursively", remove)
	path.Def("delete deleteOnExit", remove)

	root.Def("Files.move Files.copy FileUtils.copyFile FileUtils.moveFile FileUtils.copyDirectory", func(m *flow.Machine, c *flow.Call) flow.Value {
		from := c.Val(0, "")
		// Files.copy(stream, path) writes a download.
		if t, _ := from.Sources(); t.Any(effect.TaintDownload | effect.TaintNetwork) {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: text(c.Val(1, "")).Value(), Data: from.Forget().Value()})

			return flow.Value{}
		}

		e := effect.Effect{Kind: effect.Move, Target: text(c.Val(1, "")).Value(), Args: []effect.Value{text(from).Value()}}
		if strings.Contains(c.Sym.Name, "copy") {
			e.Flags |= effect.FlagCopy
		}

		m.Emit(c, e)

		return flow.Value{}
	})
	path.Def("renameTo", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Move, Target: text(c.Val(0, "")).Value(), Args: []effect.Value{c.Recv.Object().Main.Value()}})

		return flow.Value{}
	})
	root.Def("Files.createSymbolicLink Files.createLink", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Link, Target: text(c.Val(0, "")).Value(), Data: text(c.Val(1, "")).Value()})

		return flow.Value{}
	})
	root.Def("Files.setPosixFilePermissions", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Mode, Target: text(c.Val(0, "")).Value(), Data: m.Value(c, 1, "")})

		return flow.Value{}
	})
	root.Def("PosixFilePermissions.fromString", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	path.Def("setExecutable setReadable setWritable", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Mode, Target: c.Recv.Object().Main.Value(), Data: effect.Const(map[string]string{
			"setExecutable": "+x", "setReadable": "+r", "setWritable": "+w",
		}[c.Sym.Short()])})

		return flow.Value{}
	})
	root.Def("Files.walkFileTree", func(m *flow.Machine, c *flow.Call) flow.Value {
		visitor := c.Args[max(len(c.Args)-1, 0):]
		if len(visitor) == 0 {
			return flow.Value{}
		}

		dir := c.Val(0, "")
		file := m.JoinPath(dir, flow.Text("*"))

		return m.InLoop(func() flow.Value {
			for _, name := range []string{"preVisitDirectory", "visitFile", "postVisitDirectory"} {
				at := dir
				if name == "visitFile" {
					at = file
				}

				if f := m.Attribute(visitor[0], name, c.ID); f.Callable() {
					m.CallValue(f, c.ID, at)
				}
			}

			return flow.Value{}
		})
	})
	root.Def("Files.walk Files.list Files.newDirectoryStream Files.find FileUtils.listFiles FileUtils.iterateFiles", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.Items(m.JoinPath(c.Val(0, ""), flow.Text("*")))
	})
}

// text is a path's or URL's text.
func text(v flow.Value) flow.Value {
	if o := v.Object(); v.Kind == flow.Instance && o.Sym != nil && o.Sym.Path {
		return o.Main
	}

	return v
}

// stream is something that is read from, and yields what v does.
func stream(m *flow.Machine, v flow.Value) flow.Value {
	t, origin := v.Sources()

	return flow.Tainted(t, origin)
}

func defineNetwork(l *flow.Language) {
	root := l.Root

	socket := root.At("socket()")
	makeSocket := func(m *flow.Machine, c *flow.Call) flow.Value {
		v := flow.New(socket, flow.Value{Ref: "socket"})
		v.Taint, v.Origin = effect.TaintSocket, ""

		if len(c.Args) >= 2 {
			host, port := c.Args[0], c.Args[1]
			m.Emit(c, effect.Effect{Kind: effect.Connect, Target: m.ValueOf(host, c.Nodes[0]), Port: port.Value(), Flags: sweep(host, port)})
			v.Object().Main, v.Object().Port = host, port
		} else if a := c.Val(0, "").Object(); a != nil && a.Sym == root.At("address()") {
			m.Emit(c, effect.Effect{Kind: effect.Connect, Target: a.Main.Value(), Port: portOf(a), Flags: sweep(a.Main, a.Port)})
			v.Object().Main, v.Object().Port = a.Main, a.Port
		}

		return v
	}
	root.Def("Socket SSLSocketFactory.getDefault().createSocket SocketChannel.open", makeSocket)
	socket.Def("connect", func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		if a := c.Val(0, "").Object(); a != nil {
			o.Main, o.Port = a.Main, a.Port
		}

		m.Emit(c, effect.Effect{Kind: effect.Connect, Target: o.Main.Value(), Port: portOf(o), Flags: sweep(o.Main, o.Port)})

		return flow.Value{}
	})
	root.Def("InetSocketAddress", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := flow.New(m.L.Root.At("address()"), c.Val(0, ""))
		v.Object().Port = c.Val(1, "")

		return v
	})
	socket.Def("getInputStream", func(*flow.Machine, *flow.Call) flow.Value { return flow.Tainted(effect.TaintNetwork, "") })
	socket.Def("getOutputStream", self)
	socket.Def("write println print append flush writeBytes writeUTF", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) > 0 {
			o := c.Recv.Object()
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: o.Main.Value(), Port: portOf(o), Data: m.Value(c, 0, "")})
		}

		return flow.Value{}
	})
	root.Def("ServerSocket", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Listen, Port: m.Value(c, 0, "")})

		return flow.New(m.L.Root.At("server()"), flow.Value{})
	})
	root.Def("server().accept", func(*flow.Machine, *flow.Call) flow.Value {
		v := flow.New(socket, flow.Value{Ref: "peer"})
		v.Taint = effect.TaintSocket

		return v
	})
	root.Def("HttpServer.create", func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Listen}
		if a := c.Val(0, "").Object(); a != nil {
			e.Port = a.Main.Value()
		}

		m.Emit(c, e)

		return flow.New(m.L.Root.At("HttpServer()"), flow.Value{})
	})
	root.Def("HttpServer().createContext", func(m *flow.Machine, c *flow.Call) flow.Value {
		f := c.Val(1, "")
		if handle := m.Attribute(f, "handle", c.ID); f.Kind == flow.Instance && handle.Callable() {
			f = handle
		}

		m.CallValue(f, c.ID, flow.Tainted(effect.TaintNetwork, ""))

		return flow.Value{}
	})
	root.Def("InetAddress.getByName().isReachable", func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		m.Emit(c, effect.Effect{Kind: effect.Connect, Target: o.Main.Value(), Flags: sweep(o.Main, flow.Value{})})

		return flow.Value{}
	})
	root.Def("InetAddress.getByName InetAddress.getAllByName", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v := m.Value(c, 0, ""); v.Taint != 0 && !v.IsUnknown() {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: v, Data: v, Port: effect.Const("53")})
		}

		return flow.New(m.L.Root.At("InetAddress.getByName()"), c.Val(0, ""))
	})

	// URLs.
	url := root.At("URL()")
	url.Path = true
	root.Def("URL", func(_ *flow.Machine, c *flow.Call) flow.Value { return flow.New(url, text(c.Val(0, ""))) })

	receive := func(m *flow.Machine, c *flow.Call, to flow.Value) flow.Value {
		e := text(to).Value()
		if e.Taint != 0 && !e.IsUnknown() {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: e, Data: e})
		}

		m.Emit(c, effect.Effect{Kind: effect.Receive, Target: e})

		return flow.Tainted(effect.TaintDownload, e.Text)
	}
	openURL := func(m *flow.Machine, c *flow.Call) flow.Value { return receive(m, c, c.Recv) }

	for _, kind := range []string{"URL()", "Path()"} {
		root.At(kind).Def("openStream getContent", openURL)
		root.At(kind).Def("openConnection", func(m *flow.Machine, c *flow.Call) flow.Value {
			v := flow.New(m.L.Root.At("connection()"), text(c.Recv))
			v.Taint = effect.TaintDownload

			return v
		})
	}

	root.Def("connection().getInputStream connection().getContent connection().connect connection().getResponseCode", func(m *flow.Machine, c *flow.Call) flow.Value {
		return receive(m, c, c.Recv.Object().Main)
	})
	root.Def("connection().getOutputStream", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := flow.New(socket, c.Recv.Object().Main)
		v.Taint = effect.TaintSocket

		return v
	})
	root.Def("FileUtils.copyURLToFile", func(m *flow.Machine, c *flow.Call) flow.Value {
		data := receive(m, c, c.Val(0, ""))
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: text(c.Val(1, "")).Value(), Data: data.Value()})

		return flow.Value{}
	})

	// The newer HTTP client: a builder says where and what.
	request := root.At("request()")
	root.Def("HttpRequest.newBuilder", func(_ *flow.Machine, c *flow.Call) flow.Value { return flow.New(request, text(c.Val(0, ""))) })
	request.Def("uri url", func(_ *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		o.Main = text(c.Val(0, ""))

		return c.Recv
	})
	request.Def("POST PUT post put method", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if c.Sym.Short() == "method" {
			v = c.Val(1, "")
		}

		c.Recv.Object().Set("body", v)

		return c.Recv
	})
	request.Def("GET header headers timeout build version addHeader get", self)
	root.Def("Request.Builder", func(_ *flow.Machine, _ *flow.Call) flow.Value { return flow.New(request, flow.Value{}) })
	root.Def("HttpRequest.BodyPublishers.ofString HttpRequest.BodyPublishers.ofByteArray BodyPublishers.ofString BodyPublishers.ofByteArray "+
		"HttpRequest.BodyPublishers.ofInputStream BodyPublishers.ofInputStream", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	root.Def("HttpRequest.BodyPublishers.ofFile BodyPublishers.ofFile", func(m *flow.Machine, c *flow.Call) flow.Value {
		e := text(c.Val(0, "")).Value()
		m.Emit(c, effect.Effect{Kind: effect.Read, Target: e})

		return m.Content(e)
	})

	disk := root.At("disk()")
	root.Def("HttpResponse.BodyHandlers.ofFile BodyHandlers.ofFile HttpResponse.BodyHandlers.ofFileDownload BodyHandlers.ofFileDownload", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return flow.New(disk, text(c.Val(0, "")))
	})

	send := func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Val(0, "").Object()
		if o == nil || o.Sym != request {
			return c.Result()
		}

		if body, ok := o.Attrs["body"]; ok {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: o.Main.Value(), Data: body.Value()})
		}

		out := receive(m, c, o.Main)
		if d := c.Val(1, "").Object(); d != nil && d.Sym == disk {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: d.Main.Value(), Data: out.Value()})
		}

		return out
	}
	l.Methods["send"], l.Methods["sendAsync"], l.Methods["newCall"] = send, send, send
	root.Def("RestTemplate().postForObject RestTemplate().postForEntity", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Send, Target: m.Value(c, 0, ""), Data: m.Value(c, 1, "")})

		return receive(m, c, c.Val(0, ""))
	})
	root.Def("RestTemplate().getForObject Jsoup.connect().get IOUtils.toString", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(0, ""); v.IsText() || v.Kind == flow.Instance {
			return receive(m, c, v)
		}

		return c.Result()
	})
}

func portOf(o *flow.Object) effect.Value {
	if o.Port.Kind == flow.Unknown && o.Port.Ref == "" && !o.Port.Many {
		return effect.Value{}
	}

	return o.Port.Value()
}

func sweep(host, port flow.Value) effect.Flag {
	var f effect.Flag

	if host.Many {
		f |= effect.FlagManyHosts
	}

	if port.Many {
		f |= effect.FlagManyPorts
	}

	return f
}

func defineSystem(l *flow.Language) {
	root := l.Root

	root.Def("System.getenv", func(m *flow.Machine, c *flow.Call) flow.Value {
		name, ok := c.Arg(0, "")
		if !ok {
			m.Emit(c, effect.Effect{Kind: effect.Env})

			return flow.Tainted(effect.TaintEnvAll, "")
		}

		m.Emit(c, effect.Effect{Kind: effect.Env, Target: m.Value(c, 0, "")})

		if name.Text == "HOME" {
			return flow.Text("~")
		}

		return flow.Tainted(effect.TaintEnv, name.Text)
	})
	root.Def("System.getProperty", func(_ *flow.Machine, c *flow.Call) flow.Value {
		switch c.Val(0, "").Text {
		case "user.home":
			return flow.Text("~")
		case "java.io.tmpdir":
			return flow.Text("/tmp")
		case "user.name", "os.version", "user.dir":
			return flow.Tainted(effect.TaintInfo, "")
		case "file.separator":
			return flow.Text("/")
		}

		return flow.Value{}
	})
	root.DefGet("File.separator", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("/") })
	root.Def("InetAddress.getLocalHost", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Info, Target: effect.Const("hostname")})

		return flow.Tainted(effect.TaintInfo, "")
	})
	root.Def("NetworkInterface.getNetworkInterfaces", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Info, Target: effect.Const("network")})

		return flow.Tainted(effect.TaintInfo, "")
	})
	root.Def("Robot().createScreenCapture Toolkit.getDefaultToolkit().getSystemClipboard", func(m *flow.Machine, c *flow.Call) flow.Value {
		what := "screen"
		if strings.HasSuffix(c.Sym.Name, "Clipboard") {
			what = "clipboard"
		}

		m.Emit(c, effect.Effect{Kind: effect.Capture, Target: effect.Const(what)})

		return flow.Tainted(effect.TaintCapture, what)
	})
	handle := root.At("handle()")
	root.Def("ProcessHandle.of", func(_ *flow.Machine, c *flow.Call) flow.Value { return flow.New(handle, c.Val(0, "")) })
	root.Def("ProcessHandle.allProcesses", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Items(flow.New(handle, flow.Tainted(effect.TaintInfo, effect.Processes)))
	})
	handle.Def("get orElseThrow", self)
	handle.Def("destroy destroyForcibly", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Kill, Target: c.Recv.Object().Main.Value(), Data: effect.Const("TERM")})

		return flow.Value{}
	})
	handle.Def("ifPresent", func(m *flow.Machine, c *flow.Call) flow.Value { return m.CallValue(c.Val(0, ""), c.ID, c.Recv) })
	// Arrays of a size.
	root.Def("new[]", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(0, ""); v.Kind == flow.Int && (v.Int >= 64<<20 || v.Int >= 1<<20 && m.Endless()) {
			m.Emit(c, effect.Effect{Kind: effect.Alloc, Target: effect.Const("memory"), Data: v.Value(), Via: "new"})
		}

		if v := c.Val(0, ""); v.Kind == flow.Int && v.Int > 0 {
			return flow.Block(v.Int)
		}

		return flow.Value{}
	})
	root.DefGet("Integer.MAX_VALUE", func(*flow.Machine, *flow.Call) flow.Value { return flow.Number(1<<31 - 1) })
}
