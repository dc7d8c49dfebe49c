package flow

import (
	"slices"
	"strings"
)

// Handler is what a call to a library function does: it reports effects and
// returns the result.
type Handler func(m *Machine, c *Call) Value

// Sym is a name of a language's library, in a tree of names: "os" has the
// child "system", and "socket.socket" the child "()" for its instances.
type Sym struct {
	// Name is the full dotted name.
	Name string
	// Path says that instances are file paths.
	Path bool
	// Endless says that instances are iterators that never end.
	Endless bool
	// Cheap says that it is one of the functions that decoders are made of.
	Cheap bool
	// Callback says that to give the function away is as telling as to call it.
	Callback bool
	// Call is what calling it does; nil for nothing known.
	Call Handler
	// Get is what reading it as a value does and gives.
	Get Handler
	// Inst is the type of what calling it returns, where Call is nil.
	Inst *Sym
	kids map[string]*Sym
	// frozen says that the tree is in use, by several reviews at once, and must
	// not grow.
	frozen bool
}

// Freeze ends the building of a tree of names. From then on At finds, and does
// not make.
func (s *Sym) Freeze() {
	if s.frozen {
		return // Seen: a name may be linked to what is above it.
	}

	s.frozen = true
	for _, k := range s.kids {
		k.Freeze()
	}
}

// Kid is the child of that name, or nil.
func (s *Sym) Kid(name string) *Sym {
	if s == nil {
		return nil
	}

	return s.kids[name]
}

// At is the symbol of a dotted path below s, made if it is not there.
func (s *Sym) At(path string) *Sym {
	for part := range strings.SplitSeq(path, ".") {
		k := s.kids[part]
		if k == nil && s.frozen {
			return &Sym{Name: path, frozen: true}
		}

		if k == nil {
			if s.kids == nil {
				s.kids = map[string]*Sym{}
			}

			k = &Sym{Name: part}
			if s.Name != "" {
				k.Name = s.Name + "." + part
			}

			s.kids[part] = k

			if base, ok := strings.CutSuffix(part, "()"); ok && base != "" {
				s.At(base).Inst = k
			}
		}

		s = k
	}

	return s
}

// Named is the child of that very name, dots included, made if it is not there.
func (s *Sym) Named(name string) *Sym {
	k := s.kids[name]
	if k == nil {
		k = &Sym{Name: name}
		s.Link(name, k)
	}

	return k
}

// DefNamed sets what calling does, for each of the names separated by spaces,
// dots included.
func (s *Sym) DefNamed(names string, h Handler) {
	for name := range strings.FieldsSeq(names) {
		s.Named(name).Call = h
	}
}

// Link makes the name another name of a symbol.
func (s *Sym) Link(name string, to *Sym) {
	if s.kids == nil {
		s.kids = map[string]*Sym{}
	}

	s.kids[name] = to
}

// Def sets what calling does, for each of the paths separated by spaces. A
// part "name()" stands for the instances that calling name returns.
func (s *Sym) Def(paths string, h Handler) {
	for path := range strings.FieldsSeq(paths) {
		s.At(path).Call = h
	}
}

// DefGet sets what reading gives, for each of the paths.
func (s *Sym) DefGet(paths string, h Handler) {
	for path := range strings.FieldsSeq(paths) {
		s.At(path).Get = h
	}
}

// Short is the last part of the name.
func (s *Sym) Short() string {
	return s.Name[strings.LastIndexByte(s.Name, '.')+1:]
}

func sortedKeys[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}

	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}

	slices.Sort(keys)

	return keys
}
