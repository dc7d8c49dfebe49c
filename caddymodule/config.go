package caddymodule

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/body"
	"github.com/e2bguard/e2bguard/internal/gateway"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// The values of the options that are a choice of words.
const (
	profileStrict     = "strict"
	profileBalanced   = "balanced"
	profilePermissive = "permissive"

	modeEnforce = "enforce"

	on  = "on"
	off = "off"

	onErrorBlock = "block"
	onErrorAllow = "allow"
)

// E2B's hosted service.
const (
	defaultAPIURL     = "https://api.e2b.app"
	defaultSandboxURL = "https://sandbox.e2b.app"
)

// Upstream is the E2B that calls are forwarded to.
type Upstream struct {
	// APIURL is the control plane. Default: https://api.e2b.app. Placeholders
	// are resolved when the configuration is loaded.
	APIURL string `json:"api_url,omitempty"`
	// SandboxURL is the data plane, reached with E2B's routing headers. Default:
	// https://sandbox.e2b.app.
	SandboxURL string `json:"sandbox_url,omitempty"`
	// APIKey is E2B's key, best written as {env.E2B_API_KEY} or
	// {file./run/secrets/e2b}, which keeps it out of the configuration. It needs
	// at least one client.
	APIKey string `json:"api_key,omitempty"`
	// Domains are those of clusters of the E2B account's own. Sandboxes for which
	// E2B names one of them, or a subdomain, are reached at
	// https://<port>-<id>.<domain>. Those of any other domain are refused, unless
	// sandbox_url is given: then they are looked for there.
	Domains []string `json:"domains,omitempty"`
	// Legacy marks a self-hosted API that is too old to report a sandbox's network
	// and lifetime: what it does not report is believed.
	Legacy bool `json:"legacy,omitempty"`
}

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

// Limits bounds sandboxes and what runs in them. A limit that is not given has
// its default; 0 turns it off, where that is possible.
type Limits struct {
	// SandboxLifetime is the lifetime of a sandbox whose client names none.
	// Default: 5m. Cannot be off.
	SandboxLifetime *caddy.Duration `json:"sandbox_lifetime,omitempty"`
	// SandboxLifetimeMax is the longest lifetime a client can ask for. Default:
	// 1h. Cannot be off.
	SandboxLifetimeMax *caddy.Duration `json:"sandbox_lifetime_max,omitempty"`
	// WallClock is the longest a command may run that names a timeout. Default:
	// 5m; 20s in the profile strict.
	WallClock *caddy.Duration `json:"wall_clock,omitempty"`
	// BackgroundWallClock is the longest a command may run that names none.
	// Default: 1h; 20s in the profile strict.
	BackgroundWallClock *caddy.Duration `json:"background_wall_clock,omitempty"`
	// CPUSeconds is the CPU time of one command, not of terminals and background
	// commands. Default: 300; 5 in the profile strict.
	CPUSeconds *int `json:"cpu_seconds,omitempty"`
	// Memory is the data segment of each process, in bytes. Default: 1 GiB; 512
	// MiB in the profile strict.
	Memory *int64 `json:"memory,omitempty"`
	// Output is how many bytes of stdout and stderr one call may stream.
	// Default: 10 MiB.
	Output *int64 `json:"output,omitempty"`
}

// Network is what sandboxes may reach.
type Network struct {
	// Allow lists hosts ("api.example.com", "*.example.com"), addresses, CIDR
	// blocks, the preset "packages" (the usual package hosts), or "internet" alone,
	// which leaves the network to the client. Private ranges
	// and metadata addresses are refused. Empty: nothing may be reached.
	Allow []string `json:"allow,omitempty"`
}

// Persistence is which ways of outliving a run are open.
type Persistence struct {
	// Allow lists any of "pause", "snapshot" and "fork".
	Allow []string `json:"allow,omitempty"`
}

