package gateway

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/emulator"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// lab is a gateway in front of the emulator, which records what arrives and
// reads it with the libraries E2B reads it with. One sandbox is running.
type lab struct {
	emu   *emulator.Emulator
	guard *wordGuard
	log   *observer.ObservedLogs
	held  func() int64

	plain, secure  *httptest.Server // HTTP/1 and h2c; TLS with HTTP/2
	h2c, h2        *http.Transport
	sandbox, token string
	pid            uint32 // of the shell that takes input
	template       string // the path that builds one
}

const labKey = "e2b_cc"

func newLab(t *testing.T, edits ...func(*Config)) *lab {
	t.Helper()
	emu, err := emulator.New(emulator.Options{})
	require.NoError(t, err)
	up := httptest.NewServer(emu)
	core, log := observer.New(zapcore.DebugLevel)
	l := &lab{emu: emu, guard: new(wordGuard), log: log}
	g := newGateway(t, up.URL, append([]func(*Config){func(cfg *Config) {
		cfg.Guard, cfg.Logger = l.guard, zap.New(core)
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
		cfg.Policy.Limits.MemoryBytes = 0 // the test's own process may have a lower limit
	}}, edits...)...)
	l.held = g.bodies.Held

	l.plain = httptest.NewUnstartedServer(g)
	l.plain.Config.Protocols = new(http.Protocols)
	l.plain.Config.Protocols.SetHTTP1(true)
	l.plain.Config.Protocols.SetUnencryptedHTTP2(true)
	l.plain.Start()
	l.secure = httptest.NewUnstartedServer(g)
	l.secure.EnableHTTP2 = true
	l.secure.StartTLS()
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	l.h2c = &http.Transport{Protocols: two, DisableCompression: true}
	l.h2 = l.secure.Client().Transport.(*http.Transport)
	l.h2.DisableCompression = true
	t.Cleanup(func() {
		l.h2c.CloseIdleConnections()
		l.h2.CloseIdleConnections()
		for _, s := range []*httptest.Server{l.plain, l.secure, up} {
			s.CloseClientConnections()
			s.Close()
		}
		require.NoError(t, emu.Close())
	})

	created := l.send(t, wire{target: "/v2/sandboxes", headers: []string{"X-API-KEY", labKey}, body: `{"templateID":"code-interpreter-v1"}`})
	require.Equal(t, http.StatusCreated, created.Status, created.Body)
	var sb struct{ SandboxID, EnvdAccessToken string }
	require.NoError(t, json.Unmarshal([]byte(created.Body), &sb))
	l.sandbox, l.token = sb.SandboxID, sb.EnvdAccessToken
	return l
}

// newTemplate begins a template and returns the path that builds it.
func (l *lab) newTemplate(t *testing.T) string {
	t.Helper()
	created := l.send(t, wire{target: "/v3/templates", headers: []string{"X-API-KEY", labKey, "Content-Type", "application/json"}, body: `{"name":"matrix"}`})
	require.Equal(t, http.StatusAccepted, created.Status, created.Body)
	var template struct{ TemplateID, BuildID string }
	require.NoError(t, json.Unmarshal([]byte(created.Body), &template))
	return "/v2/templates/" + template.TemplateID + "/builds/" + template.BuildID
}

// to returns the headers that route a call to a port of the sandbox.
func (l *lab) to(port string, more ...string) []string {
	return append([]string{"E2b-Sandbox-Id", l.sandbox, "E2b-Sandbox-Port", port, "X-Access-Token", l.token}, more...)
}

// wire is one request as it goes over the wire, byte for byte.
type wire struct {
	method  string   // POST if empty
	target  string   // as in the request line
	headers []string // name, value, …; repeated names are sent repeatedly
	body    string
	proto   string // "HTTP/1.1" (if empty), "HTTP/1.0", "h2c", "h2"
	host    string
	pieces  bool     // chunked, one byte a chunk
	expect  bool     // Expect: 100-continue
	trailer []string // name, value of a trailer
}

