package pty

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// cooked is the line as the kernel's line discipline holds it, for programs that
// leave line editing to the terminal: sh, cat, read. Its special characters are
// the defaults; changing them is refused (see refuseLine).
type cooked struct {
	buf    []byte
	quoted bool // ^V: the next byte is text
	over   bool // there was more than is kept
}

func (c *cooked) clone() cooked { return cooked{slices.Clone(c.buf), c.quoted, c.over} }

// press applies one byte and reports whether it ends the line.
func (c *cooked) press(b byte) bool {
	if c.quoted {
		c.quoted = false
		c.add(b)
		return false
	}
	switch b {
	case '\r', '\n':
		return true
	case 0x04: // ^D sends what is there
		return len(c.buf) > 0
	case 0x7f:
		_, size := utf8.DecodeLastRune(c.buf)
		c.buf = c.buf[:len(c.buf)-size]
	case 'U' & 0x1f:
		c.buf = c.buf[:0]
	case 'W' & 0x1f:
		c.wordRubout()
	case 'V' & 0x1f:
		c.quoted = true
	case 'R' & 0x1f:
	default:
		c.add(b)
	}
	return false
}

func (c *cooked) add(b byte) {
	if len(c.buf) >= maxLine {
		c.over = true
		return
	}
	c.buf = append(c.buf, b)
}

// wordRubout removes the last word, as Linux does.
func (c *cooked) wordRubout() {
	seen := false
	for len(c.buf) > 0 {
		r, size := utf8.DecodeLastRune(c.buf)
		word := r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
		if seen && !word {
			return
		}
		seen = seen || word
		c.buf = c.buf[:len(c.buf)-size]
	}
}
