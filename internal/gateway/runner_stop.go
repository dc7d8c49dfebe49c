package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// errStopping is why a program is ended when the process ends.
var errStopping = errors.New("the gateway is stopping")

func isStopping(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errStopping) }

func refuseStopping() *refusal.Refusal {
	return refusal.New(refusal.CodeShuttingDown, "this gateway is stopping, so the program was not run. Try again in a moment.")
}

// programs are those that run, each with a sandbox that must be ended.
type programs struct {
	mu      sync.Mutex
	stopped bool
	stop    chan struct{}
	work    sync.WaitGroup
}

func newPrograms() *programs { return &programs{stop: make(chan struct{})} }

// begin returns a context that ends when programs are to end, and what to call when
// the sandbox of one is gone; false if no more may begin.
func (p *programs) begin(ctx context.Context) (_ context.Context, over func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return ctx, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	p.work.Add(1)
	done := make(chan struct{})
	go func() {
		select {
		case <-p.stop:
			cancel(errStopping)
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		cancel(nil)
		p.work.Done()
	}, true
}

// end ends all programs and waits, within grace, until their sandboxes are gone.
func (p *programs) end(grace time.Duration) {
	p.mu.Lock()
	if !p.stopped {
		p.stopped = true
		close(p.stop)
	}
	p.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		p.work.Wait()
		close(gone)
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
	}
}

// Retire is called when another configuration takes this one's place, or the
// process ends: sandboxes that wait for programs end. Programs that run go on, as
// other calls do, unless the process ends: then they end, too, with their
// sandboxes, within exitGrace.
func (g *Gateway) Retire(exiting bool) {
	if g.cfg.Run == nil {
		return
	}
	if exiting {
		g.programs.end(exitGrace)
	}
	g.pool.close()
}
