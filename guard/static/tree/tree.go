// Package tree is the syntax tree that the front ends of programming languages
// share, so that one analysis (package flow) serves all of them.
//
// A tree is an arena: nodes refer to each other by index, index 0 is "none",
// and siblings are chained by Next. It keeps what an analysis of effects needs
// and drops the rest (types, most operators' exact meaning, layout).
package tree

import "sync"

// ID is a node's index in its Tree; 0 is none.
type ID int32

// Kind is a node's kind. The comment names its children.
type Kind uint8

// The kinds of expressions.
const (
	// Bad is text that could not be read.
	Bad Kind = iota
	// Name is an identifier.
	Name
	// Num is a number as written.
	Num
	// Str is the inside of a string literal, still escaped; Flag says how.
	Str
	// Format is a string of parts: A is the first, Str and Interp alternate.
	Format
	// Interp is an interpolation in a Format: A the expression, B what else its
	// format specification evaluates.
	Interp
	// Attr is A.name; the span is the name's.
	Attr
	// Index is A[B]; the span is the brackets'.
	Index
	// Slice is A:B:C inside an Index.
	Slice
	// Call is A(B...); the span is the parentheses'. FlagNew for "new A(B...)".
	Call
	// Kw is a keyword argument: the span is its name, A its value.
	Kw
	// Star is *A, or A spread; FlagDouble for **A.
	Star
	// Binary is A Op B.
	Binary
	// Unary is Op A.
	Unary
	// Cond is A if B else C: A the value when true, B the test, C the other.
	Cond
	// Seq is a list ('['), tuple ('(') or set ('{') by Op: A is the first. With
	// Op ',' its value is that of the last.
	Seq
	// Dict is a dict or object: A is the first of Pair, Star, Func.
	Dict
	// Pair is A: B in a Dict.
	Pair
	// Comp is a comprehension: A the element, B the first CompFor or CompIf, Op
	// as in Seq.
	Comp
	// CompFor is "for A in B".
	CompFor
	// CompIf is "if A".
	CompIf
	// Assign is A Op= B, both as a statement and as an expression; Op is 0 for
	// plain assignment. Several targets are nested Assigns in B.
	Assign
	// As is "A as B": the value A is bound to the target B.
	As
	// Func is a function: A its first Param, B its body (a Block, or an expression
	// where FlagExpr), C its decorators. The span is its name; empty for lambdas.
	Func
	// Param is a parameter: the span is its name, A its default, B a pattern to
	// bind instead of the name; Op '*' takes the rest, 'd' the keywords.
	Param
	// Class is a class: the span is its name, A the first base, B the body, C its
	// decorators.
	Class
	// Regexp is a regular expression literal.
	Regexp
)

// The kinds of statements.
const (
	// Block is a list of statements: A is the first.
	Block Kind = iota + 64
	// Expr is an expression as a statement: A.
	Expr
	// If is: A the test, B the body, C what else.
	If
	// While is: A the test, B the body, C the else or the step of a for(;;) loop.
	While
	// For is: A the target, B what is iterated over, C the body.
	For
	// Try is: A the body, B the chain of handlers and other blocks.
	Try
	// With is: A the chain of As or expressions, B the body.
	With
	// Return is: A the value. Yield, too.
	Return
	// Import is a module import: the span is the module's name (the specifier),
	// A the first Alias; FlagFrom where the aliases name the module's members.
	Import
	// Alias is: the span is the name, A the Name it is bound to, if another.
	Alias
	// Delete is del A, delete A.
	Delete
	// Global says that the names in A are not local.
	Global
	// Raise is raise A, throw A.
	Raise
	// Jump is break, continue or pass; the span is the word.
	Jump
	// Match is: A the subject, B the chain of Case.
	Match
	// Case is: A the pattern, B the guard, C the body.
	Case
	// Magic is a line or cell in the notebook's own syntax; the span is all of it.
	Magic
)

// Flag is a set of details of a node.
type Flag uint8

// The flags.
const (
	// FlagBytes marks a Str of bytes.
	FlagBytes Flag = 1 << iota
	// FlagRaw marks a Str without escapes.
	FlagRaw
	// FlagNew marks a Call that constructs.
	FlagNew
	// FlagFrom marks an Import whose aliases are members.
	FlagFrom
	// FlagExpr marks a Func whose body is an expression.
	FlagExpr
	// FlagDouble marks a Star of keywords.
	FlagDouble
	// FlagDeclare marks an Assign that declares its target in the block's scope,
	// and a Block that has such.
	FlagDeclare
	// FlagHoist marks an Assign that declares its target in the function's scope.
	FlagHoist
)

