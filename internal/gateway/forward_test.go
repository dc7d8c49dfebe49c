package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/policy"
)

func TestVaultModeSwapsTheKey(t *testing.T) {
	h := newHouse(t, nil, vault)
	for name, header := range map[string]http.Header{
		"as the SDKs send it": headers("X-API-KEY", "e2b_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
		"as the CLI sends it": headers("Authorization", "Bearer e2b_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	} {
		t.Run(name, func(t *testing.T) {
			got := h.do(t, "GET", "/v2/templates", header, nil)
			require.Equal(t, 200, got.Status, got.Body)
			all := h.reached()
			last := all[len(all)-1]
			require.Equal(t, []string{"e2b_00000000000000000000000000000000000000aa"}, last.Header["X-Api-Key"])
			require.Empty(t, last.Header["Authorization"])
		})
	}
}

func TestVaultModeRefusesUnknownKeys(t *testing.T) {
	for name, header := range map[string]http.Header{
		"no key":                {},
		"E2B's own key":         headers("X-API-KEY", "e2b_00000000000000000000000000000000000000aa"),
		"a prefix of a key":     headers("X-API-KEY", "e2b_aaaaaaaaaaaaaaaa"),
		"a key and its doubles": headers("X-API-KEY", "e2b_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,x"),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil, vault)
			got := h.do(t, "POST", "/v2/sandboxes", header, strings.NewReader(`{"templateID":"base"}`))
			require.Equal(t, 401, got.Status)
			require.Contains(t, got.Body, "does not know the API key")
			require.NotContains(t, got.Body, "e2b_0000")
			require.Empty(t, h.reached())
		})
	}
}

func TestPassThroughKeepsTheClientsKey(t *testing.T) {
	h := newHouse(t, nil, nil)
	got := h.do(t, "GET", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), nil)
	require.Equal(t, 200, got.Status, got.Body)
	require.Equal(t, "e2b_cc", h.reached()[0].Header.Get("X-Api-Key"))
}

func TestDataPlaneNeverSeesAPIKeys(t *testing.T) {
	h := newHouse(t, nil, vault)
	got := h.do(t, "GET", "/health", toSandbox("49983", "X-Access-Token", sealedEnvd("isbx1", "team-a", "ea_1"), "X-API-KEY", "e2b_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "E2b-Guard-Trust", "yes"), nil)
	require.Equal(t, 200, got.Status, got.Body)
	seen := h.reached()[0]
	require.Empty(t, seen.Header["X-Api-Key"])
	require.Empty(t, seen.Header["E2b-Guard-Trust"])
	require.Equal(t, "isbx1", seen.Header.Get("E2b-Sandbox-Id"))
	require.Equal(t, "49983", seen.Header.Get("E2b-Sandbox-Port"))
	require.Empty(t, seen.Header["X-Forwarded-For"])
}

// The body grows, and exactly one length goes with it. See
// caddyserver/caddy#5829 and usestrix/strix#603; a chunked body must be read
// although it names no length (e2b-dev/infra PR 3056).
func TestRewrittenBodyHasItsOwnLength(t *testing.T) {
	for name, body := range map[string]io.Reader{
		"with a length": strings.NewReader(`{"templateID":"base"}`),
		"chunked":       io.MultiReader(strings.NewReader(`{"templateID":`), strings.NewReader(`"base"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil, nil)
			got := h.do(t, "POST", "/v2/sandboxes", headers("Content-Type", "application/json", "X-API-KEY", "e2b_cc"), body)
			require.Equal(t, 200, got.Status, got.Body)
			seen := h.reached()[0]
			require.Equal(t, int64(len(seen.Body)), seen.ContentLength)
			require.Greater(t, len(seen.Body), len(`{"templateID":"base"}`))
			require.Contains(t, string(seen.Body), `"timeout":300`)
		})
	}
}

// Upstream's own rate limit reaches the client as it is. See
// e2b-dev/E2B#1325.
func TestUpstreamErrorsPassUnchanged(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"code":429,"message":"slow down"}`)
	}, nil)
	got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), strings.NewReader(`{"templateID":"base"}`))
	require.Equal(t, 429, got.Status)
	require.Equal(t, "7", got.Header.Get("Retry-After"))
	require.JSONEq(t, `{"code":429,"message":"slow down"}`, got.Body)
}

