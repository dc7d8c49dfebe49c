package flow

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// loopBody follows the body of a loop. If it took up data from a source, it is
// followed once more, for what flows from one turn to the next.
func (m *Machine) loopBody(f func()) {
	m.loop++

	before := m.tainted

	f()

	if m.loop == 1 && m.inline <= 1 && m.tainted != before && !m.over {
		f()
	}

	m.loop--
}

func (m *Machine) execWhile(id tree.ID, n tree.Node) {
	v := m.eval(n.A)
	endless := n.A == 0 || isTrue(v) && m.T.At(n.A).Kind != tree.Binary

	if endless && m.leaves(n.B, 0) {
		endless = false
	}

	waits := endless && m.waits(n.B)
	if waits {
		m.waiting++
	}

	if endless {
		m.unbounded++
	}

	if v.Kind == Bool && v.Int == 1 && !endless && m.T.At(n.A).Kind == tree.Binary && m.decodes(n.B) {
		// A decoder that counts.
		m.unroll(func() bool {
			m.exec(n.B)
			m.exec(n.C)

			return isTrue(m.eval(n.A))
		})

		return
	}

	spent := len(m.R.Effects) + len(m.R.Embedded)
	many := m.countedThrough(n)
	leaves := many != "" && m.leaves(n.B, 0)

	if leaves {
		m.leaving++
	}

	m.loopBody(func() {
		if many != "" {
			m.assign(many, Value{Many: true})
		}

		m.exec(n.B)
		m.exec(n.C)
	})

	if leaves {
		m.leaving--
	}

	if waits {
		m.waiting--
	}

	if endless {
		m.unbounded--

		if spent == len(m.R.Effects)+len(m.R.Embedded) {
			m.loopEffect(id)
		}
	}
}

// countedThrough is the variable by which a loop counts through more numbers
// than are told apart; empty if there is none.
func (m *Machine) countedThrough(n tree.Node) string {
	test := *m.T.At(n.A)
	for test.Kind == tree.Binary && test.Op == 'a' {
		test = *m.T.At(test.A)
	}

	if n.A == 0 || test.Kind != tree.Binary {
		return ""
	}

	counter, bound := test.A, test.B

	switch test.Op {
	case '<', '{', '!':
	case '>', '}':
		// A counter may come second, or count down.
		if m.T.At(counter).Kind != tree.Name {
			counter, bound = bound, counter
		}
	default:
		return ""
	}

	if c := m.T.At(counter); c.Kind == tree.Assign {
		counter = c.A // p++ < n
	}

	if m.T.At(counter).Kind != tree.Name {
		return ""
	}

	name := m.T.Text(counter)

	from, _ := m.lookup(name)
	to := m.eval(bound)

	if from.Kind != Int || to.Kind != Int || max(from.Int, to.Int)-min(from.Int, to.Int) < fewNumbers {
		return ""
	}

	steps := func(id tree.ID) bool {
		for ; id != 0; id = m.T.At(id).Next {
			if m.any(id, func(x tree.ID) bool {
				a := m.T.At(x)
				if a.Kind != tree.Assign || m.T.At(a.A).Kind != tree.Name || m.T.Text(a.A) != name {
					return false
				}

				by := m.T.At(a.B)

				return a.Op == '+' || a.Op == '-' || a.Op == 0 && by.Kind == tree.Binary && (by.Op == '+' || by.Op == '-')
			}) {
				return true
			}
		}

		return false
	}

	if steps(n.C) || steps(n.A) || steps(n.B) {
		return name
	}

	return ""
}

// waits says whether a loop waits for something in each turn, as servers and
// workers do.
func (m *Machine) waits(id tree.ID) bool { return m.waitsIn(id, maxWaits) }

// maxWaits bounds how many functions deep a wait is looked for.
const maxWaits = 3

func (m *Machine) waitsIn(id tree.ID, depth int) bool {
	for ; id != 0; id = m.T.At(id).Next {
		if !m.step() {
			return true
		}

		n := *m.T.At(id)

		switch n.Kind {
		case tree.Func:
			continue // It may run beside the loop.
		case tree.Unary:
			// To wait until something has started is not to wait for its end.
			if n.Op == 'w' && !starters[m.calleeOf(n.A)] {
				return true
			}
		case tree.Call:
			name := m.calleeName(n.A)
			if starters[name] {
				continue
			}

			switch name {
			case "accept", "recv", "recvfrom", "read", "readline", "get", "wait", "join", "input", "select", "poll", "take", "readLine", "waitFor",
				"serve_forever", "communicate", "nextLine", "question":
				return true
			case "sleep", "Sys.sleep":
				if !m.brief(id) {
					return true
				}
			}

			if fn := m.named(name); fn != nil && depth > 0 && fn.running == 0 && m.waitsIn(m.T.At(fn.Node).B, depth-1) {
				return true
			}
		default:
		}

		if m.waitsIn(n.A, depth) || m.waitsIn(n.B, depth) || m.waitsIn(n.C, depth) {
			return true
		}
	}

	return false
}

// named is a function of this text by its name, or nil.
func (m *Machine) named(name string) *Fn {
	if name == "" {
		return nil
	}

	for _, fn := range m.fns[:min(len(m.fns), maxScan)] {
		if fn.Name == name && fn.Tree == m.T {
			return fn
		}
	}

	return nil
}

