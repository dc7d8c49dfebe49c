package rscript

import (
	"strconv"
	"strings"
	"unicode/utf8"

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

			return flow.Tainted(effect.TaintFile, c.Val(0, "file").Value().Text)
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
	b.DefNamed("source sys.source", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := m.Value(c, 0, "file")

		if strings.Contains(v.Text, "://") {
			m.Emit(c, effect.Effect{Kind: effect.Receive, Target: v})
			m.Embed(c, "r", flow.Tainted(effect.TaintDownload, v.Text), c.Node(0, "file"))

			return flow.Value{}
		}

		if t, _ := c.Sources(); t.Any(effect.TaintDownload | effect.TaintNetwork | effect.TaintDecoded) {
			m.Embed(c, "r", c.Val(0, "file").Forget(), c.Node(0, "file"))

			return flow.Value{}
		}

		m.Emit(c, effect.Effect{Kind: effect.Exec, Target: effect.Const("Rscript"), Args: []effect.Value{v}})

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

func defineText(b *flow.Sym) {
	b.DefNamed("c list", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Kw) > 0 {
			t := &flow.Table{}
			for i, a := range c.Args {
				t.Set(strconv.Itoa(i+1), a)
			}

			for _, k := range c.Kw {
				t.Set(k.Name, k.Value)
			}

			return flow.Value{Kind: flow.Record, X: t}
		}

		var out []flow.Value

		for _, a := range c.Args {
			if list, ok := m.Elements(a); ok && a.Kind != flow.Str && c.Sym.Name == "c" {
				out = append(out, list...)
			} else {
				out = append(out, a)
			}
		}

		return flow.Items(out...)
	})
	b.DefNamed("seq seq_len seq_along", func(_ *flow.Machine, c *flow.Call) flow.Value {
		from, to := c.Val(0, "from"), c.Val(1, "to")
		if c.Sym.Name == "seq_len" {
			from, to = flow.Number(1), from
		}

		if from.Kind != flow.Int || to.Kind != flow.Int {
			return flow.Value{Many: true}
		}

		if to.Int < from.Int {
			return flow.Numbers(from.Int, to.Int-1, -1)
		}

		return flow.Numbers(from.Int, to.Int+1, 1)
	})
	b.DefNamed("paste paste0 file.path", func(m *flow.Machine, c *flow.Call) flow.Value {
		sep := flow.Text(" ")

		switch c.Sym.Name {
		case "paste0":
			sep = flow.Text("")
		case "file.path":
			sep = flow.Text("/")
		}

		if v, ok := c.Arg(-1, "sep"); ok {
			sep = v
		}

		var parts []flow.Value

		for _, a := range c.Args {
			// A vector is pasted item by item; with collapse it becomes one text.
			list, ok := m.Elements(a)
			if !ok || a.Kind == flow.Str {
				parts = append(parts, a)

				continue
			}

			if v, ok := c.Arg(-1, "collapse"); ok && v.IsText() {
				parts = append(parts, m.Join(flow.Value{Kind: flow.Str, Built: true}, v, list))
			} else {
				parts = append(parts, flow.OneOf(list))
			}
		}

		return m.Join(flow.Value{Kind: flow.Str, Built: true}, sep, parts)
	})
	b.DefNamed("sprintf gettextf", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) == 0 {
			return flow.Value{}
		}

		return m.Percent(c.Args[0], flow.Items(append([]flow.Value(nil), c.Args[1:]...)...))
	})
	b.DefNamed("glue str_glue", func(m *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	b.DefNamed("intToUtf8 rawToChar chr", func(m *flow.Machine, c *flow.Call) flow.Value {
		list, ok := m.Elements(c.Val(0, ""))
		if !ok {
			list = []flow.Value{c.Val(0, "")}
		}

		var s strings.Builder

		for _, it := range list {
			if it.Kind == flow.Bytes {
				s.WriteString(it.Text)

				continue
			}

			if it.Kind != flow.Int || it.Int < 0 || it.Int > utf8.MaxRune {
				return c.Result().With(effect.TaintDecoded)
			}

			s.WriteRune(rune(it.Int))
		}

		return flow.Value{Kind: flow.Str, Text: s.String(), Taint: effect.TaintDecoded, Built: true}
	})
	b.DefNamed("utf8ToInt charToRaw", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if !v.IsConst() {
			return v.Forget()
		}

		var out []flow.Value
		for _, r := range v.Text {
			out = append(out, flow.Number(int64(r)))
		}

		return flow.Items(out...)
	})
	b.DefNamed("as.raw as.hexmode as.integer strtoi bitwXor xor", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")

		switch c.Sym.Name {
		case "strtoi":
			base := 10
			if w, ok := c.Arg(1, "base"); ok && w.Kind == flow.Int {
				base = int(w.Int)
			}

			var out []flow.Value

			for _, it := range items(v) {
				n, err := strconv.ParseInt(strings.TrimPrefix(it.Text, "0x"), base, 64)
				if err != nil {
					return v.Forget()
				}

				out = append(out, flow.Number(n))
			}

			return scalar(flow.Items(out...))
		case "bitwXor", "xor":
			var out []flow.Value

			k := items(c.Val(1, ""))
			for i, it := range items(v) {
				if len(k) == 0 {
					return v.Forget()
				}

				out = append(out, m.Operate('^', it, k[i%len(k)], c.ID))
			}

			// R's own ^ is a power, so that the numbers are xored here.
			for i, it := range items(v) {
				if kk := k[i%len(k)]; it.Kind == flow.Int && kk.Kind == flow.Int {
					out[i] = flow.Number(it.Int ^ kk.Int)
				}
			}

			return scalar(flow.Items(out...))
		}

		return v
	})
	b.DefNamed("rev", func(m *flow.Machine, c *flow.Call) flow.Value {
		list, ok := m.Elements(c.Val(0, ""))
		if !ok {
			return c.Result()
		}

		out := make([]flow.Value, len(list))
		for i, v := range list {
			if v.IsConst() {
				v.Taint |= effect.TaintDecoded
			}

			out[len(list)-1-i] = v
		}

		return flow.Items(out...)
	})
	b.DefNamed("strsplit str_split", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v, sep := scalar(c.Val(0, "x")), c.Val(1, "split")
		if !v.IsConst() || !sep.IsConst() {
			return flow.Items(flow.Items(v.Forget()))
		}

		var out []flow.Value
		for part := range strings.SplitSeq(v.Text, sep.Text) {
			out = append(out, flow.Value{Kind: flow.Str, Text: part, Taint: v.Taint, Built: true})
		}

		return flow.Items(flow.Items(out...))
	})
	b.DefNamed("toupper tolower trimws", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := scalar(c.Val(0, "x"))
		if v.IsText() {
			switch c.Sym.Name {
			case "toupper":
				v.Text = strings.ToUpper(v.Text)
			case "tolower":
				v.Text = strings.ToLower(v.Text)
			default:
				v.Text = strings.TrimSpace(v.Text)
			}
		}

		return v
	})
	b.DefNamed("gsub sub str_replace_all str_replace chartr", func(_ *flow.Machine, c *flow.Call) flow.Value {
		from, to, v := c.Val(0, "pattern"), c.Val(1, "replacement"), scalar(c.Val(2, "x"))
		if strings.HasPrefix(c.Sym.Name, "str_") {
			v, from, to = scalar(c.Val(0, "string")), c.Val(1, "pattern"), c.Val(2, "replacement")
		}

		if !v.IsConst() || !from.IsConst() || !to.IsConst() || from.Text == "" {
			return c.Result()
		}

		v.Built = true

		if c.Sym.Name == "chartr" {
			f, t := []rune(from.Text), []rune(to.Text)
			v.Taint |= effect.TaintDecoded
			v.Text = strings.Map(func(r rune) rune {
				for i := range f {
					if f[i] == r && i < len(t) {
						return t[i]
					}
				}

				return r
			}, v.Text)

			return v
		}

		if _, fixed := c.Arg(-1, "fixed"); !fixed && strings.ContainsAny(from.Text, `[]()*+?^$|.\{}`) {
			return c.Result()
		}

		if len(v.Text)*(len(to.Text)+1) > effect.MaxText {
			return c.Result()
		}

		v.Text = strings.ReplaceAll(v.Text, from.Text, to.Text)

		return v
	})
	b.DefNamed("substr substring str_sub", func(m *flow.Machine, c *flow.Call) flow.Value {
		v, from, to := scalar(c.Val(0, "x")), c.Val(1, "start"), c.Val(2, "stop")
		if from.Kind == flow.Int {
			from.Int--
		}

		return m.SliceOf(v, from, to, flow.Value{}, false)
	})
	b.DefNamed("base64decode base64_dec base64Decode base64_decode", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "base64", scalar(c.Val(0, "")), flow.Bytes)
	})
	b.DefNamed("hex2bin hex2raw", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "hex", scalar(c.Val(0, "")), flow.Bytes)
	})
	b.DefNamed("URLdecode url_unescape", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "url", scalar(c.Val(0, "")), flow.Str)
	})
	b.DefNamed("memDecompress", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Decoded(c, "gzip", scalar(c.Val(0, "")), flow.Bytes)
	})
	b.DefNamed("rep numeric character integer vector matrix strrep raw", func(m *flow.Machine, c *flow.Call) flow.Value {
		n, ok := c.Arg(1, "times")
		if c.Sym.Name != "rep" && c.Sym.Name != "strrep" {
			n, ok = c.Arg(0, "length")
		}

		if ok && n.Kind == flow.Int && n.Int >= 64<<20 {
			m.Emit(c, effect.Effect{Kind: effect.Alloc, Target: effect.Const("memory"), Data: n.Value()})
		}

		return c.Val(0, "").Forget()
	})
}

