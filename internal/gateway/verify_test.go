package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/emulator"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// altered is an emulated E2B whose reports of a sandbox are changed on their way;
// fail answers in its place where it returns a status.
type altered struct {
	*emulator.Emulator
	edit func(info map[string]any)
	fail func(r *http.Request) int
}

func (a *altered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.fail != nil {
		if status := a.fail(r); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	if a.edit == nil || r.Method != http.MethodGet {
		a.Emulator.ServeHTTP(w, r)
		return
	}
	rec := httptest.NewRecorder()
	a.Emulator.ServeHTTP(rec, r)
	var info map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &info); err == nil && rec.Code == http.StatusOK {
		a.edit(info)
		rec.Body.Reset()
		_ = json.NewEncoder(rec.Body).Encode(info)
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func newVerifyingHouse(t *testing.T, a *altered, edits ...func(*Config)) *vaultHouse {
	t.Helper()
	a.Emulator = newEmulator(t)
	v := &vaultHouse{e2b: a.Emulator, guard: new(wordGuard), state: NewState()}
	v.house = newHouse(t, a.ServeHTTP, func(cfg *Config) {
		vault(cfg)
		cfg.Guard, cfg.State, cfg.Verify = v.guard, v.state, true
		cfg.Policy.Network = policy.Network{Allow: []string{"pypi.org", "203.0.113.0/24"}}
		cfg.Policy.Persistence = policy.Persistence{Pause: true, Fork: true}
		for _, edit := range edits {
			edit(cfg)
		}
	})
	return v
}

// running is how many sandboxes E2B has.
func (v *vaultHouse) running(t *testing.T) int {
	t.Helper()
	var list []any
	require.NoError(t, json.Unmarshal([]byte(v.direct(t, "GET", "/sandboxes", nil, nil).Body), &list))
	return len(list)
}

func network(info map[string]any) map[string]any {
	n, _ := info["network"].(map[string]any)
	return n
}

// An API that does not do what it was asked to must not mean an open network: its
// sandbox is gone before the client hears of it. See alibaba/OpenSandbox, whose
// egress limits are dropped with a warning where they cannot be had.
func TestSandboxesThatAreNotWhatWasAskedForAreKilled(t *testing.T) {
	later := func(info map[string]any, d time.Duration) {
		start, err := time.Parse(time.RFC3339, info["startedAt"].(string))
		if err == nil {
			info["endAt"] = start.Add(d).Format(time.RFC3339Nano)
		}
	}
	for name, tt := range map[string]struct {
		edit   func(map[string]any)
		reason string
		// absent says that the field is only not reported.
		absent bool
	}{
		"no network":              {func(i map[string]any) { delete(i, "network") }, "does not report network", true},
		"null for a network":      {func(i map[string]any) { i["network"] = nil }, "does not report network", true},
		"an empty network":        {func(i map[string]any) { i["network"] = map[string]any{} }, "does not report network.denyOut", true},
		"a network of a string":   {func(i map[string]any) { i["network"] = "blocked" }, "network is a string", false},
		"no internet access":      {func(i map[string]any) { delete(i, "allowInternetAccess") }, "does not report allowInternetAccess", true},
		"null internet access":    {func(i map[string]any) { i["allowInternetAccess"] = nil }, "does not report allowInternetAccess", true},
		"internet access":         {func(i map[string]any) { i["allowInternetAccess"] = true }, "access to the internet", false},
		"nothing denied":          {func(i map[string]any) { network(i)["denyOut"] = []string{} }, "does not deny", false},
		"half denied":             {func(i map[string]any) { network(i)["denyOut"] = []string{"0.0.0.0/1", "128.0.0.0/1"} }, "does not deny", false},
		"everything allowed":      {func(i map[string]any) { network(i)["allowOut"] = []string{"pypi.org", "0.0.0.0/0"} }, "may reach 0.0.0.0/0", false},
		"a host more":             {func(i map[string]any) { network(i)["allowOut"] = []string{"evil.example"} }, "may reach evil.example", false},
		"no list but null hosts":  {func(i map[string]any) { network(i)["allowOut"] = []any{nil} }, "allowOut", false},
		"a proxy":                 {func(i map[string]any) { network(i)["egressProxy"] = map[string]any{"address": "a:1"} }, "egressProxy", false},
		"rules":                   {func(i map[string]any) { network(i)["rules"] = map[string]any{"a": []any{}} }, "rules", false},
		"public ports":            {func(i map[string]any) { network(i)["allowPublicTraffic"] = true }, "open to everybody", false},
		"no word on public ports": {func(i map[string]any) { delete(network(i), "allowPublicTraffic") }, "does not report network.allowPublicTraffic", true},
		"a longer life":           {func(i map[string]any) { later(i, time.Hour) }, "a lifetime of 1h0m0s instead of 2m0s", false},
		"no end":                  {func(i map[string]any) { delete(i, "endAt") }, "does not report startedAt and endAt", true},
		"an end in other words":   {func(i map[string]any) { i["endAt"] = "never" }, "endAt", false},
		"another sandbox":         {func(i map[string]any) { i["sandboxID"] = "iother" }, "another sandbox", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, legacy := range []bool{false, true} {
				v := newVerifyingHouse(t, &altered{edit: tt.edit}, func(cfg *Config) { cfg.Upstream.Legacy = legacy })
				got := v.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", keyA), strings.NewReader(`{"templateID":"base","timeout":120}`))
				if legacy && tt.absent {
					require.Equal(t, 201, got.Status, got.Body)
					continue
				}
				require.Equal(t, 403, got.Status, got.Body)
				require.Contains(t, got.Body, "it was killed: ")
				require.Contains(t, got.Body, tt.reason)
				require.NotContains(t, got.Body, "envdAccessToken")
				require.Zero(t, v.running(t))
			}
		})
	}
}

// What is as asked for passes, whatever the policy, and costs one question.
func TestSandboxesThatAreWhatWasAskedForPass(t *testing.T) {
	for name, tt := range map[string]struct {
		network policy.Network
		body    string
	}{
		"blocked":              {policy.Network{}, `{"templateID":"base"}`},
		"a list":               {policy.Network{Allow: []string{"pypi.org", "203.0.113.0/24"}}, `{"templateID":"base"}`},
		"the client's choice":  {policy.Network{Allow: []string{"pypi.org", "203.0.113.0/24"}}, `{"templateID":"base","network":{"allowOut":["203.0.113.7"]}}`},
		"nothing by choice":    {policy.Network{Allow: []string{"pypi.org"}}, `{"templateID":"base","allow_internet_access":false}`},
		"the whole internet":   {policy.Network{Internet: true}, `{"templateID":"base"}`},
		"the client's own way": {policy.Network{Internet: true}, `{"templateID":"base","network":{"allowOut":["1.1.1.1"],"denyOut":["0.0.0.0/0"]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVerifyingHouse(t, new(altered), func(cfg *Config) { cfg.Policy.Network = tt.network })
			v.create(t, keyA, tt.body)
			reached := v.reached()
			require.Len(t, reached, 2)
			require.Equal(t, "GET", reached[1].Method)
		})
	}
}

// Even an open network leaves the ports closed, and the lifetime bounded.
func TestAnOpenNetworkIsVerifiedTooWhereItIsNotOpen(t *testing.T) {
	v := newVerifyingHouse(t, &altered{edit: func(i map[string]any) { delete(network(i), "allowPublicTraffic") }}, func(cfg *Config) { cfg.Policy.Network = policy.Network{Internet: true} })
	require.Equal(t, 403, v.ask(t, keyA).Status)
	require.Zero(t, v.running(t))
}

// A sandbox that cannot be read back is killed; a hitch is not a failure.
func TestSandboxesThatCannotBeReadBackAreKilled(t *testing.T) {
	for name, tt := range map[string]struct {
		failures int32
		legacy   bool
		status   int
	}{
		"a hitch":                       {1, false, 201},
		"no answer":                     {2, false, 403},
		"no answer, and the API is old": {2, true, 201},
	} {
		t.Run(name, func(t *testing.T) {
			var tries atomic.Int32
			v := newVerifyingHouse(t, &altered{fail: func(r *http.Request) int {
				if r.Method == http.MethodGet && tries.Add(1) <= tt.failures {
					return http.StatusInternalServerError
				}
				return 0
			}}, func(cfg *Config) { cfg.Upstream.Legacy = tt.legacy })
			require.Equal(t, tt.status, v.ask(t, keyA).Status)
			want := 0
			if tt.status == 201 {
				want = 1
			}
			require.Equal(t, want, v.running(t))
		})
	}
}

// A kill that fails is tried again behind the call, which says so.
func TestAKillThatFailsIsTriedAgain(t *testing.T) {
	var kills atomic.Int32
	v := newVerifyingHouse(t, &altered{
		edit: func(i map[string]any) { delete(i, "network") },
		fail: func(r *http.Request) int {
			if r.Method == http.MethodDelete && kills.Add(1) == 1 {
				return http.StatusServiceUnavailable
			}
			return 0
		},
	})
	got := v.ask(t, keyA)
	require.Equal(t, 403, got.Status)
	require.Contains(t, got.Body, "e2bguard is trying to end it")
	require.Eventually(t, func() bool { return v.running(t) == 0 }, 10*time.Second, 20*time.Millisecond)
}

// All forks of a call are verified; one that is not as asked ends them all.
func TestForksAreVerified(t *testing.T) {
	a := new(altered)
	v := newVerifyingHouse(t, a)
	one := v.create(t, keyA, `{"templateID":"base"}`)
	fork := func() answer {
		return v.do(t, "POST", "/sandboxes/"+one.ID+"/fork", headers("X-API-KEY", keyA), strings.NewReader(`{"count":3}`))
	}
	got := fork()
	require.Equal(t, 201, got.Status, got.Body)
	require.Equal(t, 4, v.running(t))
	var reads atomic.Int32
	a.edit = func(i map[string]any) {
		if reads.Add(1) == 2 {
			i["allowInternetAccess"] = true
		}
	}
	require.Equal(t, 403, fork().Status)
	a.edit = nil
	require.Equal(t, 4, v.running(t), "what was there before stays")
}

// A sandbox keeps the network it was made with. One that is woken under a policy
// that is narrower now sleeps on; its data are not the gateway's to delete.
func TestWokenSandboxesAreVerified(t *testing.T) {
	a := new(altered)
	v := newVerifyingHouse(t, a)
	one := v.create(t, keyA, `{"templateID":"base"}`)
	connect := func(path string) answer {
		return v.do(t, "POST", path, headers("X-API-KEY", keyA), strings.NewReader(`{"timeout":60}`))
	}
	paths := []string{"/v2/sandboxes/" + one.ID + "/connect", "/sandboxes/" + one.ID + "/connect", "/sandboxes/" + one.ID + "/resume"}
	for _, path := range paths {
		require.Equal(t, 204, connect("/sandboxes/"+one.ID+"/pause").Status)
		got := connect(path)
		require.Equal(t, 201, got.Status, got.Body)
	}
	a.edit = func(i map[string]any) {
		if n := network(i); n != nil {
			n["allowOut"] = []string{"pypi.org", "wider.example"}
		}
	}
	require.Equal(t, 200, connect(paths[0]).Status, "what runs is not looked at again")
	require.Equal(t, 204, connect("/sandboxes/"+one.ID+"/pause").Status)
	for _, path := range paths {
		got := connect(path)
		require.Equal(t, 403, got.Status, got.Body)
		require.Contains(t, got.Body, "it was paused again")
		require.Contains(t, got.Body, "wider.example")
		require.Contains(t, v.direct(t, "GET", "/sandboxes/"+one.ID, nil, nil).Body, `"state":"paused"`)
	}
}

// An answer that names no sandbox leaves nothing to verify, so it is not handed
// on, with clients' own keys too.
func TestAnswersThatNameNoSandboxAreNotHandedOn(t *testing.T) {
	for _, body := range []string{"[]", "{}", "garbage", `{"sandboxID":7}`} {
		h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			_, _ = w.Write([]byte(body))
		}, func(cfg *Config) { cfg.Verify = true })
		got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", "e2b_00"), strings.NewReader(`{"templateID":"base"}`))
		require.Equal(t, 502, got.Status, body)
		require.Contains(t, got.Body, "was not understood")
	}
}

// In pass-through mode the gateway asks with the client's own key.
func TestVerifyingInPassThroughUsesTheClientsKey(t *testing.T) {
	v := newVerifyingHouse(t, new(altered), func(cfg *Config) {
		cfg.Clients, cfg.Upstream.APIKey, cfg.Seal = nil, redact.Secret{}, nil
	})
	got := v.do(t, "POST", "/sandboxes", headers("X-API-KEY", "e2b_cc"), strings.NewReader(`{"templateID":"base","timeout":60}`))
	require.Equal(t, 201, got.Status, got.Body)
	require.Len(t, v.reached(), 2)
	require.Equal(t, "e2b_cc", v.reached()[1].Header.Get("X-Api-Key"))
}
