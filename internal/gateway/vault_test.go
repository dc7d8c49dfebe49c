package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/emulator"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
	"github.com/e2bguard/e2bguard/internal/seal"
)

const (
	keyA = "e2b_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	keyB = "e2b_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// testSealer seals with the first of some keys of one repeated byte each.
func testSealer(bytes ...string) *seal.Sealer {
	var text string
	for _, b := range bytes {
		text += strings.Repeat(b, 32) + " "
	}
	keys, err := seal.ParseKeys(text)
	if err != nil {
		panic(err)
	}
	s, err := seal.New(keys...)
	if err != nil {
		panic(err)
	}
	return s
}

func sealedEnvd(sandbox, client, inner string) string {
	return testSealer("11").Seal(seal.Token{Kind: seal.Envd, Sandbox: sandbox, Client: client, Inner: inner})
}

// vaultHouse is a vault-mode gateway before an emulated E2B, which enforces
// tokens as E2B does.
type vaultHouse struct {
	*house
	e2b   *emulator.Emulator
	guard *wordGuard
	state *State
}

// forgive forgets the failures so far.
func (v *vaultHouse) forgive() { v.state.suspects = newSuspects() }

func newEmulator(t *testing.T) *emulator.Emulator {
	t.Helper()
	e, err := emulator.New(emulator.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func newVaultHouse(t *testing.T, e2b *emulator.Emulator, edits ...func(*Config)) *vaultHouse {
	t.Helper()
	v := &vaultHouse{e2b: e2b, guard: new(wordGuard), state: NewState()}
	v.house = newHouse(t, e2b.ServeHTTP, func(cfg *Config) {
		vault(cfg)
		cfg.Guard, cfg.State = v.guard, v.state
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
		for _, edit := range edits {
			edit(cfg)
		}
	})
	return v
}

// made is what a create answer says.
type made struct {
	ID      string `json:"sandboxID"`
	Envd    string `json:"envdAccessToken"`
	Traffic string `json:"trafficAccessToken"`
}

func (v *vaultHouse) create(t *testing.T, key, body string) made {
	t.Helper()
	got := v.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", key), strings.NewReader(body))
	require.Equal(t, 201, got.Status, got.Body)
	return parseMade(t, got.Body)
}

func parseMade(t *testing.T, body string) made {
	t.Helper()
	var m made
	require.NoError(t, json.Unmarshal([]byte(body), &m))
	return m
}

// direct asks the emulator past the gateway, with E2B's own key.
func (v *vaultHouse) direct(t *testing.T, method, path string, header http.Header, body io.Reader) answer {
	t.Helper()
	r := httptest.NewRequest(method, path, body)
	r.Host = "127.0.0.1"
	for k, values := range header {
		r.Header[k] = values
	}
	r.Header.Set("X-Api-Key", "e2b_00000000000000000000000000000000000000aa")
	w := httptest.NewRecorder()
	v.e2b.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// real is what E2B's own answer says of a sandbox.
func (v *vaultHouse) real(t *testing.T, id string) made {
	t.Helper()
	got := v.direct(t, "POST", "/v2/sandboxes/"+id+"/connect", nil, nil)
	require.Equal(t, 200, got.Status, got.Body)
	return parseMade(t, got.Body)
}

// to are the headers of a call for a sandbox's port.
func (m made) to(port string, more ...string) http.Header {
	return headers(append([]string{"E2b-Sandbox-Id", m.ID, "E2b-Sandbox-Port", port}, more...)...)
}

func (m made) start(more ...string) http.Header {
	return m.to("49983", append([]string{"Content-Type", "application/connect+json", "Connect-Protocol-Version", "1"}, more...)...)
}

// nothingSpent fails if a call cost more than a line in the log: a guard's
// answer, or a request to E2B other than who made the sandbox.
func (v *vaultHouse) nothingSpent(t *testing.T, call func() answer) answer {
	t.Helper()
	subjects, requests, lines := len(v.guard.saw()), len(v.reached()), v.log.Len()
	got := call()
	require.Len(t, v.guard.saw(), subjects, "the guard was asked")
	for _, r := range v.reached()[requests:] {
		require.Equal(t, "GET", r.Method)
		require.Regexp(t, `^/sandboxes/[a-z0-9]+$`, r.Path)
	}
	require.LessOrEqual(t, v.log.Len(), lines+1)
	return got
}

func TestTokensAreSealed(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), func(cfg *Config) { cfg.Policy.Persistence.Fork = true })
	sb := v.create(t, keyA, `{"templateID":"base"}`)
	real := v.real(t, sb.ID)
	want := made{
		ID:      sb.ID,
		Envd:    sealedEnvd(sb.ID, "team-a", real.Envd),
		Traffic: testSealer("11").Seal(seal.Token{Kind: seal.Traffic, Sandbox: sb.ID, Client: "team-a", Inner: real.Traffic}),
	}
	require.NotEmpty(t, real.Envd)
	require.NotEmpty(t, real.Traffic)
	require.Equal(t, want, sb)

	key := headers("X-API-KEY", keyA)
	for name, path := range map[string]string{"connect v2": "/v2/sandboxes/" + sb.ID + "/connect", "connect v1": "/sandboxes/" + sb.ID + "/connect"} {
		got := v.do(t, "POST", path, key, strings.NewReader(`{"timeout":60}`))
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, want, parseMade(t, got.Body), name)
	}
	got := v.do(t, "GET", "/sandboxes/"+sb.ID, key, nil)
	require.Equal(t, 200, got.Status, got.Body)
	require.Equal(t, made{ID: sb.ID, Envd: want.Envd}, parseMade(t, got.Body), "info has no traffic token")
	require.NotContains(t, got.Body, real.Envd)

	got = v.do(t, "POST", "/sandboxes/"+sb.ID+"/fork", key, strings.NewReader(`{"count":2}`))
	require.Equal(t, 201, got.Status, got.Body)
	var forks []struct{ Sandbox made }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &forks))
	require.Len(t, forks, 2)
	for _, f := range forks {
		require.Equal(t, sealedEnvd(f.Sandbox.ID, "team-a", v.real(t, f.Sandbox.ID).Envd), f.Sandbox.Envd)
	}
	got = v.do(t, "GET", "/sandboxes/"+forks[0].Sandbox.ID, key, nil)
	require.Equal(t, 200, got.Status, "a fork is its client's too")
}

