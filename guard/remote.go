package guard

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden are the code points that show nothing and can carry a text of their
// own, or reorder the text around them: tag characters, variation selectors
// beyond those that emoji use, zero-width spaces and joiners of words, and
// bidirectional controls. A model reads them; a person does not. Joiners (U+200C,
// U+200D) and U+FE0F stay: scripts and emoji need them.
var hidden = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x200B, Hi: 0x200B, Stride: 1},
		{Lo: 0x200E, Hi: 0x200F, Stride: 1},
		{Lo: 0x202A, Hi: 0x202E, Stride: 1},
		{Lo: 0x2060, Hi: 0x206F, Stride: 1},
		{Lo: 0xFE00, Hi: 0xFE0E, Stride: 1},
		{Lo: 0xFEFF, Hi: 0xFEFF, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0xE0000, Hi: 0xE007F, Stride: 1},
		{Lo: 0xE0100, Hi: 0xE01EF, Stride: 1},
	},
}

// visible removes hidden code points and spells bytes that are no UTF-8 as \xNN,
// which JSON would merge into one replacement character. It tells how many code
// points it removed.
func visible(s string) (string, int) {
	if isASCII(s) {
		return s, 0
	}
	removed := 0
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.Is(hidden, r):
			removed++
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String(), removed
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// private are the labels a remote guard is not given.
var private = map[string]bool{LabelSandbox: true, LabelClient: true, LabelRequest: true}

// leave returns the subject as a remote guard gets it, with secrets masked, and
// how many hidden characters were removed.
func leave(s Subject, mask func(string) string) (Subject, int) {
	var removed [2]int
	out := Subject{Kind: s.Kind, Language: s.Language}
	// Hidden characters go first: in the middle of a secret they would hide it
	// from the mask.
	out.Text, removed[0] = visible(s.Text)
	out.Target, removed[1] = visible(s.Target)
	out.Text, out.Target = mask(out.Text), mask(out.Target)
	out.Labels = make(map[string]string, len(s.Labels))
	for k, v := range s.Labels {
		if !private[k] {
			v, _ = visible(v)
			out.Labels[k] = mask(v)
		}
	}
	return out, removed[0] + removed[1]
}
