package emulator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The code interpreter is a Python server, and reads JSON as Python does:
// UTF-8, UTF-16 and UTF-32 with or without a byte order mark, NaN and
// Infinity, and of a key given twice the last. This reader is as lax, so that
// tests can show that a gateway in front is not.

// errEncoding means that the bytes are no text.
var errEncoding = errors.New("undecodable bytes")

// pySyntaxError is json.JSONDecodeError.
type pySyntaxError struct {
	message string
	doc     string
	pos     int // in characters
}

func (e *pySyntaxError) Error() string {
	line, col := e.place()
	return fmt.Sprintf("%s: line %d column %d (char %d)", e.message, line, col, e.pos)
}

func (e *pySyntaxError) place() (line, col int) {
	before := string([]rune(e.doc)[:e.pos])
	return strings.Count(before, "\n") + 1, e.pos - strings.LastIndexByte(before, '\n')
}

// pyText decodes as json.detect_encoding does.
func pyText(b []byte) (string, error) {
	at := func(i int) bool { return i < len(b) && b[i] != 0 }
	switch {
	case hasPrefix(b, 0xff, 0xfe, 0, 0):
		return utf32Text(b[4:], binary.LittleEndian)
	case hasPrefix(b, 0, 0, 0xfe, 0xff):
		return utf32Text(b[4:], binary.BigEndian)
	case hasPrefix(b, 0xff, 0xfe):
		return utf16Text(b[2:], binary.LittleEndian)
	case hasPrefix(b, 0xfe, 0xff):
		return utf16Text(b[2:], binary.BigEndian)
	case hasPrefix(b, 0xef, 0xbb, 0xbf):
		return utf8Text(b[3:])
	case len(b) >= 4 && !at(0) && at(1):
		return utf16Text(b, binary.BigEndian)
	case len(b) >= 4 && !at(0):
		return utf32Text(b, binary.BigEndian)
	case len(b) >= 4 && !at(1) && (at(2) || at(3)):
		return utf16Text(b, binary.LittleEndian)
	case len(b) >= 4 && !at(1):
		return utf32Text(b, binary.LittleEndian)
	case len(b) == 2 && !at(0):
		return utf16Text(b, binary.BigEndian)
	case len(b) == 2 && !at(1):
		return utf16Text(b, binary.LittleEndian)
	}
	return utf8Text(b)
}

func hasPrefix(b []byte, prefix ...byte) bool {
	return strings.HasPrefix(string(b), string(prefix))
}

func utf8Text(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", errEncoding
	}
	return string(b), nil
}

func utf16Text(b []byte, order binary.ByteOrder) (string, error) {
	if len(b)%2 != 0 {
		return "", errEncoding
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

func utf32Text(b []byte, order binary.ByteOrder) (string, error) {
	if len(b)%4 != 0 {
		return "", errEncoding
	}
	var s strings.Builder
	for i := 0; i < len(b); i += 4 {
		c := rune(order.Uint32(b[i:])) // ValidRune refuses what overflows.
		if !utf8.ValidRune(c) {
			return "", errEncoding
		}
		s.WriteRune(c)
	}
	return s.String(), nil
}

// loneSurrogate stands in a decoded string for half a surrogate pair, which Go
// strings cannot hold.
const loneSurrogate = "\x00lone surrogate\x00"

// pyLoads is json.loads: objects become map[string]any, numbers float64.
func pyLoads(b []byte) (any, error) {
	text, err := pyText(b)
	if err != nil {
		return nil, err
	}
	p := &pyParser{text: text}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.i < len(p.text) {
		return nil, p.fail("Extra data", p.i)
	}
	return v, nil
}

type pyParser struct {
	text string
	i    int
}

func (p *pyParser) fail(message string, at int) error {
	return &pySyntaxError{message: message, doc: p.text, pos: utf8.RuneCountInString(p.text[:at])}
}

func (p *pyParser) space() {
	for p.i < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.i]) >= 0 {
		p.i++
	}
}

func (p *pyParser) next(c byte) bool {
	if p.i < len(p.text) && p.text[p.i] == c {
		p.i++
		return true
	}
	return false
}

var pyConstants = []struct {
	word  string
	value any
}{
	{"null", nil}, {"true", true}, {"false", false}, {"NaN", "nan"}, {"Infinity", "inf"}, {"-Infinity", "-inf"},
}

