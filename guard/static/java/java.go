// Package java is the static guard's front end for Java.
package java

import (
	"strings"
	"sync"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/scan"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Parse reports what Java code does, with or without a class around it.
func Parse(text string, budget *effect.Budget) effect.Result {
	return flow.Run(scan.Parse(text, scan.Java), language(), budget)
}

var _ effect.Parser = Parse

var language = sync.OnceValue(func() *flow.Language {
	l := &flow.Language{
		Name: "java", Root: &flow.Sym{}, Builtins: &flow.Sym{}, Keys: true, BlockScope: true, Bare: true,
		Constructor: "<init>",
		Unquote:     func(t *tree.Tree, id tree.ID) string { return flow.Escapes(t.Text(id), false, false) },
		Attr:        attribute,
		SetAttr:     func(*flow.Machine, flow.Value, string, flow.Value, tree.ID) {},
		Import:      followImport,
		Methods:     map[string]flow.Handler{},
	}

	l.Builtins.Def("reference()", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.CallMethod(c.Val(1, ""), c.Val(0, "").Text, c.ID, c.Args[min(2, len(c.Args)):]...)
	})

	for _, define := range []func(*flow.Language){
		defineText, defineProcesses, defineReflection, defineFiles, defineNetwork, defineSystem, defineUploads,
	} {
		define(l)
	}

	l.Root.Freeze()

	return l
})

// followImport reports an import. Classes are known by their own names, with
// or without one.
func followImport(m *flow.Machine, id tree.ID) {
	m.EmitAt(id, effect.Effect{Kind: effect.Import, Target: effect.Const(m.T.Text(id)), Via: "import"})
}

// class is a class by its name, with or without its package.
func class(m *flow.Machine, name string) flow.Value {
	name = name[strings.LastIndexByte(name, '.')+1:]
	if s := m.L.Root.Kid(name); s != nil {
		return flow.Value{Kind: flow.Symbol, X: s}
	}

	return flow.Value{Ref: name}
}

// attribute finds classes behind their packages: java.lang.Runtime.
func attribute(m *flow.Machine, recv flow.Value, name string, id tree.ID) (flow.Value, bool) {
	if recv.Kind == flow.Unknown && packages[strings.SplitN(recv.Ref, ".", 2)[0]] && name != "" && 'A' <= name[0] && name[0] <= 'Z' {
		if v := class(m, name); v.Kind == flow.Symbol {
			return v, true
		}
	}

	if recv.Kind == flow.Symbol && name == "class" {
		return recv, true
	}

	if l := recv.List(); name == "length" && recv.Kind == flow.Array && !l.Open {
		return flow.Number(int64(len(l.Items))), true
	}

	// File::delete is called with what it is a method of.
	if n := m.T.At(id); n.Kind == tree.Attr && n.Op == ':' {
		f := flow.Value{Kind: flow.Symbol, X: m.L.Builtins.At("reference()")}

		return flow.Value{Kind: flow.Method, X: &flow.Bound{Callee: &f, Args: []flow.Value{flow.Text(name)}}}, true
	}

	return flow.Value{}, false
}

// packages are the first parts of names of packages.
var packages = map[string]bool{"java": true, "javax": true, "org": true, "com": true, "sun": true, "jdk": true, "groovy": true}
