package gateway

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/policy"
)

// forwardOnceEnv makes the test binary forward one call to the URL in it and
// exit: net/http reads the proxy environment once per process.
const forwardOnceEnv = "E2BGUARD_TEST_FORWARD_TO"

func forwardOnce(upstream string) int {
	u, err := url.Parse(upstream)
	if err != nil {
		return 1
	}
	g, err := New(Config{Upstream: Upstream{APIURL: u, SandboxURL: u}, Guard: new(wordGuard), Policy: testPolicy()})
	if err != nil {
		return 1
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest("GET", "/v2/sandboxes", nil))
	fmt.Print(w.Code)
	return 0
}

// Networks that let nothing out but through a proxy are where gateways are
// wanted. See e2b-dev/E2B#693.
func TestUpstreamIsReachedThroughTheProxyOfTheEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		upstream string
		env      []string
		want     []string
	}{
		"https":          {"https://api.e2b.invalid", nil, []string{"CONNECT api.e2b.invalid:443"}},
		"http":           {"http://api.e2b.invalid", nil, []string{"GET http://api.e2b.invalid/v2/sandboxes"}},
		"listed as none": {"https://api.e2b.invalid", []string{"NO_PROXY=example.com,.e2b.invalid"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				seen = append(seen, r.Method+" "+r.RequestURI)
				mu.Unlock()
				w.WriteHeader(http.StatusTeapot)
			}))
			defer proxy.Close()
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append([]string{
				"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), forwardOnceEnv + "=" + tc.upstream,
				"HTTPS_PROXY=" + proxy.URL, "HTTP_PROXY=" + proxy.URL,
			}, tc.env...)
			out, err := child.CombinedOutput()
			require.NoError(t, err, string(out))
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, tc.want, seen)
			if strings.HasPrefix(tc.upstream, "https") {
				require.Equal(t, "502", string(out), "a proxy that says no, or a name that does not resolve, is an unreachable upstream")
			} else {
				require.Equal(t, "418", string(out))
			}
		})
	}
}

// The protocol to the upstream follows the plane, not the client: envd speaks
// HTTP/1.1 only, the control plane gets HTTP/2. See caddyserver/caddy#4777.
func TestUpstreamProtocolFollowsThePlane(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Upstream-Protocol", r.Proto)
	}))
	up.EnableHTTP2 = true
	up.StartTLS()
	defer up.Close()
	roots := x509.NewCertPool()
	roots.AddCert(up.Certificate())
	g := newGateway(t, up.URL, func(cfg *Config) {
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
	})
	for _, rt := range []http.RoundTripper{g.fwd.control, g.fwd.data, g.fwd.ports} {
		rt.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	}

	for client, protocols := range map[string]*http.Protocols{"HTTP/1.1": protocol(false), "HTTP/2.0": protocol(true)} {
		front := httptest.NewUnstartedServer(g)
		front.Config.Protocols = protocols
		front.Start()
		for name, tc := range map[string]struct {
			path   string
			header http.Header
			want   string
		}{
			"control plane": {"/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), "HTTP/2.0"},
			"envd":          {"/health", toSandbox("49983"), "HTTP/1.1"},
			"interpreter":   {"/health", toSandbox("49999"), "HTTP/1.1"},
			"a user port":   {"/", toSandbox("3000"), "HTTP/1.1"},
		} {
			t.Run(client+" client, "+name, func(t *testing.T) {
				req, err := http.NewRequestWithContext(t.Context(), "GET", front.URL+tc.path, nil)
				require.NoError(t, err)
				req.Header = tc.header
				rt := &http.Transport{Protocols: protocols}
				defer rt.CloseIdleConnections()
				resp, err := rt.RoundTrip(req)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, client, resp.Proto)
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, tc.want, resp.Header.Get("X-Upstream-Protocol"))
			})
		}
		front.Close()
	}
}

// protocol is plain HTTP/2 or HTTP/1.1, and nothing else.
func protocol(two bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!two)
	p.SetUnencryptedHTTP2(two)
	return p
}

