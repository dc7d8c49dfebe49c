// Package superagenttest plays the Superagent Guard API for tests: every
// generation of answers, and every fault.
package superagenttest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Key is the key the server knows.
const Key = "sa-test-key-4242"

// Request is one request as the server saw it.
type Request struct {
	Header http.Header
	Path   string
	Body   map[string]any
}

// Server plays the API over real HTTP.
type Server struct {
	// URL is the endpoint.
	URL string

	answer   http.HandlerFunc
	mu       sync.Mutex
	requests []Request
}

// New starts a server that answers every request that carries Key, in both
// headers, with answer, and every other with 401. It ends with the test.
func New(t testing.TB, answer http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{answer: answer}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/api/guard"
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	request := Request{Header: r.Header.Clone(), Path: r.URL.Path}
	_ = json.Unmarshal(raw, &request.Body)
	s.mu.Lock()
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, `{"error":"Method not allowed"}`, http.StatusMethodNotAllowed)
	case r.Header.Get("Authorization") != "Bearer "+Key || r.Header.Get("X-Superagent-Api-Key") != Key:
		http.Error(w, `{"error":"API key missing"}`, http.StatusUnauthorized)
	default:
		s.answer(w, r)
	}
}

// Requests returns what the server has seen so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Says answers 200 with body, as JSON.
func Says(body string) http.HandlerFunc { return Status(http.StatusOK, body) }

// Status answers with a status and a body, as JSON.
func Status(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Pass and Block are answers as the API documents them.
const (
	Pass  = `{"id":"1","model":"superagent-lm-guard-20b","choices":[{"message":{"role":"assistant","content":{"classification":"pass","violation_types":[],"cwe_codes":[]},"reasoning":"It prints a greeting."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	Block = `{"id":"1","model":"superagent-lm-guard-20b","choices":[{"message":{"role":"assistant","content":{"classification":"block","violation_types":["data_exfiltration","system_damage"],"cwe_codes":["CWE-200"]},"reasoning":"It sends secrets away."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
)

// Hangs never answers, until the client leaves.
func Hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Drops closes the connection without an answer.
func Drops(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// DropsAfter sends half an answer, and closes the connection.
func DropsAfter(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}
