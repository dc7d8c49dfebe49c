package python

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// mapText is a method that maps a text to another.
func mapText(f func(string) string) flow.Handler {
	return func(m *flow.Machine, c *flow.Call) flow.Value {
		if !c.Recv.IsText() {
			return c.Result()
		}

		out := c.Recv
		out.Text = f(out.Text)
		out.Built = true

		return out
	}
}

func defineMethods(h map[string]flow.Handler) {
	trim := func(f func(s, cut string) string) flow.Handler {
		return func(_ *flow.Machine, c *flow.Call) flow.Value {
			if !c.Recv.IsText() {
				return c.Result()
			}

			cutset := " \t\r\n\f\v"
			if v, ok := c.Arg(0, ""); ok && v.IsText() {
				cutset = v.Text
			}

			out := c.Recv
			out.Text = f(out.Text, cutset)

			return out
		}
	}

	h["strip"], h["lstrip"], h["rstrip"] = trim(strings.Trim), trim(strings.TrimLeft), trim(strings.TrimRight)
	h["removeprefix"], h["removesuffix"] = trim(strings.TrimPrefix), trim(strings.TrimSuffix)
	h["lower"], h["upper"] = mapText(strings.ToLower), mapText(strings.ToUpper)
	h["casefold"] = h["lower"]
	h["swapcase"] = mapText(func(s string) string {
		return strings.Map(func(r rune) rune {
			switch {
			case 'a' <= r && r <= 'z':
				return r - 0x20
			case 'A' <= r && r <= 'Z':
				return r + 0x20
			}

			return r
		}, s)
	})
	h["capitalize"] = mapText(func(s string) string {
		if s == "" {
			return s
		}

		return strings.ToUpper(s[:1]) + strings.ToLower(s[1:])
	})
	h["title"] = mapText(func(s string) string {
		b := []byte(strings.ToLower(s))
		for i := range b {
			if 'a' <= b[i] && b[i] <= 'z' && (i == 0 || !('a' <= b[i-1]|0x20 && b[i-1]|0x20 <= 'z')) {
				b[i] -= 0x20
			}
		}

		return string(b)
	})
	h["encode"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		if !c.Recv.IsText() {
			return c.Result()
		}

		return encodeText(c.Recv, c.Val(0, "encoding").Text)
	}
	h["decode"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if !c.Recv.IsText() {
			return c.Result()
		}

		return decodeText(m, c, c.Recv, c.Val(0, "encoding"))
	}
	h["hex"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		if c.Recv.Kind != flow.Bytes {
			return c.Result()
		}

		const digits = "0123456789abcdef"

		b := make([]byte, 0, 2*len(c.Recv.Text))
		for i := range len(c.Recv.Text) {
			b = append(b, digits[c.Recv.Text[i]>>4], digits[c.Recv.Text[i]&15])
		}

		return flow.Value{Kind: flow.Str, Text: string(b), Taint: c.Recv.Taint, Origin: c.Recv.Origin}
	}
	h["join"] = join
	h["replace"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		from, to := c.Val(0, "old"), c.Val(1, "new")
		if !c.Recv.IsText() || !from.IsConst() || !to.IsText() || len(c.Recv.Text)*(len(to.Text)+1) > effect.MaxText {
			return c.Result()
		}

		n := -1
		if v, ok := c.Arg(2, "count"); ok && v.Kind == flow.Int {
			n = int(v.Int)
		}

		out := c.Recv.From(to)
		out.Text = strings.Replace(out.Text, from.Text, to.Text, n)
		out.Built = true

		return out
	}
	h["translate"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		t := c.Val(0, "table").Table()
		if t == nil || c.Recv.Kind != flow.Str {
			return c.Result()
		}

		var b strings.Builder

		for _, r := range c.Recv.Text {
			v, ok := t.Values[strconv.Itoa(int(r))]
			if !ok {
				v, ok = t.Values[string(r)]
			}

			switch {
			case !ok:
				b.WriteRune(r)
			case v.IsText():
				b.WriteString(v.Text)
			case v.Kind == flow.Int:
				b.WriteRune(rune(v.Int))
			}
		}

		out := c.Recv.With(effect.TaintDecoded)
		out.Text, out.Built = b.String(), true

		return out
	}
	h["split"] = splitText
	h["rsplit"] = splitText
	h["splitlines"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		if !c.Recv.IsConst() {
			return c.Recv.Forget()
		}

		return texts(c.Recv, strings.Split(strings.TrimRight(c.Recv.Text, "\n"), "\n"))
	}
	h["partition"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		sep := c.Val(0, "")
		if !c.Recv.IsConst() || !sep.IsConst() {
			return c.Result()
		}

		before, after, found := strings.Cut(c.Recv.Text, sep.Text)
		if !found {
			return texts(c.Recv, []string{c.Recv.Text, "", ""})
		}

		return texts(c.Recv, []string{before, sep.Text, after})
	}
	h["format"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if !c.Recv.IsText() {
			return c.Result()
		}

		return m.Format(c.Recv, c.Args, c.Kw)
	}
	h["format_map"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		t := c.Val(0, "").Table()
		if t == nil || !c.Recv.IsText() {
			return c.Result()
		}

		var kw []flow.KwArg
		for _, k := range t.Keys {
			kw = append(kw, flow.KwArg{Name: k, Value: t.Values[k]})
		}

		return m.Format(c.Recv, nil, kw)
	}
	h["__add__"] = func(m *flow.Machine, c *flow.Call) flow.Value { return m.Operate('+', c.Recv, c.Val(0, ""), c.ID) }
	h["__mod__"] = func(m *flow.Machine, c *flow.Call) flow.Value { return m.Operate('%', c.Recv, c.Val(0, ""), c.ID) }
	h["__mul__"] = func(m *flow.Machine, c *flow.Call) flow.Value { return m.Operate('*', c.Recv, c.Val(0, ""), c.ID) }
	h["__getitem__"] = func(m *flow.Machine, c *flow.Call) flow.Value { return m.Item(c.Recv, c.Val(0, ""), c.ID) }
	h["startswith"], h["endswith"], h["count"], h["find"], h["isdigit"] = quiet, quiet, quiet, quiet, quiet
	defineContainers(h)
}

