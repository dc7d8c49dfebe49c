package flow

import (
	"sync"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// memory is where the values of a text are kept while it is followed. A review
// that ends passes it on to the next, wiped.
type memory struct {
	values slab[Value]
	names  slab[string]
	scopes slab[scope]
	fns    slab[Fn]
	lists  slab[List]
	// machine is the state of the run, and the maps are its own.
	machine Machine
	follows map[fnKey]int
	sinks   map[fnKey]bool
	folds   map[tree.ID]bool
	// frames and calls are given back one by one, when their function or call is
	// done with.
	frames []*frame
	calls  []*Call
}

var memories = sync.Pool{New: func() any { return newMemory() }}

func newMemory() *memory {
	return &memory{
		values: newSlab[Value](1024), names: newSlab[string](512), scopes: newSlab[scope](128), fns: newSlab[Fn](128), lists: newSlab[List](128),
		follows: map[fnKey]int{}, sinks: map[fnKey]bool{}, folds: map[tree.ID]bool{},
	}
}

// maxKept bounds the maps that are kept: those of long texts are not.
const maxKept = 1024

// free gives the memory to the next review.
func (k *memory) free() {
	if len(k.follows)+len(k.folds) > maxKept {
		return
	}

	k.wipe()
	memories.Put(k)
}

// wipe leaves nothing of the text in the memory.
func (k *memory) wipe() {
	k.values.wipe()
	k.names.wipe()
	k.scopes.wipe()
	k.fns.wipe()
	k.lists.wipe()
	k.machine = Machine{}

	clear(k.follows)
	clear(k.sinks)
	clear(k.folds)

	for _, f := range k.frames {
		*f = frame{}
	}

	for _, c := range k.calls {
		clear(c.Args[:cap(c.Args)])
		clear(c.Kw[:cap(c.Kw)])
	}
}

// slab hands out pieces of one block, which is used again, and of further
// blocks once that is used up, which are not.
type slab[T any] struct {
	block []T
	rest  []T
}

func newSlab[T any](n int) slab[T] {
	block := make([]T, n)

	return slab[T]{block: block, rest: block}
}

// room is an empty list with room for n.
func (s *slab[T]) room(n int) []T {
	if n > len(s.rest) {
		if n > len(s.block)/4 {
			return make([]T, 0, n)
		}

		s.rest = make([]T, len(s.block)/2)
	}

	out := s.rest[:0:n]
	s.rest = s.rest[n:]

	return out
}

// one is a T of its own.
func (s *slab[T]) one(v T) *T {
	p := &s.room(1)[:1][0]
	*p = v

	return p
}

// wipe takes everything back. All that was handed out must be out of use.
func (s *slab[T]) wipe() {
	used := len(s.block)
	if len(s.rest) > 0 && &s.rest[len(s.rest)-1] == &s.block[len(s.block)-1] {
		used -= len(s.rest)
	}

	clear(s.block[:used])
	s.rest = s.block
}
