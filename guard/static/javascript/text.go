package javascript

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineText defines what builds texts and arrays, so that constants are
// folded through it.
func defineText(l *flow.Language) {
	b := l.Builtins

	b.Def("String.fromCharCode String.fromCodePoint", func(_ *flow.Machine, c *flow.Call) flow.Value {
		out := flow.Value{Kind: flow.Str, Built: true, Taint: effect.TaintDecoded}

		var s strings.Builder

		for _, a := range c.Args {
			if a.Kind != flow.Int || a.Int < 0 || a.Int > utf8.MaxRune {
				return c.Result().With(effect.TaintDecoded)
			}

			s.WriteRune(rune(a.Int))

			out.Taint |= a.Taint
		}

		if c.Open {
			return c.Result().With(effect.TaintDecoded)
		}

		out.Text = s.String()

		return out
	})
	b.Def("String", func(_ *flow.Machine, c *flow.Call) flow.Value { return asText(c.Val(0, "")) })
	b.Def("String.raw", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	b.Def("Number parseInt parseFloat BigInt", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if v.Kind == flow.Int {
			return v
		}

		base := 0
		if w, ok := c.Arg(1, ""); ok && w.Kind == flow.Int {
			base = int(w.Int)
		}

		if v.IsConst() && base >= 0 && base <= 36 && base != 1 {
			s := strings.TrimSpace(v.Text)
			if base == 16 {
				s = strings.TrimPrefix(s, "0x")
			}

			if base == 0 {
				s = strings.TrimLeft(s, "0")
				if s == "" {
					s = "0"
				} else if strings.HasPrefix(s, "x") {
					s = "0" + s
				}
			}

			if n, err := strconv.ParseInt(s, base, 64); err == nil {
				return flow.Value{Kind: flow.Int, Int: n, Taint: v.Taint}
			}
		}

		return v.Forget()
	})
	b.Def("atob", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "base64", c.Val(0, ""), flow.Str)
	})
	b.Def("unescape decodeURIComponent decodeURI", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if v.IsConst() && !strings.Contains(v.Text, "%") {
			return v
		}

		if v.IsConst() && strings.Contains(v.Text, "%u") {
			v.Text = flow.Escapes(strings.ReplaceAll(v.Text, "%u", `\u`), true, false)
		}

		return m.Decoded(c, "url", v, flow.Str)
	})
	b.Def("btoa escape encodeURIComponent encodeURI JSON.stringify JSON.parse", func(m *flow.Machine, c *flow.Call) flow.Value {
		environment(m, c, c.Val(0, ""))

		return c.Val(0, "").Forget()
	})
	l.Root.Def("querystring.stringify querystring.escape qs.stringify util.inspect util.format", func(m *flow.Machine, c *flow.Call) flow.Value {
		environment(m, c, c.Val(0, ""))

		return c.Result()
	})

	b.Def("Buffer.from Buffer Uint8Array Uint8Array.from Buffer.concat Float64Array Float32Array Int32Array Uint32Array Uint16Array", makeBuffer)
	l.Root.At("buffer").Link("Buffer", b.At("Buffer"))
	b.Def("Buffer.alloc Buffer.allocUnsafe Array ArrayBuffer", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if c.Sym.Name == "Array" && (len(c.Args) != 1 || v.Kind != flow.Int) {
			return flow.Items(append([]flow.Value(nil), c.Args...)...)
		}

		if v.Kind == flow.Int && v.Int >= 64<<20 {
			m.Emit(c, effect.Effect{Kind: effect.Alloc, Target: effect.Const("memory"), Data: v.Value()})
		}

		if c.Sym.Name == "Array" && v.Kind == flow.Int && v.Int >= 0 && v.Int < 4096 {
			return flow.Items(make([]flow.Value, v.Int)...)
		}

		if v.Kind == flow.Int && v.Int > 0 {
			return flow.Block(v.Int)
		}

		return flow.Value{}
	})
	b.Def("Array.from Array.of", func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Sym.Short() == "of" {
			return flow.Items(append([]flow.Value(nil), c.Args...)...)
		}

		v := c.Val(0, "")
		f := c.Val(1, "")

		if t := v.Table(); v.Kind == flow.Record {
			if n, ok := t.Values["length"]; ok && n.Kind == flow.Int {
				return counted(m, c, f, n.Int)
			}
		}

		items, ok := m.Elements(v)
		if !ok {
			return c.Result()
		}

		if f, ok := c.Arg(1, ""); ok {
			return mapItems(m, c, f, items)
		}

		return flow.Items(append([]flow.Value(nil), items...)...)
	})
	b.Def("TextDecoder().decode TextEncoder().encode", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if v.Kind == flow.Bytes {
			return bufferText(v, "utf8")
		}

		return v
	})
	b.Def("identity()", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })

	for _, name := range []string{"String.fromCharCode", "String.fromCodePoint", "parseInt", "Number", "String"} {
		b.At(name).Cheap = true
	}

	defineTextMethods(l.Methods)
	defineArrayMethods(l.Methods)
}

