package flow

import (
	"math"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// parseNumber is a number as any of the languages writes it.
func parseNumber(s string) Value {
	if len(s) == 1 {
		return Number(int64(s[0] - '0'))
	}

	s = strings.ReplaceAll(s, "_", "")
	s = strings.TrimRight(s, "nL") // JavaScript's bigint, R's and Java's integer

	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return Number(n)
	}

	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Number(n)
	}

	if f, err := strconv.ParseFloat(s, 64); err == nil && f == math.Trunc(f) {
		return Number(clampFloat(f))
	}

	if len(s) > 18 && strings.Trim(s, "0123456789") == "" {
		return Number(math.MaxInt64)
	}

	return Value{}
}

func clampFloat(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}

	return int64(f)
}

// binary follows a chain of binary operators. They nest to the left, so that
// the chain is walked and not recursed into.
func (m *Machine) binary(id tree.ID) Value {
	var chain []tree.ID

	for m.T.At(id).Kind == tree.Binary {
		chain = append(chain, id)
		id = m.T.At(id).A
	}

	acc := m.eval(id)

	// A run of texts is joined once.
	var (
		b       strings.Builder
		joining bool
	)

	flush := func() {
		if joining {
			acc.Text = b.String()
			joining = false

			m.work(len(acc.Text))
			b.Reset()
		}
	}

	for i := len(chain) - 1; i >= 0; i-- {
		n := *m.T.At(chain[i])
		v := m.eval(n.B)

		if m.over {
			return Value{}
		}

		if n.Op == '+' && acc.Kind == Str && v.Kind == Str && m.blur == 0 {
			if !joining {
				b.WriteString(acc.Text)

				joining = true
			}

			if b.Len()+len(v.Text) > effect.MaxText {
				m.Limited(chain[i])
				flush()

				acc = acc.From(v).Forget()

				continue
			}

			b.WriteString(v.Text)

			acc = acc.From(v)
			acc.Built = true

			if acc.Ref == "" {
				acc.Ref = v.Ref
			}

			continue
		}

		flush()

		acc = m.Operate(n.Op, acc, v, chain[i])
	}

	flush()

	return acc
}

// operators are the methods by which a class defines an operator.
var operators = map[byte]string{
	'+': "__add__", '-': "__sub__", '*': "__mul__", '/': "__truediv__", '%': "__mod__", '|': "__or__", '&': "__and__",
	'^': "__xor__", 'l': "__lshift__", 'r': "__rshift__", 'p': "__pow__", '@': "__matmul__", 'f': "__floordiv__",
	'=': "__eq__", '<': "__lt__", '>': "__gt__",
}

// Operate is a Op b.
func (m *Machine) Operate(op byte, a, b Value, id tree.ID) Value {
	if !m.step() {
		return Value{}
	}

	if m.blur > 0 && op == '+' {
		return a.Forget().From(b).With(effect.TaintDecoded)
	}

	if o, ok := a.X.(*Options); ok {
		all := make([]Value, 0, len(o.All))
		for _, w := range o.All {
			all = append(all, m.Operate(op, w, b, id))
		}

		return OneOf(all)
	}

	if o, ok := b.X.(*Options); ok {
		all := make([]Value, 0, len(o.All))
		for _, w := range o.All {
			all = append(all, m.Operate(op, a, w, id))
		}

		return OneOf(all)
	}

	if a.Kind == Instance && operators[op] != "" {
		if out, ok := m.overload(a, operators[op], id, b); ok {
			return out
		}
	}

	switch op {
	case 'o', 'a', '?': // or, and, ??: either may be the result
		if op != 'a' && (a.Kind == None || a.Kind == Str && a.Text == "" && a.Taint == 0) {
			return b
		}

		return Join(b, a)
	case '=', '!', '<', '>', '{', '}', 'n', 's', 'N': // comparisons
		return m.compare(op, a, b)
	case '+':
		return m.add(a, b, id)
	case '*':
		if a.Kind == Int && (b.IsText() || b.Kind == Array) {
			a, b = b, a
		}

		if (a.IsText() || a.Kind == Array) && b.Kind == Int {
			return m.repeat(a, b.Int, id)
		}
	case '%':
		if a.IsText() && !m.L.Keys {
			return m.Percent(a, b)
		}
	case '/':
		if o := a.Object(); a.Kind == Instance && o.Sym != nil && o.Sym.Path {
			return m.JoinPath(a, b)
		}

		if o := b.Object(); b.Kind == Instance && o.Sym != nil && o.Sym.Path && a.IsText() {
			return m.JoinPath(New(o.Sym, a), b)
		}
	}

	if a.Kind == Int && b.Kind == Int {
		if n, ok := arithmetic(op, a.Int, b.Int); ok {
			v := Number(n)
			v.Taint = a.Taint | b.Taint

			return v
		}
	}

	if op == '^' && (a.Taint | b.Taint).Any(effect.TaintFile) {
		return a.Forget().From(b).With(effect.TaintEncoded)
	}

	if (op == '|' || op == '&' || op == '-') && a.Kind == Array && b.Kind == Array && op == '|' {
		return m.add(a, b, id)
	}

	if op == '|' && a.Kind == Record {
		return m.merge(a, b)
	}

	return a.Forget().From(b)
}

func (m *Machine) merge(a, b Value) Value {
	t := &Table{}

	for _, v := range []Value{a, b} {
		from := v.Table()
		if from == nil {
			m.openTable(t, v)

			continue
		}

		for _, k := range from.Keys {
			t.Set(k, from.Values[k])
		}

		t.Open = t.Open || from.Open
		t.Rest |= from.Rest
	}

	return Value{Kind: Record, X: t}
}

