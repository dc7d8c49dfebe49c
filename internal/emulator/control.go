package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// What the emulator says of every sandbox's machine.
const (
	cpuCount = 2
	memoryMB = 512
	diskMB   = 1024
	clientID = "6532622b"
)

// maxControlBody bounds a control-plane body.
const maxControlBody = 8 << 20

// apiFunc answers one operation of the control plane: a status and a value to
// send as JSON (nil: no body), or an error, best an *apiError.
type apiFunc func(r *http.Request, body []byte) (int, any, error)

// controlPlane is E2B's REST API. Source: E2B's OpenAPI file, and for the
// /v2/sandboxes create and connect routes the SDK that calls them.
func (e *Emulator) controlPlane() http.Handler {
	mux := http.NewServeMux()
	routes := map[string]apiFunc{
		"POST /sandboxes":                           e.createV1,
		"POST /v2/sandboxes":                        e.createV2,
		"GET /sandboxes":                            e.listV1,
		"GET /v2/sandboxes":                         e.listV2,
		"GET /sandboxes/metrics":                    e.metricsOfAll,
		"GET /sandboxes/{id}":                       e.info,
		"DELETE /sandboxes/{id}":                    e.killSandbox,
		"POST /sandboxes/{id}/connect":              e.connectV1,
		"POST /v2/sandboxes/{id}/connect":           e.connectV2,
		"POST /sandboxes/{id}/resume":               e.resumeSandbox,
		"POST /sandboxes/{id}/pause":                e.pauseSandbox,
		"POST /sandboxes/{id}/fork":                 e.forkSandbox,
		"POST /sandboxes/{id}/snapshots":            e.createSnapshot,
		"GET /snapshots":                            e.listSnapshots,
		"POST /sandboxes/{id}/timeout":              e.setTimeout,
		"POST /sandboxes/{id}/refreshes":            e.refresh,
		"PUT /sandboxes/{id}/network":               e.updateNetwork,
		"GET /sandboxes/{id}/metrics":               e.metrics,
		"GET /sandboxes/{id}/logs":                  e.logsV1,
		"GET /v2/sandboxes/{id}/logs":               e.logsV2,
		"POST /v3/templates":                        e.createTemplate,
		"POST /v2/templates":                        e.createTemplate,
		"POST /templates":                           e.createTemplate,
		"GET /templates":                            e.listTemplates,
		"GET /v2/templates":                         e.listTemplates,
		"GET /templates/{id}":                       e.getTemplate,
		"POST /templates/{id}":                      e.rebuildTemplate,
		"PATCH /templates/{id}":                     e.patchTemplate,
		"PATCH /v2/templates/{id}":                  e.patchTemplate,
		"DELETE /templates/{id}":                    e.deleteTemplate,
		"GET /templates/{id}/files/{hash}":          e.templateFile,
		"POST /templates/{id}/builds/{build}":       e.startBuild,
		"POST /v2/templates/{id}/builds/{build}":    e.startBuild,
		"GET /templates/{id}/builds/{build}/logs":   e.buildLogs,
		"GET /templates/{id}/builds/{build}/status": e.buildStatus,
		"POST /templates/tags":                      e.assignTags,
		"DELETE /templates/tags":                    e.deleteTags,
		"GET /templates/{id}/{sub}":                 e.templatePart,
		"POST /volumes":                             e.createVolume,
		"GET /volumes":                              e.listVolumes,
		"GET /volumes/{id}":                         e.getVolume,
		"DELETE /volumes/{id}":                      e.deleteVolume,
		"POST /secrets":                             e.createSecret,
		"GET /secrets":                              e.listSecrets,
		"GET /secrets/{id}":                         e.getSecret,
		"POST /secrets/{id}":                        e.updateSecret,
		"DELETE /secrets/{id}":                      e.deleteSecret,
		"GET /teams":                                e.teams,
	}
	for pattern, f := range routes {
		mux.Handle(pattern, e.authenticated(f))
	}
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "Health check successful") })
	mux.HandleFunc("PUT /__upload/{id}/{hash}", e.receiveTemplateFile)
	e.volumes.routes(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, fmt.Sprintf("no such route %s %s", r.Method, r.URL.Path))
	})
	return mux
}

// authenticated wants a key, any key, and records the body before f acts on it.
func (e *Emulator) authenticated(f apiFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") == "" && r.Header.Get("Authorization") == "" {
			writeError(w, http.StatusUnauthorized, "Invalid API key, please visit https://e2b.dev/docs/quickstart/api-key for more information.")
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBody))
		if err != nil {
			writeError(w, http.StatusBadRequest, "Error when parsing request: "+err.Error())
			return
		}
		var record json.RawMessage
		if json.Valid(body) {
			var compact bytes.Buffer
			if json.Compact(&compact, body) == nil {
				record = compact.Bytes()
			}
		} else if len(body) == 0 {
			record = json.RawMessage("null")
		}
		pendingOf(r.Context()).commit(record)
		if len(body) > 0 && record == nil {
			writeError(w, http.StatusBadRequest, "Error when parsing request: the body is not JSON")
			return
		}

		code, answer, err := f(r, body)
		var refused *apiError
		switch {
		case errors.As(err, &refused):
			writeError(w, refused.Code, refused.Message)
		case err != nil:
			writeError(w, http.StatusInternalServerError, err.Error())
		case answer == nil:
			w.WriteHeader(code)
		default:
			if p, ok := answer.(page); ok {
				if p.next != "" {
					w.Header().Set("X-Next-Token", p.next)
				}
				answer = p.items
			}
			writeJSON(w, code, answer)
		}
	})
}

// page is a list with the token of the next page.
type page struct {
	items any
	next  string
}

func badRequest(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &apiError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// parse reads a JSON body into v; an empty body leaves v as it is.
func parse(body []byte, v any) error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, v); err != nil {
		return badRequest("Error when parsing request: %v", err)
	}
	return nil
}

// one finds the sandbox that a request's path names.
func (e *Emulator) one(r *http.Request) (*sandbox, error) {
	id := r.PathValue("id")
	if !sandboxIDPattern.MatchString(id) {
		return nil, badRequest("Invalid sandbox ID")
	}
	sb := e.lookup(id)
	if sb == nil {
		return nil, notFound("Sandbox %q doesn't exist or you don't have access to it", id)
	}
	return sb, nil
}

func (e *Emulator) teams(*http.Request, []byte) (int, any, error) {
	return http.StatusOK, []map[string]any{{"teamID": "00000000-0000-4000-8000-000000000000", "name": "emulator", "isDefault": true}}, nil
}
