package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/audit"
)

// account is a control plane with sandboxes, for use in a bubble. Its clock is
// ahead of the gateway's by skew.
type account struct {
	mu        sync.Mutex
	sandboxes map[string]map[string]any
	skew      time.Duration
	page      int // sandboxes on a page
	// edit changes an answer, or gives another in its place.
	edit  func(r *http.Request, resp *http.Response) *http.Response
	asked []string
}

func newAccount() *account { return &account{sandboxes: map[string]map[string]any{}, page: 100} }

// put adds a sandbox of team-a that this gateway made; fields replace what it says
// of itself.
func (a *account) put(id string, lifetime time.Duration, fields ...any) {
	now := time.Now().Add(a.skew).UTC()
	info := map[string]any{
		"sandboxID": id, "state": "running", "startedAt": now.Format(time.RFC3339Nano), "endAt": now.Add(lifetime).Format(time.RFC3339Nano),
		"metadata": map[string]any{"e2bguard-owner": "team-a", "e2bguard-gateway": testSealer("11").IDs()[0]},
	}
	for i := 0; i < len(fields); i += 2 {
		info[fields[i].(string)] = fields[i+1]
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sandboxes[id] = info
}

func (a *account) ids() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.sandboxes))
}

func (a *account) remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sandboxes, id)
}

// orders are the calls that end something, so far.
func (a *account) orders() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.asked), func(s string) bool { return strings.HasPrefix(s, "GET") })
}

func (a *account) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.Method+" "+r.URL.Path)
	status, header, body := a.answer(r)
	header.Set("Date", time.Now().Add(a.skew).UTC().Format(http.TimeFormat))
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	resp := &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(string(b))), Request: r}
	if a.edit != nil {
		if other := a.edit(r, resp); other != nil {
			return other, nil
		}
	}
	return resp, nil
}

func (a *account) answer(r *http.Request) (int, http.Header, any) {
	header := http.Header{}
	rest, one := strings.CutPrefix(r.URL.Path, "/sandboxes/")
	id, action, _ := strings.Cut(rest, "/")
	info := a.sandboxes[id]
	switch {
	case r.URL.Path == "/v2/sandboxes":
		wanted, err := url.ParseQuery(r.URL.Query().Get("metadata"))
		if err != nil || r.URL.Query().Get("state") != "running" {
			return http.StatusBadRequest, header, nil
		}
		page := []any{}
		for _, id := range slices.Sorted(maps.Keys(a.sandboxes)) {
			info := a.sandboxes[id]
			metadata, _ := info["metadata"].(map[string]any)
			if id <= r.URL.Query().Get("nextToken") || info["state"] != "running" || metadata["e2bguard-gateway"] != wanted.Get("e2bguard-gateway") {
				continue
			}
			if len(page) == a.page {
				header.Set("X-Next-Token", page[len(page)-1].(map[string]any)["sandboxID"].(string))
				break
			}
			page = append(page, info)
		}
		return http.StatusOK, header, page
	case !one || info == nil:
		return http.StatusNotFound, header, nil
	case r.Method == http.MethodGet:
		return http.StatusOK, header, info
	case action == "pause":
		info["state"] = "paused"
		return http.StatusNoContent, header, nil
	default:
		delete(a.sandboxes, id)
		return http.StatusNoContent, header, nil
	}
}

// newReaping is a gateway whose reaper is on, before an account.
func newReaping(t *testing.T, a *account, edits ...func(*Config)) (*Gateway, *book) {
	t.Helper()
	return newEnder(t, a, append([]func(*Config){func(cfg *Config) { cfg.Reaper.Interval = time.Minute }}, edits...)...)
}

// causes are why sandboxes ended, by id, once the log is closed.
func (b *book) causes(t *testing.T, g *Gateway) map[string]string {
	t.Helper()
	require.NoError(t, g.cfg.Audit.Log.Start(context.Background())) // so that there is a file
	require.NoError(t, g.cfg.Audit.Log.Close())
	causes := map[string]string{}
	for _, r := range b.teardowns(t) {
		require.Equal(t, audit.KindTeardown, r.Kind)
		require.NotContains(t, causes, r.Sandbox, "recorded once")
		causes[r.Sandbox] = r.DestroyedBy
	}
	return causes
}

