package caddymodule

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/e2bguard/e2bguard/internal/policy"
)

// options is the one table of what the directive takes, in the order of the
// reference.
func options(h *Handler) []option {
	return []option{
		{name: "upstream", syntax: "{ … }", doc: "The E2B that calls are forwarded to.", set: h.parseUpstream, block: upstreamOptions(new(Upstream))},
		{name: "client", syntax: "NAME KEY [{ … }]", many: true, set: h.parseClient, fallback: "none: clients bring their own E2B key",
			doc: "A key the gateway gives out (`e2bguard key new`), or `sha256:` and its hash (`e2bguard key hash`); it needs `upstream api_key`. Once per client. Its block takes what `client_limits` does, for this client."},
		{name: "share", syntax: "CLIENT CLIENT…", many: true, set: h.parseShare, fallback: "none: each client acts on its own sandboxes",
			doc: "These clients act on one another's sandboxes. Once per group."},
		{name: "client_limits", syntax: "{ … }", set: h.parseClientLimits, doc: "Bounds for what each client may use.", block: clientLimitOptions(new(ClientLimits))},
		{name: "seal_key", syntax: "KEY…", set: h.parseSealKey, fallback: "one that is made and kept in Caddy's storage",
			doc: "Seals what clients get in place of E2B's access tokens: 32 random bytes or more, `openssl rand -hex 32`. The first seals, all open; the same on every replica."},
		{name: "signed_uploads", syntax: "path | any", set: h.parseSignedUploads, fallback: uploadsWithPath,
			doc: "Which signed upload URLs of clients with keys are taken: those that name a path, or any. One without a path writes any file."},
		{name: "public_domain", syntax: "DOMAIN", set: checked(&h.PublicDomain, "gw.example.com", checkDomain), fallback: "none: the URL form only",
			doc: "`api.DOMAIN` and `PORT-ID.DOMAIN` point at the gateway (wildcard DNS and certificate)."},
		{name: "guard", syntax: "static | superagent [{ … }]", many: true, set: h.parseGuard, fallback: "static",
			doc: "Guards in the order they are asked; a block ends the chain, the last verdict stands."},
		{name: "profile", syntax: "strict | balanced | permissive", set: h.parseProfile, fallback: profileBalanced,
			doc: "How much doubt blocks. `strict` also lowers the limits that are not given."},
		{name: "mode", syntax: "enforce | shadow", set: h.parseMode, fallback: modeEnforce,
			doc: "`shadow`: guards are asked and what they say is recorded, and nothing is blocked for it. Limits and policy hold all the same."},
		{name: "on_error", syntax: "block | allow", set: h.parseOnError, fallback: onErrorBlock,
			doc: "What happens to a call that no guard could judge. A guard that refuses its key blocks either way."},
		{name: "limits", syntax: "{ … }", set: h.parseLimits, doc: "Bounds for sandboxes and what runs in them.", block: limitOptions(new(Limits))},
		{name: "network", syntax: "blocked | allow WHAT… | allow internet", set: h.parseNetwork, fallback: "blocked",
			doc: "What sandboxes may reach: hosts, `*.hosts`, addresses, CIDR blocks, the preset `packages`; `internet` leaves it to the client."},
		{name: "verify", syntax: "on | off", set: h.parseVerify, fallback: on,
			doc: "Read each new sandbox back from E2B, and kill it if its network or lifetime is not what was asked for, or is not reported."},
		{name: "redact", syntax: "known | all | off", set: h.parseRedact, fallback: redactKnown,
			doc: "What is hidden in output, text files and answers: the secrets the gateway knows (keys, tokens, those in environments clients give), also what has a well-known secret's format, or nothing. Logs and the audit are masked in any case."},
		{name: "templates", syntax: "ID…", set: h.parseTemplates, fallback: "whatever the key may use", doc: "The templates that may be started."},
		{name: "builds", syntax: "{ … }", set: h.parseBuilds, doc: "What clients may build templates from; without it they build none.", block: buildOptions(new(Builds))},
		{name: "ports", syntax: "PORT… | FIRST-LAST…", set: h.parsePorts, fallback: "none",
			doc: "Sandbox ports that may be reached besides E2B's own. 8888 (Jupyter without a token) only if named alone."},
		{name: "pty", syntax: "guard | deny", set: h.parsePTY, fallback: ptyGuard,
			doc: "Terminals: what is typed is judged line by line, at Enter; or none may be opened."},
		{name: "persistence", syntax: "deny | allow [pause] [snapshot] [fork]", set: h.parsePersistence, fallback: "deny",
			doc: "Which ways of outliving a run are open."},
		{name: "volumes", syntax: "guard | deny", set: h.parseVolumes, fallback: "guard; deny without client keys and `public_domain`",
			doc: "Volumes may be made, filled and mounted, and what is written to them is judged; or none. Without `public_domain`, clients must set E2B_VOLUME_API_URL to the gateway."},
		{name: "tool_results", syntax: "record | guard", set: h.parseToolResults, fallback: resultsRecorded,
			doc: "What MCP tools answer: recorded with size and digest, or judged before the client gets it."},
		{name: "buffer", syntax: "{ … }", set: h.parseBuffer, doc: "Bounds for what is read from clients.", block: bufferOptions(new(Buffer))},
		{name: "run", syntax: "[{ … }]", set: h.parseRun, fallback: off, block: runOptions(new(Run)),
			doc: "`POST /run` runs a program of a client with a key in a sandbox of its own, which is destroyed whatever comes of it."},
		{name: "guard_api", syntax: "", set: present(&h.GuardAPI), fallback: off,
			doc: "`POST /api/guard` answers clients with a key that ask for a verdict and run nothing, as the Superagent Guard API does."},
		{name: "reaper", syntax: "{ … }", set: h.parseReaper, doc: "Ends sandboxes that nobody else ends: with client keys those that outlived their lifetime, after a crash for example; not without.", block: reaperOptions(new(Reaper))},
		{name: "audit", syntax: "PATH [{ … }]", set: h.parseAudit, fallback: "none: lines of Caddy's log, best effort", block: auditOptions(new(Audit)),
			doc: "A record of each guarded call, on disk before the call is forwarded, in a chain that shows tampering. One file for each process. Placeholders allowed."},
	}
}

