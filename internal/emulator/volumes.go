package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// volume is a folder that outlives sandboxes.
type volume struct {
	Name     string `json:"name"`
	Token    string `json:"token,omitempty"`
	VolumeID string `json:"volumeID"`
	dir      string
	files    *sandboxFS
}

type volumeStore struct {
	dir string
	mu  sync.Mutex
	all map[string]*volume // by id
}

func newVolumeStore(dir string) (*volumeStore, error) {
	s := &volumeStore{dir: filepath.Join(dir, "volumes"), all: make(map[string]*volume)}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the volumes' folder: %w", err)
	}
	return s, nil
}

func (s *volumeStore) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, v := range s.all {
		errs = append(errs, v.files.close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func (s *volumeStore) byName(name string) (*volume, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.all {
		if v.Name == name {
			return v, true
		}
	}
	return nil, false
}

func (s *volumeStore) byID(id string) (*volume, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.all[id]
	if !ok {
		return nil, notFound("Volume not found")
	}
	return v, nil
}

var volumeName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// volumeID is a random UUID.
func volumeID() string {
	hex := []byte(randomHex(16))
	hex[12], hex[16] = '4', 'a'
	return fmt.Sprintf("%s-%s-%s-%s-%s", hex[:8], hex[8:12], hex[12:16], hex[16:20], hex[20:])
}

func (e *Emulator) createVolume(_ *http.Request, body []byte) (int, any, error) {
	var b struct {
		Name string `json:"name"`
	}
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	if !volumeName.MatchString(b.Name) {
		return 0, nil, badRequest("Invalid volume name")
	}
	s := e.volumes
	if _, ok := s.byName(b.Name); ok {
		return 0, nil, badRequest("Volume with name '%s' already exists", b.Name)
	}
	v := &volume{Name: b.Name, Token: "vt_" + randomHex(8), VolumeID: volumeID()}
	v.dir = filepath.Join(s.dir, v.VolumeID)
	if err := os.Mkdir(v.dir, 0o777); err != nil { // Any user of a sandbox may write to it.
		return 0, nil, err
	}
	if err := os.Chmod(v.dir, 0o777); err != nil { // As above, whatever the umask.
		return 0, nil, err
	}
	files, err := newSandboxFS(v.dir, nil)
	if err != nil {
		return 0, nil, err
	}
	v.files = files
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[v.VolumeID] = v
	return http.StatusCreated, *v, nil
}

func (e *Emulator) listVolumes(*http.Request, []byte) (int, any, error) {
	e.volumes.mu.Lock()
	defer e.volumes.mu.Unlock()
	list := []volume{}
	for _, v := range e.volumes.all {
		list = append(list, volume{Name: v.Name, VolumeID: v.VolumeID})
	}
	slices.SortFunc(list, func(a, b volume) int { return strings.Compare(a.Name, b.Name) })
	return http.StatusOK, list, nil
}

func (e *Emulator) getVolume(r *http.Request, _ []byte) (int, any, error) {
	v, err := e.volumes.byID(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, *v, nil
}

func (e *Emulator) deleteVolume(r *http.Request, _ []byte) (int, any, error) {
	v, err := e.volumes.byID(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	e.volumes.mu.Lock()
	delete(e.volumes.all, v.VolumeID)
	e.volumes.mu.Unlock()
	return http.StatusNoContent, nil, errors.Join(v.files.close(), os.RemoveAll(v.dir))
}

// routes adds the content API, whose credential is the volume's own token.
func (s *volumeStore) routes(mux *http.ServeMux) {
	for pattern, f := range map[string]func(http.ResponseWriter, *http.Request, *volume, string) error{
		"PUT /volumecontent/{id}/file":    writeVolumeFile,
		"GET /volumecontent/{id}/file":    readVolumeFile,
		"POST /volumecontent/{id}/dir":    makeVolumeDir,
		"GET /volumecontent/{id}/dir":     listVolumeDir,
		"GET /volumecontent/{id}/path":    statVolumePath,
		"PATCH /volumecontent/{id}/path":  statVolumePath,
		"DELETE /volumecontent/{id}/path": removeVolumePath,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := s.byID(r.PathValue("id"))
			if err == nil && !equalToken(r.Header.Get("Authorization"), "Bearer "+v.Token) {
				err = &apiError{http.StatusUnauthorized, "invalid volume token"}
			}
			if err == nil {
				p := path.Clean("/" + r.URL.Query().Get("path"))
				description, _ := json.Marshal(map[string]string{"path": p}) // Strings always marshal.
				pendingOf(r.Context()).commit(description)
				err = f(w, r, v, p)
			}
			var refused *apiError
			switch {
			case err == nil:
			case errors.As(err, &refused):
				writeError(w, refused.Code, refused.Message)
			case errors.Is(err, fs.ErrNotExist):
				writeError(w, http.StatusNotFound, "path not found")
			default:
				writeError(w, http.StatusInternalServerError, err.Error())
			}
		})
	}
}

// volumeEntry is one file or folder of a volume.
type volumeEntry struct {
	ATime time.Time `json:"atime"`
	CTime time.Time `json:"ctime"`
	GID   int       `json:"gid"`
	Mode  uint32    `json:"mode"`
	MTime time.Time `json:"mtime"`
	Name  string    `json:"name"`
	Path  string    `json:"path"`
	Size  int64     `json:"size"`
	Type  string    `json:"type"`
	UID   int       `json:"uid"`
}

func (v *volume) entry(p string) (volumeEntry, error) {
	info, err := v.files.lstat(p)
	if err != nil {
		return volumeEntry{}, err
	}
	kind := "unknown"
	switch {
	case info.Mode().IsRegular():
		kind = "file"
	case info.IsDir():
		kind = "directory"
	case info.Mode()&fs.ModeSymlink != 0:
		kind = "symlink"
	}
	at := info.ModTime().UTC()
	return volumeEntry{
		ATime: at, CTime: at, MTime: at, Mode: uint32(info.Mode().Perm()),
		Name: path.Base(p), Path: p, Size: info.Size(), Type: kind,
	}, nil
}

func answerEntry(w http.ResponseWriter, code int, v *volume, p string) error {
	entry, err := v.entry(p)
	if err != nil {
		return err
	}
	writeJSON(w, code, entry)
	return nil
}

func writeVolumeFile(w http.ResponseWriter, r *http.Request, v *volume, p string) error {
	if err := v.files.mkdirAll(path.Dir(p)); err != nil {
		return err
	}
	f, err := v.files.open(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r.Body)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return answerEntry(w, http.StatusCreated, v, p)
}

func readVolumeFile(w http.ResponseWriter, _ *http.Request, v *volume, p string) error {
	f, err := v.files.open(p, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = io.Copy(w, f) // The client is gone if this fails.
	return nil
}

func makeVolumeDir(w http.ResponseWriter, _ *http.Request, v *volume, p string) error {
	if err := v.files.mkdirAll(p); err != nil {
		return err
	}
	return answerEntry(w, http.StatusCreated, v, p)
}

func listVolumeDir(w http.ResponseWriter, _ *http.Request, v *volume, p string) error {
	dir, err := v.files.open(p, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	names, err := dir.ReadDir(-1)
	_ = dir.Close()
	if err != nil {
		return err
	}
	sortByName(names)
	entries := []volumeEntry{}
	for _, d := range names {
		if entry, err := v.entry(path.Join(p, d.Name())); err == nil {
			entries = append(entries, entry)
		}
	}
	writeJSON(w, http.StatusOK, entries)
	return nil
}

func statVolumePath(w http.ResponseWriter, _ *http.Request, v *volume, p string) error {
	return answerEntry(w, http.StatusOK, v, p)
}

func removeVolumePath(w http.ResponseWriter, _ *http.Request, v *volume, p string) error {
	if _, err := v.files.lstat(p); err != nil {
		return err
	}
	if err := v.files.removeAll(p); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
