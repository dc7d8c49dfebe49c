package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/redact"
)

func TestOwnerIsStampedAndHidden(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	sb := v.create(t, keyA, `{"templateID":"base","metadata":{"purpose":"x"}}`)
	var stamped struct{ Metadata map[string]string }
	require.NoError(t, json.Unmarshal([]byte(v.direct(t, "GET", "/sandboxes/"+sb.ID, nil, nil).Body), &stamped))
	require.Equal(t, map[string]string{"purpose": "x", "e2bguard-owner": "team-a", "e2bguard-gateway": testSealer("11").IDs()[0]}, stamped.Metadata)

	for _, path := range []string{"/sandboxes/" + sb.ID, "/sandboxes", "/v2/sandboxes"} {
		got := v.do(t, "GET", path, headers("X-API-KEY", keyA), nil)
		require.Equal(t, 200, got.Status)
		require.Contains(t, got.Body, `"purpose":"x"`)
		require.NotContains(t, got.Body, "e2bguard", path)
	}
	for _, key := range []string{"e2bguard-owner", "E2BGUARD-OWNER", "e2bguard-gateway"} {
		got := v.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", keyB), strings.NewReader(`{"templateID":"base","metadata":{"`+key+`":"team-a"}}`))
		require.Equal(t, 403, got.Status)
		require.Contains(t, got.Body, "this gateway's own")
	}
}

// Every operation on a sandbox, present and future: another client's is as if it
// did not exist.
func TestSandboxesOfOthersDoNotExist(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	sb := v.create(t, keyA, `{"templateID":"base"}`)
	var checked []string
	for _, row := range route.Table() {
		if row.Plane != route.Control || row.Default == route.Deny || !strings.Contains(row.Pattern, "{sandboxID}") {
			continue
		}
		checked = append(checked, row.Method+" "+row.Pattern)
		v.forgive()
		other := v.nothingSpent(t, func() answer {
			return v.do(t, row.Method, strings.ReplaceAll(row.Pattern, "{sandboxID}", sb.ID), headers("X-API-KEY", keyB), strings.NewReader(`{"timeout":60}`))
		})
		require.Equal(t, 404, other.Status, "%s: %s", checked, other.Body)
		none := v.nothingSpent(t, func() answer {
			return v.do(t, row.Method, strings.ReplaceAll(row.Pattern, "{sandboxID}", "inone"), headers("X-API-KEY", keyB), strings.NewReader(`{"timeout":60}`))
		})
		require.Equal(t, told(t, none), strings.ReplaceAll(told(t, other), sb.ID, "inone"), "the answers can be told apart")
		require.Equal(t, `404 Sandbox "inone" doesn't exist or you don't have access to it`, told(t, none))
	}
	require.GreaterOrEqual(t, len(checked), 14, checked)
	require.Equal(t, 200, v.do(t, "GET", "/sandboxes/"+sb.ID, headers("X-API-KEY", keyA), nil).Status, "it is untouched")
}

// told is the code and message of a REST refusal, without its request id.
func told(t *testing.T, a answer) string {
	t.Helper()
	var body struct {
		Code    int
		Message string
	}
	require.NoError(t, json.Unmarshal([]byte(a.Body), &body))
	message, _, _ := strings.Cut(body.Message, " [e2bguard request ")
	return fmt.Sprint(body.Code, " ", message)
}

// A sandbox made past the gateway, with E2B's own key, is nobody's here.
func TestSandboxesMadeElsewhereDoNotExist(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	for _, body := range []string{`{"templateID":"base"}`, `{"templateID":"base","metadata":{"e2bguard-owner":"team-gone"}}`, `{"templateID":"base","metadata":{"e2bguard-owner":""}}`} {
		sb := parseMade(t, v.direct(t, "POST", "/v2/sandboxes", nil, strings.NewReader(body)).Body)
		require.Equal(t, 404, v.do(t, "GET", "/sandboxes/"+sb.ID, headers("X-API-KEY", keyA), nil).Status)
		got := v.nothingSpent(t, func() answer { return v.do(t, "GET", "/contexts", sb.to("49999"), nil) })
		require.Equal(t, 404, got.Status) // the only status whose text the SDK shows there
		require.Contains(t, got.Body, "The sandbox was not found")
		got = v.nothingSpent(t, func() answer { return v.do(t, "GET", "/", sb.to("3000"), nil) })
		require.Equal(t, 502, got.Status)
	}
}

