package route

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// request builds a request as net/http's server would, from a request line and
// "Name: value" headers.
func request(method, target, host string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

const (
	idSbx1   = HeaderSandboxID + ": sbx1"
	portEnvd = HeaderSandboxPort + ": 49983"
)

// Both forms are live at once and must mean the same (e2b-dev/E2B PR 1342).
func TestOneSandboxHasOneMeaningInEveryForm(t *testing.T) {
	tests := map[string]struct {
		host    string
		headers []string
		byHost  bool
	}{
		"domain form":                         {"49983-sbx1.e2b.test", nil, true},
		"domain form in capitals":             {"49983-SBX1.E2B.Test", nil, true},
		"domain form with a port":             {"49983-sbx1.e2b.test:8443", nil, true},
		"domain form with a final dot":        {"49983-sbx1.e2b.test.", nil, true},
		"domain form with a client id":        {"49983-sbx1-6532622b.e2b.test", nil, true},
		"domain form, deep":                   {"49983-sbx1.demo.gw.e2b.test", nil, true},
		"domain form with headers that agree": {"49983-sbx1.e2b.test", []string{idSbx1, portEnvd}, true},
		"domain form with one header":         {"49983-sbx1.e2b.test", []string{idSbx1}, true},
		"shared host":                         {"sandbox.e2b.test", []string{idSbx1, portEnvd}, false},
		"localhost":                           {"localhost:8080", []string{idSbx1, portEnvd}, false},
		"IPv4":                                {"127.0.0.1:8080", []string{idSbx1, portEnvd}, false},
		"IPv6":                                {"[::1]:8080", []string{idSbx1, portEnvd}, false},
		"IPv6 without a port":                 {"[::1]", []string{idSbx1, portEnvd}, false},
		"a Kubernetes service":                {"e2b-guard.agents.svc.cluster.local", []string{idSbx1, portEnvd}, false},
		"a bare name":                         {"e2bguard", []string{idSbx1, portEnvd}, false},
		"the gateway's own name":              {"gw.example.test", []string{idSbx1, portEnvd}, false},
		"headers twice, the same":             {"localhost", []string{idSbx1, idSbx1, portEnvd}, false},
		"public domain: shared host":          {"sandbox.gw.example.test", []string{idSbx1, portEnvd}, false},
		"public domain: one host per sandbox": {"49983-sbx1.gw.example.test", nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ref := Identify(request("POST", "/process.Process/Start", tt.host, tt.headers...), "gw.example.test")
			require.Nil(t, ref)
			assert.Equal(t, Target{
				Plane: Envd, Sandbox: "sbx1", Port: 49983, Path: "/process.Process/Start", RawPath: "/process.Process/Start",
				Row: Row{Envd, "POST", "/process.Process/Start", ProcessStart, Guard, ""}, ByHost: tt.byHost,
			}, got)
			h := http.Header{HeaderSandboxID: {"forged", "twice"}, HeaderSandboxPort: {"1"}}
			got.SetHeaders(h)
			assert.Equal(t, http.Header{HeaderSandboxID: {"sbx1"}, HeaderSandboxPort: {"49983"}}, h)
		})
	}
}