func defineSystem(b *flow.Sym) {
	b.DefNamed("system shell pipe shell.exec", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := scalar(c.Val(0, "command"))
		m.Embed(c, "bash", v, c.Node(0, "command"))

		t, origin := v.Sources()

		return flow.Tainted(t&^effect.TaintDecoded|effect.TaintOutput, origin)
	})
	b.DefNamed("system2 run process.new exec_wait exec_internal exec_background r_process", func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Exec, Target: scalar(c.Val(0, "command")).Value()}

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
	})
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
	b.DefNamed("mcfork mcparallel forkParallel", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Spawn, Target: effect.Const("process")})

		return flow.Value{}
	})
	b.DefNamed("dyn.load .C .Call .External cppFunction sourceCpp", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Native, Target: effect.Const(c.Sym.Name), Data: m.Value(c, 0, "")})

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

func defineFiles(b *flow.Sym) {
	con := &flow.Sym{Name: "connection()"}

	read := func(m *flow.Machine, c *flow.Call) flow.Value {
		v := scalar(c.Val(0, "file"))
		if _, ok := c.Arg(0, "file"); !ok {
			for _, name := range []string{"con", "path", "input", "filename"} {
				if w, ok := c.Arg(-1, name); ok {
					v = scalar(w)
				}
			}
		}

		if o := v.Object(); v.Kind == flow.Instance && o.Sym == con {
			return flow.Tainted(v.Taint, v.Origin)
		}

		if v.Taint.Any(effect.TaintOutput) {
			return v.Forget() // pipe("cmd").
		}

		e := v.Value()
		if e.Ref == "" && !e.IsConst() {
			e.Ref = m.Source(c.Node(0, "file"))
		}

		if strings.Contains(e.Text, "://") {
			m.Emit(c, effect.Effect{Kind: effect.Receive, Target: e})

			return flow.Tainted(effect.TaintDownload, e.Text)
		}

		m.Emit(c, effect.Effect{Kind: effect.Read, Target: e})

		return flow.Tainted(effect.TaintFile, e.Text)
	}
	b.DefNamed("readLines readRDS read.csv read.table scan readBin readChar read_file read_lines read_csv fread load "+
		"read_json fromJSON read_yaml read.delim read_excel readr::read_file", read)
	b.DefNamed("file gzfile bzfile xzfile url", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := scalar(c.Val(0, "description"))
		mode := c.Val(1, "open").Text
		out := flow.New(con, v)
		out.Taint, out.Origin = 0, ""

		switch {
		case v.Text == "stdin":
			out.Taint = effect.TaintInput
		case c.Sym.Name == "url" || strings.Contains(v.Text, "://"):
			m.Emit(c, effect.Effect{Kind: effect.Receive, Target: v.Value()})

			out.Taint, out.Origin = effect.TaintDownload, v.Text
		case strings.HasPrefix(mode, "w"):
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: v.Value(), Flags: effect.FlagTruncate})
		case strings.HasPrefix(mode, "a"):
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: v.Value(), Flags: effect.FlagAppend})
		default:
			m.Emit(c, effect.Effect{Kind: effect.Read, Target: v.Value()})

			out.Taint, out.Origin = effect.TaintFile, v.Value().Text
		}

		return out
	})
	b.DefNamed("writeLines write saveRDS write.csv write.table writeBin write_file write_lines writeChar dput sink save", func(m *flow.Machine, c *flow.Call) flow.Value {
		to, ok := c.Arg(1, "con")
		if !ok {
			for _, name := range []string{"file", "path", "object"} {
				if w, ok := c.Arg(-1, name); ok {
					to = w
				}
			}
		}

		data := m.Value(c, 0, "text")
		if c.Sym.Name == "sink" {
			to, data = c.Val(0, "file"), effect.Value{}
		}

		to = scalar(to)

		if o := to.Object(); to.Kind == flow.Instance {
			if o.Sym == con && to.Taint.Any(effect.TaintSocket) {
				m.Emit(c, effect.Effect{Kind: effect.Send, Target: o.Main.Value(), Port: o.Port.Value(), Data: data})

				return flow.Value{}
			}

			to = o.Main
		}

		if to.IsText() || to.Ref != "" {
			e := effect.Effect{Kind: effect.Write, Target: to.Value(), Data: data}
			if v, ok := c.Arg(-1, "append"); ok && v.Int != 0 {
				e.Flags |= effect.FlagAppend
			}

			m.Emit(c, e)
		}

		return flow.Value{}
	})
	b.DefNamed("unlink file.remove file_delete dir_delete unlink_", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "x")
		recursive, _ := c.Arg(1, "recursive")

		for _, a := range items(v) {
			a.Each(func(w flow.Value) {
				e := effect.Effect{Kind: effect.Delete, Target: m.ValueOf(w, c.Node(0, "x"))}
				if recursive.Int != 0 && c.Sym.Name == "unlink" || c.Sym.Name == "dir_delete" {
					e.Flags |= effect.FlagRecursive
				}

				if f, ok := c.Arg(2, "force"); ok && f.Int != 0 {
					e.Flags |= effect.FlagForce
				}

				m.Emit(c, e)
			})
		}

		return flow.Value{}
	})
	b.DefNamed("file.rename file.copy file_move file_copy", func(m *flow.Machine, c *flow.Call) flow.Value {
		e := effect.Effect{Kind: effect.Move, Target: m.Value(c, 1, "to"), Args: []effect.Value{m.Value(c, 0, "from")}}
		if strings.Contains(c.Sym.Name, "copy") {
			e.Flags |= effect.FlagCopy
		}

		m.Emit(c, e)

		return flow.Value{}
	})
	b.DefNamed("file.symlink file.link", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Link, Target: m.Value(c, 1, "to"), Data: m.Value(c, 0, "from")})

		return flow.Value{}
	})
	b.DefNamed("Sys.chmod file_chmod", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Mode, Target: m.Value(c, 0, "paths"), Data: m.Value(c, 1, "mode")})

		return flow.Value{}
	})
	b.DefNamed("path.expand normalizePath Sys.glob", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Val(0, "path")
	})
	b.DefNamed("list.files list.dirs dir dir_ls", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := scalar(c.Val(0, "path"))
		if !v.IsText() {
			return flow.Items(flow.Text("*"))
		}

		return flow.Items(m.JoinPath(v, flow.Text("*")))
	})
	b.DefNamed("unserialize", func(m *flow.Machine, c *flow.Call) flow.Value {
		return c.Val(0, "").Forget().With(effect.TaintPickle)
	})
	b.DefNamed("toJSON serialize jsonlite::toJSON base64encode base64_enc URLencode", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Val(0, "").Forget()
	})
	b.DefNamed("dbExecute dbGetQuery dbSendQuery", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(1, "statement"); v.IsText() {
			m.Embed(c, "sql", v, c.Node(1, "statement"))
		}

		return flow.Value{}
	})

	b.DefNamed("socketConnection make.socket socketAccept", func(m *flow.Machine, c *flow.Call) flow.Value {
		host, port := c.Val(0, "host"), c.Val(1, "port")
		if h, ok := c.Arg(-1, "host"); ok {
			host = h
		}

		if p, ok := c.Arg(-1, "port"); ok {
			port = p
		}

		kind := effect.Connect
		if v, ok := c.Arg(-1, "server"); ok && v.Int != 0 {
			kind = effect.Listen
		}

		if host.Kind == flow.Unknown && host.Ref == "" {
			host = flow.Text("localhost")
		}

		m.Emit(c, effect.Effect{Kind: kind, Target: host.Value(), Port: port.Value()})

		v := flow.New(con, host)
		v.Object().Port = port
		v.Taint, v.Origin = effect.TaintSocket|effect.TaintNetwork, ""

		return v
	})
	b.DefNamed("write.socket", func(m *flow.Machine, c *flow.Call) flow.Value {
		if o := c.Val(0, "socket").Object(); o != nil {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: o.Main.Value(), Data: m.Value(c, 1, "string")})
		}

		return flow.Value{}
	})
	b.DefNamed("read.socket", func(*flow.Machine, *flow.Call) flow.Value { return flow.Tainted(effect.TaintNetwork, "") })
	b.DefNamed("startServer httpuv::runServer serverSocket", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Listen, Target: m.Value(c, 0, "host"), Port: m.Value(c, 1, "port")})

		return flow.Value{}
	})
}

