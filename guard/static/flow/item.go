package flow

import (
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Item is v[key].
func (m *Machine) Item(v Value, key Value, id tree.ID) Value { return m.item(v, key, id) }

func (m *Machine) index(v Value, sub tree.ID, id tree.ID) Value {
	if sub == 0 {
		return v.Forget()
	}

	if m.T.At(sub).Kind == tree.Slice {
		return m.slice(v, sub)
	}

	return m.item(v, m.eval(sub), id)
}

func (m *Machine) item(v, key Value, id tree.ID) Value {
	if o, ok := key.X.(*Options); ok {
		all := make([]Value, 0, len(o.All))
		for _, k := range o.All {
			all = append(all, m.item(v, k, id))
		}

		return OneOf(all)
	}

	if out, ok := m.overload(v, "__getitem__", id, key); ok {
		return out
	}

	switch v.Kind {
	case Either:
		var all []Value

		v.Each(func(w Value) { all = append(all, m.item(w, key, id)) })

		return OneOf(all)
	case Array:
		l := v.List()
		if key.Kind == Int {
			i := key.Int - m.L.Base
			if i < 0 && m.L.Indices {
				i += int64(len(l.Items))
			}

			if i >= 0 && i < int64(len(l.Items)) {
				return l.Items[i]
			}

			if l.Open && i >= 0 && len(l.Items) > 0 {
				return Value{Taint: l.Rest}
			}
		}

		// Any of them.
		return m.anyItem(l)
	case Record:
		t := v.Table()
		if key.IsText() || key.Kind == Int {
			if e, ok := t.Values[textOf(key)]; ok {
				return e
			}
		} else if len(t.Keys) > 0 && len(t.Keys) <= maxOptions {
			// The key is unknown, so that it may be any entry.
			all := make([]Value, 0, len(t.Keys))
			for _, k := range t.Keys {
				all = append(all, t.Values[k])
			}

			return OneOf(all)
		}

		return Value{Taint: t.Rest | v.Taint, Origin: t.Origin}
	case Str, Bytes:
		return m.charAt(v, key)
	case Symbol, Instance, Type, Function:
		if key.IsConst() {
			name := key.Text
			out := m.attr(v, name, id)

			// A language where members are not items has them only in namespaces.
			if !m.L.Keys && v.Kind == Symbol && out.Kind == Symbol && out.Sym().Call != nil {
				out.Built = true
			}

			out.Built = out.Built || key.Built || key.Taint.Any(effect.TaintDecoded)

			return out
		}

		if m.L.Attr != nil {
			if out, ok := m.L.Attr(m, v, "[", id); ok {
				return out
			}
		}
	case Unknown, None, Bool, Int, Method:
		if key.IsConst() && m.L.Keys {
			out := m.attr(v, key.Text, id)
			out.Built = out.Built || key.Built || key.Taint.Any(effect.TaintDecoded)

			return out
		}
	}

	if m.L.Attr != nil && key.IsConst() {
		if out, ok := m.L.Attr(m, v, "["+key.Text, id); ok {
			return out
		}
	}

	out := v.Forget()
	out.Ref = ""

	return out
}

// overload calls what a class of the code defines for an operator.
func (m *Machine) overload(v Value, name string, id tree.ID, args ...Value) (Value, bool) {
	var f Value

	ok := false

	switch {
	case !m.L.Receiver:
	case v.Kind == Type:
		f, ok = m.classAttr(v.X.(*Class), "__class_getitem__")
	case v.Kind == Instance && v.Object().Class != nil:
		f, ok = m.classAttr(v.Object().Class, name)
	}

	if !ok {
		return Value{}, false
	}

	if fn, is := f.X.(*Fn); is {
		return m.follow(fn, v, args, nil, false), true
	}

	return m.CallValue(f, id, args...), f.Callable()
}

func (m *Machine) anyItem(l *List) Value {
	if len(l.Items) == 0 || len(l.Items) > maxOptions {
		out := Value{Taint: l.Rest}
		for i := range min(len(l.Items), maxScan) {
			out = out.From(l.Items[i])
		}

		return out
	}

	v := OneOf(l.Items)
	v.Taint |= l.Rest

	return v
}

func (m *Machine) charAt(v, key Value) Value {
	if key.Kind != Int || !v.IsConst() {
		return v.Forget()
	}

	n := int64(len(v.Text))
	i := key.Int

	if v.Kind == Str {
		if !isASCII(v.Text) {
			r := []rune(v.Text)
			n = int64(len(r))

			if i < 0 && m.L.Indices {
				i += n
			}

			if i < 0 || i >= n {
				return Value{Taint: v.Taint}
			}

			return Value{Kind: Str, Text: string(r[i]), Taint: v.Taint, Origin: v.Origin, Built: true}
		}
	}

	if i < 0 && m.L.Indices {
		i += n
	}

	if i < 0 || i >= n {
		return Value{Taint: v.Taint}
	}

	if v.Kind == Bytes {
		return Value{Kind: Int, Int: int64(v.Text[i]), Taint: v.Taint}
	}

	return Value{Kind: Str, Text: v.Text[i : i+1], Taint: v.Taint, Origin: v.Origin, Built: true}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}

	return true
}
