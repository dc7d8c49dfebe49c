package files

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// compiled are the extensions of programs and libraries that interpreters load as
// they are, without their text.
var compiled = set(".pyc", ".pyo", ".pyd", ".so", ".dylib", ".dll", ".exe", ".node", ".class", ".jar", ".war", ".wasm", ".elc", ".luac")

// Compiled reports whether a file is code that nobody can read: by its name, its
// first bytes, or as one that Python takes in place of the text beside it.
func Compiled(name string, head []byte) bool {
	base := strings.ToLower(path.Base(name))
	if compiled[path.Ext(base)] || strings.Contains(base, ".so.") || slices.Contains(strings.Split(name, "/"), "__pycache__") {
		return true
	}
	for _, magic := range programMagics {
		if bytes.HasPrefix(head, magic) && bytes.IndexByte(head, 0) >= 0 {
			return true
		}
	}
	return bytes.HasPrefix(head, []byte("\x00asm"))
}
