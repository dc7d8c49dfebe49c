package flow

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// KwArg is a keyword argument.
type KwArg struct {
	Name  string
	Value Value
	Node  tree.ID
}

// Call is a call that a Handler answers.
type Call struct {
	// ID is the Call's node, or that of what is read.
	ID tree.ID
	// Sym is the symbol that is called or read; nil for methods by name.
	Sym *Sym
	// Name is the method's name where Sym is nil.
	Name string
	// Recv is what it is called on; RecvNode its expression.
	Recv     Value
	RecvNode tree.ID
	Args     []Value
	Nodes    []tree.ID
	Kw       []KwArg
	// Open says that there may be more arguments, of taint Rest.
	Open bool
	Rest effect.Taint
	// New says that it constructs.
	New bool
	// Hidden says that the callee's name was computed.
	Hidden bool
	// Turns is how often the handler runs for this call, where more than once.
	Turns int
}

// Arg is the positional argument i, or the keyword argument of that name; ok
// is false if there is neither.
func (c *Call) Arg(i int, name string) (Value, bool) {
	if i >= 0 && i < len(c.Args) {
		return c.Args[i], true
	}

	if name != "" {
		for k := range c.Kw {
			if c.Kw[k].Name == name {
				return c.Kw[k].Value, true
			}
		}
	}

	return Value{Taint: c.Rest}, false
}

// Val is Arg without ok.
func (c *Call) Val(i int, name string) Value {
	v, _ := c.Arg(i, name)

	return v
}

// Node is the expression of Arg, or 0.
func (c *Call) Node(i int, name string) tree.ID {
	if i >= 0 && i < len(c.Nodes) {
		return c.Nodes[i]
	}

	for k := range c.Kw {
		if c.Kw[k].Name == name && name != "" {
			return c.Kw[k].Node
		}
	}

	return 0
}

// Via is the name of what is called.
func (c *Call) Via() string {
	if c.Sym != nil {
		return strings.TrimPrefix(strings.ReplaceAll(c.Sym.Name, "()", ""), "builtins.")
	}

	return c.Name
}

// Sources is where the arguments, and not the receiver, came from.
func (c *Call) Sources() (effect.Taint, string) {
	t, origin := c.Rest, ""

	for i := range c.Args {
		wt, wo := c.Args[i].Sources()
		t |= wt
		origin = joinOrigin(origin, wo)
	}

	for i := range c.Kw {
		wt, wo := c.Kw[i].Value.Sources()
		t |= wt
		origin = joinOrigin(origin, wo)
	}

	return t, origin
}

// Value is an argument in the vocabulary of effects; an unknown one is known
// by its expression.
func (m *Machine) Value(c *Call, i int, name string) effect.Value {
	v, ok := c.Arg(i, name)
	if !ok && !c.Open {
		return effect.Value{}
	}

	return m.value(v, c.Node(i, name))
}

func (m *Machine) value(v Value, node tree.ID) effect.Value {
	e := v.Value()
	if e.Ref == "" && !e.IsConst() {
		e.Ref = m.ref(node)
	}

	return e
}

func (m *Machine) newCall() *Call {
	if n := len(m.memory.calls); n > 0 {
		c := m.memory.calls[n-1]
		m.memory.calls = m.memory.calls[:n-1]

		return c
	}

	return &Call{}
}

// newFrame is an empty frame.
func (m *Machine) newFrame() *frame {
	if n := len(m.memory.frames); n > 0 {
		f := m.memory.frames[n-1]
		m.memory.frames = m.memory.frames[:n-1]

		return f
	}

	return &frame{}
}

func (m *Machine) freeCall(c *Call) {
	*c = Call{Args: c.Args[:0], Nodes: c.Nodes[:0], Kw: c.Kw[:0]}
	m.memory.calls = append(m.memory.calls, c)
}

func (m *Machine) evalCall(id tree.ID, n tree.Node) Value {
	c := m.newCall()
	c.ID = id
	c.New = n.Flag&tree.FlagNew != 0

	var f Value

	// A method call does not need its method as a value.
	if a := *m.T.At(n.A); a.Kind == tree.Attr {
		c.Recv, c.RecvNode = m.eval(a.A), a.A
		c.Name = m.T.Text(n.A)
		m.arguments(c, n.B)
		m.grows(c)

		v := m.callMethod(c, n.A)
		m.freeCall(c)

		return v
	}

	f = m.eval(n.A)
	m.arguments(c, n.B)
	v := m.call(f, c)
	m.freeCall(c)

	return v
}

