// Package javascript is the static guard's front end for JavaScript and
// TypeScript, JSX included: a tolerant parser of its own, and what it knows of
// Node's, Deno's, Bun's and the browser's libraries.
package javascript

import (
	"strings"
	"sync"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Parse reports what JavaScript or TypeScript code does.
func Parse(text string, budget *effect.Budget) effect.Result {
	return flow.Run(parse(text), language(), budget)
}

var _ effect.Parser = Parse

// language is built once, when it is first needed.
var language = sync.OnceValue(func() *flow.Language {
	l := &flow.Language{
		Name:        "javascript",
		Root:        &flow.Sym{},
		Builtins:    &flow.Sym{},
		Keys:        true,
		BlockScope:  true,
		Constructor: "constructor",
		Unquote:     unquote,
		Attr:        attribute,
		SetAttr:     setAttribute,
		Import:      followImport,
		Methods:     map[string]flow.Handler{},
	}

	for _, define := range []func(*flow.Language){
		defineNames, defineText, defineProcesses, defineFiles, defineNetwork, defineUploads, defineRuntimes, defineStreams,
	} {
		define(l)
	}

	for alias, name := range map[string]string{
		"fs/promises": "fs", "fs-extra": "fs", "graceful-fs": "fs", "dns/promises": "dns", "timers/promises": "timers",
		"stream/promises": "stream", "path/posix": "path", "memfs": "fs", "safe-buffer": "buffer",
	} {
		l.Root.Link(alias, l.Root.At(name))
	}

	fs := l.Root.At("fs")
	fs.Link("promises", fs)
	dns := l.Root.At("dns")
	dns.Link("promises", dns)

	l.Root.Freeze()
	l.Builtins.Freeze()

	return l
})

// unquote is the text of a string literal.
func unquote(t *tree.Tree, id tree.ID) string { return unescape(t.Text(id)) }

func unescape(s string) string { return flow.Escapes(s, false, false) }

// module is the value of a module.
func module(m *flow.Machine, name string) flow.Value {
	name = strings.TrimPrefix(name, "node:")
	name = strings.TrimPrefix(name, "npm:")

	if i := strings.LastIndexByte(name, '@'); i > 0 {
		name = name[:i] // Deno and CDNs name a version.
	}

	if s := m.L.Root.Kid(name); s != nil {
		return flow.Value{Kind: flow.Symbol, X: s}
	}

	return flow.Value{Ref: name}
}

// followImport binds what an import declaration binds.
func followImport(m *flow.Machine, id tree.ID) {
	n := *m.T.At(id)
	name := m.T.Text(id)

	m.EmitAt(id, effect.Effect{Kind: effect.Import, Target: effect.Const(name), Via: "import"})

	from := module(m, name)

	for a := n.A; a != 0; a = m.T.At(a).Next {
		member := m.T.Text(a)

		local := member
		if x := m.T.At(a).A; x != 0 {
			local = m.T.Text(x)
		}

		v := from
		if member != "default" && member != "*" {
			v = m.Attribute(from, member, a)
		}

		if v.Kind == flow.Unknown && v.Taint == 0 {
			v = flow.Value{Ref: local}
		}

		m.Bind(local, v)
	}
}

// Files are the paths that a module given by its path may be found at, in the
// order that runtimes look.
func Files(name string) []string {
	name = strings.TrimSuffix(name, "/")
	out := []string{name}

	for _, end := range []string{".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx"} {
		if strings.HasSuffix(name, end) {
			return out
		}
	}

	for _, end := range []string{".js", ".ts", ".mjs", ".cjs", "/index.js", "/index.ts"} {
		out = append(out, name+end)
	}

	return out
}
