package gateway

import (
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/seal"
)

// takeSignature checks a file URL that the client signed with its sealed token,
// and signs it anew with E2B's.
func (c *call) takeSignature(sb sandbox) *refusal.Refusal {
	u, signed, ref := files.ReadSignedURL(c.r)
	if ref != nil {
		return ref
	}
	if !signed || !c.signedFor(u, c.target.Sandbox, sb) {
		return c.suspect(refusal.New(refusal.CodeUnauthorized, "invalid signature: the URL was not signed with a token that this gateway gave out for this sandbox, or was changed since. Have it signed anew."))
	}
	return c.useSignature(u, sb)
}

// signedFor reports whether a URL was signed with the token that the sandbox's
// client, or one it shares with, has, or had before the seal key was changed.
func (c *call) signedFor(u files.SignedURL, id string, sb sandbox) bool {
	if !c.g.vault() {
		return !sb.envdToken.IsZero() && u.SignedWith(sb.envdToken.Reveal())
	}
	for _, client := range append([]string{sb.client}, c.g.shares[sb.client]...) {
		for _, token := range c.g.cfg.Seal.SealAll(seal.Token{Kind: seal.Envd, Sandbox: id, Client: client, Inner: sb.envdToken.Reveal()}) {
			if u.SignedWith(token) {
				return true
			}
		}
	}
	return false
}

// useSignature acts on a signature that was found good.
func (c *call) useSignature(u files.SignedURL, sb sandbox) *refusal.Refusal {
	if !c.g.vault() {
		return nil // it is E2B's to judge
	}
	if u.Expired(time.Now()) {
		return refusal.New(refusal.CodeUnauthorized, "signature is already expired: the time that the URL was signed for has passed. Have it signed anew.")
	}
	if u.Write && u.Path == "" && !c.g.cfg.UnboundUploads {
		return refusal.New(refusal.CodeDenied, "e2bguard refused a signed upload URL without a path, because whoever holds it can write any file of the sandbox. Sign the path that is meant, as in uploadUrl('/home/user/data.csv'); the option signed_uploads opens it.")
	}
	c.setQuery(u.Resign(sb.envdToken.Reveal()))
	return nil
}

// identifyBySignature finds the sandbox of a signed URL that names none: the one
// whose client's token made the signature. Only sandboxes that are in memory can
// be found.
func (c *call) identifyBySignature() *refusal.Refusal {
	if c.g.state.suspects.exhausted(c.source()) {
		return c.refuseSuspect()
	}
	u, _, ref := files.ReadSignedURL(c.r)
	if ref != nil {
		return ref
	}
	if c.g.vault() {
		c.r.Header.Del(headerEnvdToken) // the signature is what counts
		c.r.Header.Del(headerTrafficToken)
	}
	c.g.matching.Lock() // one at a time, so that a flood leaves the other cores alone
	defer c.g.matching.Unlock()
	id, sb, found := c.g.state.find(func(id string, sb sandbox) bool {
		return sb.envdKnown && (!c.g.vault() || c.g.isClient(sb.client)) && c.signedFor(u, id, sb)
	})
	if !found {
		return c.suspect(refusal.New(refusal.CodeUnroutable, "e2bguard could not route this request: the signed URL names no sandbox, and none that this gateway knows has signed it. It is wrong or changed, or its sandbox has ended, or the gateway was restarted since: connect to the sandbox again. With E2B_DOMAIN, or the gateway's public_domain, the URL's host name says which sandbox is meant."))
	}
	c.target.Sandbox, c.outcome.Sandbox = id, id
	c.client, c.sandbox = sb.client, sb
	c.tokens.hasEnvd = true // whoever signed has it
	return c.useSignature(u, sb)
}