func upstreamOptions(u *Upstream) []option {
	return []option{
		{name: "api_url", syntax: "URL", set: checked(&u.APIURL, defaultAPIURL, checkURL("api_url", defaultAPIURL)), fallback: defaultAPIURL, doc: "The control plane. Placeholders allowed."},
		{name: "sandbox_url", syntax: "URL", set: checked(&u.SandboxURL, defaultSandboxURL, checkURL("sandbox_url", defaultSandboxURL)), fallback: defaultSandboxURL,
			doc: "The data plane, reached with E2B's routing headers. Placeholders allowed."},
		{name: "api_key", syntax: "KEY", set: checked(&u.APIKey, "{env.E2B_API_KEY}", checkSecret("api_key")), fallback: "none: clients bring their own E2B key",
			doc: "E2B's key, in vault mode the only place it lives. Write `{env.E2B_API_KEY}` or `{file./run/secrets/e2b}`."},
		{name: "domains", syntax: "DOMAIN…", set: u.parseDomains, fallback: "none",
			doc: "Domains of clusters of the account's own (BYOC): their sandboxes are reached at `https://PORT-ID.DOMAIN`. Those of other domains are refused, unless `sandbox_url` is given."},
		{name: "legacy", syntax: "", set: present(&u.Legacy), fallback: "not", doc: "A self-hosted API too old to report a sandbox's network and lifetime: what it does not report is believed."},
	}
}

func (h *Handler) parseUpstream(d *caddyfile.Dispenser) error {
	h.Upstream = new(Upstream)
	if err := noArgs(d); err != nil {
		return err
	}
	return parseBlock(d, "upstream", upstreamOptions(h.Upstream))
}

func (u *Upstream) parseDomains(d *caddyfile.Dispenser) (err error) {
	if u.Domains, err = some(d, "sandboxes.example.com"); err != nil {
		return err
	}
	return at(d, checkDomains(u.Domains))
}