// starters start something and do not wait for its end.
var starters = map[string]bool{"create_subprocess_exec": true, "create_subprocess_shell": true, "spawn": true, "fork": true, "Worker": true, "mcparallel": true, "r_bg": true, "future": true}

// calleeOf is the name of what an expression calls.
func (m *Machine) calleeOf(id tree.ID) string {
	if n := m.T.At(id); n.Kind == tree.Call {
		return m.calleeName(n.A)
	}

	return ""
}

// brief says whether a call to sleep is over at once: milliseconds for Thread,
// seconds for all others.
func (m *Machine) brief(call tree.ID) bool {
	n := m.T.At(call)
	a := m.T.At(n.B)

	if a.Kind != tree.Num {
		return false
	}

	limit := 0.5
	if strings.HasPrefix(m.Source(n.A), "Thread.") || strings.HasPrefix(m.Source(n.A), "Bun.") {
		limit *= 1000
	}

	f, err := strconv.ParseFloat(m.T.Text(n.B), 64)

	return err == nil && f < limit
}

// unroll runs a decoder's loop as often as the program would: turn does one
// round and says whether there is another. If that takes too long, what is put
// together in the loop becomes unknown.
func (m *Machine) unroll(turn func() bool) {
	m.loop++

	more := m.unrolled < maxUnrolled

	for range maxUnroll {
		if !more || m.over {
			break
		}

		before := m.budget.Spent()
		more = turn()
		m.unrolled += m.budget.Spent() - before

		if m.unrolled >= maxUnrolled {
			break
		}
	}

	if more {
		m.blur++
		turn()
		m.blur--
	}

	m.loop--
}

func isTrue(v Value) bool {
	switch v.Kind {
	case Bool, Int:
		return v.Int != 0
	case Str, Bytes:
		return v.Text != "" && v.Taint == 0
	case Unknown, None, Array, Record, Symbol, Function, Type, Instance, Method, Either:
	}

	return false
}

// leaves says whether a loop's body has something that leaves the loop; inner
// counts loops within it, whose breaks are their own.
func (m *Machine) leaves(id tree.ID, inner int) bool {
	for ; id != 0; id = m.T.At(id).Next {
		n := *m.T.At(id)

		if !m.step() {
			return true
		}

		switch n.Kind {
		case tree.Return, tree.Raise:
			return true
		case tree.Jump:
			if inner == 0 && m.T.Text(id) == "break" {
				return true
			}

			continue
		case tree.Func, tree.Class:
			continue
		case tree.While, tree.For:
			if m.leaves(n.A, inner+1) || m.leaves(n.B, inner+1) || m.leaves(n.C, inner+1) {
				return true
			}

			continue
		case tree.Call:
			if leaving[m.calleeName(n.A)] {
				return true
			}
		default:
		}

		if m.leaves(n.A, inner) || m.leaves(n.B, inner) || m.leaves(n.C, inner) {
			return true
		}
	}

	return false
}

// leaving end the program.
var leaving = map[string]bool{"exit": true, "_exit": true, "quit": true, "abort": true, "q": true}

func (m *Machine) calleeName(id tree.ID) string {
	switch m.T.At(id).Kind {
	case tree.Name, tree.Attr:
		return m.T.Text(id)
	default:
		return ""
	}
}

func (m *Machine) execFor(id tree.ID, n tree.Node) {
	over := m.eval(n.B)

	if n.Op == 'i' && over.Kind == Array {
		// The keys of an array are its indices.
		over = Numbers(0, int64(len(over.List().Items)), 1)
	}

	if long(over) && !m.decodes(n.C) {
		leaves := m.leaves(n.C, 0)
		if leaves {
			m.leaving++
		}

		m.loopBody(func() {
			m.bindTo(n.A, m.element(over))
			m.exec(n.C)
		})

		if leaves {
			m.leaving--
		}

		return
	}

	// Index loops over what is being decoded, and the like.
	if items, ok := m.items(over); ok {
		if len(items) <= maxUnroll && m.decodes(n.C) {
			if len(items) == 0 {
				return
			}

			i := 0

			m.unroll(func() bool {
				m.bindTo(n.A, items[i])
				m.exec(n.C)

				i++

				return i < len(items)
			})

			return
		}

		m.loopBody(func() {
			m.bindTo(n.A, OneOf(items))
			m.exec(n.C)
		})

		return
	}

	endless := endlessly(over) && !m.leaves(n.C, 0)
	if endless {
		m.unbounded++
	}

	spent := len(m.R.Effects) + len(m.R.Embedded)

	m.loopBody(func() {
		m.bindTo(n.A, m.element(over))
		m.exec(n.C)
	})

	if endless {
		m.unbounded--

		if spent == len(m.R.Effects)+len(m.R.Embedded) {
			m.loopEffect(id)
		}
	}
}

// endlessly says whether v never runs out of items.
func endlessly(v Value) bool {
	return v.Kind == Instance && v.Object().Sym != nil && v.Object().Sym.Endless
}

// Endless says whether what happens now is in a loop that nothing ends.
func (m *Machine) Endless() bool { return m.unbounded > 0 }
