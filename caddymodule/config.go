package caddymodule

import (
	"errors"
	"fmt"
	"net/netip"
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
	modeShadow  = "shadow"

	resultsRecorded = "record"
	resultsGuarded  = "guard"

	redactKnown = string(gateway.RedactKnown)
	redactAll   = string(gateway.RedactAll)

	on  = "on"
	off = "off"

	ptyGuard = "guard"
	ptyDeny  = "deny"

	volumesGuard = "guard"
	volumesDeny  = "deny"

	onErrorBlock = "block"
	onErrorAllow = "allow"
)

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
	cfg.Share = h.Share
	note(h.checkShare())
	note(oneOf("signed_uploads", h.SignedUploads, uploadsWithPath, uploadsAnywhere))
	cfg.UnboundUploads = h.SignedUploads == uploadsAnywhere
	cfg.PublicDomain, err = publicDomain(repl, h.PublicDomain)
	note(err)
	note(oneOf("tool_results", h.ToolResults, resultsRecorded, resultsGuarded))
	cfg.JudgeToolResults = h.ToolResults == resultsGuarded
	note(oneOf("verify", h.Verify, on, off))
	cfg.Verify = h.Verify != off
	note(oneOf("redact", h.Redact, redactKnown, redactAll, off))
	cfg.Redact = gateway.RedactMode(h.Redact)
	note(oneOf("pty", h.PTY, ptyGuard, ptyDeny))
	cfg.DenyPTY = h.PTY == ptyDeny
	note(oneOf("profile", h.Profile, profileStrict, profileBalanced, profilePermissive))
	note(oneOf("mode", h.Mode, modeEnforce, modeShadow))
	note(oneOf("on_error", h.OnError, onErrorBlock, onErrorAllow))
	cfg.Mode = guard.Mode{AllowOnError: h.OnError == onErrorAllow, Shadow: h.Mode == modeShadow}
	cfg.Policy, err = h.policy()
	note(err)
	note(oneOf("volumes", h.Volumes, volumesGuard, volumesDeny))
	cfg.Policy.Volumes.Open = h.Volumes == volumesGuard || h.Volumes == "" && (len(cfg.Clients) > 0 || cfg.PublicDomain != "")
	cfg.GuardAPI = h.GuardAPI
	cfg.Run, err = h.Run.config(cfg.Policy)
	note(err)
	cfg.Body, err = h.Buffer.config(repl)
	note(err)
	cfg.Reaper, err = h.Reaper.config(len(cfg.Clients) > 0)
	note(err)
	cfg.Audit, h.auditPlace, h.auditOptions, err = h.Audit.config(repl)
	note(err)
	// Last: a configuration with a fault must not leave a generated key behind.
	cfg.Seal, err = h.sealer(ctx, repl, len(problems) == 0)
	note(err)
	return cfg, errors.Join(problems...)
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
	p := policy.Policy{Limits: limits, Templates: policy.Templates{Allow: h.Templates}, Builds: h.Builds.policy()}
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
	return p, errors.Join(err1, err2, err3, err4, h.Builds.validate())
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
