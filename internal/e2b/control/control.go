// Package control reads and edits the bodies of E2B's control plane, so that a
// sandbox is made and kept within the operator's policy. E2B decodes these
// bodies with Go's encoding/json: keys in any case, the last of several wins,
// unknown ones ignored. What would read differently there is refused here;
// unknown fields of the top level survive.
package control

import (
	"bytes"
	"fmt"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// Message is the decoded body of an operation whose body matters.
type Message interface {
	// Subjects is what the guard must see.
	Subjects() []guard.Subject
	// Enforce edits the message so that it keeps to the policy, and tells what
	// it changed. A refusal means that an edit would have made the call do
	// something else than it says.
	Enforce(p policy.Policy) ([]policy.Change, *refusal.Refusal)
	// Stamp writes into a sandbox that is about to be made which client asks for it,
	// and through which gateway; the client can neither write nor read the stamp. It
	// does nothing to other operations.
	Stamp(s Stamp) *refusal.Refusal
	// Names are the templates or snapshots that the call makes or names anew, and
	// Source is the one it starts from; both as the client wrote them. SetName
	// names what the client left without a name.
	Names() []string
	SetName(name string)
	// NeedsName reports whether E2B would make up a name that nobody could tell
	// the maker by.
	NeedsName() bool
	Source() string
	// NameVolumes gives each volume that the call makes or mounts the name that E2B
	// is to know it by.
	NameVolumes(name func(string) (string, *refusal.Refusal)) *refusal.Refusal
	// Volumes are the names of the volumes that the call makes or mounts.
	Volumes() []string
	// Sandboxes is how many sandboxes the call starts or wakes at most.
	Sandboxes() int
	// Terms is what the sandboxes that the call makes must report, after Enforce.
	Terms(n policy.Network) Terms
	// Environment is the variables that a sandbox is given.
	Environment() map[string]string
	// Copies are the files that a build copies.
	Copies() ([]Copy, *refusal.Refusal)
	// Encode returns the JSON to forward; nothing where the client sent no body
	// and none is needed.
	Encode() []byte
}

// spec is how one operation's body is read and edited.
type spec struct {
	fields []field
	// optional: E2B takes an absent body for an empty object.
	optional bool
	// count names the field that says how many sandboxes are made; "" for one.
	count string
	// names are the fields that name what is made, source the one that names what
	// it is made from.
	names  []string
	source string
	// closed refuses fields that are not known: a build would run what they say.
	closed   bool
	prepare  func(*message) *refusal.Refusal
	enforce  func(*message, policy.Policy) ([]policy.Change, *refusal.Refusal)
	subjects func(*message) []guard.Subject
	stamp    func(*message, Stamp) *refusal.Refusal
	// volumes are the objects whose name is a volume's.
	volumes func(*message) []*strictjson.Object
}

// v1 and v2 of create differ in two things: v2 is always secure and has no field
// for it, and its default lifetime is longer, which does not matter here since
// the lifetime is always written.
const createV2 = "/v2/sandboxes"

// connectV2 takes an absent body.
const connectV2 = "/v2/sandboxes/{sandboxID}/connect"

var specs = map[route.Operation]spec{
	route.SandboxCreate:     {fields: createFields, enforce: (*message).enforceCreate, subjects: (*message).createSubjects, stamp: (*message).stamp, volumes: (*message).mounts, source: "templateID", prepare: (*message).readMounts},
	route.SandboxConnect:    {fields: []field{{"timeout", integer}, {"memory", boolean}}, enforce: (*message).enforceTimeout},
	route.SandboxResume:     {fields: []field{{"timeout", integer}, {"memory", boolean}, {"autoPause", boolean}}, optional: true, enforce: (*message).enforceResume},
	route.SandboxFork:       {fields: []field{{"timeout", integer}, {"count", integer}}, optional: true, count: "count", enforce: (*message).enforceFork},
	route.SandboxPause:      {fields: []field{{"memory", boolean}}, optional: true, enforce: (*message).enforcePause},
	route.SandboxSnapshot:   {fields: []field{{"name", text}}, optional: true, names: []string{"name"}, enforce: (*message).enforceSnapshot},
	route.SandboxTimeout:    {fields: []field{{"timeout", integer}}, enforce: (*message).enforceSetTimeout},
	route.SandboxRefresh:    {fields: []field{{"duration", integer}}, optional: true, enforce: (*message).enforceRefresh},
	route.SandboxNetwork:    {fields: networkUpdateFields, enforce: (*message).enforceNetworkUpdate},
	route.TemplateCreate:    {fields: templateFields, closed: true, names: []string{"name", "alias"}, enforce: (*message).enforceTemplate},
	route.TemplateBuild:     {fields: buildFields, closed: true, source: "fromTemplate", prepare: (*message).readSteps, subjects: (*message).buildSubjects, enforce: (*message).enforceBuild},
	route.VolumeCreate:      {fields: []field{{"name", text}}, closed: true, prepare: (*message).readVolume, enforce: (*message).enforceVolume, volumes: func(m *message) []*strictjson.Object { return []*strictjson.Object{m.object} }},
	route.VolumePathUpdate:  {fields: []field{{"uid", integer}, {"gid", integer}, {"mode", integer}}, closed: true, enforce: (*message).enforceVolumePath},
	route.TemplateTagAssign: {fields: []field{{"target", text}, {"tags", texts}}, closed: true, names: []string{"target"}, enforce: (*message).enforceTags},
	route.TemplateTagDelete: {fields: []field{{"name", text}, {"tags", texts}}, closed: true, names: []string{"name"}, enforce: (*message).enforceTags},
}

// Reads reports whether Decode knows the operation; the body of any other
// control-plane operation is not looked at.
func Reads(op route.Operation) bool {
	_, ok := specs[op]
	return ok
}

// Decode reads the body of an operation that Reads knows. It never asks for the
// length of a body: one sent in chunks has none.
func Decode(t route.Target, body []byte) (Message, *refusal.Refusal) {
	s, ok := specs[t.Row.Operation]
	if !ok {
		return nil, invalid(fmt.Errorf("the body of %s is not one it knows", t.Row.Operation))
	}
	m := &message{spec: s, v2: t.Row.Pattern == createV2}
	if len(bytes.TrimSpace(body)) == 0 {
		if !s.optional && t.Row.Pattern != connectV2 {
			return nil, invalid(fmt.Errorf("the body of %s is missing; send a JSON object", t.Row.Operation))
		}
		m.absent, m.object = true, strictjson.NewObject()
		return m, nil
	}
	object, err := strictjson.DecodeObject(body)
	if err != nil {
		return nil, invalid(err)
	}
	m.object = object
	if err := check(object, s.fields, ""); err != nil {
		return nil, invalid(err)
	}
	if s.closed {
		if err := checkKnown(object, s.fields, ""); err != nil {
			return nil, invalid(err)
		}
	}
	if s.prepare != nil {
		if ref := s.prepare(m); ref != nil {
			return nil, ref
		}
	}
	return m, nil
}

// message is every operation's Message.
type message struct {
	spec   spec
	object *strictjson.Object
	absent bool
	v2     bool
	steps  []step // of a build
}

func (m *message) Subjects() []guard.Subject {
	if m.spec.subjects == nil {
		return nil
	}
	return m.spec.subjects(m)
}

func (m *message) Enforce(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	return m.spec.enforce(m, p)
}

func (m *message) Stamp(s Stamp) *refusal.Refusal {
	if m.spec.stamp == nil {
		return nil
	}
	return m.spec.stamp(m, s)
}

func (m *message) Sandboxes() int {
	if n, set := getInt(m.object, m.spec.count); set && m.spec.count != "" {
		return int(n)
	}
	return 1
}

func (m *message) Environment() map[string]string { return m.envVars() }

func (m *message) Encode() []byte {
	if m.absent && m.object.Len() == 0 {
		return nil
	}
	return strictjson.Encode(m.object)
}

func invalid(err error) *refusal.Refusal {
	ref := refusal.New(refusal.CodeInvalid, "e2bguard could not read this request, so it was not forwarded: "+err.Error()+".")
	ref.Err = err
	return ref
}

func denied(reason string) *refusal.Refusal {
	return refusal.New(refusal.CodePolicy, "Blocked by policy: "+reason+". Do not retry by another route.")
}
