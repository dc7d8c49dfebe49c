package control

import (
	"fmt"
	"strconv"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// settleLifetime clamps a field that holds a lifetime in seconds, and writes the
// default where the client left it out.
func (m *message) settleLifetime(name string, limits policy.Limits) ([]policy.Change, *refusal.Refusal) {
	var asked *int64
	from := ""
	if n, set := getInt(m.object, name); set {
		asked, from = &n, strconv.FormatInt(n, 10)
	}
	seconds, changed, err := limits.Lifetime(asked)
	if err != nil {
		return nil, invalid(fmt.Errorf("the field %q: %w", name, err))
	}
	if !changed {
		return nil, nil
	}
	setInt(m.object, name, seconds)
	return []policy.Change{{Field: name, From: from, To: strconv.FormatInt(seconds, 10)}}, nil
}

func (m *message) enforceTimeout(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	return m.settleLifetime("timeout", p.Limits)
}

func (m *message) enforceResume(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if ref := m.checkPersistence(p.Persistence); ref != nil {
		return nil, ref
	}
	return m.settleLifetime("timeout", p.Limits)
}

// enforceSetTimeout is for a call whose only purpose is the number.
func (m *message) enforceSetTimeout(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if _, set := getInt(m.object, "timeout"); !set {
		return nil, invalid(fmt.Errorf("the field %q is missing; send the seconds from now after which the sandbox ends", "timeout"))
	}
	return m.settleLifetime("timeout", p.Limits)
}

// enforceRefresh leaves an absent duration absent: E2B then adds 15 seconds.
func (m *message) enforceRefresh(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if _, set := getInt(m.object, "duration"); !set {
		return nil, nil
	}
	return m.settleLifetime("duration", p.Limits)
}

// maxForks is E2B's own limit for one request.
const maxForks = 100

func (m *message) enforceFork(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if !p.Persistence.Fork {
		return nil, closed("forking a sandbox", "fork")
	}
	if n, set := getInt(m.object, "count"); set && (n < 1 || n > maxForks) {
		return nil, invalid(fmt.Errorf("the field %q is %d; send 1 to %d", "count", n, maxForks))
	}
	return m.settleLifetime("timeout", p.Limits)
}

func (m *message) enforcePause(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if !p.Persistence.Pause {
		return nil, closed("pausing a sandbox", "pause")
	}
	return nil, nil
}

func (m *message) enforceSnapshot(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if !p.Persistence.Snapshot {
		return nil, closed("making a snapshot", "snapshot")
	}
	return nil, nil
}

func closed(what, word string) *refusal.Refusal {
	return denied(what + " is closed here, since it outlives the run; finish the work in this sandbox, or ask the operator to write persistence allow " + word)
}
