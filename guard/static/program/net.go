package program

import (
	"net/url"
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

func (m *Machine) connect(c *Call, host, port effect.Value) {
	m.add(c, effect.Effect{Kind: effect.Connect, Target: host, Port: port})
}

// send records data that leaves: only what has sources or text is worth it.
func (m *Machine) send(c *Call, to, data effect.Value) {
	m.add(c, effect.Effect{Kind: effect.Send, Target: to, Data: data})
}

// sendURL records what an URL itself carries out.
func (m *Machine) sendURL(c *Call, u effect.Value) {
	if u.Taint != 0 && !u.IsConst() || u.Taint.Any(effect.TaintFile|effect.TaintEnv|effect.TaintEnvAll|effect.TaintSecret|effect.TaintCapture) {
		m.send(c, u, u)
	}
}

func withScheme(u effect.Value) effect.Value {
	if !strings.Contains(u.Text, "://") {
		u.Text = "http://" + u.Text
	}

	return u
}

// atFile is the data of an option that reads a file after "@" (or "<").
func (m *Machine) atFile(c *Call, v effect.Value, form bool) effect.Value {
	t := v.Text

	if form {
		if _, after, ok := strings.Cut(t, "="); ok {
			t = after
		}

		if t != "" && (t[0] == '@' || t[0] == '<') {
			name, _, _ := strings.Cut(t[1:], ";")

			return m.fileOrStdin(c, withText(v, strings.Trim(name, `"`)))
		}

		return v
	}

	if i := strings.IndexByte(t, '@'); i == 0 || i > 0 && strings.IndexByte(t[:i], '=') < 0 && !strings.ContainsAny(t[:i], " {\":/.") {
		return m.fileOrStdin(c, withText(v, t[i+1:]))
	}

	return v
}

func (m *Machine) fileOrStdin(c *Call, p effect.Value) effect.Value {
	if p.Text == "-" || p.Text == "/dev/stdin" {
		return c.Stdin
	}

	// Even if the script wrote the file itself: what leaves is a file.
	return m.Read(p, c.Span, c.Flags, Base(c.Name.Text)).From(effect.TaintFile, place.Resolve(p.Text, m.Cwd))
}

const curlLong = " data data-binary data-raw data-urlencode data-ascii json form form-string upload-file output header request user user-agent referer cookie " +
	"cookie-jar url proxy max-time connect-timeout retry retry-delay range write-out cacert cert key resolve interface limit-rate config dump-header " +
	"preproxy socks5 socks5-hostname unix-socket oauth2-bearer mail-from mail-rcpt quote url-query variable proto proto-redir tls-max output-dir time-cond connect-to dns-servers aws-sigv4 "

func curl(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "AbcCdDeEFHKmoPQrtTuUwxXyYz", curlLong)

	var urls []effect.Value

	urls = append(urls, o.pos...)
	urls = append(urls, o.vals("url")...)

	if len(urls) == 0 {
		return effect.Unknown(0)
	}

	var data []effect.Value

	for _, f := range o.flags {
		switch f.name {
		case "d", "data", "data-binary", "data-ascii", "json", "data-urlencode", "url-query":
			data = append(data, m.atFile(c, f.val, false))
		case "data-raw", "u", "user", "A", "user-agent", "e", "referer", "b", "cookie", "X", "oauth2-bearer":
			if f.name != "u" && f.name != "user" && f.name != "oauth2-bearer" {
				data = append(data, f.val)
			}
		case "H", "header":
			if !isAuthHeader(f.val.Text) {
				data = append(data, f.val)
			}
		case "F", "form":
			data = append(data, m.atFile(c, f.val, true))
		case "form-string":
			data = append(data, f.val)
		case "T", "upload-file":
			data = append(data, m.fileOrStdin(c, f.val))
		case "K", "config":
			m.Read(f.val, c.Span, c.Flags, "curl")
		}
	}

	return m.transfer(c, urls, data, curlOutput(&o), o.has("O", "remote-name", "remote-name-all", "J"), o.has("x", "proxy"))
}

