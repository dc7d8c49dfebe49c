package caddymodule

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/gateway"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// guardNamespace is where guard modules live. Another module joins by
// registering itself there and implementing Guard.
const guardNamespace = "http.e2b_guard.guards"

func init() {
	caddy.RegisterModule(Static{})
	caddy.RegisterModule(Superagent{})
}

// Guard is what a module of the namespace http.e2b_guard.guards implements.
type Guard interface {
	// Link returns the guard and what it is asked about. It is called once,
	// after Provision, and must touch no network.
	Link(GuardSettings) (guard.Link, error)
}

// GuardSettings is what a guard learns from the handler it belongs to.
type GuardSettings struct {
	// Profile is "strict", "balanced" or "permissive".
	Profile string
	// MaskSecrets hides secrets in text that leaves for a remote guard.
	MaskSecrets func(string) string
	// HideSecret takes a credential of the guard's own, which is then hidden
	// wherever secrets are.
	HideSecret func(string)
	Logger     *zap.Logger
}

func parseKinds(names []string) ([]guard.Kind, error) {
	var kinds []guard.Kind
	for _, name := range names {
		if !slices.Contains(guard.Kinds(), guard.Kind(name)) {
			return nil, fmt.Errorf("for %s: the kinds are %s", name, strings.Trim(fmt.Sprint(guard.Kinds()), "[]"))
		}
		kinds = append(kinds, guard.Kind(name))
	}
	return kinds, nil
}

// guardNames lists the guards in this binary.
func guardNames() []string {
	var names []string
	for _, m := range caddy.GetModules(guardNamespace) {
		names = append(names, m.ID.Name())
	}
	return names
}

// chain links the configured guards, with the cache of verdicts in front.
func chain(mods []any, settings GuardSettings, cfg gateway.Config) (guard.Guard, error) {
	secrets := []redact.Secret{cfg.Upstream.APIKey}
	for _, c := range cfg.Clients {
		secrets = append(secrets, c.Key)
	}
	settings.MaskSecrets = redact.NewMasker(secrets...).Mask
	var links []guard.Link
	for _, mod := range mods {
		g, ok := mod.(Guard)
		if !ok {
			return nil, fmt.Errorf("guard module %T cannot be asked: it does not implement caddymodule.Guard", mod)
		}
		l, err := g.Link(settings)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	asked, err := guard.NewChain(links, guard.ChainOptions{Breaker: guard.BreakerOptions{
		OnChange: func(name string, open bool) {
			settings.Logger.Warn("a guard's circuit breaker changed; while open, the guard is not asked and on_error decides",
				zap.String("guard", name), zap.Bool("open", open))
		},
	}})
	if err != nil {
		return nil, err
	}
	return guard.NewCache(asked, guard.CacheOptions{PolicyDigest: policyDigest(settings.Profile, cfg)})
}

// policyDigest changes whenever a verdict could: verdicts given under another
// policy are not found again.
func policyDigest(profile string, cfg gateway.Config) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %+v %+v", profile, cfg.Mode, cfg.Policy))
	return hex.EncodeToString(sum[:])
}

// checkGuardAPI refuses verdicts for whoever comes.
func (h *Handler) checkGuardAPI() error {
	if h.GuardAPI && len(h.Clients) == 0 {
		return errors.New("guard_api needs client keys, for whoever has texts judged must be known: add a line such as `client team-a {env.TEAM_A_KEY}`")
	}
	return nil
}