func TestUnreachableUpstreamIsSaid(t *testing.T) {
	h := newHouse(t, nil, func(cfg *Config) {
		dead := httptest.NewServer(http.NotFoundHandler())
		cfg.Upstream.APIURL.Host = dead.Listener.Addr().String()
		dead.Close()
	})
	got := h.do(t, "GET", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), nil)
	require.Equal(t, 502, got.Status)
	require.Contains(t, got.Body, "could not reach E2B")
}

func TestRedirectsStayInside(t *testing.T) {
	for name, tc := range map[string]struct {
		port, location string
		status         int
		want           string
	}{
		"E2B's own host becomes a path":       {"49983", "http://%s/health?x=1", 307, "/health?x=1"},
		"a path stays":                        {"49983", "/health", 307, "/health"},
		"another host is refused":             {"49983", "https://elsewhere.example/health", 502, ""},
		"an application may redirect outside": {"3000", "https://login.example/", 307, "https://login.example/"},
		"an application's own host":           {"3000", "http://%s/home", 307, "/home"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
				location := tc.location
				if strings.Contains(location, "%s") {
					location = fmt.Sprintf(location, r.Host)
				}
				w.Header().Set("Location", location)
				w.WriteHeader(http.StatusTemporaryRedirect)
			}, func(cfg *Config) {
				cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
			})
			got := h.do(t, "GET", "/health", toSandbox(tc.port), nil)
			require.Equal(t, tc.status, got.Status, got.Body)
			require.Equal(t, tc.want, got.Header.Get("Location"))
		})
	}
}

// A client that leaves must not leave its upstream call behind. See
// caddyserver/caddy#6666.
func TestClientCancelReachesUpstream(t *testing.T) {
	started, gone := make(chan struct{}), make(chan struct{})
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`))
		close(started)
		<-r.Context().Done()
		close(gone)
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", h.url+"/process.Process/Start", command(t, "sleep 60"))
	require.NoError(t, err)
	req.Header = startHeaders()
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

// Wrappers of the response writer hide Flush and Hijack; only Unwrap finds them.
// See durable-streams/durable-streams#252 and corazawaf/coraza-caddy#78.
type unwrapOnly struct{ w http.ResponseWriter }

func (u unwrapOnly) Header() http.Header         { return u.w.Header() }
func (u unwrapOnly) Write(p []byte) (int, error) { return u.w.Write(p) }
func (u unwrapOnly) WriteHeader(code int)        { u.w.WriteHeader(code) }
func (u unwrapOnly) Unwrap() http.ResponseWriter { return u.w }

func wrapped(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(unwrapOnly{w}, r) })
}

// Each event reaches the client when it is sent, not at the end. See
// corazawaf/coraza-caddy PR 263.
func TestStreamFlushesThroughWrapper(t *testing.T) {
	next := make(chan string)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`))
		for payload := range next {
			streamAnswer(w, frame(payload))
		}
		streamAnswer(w, endFrame(`{}`))
	}))
	defer up.Close()
	front := httptest.NewServer(wrapped(newGateway(t, up.URL)))
	defer front.Close()

	req, err := http.NewRequestWithContext(t.Context(), "POST", front.URL+"/process.Process/Start", command(t, "echo"))
	require.NoError(t, err)
	req.Header = startHeaders()
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	expect := func(want []byte) {
		got := make([]byte, len(want))
		_, err := io.ReadFull(r, got)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	expect(frame(`{"event":{"start":{"pid":7}}}`))
	for _, payload := range []string{`{"event":{"data":{"stdout":"YQ=="}}}`, `{"event":{"data":{"stdout":"Yg=="}}}`} {
		next <- payload // the upstream sends it only now, and waits for the next
		expect(frame(payload))
	}
	close(next)
	expect(endFrame(`{}`))
}