func texts(like flow.Value, parts []string) flow.Value {
	out := make([]flow.Value, len(parts))
	for i, p := range parts {
		out[i] = flow.Value{Kind: like.Kind, Text: p, Taint: like.Taint, Origin: like.Origin, Built: true}
	}

	return flow.Items(out...)
}

func splitText(_ *flow.Machine, c *flow.Call) flow.Value {
	if !c.Recv.IsText() {
		return c.Recv.Forget()
	}

	sep, ok := c.Arg(0, "sep")
	n := -1

	if v, ok := c.Arg(1, "maxsplit"); ok && v.Kind == flow.Int {
		n = int(v.Int) + 1
	}

	switch {
	case !ok || sep.Kind == flow.None:
		return texts(c.Recv, strings.Fields(c.Recv.Text))
	case sep.IsConst() && sep.Text != "":
		return texts(c.Recv, strings.SplitN(c.Recv.Text, sep.Text, n))
	}

	return c.Recv.Forget()
}

func join(m *flow.Machine, c *flow.Call) flow.Value {
	if !c.Recv.IsText() {
		// os.path.join is elsewhere; thread.join() and the like have no argument.
		return c.Result()
	}

	items, ok := m.Elements(c.Val(0, ""))
	if !ok {
		return c.Result()
	}

	out := flow.Value{Kind: c.Recv.Kind, Built: true}

	return m.Join(out, c.Recv, items)
}

