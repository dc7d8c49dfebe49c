package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/body"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// defaultIdleTimeout is twice envd's default keepalive interval of 90 s.
const defaultIdleTimeout = 3 * time.Minute

// Gateway is the handler. It is safe for concurrent use.
type Gateway struct {
	cfg    Config
	state  *State
	bodies *body.Reader
	// archives are read under half the ceiling: one may be as large as an upload.
	archives *body.Reader
	fwd      *forwarder
	masker   *redact.Masker
	// secrets are the gateway's own, as they are hidden in answers.
	secrets *redact.Set
	texts   audit.Texts
	log     *zap.Logger
	// interruptGrace is the constant, except in tests.
	interruptGrace time.Duration

	// clients and their names; empty in pass-through mode.
	clients []knownClient
	names   map[string]Client
	// shares are, for each client, the others whose sandboxes it may use.
	shares map[string][]string
	// lookups are the questions to E2B who made a sandbox.
	lookups     singleflight.Group
	counts      singleflight.Group // of clients' running sandboxes
	lookupSlots chan struct{}
	// matching is held while a signed URL's sandbox is searched for.
	matching sync.Mutex
	// background is what goes on behind calls.
	background *background
	// programs are those of POST /run, pool the sandboxes that wait for some.
	programs *programs
	pool     *pool
	// domainHint and volumeHint say once what a missing public domain means.
	domainHint, volumeHint sync.Once
}

// knownClient is a client by the digest of its key.
type knownClient struct {
	name   string
	digest [sha256.Size]byte
}

// New checks the configuration, reports every problem in it at once, and
// returns a gateway ready to serve. It does not touch the network.
func New(cfg Config) (*Gateway, error) {
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = defaultIdleTimeout
	}
	if cfg.State == nil {
		cfg.State = NewState()
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Redact == "" {
		cfg.Redact = RedactKnown
	}
	bodies, err := body.NewReader(cfg.Body)
	if err := errors.Join(err, cfg.validate()); err != nil {
		return nil, err
	}
	g := &Gateway{
		cfg: cfg, state: cfg.State, bodies: bodies, archives: bodies.Part(bodies.Config().CeilingBytes / 2), log: cfg.Logger, interruptGrace: interruptGrace, masker: redact.NewMasker(cfg.secrets()...),
		names: map[string]Client{}, lookupSlots: make(chan struct{}, lookupsAtOnce),
		background: newBackground(cfg.Hold),
	}
	for _, client := range cfg.Clients {
		digest, _ := client.Digest() // checked above
		g.clients = append(g.clients, knownClient{client.Name, digest})
		g.names[client.Name] = client
	}
	if cfg.Redact != RedactOff {
		g.secrets = redact.NewSet(cfg.Redact == RedactAll, cfg.secrets()...)
	}
	g.shares = shares(cfg.Share)
	if cfg.Run != nil {
		g.programs, g.pool = newPrograms(), newPool(g, cfg.Run.Pool)
	}
	g.texts = audit.Texts{Code: cfg.Audit.Code, Head: cfg.Audit.HeadBytes, Output: cfg.Audit.OutputBytes, Masker: g.masker, Rules: cfg.Audit.Rules}
	g.fwd, err = newForwarder(g)
	return g, err
}

func (c Config) validate() error {
	var problems []error
	for name, u := range map[string]*url.URL{"api_url": c.Upstream.APIURL, "sandbox_url": c.Upstream.SandboxURL} {
		if u == nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			problems = append(problems, fmt.Errorf("%s must be an absolute http or https URL without a query, not %q", name, u))
		}
	}
	if c.Guard == nil {
		problems = append(problems, errors.New("no guard is configured"))
	}
	if len(c.Clients) > 0 && c.Upstream.APIKey.IsZero() {
		problems = append(problems, errors.New("client keys need the upstream's api_key: they stand for it"))
	}
	if len(c.Clients) > 0 && c.Seal == nil {
		problems = append(problems, errors.New("client keys need a seal key: what clients get in place of E2B's access tokens is sealed with it"))
	}
	if len(c.Clients) == 0 && !c.Upstream.APIKey.IsZero() {
		problems = append(problems, errors.New("the upstream's api_key needs client keys: without them anybody who reaches the gateway would use it"))
	}
	if len(c.Clients) == 0 && c.GuardAPI {
		problems = append(problems, errors.New("guard_api needs client keys: without them anybody who reaches the gateway could use its guards"))
	}
	upstream := sha256.Sum256([]byte(c.Upstream.APIKey.Reveal()))
	problems = append(problems, c.ClientLimits.Validate())
	names := make(map[[sha256.Size]byte]string, len(c.Clients))
	for _, client := range c.Clients {
		digest, err := client.Digest()
		switch other, taken := names[digest]; {
		case err != nil:
			problems = append(problems, err)
			continue
		case client.Name == "":
			problems = append(problems, errors.New("a client has no name"))
		case client.Key.IsZero():
			// Whoever sends no key would be this client.
			problems = append(problems, fmt.Errorf("client %q has an empty key", client.Name))
		case digest == upstream:
			problems = append(problems, fmt.Errorf("the key of client %q is the upstream's api_key, which must not leave the gateway", client.Name))
		case taken:
			problems = append(problems, fmt.Errorf("clients %q and %q have the same key, so they cannot be told apart", other, client.Name))
		}
		names[digest] = client.Name
		if client.Limits != nil {
			problems = append(problems, client.Limits.Validate())
		}
	}
	for _, group := range c.Share {
		for _, name := range group {
			if !slices.ContainsFunc(c.Clients, func(client Client) bool { return client.Name == name }) {
				problems = append(problems, fmt.Errorf("share names %q, which is no client", name))
			}
		}
	}
	problems = append(problems, c.Policy.Builds.Validate(), c.clientsShareNames(), c.Run.fit(c))
	return errors.Join(problems...)
}

