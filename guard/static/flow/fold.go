package flow

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

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
		return a.Forget()
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

// Percent is text % values.
func (m *Machine) Percent(a, args Value) Value {
	if l := args.List(); args.Kind == Array {
		return m.turns(l.Items, func(items []Value) Value { return m.percent(a, Items(items...)) })
	}

	return m.percent(a, args)
}

func (m *Machine) percent(a, args Value) Value {
	out := Value{Kind: a.Kind, Built: true, Taint: a.Taint, Origin: a.Origin}.From(args)

	next := func() (Value, bool) { return Value{}, false }

	if l := args.List(); args.Kind == Array {
		i := -1
		next = func() (Value, bool) {
			i++
			if i < len(l.Items) {
				return l.Items[i], true
			}

			return Value{}, false
		}
	} else if args.Kind != Record {
		used := false
		next = func() (Value, bool) {
			if used {
				return Value{}, false
			}

			used = true

			return args, true
		}
	}

	var b strings.Builder

	s, hole := a.Text, false

	for {
		before, after, found := strings.Cut(s, "%")
		hole = m.addText(&b, &out, Value{Kind: a.Kind, Text: before}, hole)

		if !found || after == "" {
			break
		}

		s = after

		if s[0] == '%' {
			hole = m.addText(&b, &out, Text("%"), hole)
			s = s[1:]

			continue
		}

		v := Value{}
		key := ""

		if s[0] == '(' {
			if end := strings.IndexByte(s, ')'); end > 0 {
				key = s[1:end]
				s = s[end+1:]
			}
		}

		i := 0
		for i < len(s) && strings.IndexByte("#0- +.123456789*", s[i]) >= 0 {
			i++
		}

		verb := byte('s')
		if i < len(s) {
			verb = s[i]
			s = s[i+1:]
		} else {
			s = ""
		}

		if t := args.Table(); key != "" && t != nil {
			v = t.Values[key]
		} else if w, ok := next(); ok {
			v = w
		}

		if verb == 'c' && v.Kind == Int && v.Int >= 0 && v.Int < utf8.MaxRune {
			v = Value{Kind: Str, Text: string(rune(v.Int)), Taint: effect.TaintDecoded}
		}

		hole = m.addText(&b, &out, v, hole)
	}

	return m.finish(out, &b)
}

// Format is Python's text.format(args).
func (m *Machine) Format(a Value, args []Value, kw []KwArg) Value {
	out := Value{Kind: a.Kind, Built: true, Taint: a.Taint, Origin: a.Origin}

	var b strings.Builder

	s, hole, auto := a.Text, false, 0

	for {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			m.addText(&b, &out, Text(s), hole)

			break
		}

		hole = m.addText(&b, &out, Text(s[:i]), hole)

		if i+1 < len(s) && s[i+1] == s[i] {
			hole = m.addText(&b, &out, Text(s[i:i+1]), hole)
			s = s[i+2:]

			continue
		}

		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			s = s[i+1:]

			continue
		}

		field := s[i+1 : i+end]
		s = s[i+end+1:]
		name := field

		if j := strings.IndexAny(field, ".[!:"); j >= 0 {
			name = field[:j]
		}

		v := Value{}

		switch n, err := strconv.Atoi(name); {
		case name == "":
			if auto < len(args) {
				v = args[auto]
			}

			auto++
		case err == nil:
			if n >= 0 && n < len(args) {
				v = args[n]
			}
		default:
			for _, k := range kw {
				if k.Name == name {
					v = k.Value
				}
			}
		}

		if rest := field[len(name):]; rest != "" && rest[0] != '!' && rest[0] != ':' {
			v = v.Forget()
		} else if strings.HasSuffix(field, ":c") && v.Kind == Int && v.Int >= 0 && v.Int < utf8.MaxRune {
			v = Value{Kind: Str, Text: string(rune(v.Int)), Taint: effect.TaintDecoded}
		}

		hole = m.addText(&b, &out, v, hole)
	}

	return m.finish(out, &b)
}

// JoinPath joins path parts: an absolute part starts over.
func (m *Machine) JoinPath(a Value, more ...Value) Value {
	return m.turns(append([]Value{a}, more...), m.joinPath)
}

func (m *Machine) joinPath(parts []Value) Value {
	a := parts[0]
	out := a
	text := textOf(a)

	if a.Kind == Unknown || a.Kind == None {
		out = Value{Kind: Str, Taint: a.Taint, Origin: a.Origin, Ref: a.Ref}
	}

	for _, p := range parts[1:] {
		t := textOf(p)
		out = out.From(p)

		switch {
		case strings.HasPrefix(t, "/"):
			text = t
		case text == "" || strings.HasSuffix(text, "/"):
			text += t
		default:
			text += "/" + t
		}
	}

	if len(text) > effect.MaxText {
		return out.Forget()
	}

	m.work(len(text))

	if obj := a.Object(); out.Kind == Instance && obj != nil && obj.Sym != nil {
		main := Value{Kind: Str, Text: text, Taint: out.Taint, Origin: out.Origin, Ref: obj.Main.Ref}

		return New(obj.Sym, main)
	}

	out.Kind, out.Text, out.X = Str, text, nil

	return out
}

// Join joins items with a separator between them.
func (m *Machine) Join(out, sep Value, items []Value) Value {
	return m.turns(items, func(items []Value) Value {
		var b strings.Builder

		v, hole := out, false

		for i := range items {
			if i > 0 {
				hole = m.addText(&b, &v, sep, hole)
			}

			hole = m.addText(&b, &v, items[i], hole)
		}

		return m.finish(v, &b)
	})
}

// turns runs f once, or as often as it takes to see each option of each item.
func (m *Machine) turns(items []Value, f func([]Value) Value) Value {
	n := 0

	for i := range items {
		if o, ok := items[i].X.(*Options); ok {
			n = max(n, len(o.All))
		}
	}

	if n == 0 {
		return f(items)
	}

	all := make([]Value, 0, n)

	for turn := 0; turn < n && m.step(); turn++ {
		one := make([]Value, len(items))
		for i := range items {
			one[i] = optionOf(items[i], turn)
		}

		all = append(all, f(one))
	}

	return OneOf(all)
}