// Buffer bounds what is read from clients.
type Buffer struct {
	// TempDir is the folder for bodies larger than Spill. It must be writable.
	// Default: the system's.
	TempDir string `json:"temp_dir,omitempty"`
	// Spill is the size in bytes above which a body goes to disk. Default: 1 MiB.
	Spill int64 `json:"spill,omitempty"`
	// Ceiling bounds all bytes buffered at once, in memory and on disk; calls
	// beyond it are asked to come back later. Default: 2 GiB.
	Ceiling int64 `json:"ceiling,omitempty"`
	// MaxMessage bounds a request that is decoded whole. Default: 8 MiB.
	MaxMessage int64 `json:"max_message,omitempty"`
	// MaxUpload bounds an uploaded file. Default: 1 GiB.
	MaxUpload int64 `json:"max_upload,omitempty"`
	// ReadTimeout is how long a client may go without sending a byte of a body.
	// Default: 30s.
	ReadTimeout caddy.Duration `json:"read_timeout,omitempty"`
}

var (
	e2bKey     = regexp.MustCompile(`^e2b_[0-9a-f]+$`)
	clientName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	domainName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// config is the gateway's configuration without guard and state. It reports
// every problem at once.
func (h *Handler) config(ctx caddy.Context) (gateway.Config, error) {
	repl := caddy.NewReplacer()
	var problems []error
	note := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	cfg := gateway.Config{Logger: ctx.Logger()}

	var err error
	cfg.Upstream, err = h.upstream(repl)
	note(err)
	cfg.ClientLimits = h.ClientLimits.over(policy.ClientLimits{})
	note(wrap("client_limits", cfg.ClientLimits.Validate()))
	cfg.Clients, err = h.clients(repl, cfg.Upstream.APIKey)
	note(err)
	note(oneOf("signed_uploads", h.SignedUploads, uploadsWithPath, uploadsAnywhere))
	cfg.UnboundUploads = h.SignedUploads == uploadsAnywhere
	cfg.PublicDomain, err = publicDomain(repl, h.PublicDomain)
	note(err)
	note(oneOf("verify", h.Verify, on, off))
	cfg.Verify = h.Verify != off
	note(oneOf("profile", h.Profile, profileStrict, profileBalanced, profilePermissive))
	note(oneOf("mode", h.Mode, modeEnforce))
	note(oneOf("on_error", h.OnError, onErrorBlock, onErrorAllow))
	cfg.Mode = guard.Mode{AllowOnError: h.OnError == onErrorAllow}
	cfg.Policy, err = h.policy()
	note(err)
	cfg.Body, err = h.Buffer.config(repl)
	note(err)
	// Last: a configuration with a fault must not leave a generated key behind.
	cfg.Seal, err = h.sealer(ctx, repl, len(problems) == 0)
	note(err)
	return cfg, errors.Join(problems...)
}

func (h *Handler) upstream(repl *caddy.Replacer) (gateway.Upstream, error) {
	u := h.Upstream
	if u == nil {
		u = new(Upstream)
	}
	apiURL, err1 := absoluteURL(repl, "upstream api_url", u.APIURL, defaultAPIURL)
	sandboxURL, err2 := absoluteURL(repl, "upstream sandbox_url", u.SandboxURL, defaultSandboxURL)
	key, err3 := secret(repl, "upstream api_key", u.APIKey)
	return gateway.Upstream{APIURL: apiURL, SandboxURL: sandboxURL, APIKey: key, Legacy: u.Legacy,
		Domains: u.Domains, AnyDomain: u.SandboxURL != ""}, errors.Join(err1, err2, err3, checkDomains(u.Domains), h.checkVault())
}

func checkDomains(domains []string) error {
	var problems []error
	for _, d := range domains {
		if !gateway.ValidDomain(d) {
			problems = append(problems, fmt.Errorf("upstream domains %s: write bare domains in lower case, without scheme, port, path or wildcard, as in: domains sandboxes.example.com", d))
		}
	}
	return errors.Join(problems...)
}

// checkVault refuses half a vault: a key of E2B's that anybody may use, or
// client keys that stand for nothing.
func (h *Handler) checkVault() error {
	vault := h.Upstream != nil && h.Upstream.APIKey != ""
	switch {
	case vault && len(h.Clients) == 0:
		return errors.New("upstream api_key without a client would let everybody who reaches this gateway use it: " +
			"add a line such as `client team-a {env.TEAM_A_KEY}`, or remove api_key so that clients bring their own E2B key")
	case !vault && len(h.Clients) > 0:
		return errors.New("a client key stands for E2B's own key: add `api_key {env.E2B_API_KEY}` to the upstream block, " +
			"or remove the client lines so that clients bring their own E2B key")
	}
	return nil
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

// wrap puts the option before its error.
func wrap(option string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", option, err)
}

// policy is what is enforced, with the defaults of the profile.
func (h *Handler) policy() (policy.Policy, error) {
	limits, err1 := h.limits()
	p := policy.Policy{Limits: limits, Templates: policy.Templates{Allow: h.Templates}}
	var err2, err3, err4 error
	if h.Network != nil && len(h.Network.Allow) > 0 {
		p.Network, err2 = policy.ParseNetwork(append([]string{"allow"}, h.Network.Allow...))
	}
	if len(h.Ports) > 0 {
		p.Ports, err3 = policy.ParsePorts(h.Ports)
	}
	if h.Persistence != nil && len(h.Persistence.Allow) > 0 {
		p.Persistence, err4 = policy.ParsePersistence(append([]string{"allow"}, h.Persistence.Allow...))
	}
	return p, errors.Join(err1, err2, err3, err4)
}

func (h *Handler) limits() (policy.Limits, error) {
	l := policy.Limits{
		LifetimeDefault: 5 * time.Minute, LifetimeMax: time.Hour,
		WallClock: 5 * time.Minute, BackgroundWallClock: time.Hour,
		CPUSeconds: 300, MemoryBytes: 1 << 30, OutputBytes: 10 << 20,
	}
	if h.profile() == profileStrict {
		l.WallClock, l.BackgroundWallClock = 20*time.Second, 20*time.Second
		l.CPUSeconds, l.MemoryBytes = 5, 512<<20
	}
	given := h.Limits
	if given == nil {
		return l, nil
	}
	set(&l.LifetimeDefault, (*time.Duration)(given.SandboxLifetime))
	set(&l.LifetimeMax, (*time.Duration)(given.SandboxLifetimeMax))
	set(&l.WallClock, (*time.Duration)(given.WallClock))
	set(&l.BackgroundWallClock, (*time.Duration)(given.BackgroundWallClock))
	set(&l.CPUSeconds, given.CPUSeconds)
	set(&l.MemoryBytes, given.Memory)
	set(&l.OutputBytes, given.Output)
	if given.SandboxLifetime != nil && given.SandboxLifetimeMax == nil {
		l.LifetimeMax = max(l.LifetimeMax, l.LifetimeDefault)
	}
	return l, checkLimits(l)
}

func set[T any](to *T, given *T) {
	if given != nil {
		*to = *given
	}
}

// The least a limit can usefully be. Below it no ordinary command starts.
const (
	minMemory = 16 << 20
	minOutput = 1 << 10
)

func checkLimits(l policy.Limits) error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("limits: "+format, args...)) }
	if l.LifetimeDefault < time.Second || l.LifetimeMax < time.Second {
		bad("sandbox_lifetime must be at least 1s; E2B counts in seconds, and a sandbox without an end cannot be had")
	}
	if l.LifetimeDefault > l.LifetimeMax {
		bad("sandbox_lifetime %s is longer than its maximum %s; write the default first, then the maximum: sandbox_lifetime 5m 1h", l.LifetimeDefault, l.LifetimeMax)
	}
	for _, w := range []struct {
		name string
		d    time.Duration
	}{{"wall_clock", l.WallClock}, {"background_wall_clock", l.BackgroundWallClock}} {
		if w.d != 0 && w.d < time.Second {
			bad("%s %s is too short for any command; write at least 1s, or off", w.name, w.d)
		}
	}
	if l.CPUSeconds < 0 {
		bad("cpu_seconds %d is negative; write a number of seconds, or off", l.CPUSeconds)
	}
	if l.MemoryBytes != 0 && l.MemoryBytes < minMemory {
		bad("memory %d bytes is too little for a shell to start; write at least 16MiB, or off", l.MemoryBytes)
	}
	if l.OutputBytes != 0 && l.OutputBytes < minOutput {
		bad("output %d bytes would cut almost every command; write at least 1KiB, or off", l.OutputBytes)
	}
	return errors.Join(problems...)
}

