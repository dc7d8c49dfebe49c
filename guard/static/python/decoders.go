package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// decoders are the functions that undo an encoding: their first argument.
var decoders = []struct{ names, encoding string }{
	{"base64.b64decode base64.urlsafe_b64decode base64.standard_b64decode base64.decodebytes base64.decodestring " +
		"binascii.a2b_base64 pybase64.b64decode", "base64"},
	{"base64.b32decode", "base32"},
	{"base64.b16decode binascii.unhexlify binascii.a2b_hex", "hex"},
	{"base64.b85decode", "base85"},
	{"base64.a85decode", "ascii85"},
	{"zlib.decompress", "zlib"},
	{"gzip.decompress", "gzip"},
	{"bz2.decompress", "bz2"},
	{"lzma.decompress brotli.decompress zstandard.decompress lz4.frame.decompress", "lzma"},
	{"urllib.parse.unquote urllib.unquote urllib.parse.unquote_plus urllib.parse.unquote_to_bytes", "url"},
}

func defineDecoders(l *flow.Language) {
	root := l.Root

	for _, d := range decoders {
		kind := flow.Bytes
		if d.encoding == "url" {
			kind = flow.Str
		}

		root.Def(d.names, func(m *flow.Machine, c *flow.Call) flow.Value {
			return m.Decoded(c, d.encoding, c.Val(0, "s"), kind)
		})
	}

	root.Def("codecs.decode codecs.encode", func(m *flow.Machine, c *flow.Call) flow.Value {
		v, encoding := c.Val(0, "obj"), c.Val(1, "encoding")
		if c.Sym.Short() == "encode" && !strings.Contains(encoding.Text, "rot") {
			return encodeText(v, encoding.Text)
		}

		return decodeText(m, c, v, encoding)
	})
	root.Def("codecs.getdecoder", func(m *flow.Machine, c *flow.Call) flow.Value {
		f := flow.Value{Kind: flow.Symbol, X: m.L.Root.At("codecs.decode")}

		return flow.Value{Kind: flow.Method, X: &flow.Bound{Callee: &f, Kw: []flow.KwArg{{Name: "encoding", Value: c.Val(0, "")}}}}
	})
	root.Def("base64.b64encode base64.urlsafe_b64encode base64.encodebytes base64.b32encode base64.b16encode "+
		"base64.b85encode binascii.hexlify zlib.compress gzip.compress bz2.compress json.dumps json.loads "+
		"urllib.parse.quote urllib.parse.quote_plus urllib.parse.urlencode pprint.pformat copy.copy copy.deepcopy",
		func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "").Forget() })
	root.Def("textwrap.dedent inspect.cleandoc html.unescape textwrap.indent shlex.quote pipes.quote ast.literal_eval",
		func(_ *flow.Machine, c *flow.Call) flow.Value { return c.Val(0, "") })
	root.Def("shlex.split", func(_ *flow.Machine, c *flow.Call) flow.Value {
		v := c.Val(0, "")
		if !v.IsText() {
			return v.Forget()
		}

		return texts(v, shellWords(v.Text))
	})
	root.Def("shlex.join", func(m *flow.Machine, c *flow.Call) flow.Value {
		items, ok := m.Elements(c.Val(0, ""))
		if !ok {
			return c.Result()
		}

		return m.Join(flow.Text(""), flow.Text(" "), items)
	})

	// Ciphers, in all their spellings: what comes out was hidden.
	l.Methods["decrypt"] = func(m *flow.Machine, c *flow.Call) flow.Value {
		out := c.Result().With(effect.TaintDecoded)
		m.Emit(c, effect.Effect{Kind: effect.Decode, Target: effect.Const("cipher"), Data: out.Value()})

		return out
	}
	l.Methods["decompress"] = func(_ *flow.Machine, c *flow.Call) flow.Value {
		return c.Result().With(effect.TaintDecoded)
	}

	// Text hidden in pictures.
	hidden := func(_ *flow.Machine, c *flow.Call) flow.Value {
		return flow.Tainted(effect.TaintDecoded, "").From(c.Result())
	}
	l.Methods["reveal"] = hidden
	root.Def("stegano.lsb.reveal stegano.exifHeader.reveal steganography.steganography.Steganography.decode "+
		"stepic.decode judyb.lsb.reveal cryptosteganography.CryptoSteganography().retrieve", hidden)

	root.Def("pickle.loads pickle.load pickle.Unpickler pandas.read_pickle shelve.open marshal.loads marshal.load "+
		"yaml.load yaml.unsafe_load yaml.full_load yaml.load_all jsonpickle.decode torch.load numpy.load",
		deserialize)
}

