package flow

import (
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// comprehension follows a comprehension or generator.
func (m *Machine) comprehension(n tree.Node) Value {
	l := &List{}
	keys := false

	var table *Table
	if m.T.At(n.A).Kind == tree.Pair {
		table, keys = &Table{}, true
	}

	m.inner(true, func() {
		m.scope.block = false
		m.loop++
		m.clauses(n, n.B, func() {
			if keys {
				p := *m.T.At(n.A)
				k, v := m.eval(p.A), m.eval(p.B)

				if k.IsText() || k.Kind == Int {
					table.Set(textOf(k), v)
				} else {
					m.openTable(table, v.From(k))
				}

				return
			}

			l.Items = append(l.Items, m.eval(n.A))
		})
		m.loop--
	})

	if keys {
		return Value{Kind: Record, X: table}
	}

	return Value{Kind: Array, X: l}
}

// clauses follows the clauses of a comprehension from one on.
func (m *Machine) clauses(n tree.Node, id tree.ID, f func()) {
	if id == 0 {
		f()

		return
	}

	c := *m.T.At(id)
	if c.Kind == tree.CompIf {
		v := m.eval(c.A)
		// What is known to be left out is.
		if v.Kind == Bool && v.Int == 0 {
			return
		}

		m.clauses(n, c.Next, f)

		return
	}

	over := m.eval(c.B)

	if endlessly(over) {
		m.unbounded++

		defer func() { m.unbounded-- }()
	}

	if long(over) && !m.decodes(n.A) {
		m.bindTo(c.A, m.element(over))
		m.clauses(n, c.Next, f)

		return
	}

	items, ok := m.items(over)

	if ok && m.worth(len(items), n.A) {
		for _, it := range items {
			if !m.step() {
				return
			}

			m.bindTo(c.A, it)
			m.clauses(n, c.Next, f)
		}

		return
	}

	if ok {
		m.bindTo(c.A, OneOf(items))
	} else {
		m.bindTo(c.A, m.element(over))
	}

	m.clauses(n, c.Next, f)
}

// fewTurns is how often what is no decoder is done over.
const fewTurns = 16

// worth says whether an expression or body is worth doing for each of n items.
func (m *Machine) worth(n int, body tree.ID) bool {
	return n <= fewTurns && m.loop <= 2 || n <= maxUnroll && m.decodes(body)
}

// Worth says whether a function is worth calling for each of n items.
func (m *Machine) Worth(n int, f Value) bool {
	switch x := f.X.(type) {
	case *Fn:
		if x.Tree != m.T {
			return n <= fewTurns
		}

		return m.worth(n, m.T.At(x.Node).B)
	case *Sym:
		return n <= fewTurns && m.loop <= 2 || n <= maxUnroll && x.Cheap
	case *Bound:
		return n <= maxUnroll && x.Fn == nil
	}

	return n <= fewTurns
}

// long says whether v is a range that is not worth spelling out.
func long(v Value) bool {
	o := v.Object()
	if v.Kind != Instance || o.Range == nil {
		return false
	}

	r := o.Range

	return (r[1]-r[0])/r[2] > fewNumbers
}

// element is an unknown item of v.
func (m *Machine) element(v Value) Value {
	switch v.Kind {
	case Array:
		return m.anyItem(v.List())
	case Record:
		return v.Forget()
	case Either:
		var all []Value

		v.Each(func(w Value) { all = append(all, m.element(w)) })

		return OneOf(all)
	case Instance:
		if v.Object().Range != nil {
			return Value{Many: true}
		}
	case Unknown, None, Bool, Int, Str, Bytes, Symbol, Function, Type, Method:
	}

	out := v.Forget()
	out.Ref = ""

	// What a connection yields is what arrives.
	if v.Kind == Instance && out.Taint.Any(effect.TaintSocket) {
		out.Taint = out.Taint&^effect.TaintSocket | effect.TaintNetwork
	}

	return out
}

// items are the items of v in turn, if all are known.
func (m *Machine) items(v Value) ([]Value, bool) {
	switch v.Kind {
	case Array:
		l := v.List()

		return l.Items, !l.Open
	case Record:
		t := v.Table()
		if t.Open {
			return nil, false
		}

		out := make([]Value, 0, len(t.Keys))
		for _, k := range t.Keys {
			out = append(out, Text(k))
		}

		return out, true
	case Bytes:
		if len(v.Text) > maxUnroll || !m.work(len(v.Text)*8) {
			return nil, false
		}

		out := make([]Value, len(v.Text))
		for i := range len(v.Text) {
			out[i] = Value{Kind: Int, Int: int64(v.Text[i]), Taint: v.Taint}
		}

		return out, true
	case Str:
		if !v.IsConst() || len(v.Text) > maxUnroll || !m.work(len(v.Text)*8) {
			return nil, false
		}

		out := make([]Value, 0, len(v.Text))
		for _, r := range v.Text {
			out = append(out, Value{Kind: Str, Text: string(r), Taint: v.Taint, Origin: v.Origin, Built: true})
		}

		return out, true
	case Instance:
		if r := v.Object().Range; r != nil {
			return spell(r), true
		}
	case Unknown, None, Bool, Int, Symbol, Function, Type, Method, Either:
	}

	return nil, false
}

// Numbers is a range.
func Numbers(from, to, by int64) Value {
	if by == 0 {
		return Value{Many: true}
	}

	r := &[3]int64{from, to, by}
	if n := (to - from) / by; n > maxUnroll || n < -1 {
		return Value{Many: true}
	}

	return Value{Kind: Instance, X: &Object{Range: r}}
}

func spell(r *[3]int64) []Value {
	var out []Value
	for i := r[0]; r[2] > 0 && i < r[1] || r[2] < 0 && i > r[1]; i += r[2] {
		out = append(out, Number(i))
	}

	return out
}

// Elements is items for handlers.
func (m *Machine) Elements(v Value) ([]Value, bool) { return m.items(v) }

// decodes says whether an expression or body looks like a step of a decoder,
// so that it is worth doing as often as the program would.
func (m *Machine) decodes(id tree.ID) bool {
	if d, ok := m.folds[id]; ok {
		return d
	}

	size := 0
	d := m.any(id, func(x tree.ID) bool {
		n := m.T.At(x)
		size++

		switch n.Kind {
		case tree.Name, tree.Attr:
			switch m.T.Text(x) {
			case "chr", "ord", "fromCharCode", "charCodeAt", "fromCodePoint", "codePointAt", "charAt",
				"unhexlify", "fromhex", "appendCodePoint", "parseInt", "bytes", "bytearray", "utf8ToInt", "intToUtf8", "strtoi":
				return true
			}
		case tree.Binary:
			return n.Op == '^'
		case tree.Assign:
			return n.Op == '^' || n.Op == '+' && m.T.At(n.B).Kind == tree.Index && m.T.At(n.B).B != 0 &&
				m.T.At(m.T.At(n.B).B).Kind != tree.Str
		}

		return false
	})

	m.folds[id] = d

	return d
}
