package flow

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// function makes the value of a Func node; this is what an arrow function or a
// method of an object literal keeps.
func (m *Machine) function(id tree.ID, this *Value) Value {
	n := *m.T.At(id)
	fn := m.memory.fns.one(Fn{Node: id, Tree: m.T, Scope: m.scope, Name: m.T.Text(id)})

	switch {
	case this != nil:
		fn.This = *this
	case m.frame != nil:
		fn.This = m.frame.this
	}

	m.fns = append(m.fns, fn)

	v := Value{Kind: Function, X: fn}

	for d := n.C; d != 0; d = m.T.At(d).Next {
		v = m.decorate(fn, d, v)
	}

	return v
}

// decorate applies a decorator.
func (m *Machine) decorate(fn *Fn, d tree.ID, v Value) Value {
	if n := m.T.At(d); n.Kind == tree.Name {
		switch m.T.Text(d) {
		case "staticmethod":
			fn.static = true

			return v
		case "classmethod", "property":
			return v
		}
	}

	dec := m.eval(d)

	switch dec.Kind {
	case Symbol, Method:
		m.CallValue(dec, d, v)
	case Function:
		if out := m.CallValue(dec, d, v); out.Callable() {
			return out
		}
	case Unknown, None, Bool, Int, Str, Bytes, Array, Record, Type, Instance, Either:
	}

	return v
}

// isProperty says whether a method is read like an attribute.
func (m *Machine) isProperty(fn *Fn) bool {
	t := fn.Tree

	for d := t.At(fn.Node).C; d != 0; d = t.At(d).Next {
		if t.At(d).Kind == tree.Name && t.Text(d) == "property" {
			return true
		}
	}

	return false
}

// class follows a class's body and binds its name.
func (m *Machine) class(id tree.ID, n tree.Node) Value {
	c := &Class{Name: m.T.Text(id), Attrs: map[string]Value{}, node: id}

	for b := n.A; b != 0; b = m.T.At(b).Next {
		x := b
		if m.T.At(b).Kind == tree.Kw {
			m.eval(b)

			continue
		}

		v := m.eval(x)

		v.Each(func(w Value) {
			if w.Kind == Symbol || w.Kind == Type {
				c.Bases = append(c.Bases, w)
			}
		})
	}

	first := len(m.fns)
	v := Value{Kind: Type, X: c}
	saved := m.scope
	own := m.memory.scopes.one(scope{parent: saved, cond: m.cond})
	m.scope = own

	m.classBody(n.B, v)

	m.scope = saved

	for i, name := range own.names {
		c.Attrs[name] = own.vals[i]
	}

	for _, fn := range m.fns[first:] {
		// Functions that the body defines are methods; those nested deeper have
		// scopes of their own.
		if fn.Scope == own {
			fn.Owner = c
		}
	}

	m.classes = append(m.classes, c)

	if c.Name != "" {
		m.Bind(c.Name, v)
	}

	for d := n.C; d != 0; d = m.T.At(d).Next {
		if dec := m.eval(d); dec.Callable() {
			m.CallValue(dec, d, v)
		}
	}

	return v
}

func (m *Machine) classBody(body tree.ID, class Value) {
	if !m.L.BlockScope {
		m.exec(body)

		return
	}

	// Members, not statements.
	for x := m.T.At(body).A; x != 0; x = m.T.At(x).Next {
		n := *m.T.At(x)

		switch n.Kind {
		case tree.Func:
			class.X.(*Class).Attrs[m.T.Text(x)] = m.function(x, nil)
		case tree.Pair:
			if k := m.dictKey(n.A); k.IsConst() {
				class.X.(*Class).Attrs[k.Text] = m.eval(n.B)
			}
		default:
			m.execNode(x, n)
		}
	}
}

// construct makes an instance of a class of the code.
func (m *Machine) construct(c *Class, call *Call) Value {
	o := &Object{Class: c}
	c.Last = o
	v := Value{Kind: Instance, X: o}

	if init, ok := m.classAttr(c, m.L.Constructor); ok {
		if fn, ok := init.X.(*Fn); ok {
			m.callFn(fn, v, call)

			return v
		}
	}

	if len(call.Args) > 0 {
		o.Main = call.Args[0]
	}

	if s := baseSym(c); s != nil {
		m.callSym(s, call)
	}

	return v
}

