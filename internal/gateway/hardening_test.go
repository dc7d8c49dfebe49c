package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// A client's Connection header names what is for us and not for whoever is
// behind us. What the gateway writes into a header must not be dropped by it.
func TestConnectionHeaderDropsNoDecision(t *testing.T) {
	for _, connection := range []string{"Connect-Timeout-Ms", "close, connect-timeout-ms", "keep-alive,\tConnect-Timeout-Ms ,Keepalive-Ping-Interval"} {
		t.Run(connection, func(t *testing.T) {
			h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { streamAnswer(w, endFrame("{}")) }, nil)
			header := startHeaders("Connect-Timeout-Ms", "99999999", "Connection", connection)
			h.do(t, "POST", "/process.Process/Start", header, command(t, "sleep 60"))
			ms, err := strconv.Atoi(h.reached()[0].Header.Get("Connect-Timeout-Ms"))
			require.NoError(t, err, "the process must have a deadline")
			require.LessOrEqual(t, ms, int(testPolicy().Limits.BackgroundWallClock.Milliseconds()))
		})
	}
	t.Run("routing", func(t *testing.T) {
		h := newHouse(t, nil, nil)
		got := h.do(t, "GET", "/health", toSandbox("49983", "Connection", "E2b-Sandbox-Id"), nil)
		require.Equal(t, 400, got.Status, "the header is not there for us either: %s", got.Body)
		require.Empty(t, h.reached())
	})
}

// An upgrade is a tunnel that nothing in it is judged of. E2B's edge takes
// "Upgrade: h2c" itself: requests inside would reach any sandbox.
func TestUpgradesAreForApplicationsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		port, path string
		header     []string
		passes     bool
	}{
		"an application":                 {"3000", "/", []string{"Connection", "keep-alive, Upgrade", "Upgrade", "websocket"}, true},
		"an application, h2c":            {"3000", "/", []string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAAQAAP__"}, false},
		"an application, h2c in a list":  {"3000", "/", []string{"Connection", "Upgrade", "Upgrade", "websocket, h2c"}, false},
		"an application, other HTTP":     {"3000", "/", []string{"Connection", "Upgrade", "Upgrade", "HTTP/2.0"}, false},
		"an application, TLS":            {"3000", "/", []string{"Connection", "upgrade", "Upgrade", "TLS/1.2"}, false},
		"envd":                           {"49983", "/health", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, false},
		"the interpreter":                {"49999", "/health", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, false},
		"the control plane":              {"", "/health", []string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "x"}, false},
		"an upgrade without its mention": {"3000", "/", []string{"Upgrade", "websocket"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil, func(cfg *Config) {
				cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
			})
			header := headers(tc.header...)
			if tc.port != "" {
				header = toSandbox(tc.port, tc.header...)
			}
			got := h.do(t, "GET", tc.path, header, nil)
			require.Equal(t, 200, got.Status, got.Body)
			seen := h.reached()[0].Header
			require.Equal(t, tc.passes, seen.Get("Upgrade") != "", "%v", seen)
			require.Empty(t, seen.Get("Http2-Settings"))
		})
	}
}

// An upstream that switches protocols although nobody asked is not followed.
func TestUnaskedUpgradeIsNotFollowed(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
	}))
	defer up.Close()
	front := httptest.NewServer(newGateway(t, up.URL))
	defer front.Close()
	h := &house{url: front.URL}
	got := h.do(t, "GET", "/health", toSandbox("49983", "Connection", "Upgrade", "Upgrade", "h2c"), nil)
	require.Equal(t, 502, got.Status, got.Body)
}

// A preflight says nothing of who asks, so nothing is asked of E2B for it, and it
// is held up by nobody's failures; no header makes another method of it.
func TestPreflightsAreAnsweredHere(t *testing.T) {
	h := newHouse(t, nil, vault)
	for range 2 * strangerFailures {
		got := h.do(t, "OPTIONS", "/sandboxes/isbx1", headers(
			"Origin", "https://app.example", "Access-Control-Request-Method", "DELETE",
			"X-HTTP-Method-Override", "DELETE", "X-API-KEY", "e2b_xx", "Authorization", "Bearer e2b_xx"), nil)
		require.Equal(t, 204, got.Status, got.Body)
		require.Equal(t, "*", got.Header.Get("Access-Control-Allow-Origin"))
		require.Contains(t, got.Header.Get("Access-Control-Allow-Methods"), "DELETE")
		require.Contains(t, got.Header.Get("Access-Control-Allow-Headers"), "X-API-Key")
	}
	require.Empty(t, h.reached())

	own := newHouse(t, nil, nil) // with clients' own keys it is E2B's to answer
	require.Equal(t, 200, own.do(t, "OPTIONS", "/sandboxes", headers("Origin", "https://app.example", "Access-Control-Request-Method", "POST", "X-HTTP-Method-Override", "DELETE"), nil).Status)
	require.Len(t, own.reached(), 1)
	require.Empty(t, own.reached()[0].Header["X-Http-Method-Override"])
}

