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
	leaving   int // loops that are left when something is found
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
	endless map[fnKey]bool
	files   map[string]effect.Value // what was written to files
	memory  *memory
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
	k, _ := memories.Get().(*memory)
	r := k.run(t, l, budget)
	k.free()

	return r
}

// run is Run in a memory that the caller gives free.
func (k *memory) run(t *tree.Tree, l *Language, budget *effect.Budget) effect.Result {
	k.machine = Machine{T: t, L: l, budget: budget, memory: k, folds: k.folds, sinks: k.sinks, follows: k.follows}
	m := &k.machine

	defer t.Free()

	m.R.Effects = budget.Effects(0)
	m.global = m.memory.scopes.one(scope{})
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
			m.followUncalled(fn, fn.This)
		}

		f++
	}
}

// followUncalled follows a function that nothing called, with nothing known. A
// text may have many that are small.
func (m *Machine) followUncalled(fn *Fn, this Value) {
	m.over = m.over || !m.budget.Spend(8)
	m.follow(fn, this, nil, nil, true)
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

			m.followUncalled(fn, self)
		}
	}
}
