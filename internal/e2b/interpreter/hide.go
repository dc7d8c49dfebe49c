package interpreter

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/internal/e2b/relay"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// pictures are the results that are base64 of bytes: a secret found in one by
// chance would spoil it.
var pictures = map[string]bool{"png": true, "jpeg": true, "pdf": true}

// hider takes secrets out of the strings of an execution's lines, and leaves all
// other bytes as they are. Lines may come in pieces, so that none has to be held
// whole.
type hider struct {
	set *redact.Set
	// printed are the texts of stdout and stderr, which go on from line to line.
	printed [relay.Stderr + 1]*redact.Stream
	observe func(to relay.Output, piece []byte)

	out     []byte
	changed bool

	// Where in a line the next byte is.
	to     relay.Output // of a line of output, 0 otherwise
	nested []byte       // the brackets that are open
	name   []byte       // the member whose value comes, of the outermost object
	naming bool         // a string would be a name
	text   *text        // the string that is open
}

// text is one JSON string on its way.
type text struct {
	stream *redact.Stream // nil for one that is left alone
	to     relay.Output   // set for what a program printed
	name   bool           // a member's name, of the outermost object
	escape []byte         // an escape that is not complete, as it is on the wire
	half   []byte         // an escape that is half a pair, as it is on the wire
}

// kept reports whether bytes of the text were read and not passed on.
func (t *text) kept() bool { return t != nil && len(t.escape)+len(t.half) > 0 }

func newHider(set *redact.Set, observe func(relay.Output, []byte)) *hider {
	h := &hider{set: set, observe: observe}
	for to := range h.printed {
		h.printed[to] = redact.NewStream(set)
	}
	return h
}

// begin starts a line.
func (h *hider) begin(kind lineKind, to relay.Output) {
	h.nested, h.name, h.naming, h.text, h.to = h.nested[:0], h.name[:0], false, nil, 0
	if kind == lineOutput {
		h.to = to
	}
}

// piece returns what passes in the place of a piece of the line, nil if it passes
// as it is. It is valid until the next call.
func (h *hider) piece(b []byte) []byte {
	h.out, h.changed = h.out[:0], h.text.kept()
	for i := 0; i < len(b); {
		if h.text != nil {
			i += h.inString(b[i:])
			continue
		}
		switch c := b[i]; c {
		case '"':
			h.open()
		case '{', '[':
			h.nested = append(h.nested, c)
			h.naming = c == '{'
		case '}', ']':
			if len(h.nested) > 0 {
				h.nested = h.nested[:len(h.nested)-1]
			}
		case ',':
			h.naming = len(h.nested) > 0 && h.nested[len(h.nested)-1] == '{'
		case ':':
			h.naming = false
		}
		h.out = append(h.out, b[i])
		i++
	}
	if !h.changed && !h.text.kept() {
		return nil
	}
	return h.out
}

// open starts a string.
func (h *hider) open() {
	outermost := len(h.nested) == 1
	h.text = &text{}
	switch {
	case h.naming && outermost:
		h.text.name = true
		h.name = h.name[:0]
	case outermost && pictures[string(h.name)]:
	case outermost && h.to != 0 && string(h.name) == "text":
		h.text.to, h.text.stream = h.to, h.printed[h.to]
	default:
		h.text.stream = redact.NewStream(h.set)
	}
}

// inString takes bytes of the string that is open, and reports how many.
func (h *hider) inString(b []byte) (n int) {
	t := h.text
	if len(t.escape) > 0 {
		t.escape = append(t.escape, b[0])
		h.unescape(t)
		return 1
	}
	if b[0] == '\\' {
		t.escape = append(t.escape, '\\')
		return 1
	}
	h.passHalf(t)
	for n < len(b) && b[n] != '"' && b[n] != '\\' {
		n++
	}
	if n > 0 {
		h.give(t, b[:n], b[:n])
		return n
	}
	if t.stream != nil && t.to == 0 {
		if rest := t.stream.End(); len(rest) > 0 {
			h.changed = true
			h.out = appendText(h.out, rest)
		}
	}
	h.text = nil
	h.out = append(h.out, '"')
	return 1
}

// unescape gives on the escape of a string once it is complete.
func (h *hider) unescape(t *text) {
	var r rune
	switch e := t.escape; {
	case len(e) == len(`\n`) && e[1] != 'u':
		r = unescaped(e[1])
	case len(e) < len(`\u0000`):
		return
	default:
		r = code(e)
	}
	written := t.escape
	switch low := utf16.IsSurrogate(r) && r >= 0xDC00; {
	case utf16.IsSurrogate(r) && !low:
		h.passHalf(t)
		t.half = append(t.half, t.escape...)
		t.escape = t.escape[:0]
		return
	case low && len(t.half) > 0:
		r, written = utf16.DecodeRune(code(t.half), r), append(t.half, t.escape...)
		t.half = nil
	default:
		h.passHalf(t)
	}
	var decoded [utf8.UTFMax]byte
	h.give(t, decoded[:utf8.EncodeRune(decoded[:], r)], written)
	t.escape = t.escape[:0]
}

// code is what an escape of the form \u0000 names.
func code(escape []byte) (r rune) {
	for _, c := range escape[len(`\u`):] {
		r = r<<4 | rune(hexValue(c))
	}
	return r
}

// passHalf passes on half a pair that no other half follows; it stands for nothing.
func (h *hider) passHalf(t *text) {
	h.out = append(h.out, t.half...)
	t.half = t.half[:0]
}

// give passes decoded text on, as it was written where nothing is hidden.
func (h *hider) give(t *text, decoded, written []byte) {
	if t.name {
		h.name = append(h.name, decoded...)
	}
	if t.stream == nil {
		h.out = append(h.out, written...)
		return
	}
	shown, changed := t.stream.Next(decoded)
	if t.to != 0 {
		h.observe(t.to, shown)
	}
	if !changed {
		h.out = append(h.out, written...)
		return
	}
	h.changed = true
	h.out = appendText(h.out, shown)
}

// rest are lines of what is held back of the output, when no more will come.
func (h *hider) rest() (lines []byte) {
	for to := relay.Stdout; to <= relay.Stderr; to++ {
		if held := h.printed[to].End(); len(held) > 0 {
			h.observe(to, held)
			lines = append(lines, `{"type": "`+[...]string{relay.Stdout: "stdout", relay.Stderr: "stderr"}[to]+`", "text": "`...)
			lines = append(appendText(lines, held), new(textScanner).closing()...)
		}
	}
	return lines
}

// unfinished is what is left of a line of output that is cut off inside its text.
func (h *hider) unfinished() (rest []byte) {
	if h.text == nil {
		return nil
	}
	if h.text.to != 0 {
		rest = appendText(rest, h.printed[h.text.to].End())
	}
	return append(append(rest, h.text.half...), h.text.escape...)
}

// appendText writes the content of a JSON string in ASCII, as the server does.
func appendText(b, content []byte) []byte {
	const digits = "0123456789abcdef"
	for len(content) > 0 {
		r, n := utf8.DecodeRune(content)
		content = content[n:]
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r >= ' ' && r < 0x7F:
			b = append(b, byte(r))
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				b = append(b, '\\', 'u', digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
			}
		}
	}
	return b
}
