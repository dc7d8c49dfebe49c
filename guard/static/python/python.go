// Package python is the static guard's front end for Python 3 and for the
// cells of IPython notebooks: a tolerant tokenizer and parser of its own, and
// what it knows of Python's library.
package python

import (
	"strings"
	"sync"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Parse reports what Python code does.
func Parse(text string, budget *effect.Budget) effect.Result {
	return flow.Run(parse(withoutPrompts(text)), language(), budget)
}

var _ effect.Parser = Parse

// language is built once, when it is first needed.
var language = sync.OnceValue(func() *flow.Language {
	l := &flow.Language{
		Name:        "python",
		Root:        &flow.Sym{},
		Receiver:    true,
		Indices:     true,
		Constructor: "__init__",
		Unquote:     unquote,
		Attr:        attribute,
		SetAttr:     setAttribute,
		Magic:       followMagic,
		Import:      followImport,
		Methods:     map[string]flow.Handler{},
	}
	l.Builtins = l.Root.At("builtins")
	l.Root.Link("__builtins__", l.Builtins)
	l.Root.Link("__builtin__", l.Builtins)

	for _, define := range []func(*flow.Language){
		defineNames, defineText, defineDecoders, defineProcesses, defineFiles, defineSystem, defineNetwork,
		defineClients, defineCapture, defineStored, defineUploads,
	} {
		define(l)
	}

	link(l.Root)

	// Parts of programs use members without the import that names them.
	l.Loose = map[string]*flow.Sym{}
	for path := range strings.FieldsSeq("os.environ os.getenv urllib.request.urlopen urllib.request.urlretrieve " +
		"subprocess.Popen subprocess.check_output subprocess.check_call base64.b64decode shutil.rmtree shutil.copy2 " +
		"shutil.copyfile getpass.getuser socket.gethostname importlib.import_module pathlib.Path") {
		l.Loose[path[lastDot(path)+1:]] = l.Root.At(path)
	}

	l.Root.Freeze()

	return l
})

// unquote is the text of a string literal.
func unquote(t *tree.Tree, id tree.ID) string {
	n := t.At(id)
	s := t.Src[n.Start:n.End]

	if n.Flag&tree.FlagRaw != 0 {
		return s
	}

	return flow.Escapes(s, true, n.Flag&tree.FlagBytes != 0)
}

// link gives modules their other names.
func link(root *flow.Sym) {
	for alias, name := range map[string]string{
		"posix": "os", "nt": "os", "urllib2": "urllib.request", "httplib": "http.client", "_socket": "socket",
		"posixpath": "os.path", "ntpath": "os.path", "genericpath": "os.path", "_pickle": "pickle",
		"cPickle": "pickle", "dill": "pickle", "cloudpickle": "pickle", "joblib": "pickle", "_io": "io",
		"StringIO": "io", "thread": "_thread", "ruamel": "yaml", "subprocess32": "subprocess", "pathlib2": "pathlib",
		"cryptodome": "Crypto", "requests_html": "requests", "imp": "importlib", "commands": "subprocess",
		"popen2": "subprocess", "simplejson": "json", "gevent.subprocess": "subprocess", "_posixsubprocess": "subprocess",
	} {
		parent, last := root, alias
		if i := lastDot(alias); i >= 0 {
			parent, last = root.At(alias[:i]), alias[i+1:]
		}

		parent.Link(last, root.At(name))
	}
}

func lastDot(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '.' {
			return i
		}
	}

	return -1
}

// followImport binds what an import binds.
func followImport(m *flow.Machine, id tree.ID) {
	n := *m.T.At(id)
	module := m.T.Text(id)

	if n.Flag&tree.FlagFrom == 0 {
		m.EmitAt(id, effect.Effect{Kind: effect.Import, Target: effect.Const(module), Via: "import"})
		m.ImportWritten(id, module)

		if n.A != 0 {
			m.Bind(m.T.Text(m.T.At(n.A).A), importModule(m, module))

			return
		}

		top, _, _ := cut(module)
		m.Bind(top, importModule(m, top))

		return
	}

	m.EmitAt(id, effect.Effect{Kind: effect.Import, Target: effect.Const(module), Via: "import"})
	m.ImportWritten(id, module)

	from := importModule(m, module)

	for a := n.A; a != 0; a = m.T.At(a).Next {
		name := m.T.Text(a)
		if name == "*" {
			if s := from.Sym(); s != nil {
				m.Star(s)
			}

			continue
		}

		as := name
		if x := m.T.At(a).A; x != 0 {
			as = m.T.Text(x)
		}

		var v flow.Value
		if from.Kind == flow.Symbol {
			v = m.Attribute(from, name, a)
		}

		if v.Kind == flow.Unknown && v.Taint == 0 {
			v = flow.Value{Ref: as}
		}

		m.Bind(as, v)
	}
}

func cut(s string) (before, after string, found bool) {
	for i := range len(s) {
		if s[i] == '.' {
			return s[:i], s[i+1:], true
		}
	}

	return s, "", false
}

// importModule is the value of a module.
func importModule(m *flow.Machine, name string) flow.Value {
	s := m.L.Root

	for name != "" {
		part, rest, _ := cut(name)
		name = rest

		if s = s.Kid(part); s == nil {
			return flow.Value{Ref: part}
		}
	}

	return flow.Value{Kind: flow.Symbol, X: s}
}

// Known says whether a module is one whose members are known here, or belongs to
// the standard library: one that is seldom the code's own.
func Known(module string) bool {
	top, _, _ := cut(module)

	return language().Root.Kid(top) != nil || standard[top]
}
