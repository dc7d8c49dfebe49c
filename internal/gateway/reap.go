package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
)

// Reaper is how sandboxes are found and ended that nobody else ends: those whose
// client has left, that a crash has left behind, or that E2B forgot. It needs
// client keys: without one of its own the gateway can neither list nor end them.
type Reaper struct {
	// Interval is the time between two looks at E2B's list; 0 for never.
	Interval time.Duration
	// IdleGrace is how long a sandbox may go without a call, as far as this process
	// knows; 0 for as long as it lives.
	IdleGrace time.Duration
	// EndOnExit ends those that this process has made when it stops.
	EndOnExit bool
}

const (
	// overdueSlack is how long E2B has to end a sandbox by itself.
	overdueSlack = 30 * time.Second
	// endsAtOnce bounds how many sandboxes the reaper looks at, and ends, at a time;
	// exitsAtOnce when the gateway stops.
	endsAtOnce  = 4
	exitsAtOnce = 32
	// pagesReaped bounds a list; a page of E2B's has 100 sandboxes.
	pagesReaped = 1000
)

// Reap looks at E2B's list every interval, first at once, until ctx ends.
func (g *Gateway) Reap(ctx context.Context) {
	every := g.cfg.Reaper.Interval
	if !g.reaps() {
		return
	}
	for ctx.Err() == nil {
		if err := g.reapOnce(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn("the reaper could not read E2B's list of sandboxes, and ended none; it tries again", zap.Error(err), zap.Duration("after", every))
		}
		// Replicas that started at once must not go on at once.
		timer := time.NewTimer(every - rand.N(every/10+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (g *Gateway) reaps() bool { return g.vault() && g.cfg.Reaper.Interval > 0 }

// reapOnce is one look: it ends what is overdue or idle, and notes what is gone. A
// list that is not whole ends nothing.
func (g *Gateway) reapOnce(ctx context.Context) error {
	begun := time.Now()
	listed, err := g.listOwn(ctx)
	if err != nil {
		return err
	}
	for _, info := range listed {
		g.state.lives.list(info)
	}
	each(ctx, endsAtOnce, listed, func(id string, info control.SandboxInfo) {
		// Here by the gateway's own clock: if it is wrong, that costs questions, or
		// time, and no sandbox.
		if g.state.lives.isIdle(id, g.cfg.Reaper.IdleGrace) || g.isOverdue(info, time.Now()) {
			g.reapSandbox(ctx, id)
		}
	})
	each(ctx, endsAtOnce, g.state.lives.unlisted(listed, begun), func(id string, one life) { g.settleUnlisted(ctx, id, one) })
	return nil
}

// each calls do for all entries, some at a time, until ctx ends, and returns for
// how many it did.
func each[V any](ctx context.Context, atOnce int, all map[string]V, do func(string, V)) (done int) {
	var wg sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for id, v := range all {
		free <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		done++
		wg.Go(func() {
			defer func() { <-free }()
			do(id, v)
		})
	}
	wg.Wait()
	return done
}

// listOwn returns the running sandboxes that were made through this gateway and by
// clients that it still has. It is all of them, or an error.
func (g *Gateway) listOwn(ctx context.Context) (map[string]control.SandboxInfo, error) {
	own := map[string]control.SandboxInfo{}
	for _, name := range g.cfg.Seal.IDs() {
		seen := map[string]bool{}
		for next, more := "", true; more; more = next != "" {
			if seen[next] {
				return nil, errors.New("E2B's list of sandboxes repeats a page")
			}
			seen[next] = true
			if len(seen) > pagesReaped {
				return nil, fmt.Errorf("E2B's list of sandboxes has more than %d pages", pagesReaped)
			}
			answer, err := g.askOwn(ctx, "v2/sandboxes", control.GatewayQuery(name, next))
			if err != nil {
				return nil, fmt.Errorf("listing sandboxes: %w", err)
			}
			for _, info := range answer.infos {
				if info.Gateway == name && g.isOwn(info) {
					own[info.ID] = info
				}
			}
			next = answer.next
		}
	}
	return own, nil
}

// isOwn reports whether a sandbox was made through this gateway, or a replica of
// it, by a client that it has.
func (g *Gateway) isOwn(info control.SandboxInfo) bool {
	return slices.Contains(g.cfg.Seal.IDs(), info.Gateway) && g.isClient(info.Owner)
}

// ownAnswer is what E2B says to the reaper.
type ownAnswer struct {
	infos []control.SandboxInfo
	next  string
	// now is E2B's clock: lifetimes are E2B's, and the gateway's own clock may be
	// wrong. Zero if it does not tell.
	now time.Time
}

// errGone says that E2B has no such sandbox.
var errGone = errors.New("there is no such sandbox")

func (g *Gateway) askOwn(ctx context.Context, path, query string) (ownAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	got, err := g.askAPI(ctx, http.MethodGet, path, query, nil)
	switch {
	case err != nil:
		return ownAnswer{}, err
	case got.status == http.StatusNotFound:
		return ownAnswer{}, errGone
	case got.status != http.StatusOK:
		return ownAnswer{}, fmt.Errorf("E2B answered %d", got.status)
	}
	answer, err := control.DecodeAnswer(got.body)
	if err != nil {
		return ownAnswer{}, err
	}
	now, _ := http.ParseTime(got.header.Get("Date"))
	return ownAnswer{answer.Sandboxes(), got.header.Get(control.NextTokenHeader), now}, nil
}

// isOverdue reports whether a sandbox has outlived its lifetime, or the longest
// that policy gives any.
func (g *Gateway) isOverdue(info control.SandboxInfo, now time.Time) bool {
	if now.IsZero() {
		return false
	}
	longest := g.cfg.Policy.Limits.LifetimeMax
	return !info.EndAt.IsZero() && now.After(info.EndAt.Add(overdueSlack)) ||
		longest > 0 && !info.StartedAt.IsZero() && now.After(info.StartedAt.Add(longest+overdueSlack))
}

// reapSandbox asks E2B about one sandbox, and ends it if what the list said still
// holds.
func (g *Gateway) reapSandbox(ctx context.Context, id string) {
	info, now, err := g.readOwn(ctx, id)
	if err != nil {
		g.logUnread(id, err)
		return
	}
	t := teardown{sandbox: id, client: info.Owner, pause: info.PausesAtEnd}
	switch {
	case !g.isOwn(info) || info.Paused:
		return
	case g.isOverdue(info, now):
		t.cause = endedByLifetime
	case g.state.lives.isIdle(id, g.cfg.Reaper.IdleGrace):
		t.cause = endedByIdle
	default:
		return
	}
	// A reaper that is told to stop waits for nothing.
	done := make(chan struct{})
	if g.background.start(func() {
		defer close(done)
		g.endSandbox(t)
	}) {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// readOwn is what E2B says of one sandbox now.
func (g *Gateway) readOwn(ctx context.Context, id string) (info control.SandboxInfo, now time.Time, err error) {
	answer, err := g.askOwn(ctx, "sandboxes/"+id, "")
	if err == nil && (len(answer.infos) != 1 || answer.infos[0].ID != id) {
		err = errors.New("E2B's answer is about another sandbox")
	}
	if err != nil {
		return info, now, err
	}
	return answer.infos[0], answer.now, nil
}

func (g *Gateway) logUnread(id string, err error) {
	if errors.Is(err, errGone) {
		return // it ended in between: the next list says so
	}
	g.log.Warn("the reaper could not read a sandbox, and leaves it for now", zap.String("sandbox", id), zap.Error(err))
}

// settleUnlisted notes what became of a sandbox that E2B does not list any more.
func (g *Gateway) settleUnlisted(ctx context.Context, id string, one life) {
	info, _, err := g.readOwn(ctx, id)
	switch {
	case err == nil && info.Paused:
		g.state.lives.drop(id)
	case err == nil: // the list is late
	case !errors.Is(err, errGone):
		g.logUnread(id, err)
	case g.state.lives.drop(id):
		t := teardown{sandbox: id, client: one.client, cause: goneUpstream}
		if !one.endAt.IsZero() && !time.Now().Before(one.endAt) {
			t.cause = expired
		}
		g.state.forget(id)
		g.state.endings.count(TeardownCount{Cause: t.cause, Confirmed: true})
		g.recordTeardown(t, nil)
	}
}

// EndMade ends the sandboxes that this process has made, if that is what the
// gateway is to do when it stops: all that it can within exitGrace.
func (g *Gateway) EndMade() {
	if !g.reaps() || !g.cfg.Reaper.EndOnExit {
		return
	}
	ctx, cancel := context.WithTimeout(g.background.ctx, exitGrace)
	defer cancel()
	var left atomic.Int32
	made := g.state.lives.madeHere()
	done := each(ctx, exitsAtOnce, made, func(id string, one life) {
		info, _, err := g.readOwn(ctx, id)
		switch {
		case errors.Is(err, errGone) || err == nil && info.Paused:
			g.state.lives.drop(id)
			return
		case err == nil && !g.isOwn(info):
			return // another handler's, on the same account
		case err != nil:
			g.log.Warn("could not read a sandbox before it is ended", zap.String("sandbox", id), zap.Error(err))
		}
		if !g.endSandbox(teardown{sandbox: id, client: one.client, cause: endedByShutdown, pause: info.PausesAtEnd}) {
			left.Add(1)
		}
	})
	if left := len(made) - done + int(left.Load()); left > 0 {
		g.log.Error("not all sandboxes that were to end with the gateway are confirmed to be gone; they may run on until their lifetime ends", zap.Int("sandboxes", left))
	}
}
