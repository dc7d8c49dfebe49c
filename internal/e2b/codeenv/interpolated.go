package codeenv

import (
	"errors"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Interpolated returns an error if the pair could become code where E2B's code
// interpreter pastes it, unescaped, into the first cell of every context. The
// error is a clause without a full stop, and never holds the value.
//
// The templates (from the interpreter's source) are, with the kernels' own rules:
//
//	Python      os.environ['NAME'] = 'VALUE'       IPython splits cells at every Unicode line break
//	JavaScript  process.env['NAME'] = 'VALUE'
//	R           Sys.setenv(NAME = "VALUE")
//	Java        System.setProperty("NAME", "VALUE")
//	bash        export NAME='VALUE'                typed into an interactive bash: tab and escape are keys
//
// So a value is inert unless it holds a quote of either kind, a backslash, or a
// control character or line break; everything else, including spaces, "$", "!",
// "%" and letters of any script, stays inside the quotes in all five. A name is
// outside of quotes in R and bash, so it is letters, digits, "_", "." and "-".
func Interpolated(name, value string) error {
	if name == "" {
		return errors.New("a variable has no name")
	}
	for i := range len(name) {
		if c := name[i]; !isNameByte(c) || i == 0 && c == '-' {
			return fmt.Errorf("the name %s holds characters other than letters, digits and _", shorten(name))
		}
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("the value of %s is not valid UTF-8", shorten(name))
	}
	for _, r := range value {
		if what := breaks(r); what != "" {
			return fmt.Errorf("the value of %s holds %s", shorten(name), what)
		}
	}
	return nil
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-'
}

// breaks names what a character does to the source around it, "" for nothing.
func breaks(r rune) string {
	switch {
	case r == '\'':
		return "a single quote"
	case r == '"':
		return "a double quote"
	case r == '\\':
		return "a backslash"
	case r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
		return "a line break"
	case unicode.IsControl(r):
		return "a control character"
	default:
		return ""
	}
}

// shorten quotes a name for an error text.
func shorten(name string) string {
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	return strconv.QuoteToASCII(name)
}
