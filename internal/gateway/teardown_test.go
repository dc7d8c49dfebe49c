package gateway

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// scriptedAPI is an E2B control plane that answers in the order it was told to; a
// status of 0 is a connection that breaks, -1 one that hangs. When the script is
// over the last answer stands.
type scriptedAPI struct {
	mu    sync.Mutex
	ends  []int // of DELETE and pause
	reads []int // of GET
	asked []string
	times []time.Time
}

// soFar is what it was asked, and when.
func (s *scriptedAPI) soFar() (asked []string, times []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.times)
}

func (s *scriptedAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked, s.times = append(s.asked, r.Method+" "+r.URL.Path), append(s.times, time.Now())
	script := &s.ends
	if r.Method == http.MethodGet {
		script = &s.reads
	}
	status := (*script)[0]
	if len(*script) > 1 {
		*script = (*script)[1:]
	}
	s.mu.Unlock()
	switch status {
	case 0:
		return nil, errors.New("connection reset")
	case -1:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// newEnder is a gateway in vault mode before a scripted API, for use in a bubble.
func newEnder(t *testing.T, api http.RoundTripper, edits ...func(*Config)) (*Gateway, *book) {
	t.Helper()
	b, edit := audited(t, audit.Options{})
	return newGateway(t, "http://e2b.example", append([]func(*Config){vault, edit, func(cfg *Config) { cfg.Upstream.Transport = api }}, edits...)...), b
}

// teardowns are the records of ended sandboxes so far.
func (b *book) teardowns(t *testing.T) []audit.Record {
	t.Helper()
	_, outcomes := b.records(t)
	return slices.DeleteFunc(outcomes, func(r audit.Record) bool { return r.Kind != audit.KindTeardown })
}

// Only E2B's word that a sandbox is gone counts; until then it is tried again.
// See e2b-dev/E2B#1005 and kortix-ai/suna PR 5981, where a kill that failed or hung
// left sandboxes behind.
func TestSandboxIsEndedOnlyWhenE2BConfirmsIt(t *testing.T) {
	for name, tt := range map[string]struct {
		ends, reads []int
		pause       bool
		confirmed   bool // by the first try
		cause       string
		asked       []string
	}{
		"confirmed at once":             {[]int{204}, []int{404}, false, true, "verify", []string{"D", "G"}},
		"gone before":                   {[]int{404}, []int{200}, false, true, "gone_upstream", []string{"D"}},
		"accepted and not done":         {[]int{204, 204}, []int{200, 404}, false, false, "verify", []string{"D", "G", "D", "G"}},
		"accepted and done late":        {[]int{204, 404}, []int{200}, false, false, "verify", []string{"D", "G", "D"}},
		"refused twice":                 {[]int{500, 429, 204}, []int{404}, false, false, "verify", []string{"D", "D", "D", "G"}},
		"the answer is lost":            {[]int{0, 404}, []int{200}, false, false, "verify", []string{"D", "D"}},
		"a hanging kill":                {[]int{-1, 204}, []int{404}, false, false, "verify", []string{"D", "D", "G"}},
		"a hanging confirmation":        {[]int{204, 404}, []int{-1}, false, false, "verify", []string{"D", "G", "D"}},
		"an answer that says nothing":   {[]int{204, 404}, []int{401}, false, false, "verify", []string{"D", "G", "D"}},
		"a redirect is no confirmation": {[]int{302, 204}, []int{404}, false, false, "verify", []string{"D", "D", "G"}},
		"paused":                        {[]int{204}, []int{200}, true, true, "verify", []string{"P"}},
		"paused before":                 {[]int{409}, []int{200}, true, true, "verify", []string{"P"}},
		"nothing to pause":              {[]int{404}, []int{200}, true, true, "gone_upstream", []string{"P"}},
		"pausing fails":                 {[]int{500, 204}, []int{200}, true, false, "verify", []string{"P", "P"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &scriptedAPI{ends: tt.ends, reads: tt.reads}
				g, b := newEnder(t, api)
				got := g.endSandbox(teardown{sandbox: "i1", client: "team-a", cause: endedByVerify, request: "r1", pause: tt.pause})
				assert.Equal(t, tt.confirmed, got)
				g.background.work.Wait()
				assert.Equal(t, map[TeardownCount]uint64{{tt.cause, true}: 1}, g.state.endings.counts)
				assert.Empty(t, g.state.endings.running)
				var asked []string
				whole, _ := api.soFar()
				for _, a := range whole {
					asked = append(asked, a[:1])
				}
				assert.Equal(t, tt.asked, asked)

				require.NoError(t, g.cfg.Audit.Log.Close())
				found := b.teardowns(t)
				require.Len(t, found, 1)
				assert.Equal(t, "i1", found[0].Sandbox)
				assert.Equal(t, "team-a", found[0].Client)
				assert.Equal(t, "r1", found[0].ID)
				assert.Equal(t, tt.cause, found[0].DestroyedBy)
				assert.Equal(t, audit.EndedComplete, found[0].Ended)
			})
		})
	}
}

