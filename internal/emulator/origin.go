package emulator

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// refuseForeign keeps web pages out: a browser that was lured here sends a
// foreign Host (DNS rebinding), an Origin, or Sec-Fetch-Site. SDKs send none of
// them; undici's "Sec-Fetch-Mode: cors" alone is normal. It returns the reason
// for a refusal, or "".
func (e *Emulator) refuseForeign(r *http.Request, isSandbox bool) string {
	host := hostname(r.Host)
	if !e.knownHost(host) {
		return "host " + quoteShort(host) + " is not one the emulator answers to; start it with that host allowed"
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return "requests from other web sites are refused"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		// A page served by a process of the sandbox may talk to its own origin.
		u, err := url.Parse(origin)
		if !isSandbox || err != nil || u.Host != r.Host {
			return "requests from web pages are refused"
		}
	}
	return ""
}

func (e *Emulator) knownHost(host string) bool {
	// A rebinding attack needs a name; an IP literal cannot be rebound.
	if net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if e.domain != "" && (host == e.domain || strings.HasSuffix(host, "."+e.domain)) {
		return true
	}
	return slices.ContainsFunc(e.hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

func hostname(host string) string {
	return strings.ToLower((&url.URL{Host: host}).Hostname())
}

func quoteShort(s string) string {
	const limit = 80
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return "\"" + strings.Map(func(c rune) rune {
		if c < ' ' || c == '"' {
			return '?'
		}
		return c
	}, s) + "\""
}
