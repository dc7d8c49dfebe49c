// Package caddymodule is everything that knows Caddy: the HTTP handler
// http.handlers.e2b_guard with its Caddyfile directive e2b_guard, the guard
// modules in http.e2b_guard.guards, and the subcommands demo, emulate, check,
// routes and key. What a call goes through is decided in internal/gateway.
package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/gateway"
	"github.com/e2bguard/e2bguard/internal/redact"
)

func init() {
	caddy.RegisterModule(Handler{})
	httpcaddyfile.RegisterHandlerDirective("e2b_guard", parseCaddyfile)
	httpcaddyfile.RegisterDirectiveOrder("e2b_guard", httpcaddyfile.Before, "reverse_proxy")
}

// Handler is a gateway between E2B SDKs and E2B. It understands what a call
// would run, write or open in a sandbox, asks guards before anything happens,
// and forwards it with limits and network policy enforced. With no options it
// forwards to E2B's hosted service, judges with the static guard, blocks when a
// guard fails, and gives sandboxes no way out to the network.
//
// It ends the route: no handler after it sees the request.
type Handler struct {
	// Upstream is the E2B that calls are forwarded to. Default: E2B's hosted
	// service, with the clients' own keys.
	Upstream *Upstream `json:"upstream,omitempty"`

	// Clients are the keys this gateway gives out. With clients, upstream.api_key
	// is required, and no client ever holds it (vault mode). Without, clients
	// bring their own E2B key (pass-through).
	Clients []Client `json:"clients,omitempty"`

	// Share lists groups of clients, by name, whose members act on one another's
	// sandboxes. Default: each client acts on its own.
	Share [][]string `json:"share,omitempty"`

	// ClientLimits bounds what each client may use. Default: no limit.
	ClientLimits *ClientLimits `json:"client_limits,omitempty"`

	// SealKey is what the access tokens that clients get in place of E2B's are
	// sealed with, each key at least 32 random bytes in hexadecimal or base64, best
	// a placeholder. The first seals, all open. Default: one that is made at the
	// first start and kept in Caddy's storage.
	SealKey []string `json:"seal_key,omitempty"`

	// SignedUploads is which signed upload URLs are taken from clients: those that
	// name a "path" (default), or "any", with which any file can be written.
	SignedUploads string `json:"signed_uploads,omitempty"`

	// PublicDomain is the domain under which sandboxes are reached through this
	// gateway: api.<domain> is the control plane, <port>-<id>.<domain> a sandbox.
	// Wildcard DNS and a wildcard certificate must point here. Default: none;
	// clients use E2B_API_URL and E2B_SANDBOX_URL.
	PublicDomain string `json:"public_domain,omitempty"`

	// GuardsRaw are asked in this order; the first block ends the chain, and the
	// last verdict stands. Default: the static guard.
	GuardsRaw []json.RawMessage `json:"guards,omitempty" caddy:"namespace=http.e2b_guard.guards inline_key=guard"`

	// Profile is how much doubt blocks: "strict", "balanced" (default) or
	// "permissive". Strict also lowers the limits that are not given: commands
	// to 20 s of wall clock, 5 s of CPU and 512 MiB.
	Profile string `json:"profile,omitempty"`

	// Mode is "enforce" (default) or "shadow": guards are asked and their verdicts
	// recorded, and none blocks. Limits and policy hold all the same.
	Mode string `json:"mode,omitempty"`

	// OnError is what happens to a call that no guard could judge: "block"
	// (default) or "allow". A guard that refuses its key blocks even under
	// "allow", for that is a fault of the configuration.
	OnError string `json:"on_error,omitempty"`

	// Limits bounds sandboxes and what runs in them.
	Limits *Limits `json:"limits,omitempty"`

	// Network is what sandboxes may reach. Default: nothing.
	Network *Network `json:"network,omitempty"`

	// Verify is whether each new sandbox is read back from E2B, and ended if its
	// network or lifetime is not what was asked for: "on" (default) or "off".
	Verify string `json:"verify,omitempty"`

	// Redact is what is hidden from clients in what runs print, in files and in
	// answers: "known" (default; keys and tokens, and secrets of the environments
	// that clients give), "all" (also what has the format of a well-known secret) or
	// "off". Logs and the audit are masked in any case.
	Redact string `json:"redact,omitempty"`

	// Templates lists the template ids and names that may be started. Default:
	// whatever the key may use.
	Templates []string `json:"templates,omitempty"`

	// Builds is what clients may build templates from. Default: they build none.
	Builds *Builds `json:"builds,omitempty"`

	// Ports lists the sandbox ports that may be reached, each "3000" or
	// "8000-8100". Default: none besides E2B's own services. Port 8888, a Jupyter
	// server without a token, is opened only by naming it alone.
	Ports []string `json:"ports,omitempty"`

	// PTY is whether terminals may be opened and typed into: "guard" (default),
	// every line judged when Enter is pressed, or "deny".
	PTY string `json:"pty,omitempty"`

	// Persistence is which ways of outliving a run are open. Default: none.
	Persistence *Persistence `json:"persistence,omitempty"`

	// Volumes is whether volumes may be made, filled and mounted: "guard", what is
	// written to them is judged, or "deny". Default: "guard"; "deny" where clients
	// bring their own key and there is no public_domain, for then their SDK sends a
	// volume's content past the gateway unless it is told E2B_VOLUME_API_URL.
	Volumes string `json:"volumes,omitempty"`

	// ToolResults is what happens to what MCP tools answer: "record" (default), or
	// "guard", which has it judged before the client gets it.
	ToolResults string `json:"tool_results,omitempty"`

	// Buffer bounds what is read from clients.
	Buffer *Buffer `json:"buffer,omitempty"`

	// Run opens POST /run, which runs a client's program in a sandbox of its own. It
	// needs clients. Default: closed.
	Run *Run `json:"run,omitempty"`

	// GuardAPI opens POST /api/guard, which judges what a client asks about and runs
	// nothing, as the Superagent Guard API does. It needs clients. Default: closed.
	GuardAPI bool `json:"guard_api,omitempty"`

	// Reaper ends sandboxes that nobody else ends. Default, with client keys: those
	// that outlived their lifetime.
	Reaper *Reaper `json:"reaper,omitempty"`

	// Audit keeps a record of every guarded call. Default: none but the lines of
	// the logger http.handlers.e2b_guard.
	Audit *Audit `json:"audit,omitempty"`

	auditPlace   auditPlace
	auditOptions audit.Options
	gw           *gateway.Gateway
	shared       *shared
	lease        *lease
	stopReaper   func()
	access       *accessLog
	logger       *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.e2b_guard",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision resolves placeholders, loads the guards and builds the gateway. It
// touches no network, unless Caddy's storage is there and keeps the seal key.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	cfg, err := h.config(ctx)
	if err != nil {
		return err
	}
	h.warn(cfg)

	states := stateKey(cfg.Upstream)
	shared, err := acquireShared(states)
	if err != nil {
		return err
	}
	cfg.State, cfg.Hold = shared.state, h.hold
	path := "" // of the audit log that this handler holds
	if cfg.Guard, cfg.Secrets, err = h.loadGuards(ctx, cfg); err == nil {
		cfg.Audit.Policy = policyDigest(h.profile(), cfg)
		if cfg.Audit.Log, err = h.openAudit(ctx); cfg.Audit.Log != nil {
			path = cfg.Audit.Log.Path()
			cfg.Audit.Rules, err = loadRules()
		}
	}
	if err == nil {
		h.gw, err = gateway.New(cfg)
	}
	if err != nil {
		_, released := releaseShared(states)
		return errors.Join(err, released, releaseAudit(path))
	}
	logger := h.logger
	h.shared = shared
	shared.join(h)
	h.lease = newLease(func() {
		shared.forget(h)
		last, err := releaseShared(states)
		if last {
			h.gw.EndMade()
		}
		// The log comes last: it tells of what was ended above.
		if err := errors.Join(err, h.gw.Close(), releaseAudit(path)); err != nil {
			logger.Error("closing the gateway", zap.Error(err))
		}
	})
	h.access = newAccessLog(ctx)
	return errors.Join(registerMetrics(ctx), h.startReaper(ctx))
}

