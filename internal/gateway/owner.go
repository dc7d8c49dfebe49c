package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/redact"
)

const (
	// lookupTimeout bounds the question to E2B who made a sandbox.
	lookupTimeout = 10 * time.Second
	// lookupsAtOnce bounds such questions, whoever causes them.
	lookupsAtOnce = 32
)

// errNoSandbox says that a sandbox does not exist, or that no client of this
// gateway made it.
var errNoSandbox = errors.New("there is no such sandbox of this gateway's")

// settleOwner lets a call go on only with what is its client's own. It is the
// last thing that is decided before anything is spent on a call.
func (c *call) settleOwner() *refusal.Refusal {
	switch {
	case !c.g.vault():
		return nil
	case c.op.narrow != nil:
		return c.op.narrow(c)
	case c.target.Sandbox != "":
		return c.settleDataPlane()
	}
	if id := c.target.Params["sandboxID"]; id != "" {
		return c.settleOwn(id)
	}
	return nil
}

// settleOwn takes a sandbox of the client's own, and answers for any other as
// E2B does for one that does not exist.
func (c *call) settleOwn(id string) *refusal.Refusal {
	sb, ref := c.findSandbox(id, func(sb sandbox) bool { return !sb.started.IsZero() })
	if ref != nil {
		return ref
	}
	if !c.g.mayUse(c.client, sb.client) {
		return c.suspect(c.refuseSandbox(id))
	}
	c.sandbox = sb
	return nil
}

// settleDataPlane names the client of a call that carries no token: whoever made
// the sandbox, and where nobody did, there is no such sandbox. A file's URL must
// be signed then.
func (c *call) settleDataPlane() *refusal.Refusal {
	signed := c.target.Plane == route.Files && c.target.Row.Operation != route.Preflight && !c.tokens.hasEnvd
	domainKnown := func(sb sandbox) bool { return sb.domainKnown || len(c.g.cfg.Upstream.Domains) == 0 }
	if c.client != "" && !signed && domainKnown(c.sandbox) {
		return nil
	}
	sb, ref := c.findSandbox(c.target.Sandbox, func(sb sandbox) bool { return (sb.envdKnown || !signed) && domainKnown(sb) })
	if ref != nil {
		return ref
	}
	if c.client != "" && !c.g.mayUse(c.client, sb.client) {
		return c.suspect(c.refuseSandbox(c.target.Sandbox))
	}
	c.sandbox = sb
	if c.client == "" {
		c.client, c.outcome.Client = sb.client, sb.client
	}
	if signed {
		return c.takeSignature(sb)
	}
	return nil
}

// findSandbox returns what is known of a sandbox of any client of this gateway,
// asking E2B if that is not enough.
func (c *call) findSandbox(id string, enough func(sandbox) bool) (sandbox, *refusal.Refusal) {
	if sb, known := c.g.state.lookup(id); known && enough(sb) && c.g.isClient(sb.client) {
		return sb, nil
	}
	if c.g.state.isMissing(id) {
		return sandbox{}, c.suspect(c.refuseSandbox(id))
	}
	if c.g.state.suspects.exhausted(c.source()) {
		return sandbox{}, c.refuseSuspect()
	}
	sb, err := c.g.lookUp(c.r.Context(), id)
	switch {
	case err == nil:
		return sb, nil
	case errors.Is(err, errNoSandbox):
		return sandbox{}, c.suspect(c.refuseSandbox(id))
	default:
		ref := refusal.New(refusal.CodeUpstream, "e2bguard could not ask E2B whose sandbox this is, so the call was not forwarded. Try again in a moment.")
		ref.Err, ref.Retryable = err, true
		return sandbox{}, ref
	}
}

// refuseSandbox says what E2B says of a sandbox that does not exist, on the plane
// that was asked.
func (c *call) refuseSandbox(id string) *refusal.Refusal {
	if c.target.Sandbox == "" {
		return refusal.New(refusal.CodeNotFound, "Sandbox "+strconv.Quote(id)+" doesn't exist or you don't have access to it")
	}
	ref := refusal.New(refusal.CodeNotFound, "The sandbox was not found")
	ref.Status = http.StatusBadGateway
	return ref
}

// lookUp asks E2B, once for all who ask at a time, who made a sandbox, and
// remembers the answer.
func (g *Gateway) lookUp(ctx context.Context, id string) (sandbox, error) {
	v, err, _ := g.lookups.Do(id, func() (any, error) {
		// Others may be waiting for the answer when the first has gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		return g.askE2B(ctx, id)
	})
	if errors.Is(err, errNoSandbox) {
		g.state.forget(id)
		g.state.miss(id)
	}
	if err != nil {
		return sandbox{}, err
	}
	g.state.remember(id, v.(sandbox))
	sb, _ := g.state.lookup(id)
	return sb, nil
}

