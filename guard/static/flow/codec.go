package flow

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// Decode undoes an encoding of a constant; ok is false if it cannot be undone.
func Decode(encoding, s string) (string, bool) {
	switch encoding {
	case "base64":
		return decodeBase64(s)
	case "hex":
		return decodeHex(s)
	case "base32":
		b, err := base32.StdEncoding.DecodeString(strings.ToUpper(strings.TrimSpace(s)))

		return string(b), err == nil
	case "base85":
		return decodeBase85(s)
	case "ascii85":
		b := make([]byte, 4*len(s)+4)
		s = strings.TrimSuffix(strings.TrimPrefix(s, "<~"), "~>")
		n, _, err := ascii85.Decode(b, []byte(s), true)

		return string(b[:n]), err == nil
	case "rot13":
		return Rot13(s), true
	case "url":
		u, err := url.PathUnescape(s)

		return u, err == nil
	case "zlib":
		r, err := zlib.NewReader(strings.NewReader(s))
		if err != nil {
			return inflate(flate.NewReader(strings.NewReader(s)))
		}

		return inflate(r)
	case "gzip":
		r, err := gzip.NewReader(strings.NewReader(s))
		if err != nil {
			return "", false
		}

		return inflate(r)
	case "bz2":
		return inflate(bzip2.NewReader(strings.NewReader(s)))
	}

	return "", false
}

// inflate reads at most what a value may hold.
func inflate(r io.Reader) (string, bool) {
	b, err := io.ReadAll(io.LimitReader(r, effect.MaxText+1))
	if len(b) > effect.MaxText {
		return "", false
	}

	return string(b), err == nil
}

func decodeBase64(s string) (string, bool) {
	// Decoders skip what is not in the alphabet.
	clean := make([]byte, 0, len(s))

	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', c == '+', c == '/':
			clean = append(clean, c)
		case c == '-':
			clean = append(clean, '+')
		case c == '_':
			clean = append(clean, '/')
		}
	}

	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}

	b, err := base64.RawStdEncoding.DecodeString(string(clean))

	return string(b), err == nil
}

func decodeHex(s string) (string, bool) {
	clean := make([]byte, 0, len(s))

	for i := range len(s) {
		switch s[i] {
		case ' ', '\n', '\t', '\r', ':', '-':
		default:
			clean = append(clean, s[i])
		}
	}

	b := make([]byte, len(clean)/2)
	n, err := hex.Decode(b, clean[:len(clean)&^1])

	return string(b[:n]), err == nil
}

const base85Alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

func decodeBase85(s string) (string, bool) {
	var out []byte

	for i := 0; i < len(s); i += 5 {
		chunk := s[i:min(i+5, len(s))]

		var n uint64

		for j := range 5 {
			d := 84
			if j < len(chunk) {
				d = strings.IndexByte(base85Alphabet, chunk[j])
			}

			if d < 0 {
				return "", false
			}

			n = n*85 + uint64(d)
		}

		if n > 1<<32-1 {
			return "", false
		}

		b := []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		out = append(out, b[:max(len(chunk)-1, 0)]...)
	}

	return string(out), true
}

// Rot13 turns letters by thirteen.
func Rot13(s string) string {
	b := []byte(s)

	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z':
			b[i] = 'a' + (c-'a'+13)%26
		case 'A' <= c && c <= 'Z':
			b[i] = 'A' + (c-'A'+13)%26
		}
	}

	return string(b)
}

