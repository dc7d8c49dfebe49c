package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/seal"
)

// E2B keeps nothing with a volume but its name, which is unique in the account and
// never changes. So in vault mode a client's volumes are known to E2B by the
// client's name, two underscores and the name the client gave, which is the only
// one it sees. That holds on every replica and after a restart, and what one
// client calls its volumes is no concern of another's.

// volume is what is known of one.
type volume struct {
	name   string // as E2B knows it
	domain string // "" for that of the API
}

// volumesOpen refuses what no option opens.
func volumesOpen(cfg Config) *refusal.Refusal {
	if cfg.Policy.Volumes.Open {
		return nil
	}
	return refusal.New(refusal.CodeDenied, "Blocked by policy: "+policy.ErrVolumesClosed.Error()+". Do not retry by another route.")
}

// ownerMark stands between a client's name and its name for a volume. In the
// client's, which may hold a dot, an underscore never stands before another.
const ownerMark = "__"

var (
	markedClient   = strings.NewReplacer("_", "_u", ".", "_d")
	unmarkedClient = strings.NewReplacer("_u", "_", "_d", ".")
)

// ownedVolume is E2B's name of a client's volume.
func ownedVolume(client, name string) string { return markedClient.Replace(client) + ownerMark + name }

// volumeOwner is the client whose volume a name is E2B's name of, and the client's
// own name for it; "" for no client of this gateway's.
func (g *Gateway) volumeOwner(known string) (client, name string) {
	marked, name, ok := strings.Cut(known, ownerMark)
	client = unmarkedClient.Replace(marked)
	if !ok || !g.isClient(client) || ownedVolume(client, name) != known {
		return "", ""
	}
	return client, name
}

// nameVolume is E2B's name of a volume that the client names. One that is shared
// has its whole name.
func (c *call) nameVolume(name string) (string, *refusal.Refusal) {
	if owner, _ := c.g.volumeOwner(name); owner != c.client && c.g.mayUse(c.client, owner) {
		if c.target.Row.Operation == route.VolumeCreate {
			return "", refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: %s would be a volume of client %s, whose volumes are shared with you. Choose a name that does not start with %s.", name, owner, ownedVolume(owner, "")))
		}
		return name, nil
	}
	known := ownedVolume(c.client, name)
	c.changed("volume", known)
	return known, nil
}

// shownVolume is the name that the client knows a volume by.
func (c *call) shownVolume(known string) string {
	if owner, name := c.g.volumeOwner(known); owner == c.client {
		return name
	}
	return known
}

// settleVolume takes a volume of the client's own, and answers for any other as
// E2B does for one that does not exist.
func (c *call) settleVolume() *refusal.Refusal {
	id := c.target.Params[route.ParamVolume]
	v, known := c.g.state.volumes.Get(id)
	if !known {
		if c.g.state.suspects.exhausted(c.source()) {
			return c.refuseSuspect()
		}
		var err error
		if v, err = c.g.askVolume(c.r.Context(), id); err != nil {
			ref := refusal.New(refusal.CodeUpstream, "e2bguard could not ask E2B whose volume this is, so the call was not forwarded. Try again in a moment.")
			ref.Err, ref.Retryable = err, true
			return ref
		}
		if v.name != "" {
			c.g.state.volumes.Add(id, v)
		}
	}
	if owner, _ := c.g.volumeOwner(v.name); !c.g.mayUse(c.client, owner) {
		return c.suspect(refuseVolume(id))
	}
	return nil
}

func refuseVolume(id string) *refusal.Refusal {
	return refusal.New(refusal.CodeNotFound, "Volume "+strconv.Quote(id)+" not found, or it is not yours to use")
}

// askVolume asks E2B about a volume. One that it does not know has no name.
func (g *Gateway) askVolume(ctx context.Context, id string) (volume, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	got, err := g.askAPI(ctx, http.MethodGet, "volumes/"+id, "", nil)
	if err != nil {
		return volume{}, fmt.Errorf("looking a volume up: %w", err)
	}
	switch got.status {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusForbidden, http.StatusBadRequest:
		return volume{}, nil
	default:
		return volume{}, fmt.Errorf("looking a volume up: E2B answered %d", got.status)
	}
	answer, err := control.DecodeVolumes(got.body)
	if err == nil && (len(answer.Volumes) != 1 || answer.Volumes[0].ID != id) {
		err = errors.New("the answer is about another volume")
	}
	if err != nil {
		return volume{}, fmt.Errorf("looking a volume up: %w", err)
	}
	return volume{answer.Volumes[0].Name, answer.Volumes[0].Domain}, nil
}

// learnVolume keeps what an answer says of a volume, seals its token, and points
// the client at the gateway's own domain for its content.
func (c *call) learnVolume(resp *http.Response) error {
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	answer, err := control.DecodeVolumes(b)
	if err == nil && len(answer.Volumes) != 1 {
		err = errors.New("the answer is not about one volume")
	}
	if err != nil {
		return refuseAnswer(err)
	}
	v := answer.Volumes[0]
	if owner, _ := c.g.volumeOwner(v.Name); c.g.vault() && !c.g.mayUse(c.client, owner) {
		return c.suspect(refuseVolume(v.ID))
	}
	c.g.state.volumes.Add(v.ID, volume{v.Name, v.Domain})
	domain := c.g.cfg.PublicDomain
	if domain == "" {
		c.hintVolumes()
	}
	switch {
	case c.g.vault():
		v.Show(c.shownVolume(v.Name), c.sealVolume(v), domain)
	case domain == v.Domain:
		return nil
	default:
		v.ShowDomain(domain)
	}
	replaceBody(resp, answer.Encode())
	return nil
}

// hintVolumes says once what a missing public domain means for volumes.
func (c *call) hintVolumes() {
	c.g.volumeHint.Do(func() {
		what := "unless clients set E2B_VOLUME_API_URL, what they write to volumes goes to E2B past this gateway"
		if c.g.vault() {
			what += ", and fails there with 401, because they hold sealed tokens"
		} else {
			what += ", unguarded"
		}
		c.g.log.Warn("without public_domain, clients are told no domain: " + what)
	})
}

// sealVolume is what a client gets in place of a volume's token: with it, the
// volume's name and domain, which no content call says.
func (c *call) sealVolume(v control.Volume) string {
	return c.g.cfg.Seal.Seal(seal.Token{Kind: seal.Volume, Sandbox: v.ID, Client: c.client, Inner: v.Name + "\n" + v.Domain + "\n" + v.Token})
}

// filterVolumes leaves out of a list what is not the client's own.
func (c *call) filterVolumes(resp *http.Response) error {
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	answer, err := control.DecodeVolumes(b)
	if err != nil {
		return refuseAnswer(err)
	}
	answer.Keep(func(v control.Volume) bool {
		owner, _ := c.g.volumeOwner(v.Name)
		return c.g.mayUse(c.client, owner)
	})
	for _, v := range answer.Volumes {
		v.Show(c.shownVolume(v.Name), "", "")
	}
	replaceBody(resp, answer.Encode())
	return nil
}
