package javascript

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// defineNames defines what finds a function by a computed name, and what runs
// text as code.
func defineNames(l *flow.Language) {
	b, root := l.Builtins, l.Root

	b.Def("require import", requireModule)
	b.Def("require.resolve", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	b.Def("require.main.require module.require process.mainModule.require module.constructor._load "+
		"process.getBuiltinModule process.mainModule.constructor._load require.main.constructor._load module.constructor.prototype.require", requireModule)
	root.Def("module.createRequire module.createRequireFromPath", func(m *flow.Machine, _ *flow.Call) flow.Value {
		return flow.Value{Kind: flow.Symbol, X: m.L.Builtins.At("require")}
	})
	root.Def("module._load module.Module._load", requireModule)
	b.Def("process.binding process._linkedBinding process.dlopen", func(m *flow.Machine, c *flow.Call) flow.Value {
		// Old libraries ask for these and do nothing with them.
		switch c.Val(0, "").Text {
		case "buffer", "natives", "util", "config", "constants", "uv", "http_parser", "zlib":
			return flow.Value{}
		}

		if c.Sym.Short() == "dlopen" {
			m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const("dlopen"), Data: m.Value(c, 1, "")})

			if w, ok := m.Written(m.Value(c, 1, "")); ok && w.Taint != 0 {
				m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: "native", Data: w})
			}

			return flow.Value{}
		}

		m.Emit(c, effect.Effect{Kind: effect.Escape, Target: effect.Const("process.binding"), Data: m.Value(c, 0, "")})

		if name := c.Val(0, "").Text; name == "spawn_sync" || name == "process_wrap" {
			return flow.New(m.L.Root.At("binding()"), flow.Text(name))
		}

		if name := c.Val(0, "").Text; name == "fs" || name == "natives" {
			return module(m, name)
		}

		return flow.Value{}
	})
	root.Def("binding().spawn", func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Exec, Target: effect.Unknown(0)}
		if t := c.Val(0, "").Table(); t != nil {
			e.Target = t.Values["file"].Value()
			if args := t.Values["args"].List(); args != nil && len(args.Items) > 0 {
				e.Args = values(args.Items[1:])
			}
		}

		m.Emit(c, e)

		return flow.Value{}
	})

	b.Def("eval execScript", evaluate)
	b.Def("Function AsyncFunction GeneratorFunction", makeFunction)

	b.Def("made()", callMade)

	for _, name := range []string{"eval", "Function"} {
		b.At(name).Callback = true
	}

	for _, name := range strings.Fields("setTimeout setInterval setImmediate") {
		b.Def(name, func(m *flow.Machine, c *flow.Call) flow.Value {
			f := c.Val(0, "")

			delay := c.Val(1, "")

			switch {
			case f.First().Callable() && name == "setInterval" && (len(c.Args) < 2 || delay.Kind == flow.Int && delay.Int <= flow.ShortDelay):
				m.Forever(func() { m.CallValue(f, c.ID, tail(c.Args, 2)...) })
			case f.First().Callable():
				m.CallValue(f, c.ID, tail(c.Args, 2)...)
			case f.IsText() || f.Taint != 0:
				m.Embed(c, "javascript", f, c.Node(0, ""))
			}

			return flow.Value{}
		})
	}

	b.Def("queueMicrotask process.nextTick requestAnimationFrame", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.CallValue(c.Val(0, ""), c.ID, tail(c.Args, 1)...)

		return flow.Value{}
	})
	root.Def("vm.runInThisContext vm.runInNewContext vm.runInContext vm.compileFunction vm.Script vm.SourceTextModule "+
		"vm2.VM().run vm2.NodeVM().run isolated-vm.Isolate().compileScript", func(m *flow.Machine, c *flow.Call) flow.Value {
		return evaluate(m, c)
	})
	l.Methods["_compile"] = evaluate
	b.Def("Reflect.get Object.getOwnPropertyDescriptor", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := m.Item(c.Val(0, ""), c.Val(1, ""), c.ID)
		if strings.HasPrefix(c.Sym.Name, "Object") {
			t := &flow.Table{}
			t.Set("value", v)

			return flow.Value{Kind: flow.Record, X: t}
		}

		return v
	})
	b.Def("Reflect.apply", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.CallValue(c.Val(0, ""), c.ID, itemsOf(c.Val(2, ""))...)
	})
	b.Def("Reflect.construct", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.CallValue(c.Val(0, ""), c.ID, itemsOf(c.Val(1, ""))...)
	})
	b.Def("Object.getOwnPropertyNames Object.keys Reflect.ownKeys", func(m *flow.Machine, c *flow.Call) flow.Value {
		if items, ok := m.Elements(c.Val(0, "")); ok && c.Val(0, "").Kind == flow.Record {
			return flow.Items(items...)
		}
		// Names of a library: any of them, but which is unknown.
		return flow.Value{Ref: "names"}
	})
	b.Def("Object.values Object.entries", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		t := v.Table()

		if v.Kind != flow.Record || t.Open {
			environment(m, c, v)

			out := v.Forget()
			if c.Sym.Short() == "entries" {
				return flow.Items(flow.Items(flow.Value{}, out))
			}

			return flow.Items(out)
		}

		var out []flow.Value

		for _, k := range t.Keys {
			if c.Sym.Short() == "entries" {
				out = append(out, flow.Items(flow.Text(k), t.Values[k]))
			} else {
				out = append(out, t.Values[k])
			}
		}

		return flow.Items(out...)
	})
	b.Def("Object.assign Object.freeze Object.fromEntries structuredClone Object.create Object.seal", func(m *flow.Machine, c *flow.Call) flow.Value {
		t := &flow.Table{}

		for _, a := range c.Args {
			from := a.Table()
			if from == nil {
				environment(m, c, a)

				taint, origin := a.Sources()
				t.Open = true
				t.Rest |= taint

				if t.Origin == "" {
					t.Origin = origin
				}

				continue
			}

			for _, k := range from.Keys {
				t.Set(k, from.Values[k])
			}

			t.Open = t.Open || from.Open
			t.Rest |= from.Rest
		}

		return flow.Value{Kind: flow.Record, X: t}
	})
	root.Def("util.promisify util.callbackify", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	b.Def("Promise.resolve Promise.all Promise.race Promise.allSettled Promise.any", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Val(0, "")
	})
	b.Def("Promise", func(m *flow.Machine, c *flow.Call) flow.Value {
		// The executor is given functions that settle it.
		return m.CallValue(c.Val(0, ""), c.ID, flow.Value{Ref: "resolve"}, flow.Value{Ref: "reject"})
	})
	b.Def("Map", func(m *flow.Machine, c *flow.Call) flow.Value {
		t := &flow.Table{}

		items, ok := m.Elements(c.Val(0, ""))
		t.Open = !ok && len(c.Args) > 0
		t.Rest, t.Origin = c.Sources()

		for _, it := range items {
			if pair := itemsOf(it); len(pair) > 1 && pair[0].IsConst() {
				t.Set(pair[0].Text, pair[1])
			} else {
				t.Open = true
			}
		}

		return flow.Value{Kind: flow.Record, X: t}
	})
	l.Methods["get"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Recv.Kind == flow.Record {
			return m.Item(c.Recv, c.Val(0, ""), c.ID)
		}

		return c.Result()
	}
	l.Methods["set"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if t := c.Recv.Table(); c.Recv.Kind == flow.Record {
			if k := c.Val(0, ""); k.IsConst() {
				t.Set(k.Text, c.Val(1, ""))
			} else {
				taint, _ := c.Sources()
				t.Open = true
				t.Rest |= taint
			}

			return c.Recv
		}

		m.Absorb(c)

		return c.Recv
	}
	b.Def("Symbol Set WeakMap WeakSet Date RegExp Error TypeError Boolean Math.floor Math.ceil Math.round "+
		"Math.random Math.max Math.min Array.isArray Number.isInteger isNaN console.log console.error console.warn "+
		"console.info console.debug console.table console.dir Object.defineProperty", func(m *flow.Machine, c *flow.Call) flow.Value {
		for _, a := range c.Args {
			environment(m, c, a)
		}

		switch c.Sym.Name {
		case "Set", "Object.defineProperty":
			return c.Result()
		}

		return flow.Value{}
	})
}