// See corazawaf/coraza-caddy#78: upgrades died behind a wrapper.
func TestUpgradePassesOnOpenPort(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, buf)
	}))
	defer up.Close()
	g := newGateway(t, up.URL, func(cfg *Config) {
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
	})
	front := httptest.NewServer(wrapped(g))
	defer front.Close()

	conn, err := net.Dial("tcp", front.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: isbx1\r\nE2b-Sandbox-Port: 3000\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, 101, resp.StatusCode)
	for i := range 10 {
		line := fmt.Sprintf("frame %d\n", i)
		_, err := io.WriteString(conn, line)
		require.NoError(t, err)
		got, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, line, got)
	}
}

func TestClosedPortsAreRefused(t *testing.T) {
	h := newHouse(t, nil, nil)
	for _, port := range []string{"3000", "8888", "22"} {
		got := h.do(t, "GET", "/", toSandbox(port), nil)
		require.Equal(t, 403, got.Status, got.Body)
		require.Contains(t, got.Body, port)
	}
	require.Empty(t, h.reached())
}

// The SDK builds host names from the domain of an answer; with the gateway's own
// in it, ports and signed URLs stay inside.
func TestAnswersNameTheGatewaysDomain(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"sandboxID":"isbx1","domain":null,"templateID":"base","x":1.50}`)
	}, func(cfg *Config) { cfg.PublicDomain = "gw.example" })
	got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), strings.NewReader(`{"templateID":"base"}`))
	require.Equal(t, 201, got.Status)
	require.Equal(t, `{"sandboxID":"isbx1","domain":"gw.example","templateID":"base","x":1.50}`, got.Body)
}

// Sandboxes are made with public traffic off, and the gateway has the token.
func TestTrafficTokenIsSupplied(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/sandboxes" {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"sandboxID":"isbx1","trafficAccessToken":"ta_1","templateID":"base"}`)
		}
	}, func(cfg *Config) {
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
	})
	got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), strings.NewReader(`{"templateID":"base"}`))
	require.Equal(t, 201, got.Status)
	h.do(t, "GET", "/", toSandbox("3000"), nil)
	h.do(t, "GET", "/health", toSandbox("49999"), nil)
	h.do(t, "GET", "/health", toSandbox("49983"), nil)
	seen := h.reached()
	require.Contains(t, string(seen[0].Body), `"allowPublicTraffic":false`)
	require.Equal(t, "ta_1", seen[1].Header.Get("E2b-Traffic-Access-Token"))
	require.Equal(t, "ta_1", seen[2].Header.Get("E2b-Traffic-Access-Token"))
	require.Empty(t, seen[3].Header.Get("E2b-Traffic-Access-Token"), "envd has a token of its own")
}

// A limit on a sandbox's life is on all of it, however often it is extended.
func TestLifetimeIsNotExtendedForEver(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"sandboxID":"isbx1","templateID":"base"}`)
	}, func(cfg *Config) {
		cfg.Policy.Limits.LifetimeDefault, cfg.Policy.Limits.LifetimeMax = time.Minute, time.Hour
		cfg.State = NewState()
		cfg.State.remember("iold", sandbox{started: time.Now().Add(-time.Hour)})
		cfg.State.remember("iyoung", sandbox{started: time.Now().Add(-50 * time.Minute)})
	})
	key := headers("X-API-KEY", "e2b_cc")
	got := h.do(t, "POST", "/sandboxes/iold/timeout", key, strings.NewReader(`{"timeout":60}`))
	require.Equal(t, 403, got.Status)
	require.Contains(t, got.Body, "create a new one")
	require.Empty(t, h.reached())

	got = h.do(t, "POST", "/sandboxes/iyoung/timeout", key, strings.NewReader(`{"timeout":3600}`))
	require.Equal(t, 201, got.Status)
	require.Contains(t, got.Header.Get("E2b-Guard"), "changed=timeout")
	require.Regexp(t, `"timeout":(600|599)}`, string(h.reached()[0].Body))
}