// Escapes undoes the backslash escapes that C, Python, JavaScript, Java and R
// share. keep says what to do with an unknown one: true keeps the backslash.
// In bytes, \u and \N are not escapes and \x is a byte.
func Escapes(s string, keep, isBytes bool) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}

	b := make([]byte, 0, len(s))

	for {
		b = append(b, s[:i]...)
		s = s[i+1:]

		if s == "" {
			return string(append(b, '\\'))
		}

		c := s[0]
		s = s[1:]

		switch c {
		case '\n':
		case '\r':
			s = strings.TrimPrefix(s, "\n")
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case 'a':
			if keep {
				b = append(b, '\a')
			} else {
				b = append(b, 'a')
			}
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'v':
			b = append(b, '\v')
		case '\\', '\'', '"', '`':
			b = append(b, c)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, j := int(c-'0'), 0
			for j < 2 && j < len(s) && '0' <= s[j] && s[j] <= '7' {
				n = n*8 + int(s[j]-'0')
				j++
			}

			s = s[j:]
			b = appendCode(b, n, isBytes)
		case 'x':
			n, j := hexDigits(s, 2)
			if j == 0 {
				b = append(b, '\\', 'x')

				break
			}

			s = s[j:]
			b = appendCode(b, n, isBytes)
		case 'u', 'U':
			if isBytes {
				b = append(b, '\\', c)

				break
			}

			s = unicodeEscape(&b, s, c)
		default:
			if keep {
				b = append(b, '\\')
			}

			b = append(b, c)
		}

		i = strings.IndexByte(s, '\\')
		if i < 0 {
			return string(append(b, s...))
		}
	}
}

func unicodeEscape(b *[]byte, s string, c byte) string {
	if strings.HasPrefix(s, "{") {
		n, j := hexDigits(s[1:], 8)
		if j > 0 && strings.HasPrefix(s[1+j:], "}") {
			*b = utf8.AppendRune(*b, rune(n))

			return s[j+2:]
		}
	}

	width := 4
	if c == 'U' {
		width = 8
	}

	n, j := hexDigits(s, width)
	if j != width {
		*b = append(*b, '\\', c)

		return s
	}

	s = s[j:]
	r := rune(n)

	// A surrogate pair is one character.
	if utf16.IsSurrogate(r) && strings.HasPrefix(s, `\u`) {
		if n2, j2 := hexDigits(s[2:], 4); j2 == 4 {
			if both := utf16.DecodeRune(r, rune(n2)); both != utf8.RuneError {
				*b = utf8.AppendRune(*b, both)

				return s[6:]
			}
		}
	}

	*b = utf8.AppendRune(*b, r)

	return s
}

func hexDigits(s string, most int) (n, width int) {
	for width < most && width < len(s) {
		d, err := strconv.ParseUint(s[width:width+1], 16, 8)
		if err != nil {
			break
		}

		n = n*16 + int(d)
		width++
	}

	return n, width
}

func appendCode(b []byte, n int, isBytes bool) []byte {
	if isBytes {
		return append(b, byte(n))
	}

	return utf8.AppendRune(b, rune(n))
}

// DecodeUTF16 reads text in UTF-16.
func DecodeUTF16(s string, big bool) string {
	var units []uint16

	for i := 0; i+1 < len(s); i += 2 {
		a, b := uint16(s[i]), uint16(s[i+1])
		if big {
			a, b = b, a
		}

		units = append(units, a|b<<8)
	}

	return string(utf16.Decode(units))
}

// Latin1 reads bytes as one character each.
func Latin1(s string) string {
	if isASCII(s) {
		return s
	}

	var b bytes.Buffer
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}

	return b.String()
}

// Decoded undoes an encoding of v, reports it, and gives the result; kind is
// the kind of the result.
func (m *Machine) Decoded(c *Call, encoding string, v Value, kind Kind) Value {
	if encoding == "url" && !v.IsConst() {
		return v.Forget() // Every web client does so, and hides nothing.
	}

	out := Value{Taint: v.Taint | effect.TaintDecoded, Origin: v.Origin, Built: true}

	t, origin := v.Sources()
	out.Taint |= t
	out.Origin = joinOrigin(out.Origin, origin)

	if v.IsConst() && m.work(len(v.Text)*2) {
		if s, ok := Decode(encoding, v.Text); ok && len(s) <= effect.MaxText {
			out.Kind, out.Text = kind, s
			if kind == Str && !utf8.ValidString(s) {
				out.Text = Latin1(s)
			}

			m.work(len(s))
		} else if ok {
			m.Limited(c.ID)
		}
	}

	m.Emit(c, effect.Effect{Kind: effect.Decode, Target: effect.Const(encoding), Data: out.Value()})

	return out
}
