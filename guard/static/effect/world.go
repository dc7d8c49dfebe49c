package effect

import (
	"path"
	"strings"
)

// World is what is known of the machine around the code, before it runs. It only
// serves to find files: what a path means is judged as it is written.
type World struct {
	// Home is the home of the user who runs the code, Dir the working directory.
	Home, Dir string
	// Files are texts of files, by absolute path.
	Files map[string]string
}

// In makes a path as code writes it absolute and clean, from a working
// directory; "" if either is unknown.
func (w *World) In(dir, p string) string {
	if w == nil || p == "" || strings.Contains(p, HoleText) {
		return ""
	}

	p = strings.TrimPrefix(p, "file://")

	switch {
	case p[0] == '/':
		return path.Clean(p)
	case p == "~", strings.HasPrefix(p, "~/"):
		return path.Clean(w.Home + p[1:])
	case strings.HasPrefix(p, "~"):
		name, rest, _ := strings.Cut(p[1:], "/")
		if name == "root" {
			return path.Clean("/root/" + rest)
		}

		return path.Clean("/home/" + name + "/" + rest)
	case dir == "":
		return ""
	default:
		return path.Clean(dir + "/" + p)
	}
}

// File is the text of the file at an absolute path, if it is known.
func (w *World) File(p string) (string, bool) {
	if w == nil || p == "" {
		return "", false
	}

	text, ok := w.Files[p]

	return text, ok
}
