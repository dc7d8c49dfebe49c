package guard

import "unicode/utf8"

// A guard with a window is given the whole text in chunks that overlap, so that
// nothing that matters is seen only in halves.
const (
	// minWindow is the least window a Link can name, minChunk what must be left of
	// it for the text: a chunk is to be well above the overlap.
	minWindow, minChunk = 2048, 1024
	// minOverlap is how much of a chunk, in bytes, the next one repeats at least.
	minOverlap = 256
	// wideRune is what a rune outside ASCII takes of a window, in bytes. Windows
	// of models are counted in tokens, of about four bytes of English; a rune
	// outside ASCII may well be a token of its own.
	wideRune = 4
)

// cost is how much of a window the byte or rune at the start of s takes, and how
// long it is. s is not empty.
func cost(s string) (units, size int) {
	if s[0] < utf8.RuneSelf {
		return 1, 1
	}
	_, size = utf8.DecodeRuneInString(s)
	return wideRune, size
}

// costOf is what the whole of s takes of a window.
func costOf(s string) int {
	total := 0
	for len(s) > 0 {
		units, size := cost(s)
		total += units
		s = s[size:]
	}
	return total
}

// chunks cuts text into spans that fit the window, overlap by an eighth and by
// 256 bytes at least (only bytes that are no UTF-8 make chunks so short that it is
// half of one), never cut a rune in two and together hold all of text. A text
// that fits is one span.
func chunks(text string, window int) []Span {
	var spans []Span
	start := 0
	for {
		end, used := start, 0
		for end < len(text) {
			units, size := cost(text[end:])
			if used+units > window {
				break
			}
			used += units
			end += size
		}
		spans = append(spans, Span{start, end})
		if end == len(text) {
			return spans
		}
		size := end - start
		start = runeStart(text, end-min(max(minOverlap, size/8), size/2))
	}
}

// runeStart moves i back to the start of the rune it lies in, if it lies in one.
func runeStart(text string, i int) int {
	for back := 0; back < utf8.UTFMax && back <= i; back++ {
		if !utf8.RuneStart(text[i-back]) {
			continue
		}
		if _, size := utf8.DecodeRuneInString(text[i-back:]); size > back {
			return i - back
		}
		break
	}
	return i
}
