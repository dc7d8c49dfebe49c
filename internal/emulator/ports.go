package emulator

import (
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// portTransport takes no proxy from the environment, and leaves no idle
// connection to a program that serves one at a time.
var portTransport = &http.Transport{DisableKeepAlives: true, DisableCompression: true}

// proxyPort forwards to a port that a process of the sandbox listens on. The
// sandboxes share the machine's loopback, so it matters whose port it is: where
// the machine can tell, no other program's is reachable.
func (sb *sandbox) proxyPort(w http.ResponseWriter, r *http.Request, port uint64) {
	const dialTimeout = time.Second
	if port > 65535 || port == 0 || sb.e.isOwn(port) || !sb.spawn.listens(sb.id, port) {
		portNotOpen(w, sb.id, port)
		return
	}
	conn, err := net.DialTimeout("tcp", fmtPort(port), dialTimeout)
	if err != nil {
		portNotOpen(w, sb.id, port)
		return
	}
	_ = conn.Close() // It only showed that the port is open.
	sb.mu.Lock()
	var mask *string
	if sb.network != nil {
		mask = sb.network.MaskRequestHost
	}
	sb.mu.Unlock()
	proxy := &httputil.ReverseProxy{
		Transport:     portTransport,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", fmtPort(port)
			p.Out.Host = p.In.Host
			if mask != nil {
				p.Out.Host = strings.ReplaceAll(*mask, "${PORT}", strings.TrimPrefix(fmtPort(port), "127.0.0.1:"))
				p.Out.Header.Set("X-Forwarded-Host", p.In.Host)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { portNotOpen(w, sb.id, port) },
	}
	proxy.ServeHTTP(w, r)
}
