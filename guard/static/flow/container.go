package flow

import (
	"slices"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

func (m *Machine) sequence(n tree.Node) Value {
	l := List{Items: m.memory.values.room(m.count(n.A))}

	for p := n.A; p != 0; p = m.T.At(p).Next {
		if m.T.At(p).Kind == tree.Star {
			m.spread(&l, m.eval(m.T.At(p).A))

			continue
		}

		l.Items = append(l.Items, m.eval(p))
	}

	// Of a comma expression the last value counts.
	if n.Op == ',' && len(l.Items) > 0 {
		return l.Items[len(l.Items)-1]
	}

	return m.array(l)
}

// array is a value that holds a list.
func (m *Machine) array(l List) Value {
	l.Items = slices.Clip(l.Items)

	return Value{Kind: Array, X: m.memory.lists.one(l)}
}

// count is how long a chain of siblings is.
func (m *Machine) count(id tree.ID) int {
	n := 0
	for ; id != 0; id = m.T.At(id).Next {
		n++
	}

	return n
}

// spread appends the items of v to l.
func (m *Machine) spread(l *List, v Value) {
	if items, ok := m.items(v); ok && len(l.Items)+len(items) <= maxUnroll && m.work(len(items)*64) {
		l.Items = append(l.Items, items...)

		return
	}

	t, _ := v.Sources()
	l.Open = true
	l.Rest |= t
}

func (m *Machine) dict(n tree.Node) Value {
	t := &Table{}
	out := Value{Kind: Record, X: t}

	for p := n.A; p != 0; p = m.T.At(p).Next {
		part := *m.T.At(p)

		switch part.Kind {
		case tree.Pair:
			k := m.dictKey(part.A)
			v := m.eval(part.B)

			if k.IsText() || k.Kind == Int {
				t.Set(textOf(k), v)
			} else {
				m.openTable(t, v.From(k))
			}
		case tree.Star:
			v := m.eval(part.A)

			if from := v.Table(); from != nil {
				for _, k := range from.Keys {
					t.Set(k, from.Values[k])
				}

				t.Open = t.Open || from.Open
				t.Rest |= from.Rest
			} else {
				m.openTable(t, v)
			}
		case tree.Assign:
			// A member of an enumeration.
			if m.T.At(part.A).Kind == tree.Name {
				t.Set(m.T.Text(part.A), m.eval(part.B))
			}
		case tree.Func:
			t.Set(m.T.Text(p), m.function(p, &out))
		default:
			v := m.eval(p)
			if m.T.At(p).Kind == tree.Name {
				t.Set(m.T.Text(p), v)
			}
		}
	}

	return out
}

// dictKey is the key of a Pair: in languages where o.k is o["k"] a bare name
// is a text.
func (m *Machine) dictKey(id tree.ID) Value {
	if m.L.Keys && m.T.At(id).Kind == tree.Name {
		return Text(m.T.Text(id))
	}

	return m.eval(id)
}

func (m *Machine) openTable(t *Table, v Value) {
	taint, origin := v.Sources()
	t.Open = true
	t.Rest |= taint
	t.Origin = joinOrigin(t.Origin, origin)
}
