package gateway

import (
	"net/http"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/redact"
	"github.com/e2bguard/e2bguard/internal/seal"
)

// The headers that carry a sandbox's access tokens. Source: E2B's SDKs and edge.
const (
	headerEnvdToken    = "X-Access-Token"
	headerTrafficToken = "E2b-Traffic-Access-Token"
)

// vault reports whether clients hold keys and tokens of the gateway's own; else
// they hold E2B's.
func (g *Gateway) vault() bool { return len(g.clients) > 0 }

// isClient reports whether the configuration still has a client.
func (g *Gateway) isClient(name string) bool {
	_, known := g.names[name]
	return known
}

// tokens are E2B's own tokens for one call, as they were in the client's sealed
// ones.
type tokens struct {
	envd, traffic, volume redact.Secret
	// hasEnvd says that the client has a sealed one for envd; E2B's may be none.
	hasEnvd bool
}

// identifyByToken tells the client of a data-plane call by its sealed tokens,
// and takes them out of the request. A call without any stays without a client
// for now: see settleOwner.
func (c *call) identifyByToken() *refusal.Refusal {
	envd, traffic := c.r.Header.Get(headerEnvdToken), c.r.Header.Get(headerTrafficToken)
	switch c.target.Plane {
	case route.Port, route.MCP:
		// The header is the application's own there; no program in a sandbox needs
		// to see a token of ours.
		if seal.IsSealed(envd) {
			c.r.Header.Del(headerEnvdToken)
		}
		envd = ""
	default:
		c.r.Header.Del(headerEnvdToken)
	}
	c.r.Header.Del(headerTrafficToken)

	var ref *refusal.Refusal
	if c.tokens.envd, c.tokens.hasEnvd, ref = c.open(envd, seal.Envd); ref != nil {
		return ref
	}
	if c.tokens.traffic, _, ref = c.open(traffic, seal.Traffic); ref != nil {
		return ref
	}
	if !c.tokensSuffice() {
		c.client = ""
		return c.suspect(refusal.New(refusal.CodeUnauthorized, "unauthorized access: the call carries no access token of this gateway. Create the sandbox, or connect to it, through this gateway, and use the token of that answer."))
	}
	sb, known := c.g.state.lookup(c.target.Sandbox)
	if known && c.client != "" && !c.g.mayUse(c.client, sb.client) {
		c.client = "" // it was shared when the token was given out
		return c.suspect(refusal.New(refusal.CodeUnauthorized, "unauthorized access: this sandbox is another client's, and is not shared any more."))
	}
	owner := sb.client
	if !known && len(c.g.shares[c.client]) == 0 {
		owner = c.client
	}
	if c.client != "" && owner != "" && (!known || c.tokens.hasEnvd && !sb.envdKnown || sb.trafficToken.IsZero() && !c.tokens.traffic.IsZero()) {
		c.g.state.remember(c.target.Sandbox, sandbox{client: owner, envdToken: c.tokens.envd, envdKnown: c.tokens.hasEnvd, trafficToken: c.tokens.traffic})
		sb, _ = c.g.state.lookup(c.target.Sandbox)
	}
	c.sandbox = sb
	return nil
}

// open reads one sealed token, if there is one, and returns E2B's. It must be of
// the kind, for the sandbox, and of a client that the configuration still has; a
// token of E2B's own is not taken.
func (c *call) open(text string, kind seal.Kind) (inner redact.Secret, ok bool, ref *refusal.Refusal) {
	if text == "" {
		return redact.Secret{}, false, nil
	}
	t, err := c.g.cfg.Seal.Open(text)
	if err != nil || t.Kind != kind || t.Sandbox != c.target.Sandbox || !c.g.isClient(t.Client) || c.client != "" && c.client != t.Client {
		c.client = ""
		ref = refusal.New(refusal.CodeUnauthorized, "unauthorized access: the access token is not one that this gateway gave out for this sandbox. Use the token of the answer that created or connected the sandbox through this gateway.")
		if kind == seal.Traffic {
			ref.Status = http.StatusForbidden // as E2B's edge answers
		}
		return redact.Secret{}, false, c.suspect(ref)
	}
	c.client = t.Client
	return redact.NewSecret(t.Inner), true, nil
}

// tokensSuffice reports whether the call has the tokens that its operation
// needs. Where no client sends one (a user's port), or old ones send none (the
// interpreter's contexts), it is enough that the sandbox is one of this
// gateway's. A file's URL may be signed instead.
func (c *call) tokensSuffice() bool {
	switch op := c.target.Row.Operation; {
	case op == route.EnvdHealth, op == route.Preflight:
		return true
	case c.target.Plane == route.Envd:
		return c.tokens.hasEnvd
	case op == route.FilesCompose:
		return c.tokens.hasEnvd // envd takes no signature for it
	case c.target.Plane == route.Files:
		return c.tokens.hasEnvd || c.r.URL.Query().Has("signature")
	case op == route.CodeRun:
		return c.client != ""
	default:
		return true
	}
}

// setTokens puts E2B's own tokens on a data-plane request.
func (c *call) setTokens(h http.Header) {
	if envd := c.tokens.envd; !envd.IsZero() {
		h.Set(headerEnvdToken, envd.Reveal())
	}
	traffic := c.tokens.traffic
	if traffic.IsZero() {
		traffic = c.sandbox.trafficToken
	}
	if !traffic.IsZero() && c.target.Port != route.PortEnvd {
		h.Set(headerTrafficToken, traffic.Reveal())
	}
}

// sealTokens chooses what a client gets in place of E2B's tokens. An answer that
// starts a client's use of a sandbox has both, whether E2B gave them or not.
func (c *call) sealTokens(info control.SandboxInfo) (envd, traffic string) {
	op := c.target.Row.Operation
	if info.EnvdToken != "" || op != route.SandboxList {
		envd = c.g.cfg.Seal.Seal(seal.Token{Kind: seal.Envd, Sandbox: info.ID, Client: c.client, Inner: info.EnvdToken})
	}
	if info.TrafficToken != "" || op != route.SandboxList && op != route.SandboxInfo {
		traffic = c.g.cfg.Seal.Seal(seal.Token{Kind: seal.Traffic, Sandbox: info.ID, Client: c.client, Inner: info.TrafficToken})
	}
	return envd, traffic
}
