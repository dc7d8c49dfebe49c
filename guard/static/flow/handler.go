package flow

import (
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
