package emulator

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// What E2B gives a new file or folder of a volume unless it is asked otherwise.
// Source: the volume service in e2b-dev/infra.
const (
	volumeOwner    = 9090
	volumeFileMode = 0o666
	volumeDirMode  = 0o777
	maxVolumeDepth = 10
	maxMetadata    = 64 << 10
)

// volumeAttrs are the owners of files and folders, which an unprivileged emulator
// cannot set.
type volumeAttrs struct {
	mu     sync.Mutex
	owners map[string][2]uint32 // user and group, by path
}

func newVolumeAttrs() *volumeAttrs { return &volumeAttrs{owners: map[string][2]uint32{}} }

func (a *volumeAttrs) of(p string) [2]uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if owner, ok := a.owners[p]; ok {
		return owner
	}
	return [2]uint32{volumeOwner, volumeOwner}
}

// set changes what is given of an owner.
func (a *volumeAttrs) set(p string, uid, gid *uint32) {
	owner := a.of(p)
	for i, id := range []*uint32{uid, gid} {
		if id != nil {
			owner[i] = *id
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owners[p] = owner
}

func (a *volumeAttrs) forget(p string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.owners, func(known string, _ [2]uint32) bool { return known == p || strings.HasPrefix(known, p+"/") })
}

// volumeCall is one call of the content API.
type volumeCall struct {
	v              *volume
	r              *http.Request
	w              http.ResponseWriter
	path           string
	force          bool
	uid, gid, mode *uint32
	depth          int
}

// routes adds the content API, whose credential is the volume's own token.
func (s *volumeStore) routes(mux *http.ServeMux) {
	for pattern, f := range map[string]func(*volumeCall) error{
		"PUT /volumecontent/{id}/file":    (*volumeCall).writeFile,
		"GET /volumecontent/{id}/file":    (*volumeCall).readFile,
		"POST /volumecontent/{id}/dir":    (*volumeCall).makeDir,
		"GET /volumecontent/{id}/dir":     (*volumeCall).listDir,
		"GET /volumecontent/{id}/path":    (*volumeCall).statPath,
		"PATCH /volumecontent/{id}/path":  (*volumeCall).updatePath,
		"DELETE /volumecontent/{id}/path": (*volumeCall).removePath,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c, err := s.call(w, r)
			if err == nil {
				err = f(c)
			}
			var refused *apiError
			switch {
			case err == nil:
			case errors.As(err, &refused):
				writeVolumeError(w, refused.Code, refused.Message)
			case errors.Is(err, fs.ErrExist):
				writeVolumeError(w, http.StatusConflict, "path already exists")
			case errors.Is(err, fs.ErrNotExist):
				writeVolumeError(w, http.StatusNotFound, "path not found")
			case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
				writeVolumeError(w, http.StatusBadRequest, err.Error())
			default:
				writeVolumeError(w, http.StatusInternalServerError, err.Error())
			}
		})
	}
}

// writeVolumeError answers as this API does, whose code is a string.
func writeVolumeError(w http.ResponseWriter, code int, message string) {
	writeJSON(w, code, map[string]string{"code": strconv.Itoa(code), "message": message})
}

