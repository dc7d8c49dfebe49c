// Package policy holds what an operator allows (limits, network, templates,
// ports, persistence) as pure functions on neutral values. It knows no wire
// format: the packages of internal/e2b map its values to and from E2B's fields.
package policy

import (
	"errors"
	"time"
)

// Policy is everything an operator can allow or forbid, besides what guards
// decide.
type Policy struct {
	Limits      Limits
	Network     Network
	Templates   Templates
	Ports       Ports
	Persistence Persistence
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

// Persistence says which ways of outliving a run are open; all closed by
// default.
type Persistence struct{ Pause, Snapshot, Fork bool }

// ParsePersistence reads the words after the option: "deny", or "allow" and any
// of "pause", "snapshot" and "fork".
func ParsePersistence(words []string) (Persistence, error) {
	return Persistence{}, errors.New("parsing persistence")
}

// Lifetime settles a sandbox's lifetime in seconds: asked is nil where the
// client named none.
func (l Limits) Lifetime(asked *int64) (seconds int64, changed bool, err error) {
	return 0, false, errors.New("settling lifetime")
}

// Change is one edit of a client's request, told to the client and the log.
type Change struct{ Field, From, To string }
