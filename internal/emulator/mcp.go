package emulator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// mcpServer is the least an MCP client can talk to, over streamable HTTP and
// over the older transport with a stream of its own. It runs nothing.
type mcpServer struct {
	sb *sandbox

	mu       sync.Mutex
	sessions map[string]chan []byte // what the session's stream is to carry
}

const sessionHeader = "Mcp-Session-Id"

func (sb *sandbox) mcpHandler() http.Handler {
	s := &mcpServer{sb: sb, sessions: map[string]chan []byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", s.call)
	mux.HandleFunc("GET /mcp", s.listen)
	mux.HandleFunc("DELETE /mcp", s.end)
	mux.HandleFunc("GET /sse", s.listenOld)
	mux.HandleFunc("POST /message", s.callOld)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := sb.mcpToken()
		if err != nil || !equalToken(r.Header.Get("Authorization"), "Bearer "+token) {
			writeError(w, http.StatusUnauthorized, "invalid MCP gateway token")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *mcpServer) open() (id string, stream chan []byte) {
	const backlog = 64
	id, stream = newUUID(), make(chan []byte, backlog)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[id] = stream
	return id, stream
}

func (s *mcpServer) session(id string) (chan []byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream, ok := s.sessions[id]
	return stream, ok
}

func (s *mcpServer) close(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

type mcpMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string          `json:"name"`
		Arguments       json.RawMessage `json:"arguments"`
		URI             string          `json:"uri"`
		ProtocolVersion string          `json:"protocolVersion"`
	} `json:"params"`
}

// read takes one message or a batch.
func (s *mcpServer) read(w http.ResponseWriter, r *http.Request) (messages []mcpMessage, batch, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBody))
	if err == nil {
		if err = json.Unmarshal(body, &messages); err == nil {
			batch = true
		} else {
			messages = make([]mcpMessage, 1)
			err = json.Unmarshal(body, &messages[0])
		}
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "the body is not a JSON-RPC message")
		return nil, false, false
	}
	pendingOf(r.Context()).commit(body)
	return messages, batch, true
}

// call answers in the answer: as an event stream where a tool is called that
// reports on its way, else as JSON.
func (s *mcpServer) call(w http.ResponseWriter, r *http.Request) {
	messages, batch, ok := s.read(w, r)
	if !ok {
		return
	}
	if id := r.Header.Get(sessionHeader); id != "" {
		if _, known := s.session(id); !known {
			writeError(w, http.StatusNotFound, "no such session")
			return
		}
	}
	var answers []any
	streams := false
	for _, m := range messages {
		if m.Method == "initialize" {
			id, _ := s.open()
			w.Header().Set(sessionHeader, id)
		}
		streams = streams || m.Params.Name == "count"
		if len(m.ID) > 0 && m.Method != "" {
			answers = append(answers, answerMCP(m))
		}
	}
	switch {
	case len(answers) == 0:
		w.WriteHeader(http.StatusAccepted)
	case streams:
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 3 {
			sendEvent(w, "message", fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%d"}}`, n))
		}
		for _, a := range answers {
			b, _ := json.Marshal(a) // of maps and strings
			sendEvent(w, "message", b)
		}
	case batch:
		writeJSON(w, http.StatusOK, answers)
	default:
		writeJSON(w, http.StatusOK, answers[0])
	}
}

func (s *mcpServer) listen(w http.ResponseWriter, r *http.Request) {
	stream, known := s.session(r.Header.Get(sessionHeader))
	if !known {
		writeError(w, http.StatusNotFound, "no such session")
		return
	}
	s.carry(w, r, stream)
}

func (s *mcpServer) end(w http.ResponseWriter, r *http.Request) {
	s.close(r.Header.Get(sessionHeader))
	w.WriteHeader(http.StatusNoContent)
}

func (s *mcpServer) listenOld(w http.ResponseWriter, r *http.Request) {
	id, stream := s.open()
	defer s.close(id)
	w.Header().Set("Content-Type", "text/event-stream")
	sendEvent(w, "endpoint", []byte("/message?sessionId="+id))
	s.carry(w, r, stream)
}

func (s *mcpServer) callOld(w http.ResponseWriter, r *http.Request) {
	stream, known := s.session(r.URL.Query().Get("sessionId"))
	if !known {
		writeError(w, http.StatusNotFound, "no such session")
		return
	}
	messages, _, ok := s.read(w, r)
	if !ok {
		return
	}
	w.WriteHeader(http.StatusAccepted)
	for _, m := range messages {
		if len(m.ID) > 0 && m.Method != "" {
			b, _ := json.Marshal(answerMCP(m)) // of maps and strings
			stream <- b
		}
	}
}

// carry sends what a session's stream is to carry until the client leaves or the
// sandbox ends.
func (s *mcpServer) carry(w http.ResponseWriter, r *http.Request, stream chan []byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case b := <-stream:
			sendEvent(w, "message", b)
		case <-r.Context().Done():
			return
		case <-s.sb.gone:
			return
		}
	}
}

func sendEvent(w http.ResponseWriter, name string, data []byte) {
	_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) // The client is gone if this fails.
	_ = http.NewResponseController(w).Flush()
}

func answerMCP(m mcpMessage) map[string]any {
	answer := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	tool := func(name, description string) map[string]any {
		return map[string]any{"name": name, "description": description, "inputSchema": map[string]any{"type": "object"}}
	}
	switch m.Method {
	case "initialize":
		version := m.Params.ProtocolVersion
		if version == "" {
			version = "2025-06-18"
		}
		answer["result"] = map[string]any{
			"protocolVersion": version, "serverInfo": map[string]any{"name": "e2b-emulator", "version": "1"},
			"capabilities": map[string]any{"tools": map[string]any{}, "resources": map[string]any{}, "logging": map[string]any{}},
		}
	case "ping":
		answer["result"] = map[string]any{}
	case "tools/list":
		answer["result"] = map[string]any{"tools": []map[string]any{tool("echo", "Returns its arguments."), tool("count", "Reports three times, then returns its arguments.")}}
	case "tools/call":
		answer["result"] = map[string]any{"content": []map[string]any{{"type": "text", "text": string(m.Params.Arguments)}}}
	case "resources/list":
		answer["result"] = map[string]any{"resources": []any{}}
	case "resources/read":
		answer["result"] = map[string]any{"contents": []map[string]any{{"uri": m.Params.URI, "text": "read"}}}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "method not found"}
	}
	return answer
}

// mcpToken is the token the SDK reads from the sandbox.
func (sb *sandbox) mcpToken() (string, error) {
	f, err := sb.fs.open("/etc/mcp-gateway/.token", 0, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const longest = 1 << 10
	b, err := io.ReadAll(io.LimitReader(f, longest))
	return strings.TrimSpace(string(b)), err
}
