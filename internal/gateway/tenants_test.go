package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/policy"
)

func chainOf(t *testing.T, links ...guard.Link) *guard.Chain {
	t.Helper()
	c, err := guard.NewChain(links, guard.ChainOptions{})
	require.NoError(t, err)
	return c
}

// Calls of two tenants at once must not share an id, a label or a verdict. See
// invariantlabs-ai/invariant-gateway, whose session id was one per process, and
// e2b-dev/infra PR 3324 for caches.
func TestTenantsAtOnceShareNothing(t *testing.T) {
	const each = 40
	var mu sync.Mutex
	labels := map[string][]string{} // by the text that only one call sent
	onlyTeamA := answeringSubject(func(s guard.Subject) guard.Verdict {
		mu.Lock()
		labels[s.Text] = append(labels[s.Text], s.Labels[guard.LabelClient]+" "+s.Labels[guard.LabelSandbox]+" "+s.Labels[guard.LabelRequest])
		mu.Unlock()
		if s.Labels[guard.LabelClient] == "team-a" {
			return guard.Verdict{Decision: guard.Pass}
		}
		return guard.Verdict{Decision: guard.Block, Reasoning: "not for " + s.Labels[guard.LabelClient]}
	})
	cache, err := guard.NewCache(chainOf(t, guard.Link{Name: "a", Guard: onlyTeamA}), guard.CacheOptions{})
	require.NoError(t, err)

	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/sandboxes" {
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprintf(w, `{"sandboxID":"i%s"}`, r.Header.Get("X-Package"))
			return
		}
		streamAnswer(w, endFrame("{}"))
	}, func(cfg *Config) {
		vault(cfg)
		cfg.Guard = cache
	})
	keys := map[string]string{"a": "e2b_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "b": "e2b_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}
	for team, key := range keys {
		got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", key, "X-Package", team), strings.NewReader(`{"templateID":"base"}`))
		require.Equal(t, 201, got.Status, got.Body)
	}

	ids := map[string]int{}
	var wg sync.WaitGroup
	for team := range keys {
		for i := range each {
			wg.Go(func() {
				// Both teams send the same commands, twice each.
				header := startHeaders("E2b-Sandbox-Id", "i"+team, "X-Access-Token", sealedEnvd("i"+team, "team-"+team, ""))
				got := h.do(t, "POST", "/process.Process/Start", header, command(t, fmt.Sprintf("echo %d", i/2)))
				mu.Lock()
				defer mu.Unlock()
				if team == "a" {
					if !strings.HasPrefix(got.Header.Get("E2b-Guard"), "pass; ") {
						t.Errorf("team a: %s", got.Body)
					}
				} else if !strings.Contains(got.Body, "not for team-b") {
					t.Errorf("team b: %s", got.Body)
				}
				_, id, _ := strings.Cut(got.Header.Get("E2b-Guard"), "id=")
				id, _, _ = strings.Cut(id, ";")
				ids[id]++
			})
		}
	}
	wg.Wait()
	require.Len(t, ids, 2*each, "every call has an id of its own")
	for text, seen := range labels {
		for _, l := range seen {
			client, rest, _ := strings.Cut(l, " ")
			sandbox, id, _ := strings.Cut(rest, " ")
			require.Equal(t, "i"+strings.TrimPrefix(client, "team-"), sandbox, text)
			require.Equal(t, 1, ids[id], "the guard was told an id no call has")
		}
	}
	for _, e := range h.log.FilterMessage("decision").FilterField(zapString("operation", "process.start")).All() {
		f := e.ContextMap()
		require.Equal(t, "i"+strings.TrimPrefix(f["client"].(string), "team-"), f["sandbox"])
	}
}

// answeringSubject is a guard that answers by the subject.
type answeringSubject func(guard.Subject) guard.Verdict

func (a answeringSubject) Review(_ context.Context, s guard.Subject) (guard.Verdict, error) {
	return a(s), nil
}