func TestRequestsWithTwoMeaningsOrNoneAreRefused(t *testing.T) {
	tests := map[string]struct {
		host    string
		headers []string
		want    string
	}{
		"host and headers name two sandboxes": {"49983-sbx1.e2b.test", []string{HeaderSandboxID + ": sbx2", portEnvd}, "two meanings"},
		"host and headers name two ports":     {"8080-sbx1.e2b.test", []string{idSbx1, portEnvd}, "two meanings"},
		"two header values":                   {"localhost", []string{idSbx1, HeaderSandboxID + ": sbx2", portEnvd}, "more than once"},
		"two header values, the first empty":  {"localhost", []string{HeaderSandboxID + ": ", idSbx1, portEnvd}, "more than once"},
		"two ports":                           {"localhost", []string{idSbx1, portEnvd, HeaderSandboxPort + ": 49999"}, "more than once"},
		"no port header":                      {"localhost", []string{idSbx1}, HeaderSandboxPort},
		"no id header":                        {"localhost", []string{portEnvd}, HeaderSandboxID},
		"zero-padded port in the host":        {"049983-sbx1.e2b.test", nil, "without leading zeros"},
		"zero-padded port in the header":      {"localhost", []string{idSbx1, HeaderSandboxPort + ": 049983"}, "without leading zeros"},
		"port out of range":                   {"99999999-sbx1.e2b.test", nil, "1 to 65535"},
		"port above 65535":                    {"65536-sbx1.e2b.test", nil, "1 to 65535"},
		"port zero":                           {"0-sbx1.e2b.test", nil, "1 to 65535"},
		"port zero in the header":             {"localhost", []string{idSbx1, HeaderSandboxPort + ": 0"}, "1 to 65535"},
		"signed port":                         {"localhost", []string{idSbx1, HeaderSandboxPort + ": +49983"}, "1 to 65535"},
		"hexadecimal port":                    {"localhost", []string{idSbx1, HeaderSandboxPort + ": 0xc33f"}, "1 to 65535"},
		"port beyond 64 bits":                 {"localhost", []string{idSbx1, HeaderSandboxPort + ": 18446744073709601599"}, "1 to 65535"},
		"capitals in the id header":           {"localhost", []string{HeaderSandboxID + ": SBX1", portEnvd}, "no valid sandbox id"},
		"id header with a path":               {"localhost", []string{HeaderSandboxID + ": sbx1/../sbx2", portEnvd}, "no valid sandbox id"},
		"id header with a colon":              {"localhost", []string{HeaderSandboxID + ": sbx:1", portEnvd}, "no valid sandbox id"},
		"empty id in the host":                {"49983-.e2b.test", nil, "no valid sandbox id"},
		"underscore in the host's id":         {"49983-sb_1.e2b.test", nil, "no valid sandbox id"},
		"sandbox host without a domain":       {"49983-sbx1", nil, "without a domain"},
		"sandbox host with only a final dot":  {"49983-sbx1.", nil, "without a domain"},
		"control plane host with headers":     {"api.e2b.test", []string{idSbx1, portEnvd}, "control plane"},
		"public shared host without headers":  {"sandbox.gw.example.test", nil, "names none"},
		"no host":                             {"", nil, "no usable Host"},
		"empty label":                         {"49983-sbx1..e2b.test", nil, "empty label"},
		"host with a path":                    {"49983-sbx1.e2b.test/x", nil, "no host name has"},
		"host with a user":                    {"x@49983-sbx1.e2b.test", nil, "no host name has"},
		"host that is not ASCII":              {"49983-sbx１.e2b.test", nil, "no host name has"},
		"address with a zone":                 {"[fe80::1%25eth0]", []string{idSbx1, portEnvd}, "no valid address"},
		"port of the host is no number":       {"localhost:http", nil, "invalid port"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, ref := Identify(request("POST", "/process.Process/Start", tt.host, tt.headers...), "gw.example.test")
			require.NotNil(t, ref)
			assert.Equal(t, refusal.CodeUnroutable, ref.Code)
			assert.Equal(t, http.StatusBadRequest, ref.Status)
			assert.Contains(t, ref.Reason, tt.want)
		})
	}
}

// Old SDKs behind a custom sandbox URL send files without routing headers; the
// answer must say so and never be a 500 (e2b-dev/E2B#1158).
func TestFilesWithoutRoutingNameTheHeadersAndWhoOmitsThem(t *testing.T) {
	r := request("POST", "/files?path=/a.txt&username=user", "gw.example.test")
	got, ref := Identify(r, "")
	require.NotNil(t, ref)
	assert.Equal(t, http.StatusBadRequest, ref.Status)
	assert.Equal(t, Files, got.Plane, "the answer must be one that a file client reads")
	for _, want := range []string{HeaderSandboxID, HeaderSandboxPort, "old E2B JavaScript SDKs", "public_domain"} {
		assert.Contains(t, ref.Reason, want)
	}

	got, ref = Identify(request("POST", "/files?path=/a.txt&username=user", "49983-sbx1.gw.example.test"), "")
	require.Nil(t, ref)
	assert.Equal(t, FilesWrite, got.Row.Operation)
	assert.Equal(t, "sbx1", got.Sandbox)

	for path, plane := range map[string]Plane{"/process.Process/Start": Envd, "/execute": Interpreter, "/contexts": Interpreter} {
		got, ref = Identify(request("POST", path, "gw.example.test"), "")
		require.NotNil(t, ref)
		assert.Equal(t, refusal.CodeUnroutable, ref.Code)
		assert.Equal(t, plane, got.Plane)
	}
}

