package program

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// remotePath splits "host:path" and "user@host:path".
func remotePath(v effect.Value) (host, file string, ok bool) {
	t := v.Text
	if strings.Contains(t, "://") {
		rest := t[strings.Index(t, "://")+3:]
		host, file, _ = strings.Cut(rest, "/")

		return host, file, true
	}

	i := strings.IndexByte(t, ':')
	if i <= 1 || strings.IndexByte(t[:i], '/') >= 0 {
		return "", "", false
	}

	return t[:i], strings.TrimPrefix(t[i+1:], ":"), true
}

// remoteCopy is scp, rsync, sftp, rclone: local sources leave, remote sources
// arrive.
func remoteCopy(short, long string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, long)

		for _, name := range []string{"e", "rsh", "rsync-path", "S", "o"} {
			if v, ok := o.val(name); ok {
				if name == "o" {
					v.Text, ok = strings.CutPrefix(v.Text, "ProxyCommand=")
				}

				if ok && !v.IsEmpty() && name != "S" {
					m.runText(c, v, "bash", Base(c.Name.Text)+" -"+name)
				}
			}
		}

		pos := o.pos
		if len(pos) < 2 {
			return effect.Unknown(effect.TaintOutput)
		}

		dest := pos[len(pos)-1]
		host, _, toRemote := remotePath(dest)

		if !toRemote && o.has("delete", "delete-before", "delete-during", "delete-after", "delete-excluded", "del") && !o.has("n", "dry-run") {
			m.add(c, effect.Effect{Kind: effect.Delete, Target: dest, Flags: effect.FlagRecursive, Via: "rsync --delete"})
		}

		for _, src := range pos[:len(pos)-1] {
			from, file, fromRemote := remotePath(src)

			switch {
			case toRemote && !fromRemote:
				m.connect(c, withText(dest, host), effect.Value{})
				m.send(c, withText(dest, host), m.Read(src, c.Span, c.Flags, Base(c.Name.Text)))
			case fromRemote && !toRemote:
				m.connect(c, withText(src, from), effect.Value{})

				body := effect.Unknown(0).From(effect.TaintDownload, Base(c.Name.Text)+"://"+from+"/"+strings.TrimPrefix(file, "/"))
				target := dest

				if dest.Text == "." || strings.HasSuffix(dest.Text, "/") {
					target = withText(dest, strings.TrimSuffix(dest.Text, "/")+"/"+path.Base(file))
				}

				m.Write(target, body, c.Span, c.Flags, Base(c.Name.Text))
			case !fromRemote:
				m.copyOne(c, src, dest, true, len(pos) > 2)
			}
		}

		return effect.Unknown(effect.TaintOutput)
	}
}

// ssh runs text on another host; what is piped in leaves.
func ssh(m *Machine, c *Call) effect.Value {
	const takes = "bcDEeFIiJLlmOopQRSWw"

	for i, a := range c.Args {
		opt := a.Text
		if a.Text == "-o" && i+1 < len(c.Args) {
			opt = "-o" + c.Args[i+1].Text
		}

		if cmd, ok := strings.CutPrefix(opt, "-oProxyCommand="); ok {
			m.runText(c, withText(a, cmd), "bash", "ssh ProxyCommand")
		} else if cmd, ok := strings.CutPrefix(opt, "-oLocalCommand="); ok {
			m.runText(c, withText(a, cmd), "bash", "ssh LocalCommand")
		}
	}

	pos := operandsUntilCommand(c.Args, takes, "")
	if len(pos) == 0 {
		return effect.Unknown(effect.TaintOutput)
	}

	m.connect(c, pos[0], effect.Value{})

	if c.Piped && c.Stdin.Taint&^(effect.TaintInput) != 0 {
		m.send(c, pos[0], c.Stdin)
	}

	return joined(takes, "", 1, effect.FlagRemote)(m, c)
}

// cloudCopy is aws s3 cp, gsutil cp, az storage, rclone copy, gh gist create.
func cloudCopy(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "f", " file source name container-name account-name profile region endpoint-url ")

	var files []effect.Value

	remote := effect.Value{}
	active := false

	for _, p := range o.pos {
		switch p.Text {
		case "cp", "mv", "sync", "copy", "move", "put", "create", "rsync", "upload", "put-object", "copyto":
			active = true

			continue
		case "s3", "storage", "blob", "gist", "s3api", "-m":
			continue
		}

		if _, _, ok := remotePath(p); ok || strings.Contains(p.Text, "://") {
			remote = p
		} else if active {
			files = append(files, p)
		}
	}

	if v, ok := o.val("file", "f"); ok {
		files = append(files, v)
	}

	if body, ok := o.val("body"); ok {
		files = append(files, body)
	}

	if !active {
		return m.printsSecret(c)
	}

	if remote.IsEmpty() {
		remote = effect.Const(Base(c.Name.Text) + ":")
	}

	for _, f := range files {
		data := c.Stdin
		if f.Text != "-" {
			data = m.Read(f, c.Span, c.Flags, Base(c.Name.Text))
		}

		m.send(c, remote, data)
	}

	return effect.Unknown(effect.TaintOutput)
}

// secretPrinters are commands whose output is a credential.
var secretPrinters = []string{
	"get-session-token", "assume-role", "get-secret-value", "--with-decryption", "print-access-token", "print-identity-token", "get-access-token", "auth token", "auth print",
	"get secret", "get secrets", "kv get", "vault read", "secrets get", "export-credentials", "get-login-password", "find-generic-password",
}

// printsSecret is the output of a service's command line: a secret where the
// subcommand is one that prints them.
func (m *Machine) printsSecret(c *Call) effect.Value {
	var b strings.Builder

	b.WriteString(Base(c.Name.Text))

	for _, a := range c.Args {
		b.WriteByte(' ')
		b.WriteString(a.Text)
	}

	line := b.String()
	for _, p := range secretPrinters {
		if strings.Contains(line, p) {
			return effect.Unknown(0).From(effect.TaintSecret, p)
		}
	}

	return effect.Unknown(effect.TaintOutput)
}