func TestListsShowOwnSandboxes(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	var mine []string
	for range 3 {
		mine = append(mine, v.create(t, keyA, `{"templateID":"base","metadata":{"tag":"x"}}`).ID)
		v.create(t, keyB, `{"templateID":"base","metadata":{"tag":"x"}}`)
		v.direct(t, "POST", "/v2/sandboxes", nil, strings.NewReader(`{"templateID":"base","metadata":{"tag":"x"}}`))
	}
	slices.Sort(mine)
	list := func(path string) ([]string, http.Header) {
		got := v.do(t, "GET", path, headers("X-API-KEY", keyA), nil)
		require.Equal(t, 200, got.Status, got.Body)
		var entries []made
		require.NoError(t, json.Unmarshal([]byte(got.Body), &entries))
		ids := []string{}
		for _, e := range entries {
			ids = append(ids, e.ID)
		}
		slices.Sort(ids)
		return ids, got.Header
	}
	for _, path := range []string{
		"/sandboxes", "/v2/sandboxes", "/v2/sandboxes?metadata=tag%3Dx", "/v2/sandboxes?metadata=e2bguard-owner%3Dteam-b",
		"/v2/sandboxes?metadata=tag%3Dx%26e2bguard-owner%3Dteam-b", "/v2/sandboxes?state=running,paused",
	} {
		ids, _ := list(path)
		if strings.Contains(path, "team-b") {
			require.Subset(t, mine, ids, path)
			continue
		}
		require.Equal(t, mine, ids, path)
	}
	first, header := list("/v2/sandboxes?limit=2")
	require.Len(t, first, 2)
	rest, _ := list("/v2/sandboxes?limit=2&nextToken=" + header.Get("X-Next-Token"))
	require.ElementsMatch(t, mine, append(first, rest...))
	ids, _ := list("/v2/sandboxes?metadata=tag%3Dy")
	require.Empty(t, ids)

	got := v.do(t, "GET", "/v2/sandboxes?metadata=a%3Db&metadata=c%3Dd", headers("X-API-KEY", keyA), nil)
	require.Equal(t, 400, got.Status)
}

