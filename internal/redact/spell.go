package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// spellings are the forms in which a known secret turns up: plain, in lines as a
// terminal ends them, escaped for JSON (with and without HTML in mind) and for
// URLs, in hex, in base64, and backwards.
func spellings(value string) []string {
	hexed := hex.EncodeToString([]byte(value))
	all := []string{
		value, strings.ReplaceAll(value, "\n", "\r\n"), reversed(value), hexed, strings.ToUpper(hexed),
	}
	for _, escaped := range []string{url.QueryEscape(value), url.PathEscape(value)} {
		all = append(all, escaped, lowerEscapes(escaped))
	}
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if enc.Encode(value) == nil {
		all = append(all, unquoted(strings.TrimSuffix(plain.String(), "\n")))
	}
	if escaped, err := json.Marshal(value); err == nil {
		all = append(all, unquoted(string(escaped)))
	}
	return append(all, base64Forms(value)...)
}

// lowerEscapes writes the hexadecimal digits of URL escapes in lower case, as some
// libraries do.
func lowerEscapes(escaped string) string {
	out := []byte(escaped)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i:], strings.ToLower(escaped[i:i+3]))
		}
	}
	return string(out)
}

func reversed(value string) string {
	runes := []rune(value)
	slices.Reverse(runes)
	return string(runes)
}

func unquoted(literal string) string { return literal[1 : len(literal)-1] }

// base64Forms are the runs of base64 that any text holding the value contains:
// one for each of the three places the value can start at, without the characters
// that its neighbours have a part in.
func base64Forms(value string) []string {
	var all []string
	for before := range 3 {
		padded := make([]byte, before, before+len(value))
		padded = append(padded, value...)
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(padded)
			first := (before*8 + 5) / 6 // The first character that is the value's alone.
			last := len(padded) * 8 / 6 // One past the last.
			if last-first >= minKnown {
				all = append(all, text[first:last])
			}
		}
	}
	return all
}