func defineNetwork(b *flow.Sym) {
	b.DefNamed("download.file curl_download download", func(m *flow.Machine, c *flow.Call) flow.Value {
		url := m.Value(c, 0, "url")
		m.Emit(c, effect.Effect{Kind: effect.Receive, Target: url})

		data := effect.Unknown(effect.TaintDownload)
		data.Origin = url.Text
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 1, "destfile"), Data: data})

		return flow.Value{}
	})
	b.DefNamed("GET POST PUT PATCH DELETE HEAD getURL postForm curl_fetch_memory httpPOST request_perform getURLContent curl", func(m *flow.Machine, c *flow.Call) flow.Value {
		url := m.Value(c, 0, "url")

		var parts []effect.Value

		if v, ok := c.Arg(-1, "body"); ok {
			parts = append(parts, v.Value())
		}

		if c.Sym.Name == "postForm" {
			for _, k := range c.Kw {
				parts = append(parts, k.Value.Value())
			}
		}

		if v, ok := c.Arg(-1, "query"); ok {
			parts = append(parts, v.Value())
		}

		if url.Taint != 0 && !url.IsUnknown() {
			parts = append(parts, url)
		}

		if len(parts) > 0 || c.Sym.Name == "POST" || c.Sym.Name == "PUT" {
			var data effect.Value
			if len(parts) > 0 {
				data = effect.Concat(parts...)
			}

			m.Emit(c, effect.Effect{Kind: effect.Send, Target: url, Data: data})
		}

		m.Emit(c, effect.Effect{Kind: effect.Receive, Target: url})

		return flow.Tainted(effect.TaintDownload, url.Text)
	})

	// httr2: request(url) |> req_body_json(x) |> req_perform().
	req := &flow.Sym{Name: "request()"}

	b.DefNamed("request", func(_ *flow.Machine, c *flow.Call) flow.Value { return flow.New(req, c.Val(0, "base_url")) })
	b.DefNamed("req_body_json req_body_raw req_body_form req_body_file req_url_query req_headers req_method", func(m *flow.Machine, c *flow.Call) flow.Value {
		r := c.Val(0, "req")

		if o := r.Object(); o != nil && !strings.HasSuffix(c.Sym.Name, "headers") && !strings.HasSuffix(c.Sym.Name, "method") {
			data := effect.Value{Text: effect.HoleText}
			rest := flow.Items(append([]flow.Value(nil), c.Args[min(1, len(c.Args)):]...)...)

			for _, k := range c.Kw {
				rest.List().Items = append(rest.List().Items, k.Value)
			}

			data.Taint, data.Origin = rest.Sources()
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: o.Main.Value(), Data: data})
		}

		return r
	})
	b.DefNamed("req_perform", func(m *flow.Machine, c *flow.Call) flow.Value {
		if o := c.Val(0, "req").Object(); o != nil {
			m.Emit(c, effect.Effect{Kind: effect.Receive, Target: o.Main.Value()})

			return flow.Tainted(effect.TaintDownload, o.Main.Text)
		}

		return flow.Tainted(effect.TaintDownload, "")
	})
}
