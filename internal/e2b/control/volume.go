package control

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// mountFields are the fields of SandboxVolumeMount in E2B's API.
var mountFields = []field{{"name", text}, {"path", text}}

// ValidVolumeName reports whether E2B takes a volume's name.
func ValidVolumeName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return name != ""
}

// mounts are the mounts of a sandbox that is about to be made.
func (m *message) mounts() []*strictjson.Object {
	value, _ := m.object.Get("volumeMounts")
	list, _ := value.([]any)
	mounts := make([]*strictjson.Object, len(list))
	for i, e := range list {
		mounts[i], _ = e.(*strictjson.Object) // checked by readMounts
	}
	return mounts
}

// readMounts refuses mounts that say more than a name and a path: a later field
// may make another mount of it.
func (m *message) readMounts() *refusal.Refusal {
	for i, mount := range m.mounts() {
		at := fmt.Sprintf("volumeMounts[%d]", i)
		if mount == nil {
			return invalid(fmt.Errorf("the field %q is not an object; send a name and a path", at))
		}
		if err := errors.Join(check(mount, mountFields, at+"."), checkKnown(mount, mountFields, at+".")); err != nil {
			return invalid(err)
		}
		name, _ := getText(mount, "name")
		if !ValidVolumeName(name) {
			return invalid(fmt.Errorf("%s names no volume; send a name of letters, digits, dashes and underscores", at))
		}
		if p, _ := getText(mount, "path"); p == "" || !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsRune(p, 0) {
			return invalid(fmt.Errorf("the path %s of %s must be absolute, without \".\", \"..\" and a slash at its end", strconv.QuoteToASCII(shorten(p)), at))
		}
	}
	return nil
}

// checkMounts refuses mounts over places that run, or change what runs, without
// being named.
func (m *message) checkMounts(p policy.Volumes) *refusal.Refusal {
	mounts := m.mounts()
	if len(mounts) > 0 && !p.Open {
		return denied("the field volumeMounts is closed: " + policy.ErrVolumesClosed.Error())
	}
	for _, mount := range mounts {
		at, _ := getText(mount, "path")
		if why, ok := files.MountPoint(at); !ok {
			return denied("a volume mounted at " + strconv.QuoteToASCII(shorten(at)) + " (" + why + ") would change what the sandbox runs by itself; mount it elsewhere, such as below /mnt")
		}
	}
	return nil
}

// readVolume refuses names that E2B refuses.
func (m *message) readVolume() *refusal.Refusal {
	if name, _ := getText(m.object, "name"); !ValidVolumeName(name) {
		return invalid(errors.New("it names no volume; send a name of letters, digits, dashes and underscores"))
	}
	return nil
}

func (m *message) enforceVolume(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if !p.Volumes.Open {
		return nil, denied(policy.ErrVolumesClosed.Error())
	}
	return nil, nil
}

// enforceVolumePath keeps the mode of a file to what its owner and others may do
// with it.
func (m *message) enforceVolumePath(policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if mode, set := getInt(m.object, "mode"); set && !files.PlainMode(mode) {
		return nil, denied(fmt.Sprintf("the mode %d has more bits than who may read, write and execute a file; send at most 511 (0o777)", mode))
	}
	return nil, nil
}

func (m *message) NameVolumes(name func(string) (string, *refusal.Refusal)) *refusal.Refusal {
	if m.spec.volumes == nil {
		return nil
	}
	for _, o := range m.spec.volumes(m) {
		given, _ := getText(o, "name")
		known, ref := name(given)
		if ref != nil {
			return ref
		}
		o.Set("name", known)
	}
	return nil
}

func (m *message) Volumes() []string {
	if m.spec.volumes == nil {
		return nil
	}
	var names []string
	for _, o := range m.spec.volumes(m) {
		name, _ := getText(o, "name")
		names = append(names, name)
	}
	return names
}

// RenameVolumes gives each mounted volume of the answer the name that its client
// knows it by.
func (a *Answer) RenameVolumes(name func(string) string) {
	for _, o := range a.sandboxes {
		mounts, _ := answeredMounts(o)
		for _, mount := range mounts {
			if known, ok := getText(mount, "name"); ok {
				mount.Set("name", name(known))
			}
		}
	}
}

// answeredMounts are the mounts that an answer tells of a sandbox; said is false
// where it does not say.
func answeredMounts(o *strictjson.Object) (mounts []*strictjson.Object, said bool) {
	value, _ := o.Get("volumeMounts")
	list, said := value.([]any)
	for _, e := range list {
		if mount, ok := e.(*strictjson.Object); ok {
			mounts = append(mounts, mount)
		}
	}
	return mounts, said
}

// Volume is what an answer of E2B says of one volume.
type Volume struct {
	ID, Name string
	// Token opens the volume's content. It is a credential: wrap it before it comes
	// near a log.
	Token string
	// Domain is that of the cluster that serves the content; "" for the default.
	Domain string

	object *strictjson.Object
}

// VolumeAnswer is what E2B says of volumes: of one, or of several.
type VolumeAnswer struct {
	value   any
	Volumes []Volume
}

// DecodeVolumes reads the answers of create and info (one volume) and list.
func DecodeVolumes(body []byte) (*VolumeAnswer, error) {
	value, err := strictjson.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("reading E2B's answer: %w", err)
	}
	a := &VolumeAnswer{value: value}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	for i, e := range list {
		o, ok := e.(*strictjson.Object)
		if !ok {
			return nil, fmt.Errorf("reading E2B's answer: volume %d is %s, not an object", i, strictjson.TypeName(e))
		}
		v := Volume{object: o}
		for name, to := range map[string]*string{"volumeID": &v.ID, "name": &v.Name, "token": &v.Token, "domain": &v.Domain} {
			value, _ := o.Get(name)
			if value == nil {
				continue
			}
			if *to, ok = value.(string); !ok {
				return nil, fmt.Errorf("reading E2B's answer: %s is %s, not a string", name, strictjson.TypeName(value))
			}
		}
		if v.ID == "" || v.Name == "" {
			return nil, fmt.Errorf("reading E2B's answer: volume %d has no id or no name", i)
		}
		a.Volumes = append(a.Volumes, v)
	}
	return a, nil
}

// Keep leaves only those volumes of a list for which it is told to.
func (a *VolumeAnswer) Keep(keep func(Volume) bool) {
	kept, list := a.Volumes[:0:0], []any{}
	for _, v := range a.Volumes {
		if keep(v) {
			kept, list = append(kept, v), append(list, v.object)
		}
	}
	a.Volumes, a.value = kept, list
}

// Show makes a volume's entry say what the client is to know: another name, token
// and domain; "" leaves the token or domain out. What else looks like a credential
// is left out too.
func (v Volume) Show(name, token, domain string) {
	for _, key := range v.object.Keys() {
		if strings.HasSuffix(strings.ToLower(key), "token") {
			v.object.Delete(key)
		}
	}
	v.object.Set("name", name)
	if token != "" {
		v.object.Set("token", token)
	}
	v.ShowDomain(domain)
}

// ShowDomain makes a volume's entry name another domain; "" for none.
func (v Volume) ShowDomain(domain string) {
	if domain != "" {
		v.object.Set("domain", domain)
		return
	}
	if _, set := v.object.Get("domain"); set {
		v.object.Set("domain", nil)
	}
}

// Encode returns the answer as JSON.
func (a *VolumeAnswer) Encode() []byte { return strictjson.Encode(a.value) }