// deserialize sees data become objects. Only what can run code is reported.
func deserialize(m *flow.Machine, c *flow.Call) flow.Value {
	v := c.Val(0, "")
	out := v.Forget().With(effect.TaintPickle)
	lang := "pickle"

	switch name := c.Sym.Name; {
	case strings.HasPrefix(name, "marshal"):
		lang = "marshal"

		out.Taint |= effect.TaintDecoded
	case strings.HasPrefix(name, "yaml"):
		lang = "yaml"

		if loader := m.Source(c.Node(1, "Loader")); strings.Contains(loader, "Safe") || strings.Contains(loader, "Base") {
			return v.Forget()
		}
	case name == "numpy.load", name == "torch.load":
		safe, ok := c.Arg(-1, "allow_pickle")
		if name == "torch.load" {
			safe, ok = c.Arg(-1, "weights_only")
		}

		if !ok || (safe.Int != 0) == (name == "torch.load") {
			return v.Forget()
		}
	}

	m.Emit(c, effect.Effect{Kind: effect.Eval, Lang: lang, Data: m.Value(c, 0, "")})

	if v.IsConst() && lang == "pickle" {
		if program, arg, ok := pickledCall(v.Text); ok {
			switch program {
			case "system", "popen", "getoutput", "run", "Popen", "call", "check_output", "check_call", "spawn":
				m.Embed(c, "bash", flow.Text(arg), 0)
			case "eval", "exec":
				m.Embed(c, "python", flow.Text(arg), 0)
			}
		}
	}

	return out
}

// pickledCall finds the function of a dangerous module that a pickle calls,
// and the first text it is given.
func pickledCall(s string) (function, arg string, ok bool) {
	for _, module := range []string{"posix", "os", "subprocess", "builtins", "__builtin__", "commands", "pty", "nt"} {
		at := -1

		if i := strings.Index(s, "c"+module+"\n"); i >= 0 {
			function, _, _ = strings.Cut(s[i+len(module)+2:], "\n")
			at = i + len(module) + 2 + len(function)
		} else if i := strings.Index(s, "\x8c"+string(rune(len(module)))+module); i >= 0 {
			rest := s[i+2+len(module):]

			j := strings.Index(rest, "\x8c")
			if j < 0 || j+2 > len(rest) {
				continue
			}

			n := int(rest[j+1])
			if j+2+n > len(rest) {
				continue
			}

			function = rest[j+2 : j+2+n]
			at = i + 2 + len(module) + j + 2 + n
		}

		if at < 0 {
			continue
		}

		return function, pickledText(s[at:]), true
	}

	return "", "", false
}

// pickledText is the first text in a pickle's opcodes.
func pickledText(s string) string {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case 'S', 'V':
			if line, _, found := strings.Cut(s[i+1:], "\n"); found {
				return strings.Trim(line, `'"`)
			}
		case 'X':
			if i+5 <= len(s) {
				n := int(s[i+1]) | int(s[i+2])<<8
				if i+5+n <= len(s) {
					return s[i+5 : i+5+n]
				}
			}
		case 0x8c, 'U':
			if i+2 <= len(s) {
				n := int(s[i+1])
				if i+2+n <= len(s) {
					return s[i+2 : i+2+n]
				}
			}
		}
	}

	return ""
}

// shellWords splits as shlex does, quotes and backslashes removed.
func shellWords(s string) []string {
	var (
		words []string
		b     strings.Builder
		quote byte
		in    bool
	)

	for i := 0; i < len(s); i++ {
		c := s[i]

		switch {
		case quote != 0:
			switch {
			case c == quote:
				quote = 0
			case c == '\\' && quote == '"' && i+1 < len(s):
				i++
				b.WriteByte(s[i])
			default:
				b.WriteByte(c)
			}
		case c == '"' || c == '\'':
			quote, in = c, true
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])

			in = true
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				words = append(words, b.String())
				b.Reset()

				in = false
			}
		default:
			b.WriteByte(c)

			in = true
		}
	}

	if in {
		words = append(words, b.String())
	}

	return words
}
