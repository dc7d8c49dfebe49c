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
