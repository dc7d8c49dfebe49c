package flow

import (
	"slices"
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
	// Items may be the head of another's, so that their capacity must be no more
	// than their length when the list is made.
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
	// Name is what it is called: the variable's, where it has none of its own.
	Name string
	// Owner is the class a method belongs to.
	Owner *Class
	// This is the receiver that an arrow function keeps.
	This    Value
	called  bool
	running int
	// cond is how many branches that may not be taken were around where it was
	// entered.
	cond   int
	static bool
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

	return Value{Kind: Array, X: &List{Items: slices.Clip(vs)}}
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