func (b *Buffer) config(repl *caddy.Replacer) (body.Config, error) {
	if b == nil {
		return body.Config{}, nil
	}
	dir, err := resolve(repl, "buffer temp_dir", b.TempDir)
	if info, statErr := os.Stat(dir); dir != "" && (statErr != nil || !info.IsDir()) {
		err = errors.Join(err, fmt.Errorf("buffer temp_dir %s is no folder that can be reached; create it, or leave the option out for the system's", dir))
	}
	for name, n := range map[string]int64{"spill": b.Spill, "ceiling": b.Ceiling, "max_message": b.MaxMessage, "max_upload": b.MaxUpload, "read_timeout": int64(b.ReadTimeout)} {
		if n < 0 {
			err = errors.Join(err, fmt.Errorf("buffer %s is negative; leave it out for the default", name))
		}
	}
	return body.Config{
		TempDir: dir, SpillBytes: b.Spill, CeilingBytes: b.Ceiling,
		MessageBytes: b.MaxMessage, UploadBytes: b.MaxUpload, ReadTimeout: time.Duration(b.ReadTimeout),
	}, err
}

// absoluteURL resolves placeholders and checks that the result can be an
// upstream.
func absoluteURL(repl *caddy.Replacer, option, given, fallback string) (*url.URL, error) {
	if given == "" {
		given = fallback
	}
	text, err := resolve(repl, option, given)
	if err != nil {
		return nil, err
	}
	if err := checkURL(option, fallback)(text); err != nil {
		return nil, err
	}
	return url.Parse(text)
}

