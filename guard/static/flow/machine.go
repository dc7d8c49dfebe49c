// Package flow follows a program's values through its syntax tree and reports
// what the program does, in the vocabulary of package effect.
//
// It is an abstract interpreter, and a coarse one: every branch is taken, loops
// run once (or as often as it takes to fold a small decoder), functions are
// followed into with the arguments they are called with, and what nobody calls
// is followed once with nothing known. Constants are folded, names of library
// functions are resolved through any alias, and sources of data (files, the
// environment, the network) are carried along to where the data goes.
//
// A language is a Language: a tree of library names with handlers that report
// effects, and a few habits of syntax.
package flow

import (
	"hash/maphash"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Language is what the analysis must know of a language.
type Language struct {
	// Name is the language as effect.Embedded spells it.
	Name string
	// Root holds the modules, and Builtins the names that are always bound.
	Root     *Sym
	Builtins *Sym
	// Loose are members of modules that are known without an import, where the
	// code binds nothing of that name.
	Loose map[string]*Sym
	// Methods is what methods of that name do, where the receiver is text, a
	// container or unknown.
	Methods map[string]Handler
	// Unquote is the text of a Str node.
	Unquote func(t *tree.Tree, id tree.ID) string
	// Attr looks up an attribute that is found nowhere else; ok is false if there
	// is nothing special about it.
	Attr func(m *Machine, recv Value, name string, id tree.ID) (v Value, ok bool)
	// SetAttr sees an assignment to a symbol's attribute or item.
	SetAttr func(m *Machine, recv Value, name string, v Value, id tree.ID)
	// Magic follows a Magic node.
	Magic func(m *Machine, id tree.ID) Value
	// Import follows an Import node.
	Import func(m *Machine, id tree.ID)
	// Receiver is true where a method's first parameter is its receiver.
	Receiver bool
	// Keys is true where o.k is o["k"].
	Keys bool
	// BlockScope is true where an Assign with FlagDeclare is local to its block.
	BlockScope bool
	// Constructor is the method that initialises an instance.
	Constructor string
	// Bare is true where a method names its object's members without a receiver.
	Bare bool
	// Base is the index of an array's first item.
	Base int64
	// Indices is true where an index may be negative, from the end.
	Indices bool
}

// Limits of one text.
const (
	maxDepth     = 1200 // nesting of expressions and calls
	maxInline    = 40   // functions followed into one another
	maxRecursion = 2    // times a function is followed into itself
	// inlinePerNode and inlineMin bound the steps spent in functions that are
	// followed into again.
	inlinePerNode = 6
	inlineMin     = 20_000
	maxUnroll     = 20_000
	// maxUnrolled bounds the steps spent in loops that are done as often as the
	// program would.
	maxUnrolled = 80_000
)

type scope struct {
	parent *scope
	// Most scopes are small: names are looked for one by one, and by an index
	// beyond manyVars.
	names []string
	vals  []Value
	index map[string]int
	// outer names are not local (global, nonlocal).
	outer map[string]bool
	// block marks a scope that only declarations bind in.
	block bool
	cond  int
}

// frame is a function that is being followed.
type frame struct {
	fn      *Fn
	this    Value
	ret     Value
	hasRet  bool
	yields  []Value
	args    []Value
	unknown bool
	calling *frame
}

// Machine follows one text.
type Machine struct {
	T *tree.Tree
	L *Language
	R effect.Result

	budget *effect.Budget
	over   bool
	deep   bool

	global *scope
	scope  *scope
	frame  *frame

	cond      int // conditional branches around the current statement
	loop      int // loops
	unbounded int // loops that nothing ends
	waiting   int // such loops that wait in each turn
	depth     int
	inline    int // functions being followed
	unrolled  int // steps spent in unrolled loops
	blur      int // loops whose end was not reached
	inlined   int // steps spent in functions that were followed before
	again     int // such functions being followed
	againFrom int // what was spent when the first of them was entered

	fns     []*Fn
	classes []*Class
	seen    map[uint64]bool
	memo    map[*Fn][]remembered
	folds   map[tree.ID]bool
	sinks   map[fnKey]bool
	follows map[fnKey]int
	stars   []*Sym // modules of which all names were imported
	tainted int    // how often a variable took up a source
	free    []*Call
	later   []func()
	thrown  Value                     // what was raised last
	extra   map[*Sym]map[string]Value // members the code gave to modules
	seed    maphash.Seed
}

type remembered struct {
	args []Value
	ret  Value
}

// Run follows a tree and returns what was found.
func Run(t *tree.Tree, l *Language, budget *effect.Budget) effect.Result {
	m := &Machine{T: t, L: l, budget: budget}
	defer t.Free()

	m.global = &scope{}
	m.scope = m.global

	if !budget.Spend(len(t.Nodes)/4) || t.Full {
		m.over = true
	}

	m.exec(t.Root)
	m.flush()
	m.rest()
	m.flush()

	if t.Errors > 0 {
		m.R.Note(effect.NoteSyntax, max(t.FirstError, 0), "")
	}

	if t.Deep || m.deep {
		m.R.Note(effect.NoteDepth, t.DeepAt, "")
	}

	if t.Full || m.over {
		m.R.Note(effect.NoteBudget, 0, "")
	}

	return m.R
}

// rest follows the functions and classes that nothing called.
func (m *Machine) rest() {
	for f, c := 0, 0; (f < len(m.fns) || c < len(m.classes)) && !m.over; {
		if c < len(m.classes) {
			m.restOfClass(m.classes[c])
			c++

			continue
		}

		if fn := m.fns[f]; !fn.called && fn.Owner == nil {
			m.follow(fn, fn.This, nil, nil, true)
		}

		f++
	}
}

func (m *Machine) restOfClass(c *Class) {
	if c.looked {
		return
	}

	c.looked = true

	if c.Last == nil {
		c.Last = &Object{Class: c}
	}

	self := Value{Kind: Instance, X: c.Last}
	names := sortedKeys(c.Attrs)

	// The constructor first: it fills the instance.
	for pass := range 2 {
		for _, name := range names {
			fn, _ := c.Attrs[name].X.(*Fn)
			if fn == nil || fn.called || (name == m.L.Constructor) != (pass == 0) {
				continue
			}

			m.follow(fn, self, nil, nil, true)
		}
	}
}

// step spends a step and says whether to go on.
func (m *Machine) step() bool {
	if m.over {
		return false
	}

	if !m.budget.Spend(1) {
		m.over = true

		return false
	}

	return true
}

// work spends steps for handling so many bytes.
func (m *Machine) work(bytes int) bool {
	if bytes >= 64 && !m.budget.Spend(bytes/64) {
		m.over = true
	}

	return !m.over
}

// Limited notes that a value was too large to fold.
func (m *Machine) Limited(id tree.ID) {
	if len(m.R.Notes) < 4 {
		m.R.Note(effect.NoteLimited, int(m.T.At(id).Start), "")
	}
}

// Emit reports an effect of a call, with the circumstances it stands in.
func (m *Machine) Emit(c *Call, e effect.Effect) {
	if e.Span == (effect.Span{}) {
		e.Span.Start, e.Span.End = m.T.Bounds(c.ID)
	}

	if e.Via == "" {
		e.Via = c.Via()
	}

	if c.Hidden {
		e.Flags |= effect.FlagHidden
	}

	m.emit(e)
}

// EmitAt reports an effect of a node.
func (m *Machine) EmitAt(id tree.ID, e effect.Effect) {
	e.Span.Start, e.Span.End = m.T.Bounds(id)
	m.emit(e)
}

func (m *Machine) emit(e effect.Effect) {
	e.Flags |= m.flags(e.Kind)

	if m.repeated(&e) {
		return
	}

	if telling(e.Kind) {
		m.sinkHere()
	}

	m.budget.Spend(4)
	m.R.Add(e)
}

// maxSearch is how many effects are searched one by one for a repeated one.
const maxSearch = 32

// repeated says whether the same effect was reported before: loops and
// functions are followed more than once.
func (m *Machine) repeated(e *effect.Effect) bool {
	if len(m.R.Effects) < maxSearch {
		for i := range m.R.Effects {
			if sameEffect(&m.R.Effects[i], e) {
				return true
			}
		}

		return false
	}

	if m.seen == nil {
		m.seen = map[uint64]bool{}
		m.seed = maphash.MakeSeed()

		for i := range m.R.Effects {
			m.seen[m.hash(&m.R.Effects[i])] = true
		}
	}

	h := m.hash(e)
	if m.seen[h] {
		return true
	}

	m.seen[h] = true

	return false
}

func sameEffect(a, b *effect.Effect) bool {
	if a.Span.Start != b.Span.Start || a.Kind != b.Kind || a.Flags != b.Flags || len(a.Args) != len(b.Args) ||
		a.Target != b.Target || a.Data != b.Data || a.Port != b.Port {
		return false
	}

	for i := range a.Args {
		if a.Args[i] != b.Args[i] {
			return false
		}
	}

	return true
}

func (m *Machine) hash(e *effect.Effect) uint64 {
	var h maphash.Hash

	h.SetSeed(m.seed)
	maphash.WriteComparable(&h, struct {
		kind               effect.Kind
		start              int
		flags              effect.Flag
		target, data, port effect.Value
	}{e.Kind, e.Span.Start, e.Flags, e.Target, e.Data, e.Port})

	for i := range e.Args {
		maphash.WriteComparable(&h, e.Args[i])
	}

	return h.Sum64()
}

// telling says whether an effect of that kind depends so much on its values
// that a function which has it must be followed with all that it is given.
func telling(k effect.Kind) bool {
	switch k {
	case effect.Exec, effect.Eval, effect.Write, effect.Delete, effect.Move, effect.Link, effect.Mode, effect.Connect,
		effect.Send, effect.Kill, effect.Priv, effect.Schedule:
		return true
	default:
		return false
	}
}

// sinkHere marks the functions that are being followed.
func (m *Machine) sinkHere() {
	for f := m.frame; f != nil; f = f.calling {
		if f.fn == nil {
			continue
		}

		if m.sinks == nil {
			m.sinks = map[fnKey]bool{}
		}

		m.sinks[f.fn.key()] = true
	}
}

// flags are the circumstances of what happens now.
func (m *Machine) flags(kind effect.Kind) effect.Flag {
	var f effect.Flag

	if m.loop > 0 {
		f |= effect.FlagLoop
	}

	if m.unbounded > 0 && !(kind == effect.Spawn && m.waiting > 0) {
		f |= effect.FlagUnbounded
	}

	if kind == effect.Spawn || kind == effect.Exec || kind == effect.Alloc {
		for fr := m.frame; fr != nil; fr = fr.calling {
			if fr.fn != nil && m.callsItself(fr.fn) {
				f |= effect.FlagRecursing

				break
			}
		}
	}

	return f
}

// callsItself says whether a function's body has a call to its own name.
func (m *Machine) callsItself(fn *Fn) bool {
	outer := m.T
	m.T = fn.Tree

	defer func() { m.T = outer }()

	n := m.T.At(fn.Node)
	name := m.T.Text(fn.Node)

	return name != "" && m.any(n.B, func(id tree.ID) bool {
		c := m.T.At(id)
		if c.Kind != tree.Call {
			return false
		}

		// The function may also be handed to something that starts it.
		for a := c.B; a != 0; a = m.T.At(a).Next {
			v := a
			if m.T.At(a).Kind == tree.Kw {
				v = m.T.At(a).A
			}

			if m.T.At(v).Kind == tree.Name && m.T.Text(v) == name {
				return true
			}
		}

		k := m.T.At(c.A).Kind

		return (k == tree.Name || k == tree.Attr && fn.Owner != nil) && m.T.Text(c.A) == name
	})
}

// any says whether f holds for a node of a subtree.
func (m *Machine) any(id tree.ID, f func(tree.ID) bool) bool {
	n := m.T.At(id)
	if f(id) {
		return true
	}

	for _, kid := range [...]tree.ID{n.A, n.B, n.C} {
		for k := kid; k != 0; k = m.T.At(k).Next {
			if !m.step() || m.any(k, f) {
				return true
			}
		}
	}

	return false
}

// Embed reports code inside the code.
func (m *Machine) Embed(c *Call, lang string, v Value, arg tree.ID) {
	e := effect.Embedded{Lang: lang, Text: v.Value(), Offset: -1, Via: c.Via(), Flags: m.flags(effect.Exec)}
	e.Span.Start, e.Span.End = m.T.Bounds(c.ID)

	if e.Text.Ref == "" && !e.Text.IsConst() {
		e.Text.Ref = m.ref(arg)
	}

	if c.Hidden {
		e.Flags |= effect.FlagHidden
	}

	if arg != 0 {
		if n := m.T.At(arg); n.Kind == tree.Str && m.T.Src[n.Start:n.End] == e.Text.Text {
			e.Offset = int(n.Start)
		}
	}

	for i := range m.R.Embedded {
		if o := &m.R.Embedded[i]; o.Span == e.Span && o.Text.Text == e.Text.Text && o.Text.Taint == e.Text.Taint {
			return
		}
	}

	m.sinkHere()
	m.budget.Spend(4)
	m.R.Embed(e)
}

// maxRef bounds the text by which an unknown value is known.
const maxRef = 60

// ref is the source text of an expression, by which an unknown value is known.
func (m *Machine) ref(id tree.ID) string {
	if id == 0 {
		return ""
	}

	start, end := m.T.Bounds(id)
	if n := m.T.At(id); n.Kind == tree.Kw {
		return m.ref(n.A)
	}

	if end <= start || end-start > maxRef || end > len(m.T.Src) {
		return ""
	}

	return m.T.Src[start:end]
}

// Over says whether the budget is spent.
func (m *Machine) Over() bool { return m.over }

// Star makes all names of a module known.
func (m *Machine) Star(s *Sym) { m.stars = append(m.stars, s) }

// Name is the value of a name in the current scope.
func (m *Machine) Name(name string) Value { return m.name(name) }

// EvalText gives the value of the last expression of another text, with the
// names of the current scope. What it does is not reported: the text is
// reported as Embedded.
func (m *Machine) EvalText(t *tree.Tree) Value {
	if !m.budget.Spend(len(t.Nodes)) || m.inline >= maxInline {
		return Value{}
	}

	sub := &Machine{
		T: t, L: m.L, budget: m.budget, global: m.global, scope: &scope{parent: m.scope, block: true}, stars: m.stars,
		inline: m.inline + 1, depth: m.depth + 1,
	}

	var v Value

	for id := t.At(t.Root).A; id != 0; id = t.At(id).Next {
		if k := t.At(id).Kind; k == tree.Expr || k == tree.Return {
			v = sub.eval(t.At(id).A)
		}
	}

	if v.Kind == Function || v.Kind == Type || v.Kind == Method {
		// It is of another tree.
		return Value{}
	}

	return v
}

// Source is the text of an expression.
func (m *Machine) Source(id tree.ID) string {
	if id == 0 {
		return ""
	}

	start, end := m.T.Bounds(id)
	if end > len(m.T.Src) || start > end {
		return ""
	}

	return m.T.Src[start:end]
}

// IsRegexp says whether an expression is a regular expression literal.
func (m *Machine) IsRegexp(id tree.ID) bool { return m.T.At(id).Kind == tree.Regexp }

// After is the letters after a regular expression literal: its flags.
func (m *Machine) After(id tree.ID) string {
	i := min(int(m.T.At(id).End)+1, len(m.T.Src))
	j := i

	for j < len(m.T.Src) && 'a' <= m.T.Src[j] && m.T.Src[j] <= 'z' {
		j++
	}

	return m.T.Src[i:j]
}

// InLoop runs f as the body of a loop.
func (m *Machine) InLoop(f func() Value) Value {
	m.loop++

	v := f()

	m.loop--

	return v
}

// Element is an item of v, if it is not known which.
func (m *Machine) Element(v Value) Value { return m.element(v) }

// Later runs f after the current statement: a callback sees what the statement
// that hands it over binds.
func (m *Machine) Later(f func()) { m.later = append(m.later, f) }

func (m *Machine) flush() {
	for len(m.later) > 0 && m.step() {
		f := m.later[0]
		m.later = m.later[1:]

		f()
	}
}

// Context is the source text of a call, from its bracket on.
func (m *Machine) Context(id tree.ID) string {
	n := m.T.At(id)

	return m.T.Src[n.Start:min(int(n.End), len(m.T.Src))]
}

// thrown is the name under which a handler finds what was raised.
const thrown = "thrown()"

// Thrown is the name under which a handler finds what was raised.
func Thrown() string { return thrown }

// Extend gives a library's module a member.
func (m *Machine) Extend(s *Sym, name string, v Value) {
	if m.extra == nil {
		m.extra = map[*Sym]map[string]Value{}
	}

	if m.extra[s] == nil {
		m.extra[s] = map[string]Value{}
	}

	m.extra[s][name] = v
}
