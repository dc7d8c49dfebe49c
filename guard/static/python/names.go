package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// symGlobals stands for the namespace of some module: of this one, or of one
// that an object's internals lead to.
const symGlobals = "globals()"

// defineNames defines what finds a function by a computed name, and what runs
// text as code.
func defineNames(l *flow.Language) {
	b, root := l.Builtins, l.Root
	globals := root.At(symGlobals)

	b.Def("getattr", func(m *flow.Machine, c *flow.Call) flow.Value {
		name := c.Val(1, "name")
		if name.IsConst() {
			v := m.Attribute(c.Val(0, "object"), name.Text, c.ID)
			v.Built = v.Built || computed(name)

			if v.Kind == flow.Unknown && len(c.Args) > 2 {
				v = flow.Join(v, c.Args[2])
			}

			return v
		}

		return hiddenMember(m, c, c.Val(0, "object"), name)
	})
	b.Def("setattr", func(m *flow.Machine, c *flow.Call) flow.Value {
		o, name := c.Val(0, ""), c.Val(1, "")
		if obj := o.Object(); obj != nil && name.IsConst() {
			obj.Set(name.Text, c.Val(2, ""))
		} else if o.Kind == flow.Symbol && name.IsConst() {
			m.Extend(o.Sym(), name.Text, c.Val(2, ""))
		}

		return flow.Value{Kind: flow.None}
	})
	b.Def("vars", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v, ok := c.Arg(0, ""); ok {
			return v
		}

		return flow.Value{Kind: flow.Symbol, X: globals}
	})
	b.Def("globals locals", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Value{Kind: flow.Symbol, X: globals}
	})
	b.Def("__import__", importCall)
	root.Def("importlib.import_module importlib.__import__ importlib.reload importlib.find_module "+
		"pydoc.locate pkgutil.resolve_name importlib.util.find_spec", importCall)
	root.DefGet("sys.modules", func(m *flow.Machine, _ *flow.Call) flow.Value {
		return flow.Value{Kind: flow.Symbol, X: m.L.Root}
	})

	b.Def("eval exec execfile", evaluate)
	b.Def("compile", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "source")
		if v.Taint.Any(effect.TaintDecoded) {
			m.Embed(c, "python", v, c.Node(0, "source"))
		}

		return v
	})
	root.Def("code.compile_command codeop.compile_command ast.parse", func(m *flow.Machine, c *flow.Call) flow.Value {
		return c.Val(0, "source")
	})
	root.Def("code.InteractiveInterpreter().runsource code.InteractiveConsole().push cProfile.run profile.run "+
		"timeit.timeit timeit.repeat IPython.get_ipython().run_cell IPython.get_ipython().ex "+
		"IPython.get_ipython().ev sys.call_tracing doctest.run_docstring_examples", evaluate)
	root.At("cProfile.run").Callback = true

	for _, name := range []string{"eval", "exec", "execfile"} {
		b.At(name).Callback = true
	}

	root.Def("runpy.run_path", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.RunFile(c, "python", m.Value(c, 0, "path_name"))
		m.Emit(c, effect.Effect{
			Kind: effect.Exec, Target: effect.Const("python"),
			Args: []effect.Value{m.Value(c, 0, "path_name")},
		})

		return flow.Value{}
	})
	root.Def("types.FunctionType types.LambdaType", func(m *flow.Machine, c *flow.Call) flow.Value {
		code := c.Val(0, "code")
		if t, _ := code.Sources(); t != 0 || code.IsText() {
			evaluate(m, c)
		}

		return code.Forget()
	})
	root.Def("functools.partial functools.partialmethod", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 0 {
			return flow.Value{}
		}

		f := c.Args[0]

		return flow.Value{Kind: flow.Method, X: &flow.Bound{
			Callee: &f, Args: append([]flow.Value(nil), c.Args[1:]...), Kw: append([]flow.KwArg(nil), c.Kw...),
		}}
	})
	root.Def("operator.attrgetter operator.itemgetter", func(m *flow.Machine, c *flow.Call) flow.Value {
		getattr := flow.Value{Kind: flow.Symbol, X: m.L.Builtins.At("getattr()flipped")}

		return flow.Value{Kind: flow.Method, X: &flow.Bound{
			Callee: &getattr, Args: append([]flow.Value(nil), c.Args...),
		}}
	})
	b.Def("getattr()flipped", func(m *flow.Machine, c *flow.Call) flow.Value {
		name := c.Val(0, "")
		v := c.Val(1, "")

		if !name.IsConst() {
			return v.Forget()
		}

		for part := range strings.SplitSeq(name.Text, ".") {
			v = m.Item(v, flow.Text(part), c.ID)
		}

		v.Built = v.Built || computed(name)

		return v
	})
	root.Def("operator.methodcaller", func(m *flow.Machine, c *flow.Call) flow.Value {
		call := flow.Value{Kind: flow.Symbol, X: m.L.Builtins.At("methodcaller()")}

		return flow.Value{Kind: flow.Method, X: &flow.Bound{
			Callee: &call, Args: append([]flow.Value(nil), c.Args...), Kw: append([]flow.KwArg(nil), c.Kw...),
		}}
	})
	b.Def("methodcaller()", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) < 2 || !c.Args[0].IsConst() {
			return flow.Value{}
		}

		f := m.Attribute(c.Args[len(c.Args)-1], c.Args[0].Text, c.ID)

		return m.CallValue(f, c.ID, c.Args[1:len(c.Args)-1]...)
	})

	for _, name := range cheap {
		b.At(name).Cheap = true
	}

	// Higher functions call what they are given.
	b.Def("map filter", mapped)
	root.Def("itertools.starmap itertools.filterfalse itertools.takewhile itertools.dropwhile", mapped)
	root.Def("functools.reduce", func(m *flow.Machine, c *flow.Call) flow.Value {
		items, ok := m.Elements(c.Val(1, ""))
		if !ok || len(items) == 0 || len(items) > 4096 {
			return m.CallValue(c.Val(0, ""), c.ID, flow.Value{}, c.Val(1, "").Forget())
		}

		acc, from := items[0], 1
		if len(c.Args) > 2 {
			acc, from = c.Args[2], 0
		}

		for _, it := range items[from:] {
			acc = m.CallValue(c.Val(0, ""), c.ID, acc, it)
			if m.Over() {
				break
			}
		}

		return acc
	})
	root.Def("atexit.register contextlib.ExitStack().callback threading.Timer signal.signal sched.scheduler().enter "+
		"weakref.finalize sys.settrace sys.setprofile threading.setprofile sys.addaudithook", callLater)
	root.Def("concurrent.futures.ThreadPoolExecutor().submit concurrent.futures.ProcessPoolExecutor().submit", func(m *flow.Machine, c *flow.Call) flow.Value {
		if m.Endless() {
			m.Emit(c, effect.Effect{Kind: effect.Spawn, Target: effect.Const("task")})
		}

		return callLater(m, c)
	})
	root.Def("multiprocessing.Pool().apply multiprocessing.Pool().apply_async asyncio.to_thread", callLater)
	root.Def("concurrent.futures.ThreadPoolExecutor().map concurrent.futures.ProcessPoolExecutor().map "+
		"multiprocessing.Pool().map multiprocessing.Pool().imap multiprocessing.Pool().starmap", mapped)
	root.Def("itertools.product itertools.zip_longest itertools.combinations itertools.permutations", func(m *flow.Machine, c *flow.Call) flow.Value {
		row := make([]flow.Value, len(c.Args))
		for i := range c.Args {
			row[i] = m.Element(c.Args[i])
		}

		return flow.Items(flow.Items(row...))
	})
	root.Def("itertools.chain", func(m *flow.Machine, c *flow.Call) flow.Value {
		all := make([]flow.Value, len(c.Args))
		for i := range c.Args {
			all[i] = m.Element(c.Args[i])
		}

		return flow.Items(all...)
	})
	root.Def("asyncio.run asyncio.ensure_future asyncio.create_task asyncio.wait_for", func(m *flow.Machine, c *flow.Call) flow.Value {
		return c.Val(0, "")
	})
}

