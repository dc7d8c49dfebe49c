// Package gateway takes one call of an E2B client through six steps, always in
// the same order: identify, read, screen, enforce, forward, filter. See
// gateway.go. It knows net/http and the packages below it, not Caddy.
package gateway

import (
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/body"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// Config is everything a Gateway needs. New checks it and reports every problem
// at once.
type Config struct {
	Upstream Upstream
	// Clients are the keys the gateway gives out (vault mode). None: clients
	// bring their own E2B key (pass-through).
	Clients []Client
	// PublicDomain is the domain whose <port>-<id>.<domain> and api.<domain>
	// names point at the gateway; "" for the URL form only.
	PublicDomain string

	// Guard is asked about every subject: usually a *guard.Chain.
	Guard guard.Guard
	// Mode decides what a failing guard means.
	Mode guard.Mode

	Policy policy.Policy
	// Body bounds what is read from clients.
	Body body.Config
	// IdleTimeout ends a response stream on which the upstream sent nothing,
	// not even a keepalive; 0 means 3 minutes (envd's longest keepalive
	// interval is 90 s).
	IdleTimeout time.Duration

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
	// Transport overrides how upstreams are dialled, for tests; nil for the
	// default (proxy environment honoured, connections reused).
	Transport http.RoundTripper
}

// Client is a gateway key and the name it goes by in logs.
type Client struct {
	Name string
	Key  redact.Secret
}
