package caddymodule

import (
	"sync"
	"time"
)

// lease keeps what a handler owns alive until its last call has ended: Caddy
// cleans a configuration up while its streams are still running.
type lease struct {
	mu      sync.Mutex
	calls   int
	retired bool
	release func()
	once    sync.Once
	over    chan struct{} // closed when it was released
}

func newLease(release func()) *lease {
	l := &lease{over: make(chan struct{})}
	l.release = func() {
		l.once.Do(func() {
			defer close(l.over)
			release()
		})
	}
	return l
}

// end releases when the last call has ended, or the time is over.
func (l *lease) end(longest time.Duration) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-l.over:
	case <-timer.C:
		l.release()
	}
}

// take says whether a call may start; each true needs one give.
func (l *lease) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired && l.calls == 0 {
		return false
	}
	l.calls++
	return true
}

func (l *lease) give() {
	l.mu.Lock()
	l.calls--
	last := l.retired && l.calls == 0
	l.mu.Unlock()
	if last {
		l.release()
	}
}

// retire releases now, or when the last call ends. A second retire does nothing.
func (l *lease) retire() {
	l.mu.Lock()
	idle := !l.retired && l.calls == 0
	l.retired = true
	l.mu.Unlock()
	if idle {
		l.release()
	}
}
