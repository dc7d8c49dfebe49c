package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// defineNetwork defines sockets and HTTP.
func defineNetwork(l *flow.Language) {
	root := l.Root

	sock := root.At("socket.socket()")
	root.Def("socket.socket socket.SocketType", func(m *flow.Machine, c *flow.Call) flow.Value {
		kind := m.Source(c.Node(0, "family")) + " " + m.Source(c.Node(1, "type"))
		if strings.Contains(kind, "SOCK_RAW") || strings.Contains(kind, "AF_PACKET") {
			m.Emit(c, effect.Effect{Kind: effect.Raw, Target: effect.Const("raw")})
		}

		v := flow.New(sock, flow.Value{Ref: "socket"})
		v.Taint = effect.TaintSocket

		return v
	})
	connect := func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		host, port := address(m, c, c.Val(0, "address"))
		m.Emit(c, effect.Effect{Kind: effect.Connect, Target: host.Value(), Port: port.Value(), Flags: sweep(c, host, port)})

		if o != nil {
			o.Main, o.Port = host, port
			if host.Kind == flow.Unknown && host.Ref == "" {
				o.Main.Ref = "socket"
			}
		}

		return flow.Value{}
	}
	sock.Def("connect connect_ex", connect)
	root.Def("socket.create_connection asyncio.open_connection ssl.create_connection", func(m *flow.Machine, c *flow.Call) flow.Value {
		host, port := address(m, c, c.Val(0, "address"))
		if c.Sym.Short() == "open_connection" {
			host, port = c.Val(0, "host"), c.Val(1, "port")
		}

		m.Emit(c, effect.Effect{Kind: effect.Connect, Target: host.Value(), Port: port.Value(), Flags: sweep(c, host, port)})

		v := flow.New(sock, host)
		v.Object().Port = port
		v.Taint, v.Origin = effect.TaintSocket, ""

		if c.Sym.Short() == "open_connection" {
			return flow.Items(v, v)
		}

		return v
	})
	sock.Def("bind", func(m *flow.Machine, c *flow.Call) flow.Value {
		host, port := address(m, c, c.Val(0, "address"))
		m.Emit(c, effect.Effect{Kind: effect.Listen, Target: host.Value(), Port: port.Value()})

		return flow.Value{}
	})
	root.Def("socket.create_server", func(m *flow.Machine, c *flow.Call) flow.Value {
		host, port := address(m, c, c.Val(0, "address"))
		m.Emit(c, effect.Effect{Kind: effect.Listen, Target: host.Value(), Port: port.Value()})

		v := flow.New(sock, flow.Value{Ref: "socket"})
		v.Taint = effect.TaintSocket

		return v
	})
	sock.Def("listen settimeout setsockopt close shutdown setblocking", quiet)
	sock.Def("accept", func(*flow.Machine, *flow.Call) flow.Value {
		v := flow.New(sock, flow.Value{Ref: "peer"})
		v.Taint = effect.TaintSocket

		return flow.Items(v, flow.Tainted(effect.TaintNetwork, ""))
	})
	sock.Def("recv recv_into recvfrom read readline readuntil recv_bytes recvmsg", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := flow.Tainted(effect.TaintNetwork, "")
		if c.Sym.Short() == "recvfrom" || c.Sym.Short() == "recvmsg" {
			return flow.Items(v, v)
		}

		return v
	})
	sock.Def("send sendall write sendto sendfile sendmsg", func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		e := effect.Effect{Kind: effect.Send, Target: m.ValueOf(o.Main, c.RecvNode), Data: m.Value(c, 0, "data"), Port: portOf(o)}

		if c.Sym.Short() == "sendto" {
			host, port := address(m, c, c.Val(len(c.Args)-1, "address"))
			e.Target, e.Port = host.Value(), port.Value()
		}

		m.Emit(c, e)

		return flow.Value{}
	})
	sock.Def("fileno makefile detach dup", func(_ *flow.Machine, c *flow.Call) flow.Value {
		if c.Sym.Short() == "makefile" {
			return c.Recv
		}

		return flow.Tainted(effect.TaintSocket, "")
	})
	sock.Def("__enter__", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Recv })
	// TLS around a socket is that socket.
	l.Methods["wrap_socket"] = func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "sock") }
	root.Def("ssl.wrap_socket", func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "sock") })
	root.At("ssl.create_default_context()").Def("wrap_socket", l.Methods["wrap_socket"])
	root.At("ssl.SSLContext()").Def("wrap_socket", l.Methods["wrap_socket"])
	root.Def("socket.gethostbyname socket.getaddrinfo socket.gethostbyname_ex dns.resolver.resolve dns.resolver.query "+
		"dns.resolver.Resolver().resolve dns.resolver.Resolver().query", func(m *flow.Machine, c *flow.Call) flow.Value {
		// A name that is looked up is data that leaves.
		v := m.Value(c, 0, "host")
		if v.Taint != 0 && !v.IsUnknown() {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: v, Data: v, Port: effect.Const("53")})
		}

		return flow.Value{Ref: "address"}
	})
	root.Def("socketserver.TCPServer socketserver.UDPServer socketserver.ThreadingTCPServer http.server.HTTPServer "+
		"http.server.ThreadingHTTPServer wsgiref.simple_server.make_server", func(m *flow.Machine, c *flow.Call) flow.Value {
		host, port := address(m, c, c.Val(0, "server_address"))
		m.Emit(c, effect.Effect{Kind: effect.Listen, Target: host.Value(), Port: port.Value()})

		return flow.Value{}
	})

	// What a server's handler is given comes from the network.
	for _, base := range []string{"http.server.BaseHTTPRequestHandler()", "http.server.SimpleHTTPRequestHandler()",
		"socketserver.BaseRequestHandler()", "socketserver.StreamRequestHandler()"} {
		h := root.At(base)
		h.DefGet("path headers rfile client_address", func(*flow.Machine, *flow.Call) flow.Value {
			return flow.Tainted(effect.TaintNetwork, "")
		})
		h.DefGet("request", func(*flow.Machine, *flow.Call) flow.Value {
			v := flow.New(sock, flow.Value{Ref: "peer"})
			v.Taint = effect.TaintSocket

			return v
		})
	}

	root.DefGet("flask.request bottle.request", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintNetwork, "")
	})
	root.Def("ipaddress.ip_network ipaddress.IPv4Network ipaddress.ip_network().hosts", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Value{Many: true}
	})
	defineHTTP(root)
}