// callFn follows a function with the arguments of a call.
func (m *Machine) callFn(fn *Fn, this Value, c *Call) Value {
	args := c.Args

	if c.Open {
		args = append(append([]Value(nil), args...), Value{Taint: c.Rest})
	}

	return m.follow(fn, this, args, c.Kw, false)
}

// follow follows a function's body. unknown says that nobody calls it, so that
// its parameters may be anything.
func (m *Machine) follow(fn *Fn, this Value, args []Value, kw []KwArg, unknown bool) Value {
	if m.over || fn.running > 0 && (!tells(args, kw) || fn.running > maxRecursion) {
		return m.unfollowed(args, kw)
	}

	if m.inline >= maxInline {
		m.deep = m.deep || tells(args, kw)

		return m.unfollowed(args, kw)
	}

	fn.called = true

	if v, ok := m.remember(fn, this, args, kw); ok {
		return v
	}

	// The first time costs no more than the function is long. What is followed
	// again is followed on an allowance, or functions that call each other would
	// take for ever.
	key := fn.key()
	again := m.follows[key] > 0
	m.follows[key]++

	if again && m.spentAgain() > inlineMin+inlinePerNode*len(m.T.Nodes) {
		// What a function does with telling arguments must not pass for harmless:
		// it is followed as long as the budget lasts.
		if !m.sinks[key] || !tells(args, kw) {
			return m.unfollowed(args, kw)
		}
	}

	if again {
		if m.again == 0 {
			m.againFrom = m.budget.Spent()
		}

		m.again++
	}

	outer := m.T
	m.T = fn.Tree
	n := *m.T.At(fn.Node)
	f := m.newFrame()
	*f = frame{fn: fn, this: this, args: args, unknown: unknown, calling: m.frame}
	savedScope, savedLoop, savedCond := m.scope, m.loop, fn.cond
	m.frame, fn.cond = f, m.cond

	endless := m.restarts(fn)
	if endless {
		m.unbounded++
	}

	m.scope = m.memory.scopes.one(scope{parent: fn.Scope, cond: m.cond})
	fn.running++
	m.inline++

	m.bindParams(fn, n.A, this, args, kw, unknown)

	body := *m.T.At(n.B)
	if n.Flag&tree.FlagExpr != 0 {
		f.ret, f.hasRet = m.eval(n.B), true
	} else if n.B != 0 {
		m.hoist(body.A)
		m.exec(body.A)
	}

	if endless {
		m.unbounded--
	}

	m.T = outer
	m.inline--
	fn.running--
	m.frame, fn.cond = f.calling, savedCond
	m.scope, m.loop = savedScope, savedLoop

	if again {
		m.again--

		if m.again == 0 {
			m.inlined += m.budget.Spent() - m.againFrom
		}
	}

	ret := f.ret
	if len(f.yields) > 0 {
		ret = Items(f.yields...)
	}

	m.memory.frames = append(m.memory.frames, f)

	if !unknown {
		m.store(fn, args, kw, ret)
	}

	// What a pickle calls when it is read.
	if name := fn.Tree.Text(fn.Node); fn.Owner != nil && strings.HasPrefix(name, "__reduce") {
		if l := ret.List(); l != nil && len(l.Items) > 1 {
			if args, ok := m.items(l.Items[1]); ok {
				m.CallValue(l.Items[0], n.B, args...)
			}
		}
	}

	return ret
}

// spentAgain is how many steps went into functions that were followed before.
func (m *Machine) spentAgain() int {
	if m.again > 0 {
		return m.inlined + m.budget.Spent() - m.againFrom
	}

	return m.inlined
}

