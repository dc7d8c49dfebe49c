package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
)

// mcpHouse is a gateway with a sandbox whose MCP gateway is spoken to.
type mcpHouse struct {
	*vaultHouse
	sandbox made
	token   string
}

func newMCPHouse(t *testing.T, edits ...func(*Config)) *mcpHouse {
	t.Helper()
	v := newVaultHouse(t, newEmulator(t), edits...)
	m := v.create(t, keyA, `{"templateID":"mcp-gateway"}`)
	token := v.do(t, "GET", "/files?path=/etc/mcp-gateway/.token&username=root", m.to("49983", "X-Access-Token", m.Envd), nil)
	require.Equal(t, 200, token.Status, token.Body)
	return &mcpHouse{v, m, strings.TrimSpace(token.Body)}
}

func (h *mcpHouse) post(t *testing.T, path, body string, more ...string) answer {
	t.Helper()
	return h.do(t, "POST", path, h.sandbox.to("50005", append([]string{
		"Authorization", "Bearer " + h.token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream",
	}, more...)...), strings.NewReader(body))
}

func toolCall(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

// arrived is what the MCP gateway in the sandbox got, of all the bodies that were
// sent to it.
func (h *mcpHouse) arrived() []string {
	var bodies []string
	for _, r := range h.reached() {
		if r.Header.Get("E2b-Sandbox-Port") == "50005" {
			bodies = append(bodies, string(r.Body))
		}
	}
	return bodies
}

// A tool is called after its arguments were judged, and what is blocked is
// answered so that the client's exception holds the reason.
func TestToolCallsAreJudged(t *testing.T) {
	h := newMCPHouse(t)
	got := h.post(t, "/mcp", toolCall("echo", `{"text":"hello","n":1.50}`))
	require.Equal(t, 200, got.Status, got.Body)
	require.Contains(t, got.Body, `"id":7`)
	require.Contains(t, got.Body, `hello`)
	saw := h.guard.saw()
	last := saw[len(saw)-1]
	require.Equal(t, guard.KindTool, last.Kind)
	require.Equal(t, "echo", last.Target)
	require.Equal(t, `{"text":"hello","n":1.50}`, last.Text)
	require.Equal(t, "team-a", last.Labels[guard.LabelClient])
	require.Equal(t, h.sandbox.ID, last.Labels[guard.LabelSandbox])
	sent := h.arrived()
	require.Equal(t, []string{toolCall("echo", `{"text":"hello","n":1.50}`)}, sent)

	for _, arguments := range []string{`{"text":"evil"}`, `{"text":"\u0065vil"}`, `{"a":[{"evil":1}]}`} {
		got = h.post(t, "/mcp", toolCall("echo", arguments))
		require.Equal(t, 200, got.Status)
		require.Equal(t, "application/json", got.Header.Get("Content-Type"))
		require.Contains(t, got.Body, `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"`)
		require.Contains(t, got.Body, "the text contains the word evil")
	}
	got = h.post(t, "/mcp", `[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},`+toolCall("evil", "{}")+`]`)
	require.Equal(t, 200, got.Status)
	require.Regexp(t, `^\[\{"jsonrpc":"2.0","id":"a","error":.*\},\{"jsonrpc":"2.0","id":7,"error":.*\}\]$`, got.Body)
	// Where no call waits for an answer, or the answers come elsewhere, the status says it.
	for path, body := range map[string]string{
		"/mcp":     `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"evil"}}`,
		"/message": toolCall("evil", "{}"), "/messages": toolCall("evil", "{}"), "/sse": toolCall("evil", "{}"),
	} {
		got = h.post(t, path, body)
		require.Equal(t, 403, got.Status, path)
		require.Contains(t, got.Body, "the text contains the word evil")
	}
	got = h.post(t, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"evil://x"}}`)
	require.Contains(t, got.Body, "the text contains the word evil")
	require.Equal(t, sent, h.arrived(), "nothing else was sent on")
}

// Every way of writing a call that the gateway does not read is refused.
func TestMCPBodiesThatAreNotReadAreRefused(t *testing.T) {
	h := newMCPHouse(t)
	evil := toolCall("echo", `{"text":"evil"}`)
	for name, tt := range map[string]struct {
		body   string
		header []string
		status int
	}{
		"another case":    {strings.Replace(evil, `"method"`, `"method":"ping","Method"`, 1), nil, 400},
		"twice":           {strings.Replace(evil, `"method"`, `"method":"ping","method"`, 1), nil, 400},
		"gzip":            {gzipMember(evil), []string{"Content-Encoding", "gzip"}, 415},
		"UTF-16":          {utf16(evil), []string{"Content-Type", "application/json; charset=utf-16"}, 415},
		"UTF-16, unsaid":  {utf16(evil), nil, 400},
		"text":            {evil, []string{"Content-Type", "text/plain"}, 415},
		"two messages":    {toolCall("echo", "{}") + evil, nil, 400},
		"lines":           {toolCall("echo", "{}") + "\n" + evil, nil, 400},
		"a broken end":    {evil[:len(evil)-1], nil, 400},
		"more than it is": {evil + "}", nil, 400},
	} {
		got := h.post(t, "/mcp", tt.body, tt.header...)
		require.Equal(t, tt.status, got.Status, name+got.Body)
		require.Contains(t, got.Body, `"jsonrpc":"2.0","id":null`, name)
	}
	for _, path := range []string{"/", "/mcp/", "/MCP", "//mcp", "/mcp/x", "/admin", "/tools/call"} {
		require.Equal(t, 403, h.post(t, path, evil).Status, path)
	}
	for _, method := range []string{"PUT", "PATCH"} {
		require.Equal(t, 403, h.do(t, method, "/mcp", h.sandbox.to("50005", "Content-Type", "application/json"), strings.NewReader(evil)).Status)
	}
	require.Empty(t, h.arrived())
	require.NotContains(t, fmt.Sprint(h.guard.saw()), "evil")
}

func utf16(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r))
		b.WriteByte(0)
	}
	return b.String()
}

// A session is opened, listened to and closed, with its headers, as without the
// gateway.
func TestMCPSessions(t *testing.T) {
	h := newMCPHouse(t)
	got := h.post(t, "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	require.Equal(t, 200, got.Status, got.Body)
	session := got.Header.Get("Mcp-Session-Id")
	require.NotEmpty(t, session)
	require.Equal(t, 202, h.post(t, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-06-18").Status)
	reached := h.reached()
	require.Equal(t, "2025-06-18", reached[len(reached)-1].Header.Get("Mcp-Protocol-Version"))

	got = h.post(t, "/mcp", toolCall("count", `{"a":1}`), "Mcp-Session-Id", session)
	require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
	require.Equal(t, 4, strings.Count(got.Body, "event: message\n"))

	closed := h.do(t, "DELETE", "/mcp", h.sandbox.to("50005", "Authorization", "Bearer "+h.token, "Mcp-Session-Id", session), nil)
	require.Equal(t, 204, closed.Status)
	require.Equal(t, 404, h.post(t, "/mcp", toolCall("echo", "{}"), "Mcp-Session-Id", session).Status)
	require.Equal(t, 401, h.post(t, "/mcp", toolCall("echo", "{}"), "Authorization", "Bearer x").Status, "the sandbox's own token is its to check")
}

// oldStream opens the older transport's event stream and returns its events.
func (h *mcpHouse) oldStream(t *testing.T) (next func() string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", h.url+"/sse", http.NoBody)
	require.NoError(t, err)
	req.Header = h.sandbox.to("50005", "Authorization", "Bearer "+h.token, "Accept", "text/event-stream")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, 200, resp.StatusCode)
	lines := bufio.NewReader(resp.Body)
	return func() string {
		var data string
		for {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			if line == "\n" {
				return data
			}
			if d, ok := strings.CutPrefix(line, "data: "); ok {
				data += strings.TrimSuffix(d, "\n")
			}
		}
	}
}

// On the older transport answers come on a stream of their own, at once.
func TestMCPOverTheOlderTransport(t *testing.T) {
	h := newMCPHouse(t)
	next := h.oldStream(t)
	endpoint := next()
	require.True(t, strings.HasPrefix(endpoint, "/message?sessionId="), endpoint)
	require.Equal(t, 202, h.post(t, endpoint, toolCall("echo", `{"text":"hello"}`)).Status)
	require.Contains(t, next(), "hello")
	require.Equal(t, 403, h.post(t, endpoint, toolCall("echo", `{"text":"evil"}`)).Status)
	require.Equal(t, 202, h.post(t, endpoint, `{"jsonrpc":"2.0","id":8,"method":"ping"}`).Status)
	require.Contains(t, next(), `"id":8`)
}

// What a tool answers is searched for secrets as any output is, however its JSON
// spells them and over both transports.
func TestToolResultsHideSecrets(t *testing.T) {
	const key = "e2b_00000000000000000000000000000000000000aa"
	h := newMCPHouse(t)
	var escaped strings.Builder
	for _, r := range key {
		fmt.Fprintf(&escaped, `\u%04x`, r)
	}
	for _, tool := range []string{"echo", "count"} { // one answer, and a stream of events
		for _, spelled := range []string{key, escaped.String()} {
			got := h.post(t, "/mcp", toolCall(tool, `{"text":"the key is `+spelled+`."}`))
			require.Equal(t, 200, got.Status, got.Body)
			require.NotContains(t, got.Body, key)
			require.NotContains(t, got.Body, escaped.String())
			require.Contains(t, got.Body, "the key is ")
		}
	}
}

// Results are recorded without their text, or judged, wherever they come.
func TestToolResults(t *testing.T) {
	recorded := newMCPHouse(t)
	// The emulator's tools answer with their arguments; the guard's word is put
	// together on the way there, so that only the result has it.
	arguments := `{"text":"hello"}`
	for _, tool := range []string{"echo", "count"} {
		require.Contains(t, recorded.post(t, "/mcp", toolCall(tool, arguments)).Body, "hello")
	}
	lines := recorded.log.FilterMessage("tool result").All()
	require.Len(t, lines, 2)
	require.Equal(t, "count", lines[1].ContextMap()["tool"])
	require.NotContains(t, fmt.Sprint(lines[1].ContextMap()), "hello")
	require.Len(t, lines[1].ContextMap()["sha256"], 64)

	judged := newMCPHouse(t, func(cfg *Config) {
		cfg.JudgeToolResults = true
		cfg.Guard = resultGuard{cfg.Guard.(*wordGuard)}
	})
	for _, tool := range []string{"echo", "count"} {
		require.Contains(t, judged.post(t, "/mcp", toolCall(tool, arguments)).Body, "hello")
		got := judged.post(t, "/mcp", toolCall(tool, `{"text":"secret"}`))
		require.Equal(t, 200, got.Status)
		require.NotContains(t, got.Body, `"content"`)
		require.Contains(t, got.Body, `"id":7,"error":{"code":-32000,"message":"What the tool answered was blocked; the tool has run. `)
		if tool == "count" {
			require.Equal(t, 4, strings.Count(got.Body, "event: message\n"), "what is no result flows on")
		}
	}
	got := judged.post(t, "/mcp", "["+toolCall("echo", `{"text":"secret"}`)+`,{"jsonrpc":"2.0","id":9,"method":"ping"}]`)
	require.Regexp(t, `^\[\{.*"id":7,"error".*\},\{.*"id":9,"error".*\}\]$`, got.Body)

	next := judged.oldStream(t)
	endpoint := next()
	require.Equal(t, 202, judged.post(t, endpoint, toolCall("echo", `{"text":"secret"}`)).Status)
	require.Contains(t, next(), "What the tool answered was blocked")
	require.Equal(t, 202, judged.post(t, endpoint, toolCall("echo", `{"text":"hello"}`)).Status)
	require.Contains(t, next(), "hello", "the stream goes on")
}