func TestThePortDecidesThePlane(t *testing.T) {
	for port, want := range map[string]Plane{"49983": Envd, "49999": Interpreter, "50005": MCP, "3000": Port, "8888": Port, "49982": Port} {
		path := "/health"
		if want == MCP {
			path = "/mcp"
		}
		got, ref := Identify(request("GET", path, port+"-sbx1.gw.example.test"), "")
		require.Nil(t, ref)
		assert.Equal(t, want, got.Plane)
	}
	got, ref := Identify(request("GET", "/health", "gw.example.test"), "")
	require.Nil(t, ref)
	assert.Equal(t, ControlHealth, got.Row.Operation)
	h := http.Header{HeaderSandboxID: {"forged"}}
	got.SetHeaders(h)
	assert.Empty(t, h)
}

// envd's private endpoints were reachable through E2B's own proxy
// (e2b-dev/infra PR 1862); operations marked x-internal in its API file, and
// /upgrade, are never legitimate.
func TestInternalRoutesAreKnownInEverySpelling(t *testing.T) {
	for _, name := range []string{"init", "freeze", "unfreeze", "collapse", "fsfreeze", "fsthaw", "upgrade"} {
		for _, target := range []string{
			"/" + name, "//" + name, "/./" + name, "/" + name + "/", "/%2f" + name, "/files/../" + name, "/x/..%2f" + name,
			"/%" + hexOf(name[0]) + name[1:], "/files/%2e%2e/" + name, "/" + name + "?x=1",
		} {
			for _, method := range []string{"POST", "GET", "PUT", "OPTIONS"} {
				got, ref := Identify(request(method, target, "49983-sbx1.e2b.test"), "")
				require.Nil(t, ref, "%s %s", method, target)
				assert.Equal(t, EnvdInternal, got.Row.Operation, "%s %s", method, target)
				assert.Equal(t, Deny, got.Row.Default)
				assert.Equal(t, "/"+name, got.RawPath)
			}
		}
	}
	for _, target := range []string{"/INIT", "/init/x", "/%252finit", "/init%00", "/v2/init"} {
		_, ref := Identify(request("POST", target, "49983-sbx1.e2b.test"), "")
		require.NotNil(t, ref, target)
		assert.Equal(t, refusal.CodeUnknown, ref.Code, target)
	}
}

func hexOf(c byte) string { const h = "0123456789abcdef"; return string([]byte{h[c>>4], h[c&15]}) }