// After a restart nothing is known but what E2B lists: what outlived its lifetime
// there is ended, and nothing else. See e2b-dev/E2B#1005.
func TestReaperEndsWhatOutlivedItsLifetime(t *testing.T) {
	stamp := func(owner, gateway any) map[string]any {
		return map[string]any{"e2bguard-owner": owner, "e2bguard-gateway": gateway}
	}
	own := testSealer("11").IDs()[0]
	for name, tt := range map[string]struct {
		lifetime time.Duration
		fields   []any
		after    time.Duration
		ended    bool
	}{
		"in time":                      {5 * time.Minute, nil, 4 * time.Minute, false},
		"just over, E2B may be at it":  {5 * time.Minute, nil, 5*time.Minute + overdueSlack/2, false},
		"over":                         {5 * time.Minute, nil, 6 * time.Minute, true},
		"longer than policy lets live": {24 * time.Hour, nil, time.Hour + time.Minute, true},
		"long, and policy lets it":     {time.Hour, nil, 59 * time.Minute, false},
		"paused":                       {5 * time.Minute, []any{"state", "paused"}, time.Hour, false},
		"of a client that is no more":  {5 * time.Minute, []any{"metadata", stamp("team-x", own)}, time.Hour, false},
		"of no client":                 {5 * time.Minute, []any{"metadata", stamp("", own)}, time.Hour, false},
		"of another gateway":           {5 * time.Minute, []any{"metadata", stamp("team-a", testSealer("22").IDs()[0])}, time.Hour, false},
		"of no gateway":                {5 * time.Minute, []any{"metadata", stamp("team-a", nil)}, time.Hour, false},
		"without metadata":             {5 * time.Minute, []any{"metadata", nil}, time.Hour, false},
		"no end is told":               {0, []any{"endAt", nil}, 50 * time.Minute, false},
		"no end is told, long ago":     {0, []any{"endAt", nil}, 2 * time.Hour, true},
		"nothing is told":              {0, []any{"endAt", nil, "startedAt", nil}, 50 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAccount()
				g, b := newReaping(t, a)
				a.put("i1", tt.lifetime, tt.fields...)
				time.Sleep(tt.after)
				require.NoError(t, g.reapOnce(t.Context()))
				want := map[string]string{}
				if tt.ended {
					want["i1"] = endedByLifetime
				}
				assert.Equal(t, !tt.ended, slices.Contains(a.ids(), "i1"))
				assert.Equal(t, want, b.causes(t, g))
			})
		})
	}
}

// Lifetimes are by E2B's clock: one here that is wrong ends nothing too early.
func TestReaperGoesByE2BsClock(t *testing.T) {
	for name, tt := range map[string]struct {
		skew time.Duration
		date func(http.Header)
		end  bool
	}{
		"the gateway's is two hours fast": {-2 * time.Hour, nil, false},
		"both are right":                  {0, nil, true},
		"E2B does not tell":               {0, func(h http.Header) { h.Del("Date") }, false},
		"E2B tells nonsense":              {0, func(h http.Header) { h.Set("Date", "tomorrow") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAccount()
				a.skew = tt.skew
				a.edit = func(_ *http.Request, resp *http.Response) *http.Response {
					if tt.date != nil {
						tt.date(resp.Header)
					}
					return nil
				}
				g, _ := newReaping(t, a)
				a.put("i1", 30*time.Minute)
				if tt.skew == 0 {
					time.Sleep(40 * time.Minute)
				}
				require.NoError(t, g.reapOnce(t.Context()))
				assert.Equal(t, tt.end, len(a.ids()) == 0)
			})
		})
	}
}