// A guard that takes long uses up the client's patience, not its call: short of
// the client's deadline the call goes through, and a guard that never answers is
// given up before it. See the E2B Python SDK's changelog of 2.38.0.
func TestGuardLatencyFitsTheClientsBudget(t *testing.T) {
	slow := answering(func(ctx context.Context) (guard.Verdict, error) {
		select {
		case <-time.After(200 * time.Millisecond):
			return guard.Verdict{Decision: guard.Pass}, nil
		case <-ctx.Done():
			return guard.Verdict{}, ctx.Err()
		}
	})
	for name, tc := range map[string]struct {
		timeout time.Duration
		want    string
	}{
		"shorter than the guard's deadline": {5 * time.Second, `{}`},
		"longer":                            {50 * time.Millisecond, "did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { streamAnswer(w, endFrame("{}")) }, func(cfg *Config) {
				cfg.Guard = chainOf(t, guard.Link{Name: "slow", Guard: slow, Timeout: tc.timeout})
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "POST", h.url+"/process.Process/Start", command(t, "ls"))
			require.NoError(t, err)
			req.Header = startHeaders("Connect-Timeout-Ms", "2000")
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			all, err := io.ReadAll(resp.Body)
			require.NoError(t, err, "the answer must come before the client's deadline")
			require.Contains(t, string(all), tc.want)
		})
	}
	require.Less(t, guard.DefaultTimeout, 60*time.Second, "the SDKs' request timeout")
}

// Our deadline for a guard is the guard's failure, and a client that leaves while
// a guard thinks is not. See e2b-dev/infra PR 3155.
func TestGuardTimeoutAndClientLeavingAreToldApart(t *testing.T) {
	asked := make(chan struct{}, 1)
	hangs := answering(func(ctx context.Context) (guard.Verdict, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return guard.Verdict{}, ctx.Err()
	})
	fault := func(h *house) string {
		var line map[string]any
		require.Eventually(t, func() bool {
			all := h.log.FilterMessage("decision").All()
			if len(all) == 0 {
				return false
			}
			line = all[0].ContextMap()
			return true
		}, 5*time.Second, time.Millisecond)
		require.Equal(t, "block", line["decision"])
		require.Equal(t, "guard_failed", line["code"])
		return zapText(line["subjects"])
	}

	h := newHouse(t, nil, func(cfg *Config) {
		cfg.Guard = chainOf(t, guard.Link{Name: "remote", Guard: hangs, Timeout: 50 * time.Millisecond})
	})
	got := h.do(t, "POST", "/filesystem.Filesystem/Remove", toSandbox("49983", "Content-Type", "application/json"), strings.NewReader(`{"path":"/tmp/x"}`))
	require.Equal(t, 403, got.Status, "not 499, nor anything else that blames the client")
	require.Contains(t, got.Body, "did not answer in time")
	require.Contains(t, fault(h), `"fault":"timeout"`)
	<-asked

	h = newHouse(t, nil, func(cfg *Config) {
		cfg.Guard = chainOf(t, guard.Link{Name: "remote", Guard: hangs})
		cfg.Mode.AllowOnError = true
	})
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", h.url+"/process.Process/Start", command(t, "ls"))
	require.NoError(t, err)
	req.Header = startHeaders()
	go func() {
		<-asked
		leave()
	}()
	_, err = http.DefaultTransport.RoundTrip(req)
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, fault(h), `"fault":"canceled"`)
	require.Empty(t, h.reached(), "on_error allow is not for callers who left")
}

