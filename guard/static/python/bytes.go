package python

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

func makeBytes(m *flow.Machine, c *flow.Call) flow.Value {
	v := c.Val(0, "source")

	switch v.Kind {
	case flow.Bytes:
		return v
	case flow.Str:
		return encodeText(v, c.Val(1, "encoding").Text)
	case flow.Int:
		return m.Operate('*', flow.Value{Kind: flow.Bytes, Text: "\x00"}, v, c.ID)
	case flow.Array:
		var s []byte

		out := flow.Value{Kind: flow.Bytes, Taint: effect.TaintDecoded, Built: true}

		for _, it := range v.List().Items {
			if it.Kind != flow.Int {
				return v.Forget()
			}

			s = append(s, byte(it.Int))
			out.Taint |= it.Taint
		}

		if v.List().Open {
			return v.Forget()
		}

		out.Text = string(s)

		return out
	}

	return v.Forget()
}

// encodeText is text as bytes.
func encodeText(v flow.Value, encoding string) flow.Value {
	if !v.IsText() {
		return v.Forget()
	}

	if v.Kind == flow.Str {
		if strings.Contains(v.Text, effect.HoleText) {
			return v // Partly known text stays text, or what is known would be lost.
		}

		switch strings.ToLower(strings.ReplaceAll(encoding, "_", "-")) {
		case "latin1", "latin-1", "iso-8859-1", "l1", "cp1252":
			b := make([]byte, 0, len(v.Text))
			for _, r := range v.Text {
				b = append(b, byte(r))
			}

			v.Text = string(b)
		case "rot13", "rot-13":
			v.Text = flow.Rot13(v.Text)
			v.Taint |= effect.TaintDecoded

			return v
		}

		v.Kind = flow.Bytes
	}

	return v
}

// decodeText is bytes as text, in an encoding of characters or another one.
func decodeText(m *flow.Machine, c *flow.Call, v, encoding flow.Value) flow.Value {
	name := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(encoding.Text))
	if name == "" || !encoding.IsText() {
		name = "utf8"
	}

	switch name {
	case "rot13":
		return m.Decoded(c, "rot13", v, flow.Str)
	case "hex", "hexcodec", "base16":
		return m.Decoded(c, "hex", v, flow.Bytes)
	case "base64", "base64codec":
		return m.Decoded(c, "base64", v, flow.Bytes)
	case "zlib", "zip", "zlibcodec":
		return m.Decoded(c, "zlib", v, flow.Bytes)
	case "bz2", "bz2codec":
		return m.Decoded(c, "bz2", v, flow.Bytes)
	}

	if !v.IsConst() {
		return v
	}

	switch name {
	case "utf16", "utf16le", "u16":
		v.Text = flow.DecodeUTF16(strings.TrimPrefix(v.Text, "\xff\xfe"), false)
	case "utf16be":
		v.Text = flow.DecodeUTF16(v.Text, true)
	case "unicodeescape", "rawunicodeescape", "stringescape":
		v.Text = flow.Escapes(flow.Latin1(v.Text), true, false)
		v.Taint |= effect.TaintDecoded
	case "cp037", "cp500", "cp1026", "cp1140", "ebcdic", "ibm037", "ibm1026":
		v.Text = ebcdic(v.Text, name)
		v.Taint |= effect.TaintDecoded
	case "latin1", "iso88591", "l1", "cp1252", "cp437", "charmap":
		v.Text = flow.Latin1(v.Text)
	default:
		if !utf8.ValidString(v.Text) {
			v.Text = flow.Latin1(v.Text)
		}
	}

	v.Kind = flow.Str

	return v
}

// turkish are the characters in which code page 1026 differs from 037 and that
// code is written with.
var turkish = map[byte]rune{
	0x48: '{', 0x68: '[', 0x8c: '}', 0x8d: '`', 0xac: ']', 0xad: '$', 0xae: '@', 0xcc: '~', 0xdc: '\\', 0xec: '#', 0xfc: '"',
}

// ebcdic reads text in a code page that no Linux system uses otherwise.
func ebcdic(s, page string) string {
	var b strings.Builder

	for i := range len(s) {
		r := charmap.CodePage037.DecodeByte(s[i])
		if t, ok := turkish[s[i]]; ok && strings.HasSuffix(page, "1026") {
			r = t
		}

		b.WriteRune(r)
	}

	return b.String()
}
