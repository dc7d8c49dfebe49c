package caddymodule

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// envdHeaders are E2B's routing headers as its SDKs send them in URL form.
var envdHeaders = map[string]string{
	"E2b-Sandbox-Id":           "sbx1",
	"E2b-Sandbox-Port":         fmt.Sprint(route.PortEnvd),
	"Content-Type":             "application/connect+json",
	"Connect-Protocol-Version": "1",
	"X-Access-Token":           "token",
}

// frame is one message of a Connect stream.
func frame(flags byte, json string) string {
	head := make([]byte, 5)
	head[0] = flags
	binary.BigEndian.PutUint32(head[1:], uint32(len(json)))
	return string(head) + json
}

// TestReloadsCutNoStream: connections to a long stream must live through a
// reload of the configuration; see caddyserver/caddy#7222 and #5471.
func TestReloadsCutNoStream(t *testing.T) {
	next := make(chan string)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/connect+json")
		for {
			select {
			case text, more := <-next:
				if !more {
					return
				}
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(upstream.Close)
	caddyfile, base := site(t, upstream.URL, "")
	serve(t, caddyfile)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/process.Process/Connect",
		strings.NewReader(frame(0, `{"process":{"pid":7}}`)))
	require.NoError(t, err)
	for k, v := range envdHeaders {
		req.Header.Set(k, v)
	}
	type answer struct {
		resp *http.Response
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		answered <- answer{resp, err}
	}()
	next <- frame(0, `{"event":{"start":{"pid":7}}}`)
	got := <-answered
	require.NoError(t, got.err)
	defer got.resp.Body.Close()
	require.Equal(t, http.StatusOK, got.resp.StatusCode)
	stream := bufio.NewReader(got.resp.Body)
	require.JSONEq(t, `{"event":{"start":{"pid":7}}}`, readFrame(t, stream))

	key := stateKeyOf(t, upstream.URL)
	for i := range 20 {
		load(t, strings.Replace(caddyfile, "e2b_guard {", fmt.Sprintf("e2b_guard {\n\t\tports %d", 3000+i), 1))
		next <- frame(0, fmt.Sprintf(`{"event":{"data":{"stdout":"%04d"}}}`, i))
		require.JSONEq(t, fmt.Sprintf(`{"event":{"data":{"stdout":"%04d"}}}`, i), readFrame(t, stream), "after reload %d", i+1)
		refs, known := pool.References(key)
		require.True(t, known, "what is known about sandboxes was lost")
		require.Equal(t, 2, refs, "one for the running configuration, one for the configuration of the stream")
	}
	next <- frame(0, `{"event":{"end":{"exited":true,"status":"exit status 0"}}}`)
	require.Contains(t, readFrame(t, stream), "end")
	next <- frame(2, `{}`)
	close(next)
	require.JSONEq(t, `{}`, readFrame(t, stream))
	_, err = stream.ReadByte()
	require.ErrorIs(t, err, io.EOF)

	require.Eventually(t, func() bool { refs, _ := pool.References(key); return refs == 1 },
		5*time.Second, 10*time.Millisecond, "the first configuration is not released after its last stream")
}

func readFrame(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	head := make([]byte, 5)
	_, err := io.ReadFull(r, head)
	require.NoError(t, err, "the stream was cut")
	body := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(r, body)
	require.NoError(t, err)
	return string(body)
}

func stateKeyOf(t *testing.T, upstream string) string {
	t.Helper()
	h := Handler{Upstream: &Upstream{APIURL: upstream, SandboxURL: upstream}}
	u, err := h.upstream(caddy.NewReplacer())
	require.NoError(t, err)
	return stateKey(u)
}

// TestTwoHandlersInOneConfigurationShareState: two instances of one handler
// must not trip over what is registered once; see caddyserver/caddy#6813 and
// mholt/caddy-ratelimit PR 85.
func TestTwoHandlersInOneConfigurationShareState(t *testing.T) {
	upstream := fakeE2B(t, `[]`)
	first, base1 := site(t, upstream, "")
	second, base2 := site(t, upstream, "profile strict")
	second = second[strings.Index(second, "\nhttp://"):]
	serve(t, first+second)

	for _, base := range []string{base1, base2} {
		resp, body := call(t, http.MethodGet, base+"/v2/sandboxes", map[string]string{"X-API-Key": "e2b_0123"}, "")
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
	}
	refs, _ := pool.References(stateKeyOf(t, upstream))
	require.Equal(t, 2, refs)

	load(t, first)
	require.Eventually(t, func() bool { refs, _ := pool.References(stateKeyOf(t, upstream)); return refs == 1 },
		5*time.Second, 10*time.Millisecond)
}

func TestFailedReloadKeepsTheOldConfigurationAndLeaksNothing(t *testing.T) {
	upstream := fakeE2B(t, `[]`)
	caddyfile, base := site(t, upstream, "")
	serve(t, caddyfile)

	broken := strings.Replace(caddyfile, "e2b_guard {", "e2b_guard {\n\t\tbuffer {\n\t\t\ttemp_dir /nonexistent/folder\n\t\t}", 1)
	adapted, err := adapt(broken)
	require.NoError(t, err)
	require.ErrorContains(t, caddy.Load(adapted, true), "/nonexistent/folder")

	resp, body := call(t, http.MethodGet, base+"/v2/sandboxes", map[string]string{"X-API-Key": "e2b_0123"}, "")
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	refs, _ := pool.References(stateKeyOf(t, upstream))
	require.Equal(t, 1, refs)
}

func TestAccountsWithTheSameAddressShareNoState(t *testing.T) {
	keyed := func(key string) string {
		h := Handler{Upstream: &Upstream{APIKey: key}, Clients: []Client{{Name: "ci", Key: "k"}}}
		u, err := h.upstream(caddy.NewReplacer())
		require.NoError(t, err)
		return stateKey(u)
	}
	assert.NotEqual(t, keyed("e2b_staging"), keyed("e2b_production"))
	assert.Equal(t, keyed("e2b_staging"), keyed("e2b_staging"))
	assert.NotContains(t, keyed("e2b_staging"), "e2b_staging")
}

func TestPlaceholdersTellTheOutcome(t *testing.T) {
	caddyfile, base := site(t, fakeE2B(t, `[]`), "")
	caddyfile = strings.Replace(caddyfile, "\te2b_guard {", "\theader >X-Outcome \"{http.e2b_guard.operation} {http.e2b_guard.request_id}\"\n\te2b_guard {", 1)
	serve(t, caddyfile)
	resp, _ := call(t, http.MethodGet, base+"/v2/sandboxes", map[string]string{"X-API-Key": "e2b_0123"}, "")
	require.Regexp(t, `^sandbox\.list [a-z0-9]+$`, resp.Header.Get("X-Outcome"))
}

// TestHandlerRunsBeforeReverseProxyWithoutOrderLine: a directive without an
// order is an error in a Caddyfile, and one that runs too late is a hole.
func TestHandlerRunsBeforeReverseProxyWithoutOrderLine(t *testing.T) {
	proxied := fakeE2B(t, `"not guarded"`)
	caddyfile, base := site(t, fakeE2B(t, `[]`), "")
	caddyfile = strings.Replace(caddyfile, "\te2b_guard {", "\treverse_proxy "+strings.TrimPrefix(proxied, "http://")+"\n\trespond /healthz 200\n\te2b_guard {", 1)
	serve(t, caddyfile)
	_, body := call(t, http.MethodGet, base+"/v2/sandboxes", map[string]string{"X-API-Key": "e2b_0123"}, "")
	assert.JSONEq(t, `[]`, body)
	resp, _ := call(t, http.MethodGet, base+"/healthz", nil, "")
	assert.Equal(t, http.StatusOK, resp.StatusCode, "the health route must be answered without a key")
}

func TestRetiredHandlerTakesNoCall(t *testing.T) {
	released := 0
	l := newLease(func() { released++ })
	require.True(t, l.take())
	require.True(t, l.take())
	l.retire()
	l.retire()
	require.True(t, l.take(), "a kept-alive connection of the old configuration may still bring a call while others run")
	l.give()
	l.give()
	require.Zero(t, released)
	l.give()
	require.Equal(t, 1, released)
	require.False(t, l.take())
	require.Equal(t, 1, released)
}