// resultGuard blocks results with the word secret.
type resultGuard struct{ *wordGuard }

func (g resultGuard) Review(ctx context.Context, s guard.Subject) (guard.Verdict, error) {
	if s.Labels[guard.LabelAction] == "result" && strings.Contains(s.Text, "secret") {
		return guard.Verdict{Decision: guard.Block, Guard: "result", Reasoning: "the result holds a secret."}, nil
	}
	return g.wordGuard.Review(ctx, s)
}

// An answer that cannot be read is handed on only where results are not judged.
func TestToolResultsThatAreNotRead(t *testing.T) {
	for name, upstream := range map[string]http.HandlerFunc{
		"text": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a secret") },
		"no JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "a secret")
		},
		"an event": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: a secret\n\n")
		},
		"two keys": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{},"result":{"a":"a secret"}}`)
		},
		"an opener": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message\ndata: {\"id\":7,\ndata: a secret}\n\n")
		},
	} {
		for _, judged := range []bool{false, true} {
			h := newHouse(t, upstream, func(cfg *Config) { cfg.JudgeToolResults = judged })
			got := h.do(t, "POST", "/mcp", toSandbox("50005", "Content-Type", "application/json"), strings.NewReader(toolCall("echo", "{}")))
			require.Equal(t, 200, got.Status, name)
			require.Equal(t, !judged, strings.Contains(got.Body, "a secret"), "%s: %s", name, got.Body)
			require.Equal(t, judged, strings.Contains(got.Body, `"id":7,"error"`), "%s: %s", name, got.Body)
		}
	}
}

// The commands of MCP servers are judged when the sandbox is created.
func TestCommandsOfMCPServersAreJudged(t *testing.T) {
	h := newMCPHouse(t)
	create := func(mcp string) answer {
		return h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", keyA), strings.NewReader(`{"templateID":"mcp-gateway","mcp":`+mcp+`}`))
	}
	require.Equal(t, 201, create(`{"github/o/r":{"runCmd":"npx .","installCmd":"npm ci"},"exa":{"apiKey":"k"}}`).Status)
	before := h.running(t)
	for _, mcp := range []string{`{"github/o/r":{"runCmd":"evil"}}`, `{"github/o/r":{"installCmd":"\u0065vil"}}`, `{"a":{"b":[{"c":"evil"}]}}`} {
		got := create(mcp)
		require.Equal(t, 403, got.Status, got.Body)
	}
	require.Equal(t, before, h.running(t))
}
