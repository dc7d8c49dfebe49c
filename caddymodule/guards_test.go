package caddymodule

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
)

func init() {
	caddy.RegisterModule(guest{})
	caddy.RegisterModule(stranger{})
}

// guest is a guard module as another author could write one.
type guest struct {
	Says string `json:"says,omitempty"`
}

func (guest) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: guardNamespace + ".guest", New: func() caddy.Module { return new(guest) }}
}

func (g *guest) Link(s GuardSettings) (guard.Link, error) {
	if g.Says == "no link" {
		return guard.Link{}, errors.New("the guest has no link")
	}
	return guard.Link{Name: "guest", Guard: g}, nil
}

func (g *guest) Review(_ context.Context, s guard.Subject) (guard.Verdict, error) {
	switch {
	case g.Says == "fail":
		return guard.Verdict{}, errors.New("no answer")
	case strings.Contains(s.Text, "harm"):
		return guard.Verdict{Decision: guard.Block, Reasoning: "the guest says it harms"}, nil
	}
	return guard.Verdict{Decision: guard.Pass}, nil
}

// stranger is in the namespace and is no guard.
type stranger struct{}

func (stranger) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: guardNamespace + ".stranger", New: func() caddy.Module { return new(stranger) }}
}

// envdUpstream answers every Start with a process that ends at once, and counts
// them.
func envdUpstream(t *testing.T) (url string, starts *atomic.Int64) {
	t.Helper()
	starts = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		starts.Add(1)
		w.Header().Set("Content-Type", "application/connect+json")
		_, _ = io.WriteString(w, frame(0, `{"event":{"start":{"pid":7}}}`)+frame(0, `{"event":{"end":{"exited":true,"status":"exit status 0"}}}`)+frame(2, `{}`))
	}))
	t.Cleanup(s.Close)
	return s.URL, starts
}

// start asks for a command as an SDK does and returns the stream's text.
func start(t *testing.T, base, command string) string {
	t.Helper()
	_, body := call(t, http.MethodPost, base+"/process.Process/Start", envdHeaders,
		frame(0, `{"process":{"cmd":"/bin/bash","args":["-l","-c",`+quote(command)+`]},"stdin":false}`))
	return body
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

// withGuards is a site whose guards are given as JSON, as another author's
// module without Caddyfile syntax would be.
func withGuards(t *testing.T, upstream, guards, onError string) (adapted, base string) {
	t.Helper()
	caddyfile, base := site(t, upstream, "on_error "+onError)
	config, err := adapt(caddyfile)
	require.NoError(t, err)
	changed := strings.Replace(string(config), `"handler":"e2b_guard"`, `"guards":`+guards+`,"handler":"e2b_guard"`, 1)
	require.NotEqual(t, string(config), changed)
	return changed, base
}

func TestGuestModuleIsAskedAndItsReasonReachesTheClient(t *testing.T) {
	upstream, starts := envdUpstream(t)
	config, base := withGuards(t, upstream, `[{"guard":"static"},{"guard":"guest"}]`, "block")
	t.Cleanup(func() { require.NoError(t, caddy.Stop()) })
	require.NoError(t, caddy.Load([]byte(config), true))

	assert.Contains(t, start(t, base, "echo fine"), `"end"`)
	assert.EqualValues(t, 1, starts.Load())
	assert.Contains(t, start(t, base, "echo harm"), "the guest says it harms")
	assert.Contains(t, start(t, base, "rm -rf /"), "Blocked by policy", "the static guard is asked as well")
	assert.EqualValues(t, 1, starts.Load(), "a blocked command reached the sandbox")
}

func TestModulesThatAreNoGuardsAreRefused(t *testing.T) {
	for guards, want := range map[string]string{
		`[{"guard":"stranger"}]`:                    "does not implement caddymodule.Guard",
		`[{"guard":"guest","says":"no link"}]`:      "the guest has no link",
		`[{"guard":"guest"},{"guard":"guest"}]`:     "name is taken",
		`[{"guard":"guest","unknown_option":true}]`: "unknown field",
		`[{"guard":"no_such_guard"}]`:               "no_such_guard",
		`[]`:                                        "at least one",
	} {
		t.Run(guards, func(t *testing.T) {
			config, _ := withGuards(t, "http://127.0.0.1:1", guards, "block")
			var cfg *caddy.Config
			require.NoError(t, caddy.StrictUnmarshalJSON([]byte(config), &cfg))
			require.ErrorContains(t, caddy.Validate(cfg), want)
		})
	}
}

// TestOnErrorReachesTheDecision: a fail-closed setting that is shown and stored
// is worthless if it is dropped on the way; see langwatch/tasks#430.
func TestOnErrorReachesTheDecision(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(code)
		}
	}
	for name, test := range map[string]struct {
		service        http.HandlerFunc // nil: nobody listens
		runsUnderAllow bool
	}{
		"unreachable":      {nil, true},
		"server error":     {status(http.StatusInternalServerError), true},
		"too many calls":   {status(http.StatusTooManyRequests), true},
		"key refused":      {status(http.StatusUnauthorized), false},
		"payment required": {status(http.StatusPaymentRequired), false},
		"forbidden":        {status(http.StatusForbidden), false},
	} {
		for _, onError := range []string{onErrorBlock, onErrorAllow} {
			t.Run(name+", on_error "+onError, func(t *testing.T) {
				t.Setenv("SUPERAGENT_API_KEY", "sk-1")
				service := "http://" + freeAddress(t)
				if test.service != nil {
					s := httptest.NewServer(test.service)
					t.Cleanup(s.Close)
					service = s.URL
				}
				upstream, starts := envdUpstream(t)
				caddyfile, base := site(t, upstream, "on_error "+onError+"\n\t\tguard superagent {\n\t\t\turl "+service+
					"\n\t\t\tapi_key {env.SUPERAGENT_API_KEY}\n\t\t\ttimeout 5s\n\t\t}")
				serve(t, caddyfile)

				got := start(t, base, "echo hello")
				if onError == onErrorAllow && test.runsUnderAllow {
					assert.Contains(t, got, `"end"`)
					assert.EqualValues(t, 1, starts.Load())
					return
				}
				assert.Contains(t, got, "permission_denied")
				assert.Zero(t, starts.Load(), "an unjudged command reached the sandbox")
			})
		}
	}
}

