package interpreter

import (
	"bytes"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

// lineKind is what a line carries, as far as the filter cares.
type lineKind uint8

const (
	lineOther lineKind = iota
	lineStart
	lineOutput
	lineResult
	lineError
	lineEnd
)

// peekLine tells a line's kind without decoding it; of output also where it was
// written, and the text from behind its opening quote on. The server writes "type"
// first and "text" second.
func peekLine(line []byte) (kind lineKind, to relay.Output, text []byte) {
	rest, ok := expect(line, `{`, `"type"`, `:`, `"`)
	if !ok {
		return lineOther, 0, line
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return lineOther, 0, line
	}
	switch string(rest[:end]) {
	case "stdout", "stderr":
		to = relay.Stdout
		if string(rest[:end]) == "stderr" {
			to = relay.Stderr
		}
		if text, ok := expect(rest[end+1:], `,`, `"text"`, `:`, `"`); ok {
			return lineOutput, to, text
		}
		return lineOutput, to, rest[end+1:] // An unknown shape counts whole.
	case "result":
		return lineResult, 0, line
	case "error":
		return lineError, 0, line
	case "number_of_executions":
		return lineStart, 0, line
	case "end_of_execution":
		return lineEnd, 0, line
	default:
		return lineOther, 0, line
	}
}

// expect reads tokens with space between them.
func expect(b []byte, tokens ...string) ([]byte, bool) {
	for _, t := range tokens {
		b = bytes.TrimLeft(b, " \t")
		if len(b) < len(t) || string(b[:len(t)]) != t {
			return b, false
		}
		b = b[len(t):]
	}
	return b, true
}

// textScanner counts the bytes a JSON string's content decodes to, across
// pieces.
type textScanner struct {
	done   bool // the closing quote was seen
	escape int  // characters of the escape read so far, 0 outside of one
	code   int  // value of a \u escape so far

	// show gets what the text decodes to, if set; half is the first half of a
	// surrogate pair whose second has not come yet.
	show func([]byte)
	half rune
}

// scan counts one piece.
func (s *textScanner) scan(b []byte) int64 {
	var n int64
	i, quote := 0, -1 // quote is the next '"' at or behind i, or len(b).
	for i < len(b) && !s.done {
		if s.escape > 0 {
			n += s.escaped(b[i])
			i++
			continue
		}
		if quote < i {
			if quote = bytes.IndexByte(b[i:], '"'); quote < 0 {
				quote = len(b)
			} else {
				quote += i
			}
		}
		plain := bytes.IndexByte(b[i:quote], '\\')
		if plain < 0 {
			plain = quote - i
			s.done = quote < len(b)
		} else {
			s.escape, s.code = 1, 0
		}
		if s.show != nil && plain > 0 {
			s.half = 0 // half a pair stands for nothing
			s.show(b[i : i+plain])
		}
		n += int64(plain)
		i += plain + 1
	}
	return n
}

// escaped reads one character behind a backslash and returns what the escape
// decodes to once it is complete.
func (s *textScanner) escaped(c byte) int64 {
	if s.escape == 1 && c != 'u' {
		s.escape = 0
		s.showRune(unescaped(c))
		return 1
	}
	if s.escape > 1 {
		s.code = s.code<<4 | hexValue(c)
	}
	if s.escape++; s.escape < 6 {
		return 0
	}
	s.escape = 0
	s.showRune(rune(s.code))
	return utf8Len(s.code)
}

// showRune shows what an escape stands for; of a surrogate pair, both at once.
func (s *textScanner) showRune(r rune) {
	if s.show == nil {
		return
	}
	if s.half == 0 && utf16.IsSurrogate(r) && r < 0xDC00 {
		s.half = r
		return
	}
	if s.half != 0 {
		r, s.half = utf16.DecodeRune(s.half, r), 0
	}
	s.show(utf8.AppendRune(nil, r))
}

// unescaped is what the character behind a backslash stands for.
func unescaped(c byte) rune {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	default:
		return rune(c)
	}
}

// shownText is a textScanner for an observer; nil if there is none.
type shownText struct{ textScanner }

func (s *shownText) scan(b []byte) {
	if s != nil {
		s.textScanner.scan(b)
	}
}

// closing makes a whole line of one that stops inside its text.
func (s *textScanner) closing() []byte {
	var b []byte
	switch {
	case s.escape == 1:
		b = append(b, '\\') // Makes the lone backslash a backslash.
	case s.escape > 1:
		b = append(b, "0000"[:6-s.escape]...)
	}
	return append(b, `", "timestamp": "`+time.Now().UTC().Format(time.RFC3339Nano)+"\"}\n"...)
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	default:
		return int(c|0x20-'a'+10) & 15
	}
}

// utf8Len is the length of a \u escape in UTF-8; half a surrogate pair is half
// of the pair's four bytes.
func utf8Len(code int) int64 {
	switch {
	case code < 0x80:
		return 1
	case code < 0x800, code >= 0xD800 && code < 0xE000:
		return 2
	default:
		return 3
	}
}