// Cleanup ends this handler when its last call has ended. Caddy calls it while
// streams of a reloaded configuration are still running, and those must not be
// cut. At the end of the process nothing can be left for later.
func (h *Handler) Cleanup() error {
	if h.lease == nil {
		return nil
	}
	h.stopReaper()
	last := h.shared.leave(h)
	for _, old := range last {
		old.gw.Abandon()
	}
	release := h.hold()
	h.gw.Retire(caddy.Exiting())
	h.lease.retire()
	if !caddy.Exiting() {
		release()
		return nil
	}
	h.gw.EndMade()
	var problems []error
	for _, old := range last {
		problems = append(problems, old.gw.Close())
	}
	release()
	deadline := time.Now().Add(exitWait)
	for _, old := range last {
		old.lease.end(time.Until(deadline))
	}
	return errors.Join(problems...)
}

// exitWait is how long the end of the process waits for calls that are still
// running when Caddy's grace period is over.
const exitWait = 2 * time.Second

// ServeHTTP takes one call through the gateway. Refusals are written by the
// gateway in the form each SDK reads, so the error is always nil and
// handle_errors has no part in it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	if !h.lease.take() {
		return caddyhttp.Error(http.StatusServiceUnavailable, errors.New("this configuration has been replaced"))
	}
	defer h.lease.give()

	ctx, outcome := gateway.WithOutcome(r.Context())
	if ip, ok := caddyhttp.GetVar(ctx, caddyhttp.ClientIPVarKey).(string); ok {
		ctx = gateway.WithClientIP(ctx, ip)
	}
	w, done := h.access.begin(w, r)
	defer done(outcome)
	offerPlaceholders(r, outcome)
	h.gw.ServeHTTP(w, r.WithContext(ctx))
	return nil
}

