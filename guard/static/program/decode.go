package program

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// decoder turns an encoding back when its flags say so, and encodes otherwise.
func decoder(kind string, decode func(string) (string, bool), encode func(string) string, short, flags string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, " wrap ")

		v := m.input(c, o.pos)
		decoding := flags == ""

		for f := range strings.FieldsSeq(flags) {
			decoding = decoding || o.has(f)
		}

		if !decoding {
			if v.IsConst() && encode != nil {
				return withText(v, encode(v.Text)+"\n").With(effect.TaintEncoded)
			}

			return opaque(v).With(effect.TaintEncoded)
		}

		out := opaque(v)
		if v.IsConst() && decode != nil {
			if text, ok := decode(v.Text); ok {
				out.Text = text
			}
		}

		out.Taint |= effect.TaintDecoded
		m.add(c, effect.Effect{Kind: effect.Decode, Target: effect.Const(kind), Data: out})

		return out
	}
}

func decodeBase64(s string) (string, bool) {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '+', r == '/':
			return r
		case r == '-':
			return '+'
		case r == '_':
			return '/'
		}

		return -1
	}, s)

	b, err := base64.RawStdEncoding.DecodeString(s[:len(s)/4*4+min(len(s)%4, 3)])
	if err != nil {
		if b, err = base64.RawStdEncoding.DecodeString(s[:len(s)/4*4]); err != nil {
			return "", false
		}
	}

	return string(b), true
}

func encodeBase64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func decodeBase32(s string) (string, bool) {
	s = strings.TrimRight(strings.Join(strings.Fields(s), ""), "=")
	b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(s)

	return string(b), err == nil
}

func decodeHex(s string) (string, bool) {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'f', r >= 'A' && r <= 'F':
			return r
		}

		return -1
	}, strings.ReplaceAll(s, "0x", ""))
	b, err := hex.DecodeString(s[:len(s)/2*2])

	return string(b), err == nil
}

// xxd dumps, or with -r turns a dump back.
func xxd(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "cglosn", "")
	v := m.input(c, o.pos)

	if o.has("r", "revert") {
		out := opaque(v).With(effect.TaintDecoded)

		if v.IsConst() {
			if text, ok := decodeHex(v.Text); ok {
				out.Text = text
			}
		}

		m.add(c, effect.Effect{Kind: effect.Decode, Target: effect.Const("hex"), Data: out})

		return out
	}

	if v.IsConst() && o.has("p", "ps", "plain") {
		return withText(v, hex.EncodeToString([]byte(v.Text))+"\n")
	}

	return opaque(v)
}

// opensslModel decodes, encrypts, connects.
func opensslModel(m *Machine, c *Call) effect.Value {
	if len(c.Args) == 0 {
		return effect.Unknown(0)
	}

	var in effect.Value = c.Stdin

	out := effect.Value{}
	decode, host := false, effect.Value{}

	for i, a := range c.Args {
		switch a.Text {
		case "-d", "-decrypt":
			decode = true
		case "-in":
			if i+1 < len(c.Args) {
				in = m.Read(c.Args[i+1], c.Span, c.Flags, "openssl")
			}
		case "-out":
			if i+1 < len(c.Args) {
				out = c.Args[i+1]
			}
		case "-connect":
			if i+1 < len(c.Args) {
				host = c.Args[i+1]
			}
		}
	}

	res := opaque(in)

	switch sub := c.Args[0].Text; {
	case sub == "s_client":
		m.connect(c, host, effect.Value{})

		if c.Piped {
			m.add(c, effect.Effect{Kind: effect.Send, Target: host, Data: c.Stdin})
		}

		return effect.Unknown(0).From(effect.TaintNetwork, host.Text)
	case (sub == "base64" || sub == "enc") && decode:
		if text, ok := decodeBase64(in.Text); ok && in.IsConst() && (sub == "base64" || hasWord(c.Args, "-base64") || hasWord(c.Args, "-a")) {
			res.Text = text
		}

		res.Taint |= effect.TaintDecoded
		m.add(c, effect.Effect{Kind: effect.Decode, Target: effect.Const(sub), Data: res})
	case sub == "base64" && in.IsConst():
		res.Text = encodeBase64(in.Text)
	case sub == "rand":
		res = effect.Unknown(effect.TaintRandom)
	case sub == "genrsa" || sub == "req" || sub == "x509" || sub == "version" || sub == "passwd":
		res = effect.Unknown(0)
	}

	if !out.IsEmpty() {
		m.Write(out, res, c.Span, c.Flags, "openssl")

		return effect.Unknown(0)
	}

	return res
}

func hasWord(args []effect.Value, word string) bool {
	for _, a := range args {
		if a.Text == word {
			return true
		}
	}

	return false
}
