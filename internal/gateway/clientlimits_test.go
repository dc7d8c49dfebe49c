package gateway

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/policy"
)

// ask creates a sandbox and returns the whole answer.
func (v *vaultHouse) ask(t *testing.T, key string) answer {
	t.Helper()
	return v.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", key), strings.NewReader(`{"templateID":"base"}`))
}

func (v *vaultHouse) kill(t *testing.T, key, id string) {
	t.Helper()
	got := v.do(t, "DELETE", "/sandboxes/"+id, headers("X-API-KEY", key), nil)
	require.Equal(t, 204, got.Status, got.Body)
}

func clientLimits(l policy.ClientLimits) func(*Config) {
	return func(cfg *Config) { cfg.ClientLimits = l }
}

func requireRateLimited(t *testing.T, got answer, words string) {
	t.Helper()
	require.Equal(t, 429, got.Status, got.Body)
	require.Contains(t, got.Body, `{"code":429,"message":"Rate limit: `)
	require.Contains(t, got.Body, words)
	require.Contains(t, got.Body, `"reason":"client_limit"`)
}

// A limit on what runs at once holds for each client alone, and a sandbox that
// has ended makes room, whoever ended it.
func TestSandboxesAtOnce(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), clientLimits(policy.ClientLimits{Sandboxes: 2}))
	first, second := v.create(t, keyA, `{"templateID":"base"}`), v.create(t, keyA, `{"templateID":"base"}`)
	got := v.ask(t, keyA)
	requireRateLimited(t, got, "2 sandboxes running at once")
	require.Empty(t, got.Header.Get("Retry-After"), "the SDK would try again three times, silently and in vain")
	require.Equal(t, 201, v.ask(t, keyB).Status, "another client has room of its own")

	v.kill(t, keyA, first.ID)
	third := v.create(t, keyA, `{"templateID":"base"}`)
	requireRateLimited(t, v.ask(t, keyA), "at once")
	require.Equal(t, 200, v.do(t, "POST", "/v2/sandboxes/"+third.ID+"/connect", headers("X-API-KEY", keyA), strings.NewReader(`{}`)).Status, "what runs may be connected to")

	require.Equal(t, 204, v.direct(t, "DELETE", "/sandboxes/"+second.ID, nil, nil).Status)
	u := v.state.usageOf("team-a")
	u.counted = time.Time{}
	u.running[second.ID] = time.Now().Add(-newFor)
	require.Equal(t, 201, v.ask(t, keyA).Status, "one that ended past the gateway makes room too")
}

// What was refused by E2B, or by the gateway, holds no place.
func TestFailedCreationsHoldNoPlace(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), clientLimits(policy.ClientLimits{Sandboxes: 1}))
	for range 3 {
		got := v.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", keyA), strings.NewReader(`{"templateID":"base","autoPauseMemory":false}`))
		require.Equal(t, 400, got.Status, got.Body)
		got = v.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", keyA), strings.NewReader(`{"templateID":"base","autoPause":true}`))
		require.Equal(t, 403, got.Status, got.Body)
	}
	require.Equal(t, 201, v.ask(t, keyA).Status)
}

// A race must not make more than the limit: each creation takes its place before
// it is sent.
func TestSandboxesAtOnceHoldUnderARace(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), clientLimits(policy.ClientLimits{Sandboxes: 3}))
	statuses := make([]int, 12)
	var wg sync.WaitGroup
	for i := range statuses {
		wg.Go(func() { statuses[i] = v.ask(t, keyA).Status })
	}
	wg.Wait()
	count := map[int]int{}
	for _, s := range statuses {
		count[s]++
	}
	require.LessOrEqual(t, count[201], 3)
	require.Equal(t, 12, count[201]+count[429], count)
	require.Positive(t, count[201])
}

