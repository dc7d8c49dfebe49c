package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// fileNames are the keywords, and the keys of records, by which clients are told
// which file to send.
var fileNames = []string{
	"Filename", "filename", "file", "files", "file_path", "filepath", "path", "localpath", "local_path", "document", "photo", "media", "attachments", "attachment",
	"Body", "body", "data", "content", "Fileobj", "file_name", "source", "source_file_name", "path_or_fileobj", "folder_path",
}

// defineUploads defines clients of services that store or pass on files, and
// archives. Most clients are told by what their methods are called.
func defineUploads(l *flow.Language) {
	root := l.Root

	upload := func(m *flow.Machine, c *flow.Call) flow.Value {
		to := effect.Value{}
		if o := c.Recv.Object(); c.Recv.Kind == flow.Instance {
			to = o.Main.Value()
		}

		m.Upload(c, to, 0, fileNames...)

		return flow.Value{}
	}

	for _, name := range strings.Fields("upload_file upload_fileobj upload_from_filename upload_from_file upload_from_string upload_blob put_object fput_object files_upload files_upload_v2 " +
		"upload_folder storbinary storlines put_file create_or_update_file upload_large_folder upload_to") {
		l.Methods[name] = upload
	}

	// The file comes after whom it goes to.
	for _, name := range []string{"send_document", "sendDocument", "send_photo", "send_file", "send_video"} {
		l.Methods[name] = func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Upload(c, effect.Value{}, 1, fileNames...)

			return flow.Value{}
		}
	}

	l.Methods["fput_object"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Upload(c, effect.Value{}, 2, fileNames...)

		return flow.Value{}
	}
	root.Def("huggingface_hub.upload_file huggingface_hub.upload_folder huggingface_hub.HfApi().upload_file gdown.upload slack_sdk.WebClient().files_upload "+
		"slack_sdk.WebClient().files_upload_v2 dropbox.Dropbox().files_upload yagmail.SMTP().send "+
		"boto3.client().upload_file boto3.client().upload_fileobj boto3.client().put_object sftp().put sftp().putfo sftp().put_d sftp().put_r pysftp.Connection().put", upload)
	root.Def("discord.File", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := m.Value(c, 0, "fp")
		if c.Val(0, "fp").IsText() {
			return m.Content(v)
		}

		return c.Val(0, "fp").Forget()
	})
	root.Def("discord.SyncWebhook.from_url().send discord_webhook.DiscordWebhook().add_file discord.Webhook.from_url().send", upload)
	root.Def("pycurl.Curl().setopt", func(m *flow.Machine, c *flow.Call) flow.Value {
		what, v := m.Source(c.Node(0, "")), c.Val(1, "")

		for _, name := range []string{"POSTFIELDS", "READDATA", "HTTPPOST", "READFUNCTION"} {
			if !strings.HasSuffix(what, name) {
				continue
			}

			data := v.Forget().Value()

			for _, part := range append(itemsOf(v), v) {
				for _, it := range itemsOf(part) {
					for _, w := range append(itemsOf(it), it) {
						if w.IsConst() && name == "HTTPPOST" {
							data = data.From(effect.TaintFile, w.Text)
						}
					}
				}
			}

			m.Emit(c, effect.Effect{Kind: effect.Send, Target: effect.Value{Text: effect.HoleText, Ref: "curl"}, Data: data})
		}

		return flow.Value{}
	})

	// Ciphers, in all their spellings: what comes out cannot be read.
	encrypted := func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Result().With(effect.TaintEncoded)
		if c.Name == "encrypt_and_digest" {
			return flow.Items(v, v)
		}

		return v
	}
	l.Methods["encrypt"], l.Methods["encrypt_and_digest"] = encrypted, encrypted
	root.Def("cryptography.hazmat.primitives.ciphers.Cipher().encryptor().update", encrypted)

	defineArchives(root)
}

