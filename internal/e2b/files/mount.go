package files

import (
	"path"
	"strings"
)

// MountPoint reports why no volume may be mounted at an absolute path; ok says
// that one may. Whoever writes to a volume does not know where it will be mounted,
// so no place is taken where a file is read, or run, without being named: neither
// below it nor above it.
func MountPoint(p string) (why string, ok bool) {
	if why, runs := SelfRunning(p); runs {
		return why, false
	}
	for _, root := range systemRoots {
		switch {
		case p == root.path || strings.HasPrefix(p, root.path+"/"):
			return root.why, false
		case strings.HasPrefix(root.path, p+"/"):
			return "it holds " + root.path + ", " + root.why, false
		}
	}
	for _, f := range folders {
		if f, endsIn := endsInPart(p, f.path); endsIn {
			return "it holds " + f + ", as in " + path.Join(path.Base(p), f), false
		}
	}
	home := inHome(p)
	for _, bin := range binFolders {
		if home != "" && strings.HasPrefix(bin, home+"/") {
			return "it holds " + bin + ", a folder of programs in PATH", false
		}
	}
	return "", true
}

// endsInPart reports whether a path ends in the beginning of a pattern of several
// names, and returns the rest of it.
func endsInPart(p, pattern string) (rest string, ok bool) {
	for i := range len(pattern) {
		if pattern[i] == '/' && strings.HasSuffix(p, "/"+pattern[:i]) {
			return pattern[i+1:], true
		}
	}
	return "", false
}
