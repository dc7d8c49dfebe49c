package flow

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// loopBody follows the body of a loop. If it took up data from a source, it is
// followed once more, for what flows from one turn to the next.
func (m *Machine) loopBody(f func()) {
	m.loop++

	before := m.tainted

	f()

	if m.loop == 1 && m.inline <= 1 && m.tainted != before && !m.over {
		f()
	}

	m.loop--
}

func (m *Machine) execWhile(id tree.ID, n tree.Node) {
	v := m.eval(n.A)
	endless := n.A == 0 || isTrue(v) && m.T.At(n.A).Kind != tree.Binary

	if endless && m.leaves(n.B, 0) {
		endless = false
	}

	waits := endless && m.waits(n.B)
	if waits {
		m.waiting++
	}

	if endless {
		m.unbounded++
	}

	if v.Kind == Bool && v.Int == 1 && !endless && m.T.At(n.A).Kind == tree.Binary && m.decodes(n.B) {
		// A decoder that counts.
		m.unroll(func() bool {
			m.exec(n.B)
			m.exec(n.C)

			return isTrue(m.eval(n.A))
		})

		return
	}

	spent := len(m.R.Effects) + len(m.R.Embedded)

	m.loopBody(func() {
		m.exec(n.B)
		m.exec(n.C)
	})

	if waits {
		m.waiting--
	}

	if endless {
		m.unbounded--

		if spent == len(m.R.Effects)+len(m.R.Embedded) {
			m.loopEffect(id)
		}
	}
}

// waits says whether a loop waits for something in each turn, as servers and
// workers do.
func (m *Machine) waits(id tree.ID) bool {
	return m.any(id, func(x tree.ID) bool {
		n := m.T.At(x)
		if n.Kind != tree.Call {
			return n.Kind == tree.Unary && n.Op == 'w'
		}

		switch m.calleeName(n.A) {
		case "accept", "recv", "recvfrom", "read", "readline", "get", "sleep", "wait", "join", "input", "select", "poll",
			"take", "readLine", "waitFor", "serve_forever", "Sys.sleep":
			return true
		}

		return false
	})
}

// unroll runs a decoder's loop as often as the program would: turn does one
// round and says whether there is another. If that takes too long, what is put
// together in the loop becomes unknown.
func (m *Machine) unroll(turn func() bool) {
	m.loop++

	more := m.unrolled < maxUnrolled

	for range maxUnroll {
		if !more || m.over {
			break
		}

		before := m.budget.Spent()
		more = turn()
		m.unrolled += m.budget.Spent() - before

		if m.unrolled >= maxUnrolled {
			break
		}
	}

	if more {
		m.blur++
		turn()
		m.blur--
	}

	m.loop--
}

func isTrue(v Value) bool {
	switch v.Kind {
	case Bool, Int:
		return v.Int != 0
	case Str, Bytes:
		return v.Text != "" && v.Taint == 0
	case Unknown, None, Array, Record, Symbol, Function, Type, Instance, Method, Either:
	}

	return false
}

// leaves says whether a loop's body has something that leaves the loop; inner
// counts loops within it, whose breaks are their own.
func (m *Machine) leaves(id tree.ID, inner int) bool {
	for ; id != 0; id = m.T.At(id).Next {
		n := *m.T.At(id)

		if !m.step() {
			return true
		}

		switch n.Kind {
		case tree.Return, tree.Raise:
			return true
		case tree.Jump:
			if inner == 0 && m.T.Text(id) == "break" {
				return true
			}

			continue
		case tree.Func, tree.Class:
			continue
		case tree.While, tree.For:
			if m.leaves(n.A, inner+1) || m.leaves(n.B, inner+1) || m.leaves(n.C, inner+1) {
				return true
			}

			continue
		case tree.Call:
			switch m.calleeName(n.A) {
			case "exit", "_exit", "quit", "abort":
				return true
			}
		default:
		}

		if m.leaves(n.A, inner) || m.leaves(n.B, inner) || m.leaves(n.C, inner) {
			return true
		}
	}

	return false
}

func (m *Machine) calleeName(id tree.ID) string {
	switch m.T.At(id).Kind {
	case tree.Name, tree.Attr:
		return m.T.Text(id)
	default:
		return ""
	}
}

func (m *Machine) execFor(id tree.ID, n tree.Node) {
	over := m.eval(n.B)

	if n.Op == 'i' && over.Kind == Array {
		// The keys of an array are its indices.
		over = Numbers(0, int64(len(over.List().Items)), 1)
	}

	if long(over) && !m.decodes(n.C) {
		m.loopBody(func() {
			m.bindTo(n.A, m.element(over))
			m.exec(n.C)
		})

		return
	}

	// Index loops over what is being decoded, and the like.
	if items, ok := m.items(over); ok {
		if len(items) <= maxUnroll && m.decodes(n.C) {
			if len(items) == 0 {
				return
			}

			i := 0

			m.unroll(func() bool {
				m.bindTo(n.A, items[i])
				m.exec(n.C)

				i++

				return i < len(items)
			})

			return
		}

		m.loopBody(func() {
			m.bindTo(n.A, OneOf(items))
			m.exec(n.C)
		})

		return
	}

	endless := over.Kind == Instance && over.Object().Sym != nil && over.Object().Sym.Endless && !m.leaves(n.C, 0)
	if endless {
		m.unbounded++
	}

	spent := len(m.R.Effects) + len(m.R.Embedded)

	m.loopBody(func() {
		m.bindTo(n.A, m.element(over))
		m.exec(n.C)
	})

	if endless {
		m.unbounded--

		if spent == len(m.R.Effects)+len(m.R.Embedded) {
			m.loopEffect(id)
		}
	}
}

// Endless says whether what happens now is in a loop that nothing ends.
func (m *Machine) Endless() bool { return m.unbounded > 0 }
