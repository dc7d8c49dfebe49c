package javascript

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// defineNetwork defines sockets, HTTP clients and servers.
func defineNetwork(l *flow.Language) {
	root, b := l.Root, l.Builtins

	socket := root.At("socket()")
	connect := func(m *flow.Machine, c *flow.Call) flow.Value {
		host, port := endpoint(c)
		if host.Kind == flow.Unknown && host.Ref == "" && host.Taint == 0 && !host.Many && port.Kind == flow.Int {
			host = flow.Text("localhost") // The default.
		}

		m.Emit(c, effect.Effect{Kind: effect.Connect, Target: host.Value(), Port: port.Value(), Flags: sweep(host, port)})

		v := c.Recv

		o := v.Object()
		if o == nil || v.Kind != flow.Instance {
			v = flow.New(socket, host)
			v.Taint, v.Origin = effect.TaintSocket, ""
			o = v.Object()
		}

		o.Main, o.Port = host, port

		if n := len(c.Args); n > 0 {
			callLaterOn(m, c, v, c.Args[n-1])
		}

		return v
	}
	root.Def("net.connect net.createConnection tls.connect socket().connect", connect)
	root.Def("net.Socket tls.TLSSocket net.Stream", func(_ *flow.Machine, c *flow.Call) flow.Value {
		if v := c.Val(0, ""); v.Kind == flow.Instance {
			return v // TLS around a socket is that socket.
		}

		v := flow.New(socket, flow.Value{Ref: "socket"})
		v.Taint = effect.TaintSocket

		return v
	})
	socket.Def("write end send", func(m *flow.Machine, c *flow.Call) flow.Value {
		o := c.Recv.Object()

		if len(c.Args) > 0 && !c.Args[0].Callable() {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: m.ValueOf(o.Main, c.RecvNode), Port: portOf(o), Data: m.Value(c, 0, "")})
		}

		return flow.Value{}
	})
	socket.Def("setEncoding setTimeout setKeepAlive destroy unref resume pause", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Recv
	})
	root.Def("dgram.createSocket", func(m *flow.Machine, c *flow.Call) flow.Value {
		v := flow.New(m.L.Root.At("dgram()"), flow.Value{Ref: "socket"})
		v.Taint = effect.TaintSocket

		return v
	})
	root.Def("dgram().send", func(m *flow.Machine, c *flow.Call) flow.Value {
		// send(msg, port, host) or send(msg, offset, length, port, host).
		host, port := c.Val(2, ""), c.Val(1, "")
		if len(c.Args) >= 5 {
			host, port = c.Val(4, ""), c.Val(3, "")
		}

		m.Emit(c, effect.Effect{Kind: effect.Send, Target: host.Value(), Port: port.Value(), Data: m.Value(c, 0, "")})

		return flow.Value{}
	})
	root.Def("dgram().bind", listen)
	root.Def("net.createServer net.Server tls.createServer http.createServer https.createServer http2.createServer http.Server", func(m *flow.Machine, c *flow.Call) flow.Value {
		if strings.HasPrefix(c.Sym.Name, "http") {
			req := flow.Tainted(effect.TaintNetwork, "")
			callback(m, c, req, flow.Value{Ref: "response"})
		} else {
			peer := flow.New(socket, flow.Value{Ref: "peer"})
			peer.Taint = effect.TaintSocket
			callback(m, c, peer)
		}

		return flow.New(m.L.Root.At("server()"), flow.Value{})
	})
	root.Def("server().listen", listen)
	root.Def("express().listen fastify().listen koa().listen", listen)

	for _, verb := range strings.Fields("get post put delete patch all use") {
		root.Def("express()."+verb+" express.Router()."+verb+" fastify()."+verb, func(m *flow.Machine, c *flow.Call) flow.Value {
			for _, a := range c.Args {
				m.CallValue(a, c.ID, flow.Tainted(effect.TaintNetwork, ""), flow.Value{Ref: "response"}, flow.Value{Ref: "next"})
			}

			return c.Recv
		})
	}

	root.Def("dns.lookup dns.resolve dns.resolve4 dns.resolveTxt dns.resolveAny dns.Resolver().resolve dns.promises.resolve", func(m *flow.Machine, c *flow.Call) flow.Value {
		if v := m.Value(c, 0, ""); v.Taint != 0 && !v.IsUnknown() {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: v, Data: v, Port: effect.Const("53")})
		}

		v := flow.Value{Ref: "address"}
		if strings.HasSuffix(c.Sym.Short(), "Txt") {
			v = flow.Tainted(effect.TaintDownload, c.Val(0, "").Text)
		}

		callback(m, c, flow.Value{Kind: flow.None}, v)

		return v
	})

	// WebSockets.
	ws := func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Connect, Target: m.Value(c, 0, "")})

		v := flow.New(socket, c.Val(0, ""))
		v.Taint, v.Origin = effect.TaintSocket, ""

		return v
	}
	b.Def("WebSocket EventSource", ws)
	root.Def("ws ws.WebSocket socket.io-client socket.io-client.io websocket.w3cwebsocket", ws)
	root.Link("socket.io-client", root.At("ws"))
	socket.Def("emit", socket.Kid("send").Call)

	defineHTTP(l)
}

