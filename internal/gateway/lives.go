package gateway

import (
	"sync"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
)

// lives is what this process knows of the running sandboxes of its gateway: whether
// they are used, and by whom they were made. E2B's list says which there are.
type lives struct {
	mu    sync.Mutex
	known map[string]*life
}

// life is one sandbox.
type life struct {
	client string
	// seen is since when it is known here, used when a call for it last began or
	// ended, and open how many go on.
	seen, used time.Time
	open       int
	// made says that this process made or woke it, touched that it made or used it,
	// running that it was seen to run: a call may be for one that is long gone.
	made, touched, running bool
	// endAt is when it ends by itself, as E2B last told; zero if it did not.
	endAt time.Time
}

func newLives() *lives { return &lives{known: map[string]*life{}} }

func (l *lives) of(id, client string) *life {
	one := l.known[id]
	if one == nil {
		now := time.Now()
		one = &life{client: client, seen: now, used: now}
		l.known[id] = one
	}
	return one
}

// useSandbox notes that a sandbox is used, until done is called.
func (g *Gateway) useSandbox(id, client string) (done func()) {
	if !g.reaps() {
		return func() {}
	}
	return g.state.lives.use(id, client)
}

// use counts a call for a sandbox until done is called.
func (l *lives) use(id, client string) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of(id, client)
	one.open++
	one.touched, one.used = true, time.Now()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		one.open--
		one.used = time.Now()
	}
}

// add notes a sandbox that this process has made or woken.
func (l *lives) add(id, client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of(id, client)
	one.made, one.touched, one.running, one.used = true, true, true, time.Now()
}

// list notes what E2B says is running.
func (l *lives) list(info control.SandboxInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of(info.ID, info.Owner)
	one.running, one.endAt = true, info.EndAt
}

// isIdle reports whether nobody has used a sandbox for so long; one that is not
// known has just been used for all that is known.
func (l *lives) isIdle(id string, grace time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.known[id]
	return grace > 0 && one != nil && one.open == 0 && time.Since(one.used) >= grace
}

// unlisted returns those that were known before a list was begun, and are not on
// it. It forgets those that were never used here, of which other replicas know more.
func (l *lives) unlisted(listed map[string]control.SandboxInfo, begun time.Time) map[string]life {
	l.mu.Lock()
	defer l.mu.Unlock()
	missing := map[string]life{}
	for id, one := range l.known {
		_, there := listed[id]
		switch {
		case there || !one.seen.Before(begun.Add(-newFor)):
		case one.touched && one.running:
			missing[id] = *one
		default:
			delete(l.known, id)
		}
	}
	return missing
}

// madeHere returns those that this process has made or woken.
func (l *lives) madeHere() map[string]life {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := map[string]life{}
	for id, one := range l.known {
		if one.made {
			made[id] = *one
		}
	}
	return made
}

// drop forgets a sandbox that does not run any more, and reports whether it was
// known.
func (l *lives) drop(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known[id]
	delete(l.known, id)
	return known
}