// offerPlaceholders makes a call's outcome known to other handlers and to log
// formats, from the moment the gateway knows it.
func offerPlaceholders(r *http.Request, o *gateway.Outcome) {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return
	}
	repl.Map(func(key string) (any, bool) {
		switch key {
		case "http.e2b_guard.decision":
			return o.Decision, true
		case "http.e2b_guard.operation":
			return o.Operation, true
		case "http.e2b_guard.request_id":
			return o.RequestID, true
		case "http.e2b_guard.sandbox":
			return o.Sandbox, true
		}
		return nil, false
	})
}

// warn says what is legal and unwise.
func (h *Handler) warn(cfg gateway.Config) {
	for _, c := range cfg.Clients {
		if key := c.Key.Reveal(); !e2bKey.MatchString(key) && !strings.HasPrefix(key, gateway.HashPrefix) {
			h.logger.Warn("a client key does not look like e2b_<hex digits>; older E2B SDKs refuse it before they call, "+
				"newer ones with E2B_VALIDATE_API_KEY unset; create one with: e2bguard key new",
				zap.String("client", c.Name))
		}
	}
	if cfg.Mode.AllowOnError {
		h.logger.Warn("on_error allow: calls run unjudged while the guards fail")
	}
	if cfg.Mode.Shadow {
		h.logger.Warn("mode shadow: guards are asked, and no verdict of theirs blocks")
	}
	if h.Audit == nil {
		h.logger.Info("no audit log is configured: decisions and outcomes are written to this logger, best effort; for durable evidence write, for example: audit " + exampleAudit)
	}
	if cfg.Audit.PassOnFailure {
		h.logger.Warn("audit on_failure allow: calls run unrecorded while the audit log cannot be written")
	}
	if !cfg.Verify || cfg.Upstream.Legacy {
		h.logger.Warn("sandboxes are not verified to have the network and lifetime that was asked for: an E2B API that ignores these fields leaves them open")
	}
	for _, u := range []*url.URL{cfg.Upstream.APIURL, cfg.Upstream.SandboxURL} {
		if plainRemote(u) {
			h.logger.Warn("the upstream is plain http on another host: keys and tokens travel readable", zap.String("upstream", u.Host))
		}
	}
	warnDefaultAdmin(h.logger)
}

// loadGuards returns the guard, and the credentials of those it consists of.
func (h *Handler) loadGuards(ctx caddy.Context, cfg gateway.Config) (g guard.Guard, secrets []redact.Secret, err error) {
	if h.GuardsRaw == nil {
		h.GuardsRaw = []json.RawMessage{json.RawMessage(`{"guard":"static"}`)}
	}
	mods, err := ctx.LoadModule(h, "GuardsRaw")
	if err != nil {
		return nil, nil, fmt.Errorf("loading guards: %w", err)
	}
	settings := GuardSettings{Profile: h.profile(), Logger: h.logger, HideSecret: func(value string) { secrets = append(secrets, redact.NewSecret(value)) }}
	g, err = chain(mods.([]any), settings, cfg)
	return g, secrets, err
}

func (h *Handler) profile() string {
	if h.Profile == "" {
		return profileBalanced
	}
	return h.Profile
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