// Forks take a place each, and a paused sandbox none until it is woken.
func TestForksAndPausesCount(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), clientLimits(policy.ClientLimits{Sandboxes: 3}), func(cfg *Config) {
		cfg.Policy.Persistence = policy.Persistence{Pause: true, Fork: true}
	})
	one := v.create(t, keyA, `{"templateID":"base"}`)
	fork := func(n string) answer {
		return v.do(t, "POST", "/sandboxes/"+one.ID+"/fork", headers("X-API-KEY", keyA), strings.NewReader(`{"count":`+n+`}`))
	}
	requireRateLimited(t, fork("3"), "3 sandboxes running at once")
	require.Equal(t, 201, fork("2").Status)
	requireRateLimited(t, v.ask(t, keyA), "at once")

	require.Equal(t, 204, v.do(t, "POST", "/sandboxes/"+one.ID+"/pause", headers("X-API-KEY", keyA), strings.NewReader(`{}`)).Status)
	require.Equal(t, 201, v.ask(t, keyA).Status)
	for _, path := range []string{"/v2/sandboxes/" + one.ID + "/connect", "/sandboxes/" + one.ID + "/resume"} {
		requireRateLimited(t, v.do(t, "POST", path, headers("X-API-KEY", keyA), strings.NewReader(`{"timeout":60}`)), "at once")
	}
}

// The count is E2B's, so it holds on a gateway that was started anew and on every
// replica.
func TestSandboxesAtOnceHoldOnAnotherReplica(t *testing.T) {
	e2b := newEmulator(t)
	one := newVaultHouse(t, e2b, clientLimits(policy.ClientLimits{Sandboxes: 2}))
	one.create(t, keyA, `{"templateID":"base"}`)
	one.create(t, keyA, `{"templateID":"base"}`)
	requireRateLimited(t, newVaultHouse(t, e2b, clientLimits(policy.ClientLimits{Sandboxes: 2})).ask(t, keyA), "at once")
}

