package flow

import (
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// handle runs a handler, once for each option of an argument that may be
// several things. Of several such arguments, each option is seen once.
func (m *Machine) handle(h Handler, c *Call) Value {
	if c.Recv.X != nil {
		if o, ok := c.Recv.X.(*Options); ok {
			var all []Value

			saved := c.Recv

			for _, w := range o.All {
				c.Recv = w
				all = append(all, m.handle(h, c))
			}

			c.Recv = saved

			return OneOf(all)
		}
	}

	turns := 0

	for i := range c.Args {
		turns = max(turns, m.options(c.Args[i]))
	}

	for i := range c.Kw {
		turns = max(turns, m.options(c.Kw[i].Value))
	}

	if !m.step() {
		return Value{}
	}

	if turns == 0 {
		v := h(m, c)

		// Large results cost.
		if l := v.List(); l != nil && len(l.Items) > 64 {
			m.work(len(l.Items) * 64)
		}

		return v
	}

	args, kw := c.Args, c.Kw
	c.Args, c.Kw = make([]Value, len(args)), make([]KwArg, len(kw))
	c.Turns = turns

	var out []Value

	for turn := 0; turn < turns && m.step(); turn++ {
		for i := range args {
			c.Args[i] = option(args[i], turn)
		}

		for i := range kw {
			c.Kw[i] = kw[i]
			c.Kw[i].Value = option(kw[i].Value, turn)
		}

		out = append(out, h(m, c))
	}

	c.Args, c.Kw, c.Turns = args, kw, 0

	return OneOf(out)
}

// options is how many values an argument may have: its own options, or those
// of its items if it is a short list; 0 if it has one.
func (m *Machine) options(v Value) int {
	switch x := v.X.(type) {
	case *Options:
		return len(x.All)
	case *List:
		if len(x.Items) > maxOptions {
			return 0
		}

		n := 0

		for i := range x.Items {
			if o, ok := x.Items[i].X.(*Options); ok {
				n = max(n, len(o.All))
			}
		}

		return n
	}

	return 0
}

// option is what an argument is in one turn.
func option(v Value, turn int) Value {
	switch x := v.X.(type) {
	case *Options:
		return x.All[turn%len(x.All)]
	case *List:
		if len(x.Items) > maxOptions {
			return v
		}

		for i := range x.Items {
			if _, ok := x.Items[i].X.(*Options); !ok {
				continue
			}

			items := append([]Value(nil), x.Items...)
			for j := i; j < len(items); j++ {
				items[j] = optionOf(items[j], turn)
			}

			v.X = &List{Items: items, Open: x.Open, Rest: x.Rest}

			return v
		}
	}

	return v
}

func optionOf(v Value, turn int) Value {
	if o, ok := v.X.(*Options); ok {
		return o.All[turn%len(o.All)]
	}

	return v
}

// Result is an unknown value with the sources of receiver and arguments.
func (c *Call) Result() Value {
	t, origin := c.Sources()
	out := c.Recv.Forget()
	out.Ref = ""
	out.Taint |= t
	out.Origin = joinOrigin(out.Origin, origin)

	return out
}

// Absorb lets the receiver of a call take up the sources of its arguments.
func (m *Machine) Absorb(c *Call) {
	t, origin := c.Sources()
	m.taint(c.RecvNode, Value{Taint: t, Origin: origin})
}

// Super is the receiver of the function that is being followed, as its base
// class sees it.
func (m *Machine) Super() Value {
	if m.frame == nil || m.frame.this.Kind != Instance {
		return Value{}
	}

	o := m.frame.this.Object()
	if o.Class == nil {
		return m.frame.this
	}

	// The class's own attributes are skipped.
	up := &Class{Name: o.Class.Name, Bases: o.Class.Bases, Attrs: map[string]Value{}}

	return Value{Kind: Instance, X: &Object{Class: up, Main: o.Main, Attrs: o.Attrs}}
}

// TaintNode lets the variable of an expression take up the sources of a value.
func (m *Machine) TaintNode(id tree.ID, v Value) { m.taint(id, v) }

// ValueOf is a value in the vocabulary of effects; an unknown one is known by
// its expression.
func (m *Machine) ValueOf(v Value, node tree.ID) effect.Value { return m.value(v, node) }

// AbsorbFile lets the receiver of a call take up the content of a file.
func (m *Machine) AbsorbFile(c *Call, path Value) {
	m.taint(c.RecvNode, Value{Taint: effect.TaintFile, Origin: path.Value().Text})
}
