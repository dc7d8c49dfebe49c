package emulator

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// template is a template as built over the API. Builds succeed at once and
// run nothing.
type template struct {
	id, name, build string
	tags            []string
	created         time.Time
	public          bool
	failed          *buildFailure // of the last build; nil for none
}

// buildFailure is why a build ended, as its status tells it.
type buildFailure struct {
	Message string `json:"message"`
	Step    string `json:"step,omitempty"`
}

type templateStore struct {
	mu  sync.Mutex
	all map[string]*template // by id
	// files are the hashes of the COPY sources that are there; the account's
	// templates share them.
	files map[string]bool
}

func newTemplateStore() *templateStore {
	return &templateStore{all: make(map[string]*template), files: make(map[string]bool)}
}

// find takes an id or a name, with or without a tag.
func (s *templateStore) find(ref string) (*template, error) {
	if t, ok := s.all[ref]; ok {
		return t, nil
	}
	for _, t := range s.all {
		if t.name == ref || base(t.name) == base(ref) {
			return t, nil
		}
	}
	return nil, notFound("template '%s' not found", ref)
}

func base(name string) string { return strings.SplitN(name, ":", 2)[0] }

func (e *Emulator) createTemplate(r *http.Request, body []byte) (int, any, error) {
	var b struct {
		Name  string   `json:"name"`
		Alias string   `json:"alias"`
		Tags  []string `json:"tags"`
	}
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	if b.Name == "" {
		b.Name = b.Alias
	}
	if b.Name == "" {
		return 0, nil, badRequest("Name is required")
	}
	if len(b.Tags) == 0 {
		b.Tags = []string{"default"}
	}
	s := e.templates
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find(b.Name)
	if err != nil {
		t = &template{id: newID(""), name: b.Name, created: time.Now().UTC()}
		s.all[t.id] = t
	}
	t.build, t.tags = newUUID(), b.Tags
	return http.StatusAccepted, t.answer(), nil
}

func (t *template) answer() map[string]any {
	return map[string]any{
		"aliases": []string{t.name}, "buildID": t.build, "names": []string{t.name},
		"public": t.public, "tags": t.tags, "templateID": t.id,
	}
}

func (t *template) listed() map[string]any {
	a := t.answer()
	for k, v := range map[string]any{
		"cpuCount": cpuCount, "memoryMB": memoryMB, "diskSizeMB": diskMB, "createdAt": t.created, "updatedAt": t.created,
		"lastSpawnedAt": nil, "spawnCount": 0, "buildCount": 1, "envdVersion": envdVersion, "buildStatus": "ready", "createdBy": nil,
	} {
		a[k] = v
	}
	return a
}

