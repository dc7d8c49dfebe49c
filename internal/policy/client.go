package policy

import (
	"errors"
	"fmt"
)

// ClientLimits bounds what one client may use, so that one does not take what is
// there for all. A zero field is off.
type ClientLimits struct {
	// Sandboxes may run at once.
	Sandboxes int
	// Creations is how many sandboxes may be made in a minute, forks included.
	Creations int
	// GuardCalls is how many subjects may be put before the guards in a minute.
	GuardCalls int
}

// Validate reports every limit that is no limit.
func (l ClientLimits) Validate() error {
	var problems []error
	for _, f := range []struct {
		name string
		n    int
	}{{"sandboxes", l.Sandboxes}, {"creations", l.Creations}, {"guard_calls", l.GuardCalls}} {
		if f.n < 0 || f.n > maxClientLimit {
			problems = append(problems, fmt.Errorf("%s %d: write a whole number from 1 to %d, or off", f.name, f.n, maxClientLimit))
		}
	}
	return errors.Join(problems...)
}

// maxClientLimit is more than any client can use, and less than what overflows.
const maxClientLimit = 1_000_000
