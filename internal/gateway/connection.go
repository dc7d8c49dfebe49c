package gateway

import (
	"net/http"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// endHopByHop takes the headers off a request that speak of the client's
// connection only. It comes before anything is read of the request: a header that
// Connection names is not for whoever is behind us, so what is decided here must
// not rest on it. Otherwise a deadline written into a header would be dropped on
// its way by the client's own Connection header.
func endHopByHop(h http.Header) {
	upgrade := false
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.Trim(name, " \t")
			if strings.EqualFold(name, "upgrade") {
				upgrade = true
				continue
			}
			h.Del(name)
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Http2-Settings"} {
		h.Del(name)
	}
	if upgrade && h.Get("Upgrade") != "" {
		h.Set("Connection", "Upgrade")
	} else {
		h.Del("Upgrade")
	}
}

// limitUpgrade leaves an upgrade to another protocol to applications on open
// ports. Everywhere else the new protocol would be a tunnel past the guard. The
// protocols below change what E2B's edge reads, not what the application does: a
// second request inside would reach any sandbox.
func limitUpgrade(h http.Header, plane route.Plane) {
	if plane != route.Port || strings.Contains(strings.Join(h["Upgrade"], ","), ",") || edgeProtocol(h.Get("Upgrade")) {
		h.Del("Connection")
		h.Del("Upgrade")
	}
}

func edgeProtocol(upgrade string) bool {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(upgrade)), "/")
	return name == "h2c" || name == "h2" || name == "http" || name == "tls"
}
