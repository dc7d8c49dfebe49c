package rscript

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

func defineText(b *flow.Sym) {
	b.DefNamed("c list", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Kw) > 0 {
			t := &flow.Table{}
			for i, a := range c.Args {
				t.Set(strconv.Itoa(i+1), a)
			}

			for _, k := range c.Kw {
				t.Set(k.Name, k.Value)
			}

			return flow.Value{Kind: flow.Record, X: t}
		}

		var out []flow.Value

		for _, a := range c.Args {
			if list, ok := m.Elements(a); ok && a.Kind != flow.Str && c.Sym.Name == "c" {
				out = append(out, list...)
			} else {
				out = append(out, a)
			}
		}

		return flow.Items(out...)
	})
	b.DefNamed("seq seq_len seq_along", func(_ *flow.Machine, c *flow.Call) flow.Value {
		from, to := c.Val(0, "from"), c.Val(1, "to")
		if c.Sym.Name == "seq_len" {
			from, to = flow.Number(1), from
		}

		if from.Kind != flow.Int || to.Kind != flow.Int {
			return flow.Value{Many: true}
		}

		if to.Int < from.Int {
			return flow.Numbers(from.Int, to.Int-1, -1)
		}

		return flow.Numbers(from.Int, to.Int+1, 1)
	})
	b.DefNamed("paste paste0 file.path", func(m *flow.Machine, c *flow.Call) flow.Value {
		sep := flow.Text(" ")

		switch c.Sym.Name {
		case "paste0":
			sep = flow.Text("")
		case "file.path":
			sep = flow.Text("/")
		}

		if v, ok := c.Arg(-1, "sep"); ok {
			sep = v
		}

		var parts []flow.Value

		for _, a := range c.Args {
			// A vector is pasted item by item; with collapse it becomes one text.
			list, ok := m.Elements(a)
			if !ok || a.Kind == flow.Str {
				parts = append(parts, a)

				continue
			}

			if v, ok := c.Arg(-1, "collapse"); ok && v.IsText() {
				parts = append(parts, m.Join(flow.Value{Kind: flow.Str, Built: true}, v, list))
			} else {
				parts = append(parts, flow.OneOf(list))
			}
		}

		return m.Join(flow.Value{Kind: flow.Str, Built: true}, sep, parts)
	})
	b.DefNamed("sprintf gettextf", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 0 {
			return flow.Value{}
		}

		// A vector among the arguments makes a text of each of its items.
		args := append([]flow.Value(nil), c.Args[1:]...)
		for i := range args {
			if args[i].Kind == flow.Array || args[i].Kind == flow.Instance {
				args[i] = m.Element(args[i])
			}
		}

		return m.Percent(c.Args[0], flow.Items(args...))
	})
	b.DefNamed("glue str_glue", func(m *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	b.DefNamed("intToUtf8 rawToChar chr", func(m *flow.Machine, c *flow.Call) flow.Value {
		list, ok := m.Elements(c.Val(0, ""))
		if !ok {
			list = []flow.Value{c.Val(0, "")}
		}

		var s strings.Builder

		for _, it := range list {
			if it.Kind == flow.Bytes {
				s.WriteString(it.Text)

				continue
			}

			if it.Kind != flow.Int || it.Int < 0 || it.Int > utf8.MaxRune {
				return c.Result().With(effect.TaintDecoded)
			}

			s.WriteRune(rune(it.Int))
		}

		return flow.Value{Kind: flow.Str, Text: s.String(), Taint: effect.TaintDecoded, Built: true}
	})
	b.DefNamed("utf8ToInt charToRaw", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if !v.IsConst() {
			return v.Forget()
		}

		var out []flow.Value
		for _, r := range v.Text {
			out = append(out, flow.Number(int64(r)))
		}

		return flow.Items(out...)
	})
	b.DefNamed("as.raw as.hexmode as.integer strtoi bitwXor xor", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")

		switch c.Sym.Name {
		case "strtoi":
			base := 10
			if w, ok := c.Arg(1, "base"); ok && w.Kind == flow.Int {
				base = int(w.Int)
			}

			var out []flow.Value

			for _, it := range items(v) {
				n, err := strconv.ParseInt(strings.TrimPrefix(it.Text, "0x"), base, 64)
				if err != nil {
					return v.Forget()
				}

				out = append(out, flow.Number(n))
			}

			return scalar(flow.Items(out...))
		case "bitwXor", "xor":
			var out []flow.Value

			k := items(c.Val(1, ""))
			for i, it := range items(v) {
				if len(k) == 0 {
					return v.Forget()
				}

				out = append(out, m.Operate('^', it, k[i%len(k)], c.ID))
			}

			// R's own ^ is a power, so that the numbers are xored here.
			for i, it := range items(v) {
				if kk := k[i%len(k)]; it.Kind == flow.Int && kk.Kind == flow.Int {
					out[i] = flow.Number(it.Int ^ kk.Int)
				}
			}

			return scalar(flow.Items(out...))
		}

		return v
	})
	b.DefNamed("rev", func(m *flow.Machine, c *flow.Call) flow.Value {
		list, ok := m.Elements(c.Val(0, ""))
		if !ok {
			return c.Result()
		}

		out := make([]flow.Value, len(list))
		for i, v := range list {
			if v.IsConst() {
				v.Taint |= effect.TaintDecoded
			}

			out[len(list)-1-i] = v
		}

		return flow.Items(out...)
	})
	b.DefNamed("strsplit str_split", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v, sep := scalar(c.Val(0, "x")), c.Val(1, "split")
		if !v.IsConst() || !sep.IsConst() {
			return flow.Items(flow.Items(v.Forget()))
		}

		var out []flow.Value
		for part := range strings.SplitSeq(v.Text, sep.Text) {
			out = append(out, flow.Value{Kind: flow.Str, Text: part, Taint: v.Taint, Built: true})
		}

		return flow.Items(flow.Items(out...))
	})
	b.DefNamed("toupper tolower trimws", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := scalar(c.Val(0, "x"))
		if v.IsText() {
			switch c.Sym.Name {
			case "toupper":
				v.Text = strings.ToUpper(v.Text)
			case "tolower":
				v.Text = strings.ToLower(v.Text)
			default:
				v.Text = strings.TrimSpace(v.Text)
			}
		}

		return v
	})
	b.DefNamed("gsub sub str_replace_all str_replace chartr", func(_ *flow.Machine, c *flow.Call) flow.Value {
		from, to, v := c.Val(0, "pattern"), c.Val(1, "replacement"), scalar(c.Val(2, "x"))
		if strings.HasPrefix(c.Sym.Name, "str_") {
			v, from, to = scalar(c.Val(0, "string")), c.Val(1, "pattern"), c.Val(2, "replacement")
		}

		if !v.IsConst() || !from.IsConst() || !to.IsConst() || from.Text == "" {
			return c.Result()
		}

		v.Built = true

		if c.Sym.Name == "chartr" {
			f, t := []rune(from.Text), []rune(to.Text)
			v.Taint |= effect.TaintDecoded
			v.Text = strings.Map(func(r rune) rune {
				for i := range f {
					if f[i] == r && i < len(t) {
						return t[i]
					}
				}

				return r
			}, v.Text)

			return v
		}

		if _, fixed := c.Arg(-1, "fixed"); !fixed && strings.ContainsAny(from.Text, `[]()*+?^$|.\{}`) {
			return c.Result()
		}

		if len(v.Text)*(len(to.Text)+1) > effect.MaxText {
			return c.Result()
		}

		v.Text = strings.ReplaceAll(v.Text, from.Text, to.Text)

		return v
	})
	b.DefNamed("substr substring str_sub", func(m *flow.Machine, c *flow.Call) flow.Value {
		v, from, to := scalar(c.Val(0, "x")), c.Val(1, "start"), c.Val(2, "stop")
		if from.Kind == flow.Int {
			from.Int--
		}

		return m.SliceOf(v, from, to, flow.Value{}, false)
	})
	b.DefNamed("base64decode base64_dec base64Decode base64_decode", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "base64", scalar(c.Val(0, "")), flow.Bytes)
	})
	b.DefNamed("hex2bin hex2raw", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "hex", scalar(c.Val(0, "")), flow.Bytes)
	})
	b.DefNamed("URLdecode url_unescape", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "url", scalar(c.Val(0, "")), flow.Str)
	})
	b.DefNamed("memDecompress", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "gzip", scalar(c.Val(0, "")), flow.Bytes)
	})
	b.DefNamed("rep numeric character integer vector matrix strrep raw rnorm runif", func(m *flow.Machine, c *flow.Call) flow.Value {
		n, ok := c.Arg(1, "times")
		if c.Sym.Name != "rep" && c.Sym.Name != "strrep" {
			n, ok = c.Arg(0, "length")
		}

		switch rows, cols := c.Val(1, "nrow"), c.Val(2, "ncol"); {
		case c.Sym.Name == "matrix" && rows.Kind == flow.Int && cols.Kind == flow.Int:
			n, ok = m.Operate('*', m.Operate('*', rows, cols, c.ID), flow.Number(8), c.ID), true
		case c.Sym.Name == "rnorm" || c.Sym.Name == "runif" || c.Sym.Name == "raw":
			n, ok = c.Arg(0, "n")
		}

		if ok && n.Kind == flow.Int && n.Int >= 64<<20 {
			m.Emit(c, effect.Effect{Kind: effect.Alloc, Target: effect.Const("memory"), Data: n.Value()})
		}

		if ok && n.Kind == flow.Int && n.Int > 0 {
			return flow.Block(n.Int)
		}

		return c.Val(0, "").Forget()
	})
}
