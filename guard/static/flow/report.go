package flow

import (
	"hash/maphash"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

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

// Copied spends steps for copying so many items of a list.
func (m *Machine) Copied(items int) { m.work(items * 4) }

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
	m.know(&e)

	if e.Kind == effect.Exec && startsSelf(&e) {
		e.Flags |= effect.FlagSelf
	}

	if m.repeated(&e) {
		return
	}

	if telling(e.Kind) {
		m.sinkHere()
	}

	m.budget.Spend(12)
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

		m.sinks[f.fn.key()] = true
	}
}

// flags are the circumstances of what happens now.
func (m *Machine) flags(kind effect.Kind) effect.Flag {
	var f effect.Flag

	if m.loop > 0 {
		f |= effect.FlagLoop
	}

	if m.unbounded > 0 && !(m.waiting > 0 && paced(kind)) {
		f |= effect.FlagUnbounded
	}

	if m.leaving > 0 {
		f |= effect.FlagLeaves
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

// startsSelf says whether a program is the code's own, with nothing that tells
// the two apart.
func startsSelf(e *effect.Effect) bool {
	if n := len(e.Args); n > 0 {
		return e.Args[n-1].Has(effect.TaintSelf)
	}

	return e.Target.Has(effect.TaintSelf)
}

// paced says whether an effect of that kind is harmless without an end if each
// turn waits for something.
func paced(k effect.Kind) bool {
	switch k {
	case effect.Spawn, effect.Exec, effect.Alloc, effect.Write:
		return true
	default:
		return false
	}
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
func (m *Machine) Embed(c *Call, lang string, v Value, arg tree.ID) { m.EmbedWith(c, lang, v, arg, 0) }

// EmbedWith is Embed in further circumstances.
func (m *Machine) EmbedWith(c *Call, lang string, v Value, arg tree.ID, flags effect.Flag) {
	e := effect.Embedded{Lang: lang, Text: v.Value(), Offset: -1, Via: c.Via(), Flags: m.flags(effect.Exec) | flags}
	e.Span.Start, e.Span.End = m.T.Bounds(c.ID)

	if e.Text.Ref == "" && !e.Text.IsConst() {
		e.Text.Ref = m.ref(arg)
	}

	if c.Hidden {
		e.Flags |= effect.FlagHidden
	}

	if e.Text.Has(effect.TaintSelf) && lang == "bash" {
		e.Flags |= effect.FlagSelf
	}

	if v.Many {
		e.Flags |= effect.FlagManyHosts // If it is in a host's name: see the rule.
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