// Without a count there is no telling whether there is room.
func TestSandboxesThatCannotBeCountedAreNotMade(t *testing.T) {
	for name, listing := range map[string]http.HandlerFunc{
		"an error":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"no list":            func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"sandboxes":[]}`)) },
		"half a list":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`[{"sandboxID":"a"`)) },
		"an API without one": http.NotFound,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == "GET" {
					listing(w, r)
					return
				}
				w.WriteHeader(201)
			}, func(cfg *Config) { vault(cfg); cfg.ClientLimits.Sandboxes = 1 })
			got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", keyA), strings.NewReader(`{"templateID":"base"}`))
			require.Equal(t, 502, got.Status, got.Body)
			require.Contains(t, got.Body, "could not ask E2B how many sandboxes")
			for _, r := range h.reached() {
				require.Equal(t, "GET", r.Method)
			}
		})
	}
}

// A key that E2B does not know is for E2B to refuse, also where sandboxes are
// counted.
func TestCountingLeavesUnknownKeysToE2B(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		_, _ = w.Write([]byte(`{"code":401,"message":"Invalid API key"}`))
	}, func(cfg *Config) { cfg.ClientLimits.Sandboxes = 1 })
	got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", "e2b_00"), strings.NewReader(`{"templateID":"base"}`))
	require.Equal(t, 401, got.Status)
	require.Contains(t, got.Body, "Invalid API key")
}

func TestCreationsInAMinute(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), clientLimits(policy.ClientLimits{Creations: 2}), func(cfg *Config) {
		cfg.Clients[1].Limits = &policy.ClientLimits{}
		cfg.Policy.Persistence = policy.Persistence{Fork: true}
	})
	one := v.create(t, keyA, `{"templateID":"base"}`)
	got := v.do(t, "POST", "/sandboxes/"+one.ID+"/fork", headers("X-API-KEY", keyA), strings.NewReader(`{"count":2}`))
	requireRateLimited(t, got, "2 sandboxes in a minute")
	require.Equal(t, "30", got.Header.Get("Retry-After"), "one comes back every half minute")
	got = v.do(t, "POST", "/sandboxes/"+one.ID+"/fork", headers("X-API-KEY", keyA), strings.NewReader(`{"count":3}`))
	requireRateLimited(t, got, "Do less in one call")
	require.Empty(t, got.Header.Get("Retry-After"), "no waiting helps")
	require.Equal(t, 201, v.ask(t, keyA).Status)
	got = v.ask(t, keyA)
	requireRateLimited(t, got, "2 sandboxes in a minute")
	require.Equal(t, "30", got.Header.Get("Retry-After"))
	require.Equal(t, 200, v.do(t, "POST", "/v2/sandboxes/"+one.ID+"/connect", headers("X-API-KEY", keyA), strings.NewReader(`{}`)).Status)
	for range 5 {
		require.Equal(t, 201, v.ask(t, keyB).Status, "a client's own limits replace everybody's")
	}
}

func TestGuardCallsInAMinute(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), clientLimits(policy.ClientLimits{GuardCalls: 4}))
	a, b := v.create(t, keyA, `{"templateID":"code-interpreter-v1"}`), v.create(t, keyB, `{"templateID":"base"}`)
	run := func(m made) answer {
		return v.do(t, "POST", "/process.Process/Start", m.start("X-Access-Token", m.Envd), command(t, "true"))
	}
	for range 4 {
		require.NotContains(t, run(a).Body, "Rate limit")
	}
	seen := len(v.guard.saw())

	got := run(a)
	require.Equal(t, 200, got.Status)
	require.Contains(t, got.Body, `{"error":{"code":"resource_exhausted","message":"Rate limit: this client may have 4 pieces of code judged in a minute`)
	require.Contains(t, got.Body, "Wait 15s and try again")
	upload := func(name string) answer {
		return v.do(t, "POST", "/files?path=/home/user/"+name, a.to("49983", "X-Access-Token", a.Envd, "Content-Type", "application/octet-stream"), strings.NewReader("echo"))
	}
	requireRateLimited(t, upload("x.sh"), "4 pieces")
	require.NotEmpty(t, upload("x.sh").Header.Get("Retry-After"))
	got = v.do(t, "POST", "/execute", a.to("49999", "X-Access-Token", a.Envd, "Content-Type", "application/json"), strings.NewReader(`{"code":"1"}`))
	require.Equal(t, 200, got.Status)
	require.Contains(t, got.Body, `{"type":"error","name":"RateLimitExceeded","value":"Rate limit: `)
	require.Len(t, v.guard.saw(), seen, "what is over the limit is put before no guard")

	require.NotContains(t, run(b).Body, "Rate limit", "another client has a limit of its own")
}

// A limit fills again as time goes by; a reload changes it without filling it.
func TestLimitsInAMinuteFillAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p perMinute
		spend := func(limit, n int) (time.Duration, bool) {
			t.Helper()
			return p.spend(limit, n)
		}
		_, ok := spend(6, 6)
		require.True(t, ok, "a whole minute's worth at once")
		wait, ok := spend(6, 1)
		require.False(t, ok)
		require.Equal(t, 10*time.Second, wait)
		time.Sleep(wait)
		_, ok = spend(6, 1)
		require.True(t, ok)
		_, ok = spend(12, 1)
		require.False(t, ok, "a larger limit is not a full one")
		time.Sleep(5 * time.Second)
		_, ok = spend(12, 1)
		require.True(t, ok)
		wait, ok = spend(12, 13)
		require.False(t, ok)
		require.Zero(t, wait, "more than there ever is")
	})
}

func TestClientLimitsAreChecked(t *testing.T) {
	h := Config{Clients: []Client{{Limits: &policy.ClientLimits{Creations: -1}}}, ClientLimits: policy.ClientLimits{Sandboxes: -3, GuardCalls: 1 << 40}}
	err := h.validate()
	require.ErrorContains(t, err, "sandboxes -3")
	require.ErrorContains(t, err, "guard_calls 1099511627776")
	require.NoError(t, policy.ClientLimits{}.Validate())
	require.ErrorContains(t, policy.ClientLimits{Creations: -1}.Validate(), "creations -1")
}
