package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// ListRef is the start of the Ref of a name that ls prints; the directory
// follows.
const ListRef = "ls "

// list is ls: it prints the names in a directory, or with -d its operands.
func list(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "ITw", " ignore hide width time-style block-size sort color format ")

	out := effect.Unknown(effect.TaintOutput)
	if len(o.pos) != 1 || !o.pos[0].IsConst() {
		return out
	}

	p := o.pos[0].Text
	if o.has("d", "directory") || strings.ContainsAny(p, "*?[") {
		if o.has("l", "long") {
			return out
		}

		out.Text, out.Ref = p, everythingRef

		return out
	}

	out.Ref = ListRef + p

	return out
}