// fewIndices is how many indices of an array are told apart.
const fewIndices = 16

// indexOf is an index of an array of n items.
func indexOf(n int) flow.Value { return flow.Value{Many: n > fewIndices} }

// counted is Array.from({length: n}, f).
func counted(m *flow.Machine, c *flow.Call, f flow.Value, n int64) flow.Value {
	if !f.First().Callable() {
		return flow.Items(make([]flow.Value, max(0, min(n, 256)))...)
	}

	if n > fewIndices {
		return flow.Items(m.InLoop(func() flow.Value { return m.CallValue(f, c.ID, flow.Value{}, flow.Value{Many: true}) }))
	}

	out := make([]flow.Value, 0, max(n, 0))
	for i := range n {
		out = append(out, m.CallValue(f, c.ID, flow.Value{}, flow.Number(i)))
	}

	return flow.Items(out...)
}

func asText(v flow.Value) flow.Value {
	switch v.Kind {
	case flow.Int:
		return flow.Value{Kind: flow.Str, Text: strconv.FormatInt(v.Int, 10), Taint: v.Taint, Origin: v.Origin}
	case flow.Str:
		return v
	case flow.Bytes:
		return bufferText(v, "utf8")
	}

	return v.Forget()
}

// makeBuffer answers Buffer.from(text, encoding) and Buffer.from([codes]).
func makeBuffer(m *flow.Machine, c *flow.Call) flow.Value {
	v, encoding := c.Val(0, ""), c.Val(1, "")

	switch {
	case v.Kind == flow.Int && v.Int > 0:
		return flow.Block(v.Int)
	case v.Kind == flow.Bytes:
		return v
	case v.Kind == flow.Array && c.Sym.Short() != "concat":
		out := flow.Value{Kind: flow.Bytes, Built: true, Taint: effect.TaintDecoded}

		var s []byte

		for _, it := range v.List().Items {
			if it.Kind != flow.Int {
				return v.Forget()
			}

			s = append(s, byte(it.Int))
		}

		if v.List().Open {
			return v.Forget()
		}

		out.Text = string(s)

		return out
	case encoding.IsText():
		switch strings.ToLower(encoding.Text) {
		case "base64", "base64url":
			return m.Decoded(c, "base64", v, flow.Bytes)
		case "hex":
			return m.Decoded(c, "hex", v, flow.Bytes)
		}
	}

	if v.Kind == flow.Str && v.IsConst() {
		v.Kind = flow.Bytes

		return v
	}

	if v.Kind == flow.Str {
		return v
	}

	return v.Forget()
}

// bufferText is bytes as text in an encoding.
func bufferText(v flow.Value, encoding string) flow.Value {
	if v.Kind != flow.Bytes {
		return v
	}

	v.Kind = flow.Str

	switch strings.ToLower(encoding) {
	case "hex":
		v.Text = hex.EncodeToString([]byte(v.Text))
	case "base64", "base64url":
		v.Text = base64.StdEncoding.EncodeToString([]byte(v.Text))
	case "latin1", "binary":
		v.Text = flow.Latin1(v.Text)
	case "utf16le", "ucs2":
		v.Text = flow.DecodeUTF16(v.Text, false)
	default:
		if !utf8.ValidString(v.Text) {
			v.Text = flow.Latin1(v.Text)
		}
	}

	return v
}

