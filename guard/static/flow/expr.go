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
			return m.array(List{Items: f.args, Open: f.unknown})
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

	items := m.memory.values.room(m.count(n.A))

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

		// Pieces without text add nothing, however many there are.
		if !computed && v.Kind == out.Kind && v.Text == "" && v.Taint == 0 {
			continue
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
