package flow

import (
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// slice is v[a:b:c].
func (m *Machine) slice(v Value, id tree.ID) Value {
	n := *m.T.At(id)
	a, b, c := m.eval(n.A), m.eval(n.B), m.eval(n.C)

	return m.SliceOf(v, a, b, c, n.C != 0)
}

// SliceOf is v[a:b:c], where an unknown bound that is not None leaves the
// result unknown.
func (m *Machine) SliceOf(v, a, b, c Value, stepped bool) Value {
	if o, ok := v.X.(*Options); ok {
		all := make([]Value, 0, len(o.All))
		for _, w := range o.All {
			all = append(all, m.SliceOf(w, a, b, c, stepped))
		}

		return OneOf(all)
	}

	open := func(x Value) bool { return x.Kind == None || x.Kind == Unknown && x.Ref == "" && x.Taint == 0 }

	if !(a.Kind == Int || open(a)) || !(b.Kind == Int || open(b)) {
		return v.Forget()
	}

	by := int64(1)

	if stepped && !open(c) {
		if c.Kind != Int || c.Int == 0 {
			return v.Forget()
		}

		by = c.Int
	}

	var size int64

	var runes []rune

	switch {
	case v.Kind == Array && v.List().Open && by == 1 && open(b) && (open(a) || a.Int >= 0):
		l := v.List()

		return Value{Kind: Array, X: &List{Items: slices.Clip(l.Items[min(int(a.Int), len(l.Items)):]), Open: true, Rest: l.Rest}, Taint: v.Taint, Origin: v.Origin}
	case v.Kind == Array && !v.List().Open:
		size = int64(len(v.List().Items))
	case v.Kind == Bytes, v.IsConst() && isASCII(v.Text):
		size = int64(len(v.Text))
	case v.IsConst():
		runes = []rune(v.Text)
		size = int64(len(runes))
	default:
		if v.Kind == Str && !open(a) && a.Int == 0 && b.Kind == Unknown && by == 1 {
			return v
		}

		return v.Forget()
	}

	if !m.work(int(size) * 4) {
		return Value{}
	}

	from, to := int64(0), size
	if by < 0 {
		from, to = size-1, -1
	}

	clamp := func(x Value, at int64) int64 {
		if x.Kind != Int {
			return at
		}

		i := x.Int
		if i < 0 {
			i += size
		}

		if by < 0 {
			return max(min(i, size-1), -1)
		}

		return max(min(i, size), 0)
	}
	from, to = clamp(a, from), clamp(b, to)

	out := v
	out.Built = true

	if v.Kind == Array {
		l := &List{}
		for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
			l.Items = append(l.Items, v.List().Items[i])
		}

		out.X = l

		return out
	}

	if by == 1 && runes == nil {
		if from >= to {
			out.Text = ""
		} else {
			out.Text = v.Text[from:to]
		}

		return out
	}

	var s strings.Builder

	for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
		if runes != nil {
			s.WriteRune(runes[i])
		} else {
			s.WriteByte(v.Text[i])
		}
	}

	out.Text = s.String()
	if by < 0 && len(out.Text) > 2 {
		out.Taint |= effect.TaintDecoded
	}

	return out
}
