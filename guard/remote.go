package guard

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden reports whether a code point shows nothing: those that Unicode lets a
// renderer ignore, such as tag characters, variation selectors, zero-width spaces,
// soft hyphens and bidirectional controls. They can carry a whole text that a
// model reads and a person does not. The joiners and the selector that scripts and
// emoji need stay.
func hidden(r rune) bool {
	switch {
	case r == 0x200C, r == 0x200D, r == 0xFE0F:
		return false
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	default:
		return unicode.Is(unicode.Cf, r) && !unicode.In(r, unicode.Prepended_Concatenation_Mark, shownFormat)
	}
}

// shownFormat are format characters that do show: interlinear annotations and the
// joiners of hieroglyphs.
var shownFormat = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0xFFF9, Hi: 0xFFFB, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x13430, Hi: 0x1343F, Stride: 1}},
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
		case hidden(r):
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