func tail(args []flow.Value, from int) []flow.Value {
	if from >= len(args) {
		return nil
	}

	return append([]flow.Value(nil), args[from:]...)
}

func itemsOf(v flow.Value) []flow.Value {
	if l := v.List(); v.Kind == flow.Array {
		return l.Items
	}

	return nil
}

func values(items []flow.Value) []effect.Value {
	out := make([]effect.Value, len(items))
	for i := range items {
		out[i] = items[i].Value()
	}

	return out
}

func requireModule(m *flow.Machine, c *flow.Call) flow.Value {
	name := c.Val(0, "")
	if !name.IsConst() {
		m.Emit(c, effect.Effect{Kind: effect.Import, Target: m.Value(c, 0, "")})

		if name.Taint.Any(effect.TaintDownload | effect.TaintNetwork) {
			m.Embed(c, "javascript", name, c.Node(0, ""))
		}

		runModule(m, c, m.Value(c, 0, ""))

		return flow.Value{}
	}

	m.Emit(c, effect.Effect{Kind: effect.Import, Target: effect.Const(name.Text)})
	runModule(m, c, name.Value())

	if strings.Contains(name.Text, "://") && c.Sym.Name == "import" && !carriesModules(name.Text) {
		m.Emit(c, effect.Effect{Kind: effect.Receive, Target: name.Value()})
		m.Embed(c, "javascript", flow.Tainted(effect.TaintDownload, name.Text), c.Node(0, ""))
	}

	// A module may be text itself: data:text/javascript,...
	if code, ok := strings.CutPrefix(name.Text, "data:"); ok {
		media, body, _ := strings.Cut(code, ",")
		encoding := "url"

		if strings.HasSuffix(media, "base64") {
			encoding = "base64"
		}

		m.Embed(c, "javascript", m.Decoded(c, encoding, flow.Text(body), flow.Str), 0)
	}

	v := module(m, name.Text)
	v.Built = name.Built || name.Taint.Any(effect.TaintDecoded)

	return v
}