func (w wire) set(name, value string) wire {
	w.headers = slices.Clone(w.headers)
	for i := 0; i < len(w.headers); i += 2 {
		if strings.EqualFold(w.headers[i], name) {
			w.headers[i+1] = value
			return w
		}
	}
	w.headers = append(w.headers, name, value)
	return w
}

func (w wire) add(name, value string) wire {
	w.headers = append(slices.Clone(w.headers), name, value)
	return w
}

func (w wire) get(name string) string {
	for i := 0; i < len(w.headers); i += 2 {
		if strings.EqualFold(w.headers[i], name) {
			return w.headers[i+1]
		}
	}
	return ""
}

const labTimeout = 20 * time.Second

// send puts a request on a connection of its own and reads the answer.
func (l *lab) send(t *testing.T, w wire) answer {
	t.Helper()
	if w.method == "" {
		w.method = http.MethodPost
	}
	if w.host == "" {
		w.host = "gw.example"
	}
	if w.proto == "h2c" || w.proto == "h2" {
		return l.sendTwo(t, w)
	}
	conn, err := net.Dial("tcp", l.plain.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(labTimeout)))
	r := bufio.NewReader(conn)
	_, err = io.WriteString(conn, w.head())
	require.NoError(t, err)
	if w.expect {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		if !strings.Contains(line, " 100 ") {
			return readAnswer(bufio.NewReader(io.MultiReader(strings.NewReader(line), r)), w.method)
		}
		_, err = r.ReadString('\n')
		require.NoError(t, err)
	}
	_, _ = io.WriteString(conn, w.payload()) // the answer may be there, and the connection closed, before all is sent
	return readAnswer(r, w.method)
}

// sendRaw writes bytes as they are and reads what comes back until the gateway
// closes or falls silent.
func (l *lab) sendRaw(t *testing.T, raw string) {
	t.Helper()
	conn, err := net.Dial("tcp", l.plain.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(labTimeout)))
	// The gateway may close before all is sent: a reset is an answer too.
	_, _ = io.WriteString(conn, raw)
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}

func (w wire) chunked() bool { return w.pieces || len(w.trailer) > 0 }

func (w wire) head() string {
	var b strings.Builder
	proto := w.proto
	if proto == "" {
		proto = "HTTP/1.1"
	}
	fmt.Fprintf(&b, "%s %s %s\r\nHost: %s\r\n", w.method, w.target, proto, w.host)
	for i := 0; i < len(w.headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", w.headers[i], w.headers[i+1])
	}
	if w.expect {
		b.WriteString("Expect: 100-continue\r\n")
	}
	if len(w.trailer) > 0 {
		fmt.Fprintf(&b, "Trailer: %s\r\n", w.trailer[0])
	}
	if w.chunked() {
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	} else {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(w.body))
	}
	return b.String()
}

func (w wire) payload() string {
	if !w.chunked() {
		return w.body
	}
	var b strings.Builder
	for i := range len(w.body) {
		fmt.Fprintf(&b, "1\r\n%s\r\n", w.body[i:i+1])
	}
	b.WriteString("0\r\n")
	if len(w.trailer) > 0 {
		fmt.Fprintf(&b, "%s: %s\r\n", w.trailer[0], w.trailer[1])
	}
	b.WriteString("\r\n")
	return b.String()
}

func readAnswer(r *bufio.Reader, method string) answer {
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return answer{Body: err.Error()} // no answer is a refusal of the server's own
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		all = append(all, err.Error()...)
	}
	return answer{resp.StatusCode, resp.Header, string(all)}
}

// sendTwo sends the request over HTTP/2, on a connection of its own: net/http ends
// one whose request goes on after its answer.
func (l *lab) sendTwo(t *testing.T, w wire) answer {
	t.Helper()
	base, transport := l.plain.URL, l.h2c
	if w.proto == "h2" {
		base, transport = l.secure.URL, l.h2
	}
	var body io.Reader = bytes.NewReader([]byte(w.body))
	if w.chunked() {
		body = io.MultiReader(body) // of unknown length
	}
	req, err := http.NewRequestWithContext(t.Context(), w.method, base+w.target, body)
	require.NoError(t, err)
	req.Host = w.host
	for i := 0; i < len(w.headers); i += 2 {
		req.Header.Add(w.headers[i], w.headers[i+1])
	}
	if len(w.trailer) > 0 {
		req.Trailer = http.Header{w.trailer[0]: {w.trailer[1]}}
	}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, 2, resp.ProtoMajor)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header, string(all)}
}