func (s *volumeStore) call(w http.ResponseWriter, r *http.Request) (*volumeCall, error) {
	v, err := s.byID(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if !equalToken(r.Header.Get("Authorization"), "Bearer "+v.Token) {
		return nil, &apiError{http.StatusUnauthorized, "invalid volume token"}
	}
	query := r.URL.Query()
	if query.Get("path") == "" {
		return nil, badRequest("parameter \"path\" in query has an error: value is required")
	}
	c := &volumeCall{v: v, r: r, w: w, path: path.Clean("/" + query.Get("path")), force: query.Get("force") == "true", depth: 1}
	for name, to := range map[string]**uint32{"uid": &c.uid, "gid": &c.gid, "mode": &c.mode} {
		if *to, err = volumeNumber(query, name); err != nil {
			return nil, err
		}
	}
	depth, err := volumeNumber(query, "depth")
	if err == nil && depth != nil {
		if c.depth = max(int(*depth), 1); c.depth > maxVolumeDepth {
			err = badRequest("depth must be between 1 and %d", maxVolumeDepth)
		}
	}
	description, _ := json.Marshal(map[string]string{"path": c.path}) // Strings always marshal.
	pendingOf(r.Context()).commit(description)
	return c, err
}

func volumeNumber(query url.Values, name string) (*uint32, error) {
	if !query.Has(name) {
		return nil, nil
	}
	n, err := strconv.ParseUint(query.Get(name), 10, 32)
	if err != nil {
		return nil, badRequest("parameter %q in query has an error", name)
	}
	short := uint32(n)
	return &short, nil
}

// volumeEntry is one file or folder of a volume.
type volumeEntry struct {
	ATime  time.Time `json:"atime"`
	CTime  time.Time `json:"ctime"`
	GID    uint32    `json:"gid"`
	Mode   uint32    `json:"mode"`
	MTime  time.Time `json:"mtime"`
	Name   string    `json:"name"`
	Path   string    `json:"path"`
	Size   int64     `json:"size"`
	Target string    `json:"target,omitempty"`
	Type   string    `json:"type"`
	UID    uint32    `json:"uid"`
}

func (v *volume) entry(p string) (volumeEntry, error) {
	info, err := v.files.lstat(p)
	if err != nil {
		return volumeEntry{}, err
	}
	owner, at := v.attrs.of(p), info.ModTime().UTC()
	entry := volumeEntry{
		ATime: at, CTime: at, MTime: at, Mode: uint32(info.Mode().Perm()), UID: owner[0], GID: owner[1],
		Name: path.Base(p), Path: p, Size: info.Size(), Type: "unknown",
	}
	switch {
	case info.Mode().IsRegular():
		entry.Type = "file"
	case info.IsDir():
		entry.Type = "directory"
	case info.Mode()&fs.ModeSymlink != 0:
		entry.Type = "symlink"
		entry.Target, _ = v.files.root.Readlink(rel(p)) // It may be gone since.
	}
	return entry, nil
}

func (c *volumeCall) answer(code int) error {
	entry, err := c.v.entry(c.path)
	if err != nil {
		return err
	}
	writeJSON(c.w, code, entry)
	return nil
}

// settle gives what was made the owner and mode that are asked for.
func (c *volumeCall) settle(mode uint32) error {
	c.v.attrs.forget(c.path)
	c.v.attrs.set(c.path, c.uid, c.gid)
	if c.mode != nil {
		mode = *c.mode
	}
	return c.v.files.chmod(c.path, fs.FileMode(mode))
}

func (c *volumeCall) writeFile() error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if c.force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if err := c.v.files.mkdirAll(path.Dir(c.path)); err != nil {
			return err
		}
	}
	f, err := c.v.files.open(c.path, flags, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(pendingOf(c.r.Context()).copy(f, c.path, c.r.Body), f.Close()); err != nil {
		return err
	}
	if err := c.settle(volumeFileMode); err != nil {
		return err
	}
	return c.answer(http.StatusCreated)
}

func (c *volumeCall) readFile() error {
	f, err := c.v.files.open(c.path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return badRequest("path is not a file")
	}
	c.w.Header().Set("Content-Type", "application/octet-stream")
	c.w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	_, _ = io.Copy(c.w, f) // The client is gone if this fails.
	return nil
}

func (c *volumeCall) makeDir() error {
	if _, err := c.v.files.lstat(c.path); err == nil {
		if info, err := c.v.files.stat(c.path); !c.force || err != nil || !info.IsDir() {
			return fs.ErrExist
		}
		return c.answer(http.StatusCreated)
	}
	if info, err := c.v.files.stat(path.Dir(c.path)); !c.force && err != nil {
		return err
	} else if err == nil && !info.IsDir() {
		return badRequest("a component of the path is a file, but must be a directory")
	}
	if err := c.v.files.mkdirAll(c.path); err != nil {
		return err
	}
	if err := c.settle(volumeDirMode); err != nil {
		return err
	}
	return c.answer(http.StatusCreated)
}

func (c *volumeCall) listDir() error {
	entries, err := c.v.list([]volumeEntry{}, c.path, c.depth)
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, entries)
	return nil
}

// list adds the entries of a folder, each folder's own behind it.
func (v *volume) list(entries []volumeEntry, p string, depth int) ([]volumeEntry, error) {
	dir, err := v.files.open(p, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	names, err := dir.ReadDir(-1)
	_ = dir.Close()
	if err != nil {
		return nil, err
	}
	sortByName(names)
	for _, d := range names {
		entry, err := v.entry(path.Join(p, d.Name()))
		if err != nil {
			continue // It is gone since.
		}
		entries = append(entries, entry)
		if d.IsDir() && depth > 1 {
			if entries, err = v.list(entries, entry.Path, depth-1); err != nil {
				return nil, err
			}
		}
	}
	return entries, nil
}

func (c *volumeCall) statPath() error { return c.answer(http.StatusOK) }

func (c *volumeCall) updatePath() error {
	var b struct{ UID, GID, Mode *uint32 }
	body, err := io.ReadAll(io.LimitReader(c.r.Body, maxMetadata))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return badRequest("Invalid metadata provided: %s", err)
	}
	if _, err := c.v.files.lstat(c.path); err != nil {
		return err
	}
	if b.Mode != nil {
		if err := c.v.files.chmod(c.path, fs.FileMode(*b.Mode)); err != nil {
			return err
		}
	}
	c.v.attrs.set(c.path, b.UID, b.GID)
	return c.answer(http.StatusOK)
}

func (c *volumeCall) removePath() error {
	if c.path == "/" {
		return badRequest("cannot delete root")
	}
	if _, err := c.v.files.lstat(c.path); err != nil {
		return err
	}
	if err := c.v.files.removeAll(c.path); err != nil {
		return err
	}
	c.v.attrs.forget(c.path)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