// carriesModules says whether an URL is one from which browsers and Deno are
// meant to load modules, or the code's own.
func carriesModules(url string) bool {
	for _, p := range []string{
		"file://", "https://esm.sh/", "https://cdn.skypack.dev/", "https://cdn.jsdelivr.net/", "https://unpkg.com/", "https://deno.land/", "https://jsr.io/", "https://ga.jspm.io/",
		"https://cdnjs.cloudflare.com/", "https://esm.run/", "https://www.gstatic.com/", "https://ajax.googleapis.com/", "http://localhost", "http://127.0.0.1",
	} {
		if strings.HasPrefix(url, p) {
			return true
		}
	}

	return false
}

// evaluate runs text as JavaScript.
func evaluate(m *flow.Machine, c *flow.Call) flow.Value {
	v := c.Val(0, "")
	if v.First().Callable() {
		return flow.Value{}
	}

	m.Embed(c, "javascript", v, c.Node(0, ""))

	if c.Sym == nil {
		return flow.Value{}
	}

	if v.IsConst() && len(v.Text) < 4096 && c.Sym.Short() == "eval" {
		if out := m.EvalText(parse(v.Text)); out.Callable() || out.IsText() {
			out.Built = true

			return out
		}
	}

	if c.Sym.Short() == "Script" {
		return flow.Value{}
	}

	return flow.Value{Taint: v.Taint &^ effect.TaintDecoded}
}

// makeFunction answers Function("a", "b", "body").
func makeFunction(m *flow.Machine, c *flow.Call) flow.Value {
	if len(c.Args) == 0 {
		return flow.Value{}
	}

	last := len(c.Args) - 1
	body := c.Args[last]
	m.Embed(c, "javascript", body, c.Nodes[last])

	if body.IsConst() && len(body.Text) < 4096 {
		if v := m.EvalText(parse(body.Text)); v.Kind == flow.Symbol {
			// Function("return process")().
			v.Built = true
			f := flow.Value{Kind: flow.Symbol, X: m.L.Builtins.At("identity()")}

			return flow.Value{Kind: flow.Method, X: &flow.Bound{Callee: &f, Args: []flow.Value{v}}}
		}
	}

	if last == 0 || !body.IsConst() {
		return flow.Value{}
	}

	f := flow.Value{Kind: flow.Symbol, X: m.L.Builtins.At("made()")}

	return flow.Value{Kind: flow.Method, X: &flow.Bound{Callee: &f, Args: []flow.Value{flow.Items(append([]flow.Value(nil), c.Args...)...)}}}
}

// callMade calls a function made from text: what it is given and the library
// knows by name is named in the text.
func callMade(m *flow.Machine, c *flow.Call) flow.Value {
	parts := itemsOf(c.Val(0, ""))
	if len(parts) == 0 {
		return flow.Value{}
	}

	head := ""

	for i, p := range parts[:len(parts)-1] {
		v := c.Val(i+1, "")

		switch {
		case v.Kind == flow.Symbol && !strings.Contains(v.Sym().Name, "()"):
			head += "var " + p.Text + " = " + v.Sym().Name + "; "
		case v.IsConst():
			head += "var " + p.Text + " = " + strconv.Quote(v.Text) + "; "
		}
	}

	if head != "" {
		m.Embed(c, "javascript", m.Operate('+', flow.Text(head), parts[len(parts)-1], c.ID), 0)
	}

	return flow.Value{}
}

