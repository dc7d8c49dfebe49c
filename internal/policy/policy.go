// Package policy holds what an operator allows (limits, network, templates,
// ports, persistence) as pure functions on neutral values. It knows no wire
// format: the packages of internal/e2b map its values to and from E2B's fields.
package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Policy is everything an operator can allow or forbid, besides what guards
// decide.
type Policy struct {
	Limits      Limits
	Network     Network
	Templates   Templates
	Builds      Builds
	Ports       Ports
	Persistence Persistence
	Volumes     Volumes
}

// Change is one edit of a client's request, told to the client and the log. An
// empty From means that the client had not set the field.
type Change struct{ Field, From, To string }

// Persistence says which ways of outliving a run are open; all closed by
// default.
type Persistence struct{ Pause, Snapshot, Fork bool }

// ParsePersistence reads the words after the option: "deny", or "allow" and any
// of "pause", "snapshot" and "fork".
func ParsePersistence(words []string) (Persistence, error) {
	if len(words) == 1 && words[0] == "deny" {
		return Persistence{}, nil
	}
	if len(words) < 2 || words[0] != "allow" {
		return Persistence{}, errors.New(`persistence takes "deny", or "allow" and one or more of pause, snapshot and fork`)
	}
	var p Persistence
	for _, w := range words[1:] {
		way := map[string]*bool{"pause": &p.Pause, "snapshot": &p.Snapshot, "fork": &p.Fork}[w]
		if way == nil {
			return Persistence{}, fmt.Errorf("persistence allow does not know %q: write pause, snapshot or fork", w)
		}
		if *way {
			return Persistence{}, fmt.Errorf("persistence allow names %s twice", w)
		}
		*way = true
	}
	return p, nil
}

// Templates is the allow list of template ids and names; empty allows whatever
// the key may use.
type Templates struct{ Allow []string }

// ParseTemplates reads the words after the option.
func ParseTemplates(words []string) (Templates, error) {
	for _, w := range words {
		if canonicalTemplate(w) == "" || strings.ContainsAny(w, "*, \t") {
			return Templates{}, fmt.Errorf("%q is no template: write ids or names, such as base or team/name:tag, separated by spaces", w)
		}
	}
	return Templates{Allow: words}, nil
}

// Check returns an error that says what to do if the template is not allowed.
// Only the exact template is: another tag is another image, and "team/base" is
// another template than "base".
func (t Templates) Check(id string) error {
	if len(t.Allow) == 0 {
		return nil
	}
	for _, allowed := range t.Allow {
		if canonicalTemplate(allowed) == canonicalTemplate(id) {
			return nil
		}
	}
	return fmt.Errorf("template %q is not one of those allowed here (%s); use one of them, or ask the operator to add it to the option templates", id, strings.Join(t.Allow, ", "))
}

// canonicalTemplate writes a template as E2B compares it: trimmed, in lower
// case, without the tag that goes without saying.
func canonicalTemplate(id string) string {
	return strings.TrimSuffix(strings.ToLower(strings.TrimSpace(id)), ":default")
}

// Limits bounds what a sandbox and its processes may use. A zero field means
// the limit is off, which only an operator can write.
type Limits struct {
	// LifetimeDefault applies where the client names no lifetime; LifetimeMax
	// is the most it can ask for.
	LifetimeDefault, LifetimeMax time.Duration
	// WallClock bounds a command that names a timeout, BackgroundWallClock one
	// that does not.
	WallClock, BackgroundWallClock time.Duration
	// CPUSeconds is RLIMIT_CPU of a command; not for PTYs and background
	// commands.
	CPUSeconds int
	// MemoryBytes is RLIMIT_DATA, never address space: node, go, java and
	// WebAssembly reserve gigabytes of address space at start.
	MemoryBytes int64
	// OutputBytes bounds stdout plus stderr of one call.
	OutputBytes int64
}

// maxSeconds is the longest lifetime E2B's API can hold (a signed 32-bit field).
const maxSeconds = 1<<31 - 1

// Lifetime settles a sandbox's lifetime in whole seconds: asked is nil where the
// client named none. It returns 0 only if the client named none and no limit is
// set. What E2B could take for "never" is an error, not a lifetime.
func (l Limits) Lifetime(asked *int64) (seconds int64, changed bool, err error) {
	longest := wholeSeconds(l.LifetimeMax)
	if asked == nil {
		seconds = wholeSeconds(l.LifetimeDefault)
		if longest > 0 && (seconds == 0 || seconds > longest) {
			seconds = longest
		}
		return seconds, seconds > 0, nil
	}
	switch {
	case *asked <= 0:
		return 0, false, fmt.Errorf("a lifetime of %d seconds means no sandbox at all; ask for at least 1 second", *asked)
	case *asked > maxSeconds:
		return 0, false, fmt.Errorf("a lifetime of %d seconds is more than E2B can hold; ask for at most %d", *asked, maxSeconds)
	case longest > 0 && *asked > longest:
		return longest, true, nil
	}
	return *asked, false, nil
}

// wholeSeconds rounds a limit that is set up to whole seconds, so that it never
// becomes "off".
func wholeSeconds(d time.Duration) int64 {
	return min(int64((d+time.Second-1)/time.Second), maxSeconds)
}