// An API that is down for long must not leave a sandbox behind: it is asked again,
// ever less often, until the sandbox cannot be alive any more.
func TestEndingIsTriedUntilTheSandboxMustBeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &scriptedAPI{ends: []int{503}, reads: []int{200}}
		g, b := newEnder(t, api)
		require.False(t, g.endSandbox(teardown{sandbox: "i1", cause: endedByVerify}))
		g.background.work.Wait()
		_, times := api.soFar()
		lived := times[len(times)-1].Sub(times[0])
		assert.GreaterOrEqual(t, lived, g.cfg.Policy.Limits.LifetimeMax)
		assert.Less(t, lived, g.cfg.Policy.Limits.LifetimeMax+2*endPauseMax)
		assert.Less(t, len(times), 70)
		for i, pause := range []time.Duration{endPause, 2 * endPause, 4 * endPause} {
			assert.Equal(t, pause, times[i+1].Sub(times[i]))
		}
		assert.Equal(t, map[TeardownCount]uint64{{endedByVerify, false}: 1}, g.state.endings.counts)
		require.NoError(t, g.cfg.Audit.Log.Close())
		found := b.teardowns(t)
		require.Len(t, found, 1)
		assert.Equal(t, audit.EndedError, found[0].Ended)
		assert.Contains(t, found[0].Error, "503")
	})
}

// A gateway that stops tries once more at once, and waits for no answer for long.
func TestStoppingGatewayTriesOnceMore(t *testing.T) {
	for name, tt := range map[string]struct {
		ends      []int
		confirmed bool
		longest   time.Duration
	}{
		"which succeeds": {[]int{503, 503, 204}, true, 0},
		"which fails":    {[]int{503}, false, 0},
		"which hangs":    {[]int{503, 503, -1}, false, endTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &scriptedAPI{ends: tt.ends, reads: []int{404}}
				var released atomic.Int32
				g, _ := newEnder(t, api, func(cfg *Config) { cfg.Hold = func() func() { return func() { released.Add(1) } } })
				g.endSandbox(teardown{sandbox: "i1", cause: endedByVerify})
				time.Sleep(endPause + endPause/2)
				asked, _ := api.soFar()
				require.Len(t, asked, 2)
				require.Zero(t, released.Load(), "what it works with is kept for it")
				begun := time.Now()
				require.NoError(t, g.Close())
				assert.LessOrEqual(t, time.Since(begun), tt.longest)
				synctest.Wait()
				assert.EqualValues(t, 1, released.Load())
				assert.Equal(t, map[TeardownCount]uint64{{endedByVerify, tt.confirmed}: 1}, g.state.endings.counts)
				asked, _ = api.soFar()
				time.Sleep(time.Hour)
				later, _ := api.soFar()
				assert.Equal(t, asked, later)
			})
		})
	}
}

// Two reasons to end one sandbox are one ending, and both callers learn of it.
func TestSandboxWithTwoReasonsIsEndedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &scriptedAPI{ends: []int{-1, 204}, reads: []int{404}}
		g, b := newEnder(t, api)
		var confirmed [2]bool
		var both sync.WaitGroup
		for i, cause := range []string{endedByVerify, endedByWallClock} {
			both.Go(func() { confirmed[i] = g.endSandbox(teardown{sandbox: "i1", cause: cause}) })
			synctest.Wait()
		}
		both.Wait()
		assert.Equal(t, [2]bool{}, confirmed)
		g.background.work.Wait()
		asked, _ := api.soFar()
		assert.Equal(t, []string{"DELETE /sandboxes/i1", "DELETE /sandboxes/i1", "GET /sandboxes/i1"}, asked)
		require.NoError(t, g.cfg.Audit.Log.Close())
		assert.Len(t, b.teardowns(t), 1)
	})
}

// Without a key of its own the gateway can end nothing behind a call of the data
// plane, and says so.
func TestPassThroughGatewaySaysThatItCannotEndASandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &scriptedAPI{ends: []int{204}, reads: []int{404}}
		g, b := newEnder(t, api, func(cfg *Config) { cfg.Clients, cfg.Seal, cfg.Upstream.APIKey = nil, nil, redact.Secret{} })
		assert.False(t, g.endSandbox(teardown{sandbox: "i1", cause: endedByWallClock}))
		assert.Empty(t, api.asked)
		assert.True(t, g.endSandbox(teardown{sandbox: "i2", cause: endedByVerify, header: headers("X-Api-Key", "e2b_cc")}))
		require.NoError(t, g.cfg.Audit.Log.Close())
		found := b.teardowns(t)
		require.Len(t, found, 2)
		assert.Equal(t, audit.EndedError, found[0].Ended)
		assert.Contains(t, found[0].Error, "pass-through")
		assert.Equal(t, audit.EndedComplete, found[1].Ended)
	})
}

// Work that waits for its time keeps alive what it needs, and no longer.
func TestLaterWorkHoldsWhatItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held, done atomic.Int32
		b := newBackground(func() func() { held.Add(1); return func() { held.Add(-1) } })
		l := b.after(time.Minute, func() { done.Add(1) })
		b.after(time.Hour, func() { done.Add(1) })
		b.after(3*time.Hour, func() { done.Add(1) })
		assert.EqualValues(t, 3, held.Load())
		l.cancel()
		l.cancel()
		assert.EqualValues(t, 2, held.Load())
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 1, done.Load())
		assert.EqualValues(t, 1, held.Load())
		b.stop(time.Second)
		assert.Zero(t, held.Load(), "what waits is not done any more")
		b.after(time.Minute, func() { done.Add(1) })
		assert.False(t, b.start(func() { done.Add(1) }))
		time.Sleep(4 * time.Hour)
		assert.EqualValues(t, 1, done.Load())
		assert.Zero(t, held.Load())
	})
}
