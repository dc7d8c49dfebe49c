package flow

// manyVars is how many names a scope holds before it is given an index.
const manyVars = 12

// get finds a name in this scope.
func (s *scope) get(name string) *Value {
	if s.index != nil {
		if i, ok := s.index[name]; ok {
			return &s.vals[i]
		}

		return nil
	}

	for i := range s.names {
		if s.names[i] == name {
			return &s.vals[i]
		}
	}

	return nil
}

// put binds a name in a scope.
func (m *Machine) put(s *scope, name string, v Value) {
	if p := s.get(name); p != nil {
		*p = v

		return
	}

	if n := len(s.names); n == cap(s.names) {
		s.names = append(m.memory.names.room(max(4, 2*n)), s.names...)
		s.vals = append(m.memory.values.room(max(4, 2*n)), s.vals...)
	}

	s.names = append(s.names, name)
	s.vals = append(s.vals, v)

	switch {
	case s.index != nil:
		s.index[name] = len(s.names) - 1
	case len(s.names) > manyVars:
		s.index = make(map[string]int, 2*len(s.names))
		for i, n := range s.names {
			s.index[n] = i
		}
	}
}

// lookup finds a variable.
func (m *Machine) lookup(name string) (Value, bool) {
	for s := m.scope; s != nil; s = s.parent {
		if v := s.get(name); v != nil {
			return *v, true
		}
	}

	return Value{}, false
}

// name is the value of a name.
func (m *Machine) name(name string) Value {
	if v, ok := m.lookup(name); ok {
		return v
	}

	if m.L.Bare {
		if v, ok := m.bare(name); ok {
			return v
		}
	}

	return m.Global(name)
}

// bare is a member of the current object or class.
func (m *Machine) bare(name string) (Value, bool) {
	for f := m.frame; f != nil; f = f.calling {
		if f.fn == nil || f.fn.Owner == nil {
			continue
		}

		if f.this.Kind == Instance && f.this.Object().Class == f.fn.Owner {
			return m.member(f.this, f.this.Object(), name, 0)
		}

		v, ok := m.classAttr(f.fn.Owner, name)

		return v, ok
	}

	return Value{}, false
}

// Global is the value of a name that the code does not bind.
func (m *Machine) Global(name string) Value {
	if s := m.L.Builtins.Kid(name); s != nil {
		return m.read(s, 0)
	}

	for _, star := range m.stars {
		if s := star.Kid(name); s != nil {
			return m.read(s, 0)
		}
	}

	// A module that is used and not imported: the code is a part of something,
	// such as a later cell of a notebook.
	if s := m.L.Root.Kid(name); s != nil {
		return m.read(s, 0)
	}

	if s := m.L.Loose[name]; s != nil {
		return m.read(s, 0)
	}

	return Value{Ref: name}
}

// Bind binds a name in the current scope, as an import or definition does.
func (m *Machine) Bind(name string, v Value) {
	s := m.scope
	for s.block && s.parent != nil && !m.L.BlockScope {
		s = s.parent
	}

	m.set(s, name, v)
}

// assign binds a name as an assignment does.
func (m *Machine) assign(name string, v Value) {
	if v.Kind == Unknown && v.Ref == "" {
		v.Ref = name
	}

	if m.L.BlockScope {
		for s := m.scope; s != nil; s = s.parent {
			if s.get(name) != nil {
				m.set(s, name, v)

				return
			}
		}

		m.set(m.global, name, v)

		return
	}

	s := m.scope
	for s.block && s.parent != nil {
		s = s.parent
	}

	if s.outer[name] {
		for o := s.parent; o != nil; o = o.parent {
			if o.get(name) != nil || o.parent == nil {
				m.set(o, name, v)

				return
			}
		}
	}

	m.set(s, name, v)
}

// set binds a name in a scope. In a branch that may not be taken, what was
// there before may still be there after it.
func (m *Machine) set(s *scope, name string, v Value) {
	if v.Taint != 0 || v.X != nil {
		m.tainted++
	}

	if m.cond > s.cond {
		if old := s.get(name); old != nil && matters(*old) {
			v = Join(v, *old)
		}
	}

	m.put(s, name, v)
}

// matters says whether losing sight of a value could hide something.
func matters(v Value) bool {
	if v.Taint != 0 {
		return true
	}

	switch v.Kind {
	case Unknown, None, Bool, Int, Record, Array:
		return false
	case Str, Bytes:
		return v.Text != ""
	case Symbol, Function, Type, Instance, Method, Either:
	}

	return true
}

// inner runs f in a scope of its own.
func (m *Machine) inner(block bool, f func()) {
	saved := m.scope
	m.scope = m.memory.scopes.one(scope{parent: saved, block: block, cond: m.cond})

	f()

	m.scope = saved
}

// branch runs f as something that may not happen.
func (m *Machine) branch(f func()) {
	m.cond++

	f()

	m.cond--
}
