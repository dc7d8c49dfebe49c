package flow

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// read is the value of a symbol.
func (m *Machine) read(s *Sym, id tree.ID) Value {
	if s.Get != nil {
		c := m.newCall()
		c.ID, c.Sym = id, s
		v := s.Get(m, c)
		m.freeCall(c)

		return v
	}

	return Value{Kind: Symbol, X: s}
}

// Attribute is attr for handlers.
func (m *Machine) Attribute(v Value, name string, id tree.ID) Value { return m.attr(v, name, id) }

// attr is v.name.
func (m *Machine) attr(v Value, name string, id tree.ID) Value {
	switch v.Kind {
	case Symbol:
		s := v.Sym()
		if e, ok := m.extra[s][name]; ok {
			return e
		}

		if k := s.Kid(name); k != nil {
			out := m.read(k, id)
			out.Built = out.Built || v.Built

			return out
		}
	case Instance:
		if out, ok := m.member(v, v.Object(), name, id); ok {
			return out
		}
	case Type:
		if out, ok := m.classAttr(v.X.(*Class), name); ok {
			return out
		}
	case Record:
		if m.L.Keys {
			t := v.Table()
			if e, ok := t.Values[name]; ok {
				return e
			}
		}
	case Either:
		var all []Value

		v.Each(func(w Value) {
			if w.Kind != None {
				all = append(all, m.attr(w, name, id))
			}
		})

		return OneOf(all)
	case Unknown, None, Bool, Int, Str, Bytes, Array, Function, Method:
	}

	if m.L.Attr != nil {
		if out, ok := m.L.Attr(m, v, name, id); ok {
			return out
		}
	}

	if _, ok := m.L.Methods[name]; ok && v.Kind != Symbol {
		return Value{Kind: Method, X: &Bound{Recv: v, Name: name}, Taint: v.Taint, Origin: v.Origin, Built: v.Built}
	}

	out := v.Forget()
	if out.Ref != "" {
		out.Ref += "." + name
	}

	return out
}

// member is an attribute of an instance.
func (m *Machine) member(v Value, o *Object, name string, id tree.ID) (Value, bool) {
	if a, ok := o.Attrs[name]; ok {
		return a, true
	}

	if o.Class != nil {
		if a, ok := m.classAttr(o.Class, name); ok {
			if fn, ok := a.X.(*Fn); ok {
				if m.isProperty(fn) {
					return m.follow(fn, v, nil, nil, false), true
				}

				return Value{Kind: Method, X: &Bound{Recv: v, Fn: fn}}, true
			}

			return a, true
		}

		if s := baseSym(o.Class); s != nil {
			if k := m.typeOf(s).Kid(name); k != nil {
				return m.member(v, &Object{Sym: m.typeOf(s), Main: o.Main}, name, id)
			}
		}
	}

	k := o.Sym.Kid(name)
	if k == nil {
		return Value{}, false
	}

	if k.Get != nil {
		c := m.newCall()
		c.ID, c.Sym, c.Recv = id, k, v
		out := k.Get(m, c)
		m.freeCall(c)

		return out, true
	}

	return Value{Kind: Method, X: &Bound{Recv: v, Sym: k}, Built: v.Built}, true
}

// typeOf is the type of a symbol's instances.
func (m *Machine) typeOf(s *Sym) *Sym {
	if s.Inst != nil {
		return s.Inst
	}

	return s
}

// baseSym is the first base of a class, or of its bases, that the library
// knows.
func baseSym(c *Class) *Sym {
	for depth := 0; c != nil && depth < 8; depth++ {
		var up *Class

		for _, b := range c.Bases {
			if s := b.Sym(); s != nil {
				return s
			}

			if k, ok := b.X.(*Class); ok && up == nil {
				up = k
			}
		}

		c = up
	}

	return nil
}

func (m *Machine) classAttr(c *Class, name string) (Value, bool) {
	return classAttr(c, name, 8)
}

func classAttr(c *Class, name string, depth int) (Value, bool) {
	if v, ok := c.Attrs[name]; ok {
		return v, true
	}

	if depth == 0 {
		return Value{}, false
	}

	for _, b := range c.Bases {
		if k, ok := b.X.(*Class); ok && k != c {
			if v, ok := classAttr(k, name, depth-1); ok {
				return v, true
			}
		}
	}

	return Value{}, false
}
