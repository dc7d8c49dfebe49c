package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineStored defines what runs a file as code, what makes temporary files, and
// the path of the code itself.
func defineStored(l *flow.Language) {
	root, b := l.Root, l.Builtins

	run := func(at int, name string) flow.Handler {
		return func(m *flow.Machine, c *flow.Call) flow.Value {
			m.RunFile(c, "python", m.Value(c, at, name))

			return flow.Value{}
		}
	}
	root.Def("importlib.util.spec_from_file_location importlib.machinery.SourceFileLoader importlib.machinery.SourcelessFileLoader "+
		"importlib.load_source importlib.load_compiled", run(1, "location"))
	root.Def("importlib.machinery.ExtensionFileLoader importlib.load_dynamic", func(m *flow.Machine, c *flow.Call) flow.Value {
		loadNative(m, c, m.Value(c, 1, "path"))

		return flow.Value{}
	})
	root.Def("sys.path.insert sys.path.append site.addsitedir", func(m *flow.Machine, c *flow.Call) flow.Value {
		at := 0
		if c.Sym.Short() == "insert" {
			at = 1
		}

		// An archive of modules.
		if w, ok := m.Written(m.Value(c, at, "")); ok && w.Taint != 0 {
			m.Embed(c, "python", flow.Tainted(w.Taint, w.Origin), 0)
		}

		return flow.Value{}
	})

	temporary := func(m *flow.Machine, c *flow.Call) flow.Value {
		suffix, ok := c.Arg(-1, "suffix")
		if !ok && len(c.Args) > 0 && strings.HasPrefix(c.Sym.Short(), "mk") {
			suffix = c.Args[0]
		}

		path := m.Temporary(c, suffix)

		switch c.Sym.Short() {
		case "mkdtemp", "mktemp":
			return path
		case "mkstemp":
			return flow.Items(flow.New(m.L.Root.At("file()"), path), path)
		case "TemporaryDirectory":
			return flow.New(m.L.Root.At("tempfile.TemporaryDirectory()"), path)
		}

		f := flow.New(m.L.Root.At("file()"), path)
		f.Object().Mode = "w+"

		return f
	}
	root.Def("tempfile.NamedTemporaryFile tempfile.mkstemp tempfile.mkdtemp tempfile.mktemp tempfile.TemporaryDirectory", temporary)
	root.DefGet("tempfile.TemporaryDirectory().name", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv.Object().Main })
	root.At("tempfile.TemporaryDirectory()").Path = true
	root.Def("tempfile.gettempdir", func(*flow.Machine, *flow.Call) flow.Value { return flow.Text("/tmp") })

	self := func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Value{Taint: effect.TaintSelf, Ref: "__file__"}
	}
	b.DefGet("__file__", self)
	root.DefGet("sys.argv", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.Value{Kind: flow.Array, X: &flow.List{Items: []flow.Value{self(m, c)}, Open: true, Rest: effect.TaintInput}}
	})
	root.Def("inspect.getfile inspect.getsourcefile", self)
}

// loadNative reports that machine code from a file is loaded.
func loadNative(m *flow.Machine, c *flow.Call, path effect.Value) {
	m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const("ctypes"), Data: path})

	if w, ok := m.Written(path); ok && w.Taint != 0 {
		m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: "native", Data: w})
	}
}
