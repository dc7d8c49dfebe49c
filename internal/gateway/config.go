// Package gateway takes one call of an E2B client through six steps, always in
// the same order: identify, read, screen, enforce, forward, filter. See
// gateway.go. It knows net/http and the packages below it, not Caddy.
package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/body"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
	"github.com/e2bguard/e2bguard/internal/seal"
)

// Config is everything a Gateway needs. New checks it and reports every problem
// at once.
type Config struct {
	Upstream Upstream
	// Clients are the keys the gateway gives out (vault mode). None: clients
	// bring their own E2B key (pass-through).
	Clients []Client
	// Share lists groups of clients, by name, whose members act on one another's
	// sandboxes.
	Share [][]string
	// Seal makes and opens the tokens that clients get in place of E2B's (vault
	// mode).
	Seal *seal.Sealer
	// UnboundUploads takes signed upload URLs that name no path, with which any
	// file of the sandbox can be written.
	UnboundUploads bool
	// PublicDomain is the domain whose <port>-<id>.<domain> and api.<domain>
	// names point at the gateway; "" for the URL form only.
	PublicDomain string

	// DenyPTY refuses terminals.
	DenyPTY bool

	// Guard is asked about every subject: usually a *guard.Chain.
	Guard guard.Guard
	// Mode decides what a failing guard means.
	Mode guard.Mode

	Policy policy.Policy
	// Redact is what is hidden from clients; "" for RedactKnown.
	Redact RedactMode
	// Secrets are those that the gateway does not use itself, such as a guard's key.
	Secrets []redact.Secret
	// ClientLimits hold for every client that has none of its own.
	ClientLimits policy.ClientLimits
	// Body bounds what is read from clients.
	Body body.Config
	// IdleTimeout ends a response stream on which the upstream sent nothing,
	// not even a keepalive; 0 means 3 minutes (envd's longest keepalive
	// interval is 90 s).
	IdleTimeout time.Duration

	// JudgeToolResults puts what MCP tools answer before the guard, before the
	// client gets it; else it is only recorded.
	JudgeToolResults bool

	// Verify reads every new or woken sandbox back and ends it if its network or
	// lifetime is not what was asked for.
	Verify bool

	// GuardAPI opens the endpoint that judges what clients ask about.
	GuardAPI bool
	// Run opens the endpoint that runs programs; nil leaves it closed.
	Run *Run

	// Reaper ends sandboxes that nobody else ends, in vault mode.
	Reaper Reaper

	// Audit is where the records of calls go.
	Audit Audit

	// Hold keeps alive what the gateway was given, such as the audit's log, while it
	// still ends a sandbox behind its calls, until release is called; nil if it lives
	// as long anyway.
	Hold func() (release func())

	// State outlives a reload of the configuration; nil makes a new one.
	State  *State
	Logger *zap.Logger
}

// Upstream is the E2B that calls are forwarded to.
type Upstream struct {
	// APIURL is the control plane, SandboxURL the data plane in URL form
	// (routing headers); both absolute, without query or fragment.
	APIURL, SandboxURL *url.URL
	// APIKey is E2B's key in vault mode: the only place it lives.
	APIKey redact.Secret
	// Domains are those of clusters of the account's own: a sandbox that E2B names
	// one of them for, or a subdomain, is reached at its hosts.
	Domains []string
	// AnyDomain says that SandboxURL serves the sandboxes of every other domain.
	AnyDomain bool
	// Legacy says that the API is too old to report a sandbox's network: what it
	// does not report is believed.
	Legacy bool
	// Transport overrides how upstreams are dialled, for tests; nil for the
	// default (proxy environment honoured, connections reused).
	Transport http.RoundTripper
}

// Client is a gateway key and the name it goes by in logs and on its sandboxes.
type Client struct {
	Name string
	// Key is what the client sends, or HashPrefix and the hexadecimal SHA-256 of
	// it.
	Key redact.Secret
	// Limits replace the configuration's for this client; nil for those.
	Limits *policy.ClientLimits
}

// HashPrefix starts a client's key that is given as its hash.
const HashPrefix = "sha256:"

// Digest is the SHA-256 of what the client sends.
func (c Client) Digest() ([sha256.Size]byte, error) {
	hash, hashed := strings.CutPrefix(c.Key.Reveal(), HashPrefix)
	if !hashed {
		return sha256.Sum256([]byte(c.Key.Reveal())), nil
	}
	b, err := hex.DecodeString(hash)
	if err != nil || len(b) != sha256.Size {
		return [sha256.Size]byte{}, fmt.Errorf("the key of client %q starts with %s, but 64 hexadecimal digits do not follow", c.Name, HashPrefix)
	}
	return [sha256.Size]byte(b), nil
}