// Where E2B gives no token the client gets one all the same: it is what the
// gateway knows the client by.
func TestTokensAreIssuedWhereE2BGivesNone(t *testing.T) {
	v := &vaultHouse{}
	v.house = newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/sandboxes") {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"sandboxID":"isbx1","templateID":"base"}`)
		}
	}, vault)
	sb := v.create(t, keyA, `{"templateID":"base"}`)
	require.Equal(t, sealedEnvd("isbx1", "team-a", ""), sb.Envd)
	require.NotEmpty(t, sb.Traffic)
	got := v.do(t, "GET", "/health", sb.to("49983", "X-Access-Token", sb.Envd), nil)
	require.Equal(t, 200, got.Status)
	last := v.reached()[1]
	require.Equal(t, "/health", last.Path)
	require.Empty(t, last.Header["X-Access-Token"])
}

func TestSealedTokensWork(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	sb := v.create(t, keyA, `{"templateID":"code-interpreter-v1"}`)
	real := v.real(t, sb.ID)
	got := v.do(t, "POST", "/process.Process/Start", sb.start("X-Access-Token", sb.Envd), command(t, "echo hi"))
	require.Equal(t, 200, got.Status, got.Body)
	require.Contains(t, got.Body, `"exited":true`)

	got = v.do(t, "GET", "/health", sb.to("49999", "E2B-Traffic-Access-Token", sb.Traffic), nil)
	require.Equal(t, 200, got.Status, got.Body)
	got = v.do(t, "GET", "/health", sb.to("49999", "X-Access-Token", sb.Envd), nil)
	require.Equal(t, 200, got.Status, got.Body)
	for _, r := range v.reached() {
		if r.Path == "/health" {
			require.Equal(t, []string{real.Traffic}, r.Header["E2b-Traffic-Access-Token"])
		}
		require.NotContains(t, r.Header.Get("X-Access-Token"), seal.Prefix)
	}
}

// Invariant: what a client holds, E2B does not take.
func TestSealedTokensAreWorthlessAtE2B(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	sb := v.create(t, keyA, `{"templateID":"code-interpreter-v1"}`)
	got := v.direct(t, "POST", "/process.Process/List", sb.to("49983", "Content-Type", "application/json", "X-Access-Token", sb.Envd), strings.NewReader("{}"))
	require.Equal(t, 401, got.Status, got.Body)
	got = v.direct(t, "GET", "/health", sb.to("49999", "E2b-Traffic-Access-Token", sb.Traffic), nil)
	require.Equal(t, 403, got.Status, got.Body)
}