func defineContainers(h map[string]flow.Handler) {
	grow := func(m *flow.Machine, c *flow.Call, at int, items ...flow.Value) flow.Value {
		if l := c.Recv.List(); c.Recv.Kind == flow.Array {
			if len(l.Items)+len(items) > 20_000 {
				l.Open = true

				return flow.Value{Kind: flow.None}
			}

			if at < 0 || at >= len(l.Items) {
				l.Items = append(l.Items, items...)

				return flow.Value{Kind: flow.None}
			}

			m.Copied(len(l.Items))

			tail := append([]flow.Value(nil), l.Items[at:]...)
			l.Items = append(append(l.Items[:at:at], items...), tail...)

			return flow.Value{Kind: flow.None}
		}

		m.Absorb(c)

		return c.Result()
	}

	h["append"] = func(m *flow.Machine, c *flow.Call) flow.Value { return grow(m, c, -1, c.Val(0, "")) }
	h["add"] = h["append"]
	h["appendleft"] = func(m *flow.Machine, c *flow.Call) flow.Value { return grow(m, c, 0, c.Val(0, "")) }
	h["insert"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		at := -1
		if v := c.Val(0, ""); v.Kind == flow.Int && v.Int >= 0 {
			at = int(min(v.Int, 1<<20))
		}

		return grow(m, c, at, c.Val(1, ""))
	}
	h["extend"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		items, ok := m.Elements(c.Val(0, ""))
		if !ok {
			t, _ := c.Sources()

			if l := c.Recv.List(); c.Recv.Kind == flow.Array {
				l.Open = true
				l.Rest |= t
			}

			m.Absorb(c)

			return flow.Value{Kind: flow.None}
		}

		return grow(m, c, -1, items...)
	}
	h["reverse"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		if l := c.Recv.List(); c.Recv.Kind == flow.Array {
			for i, j := 0, len(l.Items)-1; i < j; i, j = i+1, j-1 {
				l.Items[i], l.Items[j] = l.Items[j], l.Items[i]
			}
		}

		return flow.Value{Kind: flow.None}
	}
	h["pop"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		switch c.Recv.Kind {
		case flow.Record:
			return m.Item(c.Recv, c.Val(0, ""), c.ID)
		case flow.Array:
			if l := c.Recv.List(); len(l.Items) > 0 && len(l.Items) <= 64 {
				return flow.OneOf(l.Items)
			}
		}

		return c.Recv.Forget()
	}
	h["copy"] = func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv }
	h["get"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Recv.Kind == flow.Record {
			v := m.Item(c.Recv, c.Val(0, ""), c.ID)
			if v.Kind == flow.Unknown && len(c.Args) > 1 {
				return flow.Join(c.Args[1], v)
			}

			return v
		}

		return c.Result()
	}
	h["setdefault"] = h["get"]
	h["update"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		t := c.Recv.Table()
		if c.Recv.Kind != flow.Record {
			m.Absorb(c)

			return c.Result()
		}

		if from := c.Val(0, "").Table(); from != nil {
			for _, k := range from.Keys {
				t.Set(k, from.Values[k])
			}
		} else if len(c.Args) > 0 {
			taint, _ := c.Args[0].Sources()
			t.Open = true
			t.Rest |= taint
		}

		for _, k := range c.Kw {
			t.Set(k.Name, k.Value)
		}

		return flow.Value{Kind: flow.None}
	}
	h["keys"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if items, ok := m.Elements(c.Recv); ok && c.Recv.Kind == flow.Record {
			return flow.Items(items...)
		}

		return c.Recv.Forget()
	}
	h["values"] = func(_ *flow.Machine, c *flow.Call) flow.Value { return entries(c.Recv, false) }
	h["items"] = func(_ *flow.Machine, c *flow.Call) flow.Value { return entries(c.Recv, true) }
}

func entries(v flow.Value, pairs bool) flow.Value {
	t := v.Table()
	if v.Kind != flow.Record || t.Open {
		out := v.Forget()
		if pairs {
			return flow.Items(flow.Items(out, out))
		}

		return flow.Items(out)
	}

	out := make([]flow.Value, 0, len(t.Keys))

	for _, k := range t.Keys {
		if pairs {
			out = append(out, flow.Items(flow.Text(k), t.Values[k]))
		} else {
			out = append(out, t.Values[k])
		}
	}

	return flow.Items(out...)
}