func curlOutput(o *options) effect.Value {
	v, _ := o.val("o", "output")

	return v
}

// isAuthHeader says whether a header is how an API is told who calls; a token
// in it is used, not stolen.
func isAuthHeader(h string) bool {
	name, _, _ := strings.Cut(strings.ToLower(h), ":")

	switch strings.TrimSpace(name) {
	case "authorization", "x-api-key", "api-key", "private-token", "x-auth-token", "x-access-token", "x-goog-api-key", "apikey", "job-token",
		"x-vault-token", "proxy-authorization", "x-aws-ec2-metadata-token", "dropbox-api-arg", "content-type", "accept", "circle-token",
		"x-github-api-version", "x-figma-token", "dd-api-key", "xi-api-key", "x-subscription-token", "anthropic-version", "openai-organization":
		return true
	}

	return false
}

// transfer sends data to each URL and gives what comes back.
func (m *Machine) transfer(c *Call, urls, data []effect.Value, out effect.Value, remoteName, proxied bool) effect.Value {
	result := effect.Value{}

	for _, u := range urls[:min(len(urls), 32)] {
		if p, ok := strings.CutPrefix(u.Text, "file://"); ok {
			result = effect.Concat(result, m.Read(withText(u, p), c.Span, c.Flags, Base(c.Name.Text)))

			continue
		}

		u = withScheme(u)
		m.connect(c, u, effect.Value{})
		m.sendURL(c, u)

		for _, d := range data {
			if !d.IsEmpty() {
				m.send(c, u, d)
			}
		}

		m.add(c, effect.Effect{Kind: effect.Receive, Target: u})

		body := effect.Unknown(0).From(effect.TaintDownload, u.Text)
		body.Ref = "body of " + u.Text

		switch {
		case remoteName && out.IsEmpty():
			m.Write(urlFile(u), body, c.Span, c.Flags, Base(c.Name.Text))
		case out.IsEmpty() || out.Text == "-" || out.Text == "/dev/stdout":
			result = effect.Concat(result, body)
		default:
			m.Write(out, body, c.Span, c.Flags, Base(c.Name.Text))
		}
	}

	return result
}

// urlFile is the name under which a download is stored.
func urlFile(u effect.Value) effect.Value {
	if !u.IsConst() {
		return withText(u, path.Base(u.Text))
	}

	p, err := url.Parse(u.Text)
	if err != nil || p.Path == "" || p.Path == "/" {
		return effect.Const("index.html")
	}

	return effect.Const(path.Base(p.Path))
}

const wgetLong = " output-document post-data post-file body-data body-file header user-agent referer input-file directory-prefix tries timeout method user password " +
	"level accept reject domains quota wait execute limit-rate load-cookies save-cookies output-file append-output base http-user http-password ca-certificate " +
	"certificate private-key use-askpass cut-dirs include-directories exclude-directories "

func wget(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "OUPtTlARDQweoaiBIX", wgetLong)

	var data []effect.Value

	for _, f := range o.flags {
		switch f.name {
		case "post-data", "body-data", "U", "user-agent", "referer":
			data = append(data, f.val)
		case "header":
			if !isAuthHeader(f.val.Text) {
				data = append(data, f.val)
			}
		case "post-file", "body-file":
			data = append(data, m.fileOrStdin(c, f.val))
		}
	}

	if in, ok := o.val("i", "input-file"); ok {
		m.Read(in, c.Span, c.Flags, "wget")
	}

	if o.has("spider") && len(data) == 0 {
		for _, u := range o.pos {
			m.connect(c, withScheme(u), effect.Value{})
		}

		return effect.Unknown(effect.TaintOutput)
	}

	if len(o.pos) == 0 {
		return effect.Unknown(0)
	}

	out, ok := o.val("O", "output-document")

	return m.transfer(c, o.pos, data, out, !ok, false)
}