func TestPathsAreMatchedAsTheServerMatchesThemAndForwardedInOneForm(t *testing.T) {
	const envd, code, api = "49983-sbx1.e2b.test", "49999-sbx1.e2b.test", "gw.example.test"
	tests := map[string]struct {
		method, target, host string
		op                   Operation // "" if refused
		rawPath              string
		params               map[string]string
	}{
		"RPC":                               {"POST", "/process.Process/Start", envd, ProcessStart, "/process.Process/Start", nil},
		"RPC, method escaped":               {"POST", "/process.Process/%53tart", envd, ProcessStart, "/process.Process/Start", nil},
		"RPC with a query":                  {"POST", "/process.Process/Start?x=1", envd, ProcessStart, "/process.Process/Start", nil},
		"RPC, service escaped":              {"POST", "/%70rocess.Process/Start", envd, "", "", nil},
		"RPC, slash escaped":                {"POST", "/process.Process%2fStart", envd, "", "", nil},
		"RPC, doubled slash":                {"POST", "//process.Process/Start", envd, "", "", nil},
		"RPC, dot":                          {"POST", "/process.Process/./Start", envd, "", "", nil},
		"RPC, trailing slash":               {"POST", "/process.Process/Start/", envd, "", "", nil},
		"RPC, other case":                   {"POST", "/process.Process/start", envd, "", "", nil},
		"RPC, parent":                       {"POST", "/x/../process.Process/Start", envd, "", "", nil},
		"RPC by GET":                        {"GET", "/process.Process/Start", envd, "", "", nil},
		"RPC by PUT":                        {"PUT", "/process.Process/Start", envd, "", "", nil},
		"RPC, unknown method":               {"POST", "/process.Process/Exec", envd, "", "", nil},
		"RPC of the upgrade service":        {"POST", "/upgrade.Upgrade/Run", envd, "", "", nil},
		"files, escaped":                    {"POST", "/%66iles", envd, "", "", nil},
		"files, trailing slash":             {"POST", "/files/", envd, "", "", nil},
		"files by PUT":                      {"PUT", "/files", envd, "", "", nil},
		"files by HEAD":                     {"HEAD", "/files", envd, "", "", nil},
		"files, query void by a semicolon":  {"POST", "/files?path=/a;path=/b", envd, "", "", nil},
		"files, query with a broken escape": {"POST", "/files?path=%zz", envd, "", "", nil},
		"files, query cut in an escape":     {"POST", "/files?path=%2", envd, "", "", nil},
		"compose":                           {"POST", "/files/compose", envd, FilesCompose, "/files/compose", nil},
		"compose, escaped":                  {"POST", "/files/%63ompose", envd, "", "", nil},
		"execute":                           {"POST", "/execute", code, CodeRun, "/execute", nil},
		"execute, escaped":                  {"POST", "/%65xecute", code, CodeRun, "/execute", nil},
		"execute, trailing slash":           {"POST", "/execute/", code, "", "", nil},
		"execute with a parameter":          {"POST", "/execute;a", code, "", "", nil},
		"execute on envd's port":            {"POST", "/execute", envd, "", "", nil},
		"RPC on the interpreter's port":     {"POST", "/process.Process/Start", code, "", "", nil},
		"context":                           {"DELETE", "/contexts/56cad9b6-ff2e", code, ContextDelete, "/contexts/56cad9b6-ff2e", map[string]string{"contextID": "56cad9b6-ff2e"}},
		"context, traversal":                {"POST", "/contexts/..%2f..%2fapi/restart", code, "", "", nil},
		"context, parent":                   {"POST", "/contexts/%2e%2e/restart", code, "", "", nil},
		"context with a line break":         {"DELETE", "/contexts/a%0ab", code, "", "", nil},
		"context with a NUL":                {"DELETE", "/contexts/a%00", code, "", "", nil},
		"context with a backslash":          {"DELETE", "/contexts/..%5cx", code, "", "", nil},
		"context that is not UTF-8":         {"DELETE", "/contexts/%ff", code, "", "", nil},

		"sandbox":                          {"GET", "/sandboxes/iabc", api, SandboxInfo, "/sandboxes/iabc", map[string]string{"sandboxID": "iabc"}},
		"sandbox with a client id":         {"DELETE", "/sandboxes/iabc-6532622b", api, SandboxKill, "/sandboxes/iabc", map[string]string{"sandboxID": "iabc"}},
		"sandbox with two dashes":          {"DELETE", "/sandboxes/iabc-1-2", api, "", "", nil},
		"sandbox in capitals":              {"DELETE", "/sandboxes/IABC", api, "", "", nil},
		"sandbox hiding a path":            {"POST", "/sandboxes/iabc%2fpause/timeout", api, "", "", nil},
		"sandbox metrics of many":          {"GET", "/sandboxes/metrics", api, SandboxMetricsList, "/sandboxes/metrics", nil},
		"template":                         {"GET", "/templates/base", api, TemplateInfo, "/templates/base", map[string]string{"templateID": "base"}},
		"snapshot, as the SDK sends it":    {"DELETE", "/templates/lab-team%2Fsnap1%3Adefault", api, TemplateDelete, "/templates/lab-team%2Fsnap1%3Adefault", map[string]string{"templateID": "lab-team/snap1:default"}},
		"snapshot, colon not escaped":      {"DELETE", "/templates/lab-team%2fsnap1:default", api, TemplateDelete, "/templates/lab-team%2Fsnap1%3Adefault", map[string]string{"templateID": "lab-team/snap1:default"}},
		"template, hiding another route":   {"GET", "/templates/base%2Ffiles%2Fabc", api, "", "", nil},
		"template, traversal":              {"GET", "/templates/..%2fsandboxes", api, "", "", nil},
		"template, traversal after a team": {"GET", "/templates/team%2f..", api, "", "", nil},
		"template, leading slash":          {"GET", "/templates/%2fbase", api, "", "", nil},
		"tags, escaped":                    {"DELETE", "/templates/%74ags", api, TemplateTagDelete, "/templates/tags", nil},
		"sandbox routes on a sandbox":      {"GET", "/sandboxes", envd, "", "", nil},
		"root":                             {"GET", "/", api, "", "", nil},
		"unknown version":                  {"POST", "/v9/sandboxes", api, "", "", nil},
		"unknown route":                    {"GET", "/new-thing", api, "", "", nil},
		"trailing slash":                   {"POST", "/sandboxes/", api, "", "", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ref := Identify(request(tt.method, tt.target, tt.host), "")
			if tt.op == "" {
				require.NotNil(t, ref, "identified as %s", got.Row.Operation)
				assert.Contains(t, []refusal.Code{refusal.CodeUnknown, refusal.CodeInvalid}, ref.Code)
				return
			}
			require.Nil(t, ref)
			assert.Equal(t, tt.op, got.Row.Operation)
			assert.Equal(t, tt.rawPath, got.RawPath)
			assert.Equal(t, tt.params, got.Params)
			decoded, err := url.PathUnescape(got.RawPath)
			require.NoError(t, err)
			assert.Equal(t, decoded, got.Path)
		})
	}
}

