package gateway

import (
	"net/http"
	"sync"
	"time"
)

const (
	// warmFor is how long a sandbox waits for a program before it is replaced, and
	// warmLeast the least that is worth it.
	warmFor, warmLeast = 5 * time.Minute, 30 * time.Second
	// shelfIdle is how long sandboxes are kept warm after the last program that they
	// were for.
	shelfIdle = 15 * time.Minute
	// shelfPause is the time after a sandbox that could not be made, in which no
	// other is tried.
	shelfPause = 10 * time.Second
	// maxShelves bounds the clients and templates that sandboxes are kept warm for.
	maxShelves = 256
)

// pool keeps sandboxes warm for the next programs of the clients that run some. It
// is safe for concurrent use.
type pool struct {
	g    *Gateway
	size int
	wait time.Duration // of a sandbox, until it is replaced

	mu      sync.Mutex
	shelves map[shelfKey]*shelf
	closed  bool
}

type shelfKey struct{ client, template string }

// shelf is the warm sandboxes of one client and template.
type shelf struct {
	ready  []*warm // the oldest first
	making int
	used   time.Time
	paused time.Time // until then none is made
}

// warm is a sandbox that waits.
type warm struct {
	*disposable
	until time.Time
	timer *time.Timer
}

func newPool(g *Gateway, size int) *pool {
	return &pool{g: g, size: size, wait: g.cfg.Run.warmTime(g.cfg.Policy.Limits.LifetimeMax), shelves: map[shelfKey]*shelf{}}
}

// warmTime is how long a sandbox can wait, if its program is to have its time after
// that.
func (r *Run) warmTime(longest time.Duration) time.Duration {
	if longest == 0 {
		return warmFor
	}
	return min(warmFor, longest-r.Timeout-runLifetime)
}

// take returns a warm sandbox, or nil, and sees to it that there are others for the
// next.
func (p *pool) take(client, template string) *disposable {
	if p.size == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := shelfKey{client, template}
	s := p.shelves[key]
	if s == nil {
		if p.closed || len(p.shelves) >= maxShelves {
			return nil
		}
		s = new(shelf)
		p.shelves[key] = s
	}
	s.used = time.Now()
	var box *disposable
	if len(s.ready) > 0 {
		w := s.ready[0]
		s.ready = s.ready[1:]
		w.timer.Stop()
		box = w.disposable
	}
	p.fill(key, s)
	return box
}

// fill begins to make what is missing; p.mu is held.
func (p *pool) fill(key shelfKey, s *shelf) {
	for !p.closed && len(s.ready)+s.making < p.size && p.hasRoom(key.client) && time.Now().After(s.paused) {
		s.making++
		if !p.g.background.start(func() { p.add(key) }) {
			s.making--
			return
		}
	}
}

// hasRoom reports whether a client may have another sandbox that waits: of the
// places that it is limited to, programs and its own sandboxes need the half. p.mu
// is held.
func (p *pool) hasRoom(client string) bool {
	limit := p.g.limitsOf(client).Sandboxes
	if limit == 0 {
		return true
	}
	waiting := 0
	for key, s := range p.shelves {
		if key.client == client {
			waiting += len(s.ready) + s.making
		}
	}
	return waiting < limit/2
}

// add makes a sandbox and puts it on its shelf.
func (p *pool) add(key shelfKey) {
	until := time.Now().Add(p.wait)
	box := p.g.newDisposable(p.g.background.ctx, key.client, key.template, p.wait, http.Header{})
	<-box.made
	box.warm = true
	if !p.put(key, box, until) {
		box.end("")
	}
}

// put puts a sandbox on its shelf, and reports whether it is wanted there.
func (p *pool) put(key shelfKey, box *disposable, until time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shelves[key]
	if s == nil { // the pool is closed
		return false
	}
	s.making--
	if box.ref != nil {
		s.paused = time.Now().Add(shelfPause)
		return true
	}
	w := &warm{disposable: box, until: until}
	s.ready = append(s.ready, w)
	w.timer = time.AfterFunc(time.Until(until), func() { p.expire(key, w) })
	return true
}

// expire ends a sandbox that has waited too long, and makes another if programs
// still come.
func (p *pool) expire(key shelfKey, w *warm) {
	if !p.remove(key, w) {
		return
	}
	if end := func() { w.end("") }; !p.g.background.start(end) {
		end()
	}
}

// remove takes a sandbox off its shelf, unless somebody else has.
func (p *pool) remove(key shelfKey, w *warm) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shelves[key]
	if s == nil {
		return false
	}
	for i, other := range s.ready {
		if other != w {
			continue
		}
		s.ready = append(s.ready[:i:i], s.ready[i+1:]...)
		if time.Since(s.used) < shelfIdle {
			p.fill(key, s)
		} else if len(s.ready)+s.making == 0 {
			delete(p.shelves, key)
		}
		return true
	}
	return false
}

// close ends all sandboxes that wait, and keeps none from now on.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	var all []*warm
	for _, s := range p.shelves {
		all = append(all, s.ready...)
	}
	p.shelves = map[shelfKey]*shelf{}
	p.mu.Unlock()
	var wg sync.WaitGroup
	free := make(chan struct{}, exitsAtOnce)
	for _, w := range all {
		w.timer.Stop()
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			w.end("")
		})
	}
	wg.Wait()
}
