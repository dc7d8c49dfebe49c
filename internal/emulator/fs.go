package emulator

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// volumeMount is a volume seen at a path of a sandbox.
type volumeMount struct {
	Name string `json:"name"`
	Path string `json:"path"`
	dir  string
}

// sandboxFS is a sandbox's file tree. Every access goes through os.Root, so no
// path and no symbolic link leads out of the folder; symbolic links are
// resolved as inside the sandbox, where "/" is the folder.
type sandboxFS struct {
	dir    string
	root   *os.Root
	mounts []mountedRoot

	mu    sync.Mutex
	attrs map[string]fileAttrs
}

type mountedRoot struct {
	at   string
	dir  string
	root *os.Root
}

// fileAttrs is what a real file carries as owner and extended attributes, and
// an unprivileged emulator cannot set.
type fileAttrs struct {
	owner    string
	metadata map[string]string
}

func newSandboxFS(dir string, mounts []volumeMount) (*sandboxFS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &sandboxFS{dir: dir, root: root, attrs: make(map[string]fileAttrs)}
	for _, m := range mounts {
		// The mount point exists in the folder too, so that it is listed.
		if err := root.MkdirAll(rel(m.Path), 0o755); err != nil {
			return nil, errors.Join(err, s.close())
		}
		mounted, err := os.OpenRoot(m.dir)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.mounts = append(s.mounts, mountedRoot{at: path.Clean(m.Path), dir: m.dir, root: mounted})
	}
	return s, nil
}

func (s *sandboxFS) close() error {
	err := s.root.Close()
	for _, m := range s.mounts {
		err = errors.Join(err, m.root.Close())
	}
	return err
}

// rel makes an absolute sandbox path one that os.Root accepts.
func rel(p string) string {
	p = strings.TrimPrefix(path.Clean("/"+p), "/")
	if p == "" {
		return "."
	}
	return p
}

// locate finds the root a resolved path lies in.
func (s *sandboxFS) locate(p string) (*os.Root, string, string) {
	for _, m := range s.mounts {
		if p == m.at || strings.HasPrefix(p, m.at+"/") {
			return m.root, rel(strings.TrimPrefix(p, m.at)), m.dir
		}
	}
	return s.root, rel(p), s.dir
}

const maxLinks = 255

// resolve follows the symbolic links in p; the last element too if follow is
// set. What does not exist resolves to itself.
func (s *sandboxFS) resolve(p string, follow bool) (string, error) {
	rest := strings.Split(strings.Trim(path.Clean("/"+p), "/"), "/")
	done := "/"
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, name)
		root, r, _ := s.locate(next)
		info, err := root.Lstat(r)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 || (len(rest) == 0 && !follow) {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "stat", Path: p, Err: syscall.ELOOP}
		}
		link, err := root.Readlink(r)
		if err != nil {
			return "", err
		}
		if path.IsAbs(link) {
			// A command that sees the real folder may have put its real path in.
			link = strings.TrimPrefix(link, s.dir)
			done = "/"
		}
		rest = append(strings.Split(link, "/"), rest...)
	}
	return done, nil
}

// at gives the root and name to act on for p, with links followed.
func (s *sandboxFS) at(p string, follow bool) (*os.Root, string, error) {
	resolved, err := s.resolve(p, follow)
	if err != nil {
		return nil, "", err
	}
	root, r, _ := s.locate(resolved)
	return root, r, nil
}

func (s *sandboxFS) stat(p string) (fs.FileInfo, error) {
	root, r, err := s.at(p, true)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(r)
	return info, asSeen(err, "stat", p)
}

func (s *sandboxFS) lstat(p string) (fs.FileInfo, error) {
	root, r, err := s.at(p, false)
	if err != nil {
		return nil, err
	}
	info, err := root.Lstat(r)
	return info, asSeen(err, "lstat", p)
}

func (s *sandboxFS) open(p string, flag int, mode fs.FileMode) (*os.File, error) {
	root, r, err := s.at(p, true)
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(r, flag, mode)
	return f, asSeen(err, "open", p)
}

func (s *sandboxFS) chmod(p string, mode fs.FileMode) error {
	root, r, err := s.at(p, true)
	if err != nil {
		return err
	}
	return asSeen(root.Chmod(r, mode), "chmod", p)
}

// mkdirAll makes the folder p, refusing where a file is in the way.
func (s *sandboxFS) mkdirAll(p string) error {
	root, r, err := s.at(p, true)
	if err != nil {
		return err
	}
	return asSeen(root.MkdirAll(r, 0o755), "mkdir", p)
}

func (s *sandboxFS) removeAll(p string) error {
	root, r, err := s.at(p, false)
	if err != nil {
		return err
	}
	s.mu.Lock()
	for k := range s.attrs {
		if k == p || strings.HasPrefix(k, p+"/") {
			delete(s.attrs, k)
		}
	}
	s.mu.Unlock()
	if r == "." {
		return asSeen(s.emptyRoot(root), "unlinkat", p)
	}
	return asSeen(root.RemoveAll(r), "unlinkat", p)
}

// emptyRoot is what "rm -rf /" leaves: the mount point itself.
func (s *sandboxFS) emptyRoot(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		err = errors.Join(err, root.RemoveAll(e.Name()))
	}
	return err
}

func (s *sandboxFS) rename(from, to string) error {
	fromRoot, fr, err := s.at(from, false)
	if err != nil {
		return err
	}
	toRoot, tr, err := s.at(to, false)
	if err != nil {
		return err
	}
	if fromRoot != toRoot {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EXDEV}
	}
	if err := fromRoot.Rename(fr, tr); err != nil {
		var cause syscall.Errno
		if errors.As(err, &cause) {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: cause}
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, v := range s.attrs {
		if k == from || strings.HasPrefix(k, from+"/") {
			delete(s.attrs, k)
			s.attrs[to+strings.TrimPrefix(k, from)] = v
		}
	}
	return nil
}

func (s *sandboxFS) setAttrs(p string, a fileAttrs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attrs[p] = a
}

func (s *sandboxFS) attrsOf(p string) fileAttrs {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.attrs[p]
	if !ok {
		a.owner = "root"
		if strings.HasPrefix(p, "/home/user") || strings.HasPrefix(p, "/tmp/") || strings.HasPrefix(p, "/code") {
			a.owner = "user"
		}
	}
	return a
}

// hostPath is where the sandbox path p lies on this machine.
func (s *sandboxFS) hostPath(p string) (string, error) {
	resolved, err := s.resolve(p, true)
	if err != nil {
		return "", err
	}
	_, r, dir := s.locate(resolved)
	return filepath.Join(dir, r), nil
}

// asSeen makes an error of os.Root one that speaks of the sandbox's path, as
// envd's do.
func asSeen(err error, op, p string) error {
	if err == nil {
		return nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return &fs.PathError{Op: op, Path: p, Err: pe.Err}
	}
	return err
}
