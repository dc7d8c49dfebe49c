package scripting

import (
	"strings"
)

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '%'
}

func contains(names []string, full, last string) bool {
	for _, n := range names {
		if n == full || n == last || strings.IndexByte(n, '.') >= 0 && strings.HasSuffix(full, n) {
			return true
		}
	}

	return false
}

// literal reads a quoted string and returns its text, escapes resolved.
func literal(s string, i int) (string, int) {
	q := s[i]

	var b strings.Builder

	for j := i + 1; j < len(s); j++ {
		switch {
		case s[j] == '\\' && j+1 < len(s):
			j++

			switch {
			case q == '\'' && s[j] != '\'' && s[j] != '\\':
				b.WriteByte('\\')
				b.WriteByte(s[j])
			case s[j] == 'n':
				b.WriteByte('\n')
			case s[j] == 't':
				b.WriteByte('\t')
			case s[j] == 'x' && j+2 < len(s):
				if v, ok := hexByte(s[j+1 : j+3]); ok {
					b.WriteByte(v)
					j += 2
				}
			default:
				b.WriteByte(s[j])
			}
		case s[j] == q:
			return b.String(), j + 1
		default:
			b.WriteByte(s[j])
		}
	}

	return b.String(), len(s)
}

func hexByte(s string) (byte, bool) {
	var v byte

	for i := range 2 {
		c := s[i] | 0x20

		switch {
		case s[i] >= '0' && s[i] <= '9':
			v = v<<4 | (s[i] - '0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | (c - 'a' + 10)
		default:
			return 0, false
		}
	}

	return v, true
}

// bracketed reads {…} with nesting.
func bracketed(s string, i int) (string, int) {
	depth := 0

	for j := i; j < len(s); j++ {
		switch s[j] {
		case '{':
			depth++
		case '}':
			depth--

			if depth == 0 {
				return s[i+1 : j], j + 1
			}
		}
	}

	return s[i+1:], len(s)
}
