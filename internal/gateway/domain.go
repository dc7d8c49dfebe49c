package gateway

import (
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// A sandbox's domain is where it is reached: null for E2B's shared service, a
// name for a cluster of the account's own. Source: E2B's API.

// reachable reports whether the gateway may send calls to a sandbox of a domain,
// and whether they go to hosts of that domain rather than to sandbox_url.
func (u Upstream) reachable(domain string) (ok, own bool) {
	domain = canonicalDomain(domain)
	if domain == "" {
		return true, false
	}
	for _, listed := range u.Domains {
		if listed = canonicalDomain(listed); domain == listed || strings.HasSuffix(domain, "."+listed) {
			return ValidDomain(domain), true
		}
	}
	host := canonicalDomain(u.SandboxURL.Hostname())
	return u.AnyDomain || host == domain || strings.HasSuffix(host, "."+domain), false
}

func canonicalDomain(domain string) string { return strings.ToLower(strings.TrimSuffix(domain, ".")) }

// ValidDomain reports whether a name is one that calls can be sent to: at least
// two labels of lower-case letters, digits and dashes, the last not a number.
func ValidDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	return len(labels) > 1 && len(domain) <= 200 && strings.Trim(last, "0123456789") != ""
}

// ownDomain is the domain whose hosts a sandbox's calls go to; "" for
// sandbox_url.
func (u Upstream) ownDomain(domain string) string {
	if ok, own := u.reachable(domain); ok && own {
		return canonicalDomain(domain)
	}
	return ""
}

// sandboxURL is where calls for a port of the call's sandbox go.
func (c *call) sandboxURL() *url.URL {
	if c.sandbox.domain == "" {
		return c.g.fwd.sandbox
	}
	return &url.URL{Scheme: "https", Host: c.target.HostLabel() + "." + c.sandbox.domain}
}

// settleDomains refuses sandboxes of a domain that the gateway may not send calls
// to; new ones are ended.
func (c *call) settleDomains(infos []control.SandboxInfo) *refusal.Refusal {
	for _, info := range infos {
		if ok, _ := c.g.cfg.Upstream.reachable(info.Domain); ok || c.target.Row.Operation == route.SandboxInfo {
			continue
		}
		if c.makesSandboxes() {
			c.each(len(infos), func(i int) { c.endMade(infos[i].ID, endedByDomain, false) })
		}
		c.g.log.Warn("E2B names a domain for a sandbox that this gateway sends nothing to; list it in the upstream's domains",
			zap.String("request_id", c.id), zap.String("domain", c.g.shown(info.Domain)))
		return refusal.New(refusal.CodeDenied, "e2bguard cannot reach this sandbox, so it is not used: E2B runs it under a domain of its own, which is not configured here. "+
			"Ask the operator to list the domain in the upstream option domains.")
	}
	return nil
}

// setDomain points the client at the gateway's own domain; without one E2B's is
// dropped, and the log says once what then goes past the gateway.
func (c *call) setDomain(answer *control.Answer) (changed bool) {
	if own := c.g.cfg.PublicDomain; own != "" {
		answer.SetDomain(own)
		return true
	}
	c.g.domainHint.Do(func() {
		what := "getHost(), getMcpUrl() and, unless they set E2B_SANDBOX_URL, all calls for sandboxes go to E2B past this gateway"
		if c.g.vault() {
			what += ", and fail there with 401 or 403, because clients hold sealed tokens"
		} else {
			what += ", unguarded"
		}
		c.g.log.Warn("without public_domain, clients are told no domain: " + what)
	})
	return answer.DropDomain()
}
