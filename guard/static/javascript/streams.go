package javascript

import (
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineStreams defines events and pipes, which carry data from one object to
// another.
func defineStreams(l *flow.Language) {
	on := func(m *flow.Machine, c *flow.Call) flow.Value {
		f := c.Val(1, "")
		if !f.First().Callable() {
			return c.Recv
		}

		// What an event carries comes from where its object does.
		data := flow.Tainted(c.Recv.Taint, c.Recv.Origin)
		if data.Taint.Any(effect.TaintSocket) {
			data.Taint = data.Taint&^effect.TaintSocket | effect.TaintNetwork
			data.Origin = ""
		}

		event := c.Val(0, "").Text

		switch {
		case event == "response":
			data = flow.New(m.L.Root.At("stream()"), flow.Value{})
			data.Taint, data.Origin = effect.TaintDownload, c.Recv.Origin
		case event == "connection" && c.Recv.Kind == flow.Instance:
			data = flow.New(m.L.Root.At("socket()"), flow.Value{Ref: "peer"})
			data.Taint = effect.TaintSocket
		}

		callLaterOn(m, c, c.Recv, f, data, data)

		return c.Recv
	}

	pipe := func(m *flow.Machine, c *flow.Call) flow.Value {
		connectStreams(m, c, c.Recv, c.Val(0, ""))

		return c.Val(0, "").From(c.Recv)
	}

	for _, name := range []string{"on", "once", "addListener", "addEventListener", "prependListener"} {
		l.Methods[name] = on

		for _, kind := range []string{"socket()", "stream()", "request()", "child()", "child.stdout()", "server()", "dgram()", "file()"} {
			l.Root.At(kind).Def(name, on)
		}
	}

	for _, kind := range []string{"socket()", "stream()", "child.stdout()", "file()"} {
		l.Root.At(kind).Def("pipe", pipe)
	}

	l.Methods["pipe"] = pipe
	l.Root.Def("stream.pipeline stream.promises.pipeline", func(m *flow.Machine, c *flow.Call) flow.Value {
		for i := 1; i < len(c.Args); i++ {
			if !c.Args[i].Callable() {
				connectStreams(m, c, c.Args[0], c.Args[i])
			}
		}

		return flow.Value{}
	})

	// What a response or stream is read as.
	for _, name := range []string{"text", "json", "arrayBuffer", "blob", "bytes", "toString", "read", "formData", "buffer"} {
		for _, kind := range []string{"stream()", "child.stdout()", "child()", "request()"} {
			l.Root.At(kind).Def(name, func(_ *flow.Machine, c *flow.Call) flow.Value {
				return flow.Tainted(c.Recv.Taint, c.Recv.Origin)
			})
		}
	}

	for _, name := range []string{"data", "body", "text", "content"} {
		if l.Root.At("stream()").Kid(name) == nil {
			l.Root.DefGet("stream()."+name, func(_ *flow.Machine, c *flow.Call) flow.Value {
				v := flow.New(c.Recv.Object().Sym, c.Recv.Object().Main)
				v.Taint, v.Origin = c.Recv.Taint, c.Recv.Origin

				return v
			})
		}
	}
}

// connectStreams reports what a pipe from one object to another does.
func connectStreams(m *flow.Machine, c *flow.Call, from, to flow.Value) {
	o := to.Object()
	data := flow.Tainted(from.Taint&^effect.TaintSocket, from.Origin)

	if from.Taint.Any(effect.TaintSocket) {
		data.Taint |= effect.TaintNetwork
	}

	if to.Kind != flow.Instance || o.Sym == nil {
		return
	}

	switch o.Sym.Name {
	case "child.stdin()":
		if from.Taint.Any(effect.TaintSocket | effect.TaintDownload) {
			// A program whose input is the network.
			m.Emit(c, effect.Effect{Kind: effect.Exec, Target: o.Main.Value(), Flags: effect.FlagNetIO})
		}

		feed(m, c, o.Main, data, c.ID)
	case "file()":
		m.Emit(c, effect.Effect{Kind: effect.Write, Target: o.Main.Value(), Data: data.Value()})
	case "socket()", "request()", "dgram()":
		if f := from.Object(); f != nil && f.Sym != nil && f.Sym.Name == "child.stdout()" {
			m.Emit(c, effect.Effect{Kind: effect.Exec, Target: f.Main.Value(), Flags: effect.FlagNetIO})
		}

		m.Emit(c, effect.Effect{Kind: effect.Send, Target: o.Main.Value(), Port: portOf(o), Data: data.Value()})
	}
}
