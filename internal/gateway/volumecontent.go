package gateway

import (
	"net/url"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/redact"
	"github.com/e2bguard/e2bguard/internal/seal"
)

// identifyVolume tells the client of a call for a volume's content by the volume's
// token, the only credential it carries.
func (c *call) identifyVolume() *refusal.Refusal {
	if c.g.vault() {
		if ref := c.openVolume(); ref != nil {
			return ref
		}
	} else {
		if ref := c.identifyByKey(); ref != nil {
			return ref
		}
		c.volume, _ = c.g.state.volumes.Get(c.target.Params[route.ParamVolume])
	}
	if ok, _ := c.g.cfg.Upstream.reachable(c.volume.domain); !ok {
		return refusal.New(refusal.CodeDenied, "e2bguard refused this call, because E2B keeps the volume under a domain of its own, which is not configured here. Ask the operator to list the domain in the upstream option domains.")
	}
	return nil
}

// openVolume reads the sealed token of a call for a volume's content. It must be
// for the volume, and of a client that the configuration still has and that may
// still use it.
func (c *call) openVolume() *refusal.Refusal {
	scheme, text, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	t, err := c.g.cfg.Seal.Open(strings.TrimSpace(text))
	name, rest, _ := strings.Cut(t.Inner, "\n")
	domain, token, ok := strings.Cut(rest, "\n")
	owner, _ := c.g.volumeOwner(name)
	if err != nil || !ok || !strings.EqualFold(scheme, "Bearer") || t.Kind != seal.Volume || t.Sandbox != c.target.Params[route.ParamVolume] ||
		!c.g.isClient(t.Client) || !c.g.mayUse(t.Client, owner) {
		return c.suspect(refusal.New(refusal.CodeUnauthorized, "unauthorized access: the token is not one that this gateway gave out for this volume. Connect to the volume through this gateway, as in Volume.connect, and use the token of that answer."))
	}
	c.client, c.volume, c.tokens.volume = t.Client, volume{name, domain}, redact.NewSecret(token)
	return nil
}

// volumeURL is where calls for the content of the call's volume go.
func (c *call) volumeURL() *url.URL {
	if domain := c.g.cfg.Upstream.ownDomain(c.volume.domain); domain != "" {
		return &url.URL{Scheme: "https", Host: "api." + domain}
	}
	return c.g.fwd.api
}

// volumeSubjects judges the path of a call that does not write a file's content.
func volumeSubjects(action string) func(*call) ([]guard.Subject, *refusal.Refusal) {
	return func(c *call) ([]guard.Subject, *refusal.Refusal) {
		p, ref := files.ReadVolumePath(c.r, c.target.Params[route.ParamVolume])
		if ref != nil {
			return nil, ref
		}
		c.setQuery(p.RawQuery) // as it was judged
		return p.Subjects(action), nil
	}
}
