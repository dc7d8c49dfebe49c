package python

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineText defines what builds texts and containers, so that constants are
// folded through it.
func defineText(l *flow.Language) {
	b := l.Builtins

	b.Def("chr unichr", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if v.Kind != flow.Int || v.Int < 0 || v.Int > utf8.MaxRune {
			return v.Forget()
		}

		out := flow.Value{Kind: flow.Str, Text: string(rune(v.Int)), Taint: v.Taint, Origin: v.Origin, Built: true}
		if v.Int > ' ' {
			out.Taint |= effect.TaintDecoded
		}

		return out
	})
	b.Def("ord", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if !v.IsConst() || v.Text == "" {
			return v.Forget()
		}

		r, _ := utf8.DecodeRuneInString(v.Text)
		if v.Kind == flow.Bytes {
			r = rune(v.Text[0])
		}

		return flow.Value{Kind: flow.Int, Int: int64(r), Taint: v.Taint, Origin: v.Origin}
	})
	b.Def("int", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if v.Kind == flow.Int {
			return v
		}

		base := 10
		if w, ok := c.Arg(1, "base"); ok {
			base = int(w.Int)
		}

		if v.IsConst() && base >= 0 && base <= 36 && base != 1 {
			s := strings.TrimSpace(v.Text)
			if base != 0 && base != 10 {
				s = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(s, "0x"), "0b"), "0o")
			}

			if n, err := strconv.ParseInt(s, base, 64); err == nil {
				return flow.Value{Kind: flow.Int, Int: n, Taint: v.Taint, Origin: v.Origin}
			}
		}

		return v.Forget()
	})
	b.Def("str unicode", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "object")

		switch v.Kind {
		case flow.Str:
			return v
		case flow.Bytes:
			return decodeText(m, c, v, c.Val(1, "encoding"))
		case flow.Int:
			return flow.Value{Kind: flow.Str, Text: strconv.FormatInt(v.Int, 10), Taint: v.Taint, Origin: v.Origin}
		}

		if o := v.Object(); v.Kind == flow.Instance && o.Sym != nil && o.Sym.Path {
			return o.Main
		}

		return v.Forget()
	})
	b.Def("bytes bytearray memoryview", makeBytes)
	b.Def("bytes.fromhex bytearray.fromhex", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "hex", c.Val(0, ""), flow.Bytes)
	})
	b.Def("str.maketrans bytes.maketrans", func(_ *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 1 {
			return c.Args[0]
		}

		t := &flow.Table{}
		from, to := []rune(c.Val(0, "").Text), []rune(c.Val(1, "").Text)

		for i := range from {
			if i < len(to) {
				t.Set(strconv.Itoa(int(from[i])), flow.Text(string(to[i])))
			}
		}

		for _, r := range c.Val(2, "").Text {
			t.Set(strconv.Itoa(int(r)), flow.Text(""))
		}

		return flow.Value{Kind: flow.Record, X: t}
	})
	b.Def("hex bin oct", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if v.Kind != flow.Int {
			return v.Forget()
		}

		prefix, base := "0x", 16

		switch c.Sym.Short() {
		case "bin":
			prefix, base = "0b", 2
		case "oct":
			prefix, base = "0o", 8
		}

		return flow.Value{Kind: flow.Str, Text: prefix + strconv.FormatInt(v.Int, base), Taint: v.Taint}
	})
	b.Def("len isinstance issubclass hasattr callable id hash print bool type super object", quiet)
	b.Def("len", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")

		switch {
		case v.Kind == flow.Array && !v.List().Open:
			return flow.Number(int64(len(v.List().Items)))
		case v.Kind == flow.Bytes:
			return flow.Number(int64(len(v.Text)))
		case v.IsConst():
			return flow.Number(int64(utf8.RuneCountInString(v.Text)))
		}

		return flow.Value{}
	})
	b.Def("super", func(m *flow.Machine, _ *flow.Call) flow.Value { return m.Super() })
	b.Def("print", func(m *flow.Machine, c *flow.Call) flow.Value {
		// print(x, file=f) writes.
		if f, ok := c.Arg(-1, "file"); ok {
			return m.CallValue(m.Attribute(f, "write", c.ID), c.ID, c.Val(0, ""))
		}

		return flow.Value{Kind: flow.None}
	})
	b.Def("list tuple set frozenset sorted iter", func(m *flow.Machine, c *flow.Call) flow.Value {
		v, ok := c.Arg(0, "")
		if !ok {
			return flow.Items()
		}

		if items, ok := m.Elements(v); ok {
			return flow.Items(append([]flow.Value(nil), items...)...)
		}

		if v.Kind == flow.Instance {
			return v
		}

		return v.Forget()
	})
	b.Def("reversed", func(m *flow.Machine, c *flow.Call) flow.Value {
		items, ok := m.Elements(c.Val(0, ""))
		if !ok {
			return c.Val(0, "").Forget()
		}

		out := make([]flow.Value, len(items))
		for i, v := range items {
			if v.IsConst() {
				v.Taint |= effect.TaintDecoded
			}

			out[len(items)-1-i] = v
		}

		return flow.Items(out...)
	})
	b.Def("next", func(m *flow.Machine, c *flow.Call) flow.Value {
		if items, ok := m.Elements(c.Val(0, "")); ok && len(items) > 0 && len(items) <= 64 {
			return flow.OneOf(items)
		}

		return c.Val(0, "").Forget()
	})
	b.Def("range xrange", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return numbers(c)
	})
	b.Def("zip", func(m *flow.Machine, c *flow.Call) flow.Value {
		var lists [][]flow.Value

		n := maxZip

		for _, a := range c.Args {
			// itertools.cycle(key) goes round and round.
			cycle := a.Kind == flow.Instance && a.Object().Sym != nil && a.Object().Sym.Name == "itertools.cycle()"
			if cycle {
				a = a.Object().Main
			}

			items, ok := m.Elements(a)
			if !ok || len(items) == 0 {
				return c.Result()
			}

			lists = append(lists, items)

			if !cycle {
				n = min(n, len(items))
			}
		}

		if len(lists) == 0 {
			return flow.Items()
		}

		out := make([]flow.Value, n)
		for i := range n {
			row := make([]flow.Value, len(lists))
			for j := range lists {
				row[j] = lists[j][i%len(lists[j])]
			}

			out[i] = flow.Items(row...)
		}

		return flow.Items(out...)
	})
	l.Root.At("itertools.cycle()")
	b.Def("enumerate", func(m *flow.Machine, c *flow.Call) flow.Value {
		items, ok := m.Elements(c.Val(0, ""))
		if !ok || len(items) > 4096 {
			return flow.Items(flow.Items(flow.Value{}, c.Val(0, "").Forget()))
		}

		out := make([]flow.Value, len(items))
		for i, v := range items {
			out[i] = flow.Items(flow.Number(int64(i)), v)
		}

		return flow.Items(out...)
	})
	b.Def("dict", func(m *flow.Machine, c *flow.Call) flow.Value {
		t := &flow.Table{}

		if v, ok := c.Arg(0, ""); ok {
			if from := v.Table(); from != nil {
				for _, k := range from.Keys {
					t.Set(k, from.Values[k])
				}
			} else {
				if v.Kind == flow.Symbol {
					wholeEnvironment(m, c, v)
				}

				t.Open = true
				t.Rest, t.Origin = v.Sources()
			}
		}

		for _, k := range c.Kw {
			t.Set(k.Name, k.Value)
		}

		return flow.Value{Kind: flow.Record, X: t}
	})
	b.Def("input raw_input", func(*flow.Machine, *flow.Call) flow.Value { return flow.Tainted(effect.TaintInput, "") })
	b.Def("repr ascii format", func(_ *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(0, ""); c.Sym.Short() == "format" && v.IsText() {
			return v
		}

		return c.Val(0, "").Forget()
	})
	defineMethods(l.Methods)
}

// maxZip bounds how many rows zip makes.
const maxZip = 4096

// quiet is a function whose result says nothing of its arguments.
func quiet(*flow.Machine, *flow.Call) flow.Value { return flow.Value{} }

func numbers(c *flow.Call) flow.Value {
	from, to, by := int64(0), c.Val(0, ""), int64(1)
	for _, a := range c.Args {
		if a.Kind != flow.Int {
			return flow.Value{Many: true}
		}
	}

	if len(c.Args) > 1 {
		from, to = c.Args[0].Int, c.Args[1]
	}

	if len(c.Args) > 2 {
		by = c.Args[2].Int
	}

	if to.Kind != flow.Int {
		return flow.Value{Many: true}
	}

	return flow.Numbers(from, to.Int, by)
}
