package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

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

		// What a text record holds, its owner chooses.
		if asksText(c.Args) {
			return effect.Unknown(effect.TaintOutput).From(effect.TaintNetwork, "")
		}

		return effect.Unknown(effect.TaintOutput)
	}
}

// asksText says whether a look-up asks for text records.
func asksText(args []effect.Value) bool {
	for _, a := range args {
		switch strings.ToLower(a.Text) {
		case "txt", "-q=txt", "-type=txt", "-querytype=txt", "-qtxt", "-ttxt":
			return true
		}
	}

	return false
}

// getent looks hosts up; its other databases are local.
func getent(m *Machine, c *Call) effect.Value {
	if len(c.Args) < 2 || !strings.Contains(c.Args[0].Text, "hosts") {
		return effect.Unknown(effect.TaintOutput)
	}

	inner := *c
	inner.Args = c.Args[1:]

	return nameLookup("s")(m, &inner)
}

// tftp fetches a file with -g, or with -c get, and stores it; -p and put send.
func tftp(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "rlbm", "")

	name, named := o.val("r")
	local, stored := o.val("l")
	host := effect.Unknown(0)

	if len(o.pos) > 0 {
		host = o.pos[0]
	}

	put := o.has("p")

	for i, p := range o.pos {
		if (p.Text == "get" || p.Text == "put") && i+1 < len(o.pos) {
			put = p.Text == "put"
			name, named = o.pos[i+1], true

			if i+2 < len(o.pos) {
				local, stored = o.pos[i+2], true
			}
		}
	}

	m.connect(c, host, effect.Value{})

	switch {
	case put:
		if !stored {
			local = name
		}

		m.send(c, host, m.Read(local, c.Span, c.Flags, "tftp"))
	case named:
		if !stored {
			local = name
		}

		url := "tftp://" + host.Text + "/" + name.Text
		m.add(c, effect.Effect{Kind: effect.Receive, Target: effect.Const(url)})
		m.Write(local, effect.Unknown(0).From(effect.TaintDownload, url), c.Span, c.Flags, "tftp")
	}

	return effect.Unknown(effect.TaintNetwork)
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