func TestBorrowedTokensAreRefused(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	sb, other := v.create(t, keyA, `{"templateID":"base"}`), v.create(t, keyB, `{"templateID":"base"}`)
	real := v.real(t, sb.ID)
	for name, token := range map[string]string{
		"none":                         "",
		"E2B's own":                    real.Envd,
		"of another sandbox":           other.Envd,
		"for the other ports":          sb.Traffic,
		"of a client that is gone":     sealedEnvd(sb.ID, "team-gone", real.Envd),
		"sealed by another gateway":    testSealer("22").Seal(seal.Token{Kind: seal.Envd, Sandbox: sb.ID, Client: "team-a", Inner: real.Envd}),
		"garbage":                      "x",
		"the client's key":             keyA,
		"two, as one":                  sb.Envd + "," + sb.Envd,
		"E2B's own before the sealed":  real.Envd + "," + sb.Envd,
		"the sealed one, cut":          sb.Envd[:len(sb.Envd)-1],
		"in capitals":                  strings.ToUpper(sb.Envd),
		"the prefix and E2B's":         seal.Prefix + real.Envd,
		"sealed, with a kind too much": testSealer("11").Seal(seal.Token{Kind: seal.Volume, Sandbox: sb.ID, Client: "team-a", Inner: real.Envd}),
	} {
		t.Run(name, func(t *testing.T) {
			v.forgive()
			header := sb.start()
			if token != "" {
				header.Set("X-Access-Token", token)
			}
			got := v.nothingSpent(t, func() answer {
				return v.do(t, "POST", "/process.Process/Start", header, command(t, "evil"))
			})
			require.Contains(t, got.Body, `"unauthenticated"`)
			require.NotContains(t, got.Body, real.Envd)
			header.Set("Content-Type", "application/json")
			got = v.nothingSpent(t, func() answer { return v.do(t, "POST", "/process.Process/List", header, strings.NewReader("{}")) })
			require.Equal(t, 401, got.Status, got.Body)
		})
	}
	for name, token := range map[string]string{
		"E2B's own": real.Traffic, "of another sandbox": other.Traffic, "for envd": sb.Envd, "garbage": "x",
	} {
		t.Run("traffic token: "+name, func(t *testing.T) {
			v.forgive()
			got := v.nothingSpent(t, func() answer { return v.do(t, "GET", "/", sb.to("3000", "E2b-Traffic-Access-Token", token), nil) })
			require.Equal(t, 403, got.Status, got.Body)
			require.Contains(t, got.Body, "access token")
		})
	}
	// A good token beside a bad one is no excuse for it.
	got := v.do(t, "GET", "/health", sb.to("49983", "X-Access-Token", sb.Envd, "E2b-Traffic-Access-Token", real.Traffic), nil)
	require.Equal(t, 403, got.Status)
}

// A header that is the application's own passes to a user's port; a token of ours
// does not.
func TestApplicationsKeepTheirHeader(t *testing.T) {
	h := newHouse(t, nil, func(cfg *Config) {
		vault(cfg)
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
		cfg.State = NewState()
		cfg.State.remember("isbx1", sandbox{client: "team-a", trafficToken: redact.NewSecret("ta_1")})
	})
	h.do(t, "GET", "/", toSandbox("3000", "X-Access-Token", "the application's"), nil)
	h.do(t, "GET", "/", toSandbox("3000", "X-Access-Token", sealedEnvd("isbx1", "team-a", "ea_1")), nil)
	seen := h.reached()
	require.Len(t, seen, 2)
	require.Equal(t, "the application's", seen[0].Header.Get("X-Access-Token"))
	require.Empty(t, seen[1].Header["X-Access-Token"])
	require.Equal(t, "ta_1", seen[1].Header.Get("E2b-Traffic-Access-Token"))
}

// A key that is changed refuses no token of before while it is still listed.
func TestSealKeyRotation(t *testing.T) {
	e2b := newEmulator(t)
	before := newVaultHouse(t, e2b)
	sb := before.create(t, keyA, `{"templateID":"base"}`)
	during := newVaultHouse(t, e2b, func(cfg *Config) { cfg.Seal = testSealer("22", "11") })
	after := newVaultHouse(t, e2b, func(cfg *Config) { cfg.Seal = testSealer("22") })
	header := sb.to("49983", "X-Access-Token", sb.Envd, "Content-Type", "application/json")
	require.Equal(t, 200, during.do(t, "POST", "/process.Process/List", header, strings.NewReader("{}")).Status)
	require.Equal(t, 401, after.do(t, "POST", "/process.Process/List", header, strings.NewReader("{}")).Status)
	got := during.do(t, "POST", "/v2/sandboxes/"+sb.ID+"/connect", headers("X-API-KEY", keyA), nil)
	require.Equal(t, 200, got.Status, got.Body)
	require.NotEqual(t, sb.Envd, parseMade(t, got.Body).Envd)
}

func hashOf(key string) string {
	digest := sha256.Sum256([]byte(key))
	return hex.EncodeToString(digest[:])
}

func TestKeysMayBeGivenHashed(t *testing.T) {
	hash := HashPrefix + hashOf(keyA)
	h := newHouse(t, nil, func(cfg *Config) {
		vault(cfg)
		cfg.Clients[0].Key = redact.NewSecret(hash)
	})
	for key, want := range map[string]int{keyA: 200, keyB: 200, hash: 401, hash[len(HashPrefix):]: 401} {
		require.Equal(t, want, h.do(t, "GET", "/v2/templates", headers("X-API-KEY", key), nil).Status, key)
	}
	cfg := Config{}
	vault(&cfg)
	cfg.Clients[0].Key = redact.NewSecret(HashPrefix + "abc")
	_, err := New(cfg)
	require.ErrorContains(t, err, "64 hexadecimal digits")
}

