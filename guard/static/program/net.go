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

// loopback says whether an URL is the sandbox itself.
func loopback(u string) bool { return place.ClassifyHost(u).Has(place.Loopback) }
