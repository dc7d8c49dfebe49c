package flow

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Star makes all names of a module known.
func (m *Machine) Star(s *Sym) { m.stars = append(m.stars, s) }

// Name is the value of a name in the current scope.
func (m *Machine) Name(name string) Value { return m.name(name) }

// evalTextSteps is what it costs to begin with a text of its own, however short.
const evalTextSteps = 16

// EvalText gives the value of the last expression of another text, with the
// names of the current scope. What it does is not reported: the text is
// reported as Embedded.
func (m *Machine) EvalText(t *tree.Tree) Value {
	if !m.budget.Spend(evalTextSteps + len(t.Nodes)) {
		m.over = true
	}

	if m.over || m.inline >= maxInline {
		return Value{}
	}

	sub := &Machine{
		T: t, L: m.L, budget: m.budget, global: m.global, scope: &scope{parent: m.scope, block: true}, stars: m.stars,
		memory: m.memory, folds: map[tree.ID]bool{}, sinks: map[fnKey]bool{}, follows: map[fnKey]int{},
		inline: m.inline + 1, depth: m.depth + 1,
	}

	var v Value

	for id := t.At(t.Root).A; id != 0; id = t.At(id).Next {
		if k := t.At(id).Kind; k == tree.Expr || k == tree.Return {
			v = sub.eval(t.At(id).A)
		}
	}

	if v.Kind == Function || v.Kind == Type || v.Kind == Method {
		// It is of another tree.
		return Value{}
	}

	return v
}

// Source is the text of an expression.
func (m *Machine) Source(id tree.ID) string {
	if id == 0 {
		return ""
	}

	start, end := m.T.Bounds(id)
	if end > len(m.T.Src) || start > end {
		return ""
	}

	return m.T.Src[start:end]
}

// IsRegexp says whether an expression is a regular expression literal.
func (m *Machine) IsRegexp(id tree.ID) bool { return m.T.At(id).Kind == tree.Regexp }

// After is the letters after a regular expression literal: its flags.
func (m *Machine) After(id tree.ID) string {
	i := min(int(m.T.At(id).End)+1, len(m.T.Src))
	j := i

	for j < len(m.T.Src) && 'a' <= m.T.Src[j] && m.T.Src[j] <= 'z' {
		j++
	}

	return m.T.Src[i:j]
}

// InLoop runs f as the body of a loop.
func (m *Machine) InLoop(f func() Value) Value {
	m.loop++

	v := f()

	m.loop--

	return v
}

// Element is an item of v, if it is not known which.
func (m *Machine) Element(v Value) Value { return m.element(v) }

// Later runs f after the current statement: a callback sees what the statement
// that hands it over binds.
func (m *Machine) Later(f func()) { m.later = append(m.later, f) }

func (m *Machine) flush() {
	for len(m.later) > 0 && m.step() {
		f := m.later[0]
		m.later = m.later[1:]

		f()
	}
}

// Context is the source text of a call, from its bracket on.
func (m *Machine) Context(id tree.ID) string {
	n := m.T.At(id)

	return m.T.Src[n.Start:min(int(n.End), len(m.T.Src))]
}

// thrown is the name under which a handler finds what was raised.
const thrown = "thrown()"

// Thrown is the name under which a handler finds what was raised.
func Thrown() string { return thrown }

// Extend gives a library's module a member.
func (m *Machine) Extend(s *Sym, name string, v Value) {
	if m.extra == nil {
		m.extra = map[*Sym]map[string]Value{}
	}

	if m.extra[s] == nil {
		m.extra[s] = map[string]Value{}
	}

	m.extra[s][name] = v
}

// CallMethod calls a method of a value by its name.
func (m *Machine) CallMethod(recv Value, name string, id tree.ID, args ...Value) Value {
	c := m.newCall()
	c.ID, c.Recv, c.Name = id, recv, name
	c.Args = append(c.Args, args...)

	for range args {
		c.Nodes = append(c.Nodes, 0)
	}

	v := m.callMethod(c, id)
	m.freeCall(c)

	return v
}

// TaintName lets a variable take up the sources of a value.
func (m *Machine) TaintName(name string, v Value) {
	for s := m.scope; s != nil; s = s.parent {
		if old := s.get(name); old != nil {
			t, origin := v.Sources()
			old.Taint |= t
			old.Origin = joinOrigin(old.Origin, origin)
			m.tainted++

			return
		}
	}
}

// Upload reports that a call to a service's client sends something away: what
// its arguments hold, the file at the path that is given first or under one of
// the names, and the files that a list or record names so.
func (m *Machine) Upload(c *Call, to effect.Value, at int, names ...string) {
	data := effect.Unknown(0)
	data.Taint, data.Origin = c.Sources()

	// What the client is told to authenticate with is no content.
	data.Taint &^= effect.TaintEnv | effect.TaintInput

	file := func(v Value, node tree.ID) {
		v.Each(func(w Value) {
			e := m.value(w, node)
			if w.Kind != Str && (w.Kind != Instance || w.Object().Sym == nil || !w.Object().Sym.Path) || e.Text == "" || len(e.Text) > maxFilePath {
				return
			}

			content := m.Content(e)
			data = data.From(content.Taint, content.Origin)
		})
	}

	if at >= 0 && at < len(c.Args) {
		file(c.Args[at], c.Nodes[at])

		for _, it := range listOf(c.Args[at]) {
			file(it, 0)
		}
	}

	var inside func(v Value, depth int)

	inside = func(v Value, depth int) {
		t := v.Table()
		if t == nil || depth == 0 {
			for _, it := range listOf(v)[:min(len(listOf(v)), maxOptions)] {
				if depth > 0 {
					inside(it, depth-1)
				}
			}

			return
		}

		for _, name := range names {
			if w, ok := t.Values[name]; ok {
				file(w, 0)

				for _, it := range listOf(w) {
					file(it, 0)
				}

				inside(w, depth-1)
			}
		}
	}

	for i := range c.Args {
		inside(c.Args[i], maxNest)
	}

	for _, k := range c.Kw {
		for _, name := range names {
			if k.Name == name {
				file(k.Value, k.Node)

				for _, it := range listOf(k.Value) {
					file(it, 0)
				}
			}
		}
	}

	if to.Text == "" {
		to = effect.Value{Text: effect.HoleText, Ref: c.Via()}
	}

	m.Emit(c, effect.Effect{Kind: effect.Send, Target: to, Data: data})
}

// maxFilePath is the longest text that is taken for a path.
const maxFilePath = 4096

func listOf(v Value) []Value {
	if l := v.List(); v.Kind == Array {
		return l.Items
	}

	return nil
}

// Packed reports that a file or folder is put into an archive.
func (m *Machine) Packed(c *Call, archive effect.Value, path Value, node tree.ID) {
	e := m.value(path, node)
	m.Emit(c, effect.Effect{Kind: effect.Read, Target: e})

	content := m.Content(e)
	m.Emit(c, effect.Effect{Kind: effect.Write, Target: archive, Data: effect.Unknown(content.Taint).From(0, content.Origin), Flags: effect.FlagAppend})
}

// Entry is any file of a folder, as a shell would write it. Those of /proc are
// the numbers of all processes.
func Entry(dir Value) Value {
	e := Text("*")
	if strings.TrimSuffix(textOf(dir), "/") == "/proc" {
		e.Taint, e.Origin = effect.TaintInfo, effect.Processes
	}

	return e
}