// computed says whether a text was not written down as it is.
func computed(v flow.Value) bool { return v.Built || v.Taint.Any(effect.TaintDecoded) }

// callLater calls a function that is handed over with its arguments.
func callLater(m *flow.Machine, c *flow.Call) flow.Value {
	for i := range c.Args {
		if !c.Args[i].Callable() {
			continue
		}

		args := append([]flow.Value(nil), c.Args[i+1:]...)
		if len(args) == 1 && args[0].Kind == flow.Array {
			args = args[0].List().Items
		}

		return m.CallValue(c.Args[i], c.ID, args...)
	}

	return flow.Value{}
}

// mapped calls a function with each item of a list.
func mapped(m *flow.Machine, c *flow.Call) flow.Value {
	f, over := c.Val(0, "func"), c.Val(1, "iterable")
	if f.Kind == flow.None {
		return over
	}

	items, ok := m.Elements(over)
	if !ok {
		return flow.Items(m.CallValue(f, c.ID, over.Forget()))
	}

	if !m.Worth(len(items), f) {
		return flow.Items(m.InLoop(func() flow.Value { return m.CallValue(f, c.ID, flow.OneOf(items)) }))
	}

	out := make([]flow.Value, 0, len(items))

	for _, it := range items {
		if m.Over() {
			break
		}

		out = append(out, m.CallValue(f, c.ID, it))
	}

	return flow.Items(out...)
}