// address splits a (host, port) pair.
func address(m *flow.Machine, c *flow.Call, v flow.Value) (host, port flow.Value) {
	if l := v.List(); v.Kind == flow.Array && len(l.Items) > 0 {
		host = l.Items[0]
		if len(l.Items) > 1 {
			port = l.Items[1]
		}

		if host.Kind == flow.Unknown && host.Ref == "" {
			host.Ref = m.Source(c.Node(0, "address"))
		}

		return host.First(), port.First()
	}

	return v, flow.Value{}
}

// manyTurns is how many hosts or ports in a row make a sweep.
const manyTurns = 5

// sweep says whether a connection goes over many hosts or ports.
func sweep(c *flow.Call, host, port flow.Value) effect.Flag {
	var f effect.Flag

	if host.Many {
		f |= effect.FlagManyHosts
	}

	if port.Many || c.Turns >= manyTurns && port.Kind == flow.Int {
		f |= effect.FlagManyPorts
	}

	return f
}

func portOf(o *flow.Object) effect.Value {
	if o.Port.Kind == flow.Unknown && o.Port.Taint == 0 {
		return effect.Value{}
	}

	return o.Port.Value()
}

// sendingVerbs send a body.
var sendingVerbs = map[string]bool{"post": true, "put": true, "patch": true, "POST": true, "PUT": true, "PATCH": true}