func (g *Gateway) askE2B(ctx context.Context, id string) (sandbox, error) {
	select {
	case g.lookupSlots <- struct{}{}:
		defer func() { <-g.lookupSlots }()
	case <-ctx.Done():
		return sandbox{}, fmt.Errorf("waiting to look a sandbox up: %w", ctx.Err())
	}
	got, err := g.askAPI(ctx, http.MethodGet, "sandboxes/"+id, "", nil)
	if err != nil {
		return sandbox{}, fmt.Errorf("looking a sandbox up: %w", err)
	}
	switch got.status {
	case http.StatusOK:
	case http.StatusNotFound:
		return sandbox{}, errNoSandbox
	default:
		return sandbox{}, fmt.Errorf("looking a sandbox up: E2B answered %d", got.status)
	}
	answer, err := control.DecodeAnswer(got.body)
	if err != nil {
		return sandbox{}, fmt.Errorf("looking a sandbox up: %w", err)
	}
	if infos := answer.Sandboxes(); len(infos) == 1 && infos[0].ID == id && g.isClient(infos[0].Owner) {
		info := infos[0]
		if ok, _ := g.cfg.Upstream.reachable(info.Domain); !ok {
			return sandbox{}, errNoSandbox
		}
		// That a token is missing here, of a paused sandbox perhaps, does not say that
		// there is none.
		return sandbox{client: info.Owner, envdToken: redact.NewSecret(info.EnvdToken), envdKnown: info.EnvdToken != "", started: info.StartedAt,
			domain: g.cfg.Upstream.ownDomain(info.Domain), domainKnown: true, volumes: info.Volumes, volumesKnown: info.VolumesKnown}, nil
	}
	return sandbox{}, errNoSandbox
}

// narrowList makes a list show the client's own sandboxes.
func (c *call) narrowList() *refusal.Refusal {
	if len(c.g.shares[c.client]) > 0 {
		return nil // a filter has one owner
	}
	query, ref := control.OwnerQuery(c.r.URL.RawQuery, c.client)
	if ref == nil {
		c.setQuery(query)
	}
	return ref
}

// narrowSnapshots makes a list of snapshots be about one sandbox of the
// client's own: E2B does not say whose a snapshot is.
func (c *call) narrowSnapshots() *refusal.Refusal {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil || len(query["sandboxID"]) != 1 {
		return refusal.New(refusal.CodeDenied, "e2bguard lists snapshots of one sandbox at a time, because others on the same account are not yours to see. Name the sandbox, in the query as sandboxID.")
	}
	id, ok := route.SandboxID(query.Get("sandboxID"))
	if !ok {
		return refusal.New(refusal.CodeInvalid, "e2bguard could not read this request: sandboxID is no sandbox id. An id is lower-case letters and digits.")
	}
	query.Set("sandboxID", id)
	c.setQuery(query.Encode())
	return c.settleOwn(id)
}

// setQuery replaces the query, on a copy of the URL: the server's request keeps
// its own.
func (c *call) setQuery(raw string) {
	u := *c.r.URL
	u.RawQuery = raw
	c.r.URL = &u
}

// filterSandboxes leaves out of a list what is not the client's own, whatever E2B
// made of the query.
func (c *call) filterSandboxes(resp *http.Response) error {
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	answer, err := control.DecodeAnswer(b)
	if err != nil {
		return refuseAnswer(err)
	}
	answer.Keep(func(info control.SandboxInfo) bool { return c.g.mayUse(c.client, info.Owner) })
	answer.SetTokens(c.sealTokens)
	answer.HideStamp()
	answer.RenameVolumes(c.shownVolume)
	replaceBody(resp, answer.Encode())
	return nil
}

// filterMetrics leaves out the metrics of sandboxes that are not the client's
// own.
func (c *call) filterMetrics(resp *http.Response) error {
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	b, err = control.KeepMetrics(b, func(id string) bool {
		sb, known := c.g.state.lookup(id)
		if !known && !c.g.state.isMissing(id) {
			sb, _ = c.g.lookUp(c.r.Context(), id) // what cannot be looked up is nobody's
		}
		return c.g.mayUse(c.client, sb.client)
	})
	if err != nil {
		return refuseAnswer(err)
	}
	replaceBody(resp, b)
	return nil
}

// forgetSandbox drops what is known of a sandbox that was killed.
func (c *call) forgetSandbox(resp *http.Response) error {
	c.g.state.forget(c.target.Params["sandboxID"])
	return c.uncountSandbox(resp)
}

// refuseAnswer keeps an answer back that may hold E2B's tokens or the sandboxes
// of others.
func refuseAnswer(err error) *refusal.Refusal {
	ref := refusal.New(refusal.CodeUpstream, "E2B's answer was not understood, so e2bguard could not take out of it what is not yours, and does not hand it on. The call itself may have been done. Report the request id to whoever runs the gateway.")
	ref.Err = err
	return ref
}
