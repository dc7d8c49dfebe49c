package pty

import "unicode/utf8"

// key is one key as a line editor reads it: a character, a control character, or
// an escape sequence.
type key struct {
	seq string // its bytes
	r   rune   // the character, if it is a single one; -1 for bytes that are none
}

// maxSequence bounds an escape sequence; what is longer is no key of a keyboard.
const maxSequence = 32

// decoder cuts keystrokes into keys. A key may be split over messages.
type decoder struct{ pending []byte }

// next takes one byte and returns the keys that are complete with it.
//
// A control character inside a sequence ends it and is a key of its own: line
// editors give up the sequence and obey the character.
func (d *decoder) next(c byte) []key {
	if len(d.pending) > 0 && (c < 0x20 || c == 0x7f) && (signals(c) || !(len(d.pending) == 1 && d.pending[0] == esc)) {
		broken := d.take()
		return append([]key{broken}, d.next(c)...)
	}
	d.pending = append(d.pending, c)
	p := d.pending
	switch {
	case p[0] == esc:
		if len(p) == 1 || len(p) == 2 && (c == '[' || c == 'O' || c == esc) {
			return nil
		}
		if p[1] == esc && len(p) == 3 && (c == '[' || c == 'O') {
			return nil // a meta arrow
		}
		if intro := p[len(p)-2]; len(p) < maxSequence && (p[1] == '[' || p[1] == esc) && len(p) > 2 && !(c >= 0x40 && c <= 0x7e) && intro != esc {
			return nil // parameters of a control sequence
		}
		return []key{d.take()}
	case p[0] < 0x80:
		return []key{d.take()}
	case utf8.FullRune(p):
		if r, _ := utf8.DecodeRune(p); r != utf8.RuneError {
			k := key{string(p), r}
			d.pending = nil
			return []key{k}
		}
		return []key{d.take()}
	case c < 0x80:
		return []key{d.take()}
	}
	return nil
}

// signals reports whether the kernel takes a key for itself, whoever reads the
// terminal: ^C, ^Z and ^\ end or stop a program, ^S and ^Q its output.
func signals(c byte) bool {
	return c == 'C'&0x1f || c == 'Z'&0x1f || c == '\\'&0x1f || c == 'S'&0x1f || c == 'Q'&0x1f
}

// take ends the key that is under way.
func (d *decoder) take() key {
	k := key{seq: string(d.pending), r: -1}
	if len(d.pending) == 1 && d.pending[0] < 0x80 {
		k.r = rune(d.pending[0])
	}
	d.pending = nil
	return k
}

const esc = 0x1b

// ctrl is the control character of a letter.
func ctrl(letter byte) string { return string(rune(letter & 0x1f)) }
