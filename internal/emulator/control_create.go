package emulator

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// Lifetimes. Source: E2B's API; the second version's default is what its SDK
// documents.
const (
	defaultTimeoutV1 = 15 * time.Second
	defaultTimeoutV2 = 300 * time.Second
	maxTimeoutHours  = 24
)

// createBody is what create understands; everything else is kept unread.
type createBody struct {
	TemplateID      string            `json:"templateID"`
	Timeout         *int32            `json:"timeout"`
	Secure          *bool             `json:"secure"`
	EnvVars         map[string]string `json:"envVars"`
	Metadata        map[string]string `json:"metadata"`
	AutoPause       *bool             `json:"autoPause"`
	AutoPauseMemory *bool             `json:"autoPauseMemory"`
	AutoResume      *struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
	AllowInternetAccess *bool          `json:"allow_internet_access"`
	Network             *networkConfig `json:"network"`
	VolumeMounts        []volumeMount  `json:"volumeMounts"`
}

// networkConfig is a sandbox's network policy as the API knows it.
type networkConfig struct {
	AllowOut           []string        `json:"allowOut,omitempty"`
	DenyOut            []string        `json:"denyOut,omitempty"`
	AllowPublicTraffic *bool           `json:"allowPublicTraffic,omitempty"`
	MaskRequestHost    *string         `json:"maskRequestHost,omitempty"`
	EgressProxy        json.RawMessage `json:"egressProxy,omitempty"`
	Rules              json.RawMessage `json:"rules,omitempty"`
}

// echoed are the fields of a create body that info gives back unread.
var echoed = []string{"mcp", "iam"}

func (e *Emulator) createV1(_ *http.Request, body []byte) (int, any, error) {
	return e.create(body, false)
}

func (e *Emulator) createV2(_ *http.Request, body []byte) (int, any, error) {
	return e.create(body, true)
}

func (e *Emulator) create(body []byte, v2 bool) (int, any, error) {
	var b createBody
	var raw map[string]json.RawMessage
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	if err := parse(body, &raw); err != nil {
		return 0, nil, err
	}
	spec, err := e.spec(b, v2)
	if err != nil {
		return 0, nil, err
	}
	spec.raw = make(map[string]json.RawMessage)
	for _, name := range echoed {
		if v, ok := raw[name]; ok {
			spec.raw[name] = v
		}
	}
	sb, err := e.start(spec)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, sb.answer(), nil
}

// spec checks a create body as E2B does.
func (e *Emulator) spec(b createBody, v2 bool) (sandboxSpec, error) {
	spec := sandboxSpec{
		template: b.TemplateID, envVars: b.EnvVars, metadata: b.Metadata,
		secure: v2, timeout: defaultTimeoutV1, autoPauseMemory: true,
		allowInternet: b.AllowInternetAccess, network: b.Network,
	}
	if v2 {
		spec.timeout = defaultTimeoutV2
	}
	if b.Secure != nil && !v2 {
		spec.secure = *b.Secure
	}
	if b.TemplateID == "" {
		return spec, badRequest("Error when parsing request: property \"templateID\" is missing")
	}
	if from, ok, err := e.snapshotOf(b.TemplateID); err != nil {
		return spec, err
	} else if ok {
		spec.from = from
	}
	if err := timeout(b.Timeout, &spec.timeout); err != nil {
		return spec, err
	}
	if b.AutoPause != nil {
		spec.autoPause = *b.AutoPause
	}
	if b.AutoPauseMemory != nil {
		spec.autoPauseMemory = *b.AutoPauseMemory
	}
	if b.AutoResume != nil {
		spec.autoResume = b.AutoResume.Enabled
	}
	if !spec.autoPauseMemory && !spec.autoPause {
		return spec, badRequest("autoPauseMemory=false only applies when autoPause is true.")
	}
	if !spec.autoPauseMemory && spec.autoResume {
		return spec, badRequest("autoPauseMemory=false (filesystem-only auto-pause) cannot be combined with autoResume: " +
			"a filesystem-only snapshot cannot be auto-resumed by traffic and must be resumed explicitly.")
	}
	if n := b.Network; n != nil {
		if err := n.check(); err != nil {
			return spec, err
		}
		if n.AllowPublicTraffic != nil && !*n.AllowPublicTraffic {
			if !spec.secure {
				return spec, badRequest("You cannot create a sandbox without public access unless you enable secure envd access via 'secure' flag.")
			}
			spec.privateTraffic = true
		}
	}
	mounts, err := e.mounts(b.VolumeMounts)
	spec.mounts = mounts
	return spec, err
}

