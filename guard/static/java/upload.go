package java

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineUploads defines clients of services that store or pass on files, and
// bodies of requests that are files.
func defineUploads(l *flow.Language) {
	root, h := l.Root, l.Methods

	upload := func(at int) flow.Handler {
		return func(m *flow.Machine, c *flow.Call) flow.Value {
			to := effect.Value{}
			if o := c.Recv.Object(); c.Recv.Kind == flow.Instance {
				to = o.Main.Value()
			}

			m.Upload(c, to, at)

			return flow.Value{}
		}
	}

	for _, name := range strings.Fields("storeFile appendFile uploadFile uploadFromFile uploadFromPath sendDocument fput createFrom") {
		h[name] = upload(0)
	}

	h["putObject"] = func(m *flow.Machine, c *flow.Call) flow.Value { return upload(len(c.Args)-1)(m, c) }
	h["uploadObject"] = h["putObject"]
	h["storeFile"] = func(m *flow.Machine, c *flow.Call) flow.Value { return upload(-1)(m, c) }
	h["openChannel"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("sftp()"), flow.Value{Ref: "session"})
	}
	root.Def("sftp().put SFTPClient().put SftpClient().put ChannelSftp().put", upload(0))

	// A file as what a request carries.
	content := func(m *flow.Machine, c *flow.Call) flow.Value {
		for _, a := range c.Args {
			if o := a.Object(); a.Kind == flow.Instance && o.Sym != nil && o.Sym.Path {
				e := o.Main.Value()
				m.Emit(c, effect.Effect{Kind: effect.Read, Target: e})

				return m.Content(e).Forget()
			}
		}

		return c.Val(0, "")
	}
	root.Def("RequestBody.create FileEntity FileBody FileSystemResource FileContent InputStreamEntity StringEntity ByteArrayEntity FileDataSource "+
		"RequestBody.fromFile AsyncRequestBody.fromFile FileUpload UrlEncodedFormEntity", content)

	// The Apache client: a request is an object of its own.
	for _, name := range []string{"HttpPost", "HttpPut", "HttpPatch", "HttpGet"} {
		root.Def(name, func(m *flow.Machine, c *flow.Call) flow.Value {
			return flow.New(m.L.Root.At("request()"), text(c.Val(0, "")))
		})
	}

	root.Def("request().setEntity", func(_ *flow.Machine, c *flow.Call) flow.Value {
		c.Recv.Object().Set("body", c.Val(0, ""))

		return flow.Value{}
	})

	// What is packed is written.
	root.Def("ZipOutputStream GZIPOutputStream JarOutputStream TarArchiveOutputStream CipherOutputStream DeflaterOutputStream GzipCompressorOutputStream",
		func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })

	// Container engines: what a container may do is told piece by piece.
	for method, option := range map[string]string{"withPrivileged": "--privileged", "withBinds": "-v", "withPidMode": "--pid=", "withCapAdd": "--cap-add", "withFileSystemBind": "-v"} {
		h[method] = func(m *flow.Machine, c *flow.Call) flow.Value {
			if option == "--privileged" && c.Val(0, "").Int == 0 {
				return c.Recv
			}

			e := effect.Effect{Kind: effect.Exec, Target: effect.Const("docker"), Args: []effect.Value{effect.Const("run")}}
			for _, a := range append(append([]flow.Value(nil), c.Args...), itemsOf(c.Val(0, ""))...) {
				if t := text(a); option == "--pid=" {
					e.Args = append(e.Args, effect.Const(option+t.Text))
				} else {
					e.Args = append(e.Args, effect.Const(option), t.Value())
				}
			}

			m.Emit(c, e)

			return c.Recv
		}
	}

	root.Def("Bind", func(m *flow.Machine, c *flow.Call) flow.Value {
		return m.Operate('+', c.Val(0, ""), flow.Text(":/mnt"), c.ID)
	})
	root.Def("Bind.parse", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	root.Def("UnixDomainSocketAddress.of AFUNIXSocketAddress.of", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Connect, Target: text(c.Val(0, "")).Value()})

		return flow.Value{}
	})

	// Maps of known entries.
	root.Def("Map.of Map.ofEntries", func(_ *flow.Machine, c *flow.Call) flow.Value {
		t := &flow.Table{}
		for i := 0; i+1 < len(c.Args); i += 2 {
			if c.Args[i].IsConst() {
				t.Set(c.Args[i].Text, c.Args[i+1])
			}
		}

		return flow.Value{Kind: flow.Record, X: t}
	})

	// Ciphers: what comes out may be hidden text, and cannot be read.
	root.Def("Cipher.getInstance().doFinal Cipher.getInstance().update", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Result().With(effect.TaintDecoded | effect.TaintEncoded)
	})
	h["doFinal"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Result().With(effect.TaintDecoded | effect.TaintEncoded)
	}
}