// A list that may not be whole ends nothing, and says so.
func TestReaperEndsNothingByHalfAList(t *testing.T) {
	status := func(code int) func(*http.Request, *http.Response) {
		return func(_ *http.Request, resp *http.Response) { resp.StatusCode = code }
	}
	body := func(text string) func(*http.Request, *http.Response) {
		return func(_ *http.Request, resp *http.Response) { resp.Body = io.NopCloser(strings.NewReader(text)) }
	}
	for name, tt := range map[string]struct {
		page int // from which on the answer is changed
		edit func(*http.Request, *http.Response)
		want string
	}{
		"the first page fails":  {1, status(500), "E2B answered 500"},
		"the second page fails": {2, status(502), "E2B answered 502"},
		"the key is not known":  {1, status(401), "E2B answered 401"},
		"there is no such list": {1, status(404), "no such"},
		"a page is no list":     {2, body(`"x"`), "not an object"},
		"a page is cut off":     {2, body(`[{"sandboxID":"i3"`), "reading E2B's answer"},
		"a sandbox has no id":   {2, body(`[{"state":"running"}]`), "there is no sandboxID"},
		"a page repeats":        {2, func(_ *http.Request, resp *http.Response) { resp.Header.Set("X-Next-Token", "i2") }, "repeats a page"},
		"the pages do not end": {1, func(_ *http.Request, resp *http.Response) {
			resp.Header.Set("X-Next-Token", fmt.Sprint(time.Now().UnixNano()))
		}, "more than"},
		"an end that is no time": {2, body(`[{"sandboxID":"i3","endAt":"never"}]`), "endAt"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAccount()
				a.page = 2
				pages := 0
				a.edit = func(r *http.Request, resp *http.Response) *http.Response {
					if r.URL.Path == "/v2/sandboxes" {
						time.Sleep(time.Microsecond)
						if pages++; pages >= tt.page {
							tt.edit(r, resp)
						}
					}
					return nil
				}
				g, _ := newReaping(t, a)
				for i := range 6 {
					a.put(fmt.Sprint("i", i+1), time.Minute)
				}
				time.Sleep(time.Hour)
				require.ErrorContains(t, g.reapOnce(t.Context()), tt.want)
				assert.Len(t, a.ids(), 6)
				assert.Empty(t, a.orders())

				a.edit = nil
				require.NoError(t, g.reapOnce(t.Context()))
				assert.Empty(t, a.ids(), "on every page")
			})
		})
	}
}

// What the list says is asked again before anything is ended.
func TestReaperLooksAgainBeforeItEnds(t *testing.T) {
	own := testSealer("11").IDs()[0]
	for name, change := range map[string]func(info map[string]any){
		"its life was extended": func(i map[string]any) { i["endAt"] = time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano) },
		"it was paused":         func(i map[string]any) { i["state"] = "paused" },
		"it is another's": func(i map[string]any) {
			i["metadata"] = map[string]any{"e2bguard-owner": "team-z", "e2bguard-gateway": own}
		},
		"it is nobody's":        func(i map[string]any) { delete(i, "metadata") },
		"it is another sandbox": func(i map[string]any) { i["sandboxID"] = "i2" },
		"it is a list":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAccount()
				a.edit = func(r *http.Request, resp *http.Response) *http.Response {
					if r.Method != http.MethodGet || r.URL.Path == "/v2/sandboxes" {
						return nil
					}
					if change == nil {
						resp.Body = io.NopCloser(strings.NewReader(`[{"sandboxID":"i1"},{"sandboxID":"i2"}]`))
						return nil
					}
					info := maps.Clone(a.sandboxes["i1"])
					change(info)
					b, _ := json.Marshal(info)
					resp.Body = io.NopCloser(strings.NewReader(string(b)))
					return nil
				}
				g, _ := newReaping(t, a)
				a.put("i1", time.Minute)
				time.Sleep(30 * time.Minute)
				require.NoError(t, g.reapOnce(t.Context()))
				assert.Empty(t, a.orders())
				a.edit = nil
				require.NoError(t, g.reapOnce(t.Context()))
				assert.Equal(t, []string{"DELETE /sandboxes/i1"}, a.orders())
			})
		})
	}
}