// A page reads why its call was refused wherever it could read E2B's answer.
func TestPagesReadRefusals(t *testing.T) {
	h := newHouse(t, nil, nil)
	for name, tt := range map[string]struct {
		path, body string
		header     http.Header
		readable   bool
	}{
		"control":     {"/templates", "{}", headers(), true},
		"envd":        {"/process.Process/Start", string(frame(`{"process":{"cmd":"evil"}}`)), startHeaders(), true},
		"files":       {"/files?path=/tmp/evil.sh", "evil", toSandbox("49983", "Content-Type", "application/octet-stream"), true},
		"interpreter": {"/execute", `{"code":"evil"}`, toSandbox("49999", "Content-Type", "application/json"), true},
		"a port":      {"/", "", toSandbox("3000"), false},
	} {
		without := h.do(t, "POST", tt.path, tt.header, strings.NewReader(tt.body))
		require.True(t, refused(without), name)
		require.Empty(t, without.Header.Get("Access-Control-Allow-Origin"), name)
		tt.header.Set("Origin", "https://app.example")
		got := h.do(t, "POST", tt.path, tt.header, strings.NewReader(tt.body))
		require.True(t, refused(got), name)
		require.Equal(t, tt.readable, got.Header.Get("Access-Control-Allow-Origin") == "*", name)
		require.Equal(t, tt.readable, strings.Contains(got.Header.Get("Access-Control-Expose-Headers"), "Retry-After"), name)
	}
}

func TestClientKeysMustBeKeys(t *testing.T) {
	key := redact.NewSecret("e2b_00000000000000000000000000000000000000aa")
	for name, clients := range map[string][]Client{
		"empty":          {{Name: "a"}},
		"the upstream's": {{Name: "a", Key: key}},
		"twice the same": {{Name: "a", Key: redact.NewSecret("e2b_aa")}, {Name: "b", Key: redact.NewSecret("e2b_aa")}},
		"and its hash":   {{Name: "a", Key: redact.NewSecret("e2b_aa")}, {Name: "b", Key: redact.NewSecret("sha256:" + hashOf("e2b_aa"))}},
		"a bad hash":     {{Name: "a", Key: redact.NewSecret("sha256:xyz")}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newGateway(t, "http://upstream.invalid").cfg
			cfg.Upstream.APIKey, cfg.Clients = key, clients
			_, err := New(cfg)
			require.ErrorContains(t, err, `"a"`)
			require.NotContains(t, err.Error(), "e2b_")
		})
	}
}

// A body that no step looks at is not passed on.
func TestUnreadBodiesAreNotForwarded(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path string
		header       http.Header
		passes       bool
	}{
		"a sandbox's state":  {"GET", "/sandboxes/isbx1", headers("X-API-KEY", "e2b_cc"), false},
		"killing a sandbox":  {"DELETE", "/sandboxes/isbx1", headers("X-API-KEY", "e2b_cc"), false},
		"reading a file":     {"GET", "/files?path=/a", toSandbox("49983"), false},
		"health":             {"GET", "/health", toSandbox("49983"), false},
		"restarting code":    {"POST", "/contexts/ctx1/restart", toSandbox("49999"), false},
		"an application":     {"POST", "/", toSandbox("3000"), true},
		"an application GET": {"GET", "/", toSandbox("3000"), true},
	} {
		for framing, body := range map[string]io.Reader{"with a length": strings.NewReader("evil"), "chunked": io.MultiReader(strings.NewReader("evil"))} {
			t.Run(name+" "+framing, func(t *testing.T) {
				h := newHouse(t, nil, func(cfg *Config) {
					cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
				})
				got := h.do(t, tc.method, tc.path, tc.header, body)
				require.Equal(t, 200, got.Status, got.Body)
				require.Equal(t, tc.passes, string(h.reached()[0].Body) == "evil")
				require.Equal(t, tc.passes, len(h.reached()[0].Body) > 0)
			})
		}
	}
}

// An application's query is its own, also where Go does not read it.
func TestQueryOfAnApplicationIsUnchanged(t *testing.T) {
	h := newHouse(t, nil, func(cfg *Config) {
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
	})
	for _, query := range []string{"a;b", "a=%zz&b=1", "x=1;y=2&z", "a=1&a=2", "%"} {
		got := h.do(t, "GET", "/?"+query, toSandbox("3000"), nil)
		require.Equal(t, 200, got.Status, got.Body)
		all := h.reached()
		require.Equal(t, query, all[len(all)-1].Query)
	}
}

// A redirect to E2B's own host whose path reads as a host would lead outside.
func TestRedirectPathsAreNoHosts(t *testing.T) {
	for location, want := range map[string]string{
		"http://%s//evil.example/x":    "/evil.example/x",
		"http://%s/\\evil.example":     "/%5Cevil.example",
		"///evil.example":              "/evil.example",
		"//evil.example":               "",
		"https:evil.example":           "",
		"javascript:alert(1)":          "",
		"http://%s@evil.example/":      "",
		"http://%s.evil.example/":      "",
		"http://user:pass@%s/health?x": "/health?x",
	} {
		t.Run(location, func(t *testing.T) {
			h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", strings.ReplaceAll(location, "%s", r.Host))
				w.Header().Set("Alt-Svc", `h3="e2b.app:443"`)
				w.WriteHeader(http.StatusTemporaryRedirect)
			}, nil)
			got := h.do(t, "GET", "/health", toSandbox("49983"), nil)
			require.Equal(t, want, got.Header.Get("Location"))
			require.Empty(t, got.Header.Get("Alt-Svc"))
			if want == "" {
				require.GreaterOrEqual(t, got.Status, 500)
			}
		})
	}
}

