package rscript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

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

		return m.Content(e)
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
	b.DefNamed("tempfile tempdir file_temp local_tempfile", func(m *flow.Machine, c *flow.Call) flow.Value {
		if c.Sym.Name == "tempdir" {
			return flow.Text("/tmp/Rtmp")
		}

		ext, _ := c.Arg(2, "fileext")

		return m.Temporary(c, ext)
	})
	b.DefNamed("path.expand normalizePath Sys.glob", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Val(0, "path")
	})
	b.DefNamed("list.files list.dirs dir dir_ls", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := scalar(c.Val(0, "path"))
		if !v.IsText() {
			return flow.Items(flow.Text("*"))
		}

		if full, ok := c.Arg(-1, "full.names"); v.Text == "/proc" && (!ok || full.Int == 0) {
			return flow.Items(flow.Entry(v))
		}

		return flow.Items(m.JoinPath(v, flow.Entry(v)))
	})
	b.DefNamed("ps_pids ps::ps_pids", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Items(flow.Tainted(effect.TaintInfo, effect.Processes))
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

		e := effect.Effect{Kind: kind, Target: host.Value(), Port: port.Value()}
		if host.Many {
			e.Flags |= effect.FlagManyHosts
		}

		if port.Many {
			e.Flags |= effect.FlagManyPorts
		}

		m.Emit(c, e)

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

		for _, a := range c.Args {
			if t := a.Table(); t != nil {
				for _, k := range t.Keys {
					m.CallValue(t.Values[k], c.ID, flow.Tainted(effect.TaintNetwork, ""))
				}
			}
		}

		return flow.Value{}
	})
}

func defineNetwork(b *flow.Sym) {
	b.DefNamed("download.file curl_download download", func(m *flow.Machine, c *flow.Call) flow.Value {
		url := m.Value(c, 0, "url")
		if url.Taint != 0 && !url.IsUnknown() {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: url, Data: url})
		}

		m.Emit(c, effect.Effect{Kind: effect.Receive, Target: url})

		data := effect.Unknown(effect.TaintDownload)
		data.Origin = url.Text
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.Value(c, 1, "destfile"), Data: data})

		return flow.Value{}
	})
	file := func(m *flow.Machine, c *flow.Call) flow.Value {
		e := m.Value(c, 0, "path")
		m.Emit(c, effect.Effect{Kind: effect.Read, Target: e})

		return m.Content(e).Forget()
	}
	b.DefNamed("upload_file form_file fileUpload curl_file", file)
	b.DefNamed("ftpUpload curl_upload put_object s3write_using send.mail drive_upload drop_upload gmail_send gcs_upload slackr_upload upload_blob storage_upload", func(m *flow.Machine, c *flow.Call) flow.Value {
		to := effect.Value{}
		if c.Sym.Name == "ftpUpload" || c.Sym.Name == "curl_upload" {
			to = m.Value(c, 1, "to")
		}

		m.Upload(c, to, 0, "file", "what", "attach.files", "media", "attachments", "path", "src")

		return flow.Value{}
	})
	b.DefNamed("new_handle", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v, ok := c.Arg(-1, "unix_socket_path"); ok {
			m.Emit(c, effect.Effect{Kind: effect.Connect, Target: v.Value()})
		}

		return flow.Value{}
	})
	b.DefNamed("handle_setform handle_setopt", func(m *flow.Machine, c *flow.Call) flow.Value {
		t, origin := c.Sources()
		if t != 0 {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: effect.Value{Text: effect.HoleText, Ref: "handle"}, Data: effect.Unknown(t).From(0, origin)})
		}

		return flow.Value{}
	})
	b.DefNamed("zip tar zipr zip_append utils::zip", func(m *flow.Machine, c *flow.Call) flow.Value {
		for _, it := range items(c.Val(1, "files")) {
			m.Packed(c, m.Value(c, 0, "zipfile"), it, 0)
		}

		return flow.Value{}
	})
	b.DefNamed("aes_cbc_encrypt aes_ctr_encrypt aes_gcm_encrypt data_encrypt simple_encrypt auth_encrypt encrypt encrypt_data encrypt_envelope rsa_encrypt",
		func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Result().With(effect.TaintEncoded) })

	disk := &flow.Sym{Name: "disk()"}

	b.DefNamed("write_disk", func(_ *flow.Machine, c *flow.Call) flow.Value { return flow.New(disk, c.Val(0, "path")) })
	b.DefNamed("GET POST PUT PATCH DELETE HEAD getURL postForm curl_fetch_memory httpPOST request_perform getURLContent getBinaryURL curl_fetch_stream curl", func(m *flow.Machine, c *flow.Call) flow.Value {
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
		out := flow.Tainted(effect.TaintDownload, url.Text)

		for _, a := range c.Args {
			if o := a.Object(); a.Kind == flow.Instance && o.Sym == disk {
				m.Emit(c, effect.Effect{Kind: effect.Write, Target: o.Main.Value(), Data: out.Value()})
			}
		}

		return out
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

			if c.Sym.Name == "req_body_file" {
				content := m.Content(m.Value(c, 1, "path"))
				data = data.From(content.Taint, content.Origin)
			}

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