// cheap are the functions that decoders are made of.
var cheap = strings.Fields("chr ord int str unichr bytes bytearray hex len")

// importCall is a module by its name.
func importCall(m *flow.Machine, c *flow.Call) flow.Value {
	name := c.Val(0, "name")
	if name.Kind == flow.Symbol {
		return name // importlib.reload
	}

	if !name.IsConst() {
		m.Emit(c, effect.Effect{Kind: effect.Import, Target: m.Value(c, 0, "name")})

		return flow.Value{}
	}

	m.Emit(c, effect.Effect{Kind: effect.Import, Target: effect.Const(name.Text)})

	module := name.Text
	if c.Sym.Name == "builtins.__import__" && len(c.Args) < 4 {
		module, _, _ = cut(module)
	}

	v := importModule(m, module)
	v.Built = computed(name)

	return v
}

// evaluate runs text as Python.
func evaluate(m *flow.Machine, c *flow.Call) flow.Value {
	v := c.Val(0, "source")
	if v.Kind == flow.Function || v.Kind == flow.Symbol {
		return flow.Value{}
	}

	if v.IsConst() && len(v.Text) < 4096 && c.Sym.Short() == "eval" {
		// The result may be a function: eval("os.system")("...").
		if out := m.EvalText(parse(strings.TrimSpace(v.Text))); out.Callable() || out.IsText() {
			out.Built = true
			m.Embed(c, "python", v, c.Node(0, "source"))

			return out
		}
	}

	m.Embed(c, "python", v, c.Node(0, "source"))

	return flow.Value{Taint: v.Taint &^ effect.TaintDecoded}
}

// hiddenMember is a member of something known, of a name unknown.
func hiddenMember(m *flow.Machine, c *flow.Call, of, name flow.Value) flow.Value {
	out := of.Forget().From(name)

	return out
}

