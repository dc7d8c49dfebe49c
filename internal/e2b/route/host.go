package route

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// The headers that choose a sandbox in URL form. Source: E2B's edge and SDKs.
const (
	HeaderSandboxID   = "E2b-Sandbox-Id"
	HeaderSandboxPort = "E2b-Sandbox-Port"
)

// place is where a request goes, before its path is looked at. The zero place
// is the control plane.
type place struct {
	sandbox string
	port    uint16
	byHost  bool
}

// locate applies the rule of E2B's edge, narrowed to what has one meaning: a
// host name "<port>-<id>…." decides by itself (domain form), and the routing
// headers may only repeat it; on any other host the two headers decide, or their
// absence means the control plane (URL form).
func locate(r *http.Request, publicDomain string) (place, *refusal.Refusal) {
	host, ref := hostname(r.Host)
	if ref != nil {
		return place{}, ref
	}
	id, ref := routingHeader(r.Header, HeaderSandboxID)
	if ref != nil {
		return place{}, ref
	}
	port, ref := routingHeader(r.Header, HeaderSandboxPort)
	if ref != nil {
		return place{}, ref
	}

	if label, ok := sandboxLabel(host); ok {
		return byLabel(label, host, id, port)
	}
	if id == "" && port == "" {
		if publicDomain != "" && host == "sandbox."+canonicalDomain(publicDomain) {
			return place{}, unroutable("the host " + host + " serves sandboxes, and the request names none. Send the headers " + HeaderSandboxID + " and " + HeaderSandboxPort + ", or use the host <port>-<sandbox id>." + canonicalDomain(publicDomain))
		}
		return place{}, nil
	}
	if strings.HasPrefix(host, "api.") {
		return place{}, unroutable("the host " + host + " serves the control plane, and the request names a sandbox in its headers. Send requests for a sandbox to another host of this gateway: set E2B_SANDBOX_URL, or E2B_DOMAIN")
	}
	return byHeaders(id, port)
}

// hostname returns the request's host without its port, in lower case, without a
// final dot.
func hostname(hostport string) (string, *refusal.Refusal) {
	host := hostport
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		if !isDigits(host[i+1:]) && host[i+1:] != "" {
			return "", unroutable("the Host header " + quote(hostport) + " has an invalid port")
		}
		host = host[:i]
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", unroutable("the Host header " + quote(hostport) + " holds no valid address")
		}
		return host, nil
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" || len(host) > 253 {
		return "", unroutable("the request has no usable Host header, so no sandbox can be told from it")
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" {
			return "", unroutable("the Host header " + quote(hostport) + " has an empty label")
		}
	}
	for i := range len(host) {
		if c := host[i]; !isAlphanumeric(c) && c != '-' && c != '.' && c != '_' {
			return "", unroutable("the Host header " + quote(hostport) + " holds characters that no host name has")
		}
	}
	return host, nil
}

// routingHeader returns the value of a routing header, "" if it is absent. The
// same value twice is one value; two values are no value.
func routingHeader(h http.Header, name string) (string, *refusal.Refusal) {
	values := h[name]
	if len(values) == 0 {
		return "", nil
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", unroutable("the header " + name + " is there more than once, with different values. Send it once")
		}
	}
	return values[0], nil
}

// sandboxLabel returns the first label of a host in domain form: digits and a
// dash, however invalid the rest.
func sandboxLabel(host string) (string, bool) {
	label, _, _ := strings.Cut(host, ".")
	port, _, dash := strings.Cut(label, "-")
	return label, dash && isDigits(port)
}

func byLabel(label, host, headerID, headerPort string) (place, *refusal.Refusal) {
	if label == host {
		return place{}, unroutable("the host " + host + " names a sandbox without a domain. Use <port>-<sandbox id>.<domain>")
	}
	portText, rest, _ := strings.Cut(label, "-")
	// E2B's edge ignores what follows the id; so do we, by never forwarding it.
	id, _, _ := strings.Cut(rest, "-")
	port, ref := parsePort(portText, "the host "+host)
	if ref != nil {
		return place{}, ref
	}
	if !validID(id) {
		return place{}, unroutable("the host " + host + " holds no valid sandbox id. An id is lower-case letters and digits: <port>-<sandbox id>.<domain>")
	}
	if (headerID != "" && headerID != id) || (headerPort != "" && headerPort != portText) {
		return place{}, unroutable("the host " + host + " and the headers " + HeaderSandboxID + " and " + HeaderSandboxPort + " name different sandboxes or ports, so the request has two meanings. Send headers that repeat the host, or none")
	}
	return place{sandbox: id, port: port, byHost: true}, nil
}

func byHeaders(id, portText string) (place, *refusal.Refusal) {
	if id == "" {
		return place{}, missingHeader(HeaderSandboxID)
	}
	if portText == "" {
		return place{}, missingHeader(HeaderSandboxPort)
	}
	port, ref := parsePort(portText, "the header "+HeaderSandboxPort)
	if ref != nil {
		return place{}, ref
	}
	if !validID(id) {
		return place{}, unroutable("the header " + HeaderSandboxID + " holds no valid sandbox id. An id is lower-case letters and digits")
	}
	return place{sandbox: id, port: port}, nil
}

// parsePort reads a port in its one canonical form: no sign, no leading zero.
func parsePort(text, where string) (uint16, *refusal.Refusal) {
	if !isDigits(text) || text[0] == '0' {
		return 0, unroutable(where + " holds no valid port. A port is 1 to 65535, without leading zeros")
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, unroutable(where + " holds no valid port. A port is 1 to 65535, without leading zeros")
	}
	return uint16(n), nil
}

// validID reports whether an id is one that E2B gives out; its edge takes
// nothing else.
func validID(id string) bool {
	if id == "" || len(id) > 63 {
		return false
	}
	for i := range len(id) {
		if !isAlphanumeric(id[i]) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func canonicalDomain(domain string) string {
	return strings.ToLower(strings.Trim(domain, "."))
}

// oldSDKs is the sentence for requests without routing headers.
const oldSDKs = "The file client of old E2B JavaScript SDKs omits them when E2B_SANDBOX_URL is set: update the SDK, or set E2B_DOMAIN (the gateway's public_domain), so that the host name says which sandbox is meant"

func missingHeader(name string) *refusal.Refusal {
	return unroutable("the request has no header " + name + ", so no sandbox can be told from it. " + oldSDKs)
}

func unroutable(reason string) *refusal.Refusal {
	return refusal.New(refusal.CodeUnroutable, "e2bguard could not route this request: "+reason+".")
}

// quote shortens and quotes what a client sent, for an error text.
func quote(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strconv.Quote(s)
}

func utoa(n uint16) string { return strconv.FormatUint(uint64(n), 10) }