// sweep says whether a connection goes over many hosts or ports.
func sweep(host, port flow.Value) effect.Flag {
	var f effect.Flag

	if host.Many {
		f |= effect.FlagManyHosts
	}

	if port.Many {
		f |= effect.FlagManyPorts
	}

	return f
}

func listen(m *flow.Machine, c *flow.Call) flow.Value {
	host, port := endpoint(c)
	if host.Kind == flow.Unknown && host.Ref == "" {
		host = flow.Text("")
	}

	m.Emit(c, effect.Effect{Kind: effect.Listen, Target: host.Value(), Port: port.Value()})
	callback(m, c)

	return c.Recv
}

// endpoint is the host and port of connect(port, host) or connect({host,
// port}).
func endpoint(c *flow.Call) (host, port flow.Value) {
	if h, ok := option(c, "host"); ok {
		host = h
	} else if h, ok := option(c, "hostname"); ok {
		host = h
	}

	if p, ok := option(c, "port"); ok {
		port = p
	}

	if c.Val(0, "").Kind == flow.Record {
		return host.First(), port.First()
	}

	port = c.Val(0, "")
	if h := c.Val(1, ""); h.IsText() || h.Kind == flow.Unknown && len(c.Args) > 1 {
		host = h
	}

	if port.IsText() && strings.ContainsAny(port.Text, "/") {
		return port, flow.Value{} // A Unix socket's path.
	}

	return host.First(), port.First()
}

func portOf(o *flow.Object) effect.Value {
	if o.Port.Kind == flow.Unknown && o.Port.Taint == 0 && o.Port.Ref == "" {
		return effect.Value{}
	}

	return o.Port.Value()
}

var verbs = strings.Fields("get post put patch delete del head options")