func (m *Machine) arguments(c *Call, id tree.ID) {
	for ; id != 0; id = m.T.At(id).Next {
		n := *m.T.At(id)

		switch n.Kind {
		case tree.Kw:
			v := m.eval(n.A)
			c.Kw = append(c.Kw, KwArg{Name: m.T.Text(id), Value: v, Node: n.A})
		case tree.Star:
			v := m.eval(n.A)

			if t := v.Table(); n.Flag&tree.FlagDouble != 0 && t != nil {
				for _, k := range t.Keys {
					c.Kw = append(c.Kw, KwArg{Name: k, Value: t.Values[k], Node: n.A})
				}

				c.Rest |= t.Rest

				continue
			}

			if items, ok := m.items(v); ok && len(items) <= 256 {
				for _, it := range items {
					c.Args = append(c.Args, it)
					c.Nodes = append(c.Nodes, n.A)
				}

				continue
			}

			t, _ := v.Sources()
			c.Open = true
			c.Rest |= t
		default:
			c.Args = append(c.Args, m.eval(id))
			c.Nodes = append(c.Nodes, id)
		}
	}
}

// callMethod answers recv.name(args).
func (m *Machine) callMethod(c *Call, attr tree.ID) Value {
	recv, name := c.Recv, c.Name

	switch recv.Kind {
	case Either:
		var all []Value

		recv.Each(func(w Value) {
			if w.Kind == None {
				return
			}

			c.Recv = w
			all = append(all, m.callMethod(c, attr))
		})

		return OneOf(all)
	case Symbol:
		if e, ok := m.extra[recv.Sym()][name]; ok {
			return m.call(e, c)
		}

		if k := recv.Sym().Kid(name); k != nil {
			if k.Get != nil {
				return m.call(k.read(m, attr), c)
			}

			c.Hidden = c.Hidden || recv.Built

			return m.callSym(k, c)
		}
	case Instance:
		if f, ok := m.member(recv, recv.Object(), name, attr); ok {
			return m.call(f, c)
		}
	case Type:
		if f, ok := m.classAttr(recv.X.(*Class), name); ok {
			return m.call(f, c)
		}
	case Record:
		if f, ok := recv.Table().Values[name]; ok && m.L.Keys {
			if fn, ok := f.X.(*Fn); ok {
				return m.callFn(fn, recv, c)
			}

			return m.call(f, c)
		}
	case Unknown, None, Bool, Int, Str, Bytes, Array, Function, Method:
	}

	if m.L.Attr != nil {
		if f, ok := m.L.Attr(m, recv, name, attr); ok {
			return m.call(f, c)
		}
	}

	if h := m.L.Methods[name]; h != nil && recv.Kind != Symbol {
		return m.handle(h, c)
	}

	// Nothing known: what goes in may come out, of the result or the receiver.
	t, origin := c.Sources()
	if t != 0 && recv.Kind != Symbol {
		m.taint(c.RecvNode, Value{Taint: t, Origin: origin})
	}

	m.handOver(c)

	out := recv.Forget()
	out.Taint |= t
	out.Origin = joinOrigin(out.Origin, origin)
	out.Ref = ""

	return out
}

func (s *Sym) read(m *Machine, id tree.ID) Value { return m.read(s, id) }

// CallValue calls a value with arguments, for handlers that know when a
// callback is called.
func (m *Machine) CallValue(f Value, id tree.ID, args ...Value) Value {
	if !f.First().Callable() {
		return Value{}
	}

	c := m.newCall()
	c.ID = id
	c.Args = append(c.Args, args...)

	for range args {
		c.Nodes = append(c.Nodes, 0)
	}

	v := m.call(f, c)
	m.freeCall(c)

	return v
}

// Call calls a value with the arguments of c.
func (m *Machine) Call(f Value, c *Call) Value { return m.call(f, c) }

