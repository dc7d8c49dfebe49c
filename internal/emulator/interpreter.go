package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// interpreter is the code interpreter's server in one sandbox.
type interpreter struct {
	sb *sandbox

	mu       sync.Mutex
	closed   bool
	contexts map[string]*codeContext
	order    []string
	defaults map[string]string // language to context
}

// codeContext is a kernel with an id. Executions in it wait for each other.
type codeContext struct {
	id, language, cwd string
	busy              chan struct{} // holds one token while free

	kernel *kernel // nil until first used; guarded by busy
	count  int
}

const interpreterHome = "/home/user"

func newInterpreter(sb *sandbox) *interpreter {
	in := &interpreter{sb: sb, contexts: make(map[string]*codeContext), defaults: make(map[string]string)}
	for _, language := range []string{"python", "javascript"} {
		c := in.add(language, interpreterHome)
		in.defaults[language] = c.id
	}
	return in
}

func (in *interpreter) add(language, cwd string) *codeContext {
	c := &codeContext{id: newUUID(), language: language, cwd: cwd, busy: make(chan struct{}, 1)}
	c.busy <- struct{}{}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.contexts[c.id] = c
	in.order = append(in.order, c.id)
	return c
}

func (in *interpreter) get(id string) *codeContext {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.contexts[id]
}

// acquire waits until the context is free.
func (c *codeContext) acquire(ctx context.Context) error {
	select {
	case <-c.busy:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *codeContext) release() { c.busy <- struct{}{} }

// start makes sure the context has a kernel; busy is held.
func (in *interpreter) start(c *codeContext) error {
	if c.kernel != nil {
		return nil
	}
	cwd := c.cwd
	if info, err := in.sb.fs.stat(cwd); err != nil || !info.IsDir() {
		cwd = interpreterHome // As %cd fails without an error.
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return errSandboxEnded
	}
	k, err := in.sb.startKernel(c.id, c.language, cwd)
	if err != nil {
		return err
	}
	c.kernel = k
	return nil
}

// close ends all kernels: executions see theirs die. Unless final, contexts
// start new ones when they are used.
func (in *interpreter) close(final bool) {
	in.mu.Lock()
	in.closed = in.closed || final
	contexts := slices.Collect(maps.Values(in.contexts))
	in.mu.Unlock()
	// A client that does not read its answer may hold a context; its kernel is
	// dead all the same.
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, c := range contexts {
		in.stopKernel(ctx, c)
	}
}

func (in *interpreter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "uvicorn")
	path := r.URL.Path
	id, isContext := strings.CutPrefix(path, "/contexts/")
	restart := strings.HasSuffix(id, "/restart")
	id = strings.TrimSuffix(id, "/restart")
	routes := map[string]map[string]http.HandlerFunc{
		"/execute":  {http.MethodPost: in.execute},
		"/contexts": {http.MethodPost: in.createContext, http.MethodGet: in.listContexts},
		"/health":   {http.MethodGet: func(w http.ResponseWriter, _ *http.Request) { fastJSON(w, http.StatusOK, "OK") }},
		"/docs":     {http.MethodGet: func(w http.ResponseWriter, _ *http.Request) { fastHTML(w) }},
		"/openapi.json": {http.MethodGet: func(w http.ResponseWriter, _ *http.Request) {
			fastJSON(w, http.StatusOK, map[string]string{"openapi": "3.0.2"})
		}},
	}
	methods := routes[path]
	if isContext && id != "" && !strings.Contains(id, "/") {
		if restart {
			methods = map[string]http.HandlerFunc{http.MethodPost: func(w http.ResponseWriter, r *http.Request) { in.restart(w, r, id) }}
		} else {
			methods = map[string]http.HandlerFunc{http.MethodDelete: func(w http.ResponseWriter, r *http.Request) { in.remove(w, r, id) }}
		}
	}
	switch handler, ok := methods[r.Method]; {
	case ok:
		handler(w, r)
	case methods != nil:
		for m := range methods {
			w.Header().Add("Allow", m)
		}
		fastJSON(w, http.StatusMethodNotAllowed, map[string]string{"detail": "Method Not Allowed"})
	case routes[strings.TrimSuffix(path, "/")] != nil && path != "/":
		// Starlette sends the client to the spelling it knows, at the host it
		// came in under.
		w.Header().Set("Location", "http://"+r.Host+strings.TrimSuffix(path, "/"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		fastJSON(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
	}
}

func fastJSON(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		code, body = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // The client is gone if this fails.
}

func fastText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // The client is gone if this fails.
}

func fastHTML(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte("<!DOCTYPE html><title>FastAPI - Swagger UI</title>")) // As above.
}

// contextAnswer is a context as the API gives it.
type contextAnswer struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	CWD      string `json:"cwd"`
}

