package flow

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// Sources is where v came from, with all that it contains.
func (v Value) Sources() (effect.Taint, string) {
	if v.X == nil {
		return v.Taint, v.Origin
	}

	room := maxVisits

	return v.sources(maxNest, &room)
}

func (v Value) sources(depth int, room *int) (effect.Taint, string) {
	t, origin := v.Taint, v.Origin

	*room--
	if depth == 0 || v.X == nil || *room < 0 {
		return t, origin
	}

	add := func(w Value) {
		if w.X == nil && w.Taint == 0 {
			return
		}

		wt, wo := w.sources(depth-1, room)
		t |= wt
		origin = joinOrigin(origin, wo)
	}

	switch x := v.X.(type) {
	case *List:
		t |= x.Rest

		for i := range min(len(x.Items), maxScan) {
			add(x.Items[i])
		}
	case *Table:
		t |= x.Rest
		origin = joinOrigin(origin, x.Origin)

		for i := range min(len(x.Keys), maxScan) {
			add(x.Values[x.Keys[i]])
		}
	case *Options:
		for _, w := range x.All {
			add(w)
		}
	case *Object:
		// Only what is in the object itself: the path of a file is no content.
		if x.Class != nil {
			return t, origin
		}

		for _, k := range sortedKeys(x.Attrs) {
			add(x.Attrs[k])
		}
	}

	return t, origin
}

// maxScan bounds how many items of a container are looked at for sources.
const maxScan = 256

// Value turns v into the vocabulary of effects. A list becomes its items with
// a space between them.
func (v Value) Value() effect.Value {
	switch v.Kind {
	case Str:
		e := effect.Value{Text: v.Text, Taint: v.Taint, Origin: v.Origin}
		if !e.IsConst() {
			e.Ref, e.Many = v.Ref, v.Many
		}

		return e
	case Bytes:
		return effect.Value{Text: strings.ToValidUTF8(v.Text, "\ufffd"), Taint: v.Taint, Origin: v.Origin}
	case Int:
		return effect.Value{Text: strconv.FormatInt(v.Int, 10), Taint: v.Taint, Origin: v.Origin}
	case Bool:
		return effect.Value{Text: strconv.FormatBool(v.Int != 0)}
	case None:
		return effect.Value{}
	case Either:
		return v.X.(*Options).All[0].Value()
	case Array:
		l := v.List()
		parts := make([]effect.Value, 0, 2*len(l.Items))

		for i := range min(len(l.Items), maxScan) {
			if i > 0 {
				parts = append(parts, effect.Const(" "))
			}

			if l.Items[i].Kind == Array {
				parts = append(parts, l.Items[i].Forget().Value())
			} else {
				parts = append(parts, l.Items[i].Value())
			}
		}

		if l.Open || len(parts) == 0 {
			t, o := v.Sources()
			parts = append(parts, effect.Value{Text: effect.HoleText, Taint: t, Origin: o, Ref: v.Ref})
		}

		return effect.Concat(parts...)
	case Instance:
		if o := v.Object(); o != nil && o.Sym != nil && o.Sym.Path {
			e := o.Main.Value()
			e.Taint |= v.Taint

			return e
		}
	case Unknown, Record, Symbol, Function, Type, Method:
	}

	t, o := v.Sources()

	return effect.Value{Text: effect.HoleText, Taint: t, Origin: o, Ref: v.Ref, Many: v.Many}
}

// maxOptions bounds how many values an Either holds.
const maxOptions = 64

// maxJoined bounds how many of a variable's earlier values are kept.
const maxJoined = 16