// A client that streams its request waits for an answer before it ends it. A
// refusal must come without that end. See caddyserver/caddy#3556.
func TestRefusalDoesNotWaitForAStreamedRequest(t *testing.T) {
	for name, two := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "http://127.0.0.1:1")
			front := httptest.NewUnstartedServer(g)
			front.Config.Protocols = protocol(two)
			front.Start()
			defer front.Close()

			pr, pw := io.Pipe()
			defer pw.Close()
			go func() { _, _ = pw.Write(frame(`{"start":{"process":{"pid":7}}}`)) }()
			req, err := http.NewRequestWithContext(t.Context(), "POST", front.URL+"/process.Process/StreamInput", pr)
			require.NoError(t, err)
			req.Header = startHeaders()
			rt := &http.Transport{Protocols: protocol(two)}
			defer rt.CloseIdleConnections()
			resp, err := rt.RoundTrip(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, "application/connect+json", resp.Header.Get("Content-Type"))
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, byte(2), got[0], "an end-of-stream frame")
			require.Contains(t, string(got), `"code":"internal"`)
			require.Contains(t, string(got), "could not ask the sandbox which process")
		})
	}
}

// Trailers come after the body; a layer that buffers or copies headers only
// loses them. See caddyserver/caddy#3236.
func TestTrailersReachTheClient(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Checksum")
		_, _ = io.WriteString(w, "rows")
		w.Header().Set("X-Checksum", "abc")
		w.Header().Set(http.TrailerPrefix+"X-Late", "unannounced")
	}, func(cfg *Config) {
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
	})
	for _, port := range []string{"3000", "49983"} {
		path := "/rows"
		if port == "49983" {
			path = "/files?path=/home/user/rows.csv"
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", h.url+path, nil)
		require.NoError(t, err)
		req.Header = toSandbox(port)
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		require.NoError(t, err)
		all, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "rows", string(all))
		require.Equal(t, "abc", resp.Trailer.Get("X-Checksum"), port)
		require.Equal(t, "unannounced", resp.Trailer.Get("X-Late"), port)
	}
}

// envd speaks gRPC besides Connect. It is not read here, so it is refused in a
// form gRPC clients can tell, and never passed unread. See
// caddyserver/caddy#3236 and hit-box/hitbox#260.
func TestGRPCIsRefusedInItsOwnForm(t *testing.T) {
	for contentType, two := range map[string]bool{"application/grpc": true, "application/grpc+json": false, "application/grpc-web+proto": false} {
		t.Run(contentType, func(t *testing.T) {
			h := newHouse(t, nil, nil)
			front := httptest.NewUnstartedServer(newGateway(t, h.url))
			front.Config.Protocols = protocol(two)
			front.Start()
			defer front.Close()
			req, err := http.NewRequestWithContext(t.Context(), "POST", front.URL+"/process.Process/Start", command(t, "ls"))
			require.NoError(t, err)
			req.Header = startHeaders("Content-Type", contentType)
			rt := &http.Transport{Protocols: protocol(two)}
			defer rt.CloseIdleConnections()
			resp, err := rt.RoundTrip(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			all, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, contentType, resp.Header.Get("Content-Type"))
			status := resp.Header.Get("Grpc-Status") + resp.Trailer.Get("Grpc-Status")
			if strings.Contains(contentType, "grpc-web") {
				status = string(all)
			}
			require.Contains(t, status, "12", "unimplemented")
			require.Empty(t, h.reached())
		})
	}
}

