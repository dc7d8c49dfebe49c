package python

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

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

func makeBytes(m *flow.Machine, c *flow.Call) flow.Value {
	v := c.Val(0, "source")

	switch v.Kind {
	case flow.Bytes:
		return v
	case flow.Str:
		return encodeText(v, c.Val(1, "encoding").Text)
	case flow.Int:
		return m.Operate('*', flow.Value{Kind: flow.Bytes, Text: "\x00"}, v, c.ID)
	case flow.Array:
		var s []byte

		out := flow.Value{Kind: flow.Bytes, Taint: effect.TaintDecoded, Built: true}

		for _, it := range v.List().Items {
			if it.Kind != flow.Int {
				return v.Forget()
			}

			s = append(s, byte(it.Int))
			out.Taint |= it.Taint
		}

		if v.List().Open {
			return v.Forget()
		}

		out.Text = string(s)

		return out
	}

	return v.Forget()
}

// encodeText is text as bytes.
func encodeText(v flow.Value, encoding string) flow.Value {
	if !v.IsText() {
		return v.Forget()
	}

	if v.Kind == flow.Str {
		if strings.Contains(v.Text, effect.HoleText) {
			return v // Partly known text stays text, or what is known would be lost.
		}

		switch strings.ToLower(strings.ReplaceAll(encoding, "_", "-")) {
		case "latin1", "latin-1", "iso-8859-1", "l1", "cp1252":
			b := make([]byte, 0, len(v.Text))
			for _, r := range v.Text {
				b = append(b, byte(r))
			}

			v.Text = string(b)
		case "rot13", "rot-13":
			v.Text = flow.Rot13(v.Text)
			v.Taint |= effect.TaintDecoded

			return v
		}

		v.Kind = flow.Bytes
	}

	return v
}

// decodeText is bytes as text, in an encoding of characters or another one.
func decodeText(m *flow.Machine, c *flow.Call, v, encoding flow.Value) flow.Value {
	name := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(encoding.Text))
	if name == "" || !encoding.IsText() {
		name = "utf8"
	}

	switch name {
	case "rot13":
		return m.Decoded(c, "rot13", v, flow.Str)
	case "hex", "hexcodec", "base16":
		return m.Decoded(c, "hex", v, flow.Bytes)
	case "base64", "base64codec":
		return m.Decoded(c, "base64", v, flow.Bytes)
	case "zlib", "zip", "zlibcodec":
		return m.Decoded(c, "zlib", v, flow.Bytes)
	case "bz2", "bz2codec":
		return m.Decoded(c, "bz2", v, flow.Bytes)
	}

	if !v.IsConst() {
		return v
	}

	switch name {
	case "utf16", "utf16le", "u16":
		v.Text = flow.DecodeUTF16(strings.TrimPrefix(v.Text, "\xff\xfe"), false)
	case "utf16be":
		v.Text = flow.DecodeUTF16(v.Text, true)
	case "unicodeescape", "rawunicodeescape", "stringescape":
		v.Text = flow.Escapes(flow.Latin1(v.Text), true, false)
		v.Taint |= effect.TaintDecoded
	case "cp037", "cp500", "cp1026", "cp1140", "ebcdic", "ibm037", "ibm1026":
		v.Text = ebcdic(v.Text, name)
		v.Taint |= effect.TaintDecoded
	case "latin1", "iso88591", "l1", "cp1252", "cp437", "charmap":
		v.Text = flow.Latin1(v.Text)
	default:
		if !utf8.ValidString(v.Text) {
			v.Text = flow.Latin1(v.Text)
		}
	}

	v.Kind = flow.Str

	return v
}

// turkish are the characters in which code page 1026 differs from 037 and that
// code is written with.
var turkish = map[byte]rune{
	0x48: '{', 0x68: '[', 0x8c: '}', 0x8d: '`', 0xac: ']', 0xad: '$', 0xae: '@', 0xcc: '~', 0xdc: '\\', 0xec: '#', 0xfc: '"',
}

// ebcdic reads text in a code page that no Linux system uses otherwise.
func ebcdic(s, page string) string {
	var b strings.Builder

	for i := range len(s) {
		r := charmap.CodePage037.DecodeByte(s[i])
		if t, ok := turkish[s[i]]; ok && strings.HasSuffix(page, "1026") {
			r = t
		}

		b.WriteRune(r)
	}

	return b.String()
}

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

			if at < 0 || at > len(l.Items) {
				at = len(l.Items)
			}

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
