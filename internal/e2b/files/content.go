package files

import (
	"bytes"
	"strings"
)

// Content is what is known of a file's text.
type Content uint8

// What may be known.
const (
	// Unseen: the text could not be had, or is none that can be judged.
	Unseen Content = iota
	// Absent: there is no such file.
	Absent
	// Binary: a compiled program, which is no code to read.
	Binary
	// Text: it is known whole.
	Text
)

// programMagics start compiled programs and libraries.
var programMagics = [][]byte{[]byte("\x7fELF"), []byte("\xcf\xfa\xed\xfe"), []byte("\xce\xfa\xed\xfe"), []byte("\xca\xfe\xba\xbe"), []byte("MZ")}

// ReadContent says what a whole file is to whoever runs it, and its text. A shell
// drops NUL bytes after the first line, and takes a file with one before that for
// no script.
func ReadContent(b []byte) (string, Content) {
	for _, magic := range programMagics {
		if bytes.HasPrefix(b, magic) && bytes.IndexByte(b, 0) >= 0 {
			return "", Binary
		}
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	if bytes.IndexByte(line, 0) >= 0 {
		return "", Unseen
	}
	return strings.ReplaceAll(string(b), "\x00", ""), Text
}
