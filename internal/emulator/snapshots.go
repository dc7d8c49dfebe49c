package emulator

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// team is the namespace that a snapshot's name gets.
const team = "emulator-team"

// snapshot is a copy of a sandbox's files under a name.
type snapshot struct {
	id      string // team/name:tag
	dir     string
	sandbox string
	created time.Time
}

func (e *Emulator) createSnapshot(r *http.Request, body []byte) (int, any, error) {
	var b struct {
		Name string `json:"name"`
	}
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	name := b.Name
	if name == "" {
		name = newID("s")
	}
	if !strings.Contains(name, ":") {
		name += ":default"
	}
	s := &snapshot{id: team + "/" + name, dir: filepath.Join(e.dir, "snapshot-"+newID("")), sandbox: sb.id, created: time.Now().UTC()}
	if err := copyTree(filepath.Join(sb.dir, "root"), s.dir); err != nil {
		return 0, nil, err
	}
	e.mu.Lock()
	old := e.snapshots[s.id]
	e.snapshots[s.id] = s
	e.mu.Unlock()
	if old != nil {
		if err := os.RemoveAll(old.dir); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusCreated, s.answer(), nil
}

func (s *snapshot) answer() map[string]any {
	return map[string]any{"names": []string{s.id}, "snapshotID": s.id}
}

func (e *Emulator) listSnapshots(r *http.Request, _ []byte) (int, any, error) {
	q := r.URL.Query()
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []*snapshot
	for _, s := range e.snapshots {
		if id := q.Get("sandboxID"); id != "" && id != s.sandbox {
			continue
		}
		if name := q.Get("name"); name != "" && !strings.Contains(s.id, name) {
			continue
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *snapshot) int { return b.created.Compare(a.created) })
	answers := make([]map[string]any, 0, len(list))
	for _, s := range list {
		answers = append(answers, s.answer())
	}
	return http.StatusOK, answers, nil
}

// snapshotOf gives the files a template means, if it is a snapshot. A name
// with a namespace must be one that exists.
func (e *Emulator) snapshotOf(template string) (dir string, ok bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range []string{template, team + "/" + template, template + ":default", team + "/" + template + ":default"} {
		if s, found := e.snapshots[id]; found {
			return s.dir, true, nil
		}
	}
	if strings.Contains(template, "/") {
		return "", false, notFound("template '%s' not found", template)
	}
	return "", false, nil
}

// dropSnapshot removes a snapshot; it reports whether there was one.
func (e *Emulator) dropSnapshot(id string) bool {
	e.mu.Lock()
	s, ok := e.snapshots[id]
	delete(e.snapshots, id)
	e.mu.Unlock()
	if ok {
		_ = os.RemoveAll(s.dir) // Close removes what stays behind.
	}
	return ok
}