func (h *Handler) parseClient(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return d.Errf("client takes a name and a key, as in: client team-a {env.TEAM_A_KEY}")
	}
	if !clientName.MatchString(args[0]) {
		return d.Errf("client name %q: use up to 63 letters, digits, dots, dashes and underscores", args[0])
	}
	for _, c := range h.Clients {
		if c.Name == args[0] {
			return d.Errf("client %s is given twice; give each client one line", c.Name)
		}
	}
	if !strings.Contains(args[1], "{") {
		if err := checkSecret("key of client " + args[0])(args[1]); err != nil {
			return at(d, err)
		}
	}
	client := Client{Name: args[0], Key: args[1]}
	limits := new(ClientLimits)
	if err := parseBlock(d, "client "+args[0], clientLimitOptions(limits)); err != nil {
		return err
	}
	if *limits != (ClientLimits{}) {
		client.Limits = limits
	}
	h.Clients = append(h.Clients, client)
	return nil
}

func (h *Handler) parseShare(d *caddyfile.Dispenser) error {
	group, err := some(d, "team-a team-b")
	h.Share = append(h.Share, group)
	return err
}

func clientLimitOptions(l *ClientLimits) []option {
	return []option{
		{name: "sandboxes", syntax: "NUMBER | off", set: count(&l.Sandboxes, "20"), fallback: "off",
			doc: "Sandboxes of a client that run at once. Without client keys: of the whole E2B account."},
		{name: "creations", syntax: "NUMBER | off", set: count(&l.Creations, "60"), fallback: "off", doc: "Sandboxes a client may make in a minute, forks included."},
		{name: "guard_calls", syntax: "NUMBER | off", set: count(&l.GuardCalls, "6000"), fallback: "off", doc: "Pieces of code a client may have judged in a minute."},
	}
}

func (h *Handler) parseClientLimits(d *caddyfile.Dispenser) error {
	h.ClientLimits = new(ClientLimits)
	if err := noArgs(d); err != nil {
		return err
	}
	return parseBlock(d, "client_limits", clientLimitOptions(h.ClientLimits))
}

func (h *Handler) parseGuard(d *caddyfile.Dispenser) error {
	if !d.NextArg() {
		return d.Errf("guard needs a name, as in: guard static")
	}
	name := d.Val()
	if name == "chat" {
		return d.Errf("guard chat is not built yet, and nothing is accepted and ignored: use `guard static`, `guard superagent`, or both")
	}
	id := guardNamespace + "." + name
	if _, err := caddy.GetModule(id); err != nil {
		return d.Errf("unknown guard %s; the guards in this binary are %s", name, strings.Join(guardNames(), ", "))
	}
	var unmarshaled struct {
		Guard string `json:"guard"`
	}
	for _, raw := range h.GuardsRaw {
		if json.Unmarshal(raw, &unmarshaled) == nil && unmarshaled.Guard == name && name == "static" {
			return d.Errf("guard static is given twice; it would give the same answer twice, keep one")
		}
	}
	mod, err := caddyfile.UnmarshalModule(d, id)
	if err != nil {
		return err
	}
	h.GuardsRaw = append(h.GuardsRaw, caddyconfig.JSONModuleObject(mod, "guard", name, nil))
	return nil
}

func (h *Handler) parseProfile(d *caddyfile.Dispenser) (err error) {
	h.Profile, err = word(d, profileStrict, profileBalanced, profilePermissive)
	return err
}

func (h *Handler) parseMode(d *caddyfile.Dispenser) (err error) {
	h.Mode, err = word(d, modeEnforce, modeShadow)
	return err
}

func (h *Handler) parseRedact(d *caddyfile.Dispenser) (err error) {
	h.Redact, err = word(d, redactKnown, redactAll, off)
	return err
}

func (h *Handler) parseOnError(d *caddyfile.Dispenser) (err error) {
	h.OnError, err = word(d, onErrorBlock, onErrorAllow)
	return err
}

func limitOptions(l *Limits) []option {
	return []option{
		{name: "sandbox_lifetime", syntax: "DEFAULT [MAX]", set: l.parseLifetime, fallback: "5m 1h",
			doc: "A sandbox's lifetime where the client names none, and the longest it can ask for."},
		{name: "wall_clock", syntax: "DURATION | off", set: duration(&l.WallClock), fallback: "5m (strict: 20s)", doc: "A command that names a timeout: that, at most this."},
		{name: "background_wall_clock", syntax: "DURATION | off", set: duration(&l.BackgroundWallClock), fallback: "1h (strict: 20s)", doc: "A command that names no timeout."},
		{name: "cpu_seconds", syntax: "SECONDS | off", set: l.parseCPU, fallback: "300 (strict: 5)", doc: "CPU time of one command; not for terminals and background commands."},
		{name: "memory", syntax: "SIZE | off", set: size(&l.Memory, "1GiB"), fallback: "1GiB (strict: 512MiB)", doc: "Data segment of each process of a command."},
		{name: "output", syntax: "SIZE | off", set: size(&l.Output, "10MiB"), fallback: "10MiB", doc: "Bytes of stdout and stderr that one call may stream."},
	}
}

