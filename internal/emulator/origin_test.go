package emulator

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForeignRequestsAreRefused(t *testing.T) {
	l := newLab(t, Options{AllowHosts: []string{"emulator.test"}, Domain: "sandbox.test"})
	for _, tt := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"an SDK under node", []string{"Sec-Fetch-Mode", "cors"}, http.StatusOK},
		{"localhost", []string{"Host", "localhost:3900"}, http.StatusOK},
		{"an allowed host", []string{"Host", "Emulator.test"}, http.StatusOK},
		{"the own domain", []string{"Host", "api.sandbox.test"}, http.StatusOK},
		{"a navigation", []string{"Sec-Fetch-Site", "none"}, http.StatusOK},
		{"a foreign host (DNS rebinding)", []string{"Host", "attacker.example"}, http.StatusForbidden},
		{"a host that only ends like ours", []string{"Host", "evilsandbox.test"}, http.StatusForbidden},
		{"a page of another origin", []string{"Origin", "https://attacker.example"}, http.StatusForbidden},
		{"a sandboxed frame", []string{"Origin", "null"}, http.StatusForbidden},
		{"a page of the same host on the control plane", []string{"Host", "localhost", "Origin", "http://localhost"}, http.StatusForbidden},
		{"a cross-site load without Origin", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"a same-site load", []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := l.do(http.MethodGet, "/v2/sandboxes", "", append(tt.headers, "X-API-Key", "k")...)
			require.Equal(t, tt.status, a.status, a.body)
		})
	}
	require.Len(t, l.e.Recorded(), 5, "a refused request is not acted on, and not recorded")
}

func TestOriginOfASandboxPageIsAcceptedOnItsOwnPort(t *testing.T) {
	l := newLab(t, Options{Domain: "sandbox.test"})
	b := l.newBox()
	host := "3999-" + b.id + ".sandbox.test"
	require.Equal(t, http.StatusBadGateway, l.do(http.MethodPost, "/", "", "Host", host, "Origin", "http://"+host).status)
	require.Equal(t, http.StatusForbidden, l.do(http.MethodPost, "/", "", "Host", host, "Origin", "http://4000-"+b.id+".sandbox.test").status)
}