// The key a runaway process is killed with is E2B's own.
func TestKillUsesTheRealToken(t *testing.T) {
	killed := make(chan http.Header, 1)
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/process.Process/SendSignal" {
			killed <- r.Header.Clone()
			return
		}
		streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`))
		for r.Context().Err() == nil {
			streamAnswer(w, frame(`{"event":{"data":{"stdout":"`+strings.Repeat("QUFB", 1000)+`"}}}`))
		}
	}, func(cfg *Config) {
		vault(cfg)
		cfg.Policy.Limits.OutputBytes = 10_000
	})
	h.do(t, "POST", "/process.Process/Start", startHeaders("X-Access-Token", sealedEnvd("isbx1", "team-a", "ea_1")), command(t, "yes"))
	require.Equal(t, []string{"ea_1"}, (<-killed)["X-Access-Token"])
}

// An answer that cannot be read may hold a token.
func TestAnswersNobodyUnderstoodAreNotHandedOn(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON":          `ea_real`,
		"no sandbox":       `{"envdAccessToken":"ea_real"}`,
		"a key twice":      `{"sandboxID":"isbx1","envdAccessToken":"x","envdAccessToken":"ea_real"}`,
		"a token of bytes": `{"sandboxID":"isbx1","envdAccessToken":["ea_real"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }, vault)
			for method, path := range map[string]string{"POST": "/v2/sandboxes", "GET": "/v2/sandboxes"} {
				got := h.do(t, method, path, headers("X-API-KEY", keyA), strings.NewReader(`{"templateID":"base"}`))
				require.Equal(t, 502, got.Status, got.Body)
				require.NotContains(t, got.Body, "ea_real")
			}
		})
	}
}

func TestVaultModeNeedsASealKey(t *testing.T) {
	cfg := Config{}
	vault(&cfg)
	cfg.Seal = nil
	_, err := New(cfg)
	require.ErrorContains(t, err, "seal key")
}

// Nothing that a call with a good token does is slowed by a flood without one.
func TestFloodsAreRefusedAndQuiet(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	sb := v.create(t, keyA, `{"templateID":"base"}`)
	statuses := map[int]int{}
	for i := range 3 * strangerFailures {
		header := headers("X-API-KEY", "e2b_"+strings.Repeat("c", 40))
		if i%2 == 1 {
			header = headers("E2b-Sandbox-Id", "inone"+string(rune('a'+i%26)), "E2b-Sandbox-Port", "49999")
		}
		statuses[v.do(t, "GET", "/health", header, nil).Status]++
	}
	require.Positive(t, statuses[429])
	got := v.do(t, "GET", "/v2/templates", headers("X-API-KEY", "wrong"), nil)
	require.Equal(t, 429, got.Status)
	require.Contains(t, got.Body, "too many calls")
	lookups := 0
	for _, r := range v.reached() {
		if strings.HasPrefix(r.Path, "/sandboxes/inone") {
			lookups++
		}
	}
	require.LessOrEqual(t, lookups, strangerFailures)
	loud := 0
	for _, e := range v.log.All() {
		if e.Level >= zapcore.InfoLevel {
			loud++
		}
	}
	require.LessOrEqual(t, loud, strangerFailures+10)

	require.Equal(t, 200, v.do(t, "GET", "/v2/sandboxes", headers("X-API-KEY", keyA), nil).Status)
	require.Equal(t, 204, v.do(t, "GET", "/health", sb.to("49983", "X-Access-Token", sb.Envd), nil).Status)
}

func TestSourceOfACall(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:1234":              "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:1234": "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:99":   "2001:db8:1:2::/64",
		"[::ffff:192.0.2.7]:1234":     "::ffff:192.0.2.7",
		"@":                           "@",
	} {
		c := &call{r: httptest.NewRequest("GET", "/", nil), target: route.Target{Sandbox: "isbx1"}}
		c.r.RemoteAddr = remote
		require.Equal(t, source{addr: want}, c.source())
		c.r = c.r.WithContext(WithClientIP(c.r.Context(), "198.51.100.1"))
		require.Equal(t, source{addr: "198.51.100.1"}, c.source())
		c.client, c.target.Sandbox = "team-a", ""
		require.Equal(t, source{client: "team-a"}, c.source())
	}
}

func TestSuspectsAreBounded(t *testing.T) {
	s := newSuspects()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range sourcesKept {
				s.count(source{addr: string(rune(i)) + string(rune(j))})
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, s.sources.Len(), sourcesKept)
}
