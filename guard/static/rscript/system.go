package rscript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

func defineSystem(b *flow.Sym) {
	b.DefNamed("system shell pipe shell.exec", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := scalar(c.Val(0, "command"))
		m.EmbedWith(c, "bash", v, c.Node(0, "command"), goesOn(c))

		return flow.Printed(v)
	})
	run := func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Exec, Target: scalar(c.Val(0, "command")).Value(), Flags: goesOn(c)}

		if args, ok := c.Arg(1, "args"); ok {
			for _, a := range items(args) {
				if a.IsConst() && c.Sym.Name == "system2" {
					// The arguments are pasted into shell text.
					for w := range strings.FieldsSeq(a.Text) {
						e.Args = append(e.Args, effect.Const(w))
					}

					continue
				}

				e.Args = append(e.Args, a.Value())
			}
		}

		m.Emit(c, e)

		return flow.Tainted(effect.TaintOutput, "")
	}
	b.DefNamed("system2 run exec_wait exec_internal exec_background r_process", run)
	b.Def("process.new", run)
	b.DefNamed("Sys.getenv", func(m *flow.Machine, c *flow.Call) flow.Value {
		name, ok := c.Arg(0, "x")
		if !ok {
			m.Emit(c, effect.Effect{Kind: effect.Env})

			return flow.Tainted(effect.TaintEnvAll, "")
		}

		m.Emit(c, effect.Effect{Kind: effect.Env, Target: name.Value()})

		if name.Text == "HOME" {
			return flow.Text("~")
		}

		return flow.Tainted(effect.TaintEnv, name.Text)
	})
	b.DefNamed("Sys.setenv", func(m *flow.Machine, c *flow.Call) flow.Value {
		for _, k := range c.Kw {
			m.Emit(c, effect.Effect{Kind: effect.SetEnv, Target: effect.Const(k.Name), Data: k.Value.Value()})
		}

		return flow.Value{}
	})
	b.DefNamed("Sys.info nsl", func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Sym.Name == "nsl" {
			v := m.Value(c, 0, "hostname")
			if v.Taint != 0 {
				m.Emit(c, effect.Effect{Kind: effect.Send, Target: v, Data: v, Port: effect.Const("53")})
			}

			return flow.Value{}
		}

		m.Emit(c, effect.Effect{Kind: effect.Info, Target: effect.Const("hostname")})

		return flow.Tainted(effect.TaintInfo, "")
	})
	b.DefNamed("pskill", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Kill, Target: m.Value(c, 0, "pid"), Data: m.Value(c, 1, "signal")})

		return flow.Value{}
	})
	b.DefNamed("mcfork mcparallel forkParallel r_bg future makeCluster makePSOCKcluster makeForkCluster", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Spawn, Target: effect.Const("process")})

		return flow.Value{}
	})
	b.DefNamed("dyn.load .C .Call .External cppFunction sourceCpp", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const(c.Sym.Name), Data: m.Value(c, 0, "")})

		if w, ok := m.Written(m.Value(c, 0, "")); ok && w.Taint != 0 {
			m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: "native", Data: w})
		}

		return flow.Value{}
	})
	b.DefNamed("readline commandArgs readLines_stdin", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintInput, "")
	})
	b.DefNamed("install.packages install_github pak install_url", func(m *flow.Machine, c *flow.Call) flow.Value {
		for _, a := range items(c.Val(0, "pkgs")) {
			m.Emit(c, effect.Effect{Kind: effect.Install, Target: a.Value(), Lang: "r"})
		}

		return flow.Value{}
	})
	b.DefNamed("library require requireNamespace loadNamespace", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Import, Target: effect.Const(m.Source(c.Node(0, "package")))})

		return flow.Value{}
	})
	b.DefNamed("key_get askpass getPass read_clip", func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Sym.Name == "read_clip" {
			m.Emit(c, effect.Effect{Kind: effect.Capture, Target: effect.Const("clipboard")})

			return flow.Tainted(effect.TaintCapture, "")
		}

		return flow.Tainted(effect.TaintSecret, c.Sym.Name)
	})
}

// goesOn says of a call that starts a program that it does not wait for its end.
func goesOn(c *flow.Call) effect.Flag {
	if v, ok := c.Arg(-1, "wait"); ok && v.Kind == flow.Bool && v.Int == 0 || c.Sym.Name == "process.new" || c.Sym.Name == "exec_background" {
		return effect.FlagBackground
	}

	return 0
}