// recorded is what arrived at the emulator, but for what the gateway read on its
// own account.
func (l *lab) recorded() []emulator.Record {
	return slices.DeleteFunc(l.emu.Recorded(), func(r emulator.Record) bool { return ownRead(r.Header, r.Path) })
}

// mark remembers how much was seen so far.
func (l *lab) mark() (records, subjects int) { return len(l.recorded()), len(l.guard.saw()) }

// since is what arrived at the sandbox and what the guard saw after a mark.
func (l *lab) since(records, subjects int) ([]emulator.Record, []guard.Subject) {
	return l.recorded()[records:], l.guard.saw()[subjects:]
}

// started is the process of a recorded Start as the client asked for it.
func started(t *testing.T, r emulator.Record) *processpb.ProcessConfig {
	t.Helper()
	var start processpb.StartRequest
	require.NoError(t, protojson.Unmarshal(r.Body, &start))
	envd.Unwrap(start.GetProcess())
	return start.GetProcess()
}

func gzipMember(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

// refused reports whether an answer says no, in whatever form its plane has.
func refused(a answer) bool {
	return a.Status == 0 || a.Status >= http.StatusBadRequest ||
		strings.Contains(a.Body, `"error":{"code":`) || strings.Contains(a.Body, `"type":"error"`) ||
		strings.Contains(a.Body, "grpc-status: ") || a.Header.Get("Grpc-Status") != "" && a.Header.Get("Grpc-Status") != "0"
}

// start begins a process and leaves its stream; it returns the pid.
func (l *lab) start(t *testing.T, request string) uint32 {
	t.Helper()
	return l.startWire(t, wire{target: "/process.Process/Start", body: string(frame(request)), headers: l.to("49983", "Content-Type", "application/connect+json")})
}

// startWire is start with a request of its own.
func (l *lab) startWire(t *testing.T, w wire) uint32 {
	t.Helper()
	w.method, w.host = http.MethodPost, "gw.example"
	conn, err := net.Dial("tcp", l.plain.Listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(labTimeout)))
	_, err = io.WriteString(conn, w.head()+w.payload())
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { // in this order: the stream goes on
		_ = conn.Close()
		_ = resp.Body.Close()
	}()
	head := make([]byte, 5)
	_, err = io.ReadFull(resp.Body, head)
	require.NoError(t, err)
	payload := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(resp.Body, payload)
	require.NoError(t, err)
	var m processpb.StartResponse
	require.NoError(t, protojson.Unmarshal(payload, &m), string(payload))
	require.NotZero(t, m.GetEvent().GetStart().GetPid(), string(payload))
	return m.GetEvent().GetStart().GetPid()
}

// startShell starts a shell that runs its standard input.
func (l *lab) startShell(t *testing.T) uint32 {
	t.Helper()
	return l.start(t, `{"process":{"cmd":"/bin/sh"},"stdin":true}`)
}

// closeStdin ends the shell.
func (l *lab) closeStdin(t *testing.T) {
	t.Helper()
	got := l.send(t, wire{target: "/process.Process/CloseStdin", headers: l.to("49983", "Content-Type", "application/json"), body: fmt.Sprintf(`{"process":{"pid":%d}}`, l.pid)})
	require.Equal(t, http.StatusOK, got.Status, got.Body)
}

// streamStart is the first message of a stream of input, as the request is written.
func (l *lab) streamStart(w wire) string {
	start := &processpb.StreamInputRequest{Event: &processpb.StreamInputRequest_Start{Start: &processpb.StreamInputRequest_StartEvent{Process: byPID(l.pid)}}}
	if strings.Contains(w.get("Content-Type"), "proto") {
		b, err := proto.Marshal(start)
		if err != nil {
			panic(err)
		}
		return string(frame(string(b)))
	}
	return string(frame(fmt.Sprintf(`{"start":{"process":{"pid":%d}}}`, l.pid)))
}
