package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	fspb "github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	pb "github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is an emulator behind an HTTP server, and one way to talk to it.
type lab struct {
	t      *testing.T
	e      *Emulator
	url    string
	client *http.Client
}

func newLab(t *testing.T, opts Options) *lab {
	t.Helper()
	e, err := New(opts)
	require.NoError(t, err)
	server := httptest.NewServer(e)
	l := &lab{t: t, e: e, url: server.URL, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	t.Cleanup(func() {
		l.client.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
		require.NoError(t, e.Close())
		_, err := os.Stat(e.dir)
		require.ErrorIs(t, err, os.ErrNotExist, "the emulator's folder must be gone")
	})
	return l
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &v), a.body)
	return v
}

// do sends a request with headers given as name, value, ….
func (l *lab) do(method, path, body string, headers ...string) answer {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, strings.NewReader(body))
	require.NoError(l.t, err)
	return l.send(req, headers...)
}

func (l *lab) send(req *http.Request, headers ...string) answer {
	l.t.Helper()
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := l.client.Do(req)
	require.NoError(l.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(l.t, err)
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// api calls the control plane with a key.
func (l *lab) api(method, path, body string) answer {
	l.t.Helper()
	return l.do(method, path, body, "X-API-Key", "any", "Content-Type", "application/json")
}

// box is one sandbox of a lab.
type box struct {
	*lab
	id, token, traffic string
}

func (l *lab) create(path, body string) box {
	l.t.Helper()
	a := l.api(http.MethodPost, path, body)
	require.Equal(l.t, http.StatusCreated, a.status, a.body)
	v := a.json(l.t)
	text := func(name string) string {
		s, _ := v[name].(string)
		return s
	}
	return box{l, text("sandboxID"), text("envdAccessToken"), text("trafficAccessToken")}
}

// newBox makes a secure sandbox of the code interpreter's template.
func (l *lab) newBox() box {
	l.t.Helper()
	return l.create("/v2/sandboxes", `{"templateID":"code-interpreter-v1"}`)
}

func (b box) headers(port string, more ...string) []string {
	h := []string{"E2b-Sandbox-Id", b.id, "E2b-Sandbox-Port", port}
	if b.token != "" {
		h = append(h, "X-Access-Token", b.token)
	}
	return append(h, more...)
}

// envd calls a REST route of envd.
func (b box) envd(method, path, body string, headers ...string) answer {
	b.t.Helper()
	return b.do(method, path, body, b.headers("49983", headers...)...)
}

// interp calls the code interpreter.
func (b box) interp(method, path, body string, headers ...string) answer {
	b.t.Helper()
	return b.do(method, path, body, b.headers("49999", append([]string{"Content-Type", "application/json"}, headers...)...)...)
}

func (b box) exists() bool {
	b.t.Helper()
	return b.envd(http.MethodGet, "/health", "").status == http.StatusNoContent
}

func address[T any](b box, msg *T, headers ...string) *connect.Request[T] {
	req := connect.NewRequest(msg)
	h := b.headers("49983", headers...)
	for i := 0; i+1 < len(h); i += 2 {
		req.Header().Set(h[i], h[i+1])
	}
	return req
}

func unary[Req, Res any](b box, procedure string, msg *Req, headers ...string) (*Res, error) {
	c := connect.NewClient[Req, Res](b.client, b.url+procedure, connect.WithProtoJSON())
	res, err := c.CallUnary(b.t.Context(), address(b, msg, headers...))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

func (b box) stat(path string) (*fspb.EntryInfo, error) {
	res, err := unary[fspb.StatRequest, fspb.StatResponse](b, "/filesystem.Filesystem/Stat", &fspb.StatRequest{Path: path})
	return res.GetEntry(), err
}

// command is a shell command as the SDKs send it.
func command(line string) *pb.StartRequest {
	off := false
	return &pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", line}}, Stdin: &off}
}

// finished is what a stream of process events said.
type finished struct {
	pid            uint32
	stdout, stderr string
	pty            string
	keepalives     int
	end            *pb.ProcessEvent_EndEvent
	err            error
}

func (f *finished) take(e *pb.ProcessEvent) {
	switch e := e.GetEvent().(type) {
	case *pb.ProcessEvent_Start:
		f.pid = e.Start.GetPid()
	case *pb.ProcessEvent_Data:
		f.stdout += string(e.Data.GetStdout())
		f.stderr += string(e.Data.GetStderr())
		f.pty += string(e.Data.GetPty())
	case *pb.ProcessEvent_Keepalive:
		f.keepalives++
	case *pb.ProcessEvent_End:
		f.end = e.End
	}
}

func (b box) stream(ctx context.Context, req *pb.StartRequest, headers ...string) *connect.ServerStreamForClient[pb.StartResponse] {
	b.t.Helper()
	c := connect.NewClient[pb.StartRequest, pb.StartResponse](b.client, b.url+"/process.Process/Start", connect.WithProtoJSON())
	stream, err := c.CallServerStream(ctx, address(b, req, headers...))
	require.NoError(b.t, err)
	return stream
}

// start runs a process to its end.
func (b box) start(req *pb.StartRequest, headers ...string) finished {
	b.t.Helper()
	stream := b.stream(b.t.Context(), req, headers...)
	defer stream.Close()
	var f finished
	for stream.Receive() {
		f.take(stream.Msg().GetEvent())
	}
	f.err = stream.Err()
	return f
}

func (b box) run(line string) string {
	b.t.Helper()
	f := b.start(command(line))
	require.NoError(b.t, f.err)
	require.NotNil(b.t, f.end)
	return f.stdout
}

// background starts a process and returns once its pid is known; the stream
// stays open until the test ends.
func (b box) background(req *pb.StartRequest, headers ...string) (uint32, *connect.ServerStreamForClient[pb.StartResponse]) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	stream := b.stream(ctx, req, headers...)
	b.t.Cleanup(func() {
		cancel()
		_ = stream.Close()
	})
	require.True(b.t, stream.Receive(), "no start event: %v", stream.Err())
	return stream.Msg().GetEvent().GetStart().GetPid(), stream
}

// lines decodes an NDJSON answer.
func lines(t *testing.T, body string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(body) {
		var v map[string]any
		d := json.NewDecoder(bytes.NewBufferString(line))
		require.NoError(t, d.Decode(&v), line)
		out = append(out, v)
	}
	return out
}

const (
	soon = 10 * time.Second
	tick = 10 * time.Millisecond
)

func jsonList(t *testing.T, body string) []map[string]any {
	t.Helper()
	var v []map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &v), body)
	return v
}
