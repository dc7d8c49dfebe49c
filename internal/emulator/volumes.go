package emulator

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// volume is a folder that outlives sandboxes.
type volume struct {
	Name     string `json:"name"`
	Token    string `json:"token,omitempty"`
	VolumeID string `json:"volumeID"`
	dir      string
	files    *sandboxFS
	attrs    *volumeAttrs
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
	v.files, v.attrs = files, newVolumeAttrs()
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