// downloader is aria2c, axel, lwp-download, fetch: URL in, file out.
func downloader(outOpts, short, long string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, long)

		var data, urls []effect.Value

		for _, f := range o.flags {
			if strings.Contains(f.name, "upload") {
				v := f.val
				if v.IsEmpty() && len(o.pos) > 0 {
					v, o.pos = o.pos[0], o.pos[1:]
				}

				data = append(data, m.Read(v, c.Span, c.Flags, Base(c.Name.Text)))
			}
		}

		for _, p := range o.pos {
			if strings.Contains(p.Text, "/") || strings.Contains(p.Text, ".") || !p.IsConst() {
				urls = append(urls, p)
			}
		}

		var out effect.Value

		for n := range strings.FieldsSeq(outOpts) {
			if v, ok := o.val(n); ok {
				out = v
			}
		}

		if len(urls) == 0 {
			return effect.Unknown(0)
		}

		printed := m.transfer(c, urls, data, out, out.IsEmpty() && outOpts != "", false)
		if printed.IsEmpty() && len(urls) > 0 {
			// What it prints names what it fetched; a shell fed with it is up to
			// no good either way.
			printed = effect.Unknown(0).From(effect.TaintDownload, withScheme(urls[0]).Text)
		}

		return printed
	}
}

// httpie is "http [METHOD] URL [ITEM…]": items are data.
func httpie(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "oaApb", " output auth auth-type print ")

	pos := o.pos
	if len(pos) > 0 && strings.ToUpper(pos[0].Text) == pos[0].Text && len(pos[0].Text) <= 7 && !strings.ContainsAny(pos[0].Text, ".:/") {
		pos = pos[1:]
	}

	if len(pos) == 0 {
		return effect.Unknown(0)
	}

	var data []effect.Value

	for _, p := range pos[1:] {
		if name, file, ok := strings.Cut(p.Text, "@"); ok && !strings.ContainsAny(name, "=:") {
			data = append(data, m.Read(withText(p, file), c.Span, c.Flags, "http"))
		} else {
			data = append(data, p)
		}
	}

	if c.Piped {
		data = append(data, c.Stdin)
	}

	out, _ := o.val("o", "output")

	return m.transfer(c, pos[:1], data, out, o.has("d", "download") && out.IsEmpty(), false)
}

// netcat connects or listens, sends its input and may hand a program to the
// other end.
func netcat(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "ecpswgGiIoOPqTVXxmM", " exec sh-exec lua-exec source-port source wait delay output proxy proxy-type ssl-cert ssl-key max-conns allow deny idle-timeout ")

	host, port := effect.Value{}, effect.Value{}
	if len(o.pos) > 0 {
		host = o.pos[0]
	}

	if len(o.pos) > 1 {
		port = o.pos[1]
	}

	listen := o.has("l", "listen")

	if o.has("z") {
		m.add(c, effect.Effect{Kind: effect.Connect, Target: host, Port: port, Flags: portRange(port)})

		return effect.Unknown(effect.TaintOutput)
	}

	if listen {
		if p, ok := o.val("p"); ok {
			port = p
		} else if len(o.pos) == 1 {
			host, port = effect.Value{}, host
		}

		m.add(c, effect.Effect{Kind: effect.Listen, Target: host, Port: port})
	} else {
		m.connect(c, host, port)
	}

	for _, prog := range o.vals("e", "c", "exec", "sh-exec", "lua-exec") {
		if !prog.IsEmpty() && !(prog.Text == "-") {
			m.add(c, effect.Effect{Kind: effect.Exec, Target: firstWord(prog), Flags: effect.FlagNetIO, Via: "nc -e"})
		}
	}

	if c.Piped && !listen {
		m.send(c, host, c.Stdin)
	} else if c.Piped && (c.Stdin.Taint&^effect.TaintInput) != 0 {
		m.send(c, host, c.Stdin)
	}

	return effect.Unknown(0).From(effect.TaintNetwork, host.Text)
}

