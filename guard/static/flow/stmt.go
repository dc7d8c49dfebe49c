package flow

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// exec follows a chain of statements, or the statements of a Block.
func (m *Machine) exec(id tree.ID) {
	for ; id != 0; id = m.T.At(id).Next {
		if !m.step() {
			return
		}

		if m.depth >= maxDepth {
			m.deep = true

			return
		}

		m.depth++
		m.execNode(id, *m.T.At(id))

		if len(m.later) > 0 {
			m.flush()
		}

		m.depth--
	}
}

func (m *Machine) execNode(id tree.ID, n tree.Node) {
	switch n.Kind {
	case tree.Block:
		if m.L.BlockScope && n.Flag&tree.FlagDeclare != 0 {
			m.inner(true, func() {
				m.hoist(n.A)
				m.exec(n.A)
			})
		} else {
			m.hoist(n.A)
			m.exec(n.A)
		}
	case tree.Expr:
		m.eval(n.A)
	case tree.If:
		m.execIf(n)
	case tree.While:
		m.execWhile(id, n)
	case tree.For:
		m.execFor(id, n)
	case tree.Try:
		m.exec(n.A)
		m.branch(func() { m.exec(n.B) })
	case tree.With:
		for x := n.A; x != 0; x = m.T.At(x).Next {
			m.eval(x)
		}

		m.exec(n.B)
	case tree.Return:
		v := m.eval(n.A)

		if f := m.frame; f != nil {
			if f.hasRet {
				f.ret = Join(v, f.ret)
			} else {
				f.ret, f.hasRet = v, true
			}
		}
	case tree.Import:
		if m.L.Import != nil {
			m.L.Import(m, id)
		}
	case tree.Raise:
		v := m.eval(n.A)

		// Of an exception its message counts.
		if c := m.T.At(n.A); c.Kind == tree.Call && c.B != 0 {
			v = m.eval(c.B)
		}

		m.thrown = Join(v, m.thrown)
	case tree.Delete:
		m.eval(n.A)
	case tree.Global:
		m.declareOuter(n.A)
	case tree.Match:
		m.eval(n.A)
		m.branch(func() { m.exec(n.B) })
	case tree.Case:
		m.eval(n.B)
		m.exec(n.C)
	case tree.Func:
		if m.L.BlockScope && n.End > n.Start {
			return // Hoisted.
		}

		m.bindFunction(id, m.function(id, nil))
	case tree.Class:
		m.class(id, n)
	case tree.Jump:
	default:
		m.eval(id)
	}
}

// hoist binds the functions that a block declares before it runs, where the
// language does so.
func (m *Machine) hoist(id tree.ID) {
	if !m.L.BlockScope {
		return
	}

	for ; id != 0; id = m.T.At(id).Next {
		if n := m.T.At(id); n.Kind == tree.Func && n.End > n.Start {
			m.Bind(m.T.Text(id), m.function(id, nil))
		}
	}
}

func (m *Machine) bindFunction(id tree.ID, v Value) {
	name := m.T.Text(id)
	if name != "" {
		m.Bind(name, v)
	}
}

func (m *Machine) declareOuter(id tree.ID) {
	names := id
	if m.T.At(id).Kind == tree.Seq {
		names = m.T.At(id).A
	}

	s := m.scope
	for s.block && s.parent != nil {
		s = s.parent
	}

	if s.outer == nil {
		s.outer = map[string]bool{}
	}

	for x := names; x != 0; x = m.T.At(x).Next {
		if m.T.At(x).Kind == tree.Name {
			s.outer[m.T.Text(x)] = true
		}
	}
}

func (m *Machine) execIf(n tree.Node) {
	for {
		m.eval(n.A)

		if m.isMain(n.A) {
			m.exec(n.B)
		} else {
			m.branch(func() { m.exec(n.B) })
		}

		if n.C == 0 {
			return
		}

		// A chain of else-ifs may be long.
		if c := m.T.At(n.C); c.Kind == tree.If && c.Next == 0 && m.step() {
			n = *c

			continue
		}

		m.branch(func() { m.exec(n.C) })

		return
	}
}

// isMain says whether a test is __name__ == "__main__" or require.main ===
// module.
func (m *Machine) isMain(id tree.ID) bool {
	n := m.T.At(id)
	if n.Kind != tree.Binary || n.Op != '=' {
		return false
	}

	a := m.T.At(n.A)

	return a.Kind == tree.Name && m.T.Text(n.A) == "__name__" || a.Kind == tree.Attr && m.T.Text(n.A) == "main"
}