const pyMaxDepth = 900

func (p *pyParser) value(depth int) (any, error) {
	if depth > pyMaxDepth {
		return nil, errEncoding // Python's RecursionError is the same answer.
	}
	switch {
	case p.next('"'):
		return p.string()
	case p.next('{'):
		return p.object(depth)
	case p.next('['):
		return p.array(depth)
	}
	for _, c := range pyConstants {
		if strings.HasPrefix(p.text[p.i:], c.word) {
			p.i += len(c.word)
			return c.value, nil
		}
	}
	start := p.i
	for p.i < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[p.i]) >= 0 {
		p.i++
	}
	n, err := strconv.ParseFloat(p.text[start:p.i], 64)
	if err != nil {
		return nil, p.fail("Expecting value", start)
	}
	return n, nil
}

func (p *pyParser) object(depth int) (any, error) {
	out := make(map[string]any)
	if p.space(); p.next('}') {
		return out, nil
	}
	for {
		p.space()
		if !p.next('"') {
			return nil, p.fail("Expecting property name enclosed in double quotes", p.i)
		}
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		if p.space(); !p.next(':') {
			return nil, p.fail("Expecting ':' delimiter", p.i)
		}
		p.space()
		if out[key], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		p.space()
		if p.next('}') {
			return out, nil
		}
		if !p.next(',') {
			return nil, p.fail("Expecting ',' delimiter", p.i)
		}
	}
}

func (p *pyParser) array(depth int) (any, error) {
	out := []any{}
	if p.space(); p.next(']') {
		return out, nil
	}
	for {
		p.space()
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		p.space()
		if p.next(']') {
			return out, nil
		}
		if !p.next(',') {
			return nil, p.fail("Expecting ',' delimiter", p.i)
		}
	}
}

var pyEscapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *pyParser) string() (string, error) {
	start := p.i - 1
	var s strings.Builder
	for p.i < len(p.text) {
		c := p.text[p.i]
		switch {
		case c == '"':
			p.i++
			return s.String(), nil
		case c < ' ':
			return "", p.fail("Invalid control character at", p.i)
		case c != '\\':
			s.WriteByte(c)
			p.i++
			continue
		}
		if p.i++; p.i >= len(p.text) {
			break
		}
		c = p.text[p.i]
		if c != 'u' {
			plain, ok := pyEscapes[c]
			if !ok {
				return "", p.fail("Invalid \\escape", p.i-1)
			}
			s.WriteByte(plain)
			p.i++
			continue
		}
		unit, err := p.unit()
		if err != nil {
			return "", err
		}
		if utf16.IsSurrogate(unit) {
			pair := rune(utf8.RuneError)
			if rest := p.i; strings.HasPrefix(p.text[rest:], `\u`) {
				p.i++
				second, err := p.unit()
				if pair = utf16.DecodeRune(unit, second); err != nil || pair == utf8.RuneError {
					p.i = rest
					pair = utf8.RuneError
				}
			}
			if pair == utf8.RuneError {
				s.WriteString(loneSurrogate)
				continue
			}
			unit = pair
		}
		s.WriteRune(unit)
	}
	return "", p.fail("Unterminated string starting at", start)
}

// unit reads "uXXXX".
func (p *pyParser) unit() (rune, error) {
	if p.i+5 > len(p.text) {
		return 0, p.fail("Invalid \\uXXXX escape", p.i)
	}
	n, err := strconv.ParseUint(p.text[p.i+1:p.i+5], 16, 16)
	if err != nil {
		return 0, p.fail("Invalid \\uXXXX escape", p.i)
	}
	p.i += 5
	return rune(n), nil
}

// pyStyle spells valid JSON as Python's json.dumps does: a space after colons
// and commas, and nothing but ASCII.
func pyStyle(b []byte) []byte {
	out := make([]byte, 0, len(b)+len(b)/8)
	inString := false
	for i := 0; i < len(b); {
		c := b[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(b[i:])
			i += size
			if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
				out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			continue
		}
		out = append(out, c)
		i++
		switch {
		case inString && c == '\\':
			out = append(out, b[i])
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == ':' || c == ','):
			out = append(out, ' ')
		}
	}
	return out
}
