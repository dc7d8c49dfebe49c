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

	// Ciphers: what comes out may be hidden text, and cannot be read.
	root.Def("Cipher.getInstance().doFinal Cipher.getInstance().update", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Result().With(effect.TaintDecoded | effect.TaintEncoded)
	})
	h["doFinal"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Result().With(effect.TaintDecoded | effect.TaintEncoded)
	}
}
