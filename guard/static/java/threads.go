package java

import (
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineThreads defines what runs beside the code, and ranges of numbers.
func defineThreads(l *flow.Language) {
	root, h := l.Root, l.Methods

	start := func(m *flow.Machine, c *flow.Call, f flow.Value) flow.Value {
		if run := m.Attribute(f, "run", c.ID); f.Kind == flow.Instance && run.Callable() {
			f = run
		}

		spawn := effect.Effect{Kind: effect.Spawn, Target: effect.Const("thread")}
		if m.Restarts(f) {
			spawn.Flags |= effect.FlagUnbounded
		}

		m.Emit(c, spawn)
		m.CallValue(f, c.ID)

		return flow.Value{}
	}
	root.Def("Thread Thread.startVirtualThread Thread.ofVirtual().start CompletableFuture.runAsync CompletableFuture.supplyAsync Timer().schedule",
		func(m *flow.Machine, c *flow.Call) flow.Value { return start(m, c, c.Val(0, "")) })
	// A class that is a thread.
	root.Def("Thread().start", func(m *flow.Machine, c *flow.Call) flow.Value { return start(m, c, c.Recv) })
	root.At("Thread").Inst = root.At("Thread()")

	for _, name := range []string{"submit", "execute", "invokeAll"} {
		h[name] = func(m *flow.Machine, c *flow.Call) flow.Value {
			if o := c.Val(0, "").Object(); o != nil && o.Sym == root.At("request()") {
				return h["send"](m, c)
			}

			if c.Val(0, "").First().Callable() && m.Endless() {
				m.Emit(c, effect.Effect{Kind: effect.Spawn, Target: effect.Const("task")})
			}

			m.CallValue(c.Val(0, ""), c.ID)

			if v := c.Val(0, ""); v.IsText() && name == "execute" && len(v.Text) > 4 {
				m.Embed(c, "sql", v, c.Node(0, ""))
			}

			return c.Result()
		}
	}

	root.Def("IntStream.range IntStream.rangeClosed LongStream.range LongStream.rangeClosed", func(_ *flow.Machine, c *flow.Call) flow.Value {
		from, to := c.Val(0, ""), c.Val(1, "")
		if from.Kind != flow.Int || to.Kind != flow.Int {
			return flow.Value{}
		}

		if c.Sym.Short() == "rangeClosed" {
			to.Int++
		}

		return flow.Numbers(from.Int, to.Int, 1)
	})
	h["boxed"], h["asLongStream"], h["sequential"], h["limit"], h["skip"], h["distinct"] = self, self, self, self, self, self
}
