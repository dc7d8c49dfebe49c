package caddymodule

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/stretchr/testify/require"
)

func adapt(caddyfile string) ([]byte, error) {
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	return adapted, err
}

// load adapts a Caddyfile and makes it the running configuration.
func load(t *testing.T, caddyfile string) {
	t.Helper()
	adapted, err := adapt(caddyfile)
	require.NoError(t, err)
	require.NoError(t, caddy.Load(adapted, true))
}

// serve runs a Caddyfile until the test ends.
func serve(t *testing.T, caddyfile string) {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, caddy.Stop()) })
	load(t, caddyfile)
}

// site is a Caddyfile with one site on a free port of its own, before the given
// upstream.
func site(t *testing.T, upstream, options string) (caddyfile, base string) {
	t.Helper()
	addr := freeAddress(t)
	return fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	grace_period 1m
}
http://%s {
	e2b_guard {
		upstream {
			api_url     %s
			sandbox_url %s
		}
		%s
	}
}
`, addr, upstream, upstream, options), "http://" + addr
}

func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// fakeE2B answers every call with the same JSON.
func fakeE2B(t *testing.T, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// call makes one request and returns the answer with its body read.
func call(t *testing.T, method, url string, header map[string]string, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	req.Close = true // a connection that was kept may be to a server that a reload ended
	resp, err := http.DefaultClient.Do(req)
	for errors.Is(err, syscall.ECONNRESET) {
		// Between two configurations Caddy has two listeners; Linux resets what waits
		// in the queue of the one that closes. No call has begun then.
		req.Body = io.NopCloser(strings.NewReader(body))
		resp, err = http.DefaultClient.Do(req)
	}
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

// repository is the root of the source tree.
func repository(t *testing.T, path ...string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "go.mod"))
	return filepath.Join(append([]string{root}, path...)...)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// readIfThere is the file's text, or "" while there is none.
func readIfThere(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}
