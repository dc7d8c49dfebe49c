package control

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// SandboxInfo is what an answer of E2B says of one sandbox. Fields that the
// answer lacks are zero.
type SandboxInfo struct {
	ID         string
	TemplateID string
	// Domain overrides the client's own domain; "" for the default.
	Domain string
	// EnvdToken opens envd, TrafficToken the other ports. They are credentials:
	// wrap them before they come near a log.
	EnvdToken    string
	TrafficToken string
	// StartedAt is when the sandbox began, EndAt when it ends.
	StartedAt, EndAt time.Time
	// Stamp is what a gateway wrote into it; zero if none did.
	Stamp
	// Paused says that it sleeps.
	Paused bool
	// PausesAtEnd says that E2B puts it to sleep at the end of its lifetime, where it
	// ends others.
	PausesAtEnd bool
	// Volumes are the names of the volumes that are mounted, as E2B knows them, if
	// VolumesKnown; some answers do not say.
	Volumes      []string
	VolumesKnown bool
}

// Answer is what E2B says of sandboxes: of one, or of several.
type Answer struct {
	value     any
	sandboxes []*strictjson.Object
	infos     []SandboxInfo
}

// Sandboxes is what the answer says, in its order.
func (a *Answer) Sandboxes() []SandboxInfo { return a.infos }

// SetDomain makes every sandbox of the answer reachable under another domain:
// SDKs build a sandbox's host names from it.
func (a *Answer) SetDomain(domain string) {
	for _, o := range a.sandboxes {
		o.Set("domain", domain)
	}
}

// DropDomain takes the domain out of every sandbox of the answer, and reports
// whether there was one.
func (a *Answer) DropDomain() (dropped bool) {
	for _, o := range a.sandboxes {
		if value, _ := o.Get("domain"); value != nil {
			o.Set("domain", nil)
			dropped = true
		}
	}
	return dropped
}

// SetTokens replaces the access tokens of every sandbox by what choose returns
// for it; "" leaves the token out. What else looks like a credential is left out
// too: E2B would have to be newer than this code to send it.
func (a *Answer) SetTokens(choose func(SandboxInfo) (envd, traffic string)) {
	for i, o := range a.sandboxes {
		for _, name := range o.Keys() {
			if strings.HasSuffix(strings.ToLower(name), "token") {
				o.Delete(name)
			}
		}
		envd, traffic := choose(a.infos[i])
		if envd != "" {
			o.Set("envdAccessToken", envd)
		}
		if traffic != "" {
			o.Set("trafficAccessToken", traffic)
		}
	}
}

// Keep leaves only those sandboxes of a list for which it is told to.
func (a *Answer) Keep(keep func(SandboxInfo) bool) {
	if _, isList := a.value.([]any); !isList {
		return
	}
	kept, sandboxes, infos := []any{}, a.sandboxes[:0:0], a.infos[:0:0]
	for i, info := range a.infos {
		if keep(info) {
			kept, sandboxes, infos = append(kept, a.sandboxes[i]), append(sandboxes, a.sandboxes[i]), append(infos, info)
		}
	}
	a.value, a.sandboxes, a.infos = kept, sandboxes, infos
}

// HideStamp takes the gateway's stamp out of the metadata of every sandbox.
func (a *Answer) HideStamp() {
	for _, o := range a.sandboxes {
		metadata, _ := o.Get("metadata")
		if m, ok := metadata.(*strictjson.Object); ok {
			m.Delete(ownerKey)
			m.Delete(gatewayKey)
		}
	}
}

// Encode returns the answer as JSON.
func (a *Answer) Encode() []byte { return strictjson.Encode(a.value) }

// DecodeAnswer reads the answers of create, connect and resume (one sandbox),
// info (one), list (an array) and fork (an array of results, of which failed
// ones hold no sandbox).
func DecodeAnswer(body []byte) (*Answer, error) {
	value, err := strictjson.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("reading E2B's answer: %w", err)
	}
	a := &Answer{value: value}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	for i, e := range list {
		o, ok := e.(*strictjson.Object)
		if !ok {
			return nil, fmt.Errorf("reading E2B's answer: entry %d is %s, not an object", i, strictjson.TypeName(e))
		}
		if inner, ok := o.Get("sandbox"); ok && inner != nil {
			if o, ok = inner.(*strictjson.Object); !ok {
				return nil, fmt.Errorf("reading E2B's answer: sandbox %d is %s, not an object", i, strictjson.TypeName(inner))
			}
		} else if failure, ok := o.Get("error"); ok && failure != nil {
			continue
		}
		info, err := readSandbox(o)
		if err != nil {
			return nil, fmt.Errorf("reading E2B's answer: entry %d: %w", i, err)
		}
		a.sandboxes = append(a.sandboxes, o)
		a.infos = append(a.infos, info)
	}
	return a, nil
}

func readSandbox(o *strictjson.Object) (SandboxInfo, error) {
	var info SandboxInfo
	for name, to := range map[string]*string{
		"sandboxID": &info.ID, "templateID": &info.TemplateID, "domain": &info.Domain,
		"envdAccessToken": &info.EnvdToken, "trafficAccessToken": &info.TrafficToken,
	} {
		value, _ := o.Get(name)
		if value == nil {
			continue
		}
		s, ok := value.(string)
		if !ok {
			return SandboxInfo{}, fmt.Errorf("%s is %s, not a string", name, strictjson.TypeName(value))
		}
		*to = s
	}
	if info.ID == "" {
		return SandboxInfo{}, errors.New("there is no sandboxID")
	}
	for name, to := range map[string]*time.Time{"startedAt": &info.StartedAt, "endAt": &info.EndAt} {
		if text, ok := getText(o, name); ok {
			t, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return SandboxInfo{}, fmt.Errorf("reading %s: %w", name, err)
			}
			*to = t
		}
	}
	info.Stamp = readStamp(o)
	state, _ := getText(o, "state")
	info.Paused = state == "paused"
	value, _ := o.Get("lifecycle")
	if lifecycle, ok := value.(*strictjson.Object); ok {
		atEnd, _ := getText(lifecycle, "onTimeout")
		info.PausesAtEnd = atEnd == "pause"
	}
	mounts, said := answeredMounts(o)
	info.VolumesKnown = said
	for _, mount := range mounts {
		name, _ := getText(mount, "name")
		info.Volumes = append(info.Volumes, name)
	}
	return info, nil
}
