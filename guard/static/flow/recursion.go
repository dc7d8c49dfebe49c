package flow

import (
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// callsItself says whether a function's body has a call to its own name.
func (m *Machine) callsItself(fn *Fn) bool {
	if fn.Name == "" {
		return false
	}

	outer := m.T
	m.T = fn.Tree

	defer func() { m.T = outer }()

	return m.any(m.T.At(fn.Node).B, func(id tree.ID) bool { return m.T.At(id).Kind == tree.Call && m.startsFn(id, fn) })
}

// definesName says whether a function has one of its own name in it.
func (m *Machine) definesName(fn *Fn) bool {
	return m.any(m.T.At(fn.Node).B, func(id tree.ID) bool { return m.T.At(id).Kind == tree.Func && m.T.Text(id) == fn.Name })
}

// startsFn says whether a call is one of a function by its name, or hands the
// function to something that starts it.
func (m *Machine) startsFn(id tree.ID, fn *Fn) bool {
	c := m.T.At(id)
	k := m.T.At(c.A).Kind

	return (k == tree.Name || k == tree.Attr && fn.Owner != nil) && m.T.Text(c.A) == fn.Name || m.hands(id, fn)
}

// hands says whether a call is given a function by its name.
func (m *Machine) hands(id tree.ID, fn *Fn) bool {
	c := m.T.At(id)

	for a := c.B; a != 0; a = m.T.At(a).Next {
		v := a
		if m.T.At(a).Kind == tree.Kw {
			v = m.T.At(a).A
		}

		if m.T.At(v).Kind == tree.Name && m.T.Text(v) == fn.Name {
			return true
		}
	}

	return false
}

// restarts says whether a function starts itself again whatever happens, and at
// once: nothing ends what it does.
func (m *Machine) restarts(fn *Fn) bool {
	if fn.Name == "" {
		return false
	}

	key := fn.key()
	if r, ok := m.endless[key]; ok {
		return r
	}

	r := m.callsItself(fn) && !m.definesName(fn) && m.always(m.T.At(fn.Node).B, fn) && !m.interactive(m.T.At(fn.Node).B)

	if m.endless == nil {
		m.endless = map[fnKey]bool{}
	}

	m.endless[key] = r

	return r
}

// always says whether a chain of statements, or an expression, starts a
// function again in any case, before anything can leave it.
func (m *Machine) always(id tree.ID, fn *Fn) bool {
	for ; id != 0; id = m.T.At(id).Next {
		if !m.step() {
			return false
		}

		n := *m.T.At(id)

		switch n.Kind {
		case tree.Func, tree.Class, tree.Cond, tree.Match:
			continue
		case tree.If:
			if m.returns(n.A) || m.returns(n.B) || m.returns(n.C) {
				return false
			}

			continue
		case tree.Raise, tree.Jump:
			return false
		case tree.Return:
			return m.always(n.A, fn)
		case tree.For:
			// A walk over what there is ends with it; the same thing over and over
			// does not.
			if m.always(n.C, fn) && !m.passesOn(n.C, fn) {
				return true
			}

			continue
		case tree.Comp:
			if m.always(n.A, fn) && !m.passesOn(n.A, fn) {
				return true
			}

			continue
		case tree.Try:
			if m.always(n.A, fn) {
				return true
			}

			continue
		case tree.Binary:
			if n.Op == 'a' || n.Op == 'o' || n.Op == '?' {
				if m.always(n.A, fn) {
					return true
				}

				continue
			}
		case tree.Call:
			if m.hands(id, fn) || m.startsFn(id, fn) && !m.ofAnother(n.A) {
				return !m.delays(id)
			}
		default:
		}

		if m.always(n.A, fn) || m.always(n.B, fn) || m.always(n.C, fn) {
			return true
		}
	}

	return false
}

// ofAnother says whether a callee is a method of something that need not be the
// object itself: of its base class, or of what it wraps.
func (m *Machine) ofAnother(callee tree.ID) bool {
	n := m.T.At(callee)
	if n.Kind != tree.Attr {
		return false
	}

	of := m.T.At(n.A)

	return of.Kind != tree.Name || m.T.Text(n.A) != "self" && m.T.Text(n.A) != "this"
}

// returns says whether something in a subtree leaves the function.
func (m *Machine) returns(id tree.ID) bool {
	for ; id != 0; id = m.T.At(id).Next {
		if m.any(id, func(x tree.ID) bool {
			switch m.T.At(x).Kind {
			case tree.Return, tree.Raise:
				return true
			case tree.Call:
				return leaving[m.calleeName(m.T.At(x).A)]
			default:
				return false
			}
		}) {
			return true
		}
	}

	return false
}

// passesOn says whether a function is called by its name with arguments.
func (m *Machine) passesOn(id tree.ID, fn *Fn) bool {
	return m.any(id, func(x tree.ID) bool {
		c := m.T.At(x)

		return c.Kind == tree.Call && c.B != 0 && m.calleeName(c.A) == fn.Name
	})
}

// delays says whether a call starts what it is given only after some time.
func (m *Machine) delays(id tree.ID) bool {
	var limit int64

	switch m.calleeName(m.T.At(id).A) {
	case "setTimeout", "after", "setInterval", "schedule", "scheduleAtFixedRate":
		limit = ShortDelay
	case "Timer", "call_later", "later":
	default:
		return false
	}

	for a := m.T.At(id).B; a != 0; a = m.T.At(a).Next {
		switch m.T.At(a).Kind {
		case tree.Num:
			if v := parseNumber(m.T.Text(a)); v.Kind == Int && v.Int <= limit {
				return false
			}
		case tree.Name, tree.Func, tree.Attr:
			continue
		default:
		}

		return true
	}

	return m.T.At(m.T.At(id).B).Next != 0
}

// ShortDelay is what counts as at once, in milliseconds.
const ShortDelay = 20

// interactive says whether a body asks somebody, or takes its time.
func (m *Machine) interactive(id tree.ID) bool {
	return m.any(id, func(x tree.ID) bool {
		if m.T.At(x).Kind != tree.Call {
			return false
		}

		switch m.calleeName(m.T.At(x).A) {
		case "input", "question", "prompt", "readline", "readLine", "nextLine", "accept", "recv":
			return true
		case "sleep", "Sys.sleep", "delay":
			return !m.brief(x)
		}

		return false
	})
}

// Restarts says whether a function is being followed already, and would be
// started again in any case.
func (m *Machine) Restarts(f Value) bool {
	fn, ok := f.First().X.(*Fn)
	if b, is := f.First().X.(*Bound); is {
		fn, ok = b.Fn, b.Fn != nil
	}

	return ok && fn.running > 0 && m.cond == fn.cond
}

// Forever runs f as what happens over and over without an end.
func (m *Machine) Forever(f func()) {
	m.unbounded++

	f()

	m.unbounded--
}

// CallOn calls a function as a method of an object, where the function takes
// what it is called on for "this".
func (m *Machine) CallOn(this, f Value, id tree.ID, args ...Value) Value {
	fn, ok := f.First().X.(*Fn)
	if !ok || fn.This.Kind != Unknown || fn.This.Taint != 0 {
		return m.CallValue(f, id, args...)
	}

	fn.This = this
	v := m.CallValue(f, id, args...)
	fn.This = Value{}

	return v
}