func (in *interpreter) createContext(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	cwd, problem := body.optional("cwd")
	language, problem2 := body.optional("language")
	if problem = append(problem, problem2...); len(problem) > 0 {
		fastJSON(w, http.StatusUnprocessableEntity, map[string]any{"detail": problem})
		return
	}
	if cwd == "" {
		cwd = interpreterHome
	}
	c, err := in.create(r.Context(), normalLanguage(language), cwd)
	if err != nil {
		fastText(w, http.StatusInternalServerError, err.Error())
		return
	}
	fastJSON(w, http.StatusOK, contextAnswer{c.id, c.language, c.cwd})
}

// create makes a context and starts its kernel.
func (in *interpreter) create(ctx context.Context, language, cwd string) (*codeContext, error) {
	c := in.add(language, cwd)
	if err := c.acquire(ctx); err != nil {
		return nil, err
	}
	defer c.release()
	if err := in.start(c); err != nil {
		in.drop(c.id)
		return nil, kernelError(language, err)
	}
	return c, nil
}

// kernelError speaks as Jupyter does of a kernel it does not have.
func kernelError(language string, err error) error {
	if !errors.Is(err, errNoKernel) {
		return fmt.Errorf("Failed to create context: %w", err)
	}
	name, _ := json.Marshal(language + " not found")                             // A string always marshals.
	text, _ := json.Marshal("The '" + language + "' kernel is not available. " + // As above.
		"Please pick another suitable kernel instead, or install that kernel.")
	return fmt.Errorf("Failed to create context: {\"message\": %s, \"short_message\": %s}", text, name)
}

func normalLanguage(language string) string {
	switch language = strings.ToLower(strings.TrimSpace(language)); language {
	case "":
		return "python"
	case "js":
		return "javascript"
	case "ts":
		return "typescript"
	}
	return language
}

func (in *interpreter) drop(id string) *codeContext {
	in.mu.Lock()
	defer in.mu.Unlock()
	c := in.contexts[id]
	delete(in.contexts, id)
	for i, known := range in.order {
		if known == id {
			in.order = append(in.order[:i], in.order[i+1:]...)
			break
		}
	}
	return c
}

func (in *interpreter) listContexts(w http.ResponseWriter, r *http.Request) {
	pendingOf(r.Context()).commit(json.RawMessage("null"))
	in.mu.Lock()
	list := []contextAnswer{}
	for _, id := range in.order {
		c := in.contexts[id]
		list = append(list, contextAnswer{c.id, c.language, c.cwd})
	}
	in.mu.Unlock()
	fastJSON(w, http.StatusOK, list)
}

func (in *interpreter) restart(w http.ResponseWriter, r *http.Request, id string) {
	pendingOf(r.Context()).commit(json.RawMessage("null"))
	c := in.get(id)
	if c == nil {
		fastText(w, http.StatusNotFound, "Context "+id+" not found")
		return
	}
	in.stopKernel(r.Context(), c)
	if err := c.acquire(r.Context()); err == nil {
		c.count = 0
		err = in.start(c)
		c.release()
		if err != nil {
			fastText(w, http.StatusInternalServerError, "Failed to restart context "+id)
			return
		}
	}
	fastJSON(w, http.StatusOK, nil)
}

func (in *interpreter) remove(w http.ResponseWriter, r *http.Request, id string) {
	pendingOf(r.Context()).commit(json.RawMessage("null"))
	c := in.drop(id)
	if c == nil {
		fastText(w, http.StatusNotFound, "Context "+id+" not found")
		return
	}
	in.stopKernel(r.Context(), c)
	fastJSON(w, http.StatusOK, nil)
}

// stopKernel kills a context's kernel, also under a running execution, which
// then sees it die.
func (in *interpreter) stopKernel(ctx context.Context, c *codeContext) {
	in.mu.Lock()
	k := c.kernel
	in.mu.Unlock()
	if k == nil {
		return
	}
	k.close()
	if c.acquire(ctx) == nil {
		if c.kernel == k {
			in.mu.Lock()
			c.kernel = nil
			in.mu.Unlock()
		}
		c.release()
	}
}