func mapText(f func(string) string) flow.Handler {
	return func(_ *flow.Machine, c *flow.Call) flow.Value {
		if !c.Recv.IsText() {
			return c.Result()
		}

		out := c.Recv
		out.Text = f(out.Text)
		out.Built = true

		return out
	}
}

func defineTextMethods(h map[string]flow.Handler) {
	h["toLowerCase"], h["toUpperCase"] = mapText(strings.ToLower), mapText(strings.ToUpper)
	h["trim"] = mapText(strings.TrimSpace)
	h["trimStart"] = mapText(func(s string) string { return strings.TrimLeft(s, " \t\r\n") })
	h["trimEnd"] = mapText(func(s string) string { return strings.TrimRight(s, " \t\r\n") })
	h["normalize"] = mapText(func(s string) string { return s })
	h["toString"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		switch c.Recv.Kind {
		case flow.Bytes:
			return bufferText(c.Recv, c.Val(0, "").Text)
		case flow.Int:
			base := 10
			if v := c.Val(0, ""); v.Kind == flow.Int && v.Int >= 2 && v.Int <= 36 {
				base = int(v.Int)
			}

			return flow.Value{Kind: flow.Str, Text: strconv.FormatInt(c.Recv.Int, base), Taint: c.Recv.Taint, Built: true}
		case flow.Str:
			return c.Recv
		}

		return c.Recv.Forget()
	}
	h["toLocaleString"], h["valueOf"] = h["toString"], h["toString"]
	h["charCodeAt"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		i := c.Val(0, "")
		if len(c.Args) == 0 {
			i = flow.Number(0)
		}

		if !c.Recv.IsConst() || i.Kind != flow.Int || i.Int < 0 {
			return c.Recv.Forget()
		}

		if r := []rune(c.Recv.Text); i.Int < int64(len(r)) {
			return flow.Value{Kind: flow.Int, Int: int64(r[i.Int]), Taint: c.Recv.Taint, Origin: c.Recv.Origin}
		}

		return flow.Value{}
	}
	h["codePointAt"] = h["charCodeAt"]
	h["charAt"] = func(m *flow.Machine, c *flow.Call) flow.Value { return m.Item(c.Recv, c.Val(0, ""), c.ID) }
	h["at"] = h["charAt"]
	h["concat"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		out := c.Recv
		for _, a := range c.Args {
			if out.Kind == flow.Array && a.Kind != flow.Array {
				a = flow.Items(a)
			}

			out = m.Operate('+', out, a, c.ID)
		}

		return out
	}
	h["replace"] = replace
	h["replaceAll"] = replace
	cut := func(m *flow.Machine, c *flow.Call) flow.Value {
		a, b := c.Val(0, ""), c.Val(1, "")
		if c.Name == "substr" && b.Kind == flow.Int && a.Kind == flow.Int {
			b.Int += a.Int
		}

		return m.SliceOf(c.Recv, a, b, flow.Value{}, false)
	}
	h["slice"], h["substring"], h["substr"], h["subarray"] = cut, cut, cut, cut
	h["repeat"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Operate('*', c.Recv, c.Val(0, ""), c.ID)
	}
	h["split"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		sep := c.Val(0, "")
		if !c.Recv.IsText() {
			return c.Recv.Forget()
		}

		if sep.IsConst() && sep.Text == "" && len(c.Args) > 0 {
			items, ok := m.Elements(c.Recv)
			if ok {
				return flow.Items(items...)
			}
		}

		if !sep.IsConst() || len(c.Args) == 0 {
			return flow.Items(c.Recv.Forget())
		}

		var out []flow.Value
		for part := range strings.SplitSeq(c.Recv.Text, sep.Text) {
			out = append(out, flow.Value{Kind: flow.Str, Text: part, Taint: c.Recv.Taint, Origin: c.Recv.Origin, Built: true})
		}

		return flow.Items(out...)
	}
	quiet := func(*flow.Machine, *flow.Call) flow.Value { return flow.Value{} }
	for _, name := range strings.Fields("startsWith endsWith includes indexOf lastIndexOf localeCompare test hasOwnProperty") {
		h[name] = quiet
	}
}

