package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/policy"
)

const (
	// usageKept bounds the clients whose use is remembered; the least recently seen
	// are forgotten first. Only in pass-through mode can there be that many.
	usageKept = 16_384
	// recountAfter is how long a count of running sandboxes is believed: others
	// start and end without this gateway seeing it, and replicas share clients.
	recountAfter = 30 * time.Second
	// recountPause keeps a client at its limit from having E2B asked at every try.
	recountPause = time.Second
	// newFor is how long a sandbox counts as running though E2B does not list it
	// yet.
	newFor = 10 * time.Second
	// pagesCounted bounds a count; a page of E2B's has 100 sandboxes.
	pagesCounted = 100
)

// usage is what one client has used of its limits. It is safe for concurrent use.
type usage struct {
	creations, guardCalls perMinute

	mu sync.Mutex
	// running are the client's sandboxes, and since when this gateway knows of
	// them; pending are those that are being made.
	running map[string]time.Time
	pending int
	counted time.Time
}

func newUsage() *lru.Cache[string, *usage] {
	cache, err := lru.New[string, *usage](usageKept)
	if err != nil {
		panic(err) // only for a size below one
	}
	return cache
}

func (s *State) usageOf(client string) *usage {
	if u, ok := s.usage.Get(client); ok {
		return u
	}
	u := &usage{running: map[string]time.Time{}}
	if old, ok, _ := s.usage.PeekOrAdd(client, u); ok {
		return old
	}
	return u
}

// limitsOf are the limits of a client: its own, or everybody's.
func (g *Gateway) limitsOf(client string) policy.ClientLimits {
	if own := g.names[client].Limits; own != nil {
		return *own
	}
	return g.cfg.ClientLimits
}

// perMinute counts what may be used so many times in a minute.
type perMinute struct {
	mu      sync.Mutex
	limiter *rate.Limiter
}

// spend takes n of the limit; else it returns how long until there is that much
// again, or 0 if there never will be. A changed limit does not fill it again.
func (p *perMinute) spend(limit, n int) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rateOf := rate.Limit(float64(limit) / 60)
	switch {
	case p.limiter == nil:
		p.limiter = rate.NewLimiter(rateOf, limit)
	case p.limiter.Burst() != limit:
		p.limiter.SetLimit(rateOf)
		p.limiter.SetBurst(limit)
	}
	r := p.limiter.ReserveN(time.Now(), n)
	if !r.OK() {
		return 0, false
	}
	if wait = r.Delay(); wait > 0 {
		r.Cancel()
		return wait, false
	}
	return 0, true
}

// spendGuardCalls counts what is about to be put before the guards. Data-plane
// calls whose client is not known count together.
func (c *call) spendGuardCalls(n int) *refusal.Refusal {
	limit := c.g.limitsOf(c.client).GuardCalls
	if limit == 0 {
		return nil
	}
	wait, ok := c.g.state.usageOf(c.client).guardCalls.spend(limit, n)
	if ok {
		return nil
	}
	return refuseRate(fmt.Sprintf("this client may have %d pieces of code judged in a minute, and there were more, so the call was not run", limit), wait)
}

// refuseRate says no until there is room again; never, if wait is 0.
func refuseRate(what string, wait time.Duration) *refusal.Refusal {
	hint := "Do less in one call, or ask the operator to raise the option client_limits"
	if wait > 0 {
		wait = (wait + time.Second - 1).Truncate(time.Second)
		hint = fmt.Sprintf("Wait %s and try again, or ask the operator to raise the option client_limits", wait)
	}
	ref := refusal.New(refusal.CodeClientLimit, "Rate limit: "+what+". "+hint+".")
	ref.RetryAfter, ref.Retryable = wait, wait > 0
	return ref
}

// admitSandboxes takes places among its client's running sandboxes for those that
// the call starts or wakes, and counts those that it makes.
func (c *call) admitSandboxes() *refusal.Refusal {
	n := c.msg.(controlMessage).Sandboxes()
	if ref := c.takeSlots(n); ref != nil {
		return ref
	}
	limit := c.g.limitsOf(c.client).Creations
	if limit == 0 || !c.makesSandboxes() {
		return nil
	}
	if wait, ok := c.g.state.usageOf(c.client).creations.spend(limit, n); !ok {
		return refuseRate(fmt.Sprintf("this client may create %d sandboxes in a minute, and asked for more, so none was made", limit), wait)
	}
	return nil
}

// owner is whose sandbox the call is about, or makes.
func (c *call) owner() string {
	if c.sandbox.client != "" {
		return c.sandbox.client
	}
	return c.client
}

