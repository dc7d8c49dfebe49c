package flow

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Kind is what sort of value is known.
type Kind uint8

// The kinds. The zero Kind is Unknown.
const (
	// Unknown is anything; Taint may say where it came from.
	Unknown Kind = iota
	// None is null, undefined, None.
	None
	// Bool is Int 0 or 1.
	Bool
	// Int is an integer, in Int.
	Int
	// Str is text, with a hole for each part unknown.
	Str
	// Bytes is bytes, held in Text as they are.
	Bytes
	// Array is a list, tuple or set: a *List.
	Array
	// Record is a dict or object literal: a *Table.
	Record
	// Symbol is something the language's library model knows: a *Sym.
	Symbol
	// Function is a function of the code itself: a *Fn.
	Function
	// Type is a class of the code itself: a *Class.
	Type
	// Instance is an object: an *Object.
	Instance
	// Method is a callable bound to its receiver: a *Bound.
	Method
	// Either is one of several values: an *Options.
	Either
)

// Value is what is known about a value while the code is followed.
type Value struct {
	Kind Kind
	// Built says that a text was put together from pieces, and that a symbol was
	// named by such a text.
	Built bool
	// Many says that it stands for each of many numbers in turn.
	Many  bool
	Taint effect.Taint
	Int   int64
	Text  string
	// Origin and Ref are as in effect.Value.
	Origin string
	Ref    string
	X      any
}

// List is the content of an Array. It is shared by all who hold the Array.
type List struct {
	Items []Value
	// Open says that there may be more items than are known, of taint Rest.
	Open bool
	Rest effect.Taint
}

// Table is the content of a Record.
type Table struct {
	Keys   []string
	Values map[string]Value
	// Open says that there may be more entries, of taint Rest.
	Open   bool
	Rest   effect.Taint
	Origin string
}

// Set sets an entry.
func (t *Table) Set(key string, v Value) {
	if t.Values == nil {
		t.Values = map[string]Value{}
	}

	if _, ok := t.Values[key]; !ok {
		t.Keys = append(t.Keys, key)
	}

	t.Values[key] = v
}

// Fn is a function of the code.
type Fn struct {
	Node  tree.ID
	Tree  *tree.Tree
	Scope *scope
	// Owner is the class a method belongs to.
	Owner *Class
	// This is the receiver that an arrow function keeps.
	This    Value
	called  bool
	running int
	static  bool
}

// fnKey is a function as it is written: each time the code around it runs
// makes another Fn.
type fnKey struct {
	tree *tree.Tree
	node tree.ID
}

func (f *Fn) key() fnKey { return fnKey{f.Tree, f.Node} }

// Class is a class of the code.
type Class struct {
	Name  string
	Bases []Value
	Attrs map[string]Value
	// Last is the newest instance, on which methods that nobody calls are judged.
	Last   *Object
	node   tree.ID
	looked bool
}

// Object is an instance: of a library's type (Sym) or of the code's (Class).
type Object struct {
	Sym   *Sym
	Class *Class
	// Main is what it was made with: a path, a URL, a host, a command.
	Main Value
	Port Value
	// Mode is a detail of Main: how a file was opened.
	Mode string
	// Range is the numbers of a range: from, to, step.
	Range *[3]int64
	Attrs map[string]Value
}

// Set sets an attribute.
func (o *Object) Set(name string, v Value) {
	if o.Attrs == nil {
		o.Attrs = map[string]Value{}
	}

	o.Attrs[name] = v
}

// Bound is a callable with its receiver. Exactly one of Sym, Fn and Name is
// set.
type Bound struct {
	Recv Value
	Sym  *Sym
	Fn   *Fn
	Name string
	// Args are given before those of the call (partial application).
	Args []Value
	Kw   []KwArg
	// Callee is what a partial application calls.
	Callee *Value
}

// Options are the values of an Either, the most recent first.
type Options struct{ All []Value }

// Text makes a text.
func Text(s string) Value { return Value{Kind: Str, Text: s} }

// Number makes an integer.
func Number(n int64) Value { return Value{Kind: Int, Int: n} }

// Truth makes a boolean.
func Truth(b bool) Value {
	if b {
		return Value{Kind: Bool, Int: 1}
	}

	return Value{Kind: Bool}
}

// Items makes an array. What is beyond a limit is dropped and may be anything.
func Items(vs ...Value) Value {
	if len(vs) > maxUnroll {
		return Value{Kind: Array, X: &List{Items: vs[:maxUnroll:maxUnroll], Open: true}}
	}

	return Value{Kind: Array, X: &List{Items: vs}}
}

// Tainted makes an unknown value from a source.
func Tainted(t effect.Taint, origin string) Value {
	return Value{Taint: t, Origin: origin}
}

// New makes an instance of a library type.
func New(s *Sym, main Value) Value {
	return Value{Kind: Instance, X: &Object{Sym: s, Main: main}, Taint: main.Taint, Origin: main.Origin}
}

// Object is the instance, or nil.
func (v Value) Object() *Object {
	o, _ := v.X.(*Object)

	return o
}

// Sym is the symbol, or nil.
func (v Value) Sym() *Sym {
	s, _ := v.X.(*Sym)

	return s
}

// List is the array's content, or nil.
func (v Value) List() *List {
	l, _ := v.X.(*List)

	return l
}

// Table is the record's content, or nil.
func (v Value) Table() *Table {
	t, _ := v.X.(*Table)

	return t
}

// IsText says whether v is text or bytes, possibly with holes.
func (v Value) IsText() bool { return v.Kind == Str || v.Kind == Bytes }

// IsConst says whether v is text or bytes without a hole.
func (v Value) IsConst() bool {
	return v.IsText() && (v.Kind == Bytes || !strings.Contains(v.Text, effect.HoleText))
}

// Callable says whether v is known to be something that can be called.
func (v Value) Callable() bool {
	switch v.Kind {
	case Symbol, Function, Type, Method:
		return true
	case Unknown, None, Bool, Int, Str, Bytes, Array, Record, Instance, Either:
	}

	return false
}

// With adds sources.
func (v Value) With(t effect.Taint) Value {
	v.Taint |= t

	return v
}

// From adds the sources of another value.
func (v Value) From(w Value) Value {
	t, o := w.Sources()
	v.Taint |= t
	v.Many = v.Many || w.Many
	v.Origin = joinOrigin(v.Origin, o)

	return v
}

func joinOrigin(a, b string) string {
	if a == b || b == "" {
		return a
	}

	if a == "" {
		return b
	}

	return effect.Concat(effect.Value{Origin: a}, effect.Value{Origin: b}).Origin
}

// Forget is v as an unknown value with the same sources.
func (v Value) Forget() Value {
	t, o := v.Sources()

	return Value{Taint: t, Origin: o, Ref: v.Ref, Many: v.Many}
}

// maxNest bounds how deep containers are looked into for sources, maxVisits how
// many values.
const (
	maxNest   = 5
	maxVisits = 2000
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
			e.Ref = v.Ref
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

	return effect.Value{Text: effect.HoleText, Taint: t, Origin: o, Ref: v.Ref}
}

// maxOptions bounds how many values an Either holds.
const maxOptions = 64

// maxJoined bounds how many of a variable's earlier values are kept.
const maxJoined = 16

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

	all := make([]Value, 0, 4)
	all = addOptions(all, a)
	all = addOptions(all, b)
	all = all[:min(len(all), maxJoined)]

	return either(all)
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
		if same(all[i], v) || all[i].Kind == Unknown && v.Kind == Unknown {
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

	var all []Value
	for _, v := range vs {
		all = addOptions(all, v)
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
