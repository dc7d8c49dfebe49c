package rscript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/scan"
)

// defineNames defines what finds a function by its name, and runs text as code.
func defineNames(b *flow.Sym) {
	b.DefNamed("get match.fun getFunction getAnywhere dynGet get0", func(m *flow.Machine, c *flow.Call) flow.Value {
		name := c.Val(0, "x")
		if !name.IsConst() {
			return name
		}

		v := m.Name(name.Text)
		v.Built = v.Built || name.Built || name.Taint.Any(effect.TaintDecoded)

		return v
	})
	b.DefNamed("do.call", func(m *flow.Machine, c *flow.Call) flow.Value {
		f := c.Val(0, "what")
		if f.IsConst() {
			built := f.Built || f.Taint.Any(effect.TaintDecoded)
			f = m.Name(f.Text)
			f.Built = built
		}

		args := c.Val(1, "args")

		return m.CallValue(f, c.ID, items(args)...)
	})
	b.DefNamed("sapply lapply vapply Map purrr::map map walk mapply mclapply parLapply future_map Filter", func(m *flow.Machine, c *flow.Call) flow.Value {
		x, f := c.Val(0, "X"), c.Val(1, "FUN")
		if x.Callable() {
			x, f = f, x
		}

		if f.IsConst() {
			f = m.Name(f.Text)
		}

		if c.Sym.Name == "mclapply" {
			m.Emit(c, effect.Effect{Kind: effect.Spawn, Target: effect.Const("process")})
		}

		list, ok := m.Elements(x)
		if !ok || !m.Worth(len(list), f) {
			return flow.Items(m.InLoop(func() flow.Value { return m.CallValue(f, c.ID, m.Element(x)) }))
		}

		out := make([]flow.Value, 0, len(list))

		m.InLoop(func() flow.Value {
			for _, it := range list {
				out = append(out, m.CallValue(f, c.ID, it))
			}

			return flow.Value{}
		})

		return flow.Items(out...)
	})
	b.DefNamed("Reduce", func(m *flow.Machine, c *flow.Call) flow.Value {
		list, ok := m.Elements(c.Val(1, "x"))
		if !ok || len(list) == 0 {
			return c.Result()
		}

		acc := list[0]
		for _, it := range list[1:] {
			acc = m.CallValue(c.Val(0, "f"), c.ID, acc, it)
		}

		return acc
	})
	b.DefNamed("parse str2lang str2expression", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v, ok := c.Arg(-1, "text"); ok {
			return v
		}

		if c.Sym.Name == "parse" {
			m.Emit(c, effect.Effect{Kind: effect.Read, Target: m.Value(c, 0, "file")})

			return m.Content(m.Value(c, 0, "file"))
		}

		return c.Val(0, "")
	})
	b.DefNamed("eval evalq eval.parent", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "expr")
		if v.IsText() || v.Taint != 0 {
			m.Embed(c, "r", v, c.Node(0, "expr"))

			if v.IsConst() && len(v.Text) < 4096 {
				return m.EvalText(scan.Parse(v.Text, scan.R))
			}
		}

		return flow.Value{}
	})
	b.DefNamed("source sys.source source_url source_gist source_file sourceDirectory", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := m.Value(c, 0, "file")

		if strings.Contains(v.Text, "://") {
			m.Emit(c, effect.Effect{Kind: effect.Receive, Target: v})
			m.Embed(c, "r", flow.Tainted(effect.TaintDownload, v.Text), c.Node(0, "file"))

			return flow.Value{}
		}

		m.RunFile(c, "r", v)

		if t, _ := c.Sources(); t.Any(effect.TaintDownload | effect.TaintNetwork | effect.TaintDecoded) {
			m.Embed(c, "r", c.Val(0, "file").Forget(), c.Node(0, "file"))

			return flow.Value{}
		}

		m.Emit(c, effect.Effect{Kind: effect.Exec, Target: effect.Const("Rscript"), Args: []effect.Value{v}})

		return flow.Value{}
	})
	b.DefNamed("py_run_file source_python", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.RunFile(c, "python", m.Value(c, 0, "file"))

		return flow.Value{}
	})
	b.DefNamed("py_run_string py_eval", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Embed(c, "python", c.Val(0, "code"), c.Node(0, "code"))

		return flow.Value{}
	})
	b.DefNamed("local invisible suppressWarnings suppressMessages tryCatch try identity withCallingHandlers I unlist as.character "+
		"as.list", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Val(0, "expr")
	})
	b.DefNamed("print cat message stop warning length nchar is.null exists is.na", func(m *flow.Machine, c *flow.Call) flow.Value {
		if f, ok := c.Arg(-1, "file"); ok && c.Sym.Name == "cat" {
			e := effect.Effect{Kind: effect.Write, Target: f.Value(), Data: m.Value(c, 0, "")}
			if v, ok := c.Arg(-1, "append"); ok && v.Int != 0 {
				e.Flags |= effect.FlagAppend
			}

			if e.Target.Text != "" {
				m.Emit(c, e)
			}
		}

		return flow.Value{}
	})
}

func items(v flow.Value) []flow.Value {
	switch v.Kind {
	case flow.Array:
		return v.List().Items
	case flow.Record:
		var out []flow.Value
		for _, k := range v.Table().Keys {
			out = append(out, v.Table().Values[k])
		}

		return out
	}

	return []flow.Value{v}
}

// scalar is the only item of a vector of one.
func scalar(v flow.Value) flow.Value {
	if l := v.List(); v.Kind == flow.Array && len(l.Items) == 1 && !l.Open {
		return l.Items[0]
	}

	return v
}
