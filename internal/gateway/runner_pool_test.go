package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/emulator"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// poolHouse is a runHouse whose gateway can be reached into.
type poolHouse struct {
	*runHouse
	g *Gateway
	// making, if it is set, is asked before a sandbox is made.
	making atomic.Pointer[func() bool]
}

func newPoolHouse(t *testing.T, size int, edits ...func(*Config)) *poolHouse {
	t.Helper()
	e2b := newEmulator(t)
	h := &poolHouse{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if may := h.making.Load(); may != nil && r.URL.Path == "/v2/sandboxes" && r.Method == http.MethodPost && !(*may)() {
			http.Error(w, `{"code":500,"message":"no"}`, http.StatusInternalServerError)
			return
		}
		e2b.ServeHTTP(w, r)
	}))
	t.Cleanup(up.Close)
	h.g = newGateway(t, up.URL, append([]func(*Config){vault, runs, func(cfg *Config) { cfg.Run.Pool = size }}, edits...)...)
	front := httptest.NewServer(h.g)
	t.Cleanup(func() {
		front.Close()
		h.g.Retire(true)
		require.Empty(t, h.left(t), "a sandbox outlived its pool")
	})
	h.runHouse = &runHouse{vaultHouse: &vaultHouse{house: &house{url: front.URL}, e2b: e2b}}
	return h
}

// ready waits until so many sandboxes are warm, and none besides is alive.
func (h *poolHouse) ready(t *testing.T, n int) []string {
	t.Helper()
	var ids []string
	require.Eventually(t, func() bool {
		h.g.pool.mu.Lock()
		defer h.g.pool.mu.Unlock()
		ids = nil
		for _, s := range h.g.pool.shelves {
			if s.making > 0 {
				return false
			}
			for _, w := range s.ready {
				ids = append(ids, w.id)
			}
		}
		return len(ids) == n
	}, 10*time.Second, 5*time.Millisecond, "%d sandboxes are not ready", n)
	require.Eventually(t, func() bool { return len(h.left(t)) == n }, 10*time.Second, 5*time.Millisecond)
	return ids
}

var echo = map[string]any{"language": "bash", "code": "echo 1"}

// After the first program, the next find a sandbox that is there already, each one
// of its own, and the pool fills again.
func TestPoolKeepsSandboxesWarm(t *testing.T) {
	h := newPoolHouse(t, 2)
	require.Empty(t, h.left(t), "nobody has run anything")
	got, raw := h.run(t, echo)
	require.Equal(t, "pass", got.Status, raw.Body)
	warm := h.ready(t, 2)

	no := func() bool { return false }
	h.making.Store(&no) // so what runs now runs in what is there
	for range 2 {
		got, raw = h.run(t, echo)
		require.Equal(t, "pass", got.Status, raw.Body)
	}
	require.Eventually(t, func() bool { return len(h.left(t)) == 0 }, 10*time.Second, 5*time.Millisecond, "used sandboxes are gone: %v", warm)
	got, _ = h.run(t, echo)
	require.Equal(t, "error", got.Status, "there is none left")
}

func TestPoolIsOfOneClientAndTemplate(t *testing.T) {
	h := newPoolHouse(t, 1, func(cfg *Config) { cfg.Run.Templates = map[string]string{"python": "my-python"} })
	for _, language := range []string{"bash", "python"} {
		got, raw := h.run(t, map[string]any{"language": language, "code": "1"})
		require.NotEqual(t, "error", got.Status, raw.Body)
	}
	h.ready(t, 2)
	answered := h.do(t, "POST", "/run", headers("X-Api-Key", keyB), strings.NewReader(`{"language":"bash","code":"echo 1"}`))
	require.Contains(t, answered.Body, `"status":"pass"`)
	h.ready(t, 3)
	owners := map[string]int{}
	for _, id := range h.left(t) {
		var info struct {
			TemplateID string
			Metadata   map[string]string
		}
		require.NoError(t, json.Unmarshal([]byte(h.direct(t, "GET", "/sandboxes/"+id, nil, nil).Body), &info))
		owners[info.Metadata["e2bguard-owner"]+" "+info.TemplateID]++
	}
	assert.Equal(t, map[string]int{"team-a base": 1, "team-a my-python": 1, "team-b base": 1}, owners)
}

// A sandbox that has waited long is replaced while its life would still be long
// enough, as long as programs come.
func TestPoolReplacesWhatHasWaitedLong(t *testing.T) {
	h := newPoolHouse(t, 1)
	h.g.pool.wait = 300 * time.Millisecond
	got, raw := h.run(t, echo)
	require.Equal(t, "pass", got.Status, raw.Body)
	first := h.ready(t, 1)[0]
	require.Eventually(t, func() bool {
		left := h.left(t)
		return len(left) == 1 && left[0] != first
	}, 10*time.Second, time.Millisecond, "it is not replaced")

	h.g.pool.mu.Lock()
	for _, s := range h.g.pool.shelves {
		s.used = time.Now().Add(-shelfIdle)
	}
	h.g.pool.mu.Unlock()
	h.nothingLeft(t)
	require.Eventually(t, func() bool {
		h.g.pool.mu.Lock()
		defer h.g.pool.mu.Unlock()
		return len(h.g.pool.shelves) == 0
	}, 10*time.Second, time.Millisecond, "a client that runs nothing costs nothing")
}