// E2B's word on what a filter means is not relied on.
func TestListsAreFilteredWhateverE2BAnswers(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"sandboxID":"i1","metadata":{"e2bguard-owner":"team-a"}},{"sandboxID":"i2","metadata":{"e2bguard-owner":"team-b"}},{"sandboxID":"i3","envdAccessToken":"ea_3"}]`)
	}, vault)
	got := h.do(t, "GET", "/v2/sandboxes", headers("X-API-KEY", keyA), nil)
	require.Equal(t, `[{"sandboxID":"i1","metadata":{}}]`, got.Body)
}

func TestMetricsShowOwnSandboxes(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	mine, theirs := v.create(t, keyA, `{"templateID":"base"}`), v.create(t, keyB, `{"templateID":"base"}`)
	foreign := parseMade(t, v.direct(t, "POST", "/v2/sandboxes", nil, strings.NewReader(`{"templateID":"base"}`)).Body)
	got := v.do(t, "GET", "/sandboxes/metrics?sandbox_ids="+mine.ID+","+theirs.ID+","+foreign.ID, headers("X-API-KEY", keyA), nil)
	require.Equal(t, 200, got.Status, got.Body)
	var metrics struct{ Sandboxes map[string]any }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &metrics))
	require.Len(t, metrics.Sandboxes, 1)
	require.Contains(t, metrics.Sandboxes, mine.ID)
}

func TestSnapshotsAreListedForAnOwnSandbox(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), func(cfg *Config) { cfg.Policy.Persistence.Snapshot = true })
	sb := v.create(t, keyA, `{"templateID":"base"}`)
	got := v.do(t, "POST", "/sandboxes/"+sb.ID+"/snapshots", headers("X-API-KEY", keyA), strings.NewReader(`{"name":"team-a-mine"}`))
	require.Equal(t, 201, got.Status, got.Body)
	got = v.do(t, "GET", "/snapshots?sandboxID="+sb.ID+"-6532622b", headers("X-API-KEY", keyA), nil)
	require.Equal(t, 200, got.Status, got.Body)
	require.Contains(t, got.Body, "mine")
	for query, want := range map[string]int{"sandboxID=" + sb.ID: 404, "": 403, "name=mine": 403, "sandboxID=" + sb.ID + "&sandboxID=x": 403, "sandboxID=..": 400} {
		got := v.do(t, "GET", "/snapshots?"+query, headers("X-API-KEY", keyB), nil)
		require.Equal(t, want, got.Status, query)
	}
}

// A gateway that knows nothing (another replica, or after a restart) asks E2B,
// once for all who want to know.
func TestOwnersAreLookedUpOnce(t *testing.T) {
	e2b := newEmulator(t)
	sb := newVaultHouse(t, e2b).create(t, keyA, `{"templateID":"code-interpreter-v1"}`)
	v := newVaultHouse(t, e2b)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			key := keyA
			want := 200
			if i%2 == 1 {
				key, want = keyB, 404
			}
			got := v.do(t, "GET", "/sandboxes/"+sb.ID+"/metrics", headers("X-API-KEY", key), nil)
			if got.Status != want {
				t.Errorf("status %d: %s", got.Status, got.Body)
			}
		})
	}
	wg.Wait()
	lookups := 0
	for _, r := range v.reached() {
		if r.Path == "/sandboxes/"+sb.ID {
			lookups++
			require.Equal(t, "e2b_00000000000000000000000000000000000000aa", r.Header.Get("X-Api-Key"))
		}
	}
	require.LessOrEqual(t, lookups, 2, "one question, or one more for who came as the first was answered")
	require.Equal(t, 200, v.do(t, "GET", "/sandboxes/"+sb.ID, headers("X-API-KEY", keyA), nil).Status)
}

// Calls that carry no token at all reach what a client of this gateway made.
func TestCallsWithoutATokenNeedAnOwnedSandbox(t *testing.T) {
	h := newVaultHouse(t, newEmulator(t))
	sb := h.create(t, keyA, `{"templateID":"code-interpreter-v1"}`)
	require.Equal(t, 204, h.do(t, "GET", "/health", sb.to("49983"), nil).Status)
	require.Equal(t, 200, h.do(t, "GET", "/contexts", sb.to("49999"), nil).Status)
	got := h.do(t, "GET", "/", sb.to("3000"), nil)
	require.Equal(t, 502, got.Status)
	require.Contains(t, got.Body, "port is not open", "it reached E2B's edge with the token it needs")

	// Running code takes more than knowing an id.
	got = h.nothingSpent(t, func() answer {
		return h.do(t, "POST", "/execute", sb.to("49999", "Content-Type", "application/json"), strings.NewReader(`{"code":"evil"}`))
	})
	require.Contains(t, got.Body, "no access token")
	for _, path := range []string{"/metrics", "/files?path=a.txt"} {
		got = h.nothingSpent(t, func() answer { return h.do(t, "GET", path, sb.to("49983"), nil) })
		require.Equal(t, 401, got.Status, path)
	}
}

// Whose a sandbox is stays unsaid while E2B does not say it: neither "yours" nor
// "there is none".
func TestFailedLookupsAreNotAnswers(t *testing.T) {
	var broken atomic.Bool
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, `{"sandboxID":"isbx1","startedAt":"2026-11-30T18:00:00Z","metadata":{"e2bguard-owner":"team-a"}}`)
	}, vault)
	broken.Store(true)
	for range 2 {
		got := h.do(t, "GET", "/sandboxes/isbx1", headers("X-API-KEY", keyA), nil)
		require.Equal(t, 502, got.Status, got.Body)
		require.Contains(t, got.Body, `"retryable":true`)
	}
	broken.Store(false)
	require.Equal(t, 200, h.do(t, "GET", "/sandboxes/isbx1", headers("X-API-KEY", keyA), nil).Status)
}

func TestLookupsTakeNoOtherSandboxsWord(t *testing.T) {
	for name, body := range map[string]string{
		"another id":  `{"sandboxID":"isbx2","metadata":{"e2bguard-owner":"team-a"}}`,
		"a list":      `[{"sandboxID":"isbx1","metadata":{"e2bguard-owner":"team-a"}},{"sandboxID":"isbx2"}]`,
		"no owner":    `{"sandboxID":"isbx1"}`,
		"not a name":  `{"sandboxID":"isbx1","metadata":{"e2bguard-owner":["team-a"]}}`,
		"a near name": `{"sandboxID":"isbx1","metadata":{"e2bguard-owner":"team-a "}}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }, vault)
			require.Equal(t, 404, h.do(t, "DELETE", "/sandboxes/isbx1", headers("X-API-KEY", keyA), nil).Status)
			require.Len(t, h.reached(), 1)
		})
	}
}