func TestStrictProfileSetsTheLimitsThatAreNotGiven(t *testing.T) {
	strict := Handler{Profile: profileStrict}
	limits, err := strict.limits()
	require.NoError(t, err)
	assert.Equal(t, 20*time.Second, limits.WallClock)
	assert.Equal(t, 20*time.Second, limits.BackgroundWallClock)
	assert.Equal(t, 5, limits.CPUSeconds)
	assert.EqualValues(t, 512<<20, limits.MemoryBytes)
	assert.Equal(t, 5*time.Minute, limits.LifetimeDefault)

	seconds, off := 60, int64(0)
	strict.Limits = &Limits{CPUSeconds: &seconds, Memory: &off}
	limits, err = strict.limits()
	require.NoError(t, err)
	assert.Equal(t, 60, limits.CPUSeconds, "what is given counts")
	assert.Zero(t, limits.MemoryBytes, "off is off")
	assert.Equal(t, 20*time.Second, limits.WallClock)
}

func TestDefaultsAreSafe(t *testing.T) {
	h := new(Handler)
	p, err := h.policy()
	require.NoError(t, err)
	assert.True(t, p.Network.Blocked())
	assert.Error(t, p.Ports.Check(3000))
	assert.Error(t, p.Ports.Check(8888))
	assert.Zero(t, p.Persistence)
	assert.Equal(t, time.Hour, p.Limits.LifetimeMax)
	assert.Positive(t, p.Limits.WallClock)
	assert.Positive(t, p.Limits.BackgroundWallClock)
	assert.Positive(t, p.Limits.CPUSeconds)
	assert.Positive(t, p.Limits.MemoryBytes)
	assert.Positive(t, p.Limits.OutputBytes)
	u, err := h.upstream(caddy.NewReplacer())
	require.NoError(t, err)
	assert.Equal(t, defaultAPIURL, u.APIURL.String())
	assert.Equal(t, defaultSandboxURL, u.SandboxURL.String())
	assert.True(t, u.APIKey.IsZero())
}

// TestJSONLimitsAreChecked: what a Caddyfile cannot say, JSON can.
func TestJSONLimitsAreChecked(t *testing.T) {
	negative, zero := caddy.Duration(-time.Second), caddy.Duration(0)
	n := -1
	bytes := int64(-1)
	for name, limits := range map[string]Limits{
		"lifetime negative": {SandboxLifetime: &negative},
		"lifetime off":      {SandboxLifetime: &zero},
		"maximum off":       {SandboxLifetimeMax: &zero},
		"wall clock":        {WallClock: &negative},
		"background":        {BackgroundWallClock: &negative},
		"cpu":               {CPUSeconds: &n},
		"memory":            {Memory: &bytes},
		"output":            {Output: &bytes},
	} {
		_, err := (&Handler{Limits: &limits}).limits()
		assert.Error(t, err, name)
	}
}