// A client left without a kill: nobody uses its sandbox, and it ends. One that has
// an open stream, or was used just now, does not.
func TestReaperEndsWhatNobodyUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount()
		g, b := newReaping(t, a, func(cfg *Config) { cfg.Reaper.IdleGrace = 10 * time.Minute })
		for _, id := range []string{"i1stream", "i2used", "i3idle", "i4ended"} {
			a.put(id, time.Hour)
		}
		g.state.lives.add("i3idle", "team-a")
		stream := g.state.lives.use("i1stream", "team-a")
		ctx, cancel := context.WithCancel(t.Context())
		var reaping sync.WaitGroup
		reaping.Go(func() { g.Reap(ctx) })
		time.Sleep(9 * time.Minute)
		assert.Len(t, a.ids(), 4, "a sandbox that was just heard of has its whole grace")
		g.state.lives.use("i2used", "team-a")()
		time.Sleep(3 * time.Minute)
		assert.Equal(t, []string{"i1stream", "i2used"}, a.ids())
		stream()
		time.Sleep(9 * time.Minute)
		assert.Equal(t, []string{"i1stream"}, a.ids(), "a stream that has ended counts as use")
		time.Sleep(3 * time.Minute)
		assert.Empty(t, a.ids())
		cancel()
		reaping.Wait()
		assert.Empty(t, g.state.lives.known)
		assert.Equal(t, map[string]string{"i1stream": "idle", "i2used": "idle", "i3idle": "idle", "i4ended": "idle"}, b.causes(t, g))
	})
}

// Idle sandboxes live on where the option is off.
func TestReaperLeavesIdleSandboxesByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount()
		g, _ := newReaping(t, a)
		a.put("i1", time.Hour)
		require.NoError(t, g.reapOnce(t.Context()))
		time.Sleep(59 * time.Minute)
		require.NoError(t, g.reapOnce(t.Context()))
		assert.Equal(t, []string{"i1"}, a.ids())
	})
}

// A sandbox that is to sleep at its end has data that its client was promised.
func TestReaperPausesWhatIsToSleepAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount()
		g, b := newReaping(t, a)
		a.put("i1", time.Minute, "lifecycle", map[string]any{"onTimeout": "pause"})
		time.Sleep(30 * time.Minute)
		require.NoError(t, g.reapOnce(t.Context()))
		assert.Equal(t, []string{"POST /sandboxes/i1/pause"}, a.orders())
		assert.Equal(t, map[string]string{"i1": endedByLifetime}, b.causes(t, g))
	})
}

// e2b-dev/E2B#1381: a sandbox that ended by itself, or by a hand unknown, is told
// from one that the gateway ended.
func TestReaperTellsWhatEndedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount()
		g, b := newReaping(t, a)
		for _, id := range []string{"i1vanishes", "i2expires", "i3pauses", "i4lives", "i5elsewhere"} {
			a.put(id, 20*time.Minute)
			if id != "i5elsewhere" {
				g.state.lives.add(id, "team-a")
			}
		}
		g.state.lives.use("i6never", "team-a")() // a token for a sandbox that is long gone
		require.NoError(t, g.reapOnce(t.Context()))
		a.remove("i1vanishes")
		a.remove("i5elsewhere")
		a.sandboxes["i3pauses"]["state"] = "paused"
		time.Sleep(time.Minute)
		require.NoError(t, g.reapOnce(t.Context()))
		time.Sleep(20 * time.Minute)
		a.remove("i2expires")
		require.NoError(t, g.reapOnce(t.Context()))
		require.NoError(t, g.reapOnce(t.Context()))
		assert.Equal(t, map[string]string{"i1vanishes": goneUpstream, "i2expires": expired, "i4lives": endedByLifetime}, b.causes(t, g))
		assert.Empty(t, g.state.lives.known)
	})
}

// What is new may not be on E2B's list yet.
func TestReaperTakesNothingNewForGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount()
		g, b := newReaping(t, a)
		g.state.lives.add("i1", "team-a")
		require.NoError(t, g.reapOnce(t.Context()))
		assert.Len(t, g.state.lives.known, 1)
		assert.Empty(t, b.causes(t, g))
	})
}