// secrets are the credentials the gateway itself knows.
func (c Config) secrets() []redact.Secret {
	all := append([]redact.Secret{c.Upstream.APIKey}, c.Secrets...)
	for _, client := range c.Clients {
		if !strings.HasPrefix(client.Key.Reveal(), HashPrefix) {
			all = append(all, client.Key)
		}
	}
	return all
}

// Abandon is for a gateway that none with its sandboxes comes after: it waits no
// longer for processes to come to their limits.
func (g *Gateway) Abandon() { g.background.drop() }

// Close ends what the gateway still does about sandboxes that it could not end
// yet, with one more try for each and all within exitGrace, and gives back what it
// holds. Calls in flight go on: a reload of the configuration must not cut a
// stream.
func (g *Gateway) Close() error {
	g.background.stop(exitGrace)
	g.fwd.closeIdle()
	return nil
}

// ServeHTTP takes one call through the house.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.newCall(w, r).serve()
}

func (g *Gateway) newCall(w http.ResponseWriter, r *http.Request) *call {
	c := &call{g: g, w: w, id: newRequestID(), started: time.Now(), outcome: outcomeFrom(r.Context())}
	c.r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	c.clientBody = watchBody(c.r)
	c.outcome.RequestID = c.id
	return c
}

func (c *call) serve() {
	defer c.close()
	defer c.recoverPanic()
	if ref := c.run(); ref != nil {
		c.refuse(ref)
	}
}

// run is the six steps. A step ends the call only by returning a Refusal.
func (c *call) run() *refusal.Refusal {
	if ref := c.identify(); ref != nil {
		return ref
	}
	if c.op.answer != nil {
		return c.op.answer(c)
	}
	if ref := c.read(); ref != nil {
		return ref
	}
	if ref := c.screen(); ref != nil {
		return ref
	}
	if ref := c.enforce(); ref != nil {
		return ref
	}
	if ref := c.record(); ref != nil {
		return ref
	}
	c.forward() // filter runs inside, on the response
	return nil
}

// recoverPanic turns a fault of ours into a refusal: a call that could not be
// judged is not forwarded. A panic in the response's copy loop means that the
// connection is lost, and goes on to the server.
func (c *call) recoverPanic() {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // recover returns the value itself
		c.sawLoss()
		panic(p)
	}
	ref := c.refusePanic(p)
	if c.forwarded {
		panic(http.ErrAbortHandler)
	}
	c.refuse(ref)
}

// refusePanic logs a panic and gives the refusal that answers for it. The panic's
// value may quote what was judged, so only its type is told.
func (c *call) refusePanic(p any) *refusal.Refusal {
	c.g.log.Error("recovered from a panic; the call was not passed",
		zap.String("request_id", c.id), zap.String("operation", c.outcome.Operation),
		zap.String("panic", fmt.Sprintf("%T", p)), zap.ByteString("stack", debug.Stack()))
	return refusal.New(refusal.CodeInternalError, "e2bguard failed while reading this call, so it was not run. Report the request id to whoever runs the gateway.")
}

func newRequestID() string { return strings.ToLower(rand.Text()[:20]) }

// Routes describes every operation the gateway knows, for `e2bguard routes` and
// the documentation.
func Routes() []RouteInfo {
	rows := route.Table()
	infos := make([]RouteInfo, 0, len(rows))
	for _, row := range rows {
		op := operationOf(row.Operation)
		infos = append(infos, RouteInfo{
			Plane: string(row.Plane), Method: row.Method, Pattern: row.Pattern, Operation: string(row.Operation),
			Sees: op.sees, Enforced: op.enforced, Filtered: op.filtered, Default: string(row.Default), Why: row.Why,
		})
	}
	return infos
}

// RouteInfo is one row of the route table with what the gateway does with it.
type RouteInfo struct {
	Plane     string `json:"plane"`
	Method    string `json:"method"`
	Pattern   string `json:"pattern"`
	Operation string `json:"operation"`
	// Sees is what the guard is shown; "" for nothing.
	Sees string `json:"guard_sees"`
	// Enforced is what policy edits in the request.
	Enforced string `json:"enforced"`
	// Filtered is what happens to the response.
	Filtered string `json:"filtered"`
	Default  string `json:"default"`
	Why      string `json:"why,omitempty"`
}
