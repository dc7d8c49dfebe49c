package flow

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

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