// Requests that two servers may take apart in two ways arrive as one request
// that was judged, or not at all. Everything of them holds the word that the guard
// blocks, so nothing may arrive that reads it.
func TestSmuggledRequestsDoNotArrive(t *testing.T) {
	l := newLab(t)
	const inner = "POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nevil"
	to := func(lines ...string) string {
		h := l.to("49983", "Content-Type", "application/json")
		var b strings.Builder
		for i := 0; i < len(h); i += 2 {
			fmt.Fprintf(&b, "%s: %s\r\n", h[i], h[i+1])
		}
		return b.String() + strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	const stat = "POST /filesystem.Filesystem/Stat HTTP/1.1\r\nHost: gw\r\n"
	const ok = `{"path":"/tmp"}`
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(ok), ok)
	records, subjects := l.mark()
	n := 0
	for name, raw := range map[string]string{
		"length and chunks":            stat + to("Content-Length: 3", "Transfer-Encoding: chunked") + chunk + inner,
		"chunks and length":            stat + to("Transfer-Encoding: chunked", "Content-Length: 500") + chunk + inner,
		"chunked twice":                stat + to("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + chunk + inner,
		"chunked, identity":            stat + to("Transfer-Encoding: chunked, identity") + chunk + inner,
		"chunked in quotes":            stat + to(`Transfer-Encoding: "chunked"`) + chunk + inner,
		"chunked after a vertical tab": stat + to("Transfer-Encoding: \x0bchunked") + chunk + inner,
		"chunked after a space":        stat + to("Transfer-Encoding : chunked", "Content-Length: 4") + chunk + inner,
		"folded header":                stat + to("X: a\r\n Transfer-Encoding: chunked", fmt.Sprintf("Content-Length: %d", len(ok))) + ok + inner,
		"two lengths":                  stat + to("Content-Length: 15", "Content-Length: 100") + ok + inner,
		"length with a plus":           stat + to("Content-Length: +15") + ok + inner,
		"length in a list":             stat + to("Content-Length: 15, 15") + ok + inner,
		"length in hex":                stat + to("Content-Length: 0xf") + ok + inner,
		"length of nothing":            stat + to("Content-Length: ") + ok + inner,
		"negative length":              stat + to("Content-Length: -1") + ok + inner,
		"bare line feeds":              strings.ReplaceAll(stat+to("Content-Length: 15"), "\r\n", "\n") + ok + inner,
		"chunk extension":              stat + to("Transfer-Encoding: chunked") + strings.Replace(chunk, "\r\n", ";x=\"\r\n\"\r\n", 1) + inner,
		"chunk size over 64 bits":      stat + to("Transfer-Encoding: chunked") + "1000000000000000f\r\n" + ok + "\r\n0\r\n\r\n" + inner,
		"chunk size with a sign":       stat + to("Transfer-Encoding: chunked") + "+f\r\n" + ok + "\r\n0\r\n\r\n" + inner,
		"chunk without its end":        stat + to("Transfer-Encoding: chunked") + "f\r\n" + ok + "0\r\n\r\n" + inner,
		"two hosts":                    strings.Replace(stat, "Host: gw\r\n", "Host: gw\r\nHost: 49983-iother.gw\r\n", 1) + to("Content-Length: 15") + ok + inner,
		"a header named twice":         stat + "E2b-Sandbox-Id: iother\r\n" + to("Content-Length: 15") + ok + inner,
		"a NUL in a header":            stat + to("X: a\x00b", "Content-Length: 15") + ok + inner,
		"a space in a header's name":   stat + to("E2b Sandbox: x", "Content-Length: 15") + ok + inner,
		"a method of ours and theirs":  strings.Replace(stat, "POST ", "POST\t", 1) + to("Content-Length: 15") + ok + inner,
		"a version of its own":         strings.Replace(stat, "HTTP/1.1", "HTTP/1.9", 1) + to("Content-Length: 15") + ok + inner,
		"no version":                   "POST /filesystem.Filesystem/Stat\r\n\r\n" + inner,
		"the HTTP/2 preface":           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + inner,
		"CONNECT":                      "CONNECT sandbox.e2b.app:443 HTTP/1.1\r\nHost: x\r\n\r\n" + inner,
		"a path of only a query":       "POST ?x HTTP/1.1\r\nHost: gw\r\n" + to("Content-Length: 15") + ok + inner,
		"an authority with a user":     "POST http://a@gw/filesystem.Filesystem/Stat HTTP/1.1\r\nHost: gw\r\n" + to("Content-Length: 15") + ok + inner,
	} {
		// Each has a path of its own: a call whose client has left may arrive when
		// the next is under way.
		path := fmt.Sprintf("/t%02d", n)
		raw = strings.ReplaceAll(raw, "/tmp", path)
		n++
		t.Run(name, func(t *testing.T) {
			l.sendRaw(t, raw)
			arrived, saw := l.since(records, subjects)
			mine := 0
			for _, r := range arrived {
				require.Equal(t, "/filesystem.Filesystem/Stat", r.Path)
				require.Equal(t, l.sandbox, r.Sandbox)
				if strings.Contains(string(r.Body), path) {
					mine++
					require.JSONEq(t, `{"path":"`+path+`"}`, string(r.Body))
					require.True(t, sawText(saw, path))
				}
			}
			require.LessOrEqual(t, mine, 1)
		})
	}
}

// Odd values of envd's own headers neither run a command without a limit nor
// crash the daemon.
func TestHeadersOfACommandAreMadeSafe(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"Connect-Timeout-Ms", "Keepalive-Ping-Interval"} {
		for _, value := range []string{"0", "-1", "00", "-0", "+1", "1e3", "0x10", " 5", "5 ", "99999999999", "9999999999", "1", "4294967296", "18446744073709551616", "NaN", "٣", "", "1,2", "0\t"} {
			t.Run(name+" "+value, func(t *testing.T) {
				w := carriers(l)[0].request(l, "true").set(name, value)
				records, _ := l.mark()
				l.send(t, w)
				for _, r := range l.recorded()[records:] {
					if r.Path != w.target {
						continue // what the gateway ends a late command with
					}
					ms, err := strconv.Atoi(r.Header.Get("Connect-Timeout-Ms"))
					require.NoError(t, err, "a command without a deadline: %v", r.Header)
					require.Positive(t, ms)
					require.LessOrEqual(t, ms, 3_600_000)
					if v := r.Header.Get("Keepalive-Ping-Interval"); v != "" {
						s, err := strconv.Atoi(v)
						require.NoError(t, err)
						require.Positive(t, s)
					}
				}
				health := l.send(t, wire{method: "GET", target: "/health", headers: l.to("49983")})
				require.Equal(t, http.StatusNoContent, health.Status, "the daemon is down: %s", health.Body)
			})
		}
	}
}