func (m *Machine) compare(op byte, a, b Value) Value {
	switch {
	case a.Kind == Int && b.Kind == Int:
		switch op {
		case '=':
			return Truth(a.Int == b.Int)
		case '!':
			return Truth(a.Int != b.Int)
		case '<':
			return Truth(a.Int < b.Int)
		case '>':
			return Truth(a.Int > b.Int)
		case '{': // <=
			return Truth(a.Int <= b.Int)
		case '}': // >=
			return Truth(a.Int >= b.Int)
		}
	case a.IsConst() && b.IsConst():
		switch op {
		case '=':
			return Truth(a.Text == b.Text)
		case '!':
			return Truth(a.Text != b.Text)
		case 'n':
			return Truth(strings.Contains(b.Text, a.Text))
		}
	}

	return Value{}
}

func (m *Machine) add(a, b Value, id tree.ID) Value {
	switch {
	case a.IsText() && (b.IsText() || m.L.Keys), m.L.Keys && b.IsText():
		kind := Str
		if a.Kind == Bytes && b.Kind == Bytes {
			kind = Bytes
		}

		out := Value{Kind: kind, Built: true, Taint: a.Taint, Origin: a.Origin, Ref: a.Ref}

		return m.concat(out, a, b, id)
	case a.IsText():
		// Unknown text on the right.
		return m.concat(Value{Kind: a.Kind, Built: true, Taint: a.Taint, Origin: a.Origin}, a, b, id)
	case b.IsText() && a.Kind != Int:
		return m.concat(Value{Kind: b.Kind, Built: true, Taint: a.Taint, Origin: a.Origin, Ref: a.Ref}, a, b, id)
	case a.Kind == Int && b.Kind == Int:
		n, _ := arithmetic('+', a.Int, b.Int)

		return Value{Kind: Int, Int: n, Taint: a.Taint | b.Taint}
	case a.Kind == Array:
		l := &List{Open: a.List().Open, Rest: a.List().Rest}
		l.Items = append(l.Items, a.List().Items...)
		m.spread(l, b)
		m.work(len(l.Items) * 64)

		return Value{Kind: Array, X: l}
	}

	return a.Forget().From(b)
}

func (m *Machine) concat(out, a, b Value, id tree.ID) Value {
	x, y := textOf(a), textOf(b)
	if a.Kind == Bytes && b.Kind != Bytes || b.Kind == Bytes && a.Kind != Bytes {
		// An unknown part of bytes makes the whole unknown.
		if !b.IsText() || !a.IsText() {
			return out.From(b).Forget()
		}
	}

	if len(x)+len(y) > effect.MaxText {
		m.Limited(id)

		return out.From(b).Forget()
	}

	if strings.HasSuffix(x, effect.HoleText) {
		y = strings.TrimPrefix(y, effect.HoleText)
	}

	out = out.From(b)
	out.Text = x + y

	if out.Ref == "" {
		out.Ref = b.Ref
	}

	m.work(len(out.Text))

	return out
}

// hugeBytes is what is reported as a large allocation.
const hugeBytes = 64 << 20

func (m *Machine) repeat(a Value, n int64, id tree.ID) Value {
	n = max(n, 0)

	size := int64(len(a.Text))
	if a.Kind == Array {
		size = int64(len(a.List().Items)) * 8
	}

	if total, ok := arithmetic('*', size, n); ok && total >= hugeBytes {
		m.EmitAt(id, effect.Effect{
			Kind: effect.Alloc, Target: effect.Const("memory"),
			Data: effect.Const(strconv.FormatInt(total, 10)), Via: "*",
		})
	}

	if size > 0 && n > maxUnroll/size || n > maxUnroll {
		out := a.Forget()
		if total, ok := arithmetic('*', size, n); ok && out.Ref == "" {
			out.Ref = Block(total).Ref
		}

		return out
	}

	if a.Kind == Array {
		l := &List{Open: a.List().Open, Rest: a.List().Rest}
		for range n {
			l.Items = append(l.Items, a.List().Items...)
		}

		return Value{Kind: Array, X: l}
	}

	a.Text = strings.Repeat(a.Text, int(n))
	a.Built = true
	m.work(len(a.Text))

	return a
}

// arithmetic saturates instead of overflowing.
func arithmetic(op byte, a, b int64) (int64, bool) {
	switch op {
	case '+':
		return clampFloatIf(a+b, float64(a)+float64(b)), true
	case '-':
		return clampFloatIf(a-b, float64(a)-float64(b)), true
	case '*':
		return clampFloatIf(a*b, float64(a)*float64(b)), true
	case '^':
		return a ^ b, true
	case '|':
		return a | b, true
	case '&':
		return a & b, true
	case 'l':
		if b >= 0 && b < 62 && a >= 0 && a <= math.MaxInt64>>uint(b) {
			return a << uint(b), true
		}

		if a > 0 && b >= 0 {
			return math.MaxInt64, true
		}
	case 'r':
		if b >= 0 && b < 64 {
			return a >> uint(b), true
		}
	case 'p':
		return clampFloat(math.Pow(float64(a), float64(b))), b >= 0
	case '%', 'f', '/':
		if b == 0 || a == math.MinInt64 {
			return 0, false
		}

		if op == '%' {
			r := a % b
			if r != 0 && (r < 0) != (b < 0) {
				r += b
			}

			return r, true
		}

		if op == '/' && a%b != 0 {
			return 0, false
		}

		return int64(math.Floor(float64(a) / float64(b))), true
	}

	return 0, false
}

func clampFloatIf(exact int64, about float64) int64 {
	if about >= math.MaxInt64 || about <= math.MinInt64 {
		return clampFloat(about)
	}

	return exact
}
