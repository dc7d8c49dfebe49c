package redact

import "strings"

// minKnown is the length from which a known secret is masked: the text around a
// shorter one would become unreadable, and a word of five letters is no secret.
const minKnown = 6

// Masker replaces secrets by <secret:kind>, in text that leaves the house and in
// log lines. It is safe for concurrent use.
//
// What it hides from a guard could be what does the harm. So what is found by
// pattern is one word, never a statement: it holds no white space (save the lines
// of a private key), no quote, and no character by which a shell or a programming
// language ends a statement, substitutes or calls.
type Masker struct {
	known *Set
}

// NewMasker returns a Masker that knows these secrets besides the patterns. Unset
// ones and those shorter than 6 bytes are ignored.
func NewMasker(known ...Secret) *Masker { return &Masker{known: NewSet(false, known...)} }

func mark(kind string) string { return "<secret:" + kind + ">" }

// Mask returns text with its secrets masked. It takes time linear in the text.
func (m *Masker) Mask(text string) string {
	text = m.known.Replace(text)
	found := find(text)
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	done := 0
	for _, f := range found {
		b.WriteString(text[done:f.start])
		b.WriteString(mark(patterns[f.pattern].kind))
		done = f.end
	}
	b.WriteString(text[done:])
	return b.String()
}