// created is a create body as E2B reads it: keys in any case, the last of several
// counts.
type created struct {
	TemplateID          string
	Timeout             *int32
	Secure              *bool
	AutoPause           bool
	AutoResume          *struct{ Enabled bool }
	AllowInternetAccess *bool `json:"allow_internet_access"`
	Network             struct {
		AllowOut, DenyOut  []string
		AllowPublicTraffic *bool
		MaskRequestHost    *string
		EgressProxy, Rules json.RawMessage
	}
	EnvVars      map[string]string
	MCP, IAM     json.RawMessage
	VolumeMounts []json.RawMessage
}

// Whatever a create body says, a sandbox that is made is within policy.
func TestNoCreateBodyWidensPolicy(t *testing.T) {
	h := newHouse(t, nil, nil)
	nested := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for _, member := range []string{
		`"x":1`, `"timeout":null`, `"timeout":0`, `"timeout":-1`, `"timeout":"3600"`, `"timeout":3600.0`, `"timeout":1e9`, `"timeout":2147483648`,
		`"timeout":9223372036854775808`, `"timeout":86400`, `"Timeout":86400`, `"TIMEOUT":86400`, `"timeout":60,"timeout":86400`, `"time\u006fut":60,"timeout":86400`,
		`"timeout":true`, `"timeout":[60]`, `"timeout":{}`,
		`"secure":false`, `"Secure":false`, `"secure":null`, `"secure":"false"`, `"secure":0`, `"\u017fecure":false`,
		`"autoPause":true`, `"AutoPause":true`, `"autoPause":"true"`, `"autopause":true`, `"autoResume":{"enabled":true}`, `"autoResume":{"Enabled":true}`,
		`"autoResume":true`, `"autoResume":{"enabled":false,"enabled":true}`, `"autoRe\u017fume":{"enabled":true}`,
		`"allow_internet_access":true`, `"Allow_Internet_Access":true`, `"allow_internet_access":null`, `"allow_internet_acce\u017fs":true`, `"allow_internet_access":"true"`,
		`"network":{}`, `"network":null`, `"network":[]`, `"network":"open"`, `"Network":{"allowOut":["0.0.0.0/0"]}`, `"networ\u212a":{"allowOut":["0.0.0.0/0"]}`,
		`"network":{"allowOut":["0.0.0.0/0"]}`, `"network":{"allowOut":["*"]}`, `"network":{"allowOut":["1.0.0.0/1","128.0.0.0/1"]}`, `"network":{"allowout":["*"]}`,
		`"network":{"allowOut":[null]}`, `"network":{"allowOut":"*"}`, `"network":{"allowOut":[]}`, `"network":{"denyOut":[]}`, `"network":{"denyOut":["1.1.1.1/32"]}`, `"network":{"DenyOut":[]}`,
		`"network":{"allowPublicTraffic":true}`, `"network":{"AllowPublicTraffic":true}`, `"network":{"allowPublicTraffic":null}`, `"network":{"allowPublicTraffic":"false"}`,
		`"network":{"egressProxy":{"address":"x:1"}}`, `"network":{"rules":{"a":[]}}`, `"network":{"maskRequestHost":"x"}`, `"network":{"future":true}`, `"network":` + nested,
		`"network":{"allowOut":["api.example.com"],"denyOut":["0.0.0.0/0"]},"allow_internet_access":true`,
		`"MCP":{"a":{}}`, `"iam":{"tokens":{}}`, `"volumeMounts":[{"name":"v","path":"/v"}]`, `"VolumeMounts":[{"name":"v","path":"/v"}]`,
		`"envVars":{"BASH_ENV":"evil"}`, `"EnvVars":{"BASH_ENV":"evil"}`, `"envvars":{"BASH_ENV":"evil"}`, `"envVar\u017f":{"BASH_ENV":"evil"}`, `"envVars":{"A=B":"x"}`, `"envVars":{"":"x"}`, `"envVars":{"A":1}`, `"envVars":[]`,
		`"templateID":"other"`, `"TemplateID":"other"`, `"metadata":{"a":"b"}`, `"metadata":{"a":1}`, `"metadata":` + nested, `"extra":` + nested,
	} {
		for _, path := range []string{"/sandboxes", "/v2/sandboxes"} {
			t.Run(path+" "+member, func(t *testing.T) {
				before := len(h.reached())
				got := h.do(t, "POST", path, headers("X-API-KEY", labKey), strings.NewReader(`{"templateID":"base",`+member+`}`))
				arrived := h.reached()[before:]
				if len(arrived) == 0 {
					require.True(t, refused(got), got.Body)
					return
				}
				var c created
				require.NoError(t, json.Unmarshal(arrived[0].Body, &c))
				require.Equal(t, "base", c.TemplateID)
				require.NotNil(t, c.Timeout)
				require.Positive(t, *c.Timeout)
				require.LessOrEqual(t, *c.Timeout, int32(3600))
				require.True(t, path != "/sandboxes" || c.Secure != nil && *c.Secure)
				require.False(t, c.Secure != nil && !*c.Secure)
				require.False(t, c.AutoPause || c.AutoResume != nil && c.AutoResume.Enabled)
				require.True(t, c.AllowInternetAccess != nil && !*c.AllowInternetAccess)
				require.Empty(t, c.Network.AllowOut)
				require.Equal(t, []string{"0.0.0.0/0"}, c.Network.DenyOut)
				require.True(t, c.Network.AllowPublicTraffic != nil && !*c.Network.AllowPublicTraffic)
				require.Nil(t, c.Network.MaskRequestHost)
				require.Empty(t, string(c.Network.EgressProxy)+string(c.Network.Rules)+string(c.MCP)+string(c.IAM))
				require.Empty(t, c.VolumeMounts)
				require.NotContains(t, c.EnvVars, "BASH_ENV")
			})
		}
	}
}