// checkURL returns a check that a value can be an upstream.
func checkURL(option, example string) func(string) error {
	return func(text string) error {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return fmt.Errorf("%s is not a URL; write it as in: %s", option, example) // the parser's error would repeat a password
		case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
			return fmt.Errorf("%s %s: write the whole URL with http:// or https://, as in: %s", option, u.Redacted(), example)
		case u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "":
			return fmt.Errorf("%s %s: leave out user, query and fragment; a key goes into api_key", option, u.Redacted())
		}
		return nil
	}
}

// secret resolves placeholders and checks that the result can be a credential.
func secret(repl *caddy.Replacer, option, given string) (redact.Secret, error) {
	text, err := resolve(repl, option, given)
	if err == nil {
		err = checkSecret(option)(text)
	}
	if err != nil {
		return redact.Secret{}, err
	}
	return redact.NewSecret(text), nil
}

// checkSecret returns a check that a value can be sent in a header.
func checkSecret(option string) func(string) error {
	return func(text string) error {
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%s holds white space or characters that no HTTP header can carry", option)
		}
		return nil
	}
}

// resolve replaces placeholders; one that resolves to nothing is an error that
// names it. A trailing line break, which secret files often have, is not part
// of the value.
func resolve(repl *caddy.Replacer, option, given string) (string, error) {
	text, err := repl.ReplaceOrErr(given, true, true)
	if err != nil {
		return "", fmt.Errorf("%s: %w; is the variable set, and the file there and readable?", option, err)
	}
	text = strings.TrimRight(text, "\r\n")
	if given != "" && text == "" {
		return "", fmt.Errorf("%s: %s is empty", option, given)
	}
	return text, nil
}

func publicDomain(repl *caddy.Replacer, given string) (string, error) {
	if given == "" {
		return "", nil
	}
	domain, err := resolve(repl, "public_domain", given)
	if err != nil {
		return "", err
	}
	return strings.ToLower(domain), checkDomain(domain)
}

func checkDomain(domain string) error {
	if _, err := netip.ParseAddr(domain); err == nil || !domainName.MatchString(strings.ToLower(domain)) {
		return fmt.Errorf("public_domain %s: write a bare domain, without scheme, port, path or wildcard, as in: gw.example.com", domain)
	}
	return nil
}

func oneOf(option, given string, words ...string) error {
	if given == "" || slices.Contains(words, given) {
		return nil
	}
	return fmt.Errorf("%s %q: write %s", option, given, strings.Join(words, ", "))
}

// plainRemote says that a URL would send keys readable to another host.
func plainRemote(u *url.URL) bool {
	if u.Scheme != "http" || strings.EqualFold(u.Hostname(), "localhost") {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}
