package javascript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineRuntimes defines what Deno and Bun add.
func defineRuntimes(l *flow.Language) {
	b, root := l.Builtins, l.Root

	b.Def("Deno.run Bun.spawn Bun.spawnSync", func(m *flow.Machine, c *flow.Call) flow.Value {
		cmd := c.Val(0, "")
		if v, ok := option(c, "cmd"); ok {
			cmd = v
		}

		if l := cmd.List(); cmd.Kind == flow.Array && len(l.Items) > 0 {
			m.Emit(c, effect.Effect{Kind: effect.Exec, Target: l.Items[0].Value(), Args: values(l.Items[1:])})

			return childOf(m, l.Items[0], flow.Printed(cmd))
		}

		m.Emit(c, effect.Effect{Kind: effect.Exec, Target: m.Value(c, 0, "")})

		return childOf(m, cmd, flow.Printed(cmd))
	})
	b.Def("Deno.Command", func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Exec, Target: m.Value(c, 0, "")}
		if v, ok := option(c, "args"); ok {
			e.Args = values(itemsOf(v))
		}

		m.Emit(c, e)

		return childOf(m, c.Val(0, ""), flow.Printed(c.Val(0, "")))
	})
	b.Link("Bun", b.At("Bun"))
	root.Link("bun", b.At("Bun"))
	b.At("Bun").Link("$", b.At("$"))

	deno := map[string]string{
		"readFile": "readFile", "readTextFile": "readFile", "writeFile": "writeFile", "writeTextFile": "writeFile",
		"remove": "rm", "rename": "rename", "copyFile": "copyFile", "symlink": "symlink", "link": "link", "chmod": "chmod",
		"chown": "chown", "truncate": "truncate", "readDir": "readdir",
	}

	for name, like := range deno {
		f := root.At("fs." + like).Call
		b.Def("Deno."+name+" Deno."+name+"Sync", f)
	}

	b.Def("Deno.env.get", func(m *flow.Machine, c *flow.Call) flow.Value { return variable(m, c.Val(0, ""), c.ID) })
	b.Def("Deno.env.toObject", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Env, Via: "Deno.env"})

		return flow.Tainted(effect.TaintEnvAll, "")
	})
	b.At("Bun").Link("env", b.At("process.env"))
	b.Def("Deno.env.set", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.SetEnv, Target: m.Value(c, 0, ""), Data: m.Value(c, 1, "")})

		return flow.Value{}
	})
	b.Def("Deno.connect Deno.connectTls Bun.connect", root.At("net.connect").Call)
	b.Def("Deno.listen Deno.serve Bun.listen Bun.serve", listen)
	b.Def("Deno.kill", b.At("process.kill").Call)
	b.Def("Deno.dlopen", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const("dlopen"), Data: m.Value(c, 0, "")})

		return flow.Value{}
	})
	b.DefGet("Deno.args Bun.argv", func(*flow.Machine, *flow.Call) flow.Value { return flow.Tainted(effect.TaintInput, "") })
	b.Def("Deno.hostname", root.At("os.hostname").Call)

	b.Def("Bun.file", root.At("fs.createReadStream").Call)
	b.Def("Bun.write", root.At("fs.writeFile").Call)

	// Native modules that call foreign functions.
	for _, name := range strings.Fields("ffi-napi.Library ffi.Library koffi.load bun:ffi.dlopen") {
		root.Def(name, func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const("ffi"), Data: m.Value(c, 0, "")})

			return flow.Value{}
		})
	}
}