// A sandbox's network is not opened after it was made.
func TestNoNetworkUpdateWidensPolicy(t *testing.T) {
	l := newLab(t)
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `{"allowOut":["0.0.0.0/0"]}`, `{"allow_internet_access":true}`, `{"Allow_Internet_Access":true}`, `{"allowOut":["*"],"denyOut":["0.0.0.0/0"]}`,
		`{"denyOut":[]}`, `{"network":{"allowOut":["*"]}}`, `{"AllowOut":["*"]}`, `{"allowOut":["a.example"],"allowOut":[]}`, `{"egressProxy":{"address":"x:1"}}`,
		`{"rules":{"a.example":[]}}`, `{"x":1}`, `{"denyOut":["::/0"]}`, `{"denyOut":["0.0.0.0/0"]}`,
	} {
		t.Run(body, func(t *testing.T) {
			records, _ := l.mark()
			got := l.send(t, wire{method: "PUT", target: "/sandboxes/" + l.sandbox + "/network", headers: []string{"X-API-KEY", labKey}, body: body})
			arrived := l.recorded()[records:]
			if len(arrived) == 0 {
				require.True(t, refused(got), got.Body)
				return
			}
			var c struct {
				AllowInternetAccess *bool `json:"allow_internet_access"`
				AllowOut, DenyOut   []string
				EgressProxy, Rules  json.RawMessage
			}
			require.NoError(t, json.Unmarshal(arrived[0].Body, &c))
			require.True(t, c.AllowInternetAccess != nil && !*c.AllowInternetAccess)
			require.Empty(t, c.AllowOut)
			require.Equal(t, []string{"0.0.0.0/0"}, c.DenyOut)
			require.Empty(t, string(c.EgressProxy)+string(c.Rules))
		})
	}
}

// Ways to start a program so that the text in it does not look like one.
func TestNoProcessHidesItsText(t *testing.T) {
	l := newLab(t)
	for name, process := range map[string]string{
		"env -S":                    `"cmd":"env","args":["-S","bash -c evil"]`,
		"busybox":                   `"cmd":"busybox","args":["sh","-c","evil"]`,
		"a relative program":        `"cmd":"./evil"`,
		"a program with a space":    `"cmd":"bash -c evil"`,
		"this very program":         `"cmd":"/proc/self/exe","args":["evil"]`,
		"the loader":                `"cmd":"/lib64/ld-linux-x86-64.so.2","args":["/bin/sh","-c","evil"]`,
		"a shell that reads input":  `"cmd":"sh","args":["-s","evil"]`,
		"a script file":             `"cmd":"bash","args":["/tmp/evil.sh"]`,
		"an init file":              `"cmd":"bash","args":["--init-file","/tmp/evil","-i"]`,
		"an option that takes one":  `"cmd":"bash","args":["-O","extglob","-c","evil"]`,
		"a parameter":               `"cmd":"bash","args":["-c","\"$@\"","x","evil"]`,
		"the name of the script":    `"cmd":"bash","args":["-c","$0","evil"]`,
		"our own wrapper":           `"cmd":"/bin/sh","args":["-c","exec \"$@\"","--","evil"]`,
		"our own wrapper, twice":    `"cmd":"/bin/sh","args":["-c","exec \"$@\"","--","/bin/sh","-c","exec \"$@\"","--","evil"]`,
		"python":                    `"cmd":"python3","args":["-Ic","evil"]`,
		"python's module":           `"cmd":"python3","args":["-m","evil"]`,
		"node, behind an option":    `"cmd":"node","args":["--title","x","-p","evil"]`,
		"a variable sourced":        `"cmd":"true","envs":{"BASH_ENV":"/tmp/evil"}`,
		"a variable preloaded":      `"cmd":"true","envs":{"LD_PRELOAD":"/tmp/evil.so"}`,
		"an exported function":      `"cmd":"true","envs":{"BASH_FUNC_ls%%":"() { evil; }"}`,
		"a search path":             `"cmd":"ls","envs":{"PATH":"/tmp/evil"}`,
		"git's configuration":       `"cmd":"git","envs":{"GIT_CONFIG_COUNT":"1","GIT_CONFIG_KEY_0":"core.sshCommand","GIT_CONFIG_VALUE_0":"evil"}`,
		"R's tests":                 `"cmd":"R","envs":{"R_TESTS":"/tmp/evil.R"}`,
		"an option to nice":         `"cmd":"-n","args":["5","ls"]`,
		"the end of nice's options": `"cmd":"--","args":["ls"]`,
		"no program":                `"cmd":"","args":["ls"]`,
		"a NUL":                     `"cmd":"ls\u0000evil"`,
		"a variable in a name":      `"cmd":"ls","envs":{"A=1\nBASH_ENV":"x"}`,
		"the system's tag":          `"cmd":"ls"},"tag":"_system","x":{"a":1`,
		"a path with a link in it":  `"cmd":"/tmp/evil/../../bin/bash","args":["-c","ls"]`,
		"a limit taken off":         `"cmd":"/bin/sh","args":["-c","ulimit -t unlimited; evil"]`,
	} {
		t.Run(name, func(t *testing.T) {
			records, _ := l.mark()
			w := wire{target: "/process.Process/Start", headers: l.to("49983", "Content-Type", "application/connect+json"), body: string(frame(`{"process":{` + process + `}}`))}
			got := l.send(t, w)
			require.True(t, refused(got), got.Body)
			require.Empty(t, l.recorded()[records:])
		})
	}
}