// replace folds text.replace(from, to) for texts, and for regular expressions
// that only list characters.
func replace(m *flow.Machine, c *flow.Call) flow.Value {
	from, to := c.Val(0, ""), c.Val(1, "")
	if !c.Recv.IsConst() || !from.IsConst() {
		if to.Callable() {
			m.CallValue(to, c.ID, c.Recv.Forget())
		}

		return c.Result()
	}

	isRegexp := m.IsRegexp(c.Node(0, ""))
	all := c.Name == "replaceAll" || isRegexp && strings.HasSuffix(m.After(c.Node(0, "")), "g")
	out := c.Recv
	out.Built = true

	text := from.Text
	if isRegexp {
		// One character or word, possibly escaped.
		plain := strings.ReplaceAll(text, `\`, "")
		if strings.ContainsAny(plain, "[](){}*+?^$|.") && text != `\.` {
			class := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
			if strings.HasPrefix(text, "[") && !strings.ContainsAny(class, "[]^-\\") && to.IsConst() {
				out.Text = strings.Map(func(r rune) rune {
					if strings.ContainsRune(class, r) {
						if to.Text == "" {
							return -1
						}

						n, _ := utf8.DecodeRuneInString(to.Text)

						return n
					}

					return r
				}, out.Text)

				return out
			}

			if to.Callable() {
				m.CallValue(to, c.ID, c.Recv)
			}

			return c.Result()
		}

		text = plain
	}

	if !to.IsConst() || len(out.Text)*(len(to.Text)+1) > effect.MaxText {
		return c.Result()
	}

	n := 1
	if all {
		n = -1
	}

	out.Text = strings.Replace(out.Text, text, to.Text, n)

	return out
}

// mapItems calls a function with each item.
func mapItems(m *flow.Machine, c *flow.Call, f flow.Value, items []flow.Value) flow.Value {
	if !m.Worth(len(items), f) {
		return flow.Items(m.InLoop(func() flow.Value { return m.CallValue(f, c.ID, flow.OneOf(items), indexOf(len(items))) }))
	}

	out := make([]flow.Value, 0, len(items))

	for i, it := range items {
		if m.Over() {
			break
		}

		out = append(out, m.CallValue(f, c.ID, it, flow.Number(int64(i)), c.Recv))
	}

	return flow.Items(out...)
}

func defineArrayMethods(h map[string]flow.Handler) {
	each := func(m *flow.Machine, c *flow.Call) flow.Value {
		f := c.Val(0, "")
		items, ok := m.Elements(c.Recv)

		switch {
		case !f.First().Callable():
			return c.Result()
		case !ok:
			out := m.InLoop(func() flow.Value { return m.CallValue(f, c.ID, m.Element(c.Recv), flow.Value{}, c.Recv) })

			switch c.Name {
			case "map", "flatMap":
				return flow.Items(out)
			case "filter":
				return c.Recv
			}

			return m.Element(c.Recv)
		case !m.Worth(len(items), f):
			out := m.InLoop(func() flow.Value { return m.CallValue(f, c.ID, flow.OneOf(items), indexOf(len(items)), c.Recv) })
			if c.Name == "map" || c.Name == "flatMap" {
				return flow.Items(out)
			}

			return c.Recv
		}

		mapped := m.InLoop(func() flow.Value { return mapItems(m, c, f, items) })

		switch c.Name {
		case "map", "flatMap":
			return mapped
		case "filter":
			return c.Recv
		case "find", "findLast":
			return flow.OneOf(items)
		}

		return flow.Value{}
	}
	for _, name := range strings.Fields("map forEach filter find findLast some every flatMap findIndex") {
		h[name] = each
	}

	h["reduce"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		items, ok := m.Elements(c.Recv)
		f := c.Val(0, "")
		acc, seeded := c.Arg(1, "")

		if !ok || len(items) == 0 || !m.Worth(len(items), f) {
			return m.CallValue(f, c.ID, acc, m.Element(c.Recv)).From(c.Recv)
		}

		if !seeded {
			acc, items = items[0], items[1:]
		}

		for i, it := range items {
			if m.Over() {
				break
			}

			acc = m.CallValue(f, c.ID, acc, it, flow.Number(int64(i)))
		}

		return acc
	}
	h["join"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		items, ok := m.Elements(c.Recv)
		if !ok {
			return c.Result()
		}

		sep, given := c.Arg(0, "")
		if !given {
			sep = flow.Text(",")
		}

		return m.Join(flow.Value{Kind: flow.Str, Built: true}, sep, items)
	}
	h["reverse"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		l := c.Recv.List()
		if c.Recv.Kind != flow.Array {
			return c.Recv.Forget()
		}

		out := make([]flow.Value, len(l.Items))
		for i, v := range l.Items {
			if v.IsConst() {
				v.Taint |= effect.TaintDecoded
			}

			out[len(out)-1-i] = v
		}

		l.Items = out

		return c.Recv
	}
	h["toReversed"] = h["reverse"]
	h["push"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if l := c.Recv.List(); c.Recv.Kind == flow.Array && len(l.Items) < 20_000 {
			l.Items = append(l.Items, c.Args...)
			l.Open = l.Open || c.Open

			return flow.Value{}
		}

		m.Absorb(c)

		return flow.Value{}
	}
	h["unshift"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if l := c.Recv.List(); c.Recv.Kind == flow.Array && len(l.Items) < 20_000 {
			m.Copied(len(l.Items))

			l.Items = append(append([]flow.Value(nil), c.Args...), l.Items...)

			return flow.Value{}
		}

		m.Absorb(c)

		return flow.Value{}
	}
	take := func(m *flow.Machine, c *flow.Call) flow.Value {
		l := c.Recv.List()
		if c.Recv.Kind != flow.Array || len(l.Items) == 0 {
			return m.Element(c.Recv)
		}

		if c.Name == "pop" {
			return l.Items[len(l.Items)-1]
		}

		m.Copied(len(l.Items))

		first := l.Items[0]
		// A rotating array of texts: shift and push.
		l.Items = append([]flow.Value(nil), l.Items[1:]...)

		return first
	}
	h["pop"], h["shift"] = take, take
	h["flat"] = func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv }
	h["sort"], h["fill"] = h["flat"], h["flat"]
	h["values"] = h["flat"]
	h["keys"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if l := c.Recv.List(); c.Recv.Kind == flow.Array {
			return flow.Numbers(0, int64(len(l.Items)), 1)
		}

		return flow.Value{}
	}
	h["entries"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		items, ok := m.Elements(c.Recv)
		if !ok {
			return flow.Items(flow.Items(flow.Value{}, m.Element(c.Recv)))
		}

		out := make([]flow.Value, len(items))
		for i := range items {
			out[i] = flow.Items(flow.Number(int64(i)), items[i])
		}

		return flow.Items(out...)
	}

	// Functions.
	h["call"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.CallValue(c.Recv, c.ID, tail(c.Args, 1)...)
	}
	h["apply"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.CallValue(c.Recv, c.ID, itemsOf(c.Val(1, ""))...)
	}
	h["bind"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		f := c.Recv
		if !f.Callable() {
			return c.Recv
		}

		return flow.Value{Kind: flow.Method, X: &flow.Bound{Callee: &f, Args: tail(c.Args, 1)}}
	}

	// Promises stand for their values.
	h["then"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		if f := c.Val(0, ""); f.First().Callable() {
			return m.CallValue(f, c.ID, c.Recv)
		}

		return c.Recv
	}
	h["catch"] = func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv }
	h["finally"] = h["catch"]
}
