package pty

import "slices"

// maxCanonical is how much of a line the kernel keeps: what is typed beyond it is
// lost, and only the Enter still counts.
const maxCanonical = 4095

// cooked is the line as the kernel's line discipline holds it, for programs that
// leave line editing to the terminal: sh, cat, read. Its special characters are
// the defaults; changing them is refused (see refuseLine).
type cooked struct {
	buf    []byte
	quoted bool // ^V: the next byte is text
	over   bool // there was more than is kept
	sent   int  // what a program has already, and no key erases
	// utf8 says that the terminal erases whole characters (stty iutf8), not bytes. A
	// terminal is opened without, and a shell may set it.
	utf8 bool
}

func (c *cooked) clone() cooked { return cooked{slices.Clone(c.buf), c.quoted, c.over, c.sent, c.utf8} }

// reset empties the line, or makes it what is given.
func (c *cooked) reset(text string) { *c = cooked{buf: []byte(text), utf8: c.utf8} }

// submit notes that a program has the line so far: at its end, or without one.
func (c *cooked) submit(b byte) {
	if b == '\r' || b == '\n' {
		c.add('\n')
	}
	c.sent = len(c.buf)
}

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
		c.erase()
	case 'U' & 0x1f:
		for c.erase() {
		}
	case 'W' & 0x1f:
		c.wordRubout()
	case 'V' & 0x1f:
		c.quoted = true
	case 'R' & 0x1f, 'S' & 0x1f, 'Q' & 0x1f: // shown again; output stopped and started
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

// last is where the last character begins, and whether there is one: Linux erases
// no part of one.
func (c *cooked) last() (int, bool) {
	for i := len(c.buf) - 1; i >= c.sent; i-- {
		if !c.utf8 || c.buf[i]&0xc0 != 0x80 {
			return i, true
		}
	}
	return 0, false
}

func (c *cooked) erase() bool {
	i, ok := c.last()
	if ok {
		c.buf = c.buf[:i]
	}
	return ok
}

// wordRubout removes the last word, as Linux does.
func (c *cooked) wordRubout() {
	seen := false
	for {
		i, ok := c.last()
		if !ok {
			return
		}
		word := kernelAlnum(c.buf[i])
		if seen && !word {
			return
		}
		seen = seen || word
		c.buf = c.buf[:i]
	}
}

// kernelAlnum is what Linux takes for a part of a word, whatever the encoding: its
// tables are of ISO 8859-1.
func kernelAlnum(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' || b >= 0xc0 && b != 0xd7 && b != 0xf7
}

// kernel is the line in both ways in which the kernel may hold it.
type kernel [2]cooked

func newKernel() kernel { return kernel{{}, {utf8: true}} }

func (k kernel) clone() kernel { return kernel{k[0].clone(), k[1].clone()} }

func (k *kernel) reset(text string) {
	for i := range k {
		k[i].reset(text)
	}
}

func (k *kernel) press(b byte) (submitted bool) {
	for i := range k {
		submitted = k[i].press(b) || submitted
	}
	return submitted
}

func (k *kernel) submit(b byte) {
	for i := range k {
		k[i].submit(b)
	}
}

func (k *kernel) add(text string) {
	for i := range k {
		k[i].buf = append(k[i].buf, text...)
	}
}

// lines are the different lines it may hold.
func (k *kernel) lines() []string {
	a, b := string(k[0].buf), string(k[1].buf)
	if a == b {
		return []string{a}
	}
	return []string{a, b}
}

func (k *kernel) over(limit int) bool {
	return k[0].over || k[1].over || max(len(k[0].buf), len(k[1].buf)) > limit
}
