package flow

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// eval gives the value of an expression, and reports what computing it does.
func (m *Machine) eval(id tree.ID) Value {
	if id == 0 || !m.step() {
		return Value{}
	}

	if m.depth >= maxDepth {
		m.deep = true

		return Value{}
	}

	m.depth++
	v := m.evalNode(id)
	m.depth--

	return v
}

// Eval is eval for handlers.
func (m *Machine) Eval(id tree.ID) Value { return m.eval(id) }

func (m *Machine) evalNode(id tree.ID) Value {
	n := *m.T.At(id)

	switch n.Kind {
	case tree.Name:
		return m.evalName(m.T.Text(id))
	case tree.Num:
		return parseNumber(m.T.Text(id))
	case tree.Str:
		return m.literal(id, n)
	case tree.Format:
		return m.format(n)
	case tree.Attr:
		return m.attr(m.eval(n.A), m.T.Text(id), id)
	case tree.Index:
		return m.index(m.eval(n.A), n.B, id)
	case tree.Call:
		return m.evalCall(id, n)
	case tree.Binary:
		return m.binary(id)
	case tree.Unary:
		return m.unary(n)
	case tree.Cond:
		m.eval(n.B)

		var a, b Value

		m.branch(func() { a, b = m.eval(n.A), m.eval(n.C) })

		return Join(a, b)
	case tree.Seq:
		return m.sequence(n)
	case tree.Dict:
		return m.dict(n)
	case tree.Comp:
		return m.comprehension(n)
	case tree.Assign:
		return m.assignment(n)
	case tree.As:
		v := m.eval(n.A)
		m.bindTo(n.B, v)

		return v
	case tree.Func:
		return m.function(id, nil)
	case tree.Class:
		return m.class(id, n)
	case tree.Star, tree.Kw:
		return m.eval(n.A)
	case tree.Interp:
		return m.eval(n.A)
	case tree.Regexp:
		return Text(m.T.Text(id))
	case tree.Magic:
		if m.L.Magic != nil {
			return m.L.Magic(m, id)
		}
	case tree.Slice:
		m.eval(n.A)
		m.eval(n.B)
		m.eval(n.C)
	case tree.Block:
		m.exec(id)
	default:
	}

	return Value{}
}

func (m *Machine) evalName(name string) Value {
	switch name {
	case "this":
		if !m.L.Receiver && m.frame != nil {
			return m.frame.this
		}
	case thrown:
		return m.thrown
	case "arguments":
		if f := m.frame; f != nil && m.L.BlockScope {
			return Value{Kind: Array, X: &List{Items: f.args, Open: f.unknown}}
		}
	case "None", "null", "undefined", "NULL":
		return Value{Kind: None}
	case "True", "true", "TRUE":
		return Truth(true)
	case "False", "false", "FALSE":
		return Truth(false)
	}

	return m.name(name)
}

func (m *Machine) literal(id tree.ID, n tree.Node) Value {
	s := m.L.Unquote(m.T, id)
	if n.Flag&tree.FlagBytes != 0 {
		return Value{Kind: Bytes, Text: s}
	}

	return Text(s)
}

// format joins the parts of a format string.
func (m *Machine) format(n tree.Node) Value {
	out := Value{Kind: Str}
	if n.Flag&tree.FlagBytes != 0 {
		out.Kind = Bytes
	}

	var parts [8]Value

	items := parts[:0]

	for p := n.A; p != 0; p = m.T.At(p).Next {
		part := m.T.At(p)
		computed := part.Kind != tree.Str && part.Kind != tree.Format
		v := m.eval(p)

		if computed {
			for spec := m.T.At(p).B; spec != 0; spec = m.T.At(spec).Next {
				m.eval(spec)
			}

			out.Built = out.Built || v.IsText()
		}

		items = append(items, v)
	}

	return m.Join(out, Value{Kind: out.Kind}, items)
}

// addText appends a value as text; hole says that the text ends with a hole.
func (m *Machine) addText(b *strings.Builder, out *Value, v Value, hole bool) bool {
	v = v.First()
	*out = out.From(v)

	text := textOf(v)
	if hole {
		text = strings.TrimPrefix(text, effect.HoleText)
	}

	if text == "" {
		return hole
	}

	if b.Len()+len(text) > effect.MaxText {
		m.over = m.over || !m.budget.Spend(len(text)/64)

		return hole
	}

	b.WriteString(text)

	if v.Ref != "" && out.Ref == "" {
		out.Ref = v.Ref
	}

	return strings.HasSuffix(text, effect.HoleText)
}

// textOf is a value as text within text.
func textOf(v Value) string {
	switch v.Kind {
	case Str, Bytes:
		return v.Text
	case Int:
		return v.Value().Text
	case Instance:
		if o := v.Object(); o.Sym != nil && o.Sym.Path {
			return textOf(o.Main)
		}
	case Array:
		// Of an array of texts, JavaScript makes a list with commas; what else may
		// be made of it is unknown.
	case Unknown, None, Bool, Record, Symbol, Function, Type, Method, Either:
	}

	return effect.HoleText
}

