package flow

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// TestMemoryIsWiped: what one review knows, the next must not.
func TestMemoryIsWiped(t *testing.T) {
	t.Parallel()

	// f(secret); g = secret, where f(p) returns [p].
	src := "f p secret g"
	at := func(n tree.Node, start, end uint32) tree.Node {
		n.Start, n.End = start, end

		return n
	}

	x := tree.New(src)
	ret := x.Add(tree.Node{Kind: tree.Return, A: x.Add(tree.Node{Kind: tree.Seq, Op: '[', A: x.Add(at(tree.Node{Kind: tree.Name}, 2, 3))})})
	f := x.Add(at(tree.Node{Kind: tree.Func, A: x.Add(at(tree.Node{Kind: tree.Param}, 2, 3)), B: x.Add(tree.Node{Kind: tree.Block, A: ret})}, 0, 1))
	call := x.Add(tree.Node{Kind: tree.Call, A: x.Add(at(tree.Node{Kind: tree.Name}, 0, 1)), B: x.Add(at(tree.Node{Kind: tree.Str}, 4, 10))})
	x.At(f).Next = x.Add(tree.Node{Kind: tree.Assign, A: x.Add(at(tree.Node{Kind: tree.Name}, 11, 12)), B: call})
	x.Root = x.Add(tree.Node{Kind: tree.Block, A: f})

	l := &Language{Root: &Sym{}, Builtins: &Sym{}, Unquote: func(t *tree.Tree, id tree.ID) string { return t.Text(id) }}

	k := newMemory()
	k.run(x, l, effect.NewBudget(1000))

	assert.Contains(t, k.names.block, "g")
	assert.Contains(t, k.values.block, Text("secret"))
	assert.NotEmpty(t, k.calls)
	assert.NotEmpty(t, k.frames)

	k.wipe()

	fresh := newMemory()
	assert.Equal(t, fresh.names, k.names)
	assert.Equal(t, fresh.values, k.values)
	assert.Equal(t, fresh.scopes, k.scopes)
	assert.Equal(t, fresh.fns, k.fns)
	assert.Equal(t, fresh.lists, k.lists)
	assert.Equal(t, Machine{}, k.machine)
	assert.Empty(t, k.follows)
	assert.Empty(t, k.sinks)
	assert.Empty(t, k.folds)

	for _, f := range k.frames {
		assert.Equal(t, frame{}, *f)
	}

	for _, c := range k.calls {
		for _, v := range c.Args[:cap(c.Args)] {
			assert.Equal(t, Value{}, v)
		}
	}
}

func TestSlab(t *testing.T) {
	t.Parallel()

	s := newSlab[int](8)
	a := append(s.room(2), 1, 2)
	b := append(s.room(2), 3, 4)
	a = append(a, 5) // It must not run into b.

	assert.Equal(t, []int{1, 2, 5}, a)
	assert.Equal(t, []int{3, 4}, b)

	for range 20 {
		s.one(7)
	}

	assert.Empty(t, s.room(100))
	assert.GreaterOrEqual(t, cap(s.room(100)), 100)

	s.wipe()
	assert.Equal(t, make([]int, 8), s.block)
	assert.Len(t, s.rest, 8)
	assert.Equal(t, 1, *s.one(1))
}
