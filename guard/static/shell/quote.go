package shell

import (
	"strings"
)

// unquote drops the backslashes of unquoted text.
func unquote(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}

	var b strings.Builder

	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}

		b.WriteByte(s[i])
	}

	return b.String()
}

// unquoteDouble drops the backslashes that double quotes resolve.
func unquoteDouble(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}

	var b strings.Builder

	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++

				continue
			}
		}

		b.WriteByte(s[i])
	}

	return b.String()
}
