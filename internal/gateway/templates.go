package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// E2B keeps nothing with a template or snapshot that could say which client made
// it. So its name does: it starts with the client's, and a dash. That holds on
// every replica and after a restart, and nobody else can make or replace it.

// templateOwner is what is known of whose a template is.
type templateOwner struct {
	client string // "" for none of this gateway's
	until  time.Time
}

// ownerKnownFor bounds how long an answer of E2B about a template's names is
// believed: it may be named anew.
const ownerKnownFor = time.Minute

// buildsOpen and deleteOpen refuse what no option opens.
func buildsOpen(cfg Config) *refusal.Refusal {
	if cfg.Policy.Builds.Open() {
		return nil
	}
	return refusal.New(refusal.CodeDenied, "Blocked by policy: "+policy.ErrBuildsClosed.Error()+". Do not retry by another route.")
}

func deleteOpen(cfg Config) *refusal.Refusal {
	if cfg.Policy.Persistence.Snapshot {
		return nil
	}
	return buildsOpen(cfg)
}

// clientsMakeTemplates reports whether there can be templates of clients.
func (g *Gateway) clientsMakeTemplates() bool {
	return g.cfg.Policy.Builds.Open() || g.cfg.Policy.Persistence.Snapshot
}

// ownedPrefix starts the names of a client's templates and snapshots, as E2B
// writes them.
func ownedPrefix(client string) string {
	return strings.ToLower(strings.ReplaceAll(client, ".", "-")) + "-"
}

// nameOwner is the client that a name says made it, "" for none. Where the name
// of one client starts another's, the longer one is meant.
func (g *Gateway) nameOwner(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	name, _, _ = strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	owner, longest := "", ""
	for _, client := range g.clients {
		if prefix := ownedPrefix(client.name); len(prefix) > len(longest) && strings.HasPrefix(name, prefix) {
			owner, longest = client.name, prefix
		}
	}
	return owner
}

// clientsShareNames reports two clients whose templates could not be told apart.
func (c Config) clientsShareNames() error {
	if !c.Policy.Builds.Open() && !c.Policy.Persistence.Snapshot {
		return nil
	}
	seen := map[string]string{}
	for _, client := range c.Clients {
		prefix := ownedPrefix(client.Name)
		if other, taken := seen[prefix]; taken && other != client.Name {
			return fmt.Errorf("clients %q and %q differ in case or dots only, so their templates and snapshots could not be told apart: rename one", other, client.Name)
		}
		seen[prefix] = client.Name
	}
	return nil
}

// settleNames lets a client make, replace and start only what is its own, or
// nobody's, in vault mode. What is its own needs no place in a list of templates.
func (c *call) settleNames(p *policy.Policy) *refusal.Refusal {
	m := c.msg.(controlMessage)
	if c.g.clientsMakeTemplates() {
		if source := m.Source(); source != "" {
			owner, ref := c.templateOwner(source)
			switch {
			case ref != nil:
				return ref
			case c.g.mayUse(c.client, owner):
				p.Templates.Allow = nil
				p.Builds.Templates = append([]string{source}, p.Builds.Templates...)
			case owner != "":
				return c.suspect(refuseTemplate(source))
			}
		}
	}
	for _, name := range m.Names() {
		if owner := c.g.nameOwner(name); owner != c.client {
			prefix := ownedPrefix(c.client)
			return refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: %q is no name of your own. Templates and snapshots of this client start with %s, so that no other client's is replaced; use %sNAME instead.", name, prefix, prefix))
		}
	}
	if m.NeedsName() && len(m.Names()) == 0 {
		name := ownedPrefix(c.client) + strings.ToLower(rand.Text()[:12])
		m.SetName(name)
		c.changed("name", name)
	}
	return nil
}

// settleTemplate lets a call go on only with a template of the client's own.
func (c *call) settleTemplate() *refusal.Refusal {
	if !c.g.clientsMakeTemplates() {
		return nil
	}
	id := c.target.Params[route.ParamTemplate]
	owner, ref := c.templateOwner(id)
	switch {
	case ref != nil:
		return ref
	case !c.g.mayUse(c.client, owner):
		return c.suspect(refuseTemplate(id))
	}
	return nil
}

func refuseTemplate(id string) *refusal.Refusal {
	return refusal.New(refusal.CodeNotFound, "template "+strconv.Quote(id)+" not found, or it is not yours to use")
}

// templateOwner says whose a template is: by its name, or for an id by the names
// that E2B has for it.
func (c *call) templateOwner(ref string) (string, *refusal.Refusal) {
	if owner := c.g.nameOwner(ref); owner != "" {
		return owner, nil
	}
	id, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(ref)), ":")
	if known, ok := c.g.state.templates.Get(id); ok && time.Now().Before(known.until) {
		return known.client, nil
	}
	if c.g.state.suspects.exhausted(c.source()) {
		return "", c.refuseSuspect()
	}
	owner, err := c.g.askTemplate(c.r.Context(), id)
	if err != nil {
		ref := refusal.New(refusal.CodeUpstream, "e2bguard could not ask E2B whose template this is, so the call was not forwarded. Try again in a moment.")
		ref.Err, ref.Retryable = err, true
		return "", ref
	}
	c.g.state.templates.Add(id, templateOwner{owner, time.Now().Add(ownerKnownFor)})
	return owner, nil
}

// askTemplate asks E2B for a template's names. One that E2B does not know, or
// that is not the account's, is no client's.
func (g *Gateway) askTemplate(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	got, err := g.askAPI(ctx, http.MethodGet, "templates/"+url.PathEscape(id), "", nil)
	if err != nil {
		return "", fmt.Errorf("looking a template up: %w", err)
	}
	switch got.status {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusForbidden, http.StatusBadRequest:
		return "", nil
	default:
		return "", fmt.Errorf("looking a template up: E2B answered %d", got.status)
	}
	names, err := control.TemplateNames(got.body)
	if err != nil {
		return "", fmt.Errorf("looking a template up: %w", err)
	}
	for _, name := range names {
		if owner := g.nameOwner(name); owner != "" {
			return owner, nil
		}
	}
	return "", nil
}

// filterTemplates leaves the templates of other clients out of a list.
func (c *call) filterTemplates(resp *http.Response) error {
	if !c.g.clientsMakeTemplates() {
		return nil
	}
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	b, err = control.KeepTemplates(b, func(names []string) bool {
		for _, name := range names {
			if owner := c.g.nameOwner(name); owner != "" && !c.g.mayUse(c.client, owner) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return refuseAnswer(err)
	}
	replaceBody(resp, b)
	return nil
}
