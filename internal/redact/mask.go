package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

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
	known *strings.Replacer // nil if there are none
}

// NewMasker returns a Masker that knows these secrets besides the patterns. Unset
// ones and those shorter than 6 bytes are ignored.
func NewMasker(known ...Secret) *Masker {
	var forms []string
	for _, s := range known {
		if value := s.Reveal(); len(value) >= minKnown {
			forms = append(forms, spellings(value)...)
		}
	}
	if len(forms) == 0 {
		return new(Masker)
	}
	// Where several match, the replacer takes the first given: the longest.
	slices.SortFunc(forms, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	forms = slices.Compact(forms)
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, mark("known"))
	}
	return &Masker{known: strings.NewReplacer(pairs...)}
}

// spellings are the forms in which a known secret turns up: plain, escaped for
// JSON (with and without HTML in mind) and for URLs, in hex and base64.
func spellings(value string) []string {
	all := []string{value, url.QueryEscape(value), url.PathEscape(value), hex.EncodeToString([]byte(value))}
	all = append(all, strings.ToUpper(all[3]))
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

func mark(kind string) string { return "<secret:" + kind + ">" }

// Mask returns text with its secrets masked. It takes time linear in the text.
func (m *Masker) Mask(text string) string {
	if m.known != nil {
		text = m.known.Replace(text)
	}
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
