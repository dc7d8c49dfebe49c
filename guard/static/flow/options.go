package flow

// Join is what is known where either value may flow; a is the more recent.
func Join(a, b Value) Value {
	if same(a, b) {
		return a.From(b)
	}

	switch {
	case a.Kind == Unknown && b.Kind == Unknown, a.Kind == Unknown && b.trivial():
		return a.From(b)
	case b.Kind == Unknown && a.trivial():
		return b.From(a)
	}

	if a.Kind == Int && b.Kind == Int || a.Kind == Bool || a.Kind == None && b.Kind == Bool {
		if b.Kind == Int || b.Kind == Bool || b.Kind == None {
			return Value{Taint: a.Taint | b.Taint}
		}
	}

	all := addOptions(make([]Value, 0, min(a.options()+b.options(), maxOptions)), a)
	all = addOptions(all, b)
	all = all[:min(len(all), maxJoined)]

	return either(all)
}

// options is how many values v may be.
func (v Value) options() int {
	if o, ok := v.X.(*Options); ok {
		return len(o.All)
	}

	return 1
}

// maxOptionText bounds the text that all options have together.
const maxOptionText = 32 << 10

// either is one of several values. Long texts are not held many times over.
func either(all []Value) Value {
	size := 0

	for i := range all {
		size += len(all[i].Text)

		if size > maxOptionText && i > 1 {
			all = all[:i]

			break
		}
	}

	switch len(all) {
	case 0:
		return Value{}
	case 1:
		return all[0]
	}

	return Value{Kind: Either, X: &Options{All: all}}
}

// trivial says that nothing is lost if v is held as unknown.
func (v Value) trivial() bool {
	switch v.Kind {
	case None, Bool, Int:
		return true
	case Str, Bytes:
		return v.Text == ""
	case Array:
		return len(v.List().Items) == 0
	case Record:
		return len(v.Table().Keys) == 0
	case Unknown, Symbol, Function, Type, Instance, Method, Either:
	}

	return false
}

func addOptions(all []Value, v Value) []Value {
	if o, ok := v.X.(*Options); ok {
		for _, w := range o.All {
			all = addOptions(all, w)
		}

		return all
	}

	for i := range all {
		if alike(all[i], v) {
			all[i] = all[i].From(v)

			return all
		}
	}

	if len(all) >= maxOptions {
		return all
	}

	return append(all, v)
}

// fewNumbers is how many numbers are told apart.
const fewNumbers = 16

// OneOf is one of several values.
func OneOf(vs []Value) Value {
	if len(vs) > fewNumbers && vs[0].Kind == Int && vs[len(vs)-1].Kind == Int {
		return Value{Many: true, Taint: vs[0].Taint}
	}

	if len(vs) == 0 {
		return Value{}
	}

	// Most often all are alike.
	v, i := vs[0], 1
	for v.Kind != Either && i < len(vs) && alike(v, vs[i]) {
		v = v.From(vs[i])
		i++
	}

	if i == len(vs) && v.Kind != Either {
		return v
	}

	all := addOptions(make([]Value, 0, min(1+len(vs)-i, maxOptions)), v)
	for ; i < len(vs); i++ {
		all = addOptions(all, vs[i])
	}

	return either(all)
}

// Each calls f for v, or for each of its options.
func (v Value) Each(f func(Value)) {
	if o, ok := v.X.(*Options); ok {
		for _, w := range o.All {
			f(w)
		}

		return
	}

	f(v)
}

// First is v, or the first option that is known.
func (v Value) First() Value {
	if o, ok := v.X.(*Options); ok {
		for _, w := range o.All {
			if w.Kind != Unknown && w.Kind != None {
				return w
			}
		}

		return o.All[0]
	}

	return v
}

// alike says whether two values are held as one.
func alike(a, b Value) bool { return a.Kind == Unknown && b.Kind == Unknown || same(a, b) }

// same says whether two values are known to be the same.
func same(a, b Value) bool {
	if a.Kind != b.Kind {
		return false
	}

	switch a.Kind {
	case None:
		return true
	case Bool, Int:
		return a.Int == b.Int
	case Str, Bytes:
		return a.Text == b.Text
	case Unknown:
		return a.Ref == b.Ref
	case Array, Record, Symbol, Function, Type, Instance, Method, Either:
		return a.X == b.X
	}

	return false
}