// Node is one node.
type Node struct {
	Kind       Kind
	Op         byte
	Flag       Flag
	Start, End uint32
	A, B, C    ID
	Next       ID
	// Alt is the index in Tree.Alts of the text, where it is not the source's.
	Alt ID
}

// Tree is a parsed text.
type Tree struct {
	Src   string
	Nodes []Node
	// Alts holds texts that differ from the source: an identifier after
	// normalisation or unescaping. Alts[0] is unused.
	Alts []string
	// Root is a Block.
	Root ID
	// Errors counts the places that could not be read; FirstError is the offset
	// of the first.
	Errors     int
	FirstError int
	// Deep says that something was nested too deep to be read, at DeepAt.
	Deep   bool
	DeepAt int
	// Full says that the tree ended before the text did.
	Full bool
}

// MaxNodes bounds a tree.
const MaxNodes = 300_000

// New gives an empty tree for a text.
func New(src string) *Tree {
	t, ok := pool.Get().(*Tree)
	if !ok {
		t = &Tree{}
	}

	nodes := t.Nodes
	if cap(nodes) < len(src)/8 {
		nodes = make([]Node, 0, len(src)/5+16)
	}

	*t = Tree{Src: src, FirstError: -1, Nodes: append(nodes[:0], Node{}), Alts: t.Alts[:0]}

	return t
}

// pool keeps trees that are done with, for their arenas.
var pool sync.Pool

// maxPooled is the largest arena, in nodes, that is kept.
const maxPooled = 64 << 10

// Free gives the tree's memory back. It must not be used any more.
func (t *Tree) Free() {
	if cap(t.Nodes) > maxPooled {
		return
	}

	clear(t.Alts)
	*t = Tree{Nodes: t.Nodes[:0], Alts: t.Alts[:0]}

	pool.Put(t)
}

// Add appends a node and returns its index.
func (t *Tree) Add(n Node) ID {
	t.Nodes = append(t.Nodes, n)

	return ID(len(t.Nodes) - 1)
}

// At returns a node to be read or changed, until the next Add.
func (t *Tree) At(id ID) *Node { return &t.Nodes[id] }

// Text is the text of a node's span: for a Name, Attr, Kw, Param, Func, Class
// or Alias its name.
func (t *Tree) Text(id ID) string {
	n := &t.Nodes[id]
	if n.Alt != 0 {
		return t.Alts[n.Alt]
	}

	return t.Src[n.Start:n.End]
}

// Alt stores a text that is not in the source.
func (t *Tree) Alt(s string) ID {
	if len(t.Alts) == 0 {
		t.Alts = append(t.Alts, "")
	}

	t.Alts = append(t.Alts, s)

	return ID(len(t.Alts) - 1)
}

// Bounds is the whole span of an expression: from where its leftmost part
// starts to where it ends.
func (t *Tree) Bounds(id ID) (start, end int) {
	n := &t.Nodes[id]
	start, end = int(n.Start), int(n.End)

	for {
		switch n.Kind {
		case Attr, Index, Call, Binary, Assign, As, Cond:
		default:
			return min(start, int(n.Start)), end
		}

		if n.A == 0 {
			return min(start, int(n.Start)), end
		}

		start = min(start, int(n.Start))
		n = &t.Nodes[n.A]
	}
}

// Fail records a place that could not be read.
func (t *Tree) Fail(offset int) {
	t.Errors++

	if t.FirstError < 0 {
		t.FirstError = offset
	}
}

// TooDeep records a place that is nested too deep.
func (t *Tree) TooDeep(offset int) {
	if !t.Deep {
		t.Deep, t.DeepAt = true, offset
	}
}

// List collects a chain of siblings while it is built.
type List struct{ First, Last ID }

// Push appends a node to the chain.
func (l *List) Push(t *Tree, id ID) {
	if id == 0 {
		return
	}

	if l.First == 0 {
		l.First = id
	} else {
		t.Nodes[l.Last].Next = id
	}

	l.Last = id
}
