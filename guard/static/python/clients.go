package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineClients defines clients of other protocols, and packets below them.
func defineClients(l *flow.Language) {
	root := l.Root

	// FTP and mail.
	for _, name := range strings.Fields("ftplib.FTP ftplib.FTP_TLS smtplib.SMTP smtplib.SMTP_SSL telnetlib.Telnet " +
		"imaplib.IMAP4 imaplib.IMAP4_SSL poplib.POP3 nntplib.NNTP ldap3.Server pymysql.connect psycopg2.connect " +
		"mysql.connector.connect redis.Redis pymongo.MongoClient paramiko.Transport pika.BlockingConnection " +
		"websocket.create_connection websocket.WebSocketApp websockets.connect zmq.Context().socket") {
		root.Def(name, func(m *flow.Machine, c *flow.Call) flow.Value {
			host, port := c.Val(0, "host"), c.Val(1, "port")
			if v, ok := c.Arg(-1, "url"); ok {
				host = v
			}

			if host.Kind == flow.Array {
				host, port = address(m, c, host)
			}

			if host.Kind != flow.Unknown || host.Taint != 0 || len(c.Args) > 0 {
				m.Emit(c, effect.Effect{Kind: effect.Connect, Target: m.ValueOf(host, c.Node(0, "host")), Port: portValue(port)})
			}

			inst := m.L.Root.At("client()")
			if strings.HasSuffix(name, ".connect") && !strings.HasPrefix(name, "websocket") {
				inst = m.L.Root.At("database()")
			}

			v := flow.New(inst, host)
			v.Object().Port = port
			v.Taint, v.Origin = 0, ""

			// What such a connection yields one by one are messages.
			if strings.HasPrefix(name, "websocket") || strings.HasPrefix(name, "zmq") {
				v.Taint = effect.TaintNetwork
			}

			return v
		})
	}

	root.Def("redis.Redis().pubsub redis.StrictRedis().pubsub client().pubsub", func(m *flow.Machine, _ *flow.Call) flow.Value {
		v := flow.New(m.L.Root.At("messages()"), flow.Value{})
		v.Taint = effect.TaintNetwork

		return v
	})
	root.Def("messages().listen messages().get_message", func(*flow.Machine, *flow.Call) flow.Value { return flow.Items(flow.Tainted(effect.TaintNetwork, "")) })
	root.Def("messages().subscribe messages().psubscribe", quiet)

	client := root.At("client()")
	client.Def("connect open", func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		o.Main, o.Port = c.Val(0, "host"), c.Val(1, "port")
		m.Emit(c, effect.Effect{Kind: effect.Connect, Target: m.Value(c, 0, "host"), Port: portValue(o.Port)})

		return flow.Value{}
	})
	client.Def("sendmail send_message storbinary storlines send write publish sendall post put", func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		t, origin := c.Sources()

		e := effect.Effect{Kind: effect.Send, Target: m.ValueOf(o.Main, c.RecvNode)}

		switch c.Sym.Short() {
		case "sendmail":
			e.Data = m.Value(c, 2, "msg")
		case "storbinary", "storlines":
			e.Data = m.Value(c, 1, "fp")
		default:
			e.Data = m.Value(c, 0, "")
		}

		e.Data.Taint |= t
		if e.Data.Origin == "" {
			e.Data.Origin = origin
		}

		m.Emit(c, e)

		return flow.Value{}
	})
	client.Def("read_until read_all read_very_eager recv retrbinary retrlines", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintNetwork, "")
	})

	// SSH: what runs there runs elsewhere.
	ssh := root.At("paramiko.SSHClient()")
	root.Def("paramiko.SSHClient paramiko.client.SSHClient", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.New(ssh, flow.Value{Ref: "ssh"})
	})
	ssh.Def("connect", func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		o.Main = c.Val(0, "hostname")
		e := effect.Effect{Kind: effect.Connect, Target: m.Value(c, 0, "hostname"), Port: effect.Const("22"), Flags: sweep(c, o.Main, flow.Value{})}

		// Passwords that are tried one after the other.
		e.Data = c.Val(3, "password").Value()
		m.Emit(c, e)

		return flow.Value{}
	})
	ssh.Def("exec_command", func(m *flow.Machine, c *flow.Call) flow.Value {
		host := c.Recv.Object().Main.Value()
		m.Emit(c, effect.Effect{
			Kind: effect.Exec, Target: effect.Const("ssh"), Args: []effect.Value{host, m.Value(c, 0, "command")},
			Flags: effect.FlagRemote,
		})

		v := flow.Tainted(effect.TaintNetwork|effect.TaintOutput, "")

		return flow.Items(v, v, v)
	})
	ssh.Def("open_sftp", func(m *flow.Machine, c *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("sftp()"), c.Recv.Object().Main)
	})
	root.Def("paramiko.SFTPClient.from_transport", func(m *flow.Machine, _ *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("sftp()"), flow.Value{Ref: "sftp"})
	})

	root.Def("boto3.client boto3.resource boto3.Session().client", func(m *flow.Machine, _ *flow.Call) flow.Value {
		return flow.New(m.L.Root.At("boto3.client()"), flow.Value{Ref: "boto3"})
	})

	// Databases: the statement is code of its own.
	execute := func(m *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(0, "sql"); v.IsText() && len(v.Text) > 4 {
			m.Embed(c, "sql", v, c.Node(0, "sql"))
		}

		return c.Recv.Forget()
	}
	root.Def("database().execute database().executescript database().executemany sqlite3.connect().execute "+
		"file().execute file().executescript", execute)
	root.Def("database().cursor file().cursor", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv })

	l.Methods["execute"], l.Methods["executescript"], l.Methods["executemany"] = execute, execute, execute
	l.Methods["exec_command"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{
			Kind: effect.Exec, Target: effect.Const("ssh"),
			Args:  []effect.Value{effect.Unknown(0), m.Value(c, 0, "command")},
			Flags: effect.FlagRemote,
		})

		v := flow.Tainted(effect.TaintNetwork|effect.TaintOutput, "")

		return flow.Items(v, v, v)
	}

	// Packets.
	raw := func(how string) flow.Handler {
		return func(m *flow.Machine, c *flow.Call) flow.Value {
			e := effect.Effect{Kind: effect.Raw, Target: effect.Const(how)}

			if packet := c.Val(0, ""); packet.Many {
				e.Flags |= effect.FlagManyHosts
			}

			m.Emit(c, e)

			return flow.Tainted(effect.TaintNetwork, "")
		}
	}

	// A packet to many: to a network, to a range of ports, or in a loop over them.
	packet := func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := flow.Value{Ref: "packet"}

		for _, k := range c.Kw {
			switch w := k.Value; k.Name {
			case "dst", "pdst", "dport":
				v.Many = v.Many || w.Many || w.IsText() && strings.Contains(w.Text, "/") || w.Kind == flow.Array && len(itemsOf(w)) > 1
			}
		}

		return v
	}

	for _, module := range []string{"scapy.all.", "scapy.layers.inet.", "scapy.layers.l2."} {
		root.Def(module+"IP "+module+"TCP "+module+"UDP "+module+"ICMP "+module+"ARP "+module+"Ether "+module+"IPv6", packet)
	}

	for _, module := range []string{"scapy.all.", "scapy.sendrecv."} {
		root.Def(module+"send "+module+"sendp "+module+"sr1 "+module+"sr "+module+"srp "+module+"srp1", raw("raw"))
		root.Def(module+"sniff "+module+"AsyncSniffer", raw("sniff"))
		root.Def(module+"srflood "+module+"srloop", raw("flood"))
	}

	root.Def("pcap.pcap pyshark.LiveCapture pcapy.open_live", raw("sniff"))
	root.Def("nmap.PortScanner().scan nmap3.Nmap().scan_top_ports", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{
			Kind: effect.Exec, Target: effect.Const("nmap"),
			Args: []effect.Value{m.Value(c, 0, "hosts"), m.Value(c, 2, "arguments")},
		})

		return flow.Value{}
	})
	defineEngines(l)
}