// oneTemplate runs f on the template that the path names.
func (e *Emulator) oneTemplate(r *http.Request, f func(*template) (int, any, error)) (int, any, error) {
	e.templates.mu.Lock()
	defer e.templates.mu.Unlock()
	t, err := e.templates.find(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	return f(t)
}

func (e *Emulator) listTemplates(*http.Request, []byte) (int, any, error) {
	e.templates.mu.Lock()
	defer e.templates.mu.Unlock()
	list := make([]map[string]any, 0, len(e.templates.all))
	for _, t := range e.templates.all {
		list = append(list, t.listed())
	}
	slices.SortFunc(list, func(a, b map[string]any) int {
		x, _ := a["templateID"].(string)
		y, _ := b["templateID"].(string)
		return strings.Compare(x, y)
	})
	return http.StatusOK, list, nil
}

func (e *Emulator) getTemplate(r *http.Request, _ []byte) (int, any, error) {
	return e.oneTemplate(r, func(t *template) (int, any, error) {
		a := t.listed()
		a["builds"] = []map[string]any{{
			"buildID": t.build, "status": "ready", "createdAt": t.created, "updatedAt": t.created,
			"cpuCount": cpuCount, "memoryMB": memoryMB,
		}}
		return http.StatusOK, a, nil
	})
}

func (e *Emulator) rebuildTemplate(r *http.Request, _ []byte) (int, any, error) {
	return e.oneTemplate(r, func(t *template) (int, any, error) {
		t.build = newUUID()
		return http.StatusAccepted, t.answer(), nil
	})
}

func (e *Emulator) patchTemplate(r *http.Request, body []byte) (int, any, error) {
	var b struct {
		Public *bool `json:"public"`
	}
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	return e.oneTemplate(r, func(t *template) (int, any, error) {
		if b.Public != nil {
			t.public = *b.Public
		}
		return http.StatusOK, map[string]any{"names": []string{t.name}}, nil
	})
}

func (e *Emulator) deleteTemplate(r *http.Request, _ []byte) (int, any, error) {
	if e.dropSnapshot(r.PathValue("id")) {
		return http.StatusNoContent, nil, nil
	}
	return e.oneTemplate(r, func(t *template) (int, any, error) {
		delete(e.templates.all, t.id)
		return http.StatusNoContent, nil, nil
	})
}

func (e *Emulator) buildStatus(r *http.Request, _ []byte) (int, any, error) {
	return e.oneTemplate(r, func(t *template) (int, any, error) {
		entries := []logEntry{}
		if r.URL.Query().Get("logsOffset") == "0" {
			entries = append(entries, logEntry{time.Now().UTC(), "info", "The emulator builds nothing"})
		}
		status := map[string]any{
			"buildID": r.PathValue("build"), "logEntries": entries, "logs": []string{}, "status": "ready", "templateID": t.id,
		}
		if t.failed != nil {
			status["status"], status["reason"] = "error", t.failed
		}
		return http.StatusOK, status, nil
	})
}

func (e *Emulator) buildLogs(r *http.Request, _ []byte) (int, any, error) {
	return e.oneTemplate(r, func(*template) (int, any, error) {
		return http.StatusOK, map[string]any{"logs": []logEntry{}}, nil
	})
}

// templatePart serves /templates/aliases/{alias} and /templates/{id}/tags,
// which one router pattern has to cover.
func (e *Emulator) templatePart(r *http.Request, _ []byte) (int, any, error) {
	switch {
	case r.PathValue("id") == "aliases":
		return e.templateAlias(r.PathValue("sub"))
	case r.PathValue("sub") == "tags":
		return e.templateTags(r)
	}
	return 0, nil, notFound("no such route %s %s", r.Method, r.URL.Path)
}

func (e *Emulator) templateAlias(alias string) (int, any, error) {
	e.templates.mu.Lock()
	defer e.templates.mu.Unlock()
	t, err := e.templates.find(alias)
	if err != nil {
		return 0, nil, notFound("alias not found")
	}
	return http.StatusOK, map[string]any{"templateID": t.id, "public": t.public}, nil
}

type tagsBody struct {
	Target string   `json:"target"`
	Name   string   `json:"name"`
	Tags   []string `json:"tags"`
}

func (e *Emulator) assignTags(_ *http.Request, body []byte) (int, any, error) {
	var b tagsBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	e.templates.mu.Lock()
	defer e.templates.mu.Unlock()
	t, err := e.templates.find(b.Target)
	if err != nil {
		return 0, nil, err
	}
	for _, tag := range b.Tags {
		if !slices.Contains(t.tags, tag) {
			t.tags = append(t.tags, tag)
		}
	}
	return http.StatusCreated, map[string]any{"buildID": t.build, "tags": b.Tags}, nil
}

func (e *Emulator) deleteTags(_ *http.Request, body []byte) (int, any, error) {
	var b tagsBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	e.templates.mu.Lock()
	defer e.templates.mu.Unlock()
	t, err := e.templates.find(b.Name)
	if err != nil {
		return 0, nil, err
	}
	t.tags = slices.DeleteFunc(t.tags, func(tag string) bool { return slices.Contains(b.Tags, tag) })
	return http.StatusNoContent, nil, nil
}

func (e *Emulator) templateTags(r *http.Request) (int, any, error) {
	return e.oneTemplate(r, func(t *template) (int, any, error) {
		tags := make([]map[string]any, 0, len(t.tags))
		for _, tag := range t.tags {
			tags = append(tags, map[string]any{"buildID": t.build, "createdAt": t.created, "tag": tag})
		}
		return http.StatusOK, tags, nil
	})
}
