package java

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

func self(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv }

func values(items []flow.Value) []effect.Value {
	out := make([]effect.Value, len(items))
	for i := range items {
		out[i] = items[i].Value()
	}

	return out
}

func itemsOf(v flow.Value) []flow.Value {
	if l := v.List(); v.Kind == flow.Array {
		return l.Items
	}

	return nil
}

func defineText(l *flow.Language) {
	root, h := l.Root, l.Methods

	root.Def("String.format String.formatted", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 0 {
			return flow.Value{}
		}

		return m.Percent(c.Args[0], flow.Items(append([]flow.Value(nil), c.Args[1:]...)...))
	})
	root.Def("String.join", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 0 {
			return flow.Value{}
		}

		items := c.Args[1:]
		if len(items) == 1 && items[0].Kind == flow.Array {
			items = itemsOf(items[0])
		}

		return m.Join(flow.Value{Kind: flow.Str, Built: true}, c.Args[0], items)
	})
	root.Def("String String.valueOf Objects.toString Character.toString Integer.toString", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")

		switch v.Kind {
		case flow.Bytes:
			v.Kind = flow.Str
			if !utf8.ValidString(v.Text) {
				v.Text = flow.Latin1(v.Text)
			}

			return v
		case flow.Array:
			return codes(m, v)
		case flow.Int:
			if c.Sym.Name == "Character.toString" {
				return flow.Value{Kind: flow.Str, Text: string(rune(v.Int)), Taint: effect.TaintDecoded}
			}
		}

		return v
	})
	root.Def("Integer.parseInt Integer.valueOf Long.parseLong Byte.parseByte", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")

		base := 10
		if b, ok := c.Arg(1, ""); ok && b.Kind == flow.Int {
			base = int(b.Int)
		}

		if n, err := strconv.ParseInt(v.Text, base, 64); err == nil && v.IsConst() {
			return flow.Number(n)
		}

		return v.Forget()
	})
	root.Def("Base64.getDecoder().decode Base64.getUrlDecoder().decode Base64.getMimeDecoder().decode Base64.decodeBase64 "+
		"DatatypeConverter.parseBase64Binary", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "base64", c.Val(0, ""), flow.Bytes)
	})
	root.Def("HexFormat.of().parseHex Hex.decodeHex DatatypeConverter.parseHexBinary", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "hex", c.Val(0, ""), flow.Bytes)
	})
	root.Def("URLDecoder.decode", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "url", c.Val(0, ""), flow.Str)
	})
	root.Def("Arrays.asList List.of Set.of Stream.of Arrays.stream Collections.singletonList", func(_ *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 1 && c.Args[0].Kind == flow.Array {
			return c.Args[0]
		}

		return flow.Items(append([]flow.Value(nil), c.Args...)...)
	})
	root.Def("ArrayList LinkedList HashSet", func(_ *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(0, ""); v.Kind == flow.Array {
			return flow.Items(append([]flow.Value(nil), itemsOf(v)...)...)
		}

		return flow.Items()
	})

	for _, name := range []string{"StringBuilder", "StringBuffer", "StringJoiner"} {
		builder := root.At(name + "()")
		root.Def(name, func(_ *flow.Machine, c *flow.Call) flow.Value {
			v := c.Val(0, "")
			if !v.IsText() || name == "StringJoiner" {
				v = flow.Text("")
			}

			return flow.New(builder, v)
		})
		builder.Def("append add insert appendCodePoint", func(m *flow.Machine, c *flow.Call) flow.Value {
			o := c.Recv.Object()

			v := c.Val(0, "")
			if c.Sym.Short() == "insert" {
				o.Main = m.Operate('+', c.Val(1, ""), o.Main, c.ID)

				return c.Recv
			}

			if v.Kind == flow.Int && (c.Sym.Short() == "appendCodePoint" || strings.Contains(m.Source(c.RecvNode)+m.Context(c.ID), "(char)")) {
				v = flow.Value{Kind: flow.Str, Text: string(rune(v.Int)), Taint: effect.TaintDecoded}
			}

			o.Main = m.Operate('+', o.Main, v, c.ID)

			return c.Recv
		})
		builder.Def("toString", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv.Object().Main })
		builder.Def("reverse", func(m *flow.Machine, c *flow.Call) flow.Value {
			o := c.Recv.Object()
			o.Main = m.SliceOf(o.Main, flow.Value{Kind: flow.None}, flow.Value{Kind: flow.None}, flow.Number(-1), true)

			return c.Recv
		})
	}

	mapText := func(f func(string) string) flow.Handler {
		return func(_ *flow.Machine, c *flow.Call) flow.Value {
			if !c.Recv.IsText() {
				return c.Result()
			}

			out := c.Recv
			out.Text = f(out.Text)

			return out
		}
	}
	h["toLowerCase"], h["toUpperCase"] = mapText(strings.ToLower), mapText(strings.ToUpper)
	h["trim"], h["strip"] = mapText(strings.TrimSpace), mapText(strings.TrimSpace)
	h["intern"], h["stripIndent"] = self, self
	h["toString"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		if c.Recv.IsText() {
			return c.Recv
		}

		return c.Recv.Forget()
	}
	h["getBytes"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Recv
		if v.IsConst() {
			v.Kind = flow.Bytes
		}

		return v
	}
	h["toCharArray"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if items, ok := m.Elements(c.Recv); ok {
			return flow.Items(items...)
		}

		return c.Recv.Forget()
	}
	h["charAt"] = func(m *flow.Machine, c *flow.Call) flow.Value { return m.Item(c.Recv, c.Val(0, ""), c.ID) }
	h["concat"] = func(m *flow.Machine, c *flow.Call) flow.Value { return m.Operate('+', c.Recv, c.Val(0, ""), c.ID) }
	h["substring"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.SliceOf(c.Recv, c.Val(0, ""), c.Val(1, ""), flow.Value{}, false)
	}
	h["repeat"] = func(m *flow.Machine, c *flow.Call) flow.Value { return m.Operate('*', c.Recv, c.Val(0, ""), c.ID) }
	h["replace"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		from, to := c.Val(0, ""), c.Val(1, "")
		if !c.Recv.IsConst() || !from.IsConst() || !to.IsConst() || len(c.Recv.Text)*(len(to.Text)+1) > effect.MaxText {
			return c.Result()
		}

		if c.Name == "replaceAll" && strings.ContainsAny(from.Text, `[](){}*+?^$|\.`) {
			return c.Result()
		}

		out := c.Recv
		out.Text, out.Built = strings.ReplaceAll(out.Text, from.Text, to.Text), true

		return out
	}
	h["replaceAll"] = h["replace"]
	h["split"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		sep := c.Val(0, "")
		if !c.Recv.IsConst() || !sep.IsConst() {
			return flow.Items(c.Recv.Forget())
		}

		parts := strings.Split(c.Recv.Text, strings.NewReplacer(`\s+`, " ", `\s`, " ", `\`, "").Replace(sep.Text))
		out := make([]flow.Value, len(parts))

		for i, p := range parts {
			out[i] = flow.Text(p)
		}

		return flow.Items(out...)
	}
	h["add"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if l := c.Recv.List(); c.Recv.Kind == flow.Array && len(l.Items) < 4096 {
			l.Items = append(l.Items, c.Args...)

			return flow.Value{}
		}

		m.Absorb(c)

		return c.Result()
	}
	h["addAll"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if l := c.Recv.List(); c.Recv.Kind == flow.Array && len(c.Args) > 0 && len(l.Items) < 4096 {
			l.Items = append(l.Items, itemsOf(c.Args[0])...)

			return flow.Value{}
		}

		m.Absorb(c)

		return c.Result()
	}
	h["get"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Recv.Kind == flow.Array || c.Recv.Kind == flow.Record {
			return m.Item(c.Recv, c.Val(0, ""), c.ID)
		}

		return c.Result()
	}
	each := func(m *flow.Machine, c *flow.Call) flow.Value {
		f := c.Val(0, "")
		if !f.First().Callable() {
			return c.Result()
		}

		items, ok := m.Elements(c.Recv)
		if !ok || !m.Worth(len(items), f) {
			return flow.Items(m.InLoop(func() flow.Value { return m.CallValue(f, c.ID, m.Element(c.Recv)) }))
		}

		out := make([]flow.Value, 0, len(items))

		m.InLoop(func() flow.Value {
			for _, it := range items {
				out = append(out, m.CallValue(f, c.ID, it))
			}

			return flow.Value{}
		})

		return flow.Items(out...)
	}
	h["forEach"], h["map"], h["mapToObj"], h["flatMap"], h["forEachOrdered"] = each, each, each, each, each
	some := func(m *flow.Machine, c *flow.Call) flow.Value {
		each(m, c)

		return c.Recv
	}
	h["filter"], h["peek"], h["takeWhile"], h["dropWhile"] = some, some, some, some
	h["stream"], h["sorted"], h["collect"], h["toList"], h["parallel"] = self, self, self, self, self
	h["toArray"], h["lines"] = self, self

	quiet := func(*flow.Machine, *flow.Call) flow.Value { return flow.Value{} }
	for _, name := range []string{"equals", "contains", "startsWith", "endsWith", "isEmpty", "length", "size", "indexOf", "hashCode", "println", "print", "printf"} {
		h[name] = quiet
	}

	h["length"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		if c.Recv.IsConst() {
			return flow.Number(int64(utf8.RuneCountInString(c.Recv.Text)))
		}

		return flow.Value{}
	}
}

// codes is an array of characters or of their codes as text.
func codes(m *flow.Machine, v flow.Value) flow.Value {
	var s strings.Builder

	for _, it := range v.List().Items {
		switch it.Kind {
		case flow.Int:
			s.WriteRune(rune(it.Int))
		case flow.Str:
			s.WriteString(it.Text)
		default:
			return v.Forget()
		}
	}

	if v.List().Open {
		return v.Forget()
	}

	return flow.Value{Kind: flow.Str, Text: s.String(), Taint: effect.TaintDecoded, Built: true}
}

func defineProcesses(l *flow.Language) {
	root := l.Root

	run := root.At("Runtime()")
	root.Def("Runtime.getRuntime", func(*flow.Machine, *flow.Call) flow.Value { return flow.New(run, flow.Value{}) })
	root.At("Runtime").Inst = run
	run.Def("exec", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")

		switch {
		case v.Kind == flow.Array && len(itemsOf(v)) > 0:
			m.Emit(c, effect.Effect{Kind: effect.Exec, Target: itemsOf(v)[0].Value(), Args: values(itemsOf(v)[1:]), Flags: effect.FlagBackground})
		case v.IsText():
			// The text is split at blanks; it is no shell text.
			e := effect.Effect{Kind: effect.Exec, Target: v.Value(), Flags: effect.FlagBackground}

			if words := strings.Fields(v.Text); len(words) > 0 {
				e.Target = effect.Value{Text: words[0], Taint: v.Taint, Ref: v.Ref}
				for _, w := range words[1:] {
					e.Args = append(e.Args, effect.Value{Text: w, Taint: v.Taint, Origin: v.Origin})
				}
			}

			m.Emit(c, e)
		default:
			m.Emit(c, effect.Effect{Kind: effect.Exec, Target: m.Value(c, 0, ""), Flags: effect.FlagBackground})
		}

		return process(m, v)
	})
	run.Def("load loadLibrary", native)
	run.Def("addShutdownHook", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.CallValue(m.Attribute(c.Val(0, ""), "run", c.ID), c.ID)

		return flow.Value{}
	})
	root.Def("System.load System.loadLibrary", native)

	builder := root.At("ProcessBuilder()")
	command := func(v []flow.Value) flow.Value {
		if len(v) == 1 && v[0].Kind == flow.Array {
			return v[0]
		}

		return flow.Items(append([]flow.Value(nil), v...)...)
	}
	root.Def("ProcessBuilder", func(_ *flow.Machine, c *flow.Call) flow.Value { return flow.New(builder, command(c.Args)) })
	builder.Def("command", func(_ *flow.Machine, c *flow.Call) flow.Value {
		c.Recv.Object().Main = command(c.Args)

		return c.Recv
	})
	builder.Def("inheritIO redirectErrorStream directory redirectOutput redirectInput redirectError", self)
	builder.Def("start", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Recv.Object().Main
		e := effect.Effect{Kind: effect.Exec, Target: effect.Unknown(v.Taint), Flags: effect.FlagBackground}

		if items := itemsOf(v); len(items) > 0 {
			if items[0].Kind == flow.Either {
				items[0] = items[0].First()
			}

			e.Target, e.Args = items[0].Value(), values(items[1:])
		}

		m.Emit(c, e)

		return process(m, v)
	})

	proc := root.At("process()")
	proc.Def("getInputStream getErrorStream inputReader", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintOutput, "")
	})
	proc.Def("getOutputStream outputWriter", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("process.in()"), c.Recv.Object().Main)
	})
	root.Def("process.in().write process.in().println process.in().print", func(m *flow.Machine, c *flow.Call) flow.Value {
		fed(m, c, c.Recv.Object().Main, c.Val(0, ""))

		return flow.Value{}
	})

	// Engines for other languages.
	root.Def("ScriptEngineManager().getEngineByName ScriptEngineManager().getEngineByExtension", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("engine()"), c.Val(0, ""))
	})
	root.Def("engine().eval GroovyShell().evaluate JShell.create().eval", func(m *flow.Machine, c *flow.Call) flow.Value {
		lang := "java"

		if o := c.Recv.Object(); o != nil {
			switch name := strings.ToLower(o.Main.Text); {
			case strings.Contains(name, "js"), strings.Contains(name, "javascript"), strings.Contains(name, "nashorn"):
				lang = "javascript"
			case strings.Contains(name, "python"):
				lang = "python"
			}
		}

		m.Embed(c, lang, c.Val(0, ""), c.Node(0, ""))

		return flow.Value{}
	})
	root.At("JShell.create()")

	defineThreads(l)

	for _, name := range []string{"executeQuery", "executeUpdate", "prepareStatement"} {
		l.Methods[name] = func(m *flow.Machine, c *flow.Call) flow.Value {
			if v := c.Val(0, ""); v.IsText() {
				m.Embed(c, "sql", v, c.Node(0, ""))
			}

			return c.Result()
		}
	}
}

// fed gives text to the standard input of a program.
func fed(m *flow.Machine, c *flow.Call, program, v flow.Value) {
	if items := itemsOf(program); len(items) > 0 {
		program = items[0]
	}

	switch program.Text[strings.LastIndexByte(program.Text, '/')+1:] {
	case "sh", "bash", "dash", "zsh", "cmd.exe", "cmd":
		m.Embed(c, "bash", v, c.Node(0, ""))
	}
}

func process(m *flow.Machine, v flow.Value) flow.Value {
	p := flow.New(m.L.Root.At("process()"), v)
	p.Taint, p.Origin = effect.TaintOutput, ""

	return p
}

func native(m *flow.Machine, c *flow.Call) flow.Value {
	m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const(c.Sym.Short()), Data: m.Value(c, 0, "")})

	if w, ok := m.Written(m.Value(c, 0, "")); ok && w.Taint != 0 {
		m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: "native", Data: w})
	}

	return flow.Value{}
}

// defineReflection defines what finds classes and methods by their names.
func defineReflection(l *flow.Language) {
	root, h := l.Root, l.Methods

	root.Def("Class.forName ClassLoader.getSystemClassLoader().loadClass Thread.currentThread().getContextClassLoader().loadClass", func(m *flow.Machine, c *flow.Call) flow.Value {
		name := c.Val(0, "")
		if !name.IsConst() {
			return flow.Value{Taint: name.Taint}
		}

		v := class(m, name.Text)
		v.Built = name.Built || name.Taint.Any(effect.TaintDecoded)

		return v
	})

	method := func(m *flow.Machine, c *flow.Call) flow.Value {
		name := c.Val(0, "")
		s := c.Recv.Sym()

		if !name.IsConst() || s == nil {
			return flow.Value{}
		}

		k := s.Kid(name.Text)
		if k == nil {
			k = s.Inst.Kid(name.Text)
		}

		if k == nil {
			k = m.L.Root.At(s.Name + "()").Kid(name.Text)
		}

		if k == nil {
			return flow.Value{}
		}

		return flow.Value{Kind: flow.Symbol, X: k, Built: true}
	}
	for _, name := range []string{"getMethod", "getDeclaredMethod"} {
		h[name] = method
	}

	reflected := func(m *flow.Machine, recv flow.Value, name string) (flow.Value, bool) {
		switch name {
		case "getMethod", "getDeclaredMethod", "invoke", "newInstance", "getDeclaredConstructor", "getConstructor", "setAccessible":
			return flow.Value{Kind: flow.Method, X: &flow.Bound{Recv: recv, Name: name}}, true
		}

		return flow.Value{}, false
	}
	before := l.Attr
	l.Attr = func(m *flow.Machine, recv flow.Value, name string, id tree.ID) (flow.Value, bool) {
		if recv.Kind == flow.Symbol {
			if v, ok := reflected(m, recv, name); ok {
				return v, true
			}
		}

		return before(m, recv, name, id)
	}

	h["invoke"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		s := c.Recv.Sym()
		if s == nil {
			return c.Result()
		}

		args := c.Args[min(1, len(c.Args)):]
		if len(args) == 1 && args[0].Kind == flow.Array && s.Short() != "exec" {
			args = itemsOf(args[0])
		}

		f := flow.Value{Kind: flow.Method, X: &flow.Bound{Recv: c.Val(0, ""), Sym: s}, Built: c.Recv.Built}

		return m.CallValue(f, c.ID, append([]flow.Value(nil), args...)...)
	}
	h["newInstance"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.CallValue(c.Recv, c.ID, c.Args...)
	}
	h["getDeclaredConstructor"], h["getConstructor"] = self, self
	h["setAccessible"] = func(*flow.Machine, *flow.Call) flow.Value { return flow.Value{} }

	root.Def("URLClassLoader URLClassLoader.newInstance", func(m *flow.Machine, c *flow.Call) flow.Value {
		loadClasses(m, c, c.Val(0, ""))

		return flow.Value{}
	})
	h["defineClass"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		for _, a := range c.Args {
			if t, _ := a.Sources(); t.Any(effect.TaintDownload | effect.TaintDecoded | effect.TaintNetwork) {
				m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: "native", Data: a.Forget().Value(), Via: "defineClass"})
			}
		}

		return flow.Value{}
	}
	root.At("ClassLoader()").Def("defineClass", h["defineClass"])
	root.Def("ObjectInputStream().readObject XMLDecoder().readObject Yaml().load", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Recv.Forget()
		m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: "pickle", Data: v.Value()})

		return v.With(effect.TaintPickle)
	})
}

// loadClasses loads classes from addresses and archives: from elsewhere, or from
// a file that the code wrote itself, it is code that nobody saw.
func loadClasses(m *flow.Machine, c *flow.Call, from flow.Value) {
	for _, it := range append(itemsOf(from), from) {
		e := text(it).Value()

		switch w, written := m.Written(e); {
		case strings.Contains(e.Text, "://") && !strings.HasPrefix(e.Text, "file:"):
			m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: "native", Data: e.From(effect.TaintDownload, e.Text)})
		case written && w.Taint != 0:
			m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: "native", Data: w})
		}
	}
}