func (m *Machine) call(f Value, c *Call) Value {
	if !m.step() {
		return Value{}
	}

	if m.depth >= maxDepth {
		m.deep = true

		return Value{}
	}

	m.depth++
	defer func() { m.depth-- }()

	switch x := f.X.(type) {
	case *Options:
		var all []Value

		for _, w := range x.All {
			if w.Kind != None {
				all = append(all, m.call(w, c))
			}
		}

		return OneOf(all)
	case *Sym:
		c.Hidden = c.Hidden || f.Built

		return m.callSym(x, c)
	case *Fn:
		if c.New {
			this := Value{Kind: Instance, X: &Object{}}
			m.callFn(x, this, c)

			return this
		}

		return m.callFn(x, x.This, c)
	case *Class:
		return m.construct(x, c)
	case *Bound:
		return m.callBound(f, x, c)
	case *Object:
		if call, ok := m.member(f, x, "__call__", c.ID); ok && x.Class != nil {
			return m.call(call, c)
		}
	}

	t, origin := c.Sources()
	m.handOver(c)

	if f.Kind == Unknown && m.L.Attr != nil {
		if v, ok := m.L.Attr(m, f, "()", c.ID); ok {
			return v
		}
	}

	out := f.Forget()
	out.Taint |= t
	out.Origin = joinOrigin(out.Origin, origin)
	out.Ref = ""

	return out
}

// handOver follows functions that are given to code that is not known, with
// the sources of the other arguments.
func (m *Machine) handOver(c *Call) {
	m.runsVector(c)

	for i := range c.Args {
		if s := c.Args[i].Sym(); s != nil && c.Args[i].Kind == Symbol && s.Call != nil && s.Callback {
			// A library function given away: it is called with what is unknown.
			k := m.newCall()
			k.ID, k.Sym, k.Open = c.ID, s, true

			for j := range c.Args {
				if j != i {
					k.Args = append(k.Args, c.Args[j])
					k.Nodes = append(k.Nodes, c.Nodes[j])
				}
			}

			m.callSym(s, k)
			m.freeCall(k)
		}
	}
}

// runsVector sees a list of an interpreter, -c or -e, and code that was decoded
// or downloaded: whatever function takes it, it is there to be run.
func (m *Machine) runsVector(c *Call) {
	if len(c.Args) == 0 || c.Args[0].Kind != Array {
		return
	}

	words, ok := m.items(c.Args[0])
	if !ok || len(words) < 3 || len(words) > 8 || !words[0].IsText() || words[1].Text != "-c" && words[1].Text != "-e" {
		return
	}

	if words[2].Taint&(effect.TaintDecoded|effect.TaintDownload) == 0 {
		return
	}

	args := make([]effect.Value, 0, len(words)-1)
	for _, w := range words[1:] {
		args = append(args, w.Value())
	}

	m.Emit(c, effect.Effect{Kind: effect.Exec, Target: words[0].Value(), Args: args})
}

func (m *Machine) callBound(f Value, b *Bound, c *Call) Value {
	if b.Callee != nil {
		// A partial application.
		k := m.newCall()
		k.ID, k.Hidden, k.Open, k.Rest = c.ID, c.Hidden, c.Open, c.Rest
		k.Args = append(append(k.Args, b.Args...), c.Args...)

		for range b.Args {
			k.Nodes = append(k.Nodes, 0)
		}

		k.Nodes = append(k.Nodes, c.Nodes...)
		k.Kw = append(append(k.Kw, b.Kw...), c.Kw...)
		v := m.call(*b.Callee, k)
		m.freeCall(k)

		return v
	}

	saved, name := c.Recv, c.Name
	c.Recv = b.Recv

	defer func() { c.Recv, c.Name = saved, name }()

	c.Hidden = c.Hidden || f.Built

	switch {
	case b.Fn != nil:
		return m.callFn(b.Fn, b.Recv, c)
	case b.Sym != nil:
		return m.callSym(b.Sym, c)
	}

	c.Name = b.Name
	if h := m.L.Methods[b.Name]; h != nil {
		return m.handle(h, c)
	}

	return Value{}
}

// callSym answers a call to a symbol.
func (m *Machine) callSym(s *Sym, c *Call) Value {
	saved := c.Sym
	c.Sym = s

	defer func() { c.Sym = saved }()

	if s.Call != nil {
		return m.handle(s.Call, c)
	}

	t, origin := c.Sources()
	if c.Recv.Kind == Instance {
		t |= c.Recv.Taint
		origin = joinOrigin(origin, c.Recv.Origin)
	}

	m.handOver(c)

	if s.Inst != nil {
		main, _ := c.Arg(0, "")
		v := New(s.Inst, main)
		v.Taint |= t
		v.Origin = joinOrigin(v.Origin, origin)

		return v
	}

	return Value{Taint: t, Origin: origin}
}
