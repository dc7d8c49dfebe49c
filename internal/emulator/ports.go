package emulator

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// portTransport takes no proxy from the environment, and leaves no idle
// connection to a program that serves one at a time.
var portTransport = &http.Transport{DisableKeepAlives: true, DisableCompression: true}

// proxyPort forwards to a port that a process of the sandbox listens on. The
// sandboxes share the machine's loopback, so it matters whose port it is: where
// the machine can tell, no other program's is reachable.
func (sb *sandbox) proxyPort(w http.ResponseWriter, r *http.Request, port uint64) {
	const dialTimeout = time.Second
	if port > 65535 || port == 0 || sb.e.isOwn(port) || !sb.spawn.listens(sb.id, port) {
		portNotOpen(w, sb.id, port)
		return
	}
	conn, err := net.DialTimeout("tcp", fmtPort(port), dialTimeout)
	if err != nil {
		portNotOpen(w, sb.id, port)
		return
	}
	_ = conn.Close() // It only showed that the port is open.
	sb.mu.Lock()
	var mask *string
	if sb.network != nil {
		mask = sb.network.MaskRequestHost
	}
	sb.mu.Unlock()
	proxy := &httputil.ReverseProxy{
		Transport:     portTransport,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", fmtPort(port)
			p.Out.Host = p.In.Host
			if mask != nil {
				p.Out.Host = strings.ReplaceAll(*mask, "${PORT}", strings.TrimPrefix(fmtPort(port), "127.0.0.1:"))
				p.Out.Header.Set("X-Forwarded-Host", p.In.Host)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { portNotOpen(w, sb.id, port) },
	}
	proxy.ServeHTTP(w, r)
}

// mcpHandler is the least an MCP client can talk to: one tool, echo.
func (sb *sandbox) mcpHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" {
			http.NotFound(w, r)
			return
		}
		token, err := sb.mcpToken()
		if err != nil || !equalToken(r.Header.Get("Authorization"), "Bearer "+token) {
			writeError(w, http.StatusUnauthorized, "invalid MCP gateway token")
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBody))
		var call struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err != nil || json.Unmarshal(body, &call) != nil {
			writeError(w, http.StatusBadRequest, "the body is not a JSON-RPC message")
			return
		}
		pendingOf(r.Context()).commit(body)
		if len(call.ID) == 0 { // A notification.
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": call.ID}
		switch call.Method {
		case "initialize":
			answer["result"] = map[string]any{
				"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "e2b-emulator", "version": "1"},
			}
		case "ping":
			answer["result"] = map[string]any{}
		case "tools/list":
			answer["result"] = map[string]any{"tools": []map[string]any{{
				"name": "echo", "description": "Returns its arguments.", "inputSchema": map[string]any{"type": "object"},
			}}}
		case "tools/call":
			answer["result"] = map[string]any{"content": []map[string]any{{"type": "text", "text": string(call.Params)}}}
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "method not found"}
		}
		writeJSON(w, http.StatusOK, answer)
	})
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
