package javascript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// fileKeys are the keys of options by which clients are told which file to send.
var fileKeys = []string{
	"path", "file", "filename", "filePath", "attachments", "attachment", "document", "media", "source", "Body", "body", "content", "files", "localFile", "href", "file_uploads",
}

// defineUploads defines clients of services that store or pass on files, archives
// and ciphers. Most clients are told by what their methods are called.
func defineUploads(l *flow.Language) {
	root := l.Root

	upload := func(m *flow.Machine, c *flow.Call) flow.Value {
		to := effect.Value{}
		if o := c.Recv.Object(); c.Recv.Kind == flow.Instance {
			to = o.Main.Value()
		}

		m.Upload(c, to, 0, fileKeys...)
		callback(m, c, flow.Value{Kind: flow.None})

		return flow.Value{}
	}

	for _, name := range strings.Fields("upload uploadFile uploadFrom uploadFromDir uploadDir uploadV2 fastPut putFile putFiles putObject fPutObject sendMail " +
		"uploadData uploadStream replyWithDocument uploadBuffer") {
		l.Methods[name] = upload
	}

	// The file comes after whom it goes to.
	for _, name := range []string{"sendDocument", "sendPhoto", "sendFile", "sendVideo"} {
		l.Methods[name] = func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Upload(c, effect.Value{}, 1, fileKeys...)

			return flow.Value{}
		}
	}

	l.Methods["fPutObject"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Upload(c, effect.Value{}, 2, fileKeys...)

		return flow.Value{}
	}
	root.Def("ssh2-sftp-client().put ssh2-sftp-client().fastPut basic-ftp.Client().uploadFrom ftp().put jsftp().put nodemailer.createTransport().sendMail node-ssh.NodeSSH().putFile "+
		"aws-sdk.S3().upload aws-sdk.S3().putObject", upload)

	// Commands of the newer clients carry what is sent.
	root.Def("@aws-sdk/client-s3.PutObjectCommand @aws-sdk/client-s3.UploadPartCommand @aws-sdk/lib-storage.Upload @aws-sdk/client-ses.SendRawEmailCommand "+
		"@aws-sdk/client-sns.PublishCommand @aws-sdk/client-sqs.SendMessageCommand", upload)

	// Container engines.
	for _, name := range strings.Fields("createContainer createService") {
		l.Methods[name] = func(m *flow.Machine, c *flow.Call) flow.Value {
			m.RunsContainer(c)
			callback(m, c, flow.Value{Kind: flow.None})

			return flow.Value{Ref: "container"}
		}
	}

	root.Def("dockerode().run", l.Methods["createContainer"])

	for _, name := range strings.Fields("createNamespacedPod createNamespacedDeployment createNamespacedDaemonSet createNamespacedJob patchNamespacedPod") {
		l.Methods[name] = func(m *flow.Machine, c *flow.Call) flow.Value {
			m.RunsPod(c)

			return flow.Value{}
		}
	}

	// Archives.
	archive := root.At("archive()")
	fill := func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		path := c.Val(0, "")

		to, ok := o.Attrs["to"]
		if !ok {
			content := m.Content(path.Value())
			m.TaintNode(c.RecvNode, content)
			o.Set("content", content)

			return c.Recv
		}

		m.Packed(c, to.Value(), path, c.Node(0, ""))

		return c.Recv
	}
	archive.Def("file directory glob append addLocalFile addLocalFolder addLocalFolderPromise", fill)
	archive.Def("pipe writeZip writeZipPromise extract", func(m *flow.Machine, c *flow.Call) flow.Value {
		to := c.Val(0, "")
		if o := to.Object(); to.Kind == flow.Instance && o.Sym != nil && o.Sym.Name == "file()" {
			to = o.Main
		}

		o := c.Recv.Object()
		o.Set("to", to)

		if v, ok := o.Attrs["content"]; ok {
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: to.Value(), Data: v.Forget().Value()})
		}

		return c.Val(0, "")
	})
	archive.Def("finalize on", func(m *flow.Machine, c *flow.Call) flow.Value {
		if f := c.Val(1, ""); f.Callable() {
			callLater(m, c, f)
		}

		return c.Recv
	})
	archive.Def("toBuffer toBufferPromise", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Recv.Object().Attrs["content"]

		return v.Forget()
	})
	root.Def("archiver archiver.create adm-zip AdmZip", func(m *flow.Machine, _ *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("archive()"), flow.Value{})
	})
	root.Def("tar.create tar.c", func(m *flow.Machine, c *flow.Call) flow.Value {
		to, _ := option(c, "file")

		for _, it := range itemsOf(c.Val(1, "")) {
			if dir, ok := option(c, "cwd"); ok {
				it = m.JoinPath(dir, it)
			}

			m.Packed(c, to.Value(), it, 0)
		}

		return flow.Value{}
	})

	// Ciphers: what comes out cannot be read.
	root.Def("crypto.createCipheriv().update crypto.createCipher().update crypto.createCipheriv().final crypto.publicEncrypt crypto-js.AES.encrypt",
		func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Result().With(effect.TaintEncoded) })
	root.Def("crypto.createCipheriv crypto.createCipher", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("crypto.createCipheriv()"), flow.Value{})
	})
}