// Every form of a file's name is read as the daemon reads it, and what arrives is
// the path and the content that were judged.
func TestEveryFormOfAnUploadIsJudged(t *testing.T) {
	l := newLab(t)
	ways := []func(wire) wire{
		func(w wire) wire { return w },
		func(w wire) wire { w.proto = "HTTP/1.0"; return w },
		func(w wire) wire { w.proto = "h2c"; return w },
		func(w wire) wire { w.proto = "h2"; return w },
		func(w wire) wire { w.pieces = true; return w },
		func(w wire) wire { w.expect = true; return w },
		func(w wire) wire { w.trailer = []string{"Content-Type", "text/plain"}; return w },
	}
	part := func(disposition string, more ...string) string {
		return "--b\r\nContent-Disposition: " + disposition + "\r\n" + strings.Join(append(more, ""), "\r\n") + "\r\nCONTENT\r\n"
	}
	const end = "--b--\r\n"
	const named = `form-data; name="file"; filename="/home/user/NAME.sh"`
	unread := map[string]bool{ // what the daemon refuses or passes over too, or could read in two ways
		"unquoted": true, "another kind": true,
		"the name twice": true, "the field's name twice": true, "the query twice": true, "a semicolon": true, "no end": true,
		"gzip twice": true, "a boundary twice": true, "related": true,
		"raw without a path": true, "raw, of no type": true, "raw, a form's type": true,
	}
	for name, tc := range map[string]struct {
		query string
		body  string
		more  []string
	}{
		"plain":                        {"", part(named) + end, nil},
		"unquoted":                     {"", part(`form-data; name=file; filename=/home/user/NAME.sh`) + end, nil},
		"another kind":                 {"", part(`attachment; name="file"; filename="/home/user/NAME.sh"`) + end, nil},
		"RFC 5987":                     {"", part(`form-data; name="file"; filename*=UTF-8''%2Fhome%2Fuser%2FNAME.sh`) + end, nil},
		"both forms":                   {"", part(`form-data; name="file"; filename="/home/user/x.txt"; filename*=UTF-8''%2Fhome%2Fuser%2FNAME.sh`) + end, nil},
		"continued":                    {"", part(`form-data; name="file"; filename*0="/home/user/"; filename*1="NAME.sh"`) + end, nil},
		"continued and encoded":        {"", part(`form-data; name="file"; filename*0*=UTF-8''%2Fhome%2F; filename*1*=user%2FNAME; filename*2=".sh"`) + end, nil},
		"the name twice":               {"", part(`form-data; name="file"; filename="/home/user/x.txt"; filename="/home/user/NAME.sh"`) + end, nil},
		"the header twice":             {"", part(named, `Content-Disposition: form-data; name="file"; filename="/home/user/x.txt"`) + end, nil},
		"the field's name twice":       {"", part(`form-data; name="file"; name="x"; filename="/home/user/NAME.sh"`) + end, nil},
		"quoted-printable":             {"", part(named, "Content-Transfer-Encoding: quoted-printable") + end, nil},
		"base64, which is not decoded": {"", part(named, "Content-Transfer-Encoding: base64") + end, nil},
		"escaped quotes":               {"", part(`form-data; name="file"; filename="/home/user/a\"NAME.sh"`) + end, nil},
		"a backslash":                  {"", part(`form-data; name="file"; filename="/home/user/a\\NAME.sh"`) + end, nil},
		"parents":                      {"", part(`form-data; name="file"; filename="/var/run/../home/user/NAME.sh"`) + end, nil},
		"the query wins":               {"?path=/home/user/NAME.sh", part(`form-data; name="file"; filename="/x.txt"`) + end, nil},
		"the query escaped":            {"?p%61th=%2Fhome%2Fuser%2FNAME.sh", part(named) + end, nil},
		"an empty query":               {"?path=", part(named) + end, nil},
		"the query twice":              {"?path=/a.txt&path=/home/user/NAME.sh", part(named) + end, nil},
		"a semicolon":                  {"?path=/a.txt;path=/home/user/NAME.sh", part(named) + end, nil},
		"another field first":          {"", part(`form-data; name="note"`) + part(named) + end, nil},
		"text before the first part":   {"", "preamble\r\n" + part(named) + end, nil},
		"text after the last part":     {"", part(named) + end + part(`form-data; name="file"; filename="/home/user/late.sh"`), nil},
		"a file after the end":         {"", part(named) + end + "\r\n" + part(named) + end, nil},
		"bare line feeds":              {"", strings.ReplaceAll(part(named)+end, "\r\n", "\n"), nil},
		"white space after a boundary": {"", strings.Replace(part(named)+end, "--b\r\n", "--b \t\r\n", 1), nil},
		"no end":                       {"", part(named), nil},
		"gzip":                         {"", part(named) + end, []string{"Content-Encoding", "gzip"}},
		"gzip in another case":         {"", part(named) + end, []string{"Content-Encoding", "GZIP;q=1"}},
		"gzip twice":                   {"", part(named) + end, []string{"Content-Encoding", "gzip, gzip"}},
		"mixed":                        {"", part(named) + end, []string{"Content-Type", "multipart/mixed; boundary=b"}},
		"a boundary twice":             {"", part(named) + end, []string{"Content-Type", "multipart/form-data; boundary=b; boundary=c"}},
		"a boundary in RFC 2231":       {"", part(named) + end, []string{"Content-Type", "multipart/form-data; boundary*=us-ascii''b"}},
		"related":                      {"", part(named) + end, []string{"Content-Type", "multipart/related; boundary=b"}},
		"raw":                          {"?path=/home/user/NAME.sh", "CONTENT", []string{"Content-Type", "application/octet-stream"}},
		"raw with a parameter":         {"?path=/home/user/NAME.sh", "CONTENT", []string{"Content-Type", "Application/Octet-Stream; x=y"}},
		"raw without a path":           {"", "CONTENT", []string{"Content-Type", "application/octet-stream"}},
		"raw, of no type":              {"?path=/home/user/NAME.sh", "CONTENT", []string{"Content-Type", ""}},
		"raw, a form's type":           {"?path=/home/user/NAME.sh", "CONTENT", []string{"Content-Type", "application/x-www-form-urlencoded"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, word := range []struct{ name, content string }{{"fine", "fine"}, {"evil", "fine"}, {"fine", "evil"}, {"fine", "ev=69l"}} {
				fill := strings.NewReplacer("NAME", word.name, "CONTENT", word.content)
				w := wire{target: "/files" + fill.Replace(tc.query), headers: l.to("49983", "Content-Type", "multipart/form-data; boundary=b"), body: fill.Replace(tc.body)}
				if len(tc.more) > 0 {
					w = w.set(tc.more[0], tc.more[1])
					if tc.more[0] == "Content-Encoding" {
						w.body = zip(w.body)
					}
				}
				for _, way := range ways {
					arrived := judgedOrRefused(t, l, way(w))
					if word.name+word.content == "finefine" {
						require.Equal(t, !unread[name], arrived)
					}
				}
			}
		})
	}
}

