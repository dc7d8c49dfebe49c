package caddymodule

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inChain is a site with what operators put before a handler: compression and an
// access log.
func inChain(t *testing.T, upstream, options string) (caddyfile, base, logFile string) {
	t.Helper()
	caddyfile, base = site(t, upstream, options)
	logFile = filepath.Join(t.TempDir(), "access.log")
	return strings.Replace(caddyfile, "\te2b_guard {", "\tencode zstd gzip\n\tlog {\n\t\toutput file "+logFile+"\n\t}\n\te2b_guard {", 1), base, logFile
}

// Handlers around a stream have held it back to its end (corazawaf/coraza-caddy
// PR 263) and compressed it so that its client dropped it (caddyserver/caddy#6293,
// Th0rgal/sandboxed.sh#419).
func TestStreamsPassEncodeAndAccessLog(t *testing.T) {
	output := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a line of output\n", 100))) // long enough to be compressed
	for name, tc := range map[string]struct {
		path, contentType, body string
		header                  map[string]string
		pieces                  []string
	}{
		"a command": {
			path: "/process.Process/Start", contentType: "application/connect+json", header: envdHeaders,
			body:   frame(0, `{"process":{"cmd":"/bin/bash","args":["-l","-c","ls"]}}`),
			pieces: []string{frame(0, `{"event":{"start":{"pid":7}}}`), frame(0, `{"event":{"data":{"stdout":"`+output+`"}}}`), frame(0, `{"event":{"data":{"stdout":"YQ=="}}}`), frame(2, "{}")},
		},
		"code": {
			path: "/execute", contentType: "", header: map[string]string{"E2b-Sandbox-Id": "sbx1", "E2b-Sandbox-Port": "49999", "Content-Type": "application/json"},
			body:   `{"code":"1"}`,
			pieces: []string{`{"type": "stdout", "text": "` + output + "\"}\n", "{\"type\": \"number_of_executions\", \"execution_count\": 1}\n", "{\"type\": \"end_of_execution\"}\n"},
		},
		"watched files": {
			path: "/filesystem.Filesystem/WatchDir", contentType: "application/connect+json", header: envdHeaders,
			body:   frame(0, `{"path":"/home/user"}`),
			pieces: []string{frame(0, `{"start":{}}`), frame(0, `{"filesystem":{"name":"a","type":"EVENT_TYPE_CREATE"}}`), frame(2, "{}")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := make(chan string)
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path != tc.path { // the gateway's own questions
					http.NotFound(w, r)
					return
				}
				if tc.contentType == "" {
					w.Header()["Content-Type"] = nil // the interpreter names none
				} else {
					w.Header().Set("Content-Type", tc.contentType)
				}
				for {
					select {
					case piece, more := <-next:
						if !more {
							return
						}
						_, _ = io.WriteString(w, piece)
						_ = http.NewResponseController(w).Flush()
					case <-r.Context().Done():
						return
					}
				}
			}))
			defer upstream.Close()
			caddyfile, base, logFile := inChain(t, upstream.URL, "")
			serve(t, caddyfile)

			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+tc.path, strings.NewReader(tc.body))
			require.NoError(t, err)
			for k, v := range tc.header {
				req.Header.Set(k, v)
			}
			req.Header.Set("Accept-Encoding", "gzip, deflate") // as the SDKs do
			go func() { next <- tc.pieces[0] }()
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Empty(t, resp.Header.Get("Content-Encoding"))
			r := bufio.NewReader(resp.Body)
			for i, piece := range tc.pieces {
				if i > 0 {
					next <- piece // sent only now: what was read before was not held back
				}
				got := make([]byte, len(piece))
				_, err := io.ReadFull(r, got)
				require.NoError(t, err)
				require.Equal(t, piece, string(got))
			}
			close(next)
			_, err = r.ReadByte()
			require.ErrorIs(t, err, io.EOF)
			require.Eventually(t, func() bool { return strings.Contains(readIfThere(logFile), "handled request") }, 5*time.Second, 10*time.Millisecond)
		})
	}
}

// Upgrades died behind handlers that hid the connection; see
// corazawaf/coraza-caddy#78, PR 262 and PR 326, and coreruleset/coraza-crs-docker
// PR 82.
func TestWebSocketPassesEncodeAndAccessLog(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, buf)
	}))
	defer upstream.Close()
	caddyfile, base, logFile := inChain(t, upstream.URL, "ports 3000")
	serve(t, caddyfile)

	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: "+strings.TrimPrefix(base, "http://")+"\r\nE2b-Sandbox-Id: sbx1\r\nE2b-Sandbox-Port: 3000\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	for i := range 10 {
		line := fmt.Sprintf("frame %d\n", i)
		_, err := io.WriteString(conn, line)
		require.NoError(t, err)
		got, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, line, got)
	}
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	_, err = r.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the end passes too")
	require.Eventually(t, func() bool { return strings.Contains(readIfThere(logFile), `"uri":"/ws"`) }, 5*time.Second, 10*time.Millisecond)
}

// A client that leaves must not leave its upstream call behind, in the Caddy this
// module is built with: older ones could be told to keep it. See
// caddyserver/caddy#6666 and PR 4952.
func TestClientCancelReachesUpstreamThroughCaddy(t *testing.T) {
	started, gone := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/connect+json")
		_, _ = io.WriteString(w, frame(0, `{"event":{"start":{"pid":7}}}`))
		_ = http.NewResponseController(w).Flush()
		close(started)
		<-r.Context().Done()
		close(gone)
	}))
	defer upstream.Close()
	caddyfile, base, _ := inChain(t, upstream.URL, "")
	serve(t, caddyfile)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/process.Process/Start", strings.NewReader(frame(0, `{"process":{"cmd":"/bin/sleep","args":["60"]}}`)))
	require.NoError(t, err)
	for k, v := range envdHeaders {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	<-started
	cancel()
	select {
	case <-gone:
	case <-time.After(time.Second):
		t.Fatal("the upstream call outlived the client by a second")
	}
}