func TestUnknownOperationsAreNamed(t *testing.T) {
	_, ref := Identify(request("POST", "/process.Process/Exec", "49983-sbx1.e2b.test"), "")
	require.NotNil(t, ref)
	assert.Equal(t, http.StatusForbidden, ref.Status)
	assert.Contains(t, ref.Reason, `POST "/process.Process/Exec" is not an operation e2bguard knows on the envd plane`)

	_, ref = Identify(request("POST", "/"+strings.Repeat("x", 5000), "gw.example.test"), "")
	require.NotNil(t, ref)
	assert.Less(t, len(ref.Reason), 500)
}

func TestPortsKeepTheirPathsAsTheyAre(t *testing.T) {
	for _, target := range []string{"/", "//a/../b/", "/%2e%2e/x", "/a;b?c;d", "/a%20b%2Fc"} {
		got, ref := Identify(request("PATCH", target, "3000-sbx1.e2b.test"), "")
		require.Nil(t, ref)
		path, _, _ := strings.Cut(target, "?")
		assert.Equal(t, path, got.RawPath)
		assert.Equal(t, PortRequest, got.Row.Operation)
	}
}

func TestPreflightsPassAndOnlyPreflights(t *testing.T) {
	preflight := []string{"Origin: https://app.example.test", "Access-Control-Request-Method: POST"}
	for _, host := range []string{"gw.example.test", "49983-sbx1.e2b.test", "49999-sbx1.e2b.test"} {
		for _, path := range []string{"/files", "/execute", "/sandboxes/x1", "/"} {
			got, ref := Identify(request("OPTIONS", path, host, preflight...), "")
			require.Nil(t, ref)
			assert.Equal(t, Preflight, got.Row.Operation)
			assert.Equal(t, path, got.RawPath)
			_, ref = Identify(request("OPTIONS", path, host), "")
			require.NotNil(t, ref)
		}
	}
	got, ref := Identify(request("OPTIONS", "/templates/a%2fb", "gw.example.test", preflight...), "")
	require.Nil(t, ref)
	assert.Equal(t, "/templates/a%2Fb", got.RawPath)

	r := request("OPTIONS", "/files", "49983-sbx1.e2b.test", preflight...)
	r.ContentLength = -1
	_, ref = Identify(r, "")
	require.NotNil(t, ref, "a body is no part of a preflight")
}