// judgedOrRefused sends an upload: every file that arrives was judged, as it
// arrives. It reports whether one did.
func judgedOrRefused(t *testing.T, l *lab, w wire) (fileArrived bool) {
	t.Helper()
	records, subjects := l.mark()
	got := l.send(t, w)
	arrived, saw := l.since(records, subjects)
	if len(arrived) == 0 {
		require.True(t, refused(got), got.Body)
	}
	for _, r := range arrived {
		if r.File == nil {
			continue
		}
		require.NotContains(t, r.File.Path+r.File.Head, "evil")
		judged := false
		for _, s := range saw {
			judged = judged || s.Kind == guard.KindFile && s.Target == r.File.Path && s.Text == r.File.Head
		}
		require.True(t, judged, "%+v arrived, the guard saw %+v", r.File, saw)
		fileArrived = true
	}
	return fileArrived
}

// A body of thousands of files is neither held nor forwarded unjudged.
func TestUploadOfManyFilesHoldsFew(t *testing.T) {
	var most atomic.Int64
	var held func() int64
	up := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	g := guardFunc(func(s guard.Subject) guard.Decision {
		if n := held(); n > most.Load() {
			most.Store(n)
		}
		if strings.Contains(s.Text, "evil") {
			return guard.Block
		}
		return guard.Pass
	})
	front := newStreamingHouse(t, up, &held, func(cfg *Config) {
		cfg.Guard = g
		cfg.Body.MessageBytes, cfg.Body.SpillBytes = 1<<20, 1<<20
	})
	send := func(last string) answer {
		var files [][2]string
		for i := range 200 {
			files = append(files, [2]string{fmt.Sprintf("/home/user/%d.py", i), "x = '" + strings.Repeat("a", 30_000) + "'\n"})
		}
		contentType, body := form(t, append(files, [2]string{"/home/user/last.py", last})...)
		h := &house{url: front}
		return h.do(t, "POST", "/files", toSandbox("49983", "Content-Type", contentType), body)
	}
	require.Equal(t, 200, send("fine").Status)
	require.Equal(t, 403, send("evil").Status)
	require.Positive(t, most.Load())
	require.Less(t, most.Load(), int64(2<<20), "6 MiB of files were sent")
	require.Zero(t, held())
}

// A fault in the middle of a streaming upload ends that call, not the process.
func TestPanicInAStreamingUploadIsCaught(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer up.Close()
	g := newGateway(t, up.URL)
	r := httptest.NewRequest("POST", "/files?path=/home/user/a.csv", io.MultiReader(strings.NewReader(strings.Repeat("a,b\n", 100_000)), panicking{}))
	r.Header = toSandbox("49983", "Content-Type", "application/octet-stream")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	require.Equal(t, 500, w.Code, w.Body)
	require.Contains(t, w.Body.String(), "e2bguard failed")
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("fault") }

// One call must not cost thousands of reviews.
func TestOneCallHasABoundedNumberOfSubjects(t *testing.T) {
	h := newHouse(t, nil, nil)
	var envs []string
	for i := range 1000 {
		envs = append(envs, fmt.Sprintf(`"GIT_CONFIG_KEY_%d":"x"`, i))
	}
	got := h.do(t, "POST", "/process.Process/Start", startHeaders(), strings.NewReader(string(frame(`{"process":{"cmd":"ls","envs":{`+strings.Join(envs, ",")+`}}}`))))
	require.Contains(t, got.Body, "separate pieces of code")
	require.Empty(t, h.reached())
}