// tells says whether arguments say more than that anything may be given.
func tells(args []Value, kw []KwArg) bool {
	for i := range args {
		if args[i].Taint != 0 || args[i].IsText() && args[i].Text != "" || args[i].Kind == Symbol {
			return true
		}

		if o := args[i].Object(); args[i].Kind == Instance && o.Sym != nil && o.Sym.Path && o.Main.Text != "" {
			return true
		}
	}

	for i := range kw {
		if tells([]Value{kw[i].Value}, nil) {
			return true
		}
	}

	return false
}

// unfollowed is the result of a function that is not followed.
func (m *Machine) unfollowed(args []Value, kw []KwArg) Value {
	var out Value

	for i := range args {
		out = out.From(args[i])
	}

	for i := range kw {
		out = out.From(kw[i].Value)
	}

	return out
}

// remember is the result of a function that was followed with the same plain
// arguments before.
func (m *Machine) remember(fn *Fn, this Value, args []Value, kw []KwArg) (Value, bool) {
	if len(kw) > 0 || this.Kind != Unknown || !plain(args) {
		return Value{}, false
	}

next:
	for _, r := range m.memo[fn] {
		if len(r.args) != len(args) {
			continue
		}

		for i := range args {
			if args[i].Kind != r.args[i].Kind || args[i].Kind != Unknown && !same(args[i], r.args[i]) {
				continue next
			}
		}

		return r.ret, true
	}

	return Value{}, false
}

func (m *Machine) store(fn *Fn, args []Value, kw []KwArg, ret Value) {
	if len(kw) > 0 || !plain(args) || len(m.memo[fn]) >= 8 {
		return
	}

	if m.memo == nil {
		m.memo = map[*Fn][]remembered{}
	}

	m.memo[fn] = append(m.memo[fn], remembered{args: append(m.memory.values.room(len(args)), args...), ret: ret})
}

func plain(args []Value) bool {
	for i := range args {
		if args[i].X != nil || args[i].Taint != 0 {
			return false
		}
	}

	return true
}

// bindParams binds a function's parameters.
func (m *Machine) bindParams(fn *Fn, id tree.ID, this Value, args []Value, kw []KwArg, unknown bool) {
	if m.L.Receiver && fn.Owner != nil && !fn.static && id != 0 {
		m.put(m.scope, m.T.Text(id), this)
		id = m.T.At(id).Next
	}

	i := 0

	for ; id != 0; id = m.T.At(id).Next {
		p := *m.T.At(id)
		name := m.T.Text(id)

		switch p.Op {
		case '*':
			l := List{Open: unknown, Items: m.memory.values.room(max(len(args)-i, 0))}
			for ; i < len(args); i++ {
				l.Items = append(l.Items, args[i])
			}

			m.bindParam(id, m.array(l))

			continue
		case 'd':
			t := &Table{Open: unknown}
			for _, k := range kw {
				t.Set(k.Name, k.Value)
			}

			m.bindParam(id, Value{Kind: Record, X: t})

			continue
		}

		var v Value

		given := false

		if i < len(args) {
			v, given = args[i], true
			i++
		} else {
			for k := range kw {
				if kw[k].Name == name {
					v, given = kw[k].Value, true
				}
			}
		}

		if !given && unknown && p.A == 0 {
			v = m.received(fn)
		}

		if !given && p.A != 0 {
			v = m.eval(p.A)
			if unknown && v.trivial() {
				v = Value{Ref: name}
			}
		}

		m.bindParam(id, v)
	}
}

func (m *Machine) bindParam(id tree.ID, v Value) {
	p := *m.T.At(id)
	if p.B != 0 {
		m.bind(p.B, v, true)

		return
	}

	name := m.T.Text(id)
	if v.Kind == Unknown && v.Ref == "" {
		v.Ref = name
	}

	m.put(m.scope, name, v)
}

// loopEffect reports a loop without an end in which nothing else happens.
func (m *Machine) loopEffect(id tree.ID) {
	n := m.T.At(id)
	e := effect.Effect{Kind: effect.Loop, Flags: effect.FlagUnbounded, Via: "loop"}
	e.Span.Start, e.Span.End = int(n.Start), int(n.End)
	m.emit(e)
}