// functionWords are the members that every function has.
var functionWords = map[string]bool{"call": true, "apply": true, "bind": true}

// attribute knows the names that lead from any object elsewhere.
func attribute(m *flow.Machine, recv flow.Value, name string, id tree.ID) (flow.Value, bool) {
	if functionWords[name] && recv.Callable() {
		return flow.Value{Kind: flow.Method, X: &flow.Bound{Recv: recv, Name: name}}, true
	}

	switch name {
	case "length":
		switch {
		case recv.Kind == flow.Array && !recv.List().Open:
			return flow.Number(int64(len(recv.List().Items))), true
		case recv.Kind == flow.Bytes:
			return flow.Number(int64(len(recv.Text))), true
		case recv.IsConst():
			return flow.Number(int64(utf8.RuneCountInString(recv.Text))), true
		}
	case "message", "stack":
		if recv.IsText() {
			return recv, true // Of an error.
		}
	case "default", "prototype", "__proto__":
		if recv.Kind == flow.Symbol || recv.Kind == flow.Type || recv.Kind == flow.Function {
			return recv, true
		}
	case "constructor":
		return constructor(m, recv, id)
	case "then", "catch", "finally":
		if recv.Kind == flow.Symbol || recv.Kind == flow.Instance || recv.Callable() {
			return flow.Value{Kind: flow.Method, X: &flow.Bound{Recv: recv, Name: name}}, true
		}
	}

	s := recv.Sym()
	if recv.Kind != flow.Symbol || s == nil {
		return flow.Value{}, false
	}

	switch s.Name {
	case "process.env":
		key := strings.TrimPrefix(name, "[")
		v := flow.Text(key)

		if name == "[" {
			v = flow.Value{Ref: m.Source(m.T.At(id).B)}
		}

		return variable(m, v, id), true
	case "globalThis":
		return m.Global(strings.TrimPrefix(name, "[")), true
	}

	return flow.Value{}, false
}

// constructor is x.constructor: of a function, and of anything's constructor,
// it is Function, which runs text as code.
func constructor(m *flow.Machine, recv flow.Value, id tree.ID) (flow.Value, bool) {
	b := m.L.Builtins

	n := m.T.At(id)
	if n.Kind == tree.Call {
		n = m.T.At(n.A)
	}

	twice := false
	if a := m.T.At(n.A); n.A != 0 && (a.Kind == tree.Attr || a.Kind == tree.Index) {
		twice = strings.Contains(m.Source(n.A), "constructor") || recv.Kind == flow.Symbol && recv.Sym() == b.At("Object")
	}

	switch {
	case twice, recv.Kind == flow.Function, recv.Kind == flow.Symbol && recv.Sym() == b.At("Object"):
		m.EmitAt(id, effect.Effect{Kind: effect.Escape, Target: effect.Const("constructor"), Via: "constructor"})

		return flow.Value{Kind: flow.Symbol, X: b.At("Function"), Built: true}, true
	case recv.IsText(), recv.Kind == flow.Array, recv.Kind == flow.Record, recv.Kind == flow.Int:
		return flow.Value{Kind: flow.Symbol, X: b.At("Object")}, true
	case recv.Kind == flow.Symbol:
		return flow.Value{Kind: flow.Symbol, X: recv.Sym()}, true
	}

	return flow.Value{}, false
}

// variable reads one environment variable. The home folder is written "~".
func variable(m *flow.Machine, name flow.Value, id tree.ID) flow.Value {
	m.EmitAt(id, effect.Effect{Kind: effect.Env, Target: name.Value(), Via: "process.env"})

	switch name.Text {
	case "HOME", "USERPROFILE":
		return flow.Text("~")
	}

	return flow.Tainted(effect.TaintEnv, name.Text)
}

// environment reports that all of the environment is read, if v is that.
func environment(m *flow.Machine, c *flow.Call, v flow.Value) {
	if s := v.Sym(); v.Kind == flow.Symbol && s != nil && s.Name == "process.env" {
		m.Emit(c, effect.Effect{Kind: effect.Env, Via: "process.env"})
	}
}

func setAttribute(m *flow.Machine, recv flow.Value, name string, v flow.Value, id tree.ID) {
	switch recv.Sym().Name {
	case "process.env":
		m.EmitAt(id, effect.Effect{Kind: effect.SetEnv, Target: effect.Const(name), Data: v.Value(), Via: "process.env"})
	case "globalThis":
		m.Bind(name, v)
	}
}
