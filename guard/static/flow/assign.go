package flow

import (
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// assignment follows an Assign, as statement or expression.
func (m *Machine) assignment(n tree.Node) Value {
	if m.depth >= maxDepth {
		m.deep = true

		return Value{}
	}

	m.depth++
	defer func() { m.depth-- }()

	// a = b = value: the innermost value goes to all.
	if b := m.T.At(n.B); n.Op == 0 && b.Kind == tree.Assign && b.Op == 0 {
		v := m.assignment(*b)
		m.declareOrBind(n, v)

		return v
	}

	if m.unbounded > 0 && m.doubles(n) {
		m.EmitAt(n.A, effect.Effect{Kind: effect.Alloc, Target: effect.Const("memory"), Via: "+"})
	}

	if n.Op == 0 {
		v := m.eval(n.B)
		m.declareOrBind(n, v)

		return v
	}

	old := m.eval(n.A)
	v := m.eval(n.B)

	if n.Op == '?' || n.Op == 'o' || n.Op == 'a' {
		v = Join(v, old)
	} else {
		v = m.Operate(n.Op, old, v, n.A)
	}

	// Of a file's bytes one by one: what holds them is no longer what it was.
	if n.Op == '^' && v.Kind == Unknown && m.T.At(n.A).Kind == tree.Index && old.Taint.Any(effect.TaintFile) {
		v.Taint |= effect.TaintEncoded
	}

	m.bindTo(n.A, v)

	return v
}

func (m *Machine) declareOrBind(n tree.Node, v Value) {
	switch {
	case n.Flag&tree.FlagDeclare != 0:
		m.declare(n.A, v)

		return
	case n.Flag&tree.FlagHoist != 0:
		if n.B == 0 {
			// "var x" leaves what is there.
			return
		}

		saved := m.scope
		for m.scope.block && m.scope.parent != nil {
			m.scope = m.scope.parent
		}

		m.declare(n.A, v)
		m.scope = saved

		return
	}

	m.bindTo(n.A, v)
}

// declare binds a pattern in the current scope.
func (m *Machine) declare(target tree.ID, v Value) { m.bind(target, v, true) }

// bindTo assigns a value to a target.
func (m *Machine) bindTo(target tree.ID, v Value) { m.bind(target, v, false) }

// BindTo is bindTo for handlers.
func (m *Machine) BindTo(target tree.ID, v Value) { m.bind(target, v, false) }

func (m *Machine) bind(target tree.ID, v Value, declare bool) {
	if target == 0 || !m.step() || m.depth >= maxDepth {
		return
	}

	n := *m.T.At(target)
	m.depth++

	defer func() { m.depth-- }()

	switch n.Kind {
	case tree.Name:
		name := m.T.Text(target)

		if v.Kind == Unknown && v.Ref == "" {
			v.Ref = name
		}

		if fn, ok := v.X.(*Fn); ok && fn.Name == "" {
			fn.Name = name
		}

		if declare {
			m.set(m.scope, name, v)
		} else {
			m.assign(name, v)
		}
	case tree.Attr:
		m.setAttr(m.eval(n.A), n.A, m.T.Text(target), v, target)
	case tree.Index:
		m.setItem(m.eval(n.A), n.A, n.B, v, target)
	case tree.Seq:
		m.bindItems(n.A, v, declare)
	case tree.Dict:
		m.bindKeys(n.A, v, declare)
	case tree.Star, tree.Expr:
		m.bind(n.A, v, declare)
	case tree.Assign:
		// A default in a pattern.
		if v.Kind == Unknown || v.Kind == None {
			v = Join(m.eval(n.B), v)
		}

		m.bind(n.A, v, declare)
	case tree.As:
		m.bind(n.A, v, declare)
		m.bind(n.B, v, declare)
	case tree.Param:
		m.bindParam(target, v)
	default:
		m.eval(target)
	}
}

func (m *Machine) bindItems(id tree.ID, v Value, declare bool) {
	if o, ok := v.X.(*Options); ok && m.sameShape(o) {
		// Several tuples: each target takes its own place of each.
		for i := 0; id != 0; id, i = m.T.At(id).Next, i+1 {
			all := make([]Value, 0, len(o.All))
			for _, w := range o.All {
				all = append(all, w.List().Items[min(i, len(w.List().Items)-1)])
			}

			m.bind(id, OneOf(all), declare)
		}

		return
	}

	items, ok := m.items(v)

	for i := 0; id != 0; id, i = m.T.At(id).Next, i+1 {
		switch {
		case !ok && v.Kind == Array && m.T.At(id).Kind != tree.Star && i < len(v.List().Items):
			m.bind(id, v.List().Items[i], declare)
		case !ok && v.Kind == Array && len(v.List().Items) > 0:
			m.bind(id, Value{Taint: v.List().Rest}, declare)
		case !ok:
			m.bind(id, m.element(v), declare)
		case m.T.At(id).Kind == tree.Star:
			rest := 0
			for x := m.T.At(id).Next; x != 0; x = m.T.At(x).Next {
				rest++
			}

			end := max(len(items)-rest, min(i, len(items)))
			m.bind(m.T.At(id).A, Items(items[min(i, end):end]...), declare)
			i = end - 1
		case i < len(items):
			m.bind(id, items[i], declare)
		default:
			m.bind(id, Value{}, declare)
		}
	}
}

func (m *Machine) sameShape(o *Options) bool {
	for _, w := range o.All {
		if w.Kind != Array || len(w.List().Items) == 0 {
			return false
		}
	}

	return true
}

// bindKeys binds {a, b: c, ...d} = v.
func (m *Machine) bindKeys(id tree.ID, v Value, declare bool) {
	for ; id != 0; id = m.T.At(id).Next {
		n := *m.T.At(id)

		switch n.Kind {
		case tree.Pair:
			k := m.dictKey(n.A)
			m.bind(n.B, m.item(v, k, id), declare)
		case tree.Star:
			m.bind(n.A, v, declare)
		case tree.Assign:
			m.bind(id, m.attr(v, m.T.Text(n.A), id), declare)
		default:
			m.bind(id, m.attr(v, m.T.Text(id), id), declare)
		}
	}
}

func (m *Machine) setAttr(recv Value, base tree.ID, name string, v Value, id tree.ID) {
	if v.Kind == Unknown && v.Ref == "" {
		v.Ref = name
	}

	recv.Each(func(r Value) {
		switch r.Kind {
		case Instance:
			o := r.Object()

			if m.cond > 0 {
				if old, ok := o.Attrs[name]; ok && matters(old) {
					v = Join(v, old)
				}
			}

			if v.Taint != 0 || v.X != nil {
				m.tainted++
			}

			o.Set(name, v)
		case Type:
			r.X.(*Class).Attrs[name] = v
		case Record:
			r.Table().Set(name, v)
		case Symbol:
			if v.Callable() {
				m.Extend(r.Sym(), name, v)
			}

			if m.L.SetAttr != nil {
				m.L.SetAttr(m, r, name, v, id)
			}
		case Unknown, None, Bool, Int, Str, Bytes, Array, Function, Method, Either:
			m.taint(base, v)
		}
	})
}

func (m *Machine) setItem(recv Value, base, sub tree.ID, v Value, id tree.ID) {
	key := m.eval(sub)

	if m.unbounded > 0 && v.IsBlock() && m.T.At(sub).Kind != tree.Str {
		m.EmitAt(id, effect.Effect{Kind: effect.Alloc, Target: effect.Const("memory"), Via: "[]", Flags: effect.FlagUnbounded})
	}

	recv.Each(func(r Value) {
		switch r.Kind {
		case Record:
			t := r.Table()
			if key.IsText() || key.Kind == Int {
				t.Set(textOf(key), v)
			} else {
				m.openTable(t, v)
			}
		case Array:
			l := r.List()
			if key.Kind == Int && key.Int >= 0 && key.Int < int64(len(l.Items)) {
				l.Items[key.Int] = v
			} else if t, _ := v.Sources(); t != 0 {
				l.Rest |= t
				l.Open = true
			}
		case Symbol, Instance, Type:
			if key.IsConst() {
				m.setAttr(r, base, key.Text, v, id)
			}
		case Unknown, None, Bool, Int, Str, Bytes, Function, Method, Either:
			m.taint(base, v)
		}
	})
}

// taint adds the sources of v to the variable an expression starts from,
// because v was put into it.
func (m *Machine) taint(base tree.ID, v Value) {
	t, origin := v.Sources()
	if t == 0 {
		return
	}

	for base != 0 {
		n := m.T.At(base)

		switch n.Kind {
		case tree.Name:
			name := m.T.Text(base)

			for s := m.scope; s != nil; s = s.parent {
				if old := s.get(name); old != nil {
					if old.Taint&t != t {
						m.tainted++
					}

					old.Taint |= t
					old.Origin = joinOrigin(old.Origin, origin)

					return
				}
			}

			return
		case tree.Attr:
			if r := m.T.At(n.A); r.Kind == tree.Name {
				if recv, ok := m.lookup(m.T.Text(n.A)); ok && recv.Kind == Instance {
					name := m.T.Text(base)
					old := recv.Object().Attrs[name]
					old.Taint |= t
					old.Origin = joinOrigin(old.Origin, origin)
					recv.Object().Set(name, old)

					return
				}
			}

			base = n.A
		case tree.Index, tree.Call:
			base = n.A
		default:
			return
		}
	}
}
