package emulator

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// secret is a stored secret; its value is never given back.
type secret struct {
	CreatedAt      time.Time         `json:"createdAt"`
	CurrentVersion int               `json:"currentVersion"`
	Metadata       map[string]string `json:"metadata"`
	Name           string            `json:"name"`
	SecretID       string            `json:"secretID"`
	UpdatedAt      time.Time         `json:"updatedAt"`
}

type secretStore struct {
	mu  sync.Mutex
	all map[string]*secret // by name
}

func newSecretStore() *secretStore { return &secretStore{all: make(map[string]*secret)} }

func (s *secretStore) find(ref string) (*secret, error) {
	for _, x := range s.all {
		if x.Name == ref || x.SecretID == ref {
			return x, nil
		}
	}
	return nil, notFound("secret '%s' not found", ref)
}

type secretBody struct {
	Name     string            `json:"name"`
	Value    *string           `json:"value"`
	Metadata map[string]string `json:"metadata"`
}

func (e *Emulator) createSecret(_ *http.Request, body []byte) (int, any, error) {
	var b secretBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	if b.Name == "" || b.Value == nil {
		return 0, nil, badRequest("Error when parsing request: name and value are required")
	}
	e.secrets.mu.Lock()
	defer e.secrets.mu.Unlock()
	if _, ok := e.secrets.all[b.Name]; ok {
		return 0, nil, &apiError{http.StatusConflict, "secret '" + b.Name + "' already exists"}
	}
	now := time.Now().UTC().Truncate(time.Second)
	x := &secret{now, 1, b.Metadata, b.Name, "sec_" + randomHex(6), now}
	if x.Metadata == nil {
		x.Metadata = map[string]string{}
	}
	e.secrets.all[b.Name] = x
	return http.StatusCreated, *x, nil
}

func (e *Emulator) listSecrets(*http.Request, []byte) (int, any, error) {
	e.secrets.mu.Lock()
	defer e.secrets.mu.Unlock()
	list := make([]secret, 0, len(e.secrets.all))
	for _, x := range e.secrets.all {
		list = append(list, *x)
	}
	slices.SortFunc(list, func(a, b secret) int { return strings.Compare(a.Name, b.Name) })
	return http.StatusOK, list, nil
}

func (e *Emulator) getSecret(r *http.Request, _ []byte) (int, any, error) {
	e.secrets.mu.Lock()
	defer e.secrets.mu.Unlock()
	x, err := e.secrets.find(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, *x, nil
}

func (e *Emulator) updateSecret(r *http.Request, body []byte) (int, any, error) {
	var b secretBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	e.secrets.mu.Lock()
	defer e.secrets.mu.Unlock()
	x, err := e.secrets.find(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	if b.Value != nil {
		x.CurrentVersion++
	}
	if b.Metadata != nil {
		x.Metadata = b.Metadata
	}
	x.UpdatedAt = time.Now().UTC().Truncate(time.Second)
	return http.StatusOK, *x, nil
}

func (e *Emulator) deleteSecret(r *http.Request, _ []byte) (int, any, error) {
	e.secrets.mu.Lock()
	defer e.secrets.mu.Unlock()
	x, err := e.secrets.find(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	delete(e.secrets.all, x.Name)
	return http.StatusNoContent, nil, nil
}