func TestKilledSandboxesAreForgotten(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	sb := v.create(t, keyA, `{"templateID":"base"}`)
	require.Equal(t, 204, v.do(t, "DELETE", "/sandboxes/"+sb.ID, headers("X-API-KEY", keyA), nil).Status)
	require.Equal(t, 404, v.do(t, "DELETE", "/sandboxes/"+sb.ID, headers("X-API-KEY", keyA), nil).Status)
	require.Equal(t, 502, v.do(t, "GET", "/health", sb.to("49983", "X-Access-Token", sb.Envd), nil).Status, "E2B's own answer")
	v.state.forget(sb.ID)
	require.Equal(t, 502, v.do(t, "GET", "/health", sb.to("49983"), nil).Status)
}

// What E2B does not say of a paused sandbox is not forgotten.
func TestLookupsDoNotUnlearnTokens(t *testing.T) {
	state := NewState()
	state.remember("isbx1", sandbox{client: "team-a", envdToken: redact.NewSecret("ea_1"), envdKnown: true, trafficToken: redact.NewSecret("ta_1")})
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"sandboxID":"isbx1","state":"paused","startedAt":"2026-11-30T18:00:00Z","metadata":{"e2bguard-owner":"team-a"}}`)
	}, func(cfg *Config) {
		vault(cfg)
		cfg.State = state
	})
	require.Equal(t, 200, h.do(t, "GET", "/sandboxes/isbx1/metrics", headers("X-API-KEY", keyA), nil).Status)
	sb, _ := state.lookup("isbx1")
	require.False(t, sb.started.IsZero())
	require.Equal(t, "ea_1", sb.envdToken.Reveal())
	require.Equal(t, "ta_1", sb.trafficToken.Reveal())
}

// A lifetime is bounded after a restart too.
func TestLookupsKnowWhenASandboxStarted(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"sandboxID":"isbx1","startedAt":"`+time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339)+`","metadata":{"e2bguard-owner":"team-a"}}`)
	}, vault)
	got := h.do(t, "POST", "/sandboxes/isbx1/timeout", headers("X-API-KEY", keyA), strings.NewReader(`{"timeout":60}`))
	require.Equal(t, 403, got.Status, got.Body)
	require.Contains(t, got.Body, "cannot be extended")
}