func (h *Handler) parseLimits(d *caddyfile.Dispenser) error {
	h.Limits = new(Limits)
	if err := noArgs(d); err != nil {
		return err
	}
	if err := parseBlock(d, "limits", limitOptions(h.Limits)); err != nil {
		return err
	}
	_, err := h.limits()
	return at(d, err)
}

func (l *Limits) parseLifetime(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) < 1 || len(args) > 2 {
		return d.Errf("sandbox_lifetime takes a default and, if wanted, a maximum, as in: sandbox_lifetime 5m 1h")
	}
	var given [2]*caddy.Duration
	for i, a := range args {
		v, err := caddy.ParseDuration(a)
		if err != nil || v <= 0 {
			return d.Errf("sandbox_lifetime %s: write durations longer than zero, as in: sandbox_lifetime 5m 1h", a)
		}
		given[i] = (*caddy.Duration)(&v)
	}
	l.SandboxLifetime, l.SandboxLifetimeMax = given[0], given[1]
	return nil
}

func (l *Limits) parseCPU(d *caddyfile.Dispenser) error {
	v, err := one(d, "300")
	if err != nil {
		return err
	}
	n := 0
	if v != "off" {
		if n, err = strconv.Atoi(v); err != nil || n <= 0 {
			return d.Errf("cpu_seconds %s: write a whole number of seconds without a unit, or off, as in: cpu_seconds 300", v)
		}
	}
	l.CPUSeconds = &n
	return nil
}

func (h *Handler) parseNetwork(d *caddyfile.Dispenser) error {
	words, err := some(d, "blocked")
	if err != nil {
		return err
	}
	switch words[0] {
	case "blocked":
		if len(words) > 1 {
			return d.Errf("network blocked takes nothing more; to open hosts write: network allow %s", strings.Join(words[1:], " "))
		}
		h.Network = new(Network)
		return nil
	case "allow":
		if len(words) == 1 {
			return d.Errf("network allow needs at least one host, address or preset, as in: network allow packages api.example.com")
		}
		if _, err := policy.ParseNetwork(words); err != nil {
			return at(d, err)
		}
		h.Network = &Network{Allow: words[1:]}
		return nil
	default:
		return d.Errf("network %s: write `network blocked`, or `network allow` and what may be reached", words[0])
	}
}

func (h *Handler) parseVerify(d *caddyfile.Dispenser) (err error) {
	h.Verify, err = word(d, on, off)
	return err
}

func (h *Handler) parseToolResults(d *caddyfile.Dispenser) (err error) {
	h.ToolResults, err = word(d, resultsRecorded, resultsGuarded)
	return err
}

func (h *Handler) parsePTY(d *caddyfile.Dispenser) (err error) {
	h.PTY, err = word(d, ptyGuard, ptyDeny)
	return err
}

func (h *Handler) parseVolumes(d *caddyfile.Dispenser) (err error) {
	h.Volumes, err = word(d, volumesGuard, volumesDeny)
	return err
}

func (h *Handler) parseTemplates(d *caddyfile.Dispenser) (err error) {
	h.Templates, err = some(d, "base code-interpreter-v1")
	return err
}

func (h *Handler) parsePorts(d *caddyfile.Dispenser) (err error) {
	if h.Ports, err = some(d, "3000 8000-8100"); err != nil {
		return err
	}
	_, err = policy.ParsePorts(h.Ports)
	return at(d, err)
}

func (h *Handler) parsePersistence(d *caddyfile.Dispenser) error {
	words, err := some(d, "deny")
	if err != nil {
		return err
	}
	switch words[0] {
	case "deny":
		if len(words) > 1 {
			return d.Errf("persistence deny takes nothing more; to open some write: persistence allow %s", strings.Join(words[1:], " "))
		}
		h.Persistence = new(Persistence)
		return nil
	case "allow":
		if len(words) == 1 {
			return d.Errf("persistence allow needs at least one of pause, snapshot and fork")
		}
		if _, err := policy.ParsePersistence(words); err != nil {
			return at(d, err)
		}
		h.Persistence = &Persistence{Allow: words[1:]}
		return nil
	default:
		return d.Errf("persistence %s: write `persistence deny`, or `persistence allow` and any of pause, snapshot and fork", words[0])
	}
}

