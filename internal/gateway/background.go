package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// background is what a gateway does behind its calls. It is bounded when the
// gateway stops, and until then keeps alive what it needs.
type background struct {
	// hold keeps what the gateway works with, its audit log above all, until
	// released; it may be nil.
	hold func() (release func())
	// ctx ends when nothing may go on.
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	stopped  bool
	stopping chan struct{}
	later    map[*later]struct{}
	work     sync.WaitGroup
}

// later is work that waits for its time.
type later struct {
	b       *background
	timer   *time.Timer
	release func()
}

func newBackground(hold func() func()) *background {
	b := &background{hold: hold, stopping: make(chan struct{}), later: map[*later]struct{}{}}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// start runs do in the background, and reports whether it did: a gateway that
// stops begins nothing.
func (b *background) start(do func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	b.run(b.keep(), do)
	return true
}

func (b *background) run(release, do func()) {
	b.work.Add(1)
	go func() {
		// In this order: whoever lets go last may stop the gateway, which waits for
		// all work.
		defer release()
		defer b.work.Done()
		do()
	}()
}

// after runs do in the background when the time is over, unless it is cancelled
// or the gateway stops before.
func (b *background) after(d time.Duration, do func()) *later {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &later{b: b, release: b.keep()}
	if b.stopped {
		l.release()
		return l
	}
	b.later[l] = struct{}{}
	l.timer = time.AfterFunc(d, func() {
		if release := l.take(); release != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.stopped {
				release()
				return
			}
			b.run(release, do)
		}
	})
	return l
}

// cancel keeps from happening what has not begun.
func (l *later) cancel() {
	if release := l.take(); release != nil {
		l.timer.Stop()
		release()
	}
}

// take is for whoever comes first: the timer or its end.
func (l *later) take() (release func()) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	if _, waiting := l.b.later[l]; !waiting {
		return nil
	}
	delete(l.b.later, l)
	return l.release
}

// keep keeps alive what the gateway works with until it is released.
func (b *background) keep() (release func()) {
	if b.hold == nil {
		return func() {}
	}
	return b.hold()
}

// sleep waits, and reports whether it could to the end: it returns at once when
// the gateway stops.
func (b *background) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.stopping:
		return false
	}
}

// drop keeps from happening what waits for its time.
func (b *background) drop() {
	b.mu.Lock()
	waiting := slices.Collect(maps.Keys(b.later))
	b.mu.Unlock()
	for _, l := range waiting {
		l.cancel()
	}
}

// stop ends what goes on: each has its last try, and all together have grace. What
// waits for its time is not done any more.
func (b *background) stop(grace time.Duration) {
	b.mu.Lock()
	if !b.stopped {
		b.stopped = true
		close(b.stopping)
	}
	b.mu.Unlock()
	b.drop()
	timer := time.AfterFunc(grace, b.cancel)
	defer timer.Stop()
	b.work.Wait()
}