func (m *Machine) finish(out Value, b *strings.Builder) Value {
	out.Text = b.String()
	m.work(len(out.Text))

	return out
}

func (m *Machine) unary(n tree.Node) Value {
	v := m.eval(n.A)

	switch n.Op {
	case '-', '+', '~':
		if v.Kind == Int {
			switch n.Op {
			case '-':
				v.Int = -v.Int
			case '~':
				v.Int = ^v.Int
			}

			return v
		}

		return v.Forget()
	case 'w': // await
		return v
	case 'y': // yield
		if m.frame != nil {
			m.frame.yields = append(m.frame.yields, v)
		}

		return Value{}
	case '!':
		if v.Kind == Bool || v.Kind == Int {
			return Truth(v.Int == 0)
		}

		return Value{Kind: Unknown}
	}

	return Value{}
}

func (m *Machine) sequence(n tree.Node) Value {
	l := &List{}

	for p := n.A; p != 0; p = m.T.At(p).Next {
		if m.T.At(p).Kind == tree.Star {
			m.spread(l, m.eval(m.T.At(p).A))

			continue
		}

		l.Items = append(l.Items, m.eval(p))
	}

	// Of a comma expression the last value counts.
	if n.Op == ',' && len(l.Items) > 0 {
		return l.Items[len(l.Items)-1]
	}

	return Value{Kind: Array, X: l}
}

// spread appends the items of v to l.
func (m *Machine) spread(l *List, v Value) {
	if items, ok := m.items(v); ok && len(l.Items)+len(items) <= maxUnroll && m.work(len(items)*64) {
		l.Items = append(l.Items, items...)

		return
	}

	t, _ := v.Sources()
	l.Open = true
	l.Rest |= t
}

func (m *Machine) dict(n tree.Node) Value {
	t := &Table{}
	out := Value{Kind: Record, X: t}

	for p := n.A; p != 0; p = m.T.At(p).Next {
		part := *m.T.At(p)

		switch part.Kind {
		case tree.Pair:
			k := m.dictKey(part.A)
			v := m.eval(part.B)

			if k.IsText() || k.Kind == Int {
				t.Set(textOf(k), v)
			} else {
				m.openTable(t, v.From(k))
			}
		case tree.Star:
			v := m.eval(part.A)

			if from := v.Table(); from != nil {
				for _, k := range from.Keys {
					t.Set(k, from.Values[k])
				}

				t.Open = t.Open || from.Open
				t.Rest |= from.Rest
			} else {
				m.openTable(t, v)
			}
		case tree.Func:
			t.Set(m.T.Text(p), m.function(p, &out))
		default:
			v := m.eval(p)
			if m.T.At(p).Kind == tree.Name {
				t.Set(m.T.Text(p), v)
			}
		}
	}

	return out
}

// dictKey is the key of a Pair: in languages where o.k is o["k"] a bare name
// is a text.
func (m *Machine) dictKey(id tree.ID) Value {
	if m.L.Keys && m.T.At(id).Kind == tree.Name {
		return Text(m.T.Text(id))
	}

	return m.eval(id)
}

func (m *Machine) openTable(t *Table, v Value) {
	taint, origin := v.Sources()
	t.Open = true
	t.Rest |= taint
	t.Origin = joinOrigin(t.Origin, origin)
}

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

// comprehension follows a comprehension or generator.
func (m *Machine) comprehension(n tree.Node) Value {
	l := &List{}
	keys := false

	var table *Table
	if m.T.At(n.A).Kind == tree.Pair {
		table, keys = &Table{}, true
	}

	m.inner(true, func() {
		m.scope.block = false
		m.loop++
		m.clauses(n, n.B, func() {
			if keys {
				p := *m.T.At(n.A)
				k, v := m.eval(p.A), m.eval(p.B)

				if k.IsText() || k.Kind == Int {
					table.Set(textOf(k), v)
				} else {
					m.openTable(table, v.From(k))
				}

				return
			}

			l.Items = append(l.Items, m.eval(n.A))
		})
		m.loop--
	})

	if keys {
		return Value{Kind: Record, X: table}
	}

	return Value{Kind: Array, X: l}
}

// clauses follows the clauses of a comprehension from one on.
func (m *Machine) clauses(n tree.Node, id tree.ID, f func()) {
	if id == 0 {
		f()

		return
	}

	c := *m.T.At(id)
	if c.Kind == tree.CompIf {
		v := m.eval(c.A)
		// What is known to be left out is.
		if v.Kind == Bool && v.Int == 0 {
			return
		}

		m.clauses(n, c.Next, f)

		return
	}

	over := m.eval(c.B)

	if long(over) && !m.decodes(n.A) {
		m.bindTo(c.A, m.element(over))
		m.clauses(n, c.Next, f)

		return
	}

	items, ok := m.items(over)

	if ok && m.worth(len(items), n.A) {
		for _, it := range items {
			if !m.step() {
				return
			}

			m.bindTo(c.A, it)
			m.clauses(n, c.Next, f)
		}

		return
	}

	if ok {
		m.bindTo(c.A, OneOf(items))
	} else {
		m.bindTo(c.A, m.element(over))
	}

	m.clauses(n, c.Next, f)
}