func bufferOptions(b *Buffer) []option {
	return []option{
		{name: "temp_dir", syntax: "FOLDER", set: text(&b.TempDir, "/var/tmp/e2bguard"), fallback: "the system's", doc: "Where bodies larger than `spill` go; must be writable at start."},
		{name: "spill", syntax: "SIZE", set: byteSize(&b.Spill, "1MiB"), fallback: "1MiB", doc: "The size above which a body goes to disk."},
		{name: "ceiling", syntax: "SIZE", set: byteSize(&b.Ceiling, "2GiB"), fallback: "2GiB", doc: "All bytes buffered at once; calls beyond it are asked to retry."},
		{name: "max_message", syntax: "SIZE", set: byteSize(&b.MaxMessage, "8MiB"), fallback: "8MiB", doc: "The largest request that is decoded whole."},
		{name: "max_upload", syntax: "SIZE", set: byteSize(&b.MaxUpload, "1GiB"), fallback: "1GiB", doc: "The largest file that can be uploaded."},
		{name: "read_timeout", syntax: "DURATION", set: b.parseReadTimeout, fallback: "30s", doc: "How long a client may go without sending a byte of a body."},
	}
}

func (h *Handler) parseBuffer(d *caddyfile.Dispenser) error {
	h.Buffer = new(Buffer)
	if err := noArgs(d); err != nil {
		return err
	}
	return parseBlock(d, "buffer", bufferOptions(h.Buffer))
}

func (b *Buffer) parseReadTimeout(d *caddyfile.Dispenser) error {
	var given *caddy.Duration
	if err := positiveDuration(&given)(d); err != nil {
		return err
	}
	b.ReadTimeout = *given
	return nil
}

// duration reads a duration or "off".
func duration(to **caddy.Duration) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		v, err := one(d, "5m")
		if err != nil {
			return err
		}
		if v == "off" {
			*to = new(caddy.Duration)
			return nil
		}
		return parseDuration(d, name, v, " or off", to)
	}
}

// positiveDuration reads a duration.
func positiveDuration(to **caddy.Duration) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		v, err := one(d, "30s")
		if err != nil {
			return err
		}
		return parseDuration(d, name, v, "", to)
	}
}

func parseDuration(d *caddyfile.Dispenser, name, v, or string, to **caddy.Duration) error {
	parsed, err := caddy.ParseDuration(v)
	if err != nil || parsed <= 0 {
		return d.Errf("%s %s: write a duration longer than zero%s, as in: %s %s", name, v, or, name, 5*time.Minute)
	}
	*to = (*caddy.Duration)(&parsed)
	return nil
}

// present sets a field that has no value.
func present(to *bool) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		if d.NextArg() {
			return d.Errf("%s takes no value; write it alone", name)
		}
		*to = true
		return nil
	}
}

// count reads a whole number or "off".
func count(to **int, example string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		v, err := one(d, example)
		if err != nil {
			return err
		}
		n := 0
		if v != "off" {
			if n, err = strconv.Atoi(v); err != nil || n <= 0 {
				return d.Errf("%s %s: write a whole number larger than zero, or off, as in: %s %s", name, v, name, example)
			}
		}
		*to = &n
		return nil
	}
}

// size reads a size in bytes or "off".
func size(to **int64, example string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		v, err := one(d, example)
		if err != nil {
			return err
		}
		*to = new(int64)
		if v == "off" {
			return nil
		}
		return parseSize(d, name, v, " or off", example, *to)
	}
}

// byteSize reads a size in bytes.
func byteSize(to *int64, example string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		v, err := one(d, example)
		if err != nil {
			return err
		}
		return parseSize(d, name, v, "", example, to)
	}
}

func parseSize(d *caddyfile.Dispenser, name, v, or, example string, to *int64) error {
	n, err := humanize.ParseBytes(v)
	if err != nil || n == 0 || n > 1<<62 {
		return d.Errf("%s %s: write a size larger than zero%s, as in: %s %s", name, v, or, name, example)
	}
	*to = int64(n)
	return nil
}