// defineHTTP defines HTTP clients. They are alike: a verb, a URL, and what is
// sent in keywords.
func defineHTTP(root *flow.Sym) {
	clients := strings.Fields("requests requests.Session() requests.session() httpx httpx.Client() httpx.AsyncClient() " +
		"aiohttp.ClientSession() cloudscraper.create_scraper() requests_futures.sessions.FuturesSession() requests_unixsocket.Session() requests_unixsocket niquests " +
		"urllib3 urllib3.PoolManager() urllib3.ProxyManager() treq grequests requests.api curl_cffi.requests " +
		"tls_client.Session() primp.Client() asks httplib2.Http() pycurl")

	for _, client := range clients {
		at := root.At(client)

		for _, verb := range []string{"get", "post", "put", "patch", "delete", "head", "options"} {
			at.Def(verb, func(m *flow.Machine, c *flow.Call) flow.Value {
				return request(m, c, verb, c.Val(0, "url"), c.Node(0, "url"), 1)
			})
		}

		at.Def("request stream urlopen send", func(m *flow.Machine, c *flow.Call) flow.Value {
			if strings.HasPrefix(client, "httplib2") {
				return request(m, c, c.Val(1, "method").Text, c.Val(0, "uri"), c.Node(0, "uri"), 1)
			}

			if c.Sym.Short() == "send" {
				return request(m, c, "POST", c.Val(0, "request"), c.Node(0, "request"), 1)
			}

			return request(m, c, c.Val(0, "method").Text, c.Val(1, "url"), c.Node(1, "url"), 2)
		})
		at.DefGet("headers", func(*flow.Machine, *flow.Call) flow.Value {
			return flow.Value{Kind: flow.Record, X: &flow.Table{}}
		})
	}

	root.Def("requests.Session requests.session httpx.Client httpx.AsyncClient aiohttp.ClientSession "+
		"urllib3.PoolManager cloudscraper.create_scraper", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return flow.New(c.Sym.Inst, flow.Value{})
	})

	root.Def("urllib.request.Request requests.Request", func(m *flow.Machine, c *flow.Call) flow.Value {
		at := 0
		if strings.HasPrefix(c.Sym.Name, "requests") {
			at = 1
		}

		v := flow.New(m.L.Root.At("urllib.request.Request()"), c.Val(at, "url"))
		o := v.Object()

		if data, ok := c.Arg(at+1, "data"); ok && data.Kind != flow.None {
			o.Set("data", data)
		}

		if json, ok := c.Arg(-1, "json"); ok {
			o.Set("data", json)
		}

		if h, ok := c.Arg(at+2, "headers"); ok {
			o.Set("headers", h)
		}

		return v
	})
	root.Def("urllib.request.Request().add_header", func(_ *flow.Machine, c *flow.Call) flow.Value {
		c.Recv.Object().Set("headers", c.Val(1, "val"))

		return flow.Value{}
	})
	root.Def("urllib.request.urlopen urllib.urlopen urllib.request.OpenerDirector().open urllib.request.build_opener().open",
		func(m *flow.Machine, c *flow.Call) flow.Value {
			return request(m, c, "get", c.Val(0, "url"), c.Node(0, "url"), 1)
		})
	root.Def("urllib.request.urlretrieve urllib.urlretrieve wget.download gdown.download "+
		"torch.hub.download_url_to_file", func(m *flow.Machine, c *flow.Call) flow.Value {
		url := m.Value(c, 0, "url")
		m.Emit(c, effect.Effect{Kind: effect.Receive, Target: url})

		data := effect.Unknown(effect.TaintDownload)
		data.Origin = url.Text

		path, ok := c.Arg(1, "filename")
		if !ok {
			path, ok = c.Arg(-1, "out")
		}

		if !ok {
			// The file is called what the URL ends with.
			path = flow.Text(url.Text[strings.LastIndexByte(url.Text, '/')+1:])
			if c.Sym.Short() == "urlretrieve" {
				path = m.Temporary(c, flow.Value{})
			}
		}

		node := c.Node(1, "filename")
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: m.ValueOf(path, node), Data: data})

		return flow.Items(path, flow.Value{})
	})

	for _, name := range strings.Fields("http.client.HTTPConnection http.client.HTTPSConnection") {
		root.Def(name, func(m *flow.Machine, c *flow.Call) flow.Value {
			v := flow.New(m.L.Root.At("http.client.HTTPConnection()"), c.Val(0, "host"))
			v.Object().Port = c.Val(1, "port")

			return v
		})
	}

	root.Def("http.client.HTTPConnection().request http.client.HTTPConnection().putrequest", func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()
		url := m.Operate('+', hostText(o.Main), c.Val(1, "url"), c.ID)

		return request(m, c, c.Val(0, "method").Text, url, c.Node(1, "url"), 2)
	})
	root.Def("http.client.HTTPConnection().send", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Send, Target: c.Recv.Object().Main.Value(), Data: m.Value(c, 0, "data")})

		return flow.Value{}
	})
	root.Def("http.client.HTTPConnection().getresponse", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintDownload, c.Recv.Object().Main.Text)
	})
}

