package route

import (
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var edgeID = regexp.MustCompile(`^[a-z0-9]+$`)

// edgeTarget is the published routing rule of E2B's edge, written down again:
// the headers on localhost, addresses and "sandbox." hosts, else the first label.
func edgeTarget(host string, h http.Header) (id string, port uint64, ok bool) {
	name := (&url.URL{Host: host}).Hostname()
	_, shared := strings.CutPrefix(name, "sandbox.")
	if name == "localhost" || net.ParseIP(name) != nil || shared {
		id, portText := h.Get(HeaderSandboxID), h.Get(HeaderSandboxPort)
		if id != "" || portText != "" {
			port, err := strconv.ParseUint(portText, 10, 64)
			return id, port, err == nil && edgeID.MatchString(id)
		}
	}
	label, _, dot := strings.Cut(host, ".")
	parts := strings.Split(label, "-")
	if !dot || len(parts) < 2 {
		return "", 0, false
	}
	port, err := strconv.ParseUint(parts[0], 10, 64)
	return parts[1], port, err == nil && edgeID.MatchString(parts[1])
}

// FuzzIdentify checks that a request has at most one interpretation: what we say
// is what E2B's edge says of the canonical request we forward, and never differs
// from what the edge says of the request as the client sent it.
func FuzzIdentify(f *testing.F) {
	for _, seed := range [][5]string{
		{"49983-sbx1.e2b.test", "", "", "/files", ""},
		{"sandbox.e2b.test", "sbx1", "49983", "/process.Process/Start", ""},
		{"localhost:80", "sbx1", "49999", "/execute", "a=b"},
		{"8080-iabc.x", "ixyz", "49983", "/%2finit", ""},
		{"049983-iabc-extra.x", "", "", "/a/../b", "x;y"},
		{"api.e2b.test", "", "", "/templates/a%2Fb%3Ac", ""},
		{"[::1]:1", "a", "1", "/sandboxes/a-b/pause", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	f.Fuzz(func(t *testing.T, host, id, port, target, query string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Host != "" {
			return
		}
		u.RawQuery = query
		h := http.Header{}
		if id != "" {
			h[HeaderSandboxID] = []string{id}
		}
		if port != "" {
			h[HeaderSandboxPort] = []string{port}
		}
		for _, method := range []string{"GET", "POST", "DELETE"} {
			r := &http.Request{Method: method, Host: host, URL: u, Header: h.Clone()}
			got, ref := Identify(r, "gw.test")
			if ref != nil {
				require.NotEmpty(t, ref.Reason)
				continue
			}
			require.NotEmpty(t, got.Row.Operation)
			decoded, err := url.PathUnescape(got.RawPath)
			require.NoError(t, err)
			require.Equal(t, decoded, got.Path)

			got.SetHeaders(r.Header)
			if got.Sandbox == "" {
				require.Empty(t, r.Header)
			} else {
				edgeID, edgePort, ok := edgeTarget("sandbox.e2b.test", r.Header)
				require.True(t, ok)
				require.Equal(t, got.Sandbox, edgeID)
				require.Equal(t, uint64(got.Port), edgePort)
				if edgeID, edgePort, ok := edgeTarget(strings.ToLower(host), h); ok {
					require.Equal(t, got.Sandbox, edgeID)
					require.Equal(t, uint64(got.Port), edgePort)
				}
			}

			again, ref := Identify(&http.Request{Method: method, Host: host, URL: &url.URL{Path: got.Path, RawPath: got.RawPath, RawQuery: query}, Header: h}, "gw.test")
			require.Nil(t, ref, "the canonical form must be identified too")
			require.Equal(t, got, again)
		}
	})
}

func BenchmarkIdentify(b *testing.B) {
	for name, r := range map[string]*http.Request{
		"URL form, RPC":         request("POST", "/process.Process/Start", "127.0.0.1:8080", idSbx1, portEnvd),
		"domain form, RPC":      request("POST", "/process.Process/Start", "49983-sbx1.gw.example.test", idSbx1, portEnvd),
		"domain form, files":    request("POST", "/files?path=%2Fa&username=user", "49983-sbx1.gw.example.test"),
		"control, with a param": request("POST", "/sandboxes/iabc/timeout", "127.0.0.1:8080"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ref := Identify(r, "gw.example.test"); ref != nil {
					b.Fatal(ref)
				}
			}
		})
	}
}