// A compressed request, with trailers after it, is read to its end and judged;
// see envoyproxy/envoy#21205, where the reader behind the decompressor hung.
func TestCompressedRequestWithTrailersIsJudged(t *testing.T) {
	h := newHouse(t, nil, nil)
	for body, want := range map[string]int{`{"path":"/home/user/a"}`: 200, `{"path":"/evil"}`: 403} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", h.url+"/filesystem.Filesystem/Remove", io.MultiReader(bytes.NewReader(gzipped(t, body))))
		require.NoError(t, err)
		req.Header = toSandbox("49983", "Content-Type", "application/json", "Content-Encoding", "gzip")
		req.Trailer = http.Header{"X-Checksum": []string{"abc"}}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode)
	}
	require.Len(t, h.reached(), 1)
	require.JSONEq(t, `{"path":"/home/user/a"}`, string(h.reached()[0].Body))
	require.Empty(t, h.reached()[0].Header.Get("Content-Encoding"))
}

// An upstream that takes a call and never answers is given up. See
// e2b-dev/E2B#1128.
func TestUpstreamThatNeverAnswersIsGivenUp(t *testing.T) {
	gone := make(chan struct{})
	h := newHouse(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(gone)
	}, func(cfg *Config) { cfg.IdleTimeout = 100 * time.Millisecond })
	got := h.do(t, "POST", "/process.Process/Start", startHeaders(), command(t, "ls"))
	require.Equal(t, 200, got.Status)
	require.Contains(t, got.Body, `"error"`)
	require.Contains(t, got.Body, "could not reach E2B")
	<-gone
}

// Every frame of an application's event stream on an open port is flushed too.
func TestEventsOfAnOpenPortAreFlushed(t *testing.T) {
	next := make(chan string)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for line := range next {
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer up.Close()
	front := httptest.NewServer(newGateway(t, up.URL, func(cfg *Config) {
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
	}))
	defer front.Close()
	req, err := http.NewRequestWithContext(t.Context(), "GET", front.URL+"/events", nil)
	require.NoError(t, err)
	req.Header = toSandbox("3000")
	go func() { next <- "data: 0\n" }()
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for i := range 3 {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("data: %d\n", i), line)
		if i < 2 {
			next <- fmt.Sprintf("data: %d\n", i+1)
		}
	}
	close(next)
}

// Connections to E2B are used again: a handshake for each command would be felt.
func TestUpstreamConnectionsAreReused(t *testing.T) {
	var made atomic.Int32
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.HasPrefix(r.URL.Path, "/process.") {
			streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`), endFrame("{}"))
			return
		}
		_, _ = io.WriteString(w, "[]")
	}))
	up.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	up.Start()
	defer up.Close()
	front := httptest.NewServer(newGateway(t, up.URL))
	defer front.Close()
	h := &house{url: front.URL}
	for i := range 20 {
		h.do(t, "POST", "/process.Process/Start", startHeaders(), command(t, fmt.Sprint("echo ", i)))
		h.do(t, "GET", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), nil)
		h.do(t, "POST", "/files?path=/home/user/data.csv", toSandbox("49983", "Content-Type", "application/octet-stream"), strings.NewReader(strings.Repeat("a,b\n", 1<<16)))
	}
	require.LessOrEqual(t, made.Load(), int32(4), "one each for control and data, and a spare")
}

// What belongs to the hop between client and gateway ends there, and the gateway
// leaves no mark of its own.
func TestHeadersOfTheHopStayOnTheHop(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("Proxy-Authenticate", "Basic")
		_, _ = io.WriteString(w, "[]")
	}, nil)
	got := h.do(t, "GET", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc", "Connection", "X-Hop", "X-Hop", "1", "Keep-Alive", "timeout=9", "Proxy-Authorization", "Basic eDp5",
		"Te", "deflate", "E2b-Guard", "pass", "X-Forwarded-For", "203.0.113.9"), nil)
	require.Equal(t, 200, got.Status)
	require.Empty(t, got.Header.Get("Keep-Alive"))
	require.Empty(t, got.Header.Get("Proxy-Authenticate"))
	seen := h.reached()[0].Header
	for _, name := range []string{"X-Hop", "Keep-Alive", "Proxy-Authorization", "Te", "E2b-Guard", "Via", "X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "E2b-Sandbox-Id", "E2b-Sandbox-Port"} {
		require.Empty(t, seen[name], name)
	}
}
