package flow

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// growing are the methods that make what they are called on larger.
var growing = map[string]bool{
	"append": true, "push": true, "add": true, "put": true, "extend": true, "insert": true, "unshift": true, "addAll": true, "offer": true,
	"appendleft": true, "addLast": true, "set": true, "update": true, "addFirst": true, "addElement": true,
}

// joining put together what they are given.
var joining = map[string]bool{
	"c": true, "paste": true, "paste0": true, "append": true, "concat": true, "copyOf": true, "rbind": true, "cbind": true, "concatenate": true,
	"hstack": true, "vstack": true, "list": true, "tile": true, "repeat": true, "rep": true,
}

// Block is a value of which no more is known than that it is large.
func Block(bytes int64) Value { return Value{Ref: effect.BlockRef + strconv.FormatInt(bytes, 10)} }

// maxSmall is the size of a block, in bytes, up to which it does not matter.
const maxSmall = 100_000

// IsBlock says whether v is a large block.
func (v Value) IsBlock() bool {
	size, ok := strings.CutPrefix(v.Ref, effect.BlockRef)
	if !ok || v.Kind != Unknown {
		return false
	}

	n, err := strconv.ParseInt(size, 10, 64)

	return err == nil && n >= maxSmall
}

// grows reports that a method makes its receiver larger in each turn of a loop
// that nothing ends.
func (m *Machine) grows(c *Call) {
	if m.unbounded == 0 || !growing[c.Name] || len(c.Args) == 0 || c.Recv.Kind == Symbol {
		return
	}

	same := m.T.At(c.RecvNode).Kind == tree.Name

	for i := range c.Args {
		itself := same && m.T.At(c.Nodes[i]).Kind == tree.Name && m.T.Text(c.Nodes[i]) == m.T.Text(c.RecvNode)

		switch v := c.Args[i]; {
		case v.IsBlock():
			m.EmitAt(c.ID, effect.Effect{Kind: effect.Alloc, Target: effect.Const("memory"), Via: c.Name, Flags: effect.FlagUnbounded})
		case v.Kind == Instance && v.Taint.Any(effect.TaintSocket):
			m.EmitAt(c.ID, effect.Effect{Kind: effect.Alloc, Target: effect.Const("other side with connections"), Via: c.Name})
		case itself, m.fixed(c.Nodes[i]):
			m.EmitAt(c.ID, effect.Effect{Kind: effect.Alloc, Target: effect.Const("memory"), Via: c.Name})
		}
	}
}

// fixed says whether an expression is made of literals.
func (m *Machine) fixed(id tree.ID) bool {
	n := m.T.At(id)

	switch n.Kind {
	case tree.Str, tree.Num:
		return true
	case tree.Seq:
		for x := n.A; x != 0; x = m.T.At(x).Next {
			if !m.fixed(x) {
				return false
			}
		}

		return n.A != 0
	case tree.Binary:
		return n.Op == '*' && m.fixed(n.A) && m.fixed(n.B)
	default:
		return false
	}
}

// doubles says whether a variable is made of itself and itself.
func (m *Machine) doubles(n tree.Node) bool {
	name, by := m.T.At(n.A), m.T.At(n.B)
	if name.Kind != tree.Name {
		return false
	}

	same := func(id tree.ID) bool { return m.T.At(id).Kind == tree.Name && m.T.Text(id) == m.T.Text(n.A) }
	if n.Op == '+' {
		return same(n.B)
	}

	if n.Op != 0 {
		return false
	}

	switch {
	case by.Kind == tree.Binary && by.Op == '+':
		return same(by.A) && same(by.B)
	case by.Kind == tree.Binary && by.Op == '*':
		return same(by.A) && m.T.At(by.B).Kind == tree.Num && m.holdsItems(n.A)
	case by.Kind == tree.Call && joining[m.calleeName(by.A)], by.Kind == tree.Seq:
	default:
		return false
	}

	// In what it is put together from it is there twice.
	count := 0

	m.any(n.B, func(x tree.ID) bool {
		if same(x) {
			count++
		}

		return count > 1
	})

	return count > 1
}

// holdsItems says whether a variable holds text or a list.
func (m *Machine) holdsItems(name tree.ID) bool {
	v, _ := m.lookup(m.T.Text(name))

	return v.IsText() || v.Kind == Array
}
