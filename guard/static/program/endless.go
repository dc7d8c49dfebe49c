package program

import (
	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// endless prints without end.
func endless(m *Machine, c *Call) effect.Value {
	return effect.Value{Text: effect.HoleText, Ref: EndlessRef}
}

// EndlessRef is the Ref of what never ends: /dev/zero, yes.
const EndlessRef = "/dev/zero"

// head and tail cut what is endless to a size.
func head(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "nc", " lines bytes ")

	v := sameLine("nc")(m, c)
	if v.Ref != EndlessRef {
		return v
	}

	if Base(c.Name.Text) == "tail" {
		// It keeps what it reads until the end, which does not come.
		m.add(c, effect.Effect{Kind: effect.Alloc, Target: effect.Const("memory"), Flags: effect.FlagUnbounded})
	}

	v.Ref = ""

	if size, ok := o.val("c", "bytes"); ok && parseSize(size.Text) > 0 {
		m.add(c, effect.Effect{Kind: effect.Alloc, Target: effect.Const("disk"), Data: effect.Const(decimal(parseSize(size.Text)))})
	}

	return v
}