// A reason may quote a guard, and a guard may quote what it read: neither secrets
// nor megabytes reach the client or the log.
func TestReasonsAreShortAndHoldNoSecret(t *testing.T) {
	const key = "e2b_00000000000000000000000000000000000000aa"
	h := newHouse(t, nil, func(cfg *Config) {
		vault(cfg)
		cfg.Guard = answering(func(context.Context) (guard.Verdict, error) {
			return guard.Verdict{Decision: guard.Block, Guard: "leaky", Reasoning: "it sends " + key + " away: " + strings.Repeat("é", 1<<20)}, nil
		})
	})
	for path, body := range map[string]string{
		"/process.Process/Start":           string(frame(`{"process":{"cmd":"ls"}}`)),
		"/" + strings.Repeat("x", 100_000): "",
	} {
		got := h.do(t, "POST", path, startHeaders("X-Access-Token", sealedEnvd("isbx1", "team-a", "ea_1")), strings.NewReader(body))
		require.Less(t, len(got.Body), 8<<10)
		require.NotContains(t, got.Body, key)
		require.True(t, json.Valid([]byte(got.Body[strings.IndexByte(got.Body, '{'):])))
	}
	got := h.do(t, "POST", "/filesystem.Filesystem/Remove", toSandbox("49983", "Content-Type", "application/json", "X-Access-Token", sealedEnvd("isbx1", "team-a", "ea_1")), strings.NewReader(`{"path":"/`+strings.Repeat("x", 1<<20)+`"}`))
	require.Equal(t, 403, got.Status)
	for _, e := range h.log.All() {
		text := zapText(e.ContextMap())
		require.Less(t, len(text), 32<<10)
		require.NotContains(t, text, key)
	}
}

// guardFunc is a guard that decides by a function.
type guardFunc func(guard.Subject) guard.Decision

func (g guardFunc) Review(_ context.Context, s guard.Subject) (guard.Verdict, error) {
	return guard.Verdict{Decision: g(s), Guard: "func", Reasoning: "the function says so."}, nil
}

// Clients that leave at any moment, guards and upstreams that hang, break off or
// answer garbage: nothing unseen arrives, and nothing is left behind.
func TestChaosLeavesNothingBehind(t *testing.T) {
	const clients = 500
	var unseen atomic.Int32
	seen := sync.Map{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if at := strings.Index(string(b), "unique-"); at >= 0 {
			if _, ok := seen.Load(string(b[at : at+13])); !ok {
				unseen.Add(1)
			}
		}
		switch rand.IntN(6) {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			<-r.Context().Done()
		case 2:
			streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`), []byte{0, 0, 0})
			panic(http.ErrAbortHandler)
		case 3:
			_, _ = io.WriteString(w, strings.Repeat("garbage ", 1000))
		case 4:
			streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`))
			<-r.Context().Done()
		default:
			streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`), endFrame("{}"))
		}
	}))
	defer up.Close()
	g := newGateway(t, up.URL, func(cfg *Config) {
		cfg.IdleTimeout = 200 * time.Millisecond
		cfg.Guard = chaotic(func(ctx context.Context, s guard.Subject) (guard.Verdict, error) {
			switch rand.IntN(8) {
			case 0: // a guard hangs no longer than its own timeout
				ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				<-ctx.Done()
				return guard.Verdict{}, ctx.Err()
			case 1:
				return guard.Verdict{}, errors.New("fault")
			case 2:
				panic("fault")
			}
			if at := strings.Index(s.Text, "unique-"); at >= 0 {
				seen.Store(s.Text[at:at+13], true)
			}
			return guard.Verdict{Decision: guard.Pass}, nil
		})
	})
	front := httptest.NewServer(g)
	defer front.Close()
	transport := &http.Transport{MaxConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(400))*time.Millisecond)
			defer cancel()
			text := fmt.Sprintf("unique-%06d", i)
			var req *http.Request
			switch i % 4 {
			case 0:
				req, _ = http.NewRequestWithContext(ctx, "POST", front.URL+"/process.Process/Start", command(t, text))
				req.Header = startHeaders()
			case 1:
				req, _ = http.NewRequestWithContext(ctx, "POST", front.URL+"/execute", strings.NewReader(`{"code":"`+text+`"}`))
				req.Header = toSandbox("49999", "Content-Type", "application/json")
			case 2:
				req, _ = http.NewRequestWithContext(ctx, "POST", front.URL+"/files?path=/home/user/x.sh", io.MultiReader(strings.NewReader("echo "+text)))
				req.Header = toSandbox("49983", "Content-Type", "application/octet-stream")
			default:
				req, _ = http.NewRequestWithContext(ctx, "POST", front.URL+"/files?path=/home/user/x.csv", io.MultiReader(strings.NewReader(strings.Repeat("1,2\n", 50_000))))
				req.Header = toSandbox("49983", "Content-Type", "application/octet-stream")
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	wg.Wait()
	require.Zero(t, unseen.Load())
	require.Eventually(t, func() bool { return g.bodies.Held() == 0 }, 10*time.Second, 5*time.Millisecond)
}

type chaotic func(context.Context, guard.Subject) (guard.Verdict, error)

func (c chaotic) Review(ctx context.Context, s guard.Subject) (guard.Verdict, error) {
	return c(ctx, s)
}
