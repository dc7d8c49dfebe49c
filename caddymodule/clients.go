package caddymodule

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/e2bguard/e2bguard/internal/gateway"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// Client is a key this gateway gives out.
type Client struct {
	// Name is what the client is called in logs and in the metadata of its
	// sandboxes: letters, digits, dot, dash and underscore.
	Name string `json:"name"`
	// Key is what the client sends as its E2B API key, or "sha256:" and the
	// hexadecimal hash of it; best a placeholder.
	Key string `json:"key"`
	// Limits replace those of client_limits for this client; what they leave out
	// holds as there.
	Limits *ClientLimits `json:"limits,omitempty"`
}

// ClientLimits bounds what each client may use. A limit that is not given, or is
// 0, is off.
type ClientLimits struct {
	// Sandboxes is how many may run at once. Without client keys these are all of
	// the E2B account's.
	Sandboxes *int `json:"sandboxes,omitempty"`
	// Creations is how many sandboxes may be made in a minute, forks included.
	Creations *int `json:"creations,omitempty"`
	// GuardCalls is how many pieces of code may be judged in a minute.
	GuardCalls *int `json:"guard_calls,omitempty"`
}

// minClientKey is the least length of a key that stands for an E2B account.
const minClientKey = 16

func (h *Handler) clients(repl *caddy.Replacer, upstreamKey redact.Secret) ([]gateway.Client, error) {
	var problems []error
	var clients []gateway.Client
	for _, c := range h.Clients {
		if !clientName.MatchString(c.Name) {
			problems = append(problems, fmt.Errorf("client name %q: use up to 63 letters, digits, dots, dashes and underscores", c.Name))
		}
		key, err := secret(repl, "key of client "+c.Name, c.Key)
		switch {
		case err != nil:
		case key.IsZero():
			err = fmt.Errorf("client %s has no key", c.Name)
		case len(key.Reveal()) < minClientKey && !strings.HasPrefix(key.Reveal(), gateway.HashPrefix):
			err = fmt.Errorf("the key of client %s has %d characters and could be guessed: use at least %d, best one made with: e2bguard key new", c.Name, len(key.Reveal()), minClientKey)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		client := gateway.Client{Name: c.Name, Key: key}
		if c.Limits != nil {
			limits := c.Limits.over(h.ClientLimits.over(policy.ClientLimits{}))
			client.Limits = &limits
			if err := limits.Validate(); err != nil {
				problems = append(problems, wrap("client "+c.Name, err))
			}
		}
		digest, err := client.Digest()
		if err != nil {
			problems = append(problems, fmt.Errorf("%w; make the hash with: e2bguard key hash", err))
			continue
		}
		for _, other := range clients {
			if other.Name == c.Name {
				problems = append(problems, fmt.Errorf("client %s is given twice; give each client one line", c.Name))
			}
			if known, _ := other.Digest(); known == digest {
				problems = append(problems, fmt.Errorf("clients %s and %s have the same key, so calls could not be told apart; give each its own", other.Name, c.Name))
			}
		}
		if !upstreamKey.IsZero() && digest == sha256.Sum256([]byte(upstreamKey.Reveal())) {
			problems = append(problems, fmt.Errorf("client %s has E2B's own key: a client would not need this gateway; give it a key of its own", c.Name))
		}
		clients = append(clients, client)
	}
	return clients, errors.Join(problems...)
}

// over returns the limits where they are given, else those below.
func (l *ClientLimits) over(below policy.ClientLimits) policy.ClientLimits {
	if l != nil {
		set(&below.Sandboxes, l.Sandboxes)
		set(&below.Creations, l.Creations)
		set(&below.GuardCalls, l.GuardCalls)
	}
	return below
}

// checkShare refuses groups that share nothing, or with nobody.
func (h *Handler) checkShare() error {
	var problems []error
	for _, group := range h.Share {
		if len(group) < 2 {
			problems = append(problems, fmt.Errorf("share %s: write at least two clients, who then act on one another's sandboxes, as in: share team-a team-b", strings.Join(group, " ")))
		}
		for _, name := range group {
			if !slices.ContainsFunc(h.Clients, func(c Client) bool { return c.Name == name }) {
				problems = append(problems, fmt.Errorf("share names %s, which is no client; add a line `client %s KEY`, or leave it out", name, name))
			}
		}
	}
	return errors.Join(problems...)
}
