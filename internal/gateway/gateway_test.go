package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
)

func TestMain(m *testing.M) {
	if upstream := os.Getenv(forwardOnceEnv); upstream != "" {
		os.Exit(forwardOnce(upstream))
	}
	if given := os.Getenv(serveAuditedEnv); given != "" {
		os.Exit(serveAudited(given))
	}
	goleak.VerifyTestMain(m)
}

// received is one request as the upstream saw it.
type received struct {
	Method, Path, RawPath, Query, Host string
	Header                             http.Header
	Body                               []byte
	ContentLength                      int64
}

// house is a gateway between a client and a scripted upstream.
type house struct {
	url  string
	log  *observer.ObservedLogs
	held func() int64 // bytes of bodies the gateway buffers

	mu   sync.Mutex
	seen []received
}

// wordGuard blocks every subject whose text or target contains "evil".
type wordGuard struct {
	mu       sync.Mutex
	subjects []guard.Subject
}

func (g *wordGuard) Review(_ context.Context, s guard.Subject) (guard.Verdict, error) {
	g.mu.Lock()
	g.subjects = append(g.subjects, s)
	g.mu.Unlock()
	if strings.Contains(s.Text+s.Target, "evil") {
		return guard.Verdict{Decision: guard.Block, Guard: "word", Reasoning: "the text contains the word evil."}, nil
	}
	return guard.Verdict{Decision: guard.Pass, Guard: "word"}, nil
}

func (g *wordGuard) saw() []guard.Subject {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]guard.Subject(nil), g.subjects...)
}

func testPolicy() policy.Policy {
	return policy.Policy{Limits: policy.Limits{
		LifetimeDefault: 5 * time.Minute, LifetimeMax: time.Hour,
		WallClock: 5 * time.Minute, BackgroundWallClock: time.Hour,
		CPUSeconds: 300, MemoryBytes: 1 << 30, OutputBytes: 10 << 20,
	}}
}

// newHouse starts both ends. The upstream records each request, body included,
// and then answers with upstream (200 and {} if nil).
func newHouse(t *testing.T, upstream http.HandlerFunc, edit func(*Config)) *house {
	t.Helper()
	h := new(house)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.seen = append(h.seen, received{
			Method: r.Method, Path: r.URL.Path, RawPath: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host,
			Header: r.Header.Clone(), Body: b, ContentLength: r.ContentLength,
		})
		h.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(b))
		if upstream != nil {
			upstream(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(up.Close)
	upURL, err := url.Parse(up.URL)
	require.NoError(t, err)

	core, log := observer.New(zapcore.DebugLevel)
	h.log = log
	cfg := Config{
		Upstream: Upstream{APIURL: upURL, SandboxURL: upURL},
		Guard:    new(wordGuard), Policy: testPolicy(), Logger: zap.New(core),
	}
	cfg.Body.TempDir = t.TempDir()
	if edit != nil {
		edit(&cfg)
	}
	g, err := New(cfg)
	require.NoError(t, err)
	h.held = g.bodies.Held
	front := httptest.NewServer(g)
	t.Cleanup(func() {
		front.Close()
		require.NoError(t, g.Close())
	})
	h.url = front.URL
	return h
}

// reached is what arrived at the upstream.
func (h *house) reached() []received {
	h.mu.Lock()
	defer h.mu.Unlock()
	var seen []received
	for _, r := range h.seen {
		if !ownRead(r.Header, r.Path) {
			seen = append(seen, r)
		}
	}
	return seen
}

// ownRead reports whether a request is one of those by which the gateway looks for
// a file, on its own account.
func ownRead(h http.Header, path string) bool {
	return h.Get("User-Agent") == ownAgent && (path == "/files" || path == "/filesystem.Filesystem/Stat")
}

type answer struct {
	Status int
	Header http.Header
	Body   string
}

func (h *house) do(t *testing.T, method, path string, header http.Header, body io.Reader) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.url+path, body)
	require.NoError(t, err)
	for k, v := range header {
		req.Header[k] = v
	}
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header, string(all)}
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// toSandbox are the headers of a data-plane call in URL form.
func toSandbox(port string, more ...string) http.Header {
	return headers(append([]string{"E2b-Sandbox-Id", "isbx1", "E2b-Sandbox-Port", port}, more...)...)
}

func frame(payload string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(payload)))
	return append(b, payload...)
}

func endFrame(payload string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{2}, uint32(len(payload)))
	return append(b, payload...)
}

// command is the framed body of process.start for a shell command.
func command(t *testing.T, line string) io.Reader {
	t.Helper()
	b, err := json.Marshal(map[string]any{"process": map[string]any{"cmd": "/bin/bash", "args": []string{"-l", "-c", line}}, "stdin": false})
	require.NoError(t, err)
	return bytes.NewReader(frame(string(b)))
}

func startHeaders(more ...string) http.Header {
	return toSandbox("49983", append([]string{"Content-Type", "application/connect+json", "Connect-Protocol-Version", "1"}, more...)...)
}

func streamAnswer(w http.ResponseWriter, frames ...[]byte) {
	w.Header().Set("Content-Type", "application/connect+json")
	for _, f := range frames {
		_, _ = w.Write(f)
		_ = http.NewResponseController(w).Flush()
	}
}

func vault(cfg *Config) {
	cfg.Upstream.APIKey = redact.NewSecret("e2b_00000000000000000000000000000000000000aa")
	cfg.Clients = []Client{
		{Name: "team-a", Key: redact.NewSecret("e2b_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")},
		{Name: "team-b", Key: redact.NewSecret("e2b_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")},
	}
	cfg.Seal = testSealer("11")
}

func gzipped(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, s)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// newStreamingHouse is a house whose upstream reads the body itself; held, if
// not nil, becomes a function that tells how much the gateway buffers.
func newStreamingHouse(t *testing.T, upstream http.Handler, held *func() int64, edits ...func(*Config)) string {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	g := newGateway(t, up.URL, edits...)
	if held != nil {
		*held = g.bodies.Held
	}
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	return front.URL
}

// zapText is what a logged value would print.
func zapText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// newGateway is a gateway on its own, for tests that wrap it.
func newGateway(t testing.TB, upstream string, edits ...func(*Config)) *Gateway {
	t.Helper()
	u, err := url.Parse(upstream)
	require.NoError(t, err)
	cfg := Config{Upstream: Upstream{APIURL: u, SandboxURL: u}, Guard: new(wordGuard), Policy: testPolicy()}
	cfg.Body.TempDir = t.TempDir()
	for _, edit := range edits {
		edit(&cfg)
	}
	g, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}