func TestOddRequestTargetsAreRefused(t *testing.T) {
	connect := &http.Request{Method: "CONNECT", Host: "49983-sbx1.e2b.test:443", URL: &url.URL{Host: "49983-sbx1.e2b.test:443"}}
	star := &http.Request{Method: "OPTIONS", Host: "gw.example.test", URL: &url.URL{Path: "*"}}
	opaque := &http.Request{Method: "GET", Host: "gw.example.test", URL: &url.URL{Scheme: "mailto", Opaque: "x"}}
	twoHosts := request("GET", "http://49983-sbx1.e2b.test/health", "49983-sbx2.e2b.test")
	user := request("GET", "http://u:p@49983-sbx1.e2b.test/health", "49983-sbx1.e2b.test")
	for name, r := range map[string]*http.Request{"CONNECT": connect, "*": star, "opaque": opaque, "two hosts": twoHosts, "user": user} {
		_, ref := Identify(r, "")
		require.NotNil(t, ref, name)
		assert.Equal(t, refusal.CodeUnroutable, ref.Code, name)
	}
	absolute := request("GET", "http://49983-sbx1.e2b.test/health", "49983-sbx1.e2b.test")
	got, ref := Identify(absolute, "")
	require.Nil(t, ref)
	assert.Equal(t, EnvdHealth, got.Row.Operation)
}

// A signed URL in URL form names no sandbox (e2b-dev/E2B#1158): which one is
// meant is for the holder of the tokens to find.
func TestSignedURLsNeedNoSandbox(t *testing.T) {
	for method, op := range map[string]Operation{"GET": FilesRead, "POST": FilesWrite} {
		got, ref := Identify(request(method, "/files?path=a&signature=v1_x", "127.0.0.1:8080"), "")
		require.Nil(t, ref)
		assert.Equal(t, Files, got.Plane)
		assert.Equal(t, op, got.Row.Operation)
		assert.Empty(t, got.Sandbox)
		assert.Equal(t, uint16(PortEnvd), got.Port)
		assert.Equal(t, "/files", got.Path)
		assert.Equal(t, "/files", got.RawPath)
	}
	for _, target := range []string{"/files?path=a", "/files?path=a&Signature=v1_x", "/files/compose?signature=v1_x", "/%66iles?signature=v1_x", "/files/?signature=v1_x"} {
		_, ref := Identify(request("GET", target, "127.0.0.1:8080"), "")
		require.NotNil(t, ref, target)
	}
	_, ref := Identify(request("DELETE", "/files?signature=v1_x", "127.0.0.1:8080"), "")
	require.NotNil(t, ref)
}

func TestSandboxID(t *testing.T) {
	for text, want := range map[string]string{"isbx1": "isbx1", "isbx1-6532622b": "isbx1", "isbx1-": "isbx1"} {
		id, ok := SandboxID(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, id)
	}
	for _, text := range []string{"", "-x", "ISBX", "a/b", "a-b-c", "../x"} {
		_, ok := SandboxID(text)
		assert.False(t, ok, text)
	}
}

// The gateway's own endpoints are on the control plane's host, and take nothing
// but POST: a sandbox may serve the same path on a port of its own.
func TestOwnEndpoints(t *testing.T) {
	for _, method := range []string{"POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "TRACE"} {
		for _, path := range []string{"/api/guard", "/api/%67uard", "/%61pi/guard?x=1"} {
			got, ref := Identify(request(method, path, "gw.example.test"), "")
			require.Equal(t, Own, got.Plane)
			if method == "POST" {
				require.Nil(t, ref)
				require.Equal(t, GuardAsk, got.Row.Operation)
				require.Equal(t, "/api/guard", got.Path)
				continue
			}
			require.Equal(t, 405, ref.Status, "%s %s", method, path)
		}
	}
	for _, path := range []string{"/api/guard/", "/api//guard", "//api/guard", "/api/./guard", "/api/x/../guard", "/API/guard", "/api/guard/x", "/api%2fguard"} {
		_, ref := Identify(request("POST", path, "gw.example.test"), "")
		require.NotNil(t, ref, path)
		require.NotEqual(t, 405, ref.Status, path)
	}
	for _, port := range []string{"3000", "49983", "49999", "50005"} {
		got, _ := Identify(request("POST", "/api/guard", port+"-sbx1.gw.example.test"), "gw.example.test")
		require.NotEqual(t, Own, got.Plane)
	}
	_, ref := Identify(request("POST", "/api/guard", "sandbox.gw.example.test"), "gw.example.test")
	require.NotNil(t, ref)
}