// takeSlots takes n places, or none for a sandbox that has one already.
func (c *call) takeSlots(n int) *refusal.Refusal {
	limit := c.g.limitsOf(c.owner()).Sandboxes
	if limit == 0 {
		return nil
	}
	id := c.target.Params["sandboxID"]
	if c.target.Row.Operation == route.SandboxFork {
		id = "" // what is forked has its place, its forks have none
	}
	u := c.g.state.usageOf(c.owner())
	if u.isFresh(recountAfter) && c.reserve(u, id, n, limit) {
		return nil
	}
	if !u.isFresh(recountPause) {
		if err := c.recount(u); errors.Is(err, errKeyUnknown) {
			return nil // E2B refuses the call itself, in its own words
		} else if err != nil {
			ref := refusal.New(refusal.CodeUpstream, "e2bguard could not ask E2B how many sandboxes this client has running, so the call was not forwarded. Try again in a moment.")
			ref.Err, ref.Retryable = err, true
			return ref
		}
	}
	if c.reserve(u, id, n, limit) {
		return nil
	}
	ref := refusal.New(refusal.CodeClientLimit, fmt.Sprintf("Rate limit: this client may have %d sandboxes running at once, and has as many. Kill one that is done with, or ask the operator to raise the option client_limits.", limit))
	ref.Retryable = true
	return ref
}

func (u *usage) isFresh(d time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Since(u.counted) < d
}

func (c *call) reserve(u *usage, id string, n, limit int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, has := u.running[id]; has {
		return true
	}
	if len(u.running)+u.pending+n > limit {
		return false
	}
	u.pending += n
	c.slots = n
	return true
}

// freeSlots gives back the places that nothing came of.
func (c *call) freeSlots() {
	if c.slots == 0 {
		return
	}
	u := c.g.state.usageOf(c.owner())
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending -= c.slots
	c.slots = 0
}

// countSandbox puts a sandbox that runs now in the place that was taken for it.
func (c *call) countSandbox(id string) {
	if c.g.limitsOf(c.owner()).Sandboxes == 0 {
		return
	}
	u := c.g.state.usageOf(c.owner())
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.slots > 0 {
		c.slots--
		u.pending--
	}
	u.running[id] = time.Now()
}

// uncountSandbox frees the place of a sandbox that was killed or paused.
func (c *call) uncountSandbox(*http.Response) error {
	c.g.uncount(c.owner(), c.target.Params["sandboxID"])
	return nil
}

// uncount frees the place of a client's sandbox.
func (g *Gateway) uncount(client, id string) {
	if g.limitsOf(client).Sandboxes > 0 {
		u := g.state.usageOf(client)
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.running, id)
	}
}

// recount asks E2B which of the client's sandboxes are running. In pass-through
// mode these are all of the account's: nothing tells whose they are.
func (c *call) recount(u *usage) error {
	_, err, _ := c.g.counts.Do(c.owner(), func() (any, error) {
		// Others may be waiting for the answer when the first has gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), lookupTimeout)
		defer cancel()
		begun := time.Now()
		listed, err := c.listRunning(ctx)
		if err != nil {
			return nil, err
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		for id, since := range u.running {
			if begun.Sub(since) < newFor {
				listed[id] = since
			}
		}
		u.running, u.counted = listed, time.Now()
		return nil, nil
	})
	return err
}

// errKeyUnknown says that E2B does not know the client's own key.
var errKeyUnknown = errors.New("E2B does not know the key")

func (c *call) listRunning(ctx context.Context) (map[string]time.Time, error) {
	query := url.Values{"state": {"running"}, "limit": {"100"}}
	if c.g.vault() {
		query.Set("metadata", control.OwnerFilter(c.owner()))
	}
	running := map[string]time.Time{}
	for range pagesCounted {
		got, err := c.g.askAPI(ctx, http.MethodGet, "v2/sandboxes", query.Encode(), c.r.Header)
		if err != nil {
			return nil, fmt.Errorf("counting sandboxes: %w", err)
		}
		if got.status == http.StatusUnauthorized && !c.g.vault() {
			return nil, errKeyUnknown
		}
		if got.status != http.StatusOK {
			return nil, fmt.Errorf("counting sandboxes: E2B answered %d", got.status)
		}
		answer, err := control.DecodeAnswer(got.body)
		if err != nil {
			return nil, fmt.Errorf("counting sandboxes: %w", err)
		}
		for _, info := range answer.Sandboxes() {
			if !c.g.vault() || info.Owner == c.owner() {
				running[info.ID] = time.Time{}
			}
		}
		next := got.header.Get(control.NextTokenHeader)
		if next == "" {
			break
		}
		query.Set("nextToken", next)
	}
	return running, nil
}