// defineHTTP defines HTTP clients.
func defineHTTP(l *flow.Language) {
	root, b := l.Root, l.Builtins

	for _, module := range []string{"http", "https", "http2", "follow-redirects.http", "follow-redirects.https"} {
		scheme := "http://"
		if strings.Contains(module, "https") {
			scheme = "https://"
		}

		root.Def(module+".request "+module+".get", func(m *flow.Machine, c *flow.Call) flow.Value {
			url := urlOf(m, c, c.Val(0, ""), scheme)
			to := m.ValueOf(url, c.Node(0, ""))

			if to.Taint != 0 && !to.IsUnknown() {
				m.Emit(c, effect.Effect{Kind: effect.Send, Target: to, Data: to})
			}

			m.Emit(c, effect.Effect{Kind: effect.Receive, Target: to})
			headers(m, c, to)

			response := flow.New(m.L.Root.At("stream()"), url)
			response.Taint, response.Origin = effect.TaintDownload, to.Text
			callback(m, c, response)

			req := flow.New(m.L.Root.At("request()"), url)
			req.Taint, req.Origin = effect.TaintDownload, to.Text

			return req
		})
	}

	root.Def("request().write request().end request().send", func(m *flow.Machine, c *flow.Call) flow.Value {
		if len(c.Args) > 0 && !c.Args[0].Callable() {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: m.ValueOf(c.Recv.Object().Main, c.RecvNode), Data: m.Value(c, 0, "")})
		}

		return c.Recv
	})
	root.Def("request().set request().setHeader request().type request().attach request().field request().query", func(m *flow.Machine, c *flow.Call) flow.Value {
		last := len(c.Args) - 1
		if t, _ := c.Sources(); t.Any(effect.TaintFile|effect.TaintEnvAll|effect.TaintSecret|effect.TaintOutput) && last >= 0 {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: c.Recv.Object().Main.Value(), Data: m.Value(c, last, "")})
		}

		return c.Recv
	})

	b.Def("fetch", func(m *flow.Machine, c *flow.Call) flow.Value { return send(m, c, c.Val(0, ""), c.Node(0, ""), 1, "") })
	root.Def("node-fetch cross-fetch isomorphic-fetch undici.fetch undici.request axios axios.request got request needle "+
		"superagent ky phin bent axios.create() axios.default axios.create().request got.stream make-fetch-happen "+
		"ofetch.ofetch node-fetch.default", func(m *flow.Machine, c *flow.Call) flow.Value {
		return send(m, c, c.Val(0, ""), c.Node(0, ""), 1, "")
	})

	for _, client := range strings.Fields("axios axios.create() got request needle superagent ky phin undici") {
		for _, verb := range verbs {
			root.Def(client+"."+verb, func(m *flow.Machine, c *flow.Call) flow.Value {
				v := send(m, c, c.Val(0, ""), c.Node(0, ""), 1, verb)

				if client == "superagent" || client == "request" {
					// What is chained sends: superagent.post(url).send(data).
					r := flow.New(m.L.Root.At("request()"), urlOf(m, c, c.Val(0, ""), "http://"))
					r.Taint, r.Origin = v.Taint, v.Origin

					return r
				}

				return v
			})
		}
	}

	root.At("axios.create()")
	b.Def("axios axios.get axios.post axios.put axios.request $.get $.post $.ajax $.getJSON jQuery.post jQuery.get "+
		"jQuery.ajax", func(m *flow.Machine, c *flow.Call) flow.Value {
		verb := ""
		if strings.HasSuffix(c.Sym.Name, "post") {
			verb = "post"
		}

		return send(m, c, c.Val(0, ""), c.Node(0, ""), 1, verb)
	})
	b.Def("navigator.sendBeacon", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{Kind: effect.Send, Target: m.Value(c, 0, ""), Data: m.Value(c, 1, "")})

		return flow.Value{}
	})
	b.Def("XMLHttpRequest().open", func(m *flow.Machine, c *flow.Call) flow.Value {
		c.Recv.Object().Main = c.Val(1, "")

		return flow.Value{}
	})
	b.Def("XMLHttpRequest().send", func(m *flow.Machine, c *flow.Call) flow.Value {
		to := c.Recv.Object().Main.Value()
		if len(c.Args) > 0 {
			m.Emit(c, effect.Effect{Kind: effect.Send, Target: to, Data: m.Value(c, 0, "")})
		}

		m.Emit(c, effect.Effect{Kind: effect.Receive, Target: to})

		return flow.Value{}
	})
	b.DefGet("XMLHttpRequest().responseText XMLHttpRequest().response", func(_ *flow.Machine, c *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintDownload, c.Recv.Object().Main.Text)
	})
	b.DefGet("document.cookie localStorage sessionStorage", func(*flow.Machine, *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintSecret, "browser storage")
	})

	root.Def("ssh2.Client().exec node-ssh.NodeSSH().execCommand", func(m *flow.Machine, c *flow.Call) flow.Value {
		m.Emit(c, effect.Effect{
			Kind: effect.Exec, Target: effect.Const("ssh"), Args: []effect.Value{effect.Unknown(0), m.Value(c, 0, "")},
			Flags: effect.FlagRemote,
		})

		return flow.Tainted(effect.TaintNetwork, "")
	})
}

