package emulator

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTargetFollowsTheEdgesPrecedence(t *testing.T) {
	const id = "iabc"
	for _, tt := range []struct {
		name, host, headerID, headerPort string
		want                             target
		sandbox                          bool
		err                              string
	}{
		{name: "IP without headers is the control plane", host: "127.0.0.1:3900"},
		{name: "IP with headers", host: "127.0.0.1:3900", headerID: id, headerPort: "49983", want: target{id, 49983}, sandbox: true},
		{name: "IPv6 with headers", host: "[::1]:3900", headerID: id, headerPort: "80", want: target{id, 80}, sandbox: true},
		{name: "localhost with headers", host: "localhost", headerID: id, headerPort: "80", want: target{id, 80}, sandbox: true},
		{name: "shared host with headers", host: "sandbox.any.test", headerID: id, headerPort: "80", want: target{id, 80}, sandbox: true},
		{name: "shared host without headers", host: "sandbox.any.test", sandbox: true, err: "invalid url host"},
		{name: "upper case is not the shared host", host: "Sandbox.any.test", headerID: id, headerPort: "80"},
		{name: "one header missing", host: "localhost", headerID: id, sandbox: true, err: "Missing header: E2b-Sandbox-Port"},
		{name: "other header missing", host: "localhost", headerPort: "1", sandbox: true, err: "Missing header: E2b-Sandbox-Id"},
		{name: "host decides over headers", host: "8080-iabc.x", headerID: "ixyz", headerPort: "49983", want: target{id, 8080}, sandbox: true},
		{name: "extra segments are ignored", host: "8080-iabc-client.x", want: target{id, 8080}, sandbox: true},
		{name: "zero-padded port", host: "049983-iabc.x", want: target{id, 49983}, sandbox: true},
		{name: "port is not range-checked", host: "99999999-iabc.x", want: target{id, 99999999}, sandbox: true},
		{name: "api host ignores headers", host: "api.x", headerID: id, headerPort: "49983"},
		{name: "bad id", host: "localhost", headerID: "i_abc", headerPort: "1", sandbox: true, err: "invalid sandbox ID"},
		{name: "upper-case id", host: "8080-iABC.x", sandbox: true, err: "invalid sandbox ID"},
		{name: "bad port", host: "localhost", headerID: id, headerPort: "x", sandbox: true, err: "invalid sandbox port"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &http.Request{Host: tt.host, Header: http.Header{}}
			if tt.headerID != "" {
				r.Header.Set("E2b-Sandbox-Id", tt.headerID)
			}
			if tt.headerPort != "" {
				r.Header.Set("E2b-Sandbox-Port", tt.headerPort)
			}
			got, isSandbox, err := (&Emulator{}).target(r)
			require.Equal(t, tt.sandbox, isSandbox)
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestEdgeErrors(t *testing.T) {
	l := newLab(t, Options{Domain: "e2b.test"})
	b := l.newBox()
	private := l.create("/v2/sandboxes", `{"templateID":"code-interpreter-v1","network":{"allowPublicTraffic":false}}`)
	paused := l.newBox()
	require.Equal(t, http.StatusNoContent, l.api(http.MethodPost, "/sandboxes/"+paused.id+"/pause", "{}").status)
	notFound := `{"sandboxId":"` + "%s" + `","message":"The sandbox was not found","code":502}`
	for _, tt := range []struct {
		name, path string
		headers    []string
		status     int
		body       string
	}{
		{"unknown sandbox", "/health", []string{"Host", "49983-inone.e2b.test"}, 502, fmt.Sprintf(notFound, "inone")},
		{"paused sandbox", "/health", paused.headers("49983"), 502, fmt.Sprintf(notFound, paused.id)},
		{"closed port", "/", b.headers("3999"), 502, `{"sandboxId":"` + b.id + `","message":"The sandbox is running but port is not open","port":3999,"code":502}`},
		{"port out of range", "/", []string{"Host", "99999999-" + b.id + ".e2b.test"}, 502, `{"sandboxId":"` + b.id + `","message":"The sandbox is running but port is not open","port":99999999,"code":502}`},
		{"internal route", "/init", b.headers("49983"), 404, `{"message":"This endpoint is reserved for the E2B control plane and is not reachable through the sandbox URL","path":"/init","code":404}`},
		{"internal route, disguised", "/x/..//%75pgrade", b.headers("49983"), 404, `{"message":"This endpoint is reserved for the E2B control plane and is not reachable through the sandbox URL","path":"/x/..//upgrade","code":404}`},
		{"envd needs no traffic token", "/health", private.headers("49983"), 204, ""},
		{"interpreter needs it", "/health", private.headers("49999"), 403, `{"sandboxId":"` + private.id + `","message":"Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing","code":403}`},
		{"interpreter refuses another", "/health", private.headers("49999", "e2b-traffic-access-token", "x"), 403, `{"sandboxId":"` + private.id + `","message":"Sandbox is secured with traffic access token. Provided token does not match","code":403}`},
		{"interpreter takes it", "/health", private.headers("49999", "e2b-traffic-access-token", private.traffic), 200, `"OK"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := l.do(http.MethodGet, tt.path, "", tt.headers...)
			require.Equal(t, tt.status, a.status)
			if tt.body == "" {
				require.Empty(t, a.body)
			} else {
				require.JSONEq(t, tt.body, a.body)
			}
		})
	}
}

func TestTheBaseTemplateHasNoInterpreter(t *testing.T) {
	l := newLab(t, Options{})
	b := l.create("/v2/sandboxes", `{"templateID":"base"}`)
	require.Equal(t, http.StatusBadGateway, b.interp(http.MethodGet, "/health", "").status)
}

func TestTrafficWakesASandboxThatAskedForIt(t *testing.T) {
	l := newLab(t, Options{})
	b := l.create("/v2/sandboxes", `{"templateID":"base","autoPause":true,"autoResume":{"enabled":true}}`)
	require.Equal(t, http.StatusNoContent, l.api(http.MethodPost, "/sandboxes/"+b.id+"/pause", "{}").status)
	require.Equal(t, http.StatusBadGateway, l.do(http.MethodGet, "/health", "", "E2b-Sandbox-Id", b.id, "E2b-Sandbox-Port", "49983").status,
		"without the token it stays asleep")
	require.True(t, b.exists())
	require.Equal(t, "running", l.api(http.MethodGet, "/sandboxes/"+b.id, "").json(t)["state"])
}