// fewTurns is how often what is no decoder is done over.
const fewTurns = 16

// worth says whether an expression or body is worth doing for each of n items.
func (m *Machine) worth(n int, body tree.ID) bool {
	return n <= fewTurns && m.loop <= 2 || n <= maxUnroll && m.decodes(body)
}

// Worth says whether a function is worth calling for each of n items.
func (m *Machine) Worth(n int, f Value) bool {
	switch x := f.X.(type) {
	case *Fn:
		if x.Tree != m.T {
			return n <= fewTurns
		}

		return m.worth(n, m.T.At(x.Node).B)
	case *Sym:
		return n <= fewTurns && m.loop <= 2 || n <= maxUnroll && x.Cheap
	case *Bound:
		return n <= maxUnroll && x.Fn == nil
	}

	return n <= fewTurns
}

// long says whether v is a range that is not worth spelling out.
func long(v Value) bool {
	o := v.Object()
	if v.Kind != Instance || o.Range == nil {
		return false
	}

	r := o.Range

	return (r[1]-r[0])/r[2] > fewNumbers
}

// element is an unknown item of v.
func (m *Machine) element(v Value) Value {
	switch v.Kind {
	case Array:
		return m.anyItem(v.List())
	case Record:
		return v.Forget()
	case Either:
		var all []Value

		v.Each(func(w Value) { all = append(all, m.element(w)) })

		return OneOf(all)
	case Instance:
		if v.Object().Range != nil {
			return Value{Many: true}
		}
	case Unknown, None, Bool, Int, Str, Bytes, Symbol, Function, Type, Method:
	}

	out := v.Forget()
	out.Ref = ""

	return out
}

// items are the items of v in turn, if all are known.
func (m *Machine) items(v Value) ([]Value, bool) {
	switch v.Kind {
	case Array:
		l := v.List()

		return l.Items, !l.Open
	case Record:
		t := v.Table()
		if t.Open {
			return nil, false
		}

		out := make([]Value, 0, len(t.Keys))
		for _, k := range t.Keys {
			out = append(out, Text(k))
		}

		return out, true
	case Bytes:
		if len(v.Text) > maxUnroll || !m.work(len(v.Text)*8) {
			return nil, false
		}

		out := make([]Value, len(v.Text))
		for i := range len(v.Text) {
			out[i] = Value{Kind: Int, Int: int64(v.Text[i]), Taint: v.Taint}
		}

		return out, true
	case Str:
		if !v.IsConst() || len(v.Text) > maxUnroll || !m.work(len(v.Text)*8) {
			return nil, false
		}

		out := make([]Value, 0, len(v.Text))
		for _, r := range v.Text {
			out = append(out, Value{Kind: Str, Text: string(r), Taint: v.Taint, Origin: v.Origin, Built: true})
		}

		return out, true
	case Instance:
		if r := v.Object().Range; r != nil {
			return spell(r), true
		}
	case Unknown, None, Bool, Int, Symbol, Function, Type, Method, Either:
	}

	return nil, false
}

// Numbers is a range.
func Numbers(from, to, by int64) Value {
	if by == 0 {
		return Value{Many: true}
	}

	r := &[3]int64{from, to, by}
	if n := (to - from) / by; n > maxUnroll || n < -1 {
		return Value{Many: true}
	}

	return Value{Kind: Instance, X: &Object{Range: r}}
}

func spell(r *[3]int64) []Value {
	var out []Value
	for i := r[0]; r[2] > 0 && i < r[1] || r[2] < 0 && i > r[1]; i += r[2] {
		out = append(out, Number(i))
	}

	return out
}

// Elements is items for handlers.
func (m *Machine) Elements(v Value) ([]Value, bool) { return m.items(v) }

// decodes says whether an expression or body looks like a step of a decoder,
// so that it is worth doing as often as the program would.
func (m *Machine) decodes(id tree.ID) bool {
	if d, ok := m.folds[id]; ok {
		return d
	}

	size := 0
	d := m.any(id, func(x tree.ID) bool {
		n := m.T.At(x)
		size++

		switch n.Kind {
		case tree.Name, tree.Attr:
			switch m.T.Text(x) {
			case "chr", "ord", "fromCharCode", "charCodeAt", "fromCodePoint", "codePointAt", "charAt",
				"unhexlify", "fromhex", "parseInt", "bytes", "bytearray", "utf8ToInt", "intToUtf8", "strtoi":
				return true
			}
		case tree.Binary:
			return n.Op == '^'
		case tree.Assign:
			return n.Op == '^' || n.Op == '+' && m.T.At(n.B).Kind == tree.Index && m.T.At(n.B).B != 0 &&
				m.T.At(m.T.At(n.B).B).Kind != tree.Str
		}

		return false
	})

	if m.folds == nil {
		m.folds = map[tree.ID]bool{}
	}

	m.folds[id] = d

	return d
}