// A warm sandbox that is gone when its program comes costs that program time, not
// its life.
func TestPoolSandboxThatIsGoneIsReplaced(t *testing.T) {
	h := newPoolHouse(t, 1)
	h.run(t, echo)
	id := h.ready(t, 1)[0]
	require.Equal(t, 204, h.direct(t, "DELETE", "/sandboxes/"+id, nil, nil).Status)
	got, raw := h.run(t, echo)
	require.Equal(t, "pass", got.Status, raw.Body)
	assert.Equal(t, "1\n", got.Stdout)
}

// A block destroys a warm sandbox, too: what is taken for one program is never
// another's.
func TestPoolSandboxOfABlockedProgramIsDestroyed(t *testing.T) {
	h := newPoolHouse(t, 1)
	h.run(t, echo)
	id := h.ready(t, 1)[0]
	got, _ := h.run(t, map[string]any{"language": "bash", "code": "evil"})
	require.Equal(t, "block", got.Status)
	assert.NotContains(t, h.ready(t, 1), id)
}

// Where no sandbox can be made, the pool does not ask again and again.
func TestPoolRestsWhenSandboxesCannotBeMade(t *testing.T) {
	h := newPoolHouse(t, 5)
	var asked atomic.Int32
	no := func() bool { asked.Add(1); return false }
	h.making.Store(&no)
	for range 5 {
		got, _ := h.run(t, echo)
		require.Equal(t, "error", got.Status)
	}
	h.ready(t, 0)
	assert.LessOrEqual(t, asked.Load(), int32(5+2*5), "five programs, and a pool that was filled once")
}

// Warm sandboxes count among their client's, and leave it half of its places,
// whatever languages it uses.
func TestPoolKeepsToItsClientsLimits(t *testing.T) {
	h := newPoolHouse(t, 5, func(cfg *Config) {
		cfg.ClientLimits = policy.ClientLimits{Sandboxes: 5}
		cfg.Run.Templates = map[string]string{"python": "my-python"}
	})
	for _, language := range []string{"bash", "python", "bash", "python"} {
		got, raw := h.run(t, map[string]any{"language": language, "code": "1"})
		require.Equal(t, "pass", got.Status, raw.Body)
		h.ready(t, 2)
	}
	for range 2 {
		own := h.create(t, keyA, `{"templateID":"base"}`)
		defer h.direct(t, "DELETE", "/sandboxes/"+own.ID, nil, nil)
	}
}

// When the configuration is replaced, what waits ends, and what runs goes on.
func TestRetiredPoolEndsWhatWaits(t *testing.T) {
	var reached sync.Once
	running, goOn := make(chan struct{}), make(chan struct{})
	h := newPoolHouse(t, 2, func(cfg *Config) {
		cfg.Guard = answeringSubject(func(s guard.Subject) guard.Verdict {
			if strings.Contains(s.Text, "slow") {
				reached.Do(func() { close(running) })
				<-goOn
			}
			return guard.Verdict{Decision: guard.Pass}
		})
	})
	h.run(t, echo)
	h.ready(t, 2)
	var wg sync.WaitGroup
	wg.Go(func() {
		got, raw := h.run(t, map[string]any{"language": "bash", "code": "echo slow"})
		assert.Equal(t, "pass", got.Status, raw.Body)
	})
	<-running
	h.g.Retire(false)
	close(goOn)
	wg.Wait()
	h.nothingLeft(t)
	got, raw := h.run(t, echo)
	require.Equal(t, "pass", got.Status, raw.Body)
	h.nothingLeft(t)
}

// When the process ends, programs end with their sandboxes, and no more begin.
func TestProgramsEndWhenTheProcessDoes(t *testing.T) {
	for name, accept := range map[string]string{"at once": "application/json", "as events": "application/x-ndjson"} {
		t.Run(name, func(t *testing.T) {
			h := newPoolHouse(t, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "POST", h.url+"/run", strings.NewReader(`{"language":"bash","code":"echo begun; sleep 60"}`))
			require.NoError(t, err)
			r.Header = headers("X-Api-Key", keyA, "Accept", accept)
			answers := make(chan string)
			go func() {
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					answers <- err.Error()
					return
				}
				defer resp.Body.Close()
				var b strings.Builder
				_, _ = fmt.Fprint(&b, resp.StatusCode, " ")
				_, _ = io.Copy(&b, resp.Body)
				answers <- b.String()
			}()
			require.Eventually(t, func() bool {
				return slices.ContainsFunc(h.e2b.Recorded(), func(r emulator.Record) bool { return r.Path == "/process.Process/Start" })
			}, 10*time.Second, 5*time.Millisecond)
			h.g.Retire(true)
			require.Empty(t, h.left(t))
			answer := <-answers
			assert.Contains(t, answer, `"status":"error"`)
			assert.Contains(t, answer, `"code":"shutting_down"`)
			got, raw := h.run(t, echo)
			assert.Equal(t, 503, raw.Status)
			assert.Equal(t, "shutting_down", got.Code)
		})
	}
}