// timeout reads a lifetime in seconds; absent leaves the default.
func timeout(seconds *int32, d *time.Duration) error {
	if seconds == nil {
		return nil
	}
	if *seconds <= 0 {
		return badRequest("Timeout must be greater than 0")
	}
	if *d = time.Duration(*seconds) * time.Second; *d > maxTimeoutHours*time.Hour {
		return badRequest("Timeout cannot be greater than %d hours", maxTimeoutHours)
	}
	return nil
}

// check refuses what E2B refuses of a network policy.
func (n *networkConfig) check() error {
	for _, entry := range n.DenyOut {
		if !isAddress(entry) {
			return badRequest("invalid denied CIDR %s", entry)
		}
	}
	domains := slices.ContainsFunc(n.AllowOut, func(s string) bool { return !isAddress(s) })
	if domains && !slices.Contains(n.DenyOut, "0.0.0.0/0") {
		return badRequest("When specifying allowed domains in allow out, you must include '0.0.0.0/0' in deny out to block all other traffic.")
	}
	return nil
}

func isAddress(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}

// mounts finds the volumes to mount.
func (e *Emulator) mounts(wanted []volumeMount) ([]volumeMount, error) {
	out := []volumeMount{}
	used := make(map[string]bool)
	for i, m := range wanted {
		v, ok := e.volumes.byName(m.Name)
		switch {
		case !ok:
			return nil, badRequest("invalid mounts: [%d: volume '%s' not found]", i, m.Name)
		case m.Path == "":
			return nil, badRequest("invalid mounts: [%d: path cannot be empty]", i)
		case !path.IsAbs(m.Path):
			return nil, badRequest("invalid mounts: [%d: path must be absolute]", i)
		case path.Clean(m.Path) != m.Path || m.Path == "/":
			return nil, badRequest("invalid mounts: [%d: path must not contain any '.' or '..' components]", i)
		case used[m.Path]:
			return nil, badRequest("invalid mounts: [%d: path '%s' is already used]", i, m.Path)
		}
		used[m.Path] = true
		out = append(out, volumeMount{Name: m.Name, Path: m.Path, dir: v.dir})
	}
	return out, nil
}

// answer is the sandbox as create, connect, resume and fork give it.
func (sb *sandbox) answer() map[string]any {
	a := map[string]any{
		"clientID": clientID, "domain": nil, "envdVersion": envdVersion,
		"sandboxID": sb.id, "templateID": sb.template,
	}
	if sb.e.domain != "" {
		a["domain"] = sb.e.domain
	}
	if sb.accessToken != "" {
		a["envdAccessToken"] = sb.accessToken
	}
	if sb.trafficToken != "" {
		a["trafficAccessToken"] = sb.trafficToken
	}
	return a
}

// listed is the sandbox as lists give it.
func (sb *sandbox) listed() map[string]any {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	metadata := sb.metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	mounts := sb.mounts
	if mounts == nil {
		mounts = []volumeMount{}
	}
	return map[string]any{
		"alias": strings.SplitN(sb.template, ":", 2)[0], "clientID": clientID, "cpuCount": cpuCount, "diskSizeMB": diskMB,
		"endAt": sb.endAt, "envdVersion": envdVersion, "memoryMB": memoryMB, "metadata": metadata,
		"sandboxID": sb.id, "startedAt": sb.started, "state": sb.state, "templateID": sb.template, "volumeMounts": mounts,
	}
}

// detail is the sandbox as info gives it.
func (sb *sandbox) detail() map[string]any {
	d := sb.listed()
	sb.mu.Lock()
	defer sb.mu.Unlock()
	onTimeout := "kill"
	if sb.autoPause {
		onTimeout = "pause"
	}
	d["lifecycle"] = map[string]any{"autoResume": sb.autoResume, "onTimeout": onTimeout}
	d["allowInternetAccess"], d["network"] = sb.allowInternet, sb.network
	if sb.e.domain != "" {
		d["domain"] = sb.e.domain
	}
	if sb.accessToken != "" {
		d["envdAccessToken"] = sb.accessToken
	}
	for name, v := range sb.raw {
		d[name] = v
	}
	return d
}