// attribute knows the names that lead from any object into Python's internals.
func attribute(m *flow.Machine, recv flow.Value, name string, id tree.ID) (flow.Value, bool) {
	switch name {
	case "args":
		if recv.IsText() {
			return flow.Items(recv), true // Of an exception.
		}
	case "__dict__", "__call__", "__func__", "__wrapped__", "__self__", "__module__":
		if recv.Kind == flow.Symbol || recv.Callable() || recv.Kind == flow.Instance {
			if name == "__self__" || name == "__module__" {
				// print.__self__ is the module of builtins.
				return flow.Value{Kind: flow.Symbol, X: m.L.Builtins}, true
			}

			return recv, true
		}
	case "get", "__getitem__", "__getattribute__", "__getattr__", "pop", "setdefault":
		if recv.Kind == flow.Symbol {
			return flow.Value{Kind: flow.Method, X: &flow.Bound{
				Callee: ptr(flow.Value{Kind: flow.Symbol, X: m.L.Builtins.At("getattr")}), Args: []flow.Value{recv},
			}}, true
		}
	case "__subclasses__", "__mro__", "__bases__", "__base__":
		return flow.Value{Ref: name}, true
	case "__globals__", "f_globals", "f_builtins", "func_globals", "gi_frame", "f_back", "tb_frame", "f_locals":
		return flow.Value{Kind: flow.Symbol, X: m.L.Root.At(symGlobals), Built: true}, true
	case "__builtins__":
		return flow.Value{Kind: flow.Symbol, X: m.L.Builtins, Built: recv.Built}, true
	case "_module", "load_module":
		// warnings.catch_warnings()._module, __loader__.load_module.
		if name == "load_module" {
			return flow.Value{Kind: flow.Symbol, X: m.L.Root.At("importlib.import_module"), Built: true}, true
		}
	case "()":
		return escapeCall(m, recv, id)
	}

	s := recv.Sym()
	if recv.Kind != flow.Symbol || s == nil {
		return flow.Value{}, false
	}

	if s.Name == "os.environ" {
		// os.environ["X"].
		key := strings.TrimPrefix(name, "[")
		v := flow.Text(key)

		if name == "[" {
			v = flow.Value{Ref: m.Source(m.T.At(id).B)}
		}

		m.EmitAt(id, effect.Effect{Kind: effect.Env, Target: v.Value(), Via: "os.environ"})

		return environment(v), true
	}

	if strings.HasPrefix(s.Name, "kubernetes.client") && strings.HasPrefix(name, "V1") {
		return flow.Value{Kind: flow.Symbol, X: m.L.Root.At("kubernetes.client.V1()")}, true
	}

	// sys.modules["os"], globals()["f"], and modules of modules.
	name = strings.TrimPrefix(name, "[")

	switch s {
	case m.L.Root:
		return importModule(m, name), true
	case m.L.Root.Kid(symGlobals):
		v := m.Name(name)
		v.Built = v.Built || recv.Built

		if v.Kind == flow.Unknown && v.Taint == 0 {
			// Of an unknown module, which may well be os.
			for _, of := range []string{"os", "sys", "subprocess"} {
				if k := m.L.Root.Kid(of).Kid(name); k != nil {
					v = flow.Value{Kind: flow.Symbol, X: k, Built: true}

					break
				}
			}
		}

		// Another function's globals lead anywhere.
		if recv.Built && v.Kind == flow.Symbol && (v.Sym().Call != nil || name == "__builtins__" || name == "os") {
			m.EmitAt(id, effect.Effect{Kind: effect.Escape, Target: effect.Const("subclasses"), Via: "__globals__"})
		}

		return v, true
	}

	// What is looked up in a namespace by text could have been named.
	if k := s.Kid(name); k != nil && k.Call != nil && name != "get" {
		return flow.Value{Kind: flow.Symbol, X: k, Built: true}, true
	}

	// Many modules import os, sys and the like: linecache.os.system.
	switch name {
	case "os", "sys", "subprocess", "builtins", "socket", "shutil", "importlib":
		return importModule(m, name), true
	}

	return flow.Value{}, false
}

func ptr(v flow.Value) *flow.Value { return &v }

// escapeCall sees a call of something unknown.
func escapeCall(m *flow.Machine, f flow.Value, id tree.ID) (flow.Value, bool) {
	n := m.T.At(id)
	if n.Kind != tree.Call {
		return flow.Value{}, false
	}

	// A class may ask for its own subclasses; to climb up to object first is what
	// escapes do.
	if a := m.T.At(n.A); a.Kind == tree.Attr && m.T.Text(n.A) == "__subclasses__" && climbs(m.Source(a.A)) {
		m.EmitAt(id, effect.Effect{Kind: effect.Escape, Target: effect.Const("subclasses"), Via: "__subclasses__"})

		// One of the classes may be subprocess.Popen, or lead to any module.
		return flow.Value{Ref: "__subclasses__"}, true
	}

	return flow.Value{}, false
}

func climbs(s string) bool {
	for _, word := range []string{"__class__", "__base", "__mro__", "mro()", "object", "type"} {
		if strings.Contains(s, word) {
			return true
		}
	}

	return false
}

// setAttribute sees os.environ["X"] = v and the like.
func setAttribute(m *flow.Machine, recv flow.Value, name string, v flow.Value, id tree.ID) {
	switch s := recv.Sym(); {
	case s.Name == "os.environ":
		m.EmitAt(id, effect.Effect{
			Kind: effect.SetEnv, Target: effect.Const(name), Data: v.Value(), Via: "os.environ",
		})
	case s.Name == "builtins" || s == m.L.Root.Kid(symGlobals):
		m.Bind(name, v)
	}
}
