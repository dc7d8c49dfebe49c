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

	out, decoded []byte // out is never nil
	changed      bool
	single       *redact.Stream // of strings that stand alone

	// Where in a line the next byte is.
	to     relay.Output // of a line of output, 0 otherwise
	nested []byte       // the brackets that are open
	name   []byte       // the member whose value comes, of the outermost object
	naming bool         // a string would be a name
	text   text         // the string that is open
}

// text is one JSON string on its way.
type text struct {
	open   bool
	stream *redact.Stream // nil for one that is left alone
	to     relay.Output   // set for what a program printed
	name   bool           // a member's name, of the outermost object
	// kept is an escape, or half a pair of them, that is not complete: it was read
	// and not passed on.
	kept []byte
}

func newHider(set *redact.Set, observe func(relay.Output, []byte)) *hider {
	h := &hider{set: set, observe: observe, out: []byte{}, single: redact.NewStream(set)}
	for to := range h.printed {
		h.printed[to] = redact.NewStream(set)
	}
	return h
}

// begin starts a line.
func (h *hider) begin(kind lineKind, to relay.Output) {
	h.nested, h.name, h.naming, h.to = h.nested[:0], h.name[:0], false, 0
	h.text = text{kept: h.text.kept[:0]}
	if kind == lineOutput {
		h.to = to
	}
}

// piece returns what passes in the place of a piece of the line, nil if it passes
// as it is. It is valid until the next call.
func (h *hider) piece(b []byte) []byte {
	h.out, h.changed = h.out[:0], len(h.text.kept) > 0
	for i := 0; i < len(b); {
		if h.text.open {
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
	if !h.changed {
		return nil
	}
	return h.out
}

// open starts a string.
func (h *hider) open() {
	outermost := len(h.nested) == 1
	t := text{open: true, kept: h.text.kept[:0]}
	switch {
	case h.naming && outermost:
		t.name = true
		h.name = h.name[:0]
	case outermost && pictures[string(h.name)]:
	case outermost && h.to != 0 && string(h.name) == "text":
		t.to, t.stream = h.to, h.printed[h.to]
	default:
		t.stream = h.single
	}
	h.text = t
}

// inString takes bytes of the string that is open, and reports how many.
func (h *hider) inString(b []byte) int {
	t := &h.text
	before := len(t.kept)
	if before > 0 {
		t.kept = append(t.kept, b...)
		b = t.kept
	}
	n := h.decode(b)
	h.give(b[:n])
	if n == len(b) || b[n] != '"' { // The piece ends in the string, or in an escape of it.
		h.changed = h.changed || n < len(b)
		t.kept = append(t.kept[:0], b[n:]...)
		return len(b) - before
	}
	if t.stream == h.single {
		if rest := t.stream.End(); len(rest) > 0 {
			h.changed = true
			h.out = appendText(h.out, rest)
		}
	}
	t.open, t.kept = false, t.kept[:0]
	h.out = append(h.out, '"')
	return n + 1 - before
}

// decode sets decoded to what the content of a string stands for, and reports how
// much of it that is: up to the closing quote, or to an escape that is not complete.
func (h *hider) decode(b []byte) (n int) {
	h.decoded = h.decoded[:0]
	for n < len(b) {
		switch c := b[n]; {
		case c == '"':
			return n
		case c != '\\':
			h.decoded = append(h.decoded, c)
			n++
			continue
		case n+1 == len(b):
			return n
		case b[n+1] != 'u':
			h.decoded = utf8.AppendRune(h.decoded, unescaped(b[n+1]))
			n += 2
			continue
		}
		r, more := codeAt(b[n:])
		if more {
			return n
		}
		size := codeEscape
		if utf16.IsSurrogate(r) && r < 0xDC00 {
			low, more := codeAt(b[n+codeEscape:])
			if more {
				return n
			}
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				r, size = pair, 2*codeEscape
			}
		}
		h.decoded = utf8.AppendRune(h.decoded, r) // Half a pair stands for nothing: U+FFFD.
		n += size
	}
	return n
}

const codeEscape = len(`\u0000`)

// codeAt is what the escape \u0000 at the start of b names, 0 if there is none; more
// says that b must go on to tell.
func codeAt(b []byte) (r rune, more bool) {
	for i := range codeEscape {
		switch {
		case i == len(b):
			return 0, true
		case i < 2 && b[i] != `\u`[i]:
			return 0, false
		case i >= 2:
			r = r<<4 | rune(hexValue(b[i]))
		}
	}
	return r, false
}

// give passes the decoded text on, as it was written where nothing is hidden.
func (h *hider) give(written []byte) {
	t := &h.text
	if t.name {
		h.name = append(h.name, h.decoded...)
	}
	if t.stream == nil {
		h.out = append(h.out, written...)
		return
	}
	shown, changed := t.stream.Next(h.decoded)
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
	if h.text.to != 0 {
		rest = appendText(rest, h.printed[h.text.to].End())
	}
	return append(rest, h.text.kept...)
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