// A kill that does not succeed is taken up again by the next look, even by another
// process: E2B's list is all that must be remembered. See kortix-ai/suna PR 5981.
func TestAnotherProcessEndsWhatOneCouldNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount()
		a.put("i1", time.Minute)
		time.Sleep(30 * time.Minute)
		a.edit = func(r *http.Request, resp *http.Response) *http.Response {
			if r.Method == http.MethodDelete {
				a.sandboxes["i1"] = map[string]any{"sandboxID": "i1", "state": "running", "metadata": map[string]any{"e2bguard-owner": "team-a", "e2bguard-gateway": testSealer("11").IDs()[0]}, "endAt": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)}
				resp.StatusCode = http.StatusInternalServerError
			}
			return nil
		}
		first, b := newReaping(t, a)
		require.NoError(t, first.reapOnce(t.Context()))
		require.NoError(t, first.Close())
		assert.Equal(t, []string{"i1"}, a.ids())
		require.NoError(t, first.cfg.Audit.Log.Close())
		require.Len(t, b.teardowns(t), 1)
		assert.Equal(t, audit.EndedError, b.teardowns(t)[0].Ended)

		a.edit = nil
		second, b := newReaping(t, a)
		require.NoError(t, second.reapOnce(t.Context()))
		assert.Empty(t, a.ids())
		assert.Equal(t, map[string]string{"i1": endedByLifetime}, b.causes(t, second))
	})
}

// Replicas share nothing but E2B's list and the seal key, whose older keys count
// too.
func TestReplicasReapWhatOthersMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount()
		g, _ := newReaping(t, a, func(cfg *Config) { cfg.Seal = testSealer("22", "11") })
		a.put("i1", time.Minute)
		a.put("i2", time.Minute, "metadata", map[string]any{"e2bguard-owner": "team-b", "e2bguard-gateway": testSealer("22").IDs()[0]})
		a.put("i3", time.Minute, "metadata", map[string]any{"e2bguard-owner": "team-b", "e2bguard-gateway": testSealer("33").IDs()[0]})
		time.Sleep(30 * time.Minute)
		require.NoError(t, g.reapOnce(t.Context()))
		assert.Equal(t, []string{"i3"}, a.ids())
	})
}

// Only what this process has made ends with it: its replicas live on.
func TestStoppingGatewayEndsWhatItMade(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*Config)
		left []string
	}{
		"on_exit kill":      {func(cfg *Config) { cfg.Reaper.EndOnExit = true }, []string{"i2", "i3"}},
		"on_exit keep":      {func(*Config) {}, []string{"i1", "i2", "i3"}},
		"no reaper, no end": {func(cfg *Config) { cfg.Reaper = Reaper{EndOnExit: true} }, []string{"i1", "i2", "i3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAccount()
				g, b := newReaping(t, a, tt.edit)
				a.put("i1", time.Hour)
				a.put("i2", time.Hour)
				a.put("i3", time.Hour, "lifecycle", map[string]any{"onTimeout": "pause"})
				g.state.lives.add("i1", "team-a")
				g.state.lives.use("i2", "team-a")()
				g.state.lives.add("i3", "team-a")
				g.EndMade()
				require.NoError(t, g.Close())
				assert.Equal(t, tt.left, a.ids())
				causes := b.causes(t, g)
				if len(tt.left) == 2 {
					assert.Equal(t, map[string]string{"i1": endedByShutdown, "i3": endedByShutdown}, causes)
					assert.Equal(t, "paused", a.sandboxes["i3"]["state"])
				} else {
					assert.Empty(t, causes)
				}
			})
		})
	}
}

// E2B hangs while the gateway stops: it gives up within its grace.
func TestStoppingGatewayDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &scriptedAPI{ends: []int{-1}, reads: []int{-1}}
		g, _ := newEnder(t, api, func(cfg *Config) { cfg.Reaper = Reaper{Interval: time.Minute, EndOnExit: true} })
		for i := range 200 {
			g.state.lives.add(fmt.Sprint("i", i), "team-a")
		}
		begun := time.Now()
		g.EndMade()
		require.NoError(t, g.Close())
		assert.LessOrEqual(t, time.Since(begun), 2*exitGrace+endTimeout)
	})
}

// What waits for a program is in use, and what a client made and left is not.
func TestReaperLeavesWarmSandboxes(t *testing.T) {
	h := newPoolHouse(t, 2, func(cfg *Config) { cfg.Reaper = Reaper{Interval: time.Minute, IdleGrace: time.Millisecond} })
	h.run(t, echo)
	warm := h.ready(t, 2)
	own := h.create(t, keyA, `{"templateID":"base"}`)
	require.Eventually(t, func() bool { return h.g.state.lives.isIdle(own.ID, time.Millisecond) }, 10*time.Second, time.Millisecond)
	require.NoError(t, h.g.reapOnce(t.Context()))
	require.ElementsMatch(t, warm, h.left(t))
}