// A sandbox is closed from its first moment: what closes it is in the create call
// itself, and no other call is made. See e2b-dev/infra PR 3313.
func TestCreateClosesTheSandboxInOneCall(t *testing.T) {
	for _, path := range []string{"/sandboxes", "/v2/sandboxes"} {
		h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"sandboxID":"isbx1"}`)
		}, nil)
		got := h.do(t, "POST", path, headers("X-API-KEY", "e2b_cc"), strings.NewReader(`{"templateID":"base","allow_internet_access":true}`))
		require.Equal(t, 201, got.Status, got.Body)
		require.Len(t, h.reached(), 1)
		var sent map[string]any
		require.NoError(t, json.Unmarshal(h.reached()[0].Body, &sent))
		require.Equal(t, false, sent["allow_internet_access"])
		network := sent["network"].(map[string]any)
		require.Equal(t, []any{"0.0.0.0/0"}, network["denyOut"])
		require.Equal(t, false, network["allowPublicTraffic"])
		if path == "/sandboxes" {
			require.Equal(t, true, sent["secure"])
		}
	}
}

// Values of environment variables are the sandbox's business: they go there and
// nowhere else. See vm0-ai/vm0#501.
func TestEnvironmentValuesStayOutOfTheLog(t *testing.T) {
	const value = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
	g := new(wordGuard)
	h := newHouse(t, nil, func(cfg *Config) { cfg.Guard, cfg.Policy.Limits.MemoryBytes = g, 0 })
	calls := map[string]struct {
		path   string
		header http.Header
		body   string
	}{
		"create":  {"/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), `{"templateID":"base","envVars":{"OPENAI_API_KEY":"` + value + `"}}`},
		"start":   {"/process.Process/Start", startHeaders(), string(frame(`{"process":{"cmd":"/bin/bash","args":["-l","-c","ls"],"envs":{"OPENAI_API_KEY":"` + value + `"}}}`))},
		"execute": {"/execute", toSandbox("49999", "Content-Type", "application/json"), `{"code":"1","env_vars":{"OPENAI_API_KEY":"` + value + `"}}`},
	}
	for name, tc := range calls {
		got := h.do(t, "POST", tc.path, tc.header, strings.NewReader(tc.body))
		require.Equal(t, 200, got.Status, name+": "+got.Body)
	}
	require.Len(t, h.reached(), len(calls))
	for _, r := range h.reached() {
		require.Contains(t, string(r.Body), value)
	}
	require.NotZero(t, h.log.Len())
	for _, e := range h.log.All() {
		require.NotContains(t, zapText(e.ContextMap()), value)
	}
	for _, s := range g.saw() {
		require.NotContains(t, zapText(s), value, "a variable that is not code is not shown to guards")
	}
}

// A refusal tells a program as much as a person: a bare 403 makes an agent look
// for a way round. See anthropic-experimental/sandbox-runtime#273.
func TestRefusalTellsAProgramWhatToDo(t *testing.T) {
	h := newHouse(t, nil, nil)
	got := h.do(t, "POST", "/files?path=/home/user/x.sh", toSandbox("49983", "Content-Type", "application/octet-stream"), strings.NewReader("#!/bin/sh\nevil\n"))
	require.Equal(t, 403, got.Status)
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.Body), &body))
	require.Equal(t, float64(403), body["code"])
	require.Equal(t, "policy", body["reason"])
	require.Equal(t, false, body["retryable"])
	require.NotEmpty(t, body["request_id"])
	require.Contains(t, body["message"], "Do not retry by another route")
	require.Contains(t, body["message"], body["request_id"])
}

// What opens a sandbox's ports is the gateway's to know: it never shows in the
// log. See truefoundry/trueforge PR 393 and langgenius/dify PR 40871.
func TestTokensOfASandboxStayOutOfTheLog(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/sandboxes" {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"sandboxID":"isbx1","trafficAccessToken":"ta_opens_all_ports","envdAccessToken":"ea_opens_envd"}`)
		}
	}, func(cfg *Config) {
		cfg.Policy.Ports = policy.Ports{Ranges: []policy.PortRange{{First: 3000, Last: 3000}}}
	})
	got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), strings.NewReader(`{"templateID":"base"}`))
	require.Equal(t, 201, got.Status)
	h.do(t, "GET", "/", toSandbox("3000"), nil)
	require.Equal(t, "ta_opens_all_ports", h.reached()[1].Header.Get("E2b-Traffic-Access-Token"))
	for _, e := range h.log.All() {
		require.NotContains(t, zapText(e.ContextMap()), "ta_opens")
		require.NotContains(t, zapText(e.ContextMap()), "ea_opens")
	}
}
