package static

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// normalised is a text in the form that is judged first, and in another form
// that is judged besides where characters hide something.
type normalised struct {
	text    string
	other   string
	changes []string
}

// normalise makes text readable for front ends. The first form has the same
// length, byte for byte, so that spans fit: invalid UTF-8 and the runes the
// guard uses itself become "?" or blanks. The second form, if any, is without
// characters nobody sees and with compatibility forms folded.
func normalise(text string) normalised {
	n := normalised{text: text}

	if strings.IndexByte(text, 0) >= 0 {
		// A NUL ends nothing in a script: bash drops it.
		n.text = strings.ReplaceAll(n.text, "\x00", " ")
		n.other = strings.ReplaceAll(text, "\x00", "")
		n.changes = append(n.changes, "nul")
	}

	if isASCII(text) {
		return n
	}

	if !utf8.ValidString(n.text) {
		n.text = replaceInvalid(n.text)
		n.changes = append(n.changes, "invalid_utf8")
	}

	if strings.Contains(n.text, "\uF8FE") || strings.Contains(n.text, effect.HoleText) {
		n.text = strings.NewReplacer(effect.HoleText, "???", "\uF8FE", "???").Replace(n.text)
	}

	stripped, kinds := strip(n.text)
	n.changes = append(n.changes, kinds...)

	if folded := norm.NFKC.String(stripped); folded != stripped {
		// Python folds identifiers; a shell does not. The folded form is judged
		// besides the other.
		n.changes = append(n.changes, "nfkc")
		stripped = folded
	}

	if stripped != n.text {
		n.other = stripped
	}

	return n
}

func isASCII(s string) bool {
	for len(s) >= 8 {
		if s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7] >= utf8.RuneSelf {
			return false
		}

		s = s[8:]
	}

	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}

	return true
}

func replaceInvalid(s string) string {
	b := []byte(s)

	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size <= 1 {
			b[i] = '?'
			size = 1
		}

		i += size
	}

	return string(b)
}

// strip drops what nobody sees: zero-width characters, bidirectional controls,
// tag characters, variation selectors, soft hyphens.
func strip(s string) (out string, kinds []string) {
	var zero, bidi, tag bool

	out = strings.Map(func(r rune) rune {
		switch {
		case r < 0xAD:
			return r
		case r == 0xAD, r >= 0x200B && r <= 0x200D, r == 0x2060, r == 0xFEFF, r == 0x180E, r >= 0x2061 && r <= 0x2064:
			zero = true

			return -1
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x200E, r == 0x200F, r == 0x061C:
			bidi = true

			return -1
		case r >= 0xE0000 && r <= 0xE007F:
			tag = true

			return -1
		case r >= 0xE0100 && r <= 0xE01EF:
			zero = true

			return -1
		}

		return r
	}, s)

	if zero {
		kinds = append(kinds, "zero_width")
	}

	if bidi {
		kinds = append(kinds, "bidi")
	}

	if tag {
		kinds = append(kinds, "tag_characters")
	}

	return out, kinds
}