func portValue(v flow.Value) effect.Value {
	if v.Kind == flow.Unknown && v.Taint == 0 && v.Ref == "" {
		return effect.Value{}
	}

	return v.Value()
}

// defineCapture defines what records the user, and stores of secrets.
func defineCapture(l *flow.Language) {
	root := l.Root

	for what, names := range map[string]string{
		"keyboard": "pynput.keyboard.Listener keyboard.on_press keyboard.on_release keyboard.record keyboard.hook keyboard.hook_key keyboard.read_event " +
			"pynput.keyboard.GlobalHotKeys pyxhook.HookManager pyHook.HookManager evdev.InputDevice",
		"screen":     "PIL.ImageGrab.grab pyautogui.screenshot mss.mss().shot mss.mss().grab pyscreenshot.grab pyscreeze.screenshot",
		"clipboard":  "pyperclip.paste pyperclip.waitForNewPaste clipboard.paste win32clipboard.GetClipboardData pandas.read_clipboard",
		"microphone": "sounddevice.rec pyaudio.PyAudio().open sounddevice.InputStream",
	} {
		root.Def(names, func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Capture, Target: effect.Const(what)})

			for i := range c.Args {
				m.CallValue(c.Args[i], c.ID, flow.Tainted(effect.TaintCapture, what))
			}

			for i := range c.Kw {
				m.CallValue(c.Kw[i].Value, c.ID, flow.Tainted(effect.TaintCapture, what))
			}

			return flow.Tainted(effect.TaintCapture, what)
		})
	}

	root.Def("cv2.VideoCapture imageio.get_reader", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(0, ""); v.Kind == flow.Int || v.IsText() && strings.HasPrefix(v.Text, "/dev/video") {
			m.Emit(c, effect.Effect{Kind: effect.Capture, Target: effect.Const("camera")})

			return flow.Tainted(effect.TaintCapture, "camera")
		}

		return flow.Value{}
	})
	root.Def("keyring.get_password keyring.get_credential win32crypt.CryptUnprotectData getpass.getpass "+
		"browser_cookie3.chrome browser_cookie3.firefox browser_cookie3.load secretstorage.get_default_collection",
		func(m *flow.Machine, c *flow.Call) flow.Value {
			m.Emit(c, effect.Effect{Kind: effect.Call, Target: effect.Const(c.Sym.Name), Args: []effect.Value{m.Value(c, 0, ""), m.Value(c, 1, "")}})

			return flow.Tainted(effect.TaintSecret, c.Sym.Name)
		})
}