func firstWord(v effect.Value) effect.Value {
	f := strings.Fields(v.Text)
	if len(f) == 0 {
		return v
	}

	return withText(v, f[0])
}

func portRange(port effect.Value) effect.Flag {
	if strings.Contains(port.Text, "-") || strings.HasPrefix(port.Ref, ManyRef) {
		return effect.FlagManyPorts
	}

	return 0
}

// socat joins two addresses.
func socat(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "tTbLW", "")

	var host, program, data effect.Value

	listen, network := false, false

	for _, p := range o.pos {
		kind, rest, _ := strings.Cut(p.Text, ":")
		kind = strings.ToUpper(kind)
		rest, _, _ = strings.Cut(rest, ",")

		switch {
		case strings.Contains(kind, "LISTEN"):
			listen, network, host = true, true, withText(p, rest)
		case strings.HasPrefix(kind, "TCP"), strings.HasPrefix(kind, "UDP"), strings.HasPrefix(kind, "OPENSSL"), strings.HasPrefix(kind, "SSL"),
			strings.HasPrefix(kind, "SCTP"), strings.HasPrefix(kind, "SOCKS"), strings.HasPrefix(kind, "PROXY"):
			network, host = true, withText(p, rest)
		case kind == "EXEC" || kind == "SYSTEM" || kind == "SHELL":
			program = withText(p, strings.Trim(rest, `'"`))
		case kind == "FILE" || kind == "OPEN" || kind == "GOPEN":
			if !strings.HasPrefix(rest, "`tty`") && !strings.HasPrefix(rest, "/dev/tty") {
				data = m.Read(withText(p, rest), c.Span, c.Flags, "socat")
			}
		case kind == "-" || kind == "STDIN" || kind == "STDIO":
			data = c.Stdin
		}
	}

	if network {
		if listen {
			m.add(c, effect.Effect{Kind: effect.Listen, Target: host})
		} else {
			m.connect(c, host, effect.Value{})
		}
	}

	switch {
	case network && !program.IsEmpty():
		m.add(c, effect.Effect{Kind: effect.Exec, Target: firstWord(program), Flags: effect.FlagNetIO, Via: "socat"})
	case !program.IsEmpty():
		m.runText(c, program, "bash", "socat")
	case network && data.Taint&^effect.TaintInput != 0:
		m.send(c, host, data)
	}

	return effect.Unknown(0).From(effect.TaintNetwork, host.Text)
}

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

// nameLookup is dig, nslookup, host, ping: a name that holds data leaves by
// DNS.
func nameLookup(short string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, "")

		for _, p := range o.pos {
			if strings.HasPrefix(p.Text, "@") || strings.HasPrefix(p.Text, "+") {
				continue
			}

			if p.Taint != 0 || !p.IsConst() {
				m.send(c, withText(p, "dns:"+p.Text), p)
			}

			m.add(c, effect.Effect{Kind: effect.Connect, Target: p, Via: Base(c.Name.Text)})
		}

		if v, ok := o.val("p"); ok && v.Taint != 0 && Base(c.Name.Text) == "ping" {
			m.send(c, v, v)
		}

		return effect.Unknown(effect.TaintOutput)
	}
}

// mailer sends its input and attachments.
func mailer(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "sabcrAq", " attach subject body ")

	to := effect.Unknown(0)
	if len(o.pos) > 0 {
		to = o.pos[len(o.pos)-1]
	}

	to = withText(to, "mailto:"+to.Text)

	for _, a := range o.vals("a", "A", "attach", "q") {
		m.send(c, to, m.Read(a, c.Span, c.Flags, Base(c.Name.Text)))
	}

	if c.Piped {
		m.send(c, to, c.Stdin)
	}

	return effect.Value{}
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

// loopback says whether an URL is the sandbox itself.
func loopback(u string) bool { return place.ClassifyHost(u).Has(place.Loopback) }

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