// urlOf is the URL of a request: text, or put together from options.
func urlOf(m *flow.Machine, c *flow.Call, v flow.Value, scheme string) flow.Value {
	t := v.Table()
	if v.Kind != flow.Record {
		return v
	}

	for _, key := range []string{"url", "uri", "href"} {
		if u, ok := t.Values[key]; ok {
			return u.First()
		}
	}

	if path, ok := t.Values["socketPath"]; ok {
		return m.Operate('+', flow.Text("unix:"), path, c.ID)
	}

	host, ok := t.Values["hostname"]
	if !ok {
		host = t.Values["host"]
	}

	if p, ok := t.Values["protocol"]; ok && p.IsConst() {
		scheme = p.Text + "//"
	}

	url := m.Operate('+', flow.Text(scheme), host.First(), c.ID)
	if path, ok := t.Values["path"]; ok {
		url = m.Operate('+', url, path.First(), c.ID)
	}

	return url
}

// headers reports what is sent in headers, if it is more than a key.
func headers(m *flow.Machine, c *flow.Call, to effect.Value) {
	v, ok := option(c, "headers")
	if !ok {
		return
	}

	if t, _ := v.Sources(); t.Any(effect.TaintFile | effect.TaintEnvAll | effect.TaintSecret | effect.TaintOutput) {
		m.Emit(c, effect.Effect{Kind: effect.Send, Target: to, Data: v.Value()})
	}
}

// bodies are the options by which a request carries data.
var bodies = []string{"body", "data", "json", "form", "params", "searchParams", "formData", "qs", "query"}

// send answers a request with everything in its arguments. What it carries is
// sent; what comes back is a download.
func send(m *flow.Machine, c *flow.Call, target flow.Value, node tree.ID, from int, verb string) flow.Value {
	url := urlOf(m, c, target, "http://")
	to := m.ValueOf(url, node)

	if to.Ref == "" && !to.IsConst() {
		to.Ref = m.Source(node)
	}

	var (
		parts []effect.Value
		body  bool
	)

	for i := range c.Args {
		v := c.Args[i]

		t := v.Table()
		if v.Kind == flow.Record {
			direct := i >= from && (verb == "post" || verb == "put" || verb == "patch") && i == from

			for _, name := range bodies {
				if w, ok := t.Values[name]; ok && !direct {
					parts = append(parts, w.Value())
					body = true
				}
			}

			if direct {
				parts = append(parts, v.Value())
				body = true
			}

			continue
		}

		if i >= from && !v.Callable() && v.Kind != flow.None && i == from && verb != "" && verb != "get" {
			parts = append(parts, m.ValueOf(v, c.Nodes[i]))
			body = true
		}
	}

	if to.Taint != 0 && !to.IsUnknown() {
		parts = append(parts, to)
	}

	method, _ := option(c, "method")
	if body || len(parts) > 0 || strings.EqualFold(method.Text, "post") || strings.EqualFold(method.Text, "put") {
		var data effect.Value
		if len(parts) > 0 {
			data = effect.Concat(parts...)
		}

		m.Emit(c, effect.Effect{Kind: effect.Send, Target: to, Data: data})
	}

	headers(m, c, to)
	m.Emit(c, effect.Effect{Kind: effect.Receive, Target: to})

	origin := to.Text
	if to.IsUnknown() {
		origin = to.Ref
	}

	v := flow.New(m.L.Root.At("stream()"), url)
	v.Taint, v.Origin = effect.TaintDownload, origin
	callback(m, c, flow.Value{Kind: flow.None}, v, v)

	return v
}
