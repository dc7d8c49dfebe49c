package files

// SelfRunning reports whether a file (or folder) put at path runs, or changes
// what runs, without being named again, and why.
func SelfRunning(path string) (why string, ok bool) { return "", false }