// defineArchives defines what packs files.
func defineArchives(root *flow.Sym) {
	archive := root.At("archive()")

	for name := range strings.FieldsSeq("zipfile.ZipFile tarfile.open tarfile.TarFile tarfile.TarFile.open pyzipper.AESZipFile pyzipper.ZipFile py7zr.SevenZipFile") {
		root.Def(name, func(m *flow.Machine, c *flow.Call) flow.Value {
			mode, ok := c.Arg(1, "mode")
			if !ok || !mode.IsText() || !strings.ContainsAny(mode.Text, "wxa") {
				return open(m, c)
			}

			path := c.Val(0, "name")
			if v, ok := c.Arg(-1, "file"); ok {
				path = v
			}

			v := flow.New(archive, pathText(path))
			v.Taint, v.Origin = 0, ""

			// An archive in memory.
			over := m.Source(c.Node(-1, "fileobj"))
			if over == "" && !path.IsText() && len(c.Nodes) > 0 {
				over = m.Source(c.Nodes[0])
			}

			if over != "" {
				v.Object().Set("over", flow.Text(over))
			}

			if strings.Contains(c.Sym.Name, "AES") || m.Source(c.Node(-1, "password")) != "" {
				v.Object().Set("locked", flow.Truth(true))
			}

			if _, under := path.Sources(); path.IsText() || under == "" {
				m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.ValueOf(pathText(path), c.Node(0, "name")), Flags: effect.FlagTruncate})
			}

			return v
		})
	}

	pack := func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		path := pathText(c.Val(0, "name"))

		if v, ok := c.Arg(-1, "filename"); ok {
			path = pathText(v)
		}

		to := m.ValueOf(o.Main, c.RecvNode)
		if over, ok := o.Attrs["over"]; ok {
			m.Emit(c, effect.Effect{Kind: effect.Read, Target: m.ValueOf(path, c.Node(0, "name"))})
			m.TaintName(over.Text, m.Content(m.ValueOf(path, c.Node(0, "name"))))
			m.AbsorbFile(c, path)

			return flow.Value{}
		}

		if _, ok := o.Attrs["locked"]; ok {
			e := m.ValueOf(path, c.Node(0, "name"))
			m.Emit(c, effect.Effect{Kind: effect.Read, Target: e})
			m.Emit(c, effect.Effect{Kind: effect.Write, Target: to, Data: effect.Unknown(effect.TaintFile|effect.TaintEncoded).From(0, e.Text)})

			return flow.Value{}
		}

		m.Packed(c, to, path, c.Node(0, "name"))

		return flow.Value{}
	}
	archive.Def("add write writeall", pack)
	archive.Def("setpassword", func(_ *flow.Machine, c *flow.Call) flow.Value {
		c.Recv.Object().Set("locked", flow.Truth(true))

		return flow.Value{}
	})
	archive.Def("writestr writef", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.ValueOf(c.Recv.Object().Main, c.RecvNode), Data: m.Value(c, 1, "data"), Flags: effect.FlagAppend})

		return flow.Value{}
	})
	archive.Def("addfile", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.ValueOf(c.Recv.Object().Main, c.RecvNode), Data: m.Value(c, 1, "fileobj"), Flags: effect.FlagAppend})

		return flow.Value{}
	})
	archive.Def("close __enter__", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv })
	root.Def("shutil.make_archive", func(m *flow.Machine, c *flow.Call) flow.Value {
		ends := map[string]string{"zip": ".zip", "tar": ".tar", "gztar": ".tar.gz", "bztar": ".tar.bz2", "xztar": ".tar.xz"}
		path := m.Operate('+', pathText(c.Val(0, "base_name")), flow.Text(ends[c.Val(1, "format").Text]), c.ID)

		from := m.Value(c, 2, "root_dir")
		if from.Text == "" {
			from = effect.Const(".")
		}

		m.Emit(c, effect.Effect{Kind: effect.Read, Target: from, Flags: effect.FlagRecursive})
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: path.Value(), Data: effect.Unknown(effect.TaintFile).From(0, from.Text)})

		return path
	})

	// Ransomware's own tools.
	root.Def("pyAesCrypt.encryptFile pyAesCrypt.encryptStream", func(m *flow.Machine, c *flow.Call) flow.Value {
		e := m.ValueOf(pathText(c.Val(0, "")), c.Node(0, ""))
		m.Emit(c, effect.Effect{Kind: effect.Read, Target: e})
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.ValueOf(pathText(c.Val(1, "")), c.Node(1, "")), Data: effect.Unknown(effect.TaintFile|effect.TaintEncoded).From(0, e.Text)})

		return flow.Value{}
	})
}