func hostText(v flow.Value) flow.Value {
	if v.IsText() {
		return v
	}

	return flow.Value{Kind: flow.Str, Text: effect.HoleText, Taint: v.Taint, Origin: v.Origin, Ref: v.Ref}
}

// payload are the keywords by which a request carries data.
var payload = []string{"data", "json", "files", "params", "body", "content", "fields", "cookies", "headers", "auth"}

// request answers an HTTP request. What it carries is sent; what comes back is
// a download.
func request(m *flow.Machine, c *flow.Call, verb string, url flow.Value, node tree.ID, from int) flow.Value {
	var (
		parts []effect.Value
		body  bool
	)

	if o := url.Object(); url.Kind == flow.Instance {
		// A Request object.
		for _, name := range []string{"data", "headers"} {
			if v, ok := o.Attrs[name]; ok {
				e := v.Value()
				body = body || name == "data"

				if name == "data" || e.Taint != 0 {
					parts = append(parts, e)
				}
			}
		}

		url = o.Main
	}

	for i := from; i < len(c.Args); i++ {
		if c.Args[i].Kind != flow.None {
			parts = append(parts, m.ValueOf(c.Args[i], c.Nodes[i]))
			body = true
		}
	}

	for _, name := range payload {
		v, ok := c.Arg(-1, name)
		if !ok || v.Kind == flow.None {
			continue
		}

		e := m.ValueOf(v, c.Node(-1, name))

		switch name {
		case "headers", "auth", "cookies":
			// A key in a header is how one authenticates; files and the whole
			// environment are not.
			if !e.Has(effect.TaintFile | effect.TaintEnvAll | effect.TaintSecret | effect.TaintOutput) {
				continue
			}
		default:
			body = true
		}

		parts = append(parts, e)
	}

	to := m.ValueOf(url, node)

	// What the URL was built with is sent too.
	if to.Taint != 0 && !to.IsUnknown() {
		parts = append(parts, to)
	}

	if sendingVerbs[verb] || body || len(parts) > 0 {
		data := effect.Concat(parts...)
		if len(parts) == 0 {
			data = effect.Value{}
		}

		m.Emit(c, effect.Effect{Kind: effect.Send, Target: to, Data: data})
	}

	if verb != "head" {
		m.Emit(c, effect.Effect{Kind: effect.Receive, Target: to})
	}

	origin := to.Text
	if to.IsUnknown() {
		origin = to.Ref
	}

	return flow.Tainted(effect.TaintDownload, origin)
}
