package emulator

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	require.True(t, ok)
	return addr.Port
}

// server is a tiny HTTP server that shows what it was asked, and upgrades.
const server = `
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade") == "websocket":
            self.send_response(101)
            self.send_header("Upgrade", "websocket"); self.send_header("Connection", "Upgrade")
            self.end_headers()
            self.wfile.write(b"echo:" + self.rfile.readline()); self.wfile.flush()
            return
        body = (self.path + " " + self.headers.get("Host", "")).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
`

func TestAPortOfTheSandboxIsProxied(t *testing.T) {
	l := newLab(t, Options{Domain: "e2b.test"})
	b := l.create("/v2/sandboxes", `{"templateID":"base","network":{"maskRequestHost":"localhost:${PORT}"}}`)
	other := l.newBox()
	port := freePort(t)
	require.Equal(t, http.StatusOK, b.envd(http.MethodPost, "/files?path=s.py", server, "Content-Type", octet).status)
	b.background(command(fmt.Sprintf("exec python3 s.py %d", port)))
	host := fmt.Sprintf("%d-%s.e2b.test", port, b.id)
	var a answer
	require.Eventually(t, func() bool {
		a = l.do(http.MethodGet, "/hello?x=1", "", "Host", host)
		return a.status == http.StatusOK
	}, soon, tick)
	require.Equal(t, fmt.Sprintf("/hello?x=1 localhost:%d", port), a.body)
	require.Equal(t, http.StatusBadGateway, other.do(http.MethodGet, "/", "", other.headers(fmt.Sprint(port))...).status,
		"it is not another sandbox's port")

	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", host)
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	_, err = conn.Write([]byte("ping\n"))
	require.NoError(t, err)
	echo, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "echo:ping\n", echo)
}

func TestAPortOfTheMachineIsNotReachable(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	require.True(t, ok)
	require.Equal(t, http.StatusBadGateway, b.do(http.MethodGet, "/", "", b.headers(fmt.Sprint(addr.Port))...).status)
}

func TestMCP(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	token := b.read("/etc/mcp-gateway/.token")
	call := func(token, body string) answer {
		return b.do(http.MethodPost, "/mcp", body, b.headers("50005", "Authorization", "Bearer "+token)...)
	}
	require.Equal(t, http.StatusUnauthorized, call("x", "{}").status)
	require.Contains(t, call(token, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).body, `"name":"echo"`)
	require.Contains(t, call(token, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`).body, `"id":2`)
	require.Equal(t, http.StatusAccepted, call(token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).status)
	require.EqualValues(t, 0, b.start(command("mcp-gateway --config '{}'")).end.GetExitCode(), "create with mcp runs this")
}
