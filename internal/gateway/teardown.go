package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Why the gateway ended a sandbox, on record. A client's own kill is "client".
const (
	endedByVerify      = "verify"       // it was not what was asked for
	endedByDomain      = "domain"       // it is where the gateway sends nothing to
	endedByCPU         = "cpu_seconds"  // code in it would not end at its limit of CPU time
	endedByWallClock   = "wall_clock"   // what ran in it would not end at its time limit
	endedByOutputLimit = "output_limit" // what ran in it would not end at its output limit
	endedByRun         = "run"          // its program has ended, or was not run
	endedByLifetime    = "lifetime"     // it outlived its lifetime
	endedByIdle        = "idle"         // nobody used it
	endedByShutdown    = "shutdown"     // the gateway stopped

	// Of sandboxes that were found gone, and that nobody here ended: expired at the
	// end of their lifetime, goneUpstream before it.
	expired      = "expired"
	goneUpstream = "gone_upstream"
)

const (
	// endTimeout bounds one try to end a sandbox, of which the caller waits for the
	// first. The others follow endPause apart, each twice as long as the one before,
	// at most endPauseMax.
	endTimeout  = 5 * time.Second
	endPause    = time.Second
	endPauseMax = time.Minute
	// exitGrace bounds what is still done about sandboxes when the gateway stops.
	exitGrace = 10 * time.Second
)

// teardown is a sandbox that the gateway ends.
type teardown struct {
	sandbox string
	// client is whose it is, cause why it ends: one of the causes above.
	client, cause string
	// request is the id of the call that it comes from; "" for none.
	request string
	// pause puts it to sleep instead: its data are not the gateway's to delete.
	pause bool
	// header has the client's E2B key, which is taken in pass-through mode. Calls of
	// the data plane have none, and sandboxes cannot be ended for them there.
	header http.Header
}

func (t teardown) path() string { return "sandboxes/" + t.sandbox }

// endings are the sandboxes that are being ended, whatever for and by whichever
// configuration: one that has two reasons is ended once.
type endings struct {
	mu      sync.Mutex
	running map[endingKey]*ending
	counts  map[TeardownCount]uint64
}

type endingKey struct {
	sandbox string
	pause   bool
}

// ending is one sandbox that is being ended. confirmed is there when tried is
// closed: after the first try.
type ending struct {
	tried     chan struct{}
	confirmed bool
}

// TeardownCount is what ends of sandboxes are counted by.
type TeardownCount struct {
	// Cause is why the sandbox was ended.
	Cause string
	// Confirmed is whether E2B confirmed that it is gone.
	Confirmed bool
}

// Teardowns is how many sandboxes came to their end, by what ended them, and how
// many are being ended and not confirmed to be gone.
func (s *State) Teardowns() (done map[TeardownCount]uint64, pending int) {
	s.endings.mu.Lock()
	defer s.endings.mu.Unlock()
	return maps.Clone(s.endings.counts), len(s.endings.running)
}

func newEndings() *endings {
	return &endings{running: map[endingKey]*ending{}, counts: map[TeardownCount]uint64{}}
}

// begin returns the ending of a sandbox, and whether it is new.
func (e *endings) begin(key endingKey) (*ending, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if there := e.running[key]; there != nil {
		return there, false
	}
	e.running[key] = &ending{tried: make(chan struct{})}
	return e.running[key], true
}

func (e *endings) end(key endingKey, count TeardownCount) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, key)
	e.counts[count]++
}

func (e *endings) count(count TeardownCount) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[count]++
}

// errNoKey says that a sandbox cannot be ended.
var errNoKey = errors.New("the gateway has no E2B key of its own (pass-through)")

// endSandbox ends a sandbox and reports whether E2B confirms that it is gone. It
// returns after the first try; if that fails, it is tried again behind the caller
// until the sandbox must have come to its end by itself. What came of it is
// recorded and counted.
func (g *Gateway) endSandbox(t teardown) (confirmed bool) {
	key := endingKey{t.sandbox, t.pause}
	e, isNew := g.state.endings.begin(key)
	if !isNew {
		<-e.tried
		return e.confirmed
	}
	g.state.forget(t.sandbox)
	gone, err := g.tryEnd(t)
	e.confirmed = err == nil
	defer close(e.tried) // once it is on record
	if err == nil && gone {
		t.cause = goneUpstream
	}
	if err == nil || errors.Is(err, errNoKey) || !g.background.start(func() { g.settleEnd(key, t, g.retryEnd(t, err)) }) {
		g.settleEnd(key, t, err)
	}
	return e.confirmed
}

// retryEnd tries again, and once more at once when the gateway stops.
func (g *Gateway) retryEnd(t teardown, err error) error {
	g.log.Warn("a sandbox could not be ended yet; it is tried again", zap.String("request_id", t.request), zap.String("sandbox", t.sandbox), zap.String("cause", t.cause), zap.Error(err))
	begun, longest := time.Now(), g.cfg.Policy.Limits.LifetimeMax
	for wait, stopping := endPause, false; err != nil && !stopping && time.Since(begun) < longest; wait = min(2*wait, endPauseMax) {
		stopping = !g.background.sleep(wait)
		_, err = g.tryEnd(t)
	}
	return err
}

// settleEnd records what came of it.
func (g *Gateway) settleEnd(key endingKey, t teardown, err error) {
	g.state.forget(t.sandbox) // a call may have come in between
	if err == nil {
		g.state.lives.drop(t.sandbox)
	}
	g.state.endings.end(key, TeardownCount{Cause: t.cause, Confirmed: err == nil})
	g.recordTeardown(t, err)
	if err != nil {
		g.log.Error("could not end a sandbox; it may run on until its lifetime ends",
			zap.String("request_id", t.request), zap.String("sandbox", t.sandbox), zap.String("cause", t.cause), zap.Error(err))
	}
}

// tryEnd ends a sandbox and has E2B confirm it: an answer to the order alone does
// not say that it was carried out. gone says that there was none.
func (g *Gateway) tryEnd(t teardown) (gone bool, err error) {
	if !g.vault() && t.header.Get("X-Api-Key")+t.header.Get("Authorization") == "" {
		return false, errNoKey
	}
	ctx, cancel := context.WithTimeout(g.background.ctx, endTimeout)
	defer cancel()
	method, path := http.MethodDelete, t.path()
	if t.pause {
		method, path = http.MethodPost, path+"/pause"
	}
	got, err := g.askAPI(ctx, method, path, "", t.header)
	switch {
	case err != nil:
		return false, err
	case got.status == http.StatusNotFound:
		return true, nil
	case t.pause && (got.status == http.StatusNoContent || got.status == http.StatusConflict):
		return false, nil // it sleeps, or slept already
	case got.status/100 != 2:
		return false, fmt.Errorf("E2B answered %d", got.status)
	}
	got, err = g.askAPI(ctx, http.MethodGet, t.path(), "", t.header)
	if err == nil && got.status != http.StatusNotFound {
		err = fmt.Errorf("E2B does not confirm it: it answered %d when it was asked about the sandbox", got.status)
	}
	return false, err
}
