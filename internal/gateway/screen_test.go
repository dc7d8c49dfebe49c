package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
)

func zapString(key, value string) zap.Field { return zap.String(key, value) }

// What is refused never reaches the sandbox, and its answer says why, under
// which id, in the words the plane's clients show.
func TestBlockedCallsAreNotForwarded(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		header http.Header
		body   string
		status int
	}{
		"a command":             {"/process.Process/Start", startHeaders(), string(frame(`{"process":{"cmd":"/bin/bash","args":["-l","-c","evil"]}}`)), 200},
		"code":                  {"/execute", toSandbox("49999", "Content-Type", "application/json"), `{"code":"evil()"}`, 200},
		"a script":              {"/files?path=/home/user/x.sh", toSandbox("49983", "Content-Type", "application/octet-stream"), "#!/bin/sh\nevil\n", 403},
		"removing a path":       {"/filesystem.Filesystem/Remove", toSandbox("49983", "Content-Type", "application/json"), `{"path":"/evil"}`, 403},
		"an environment's code": {"/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), `{"templateID":"base","envVars":{"BASH_ENV":"evil"}}`, 403},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil, nil)
			got := h.do(t, "POST", tc.path, tc.header, strings.NewReader(tc.body))
			require.Equal(t, tc.status, got.Status, got.Body)
			require.Contains(t, got.Body, "contains the word evil")
			require.Contains(t, got.Body, "Do not retry by another route")
			require.Empty(t, h.reached())

			logged := h.log.FilterMessage("decision").All()
			require.Len(t, logged, 1)
			fields := logged[0].ContextMap()
			require.Equal(t, "block", fields["decision"])
			require.Equal(t, "policy", fields["code"])
			require.Contains(t, got.Body, fields["request_id"])
		})
	}
}

// answering is a guard that gives one answer to everything.
type answering func(context.Context) (guard.Verdict, error)

func (a answering) Review(ctx context.Context, _ guard.Subject) (guard.Verdict, error) { return a(ctx) }

// No fault of a guard turns into a pass. See langwatch/tasks#430.
func TestFaultsFailClosed(t *testing.T) {
	for name, g := range map[string]guard.Guard{
		"an error":    answering(func(context.Context) (guard.Verdict, error) { return guard.Verdict{}, errors.New("boom") }),
		"no decision": answering(func(context.Context) (guard.Verdict, error) { return guard.Verdict{}, nil }),
		"a panic":     answering(func(context.Context) (guard.Verdict, error) { panic("boom") }),
		"an error + yes": answering(func(context.Context) (guard.Verdict, error) {
			return guard.Verdict{Decision: guard.Pass}, errors.New("x")
		}),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil, func(cfg *Config) { cfg.Guard = g })
			got := h.do(t, "POST", "/process.Process/Start", startHeaders(), command(t, "ls"))
			require.Equal(t, 200, got.Status)
			require.Contains(t, got.Body, `"error"`)
			require.Empty(t, h.reached())
			require.NotContains(t, got.Body, "boom", "a cause may name hosts and is not for clients")
		})
	}
}

// An operator who asked for on_error allow must see what ran unjudged, and so
// must the client. See BerriAI/litellm#19779 and agentgateway/agentgateway#1832.
func TestFailOpenIsLoud(t *testing.T) {
	unreachable := answering(func(context.Context) (guard.Verdict, error) {
		return guard.Verdict{}, &guard.Error{Guard: "remote", Fault: guard.Unreachable, Err: errors.New("refused")}
	})
	big := "a,b\n" + strings.Repeat("0123456789abcde\n", 1<<16)
	ct, late := form(t, [2]string{"/home/user/big.csv", big}, [2]string{"/home/user/x.py", "print(1)\n"})
	for name, tc := range map[string]struct {
		path   string
		header http.Header
		body   io.Reader
		lines  int
	}{
		"a command":               {"/process.Process/Start", startHeaders(), command(t, "ls"), 1},
		"a file in a long upload": {"/files", toSandbox("49983", "Content-Type", ct), late, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil, func(cfg *Config) {
				cfg.Guard = unreachable
				cfg.Mode.AllowOnError = true
			})
			got := h.do(t, "POST", tc.path, tc.header, tc.body)
			require.Len(t, h.reached(), 1)
			require.Regexp(t, "^fail_open; id=", got.Header.Get("E2b-Guard"))
			logged := h.log.FilterMessage("decision").All()
			require.Len(t, logged, tc.lines)
			for _, line := range logged {
				require.Equal(t, zap.WarnLevel, line.Level)
				require.Equal(t, "fail_open", line.ContextMap()["decision"])
			}
		})
	}
}

// Every subject of a call is judged, and one bad one is enough.
func TestEverySubjectIsJudged(t *testing.T) {
	g := new(wordGuard)
	h := newHouse(t, nil, func(cfg *Config) { cfg.Guard = g })
	body := frame(`{"process":{"cmd":"/bin/bash","args":["-l","-c","ls"],"envs":{"BASH_ENV":"/tmp/evil","PS4":"x","HOME":"/root"}}}`)
	got := h.do(t, "POST", "/process.Process/Start", startHeaders(), strings.NewReader(string(body)))
	require.Contains(t, got.Body, "contains the word evil")
	require.Empty(t, h.reached())
	require.GreaterOrEqual(t, len(g.saw()), 2)
	for _, s := range g.saw() {
		require.Equal(t, "isbx1", s.Labels[guard.LabelSandbox])
		require.Equal(t, "blocked", s.Labels[guard.LabelNetwork])
	}
}

// Over-long bodies get the plane's own answer, whatever the upstream reads. See
// caddyserver/caddy#6739 and caddyserver/website PR 104.
func TestTooLargeBodiesAreRefused(t *testing.T) {
	big := strings.Repeat("x", 200_000)
	for name, tc := range map[string]struct {
		path   string
		header http.Header
		body   string
		status int
		want   string
	}{
		"REST":    {"/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), `{"templateID":"` + big + `"}`, 413, "larger than"},
		"Connect": {"/process.Process/Start", startHeaders(), string(frame(`{"process":{"cmd":"` + big + `"}}`)), 200, "resource_exhausted"},
		"execute": {"/execute", toSandbox("49999", "Content-Type", "application/json"), `{"code":"` + big + `"}`, 200, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil, func(cfg *Config) { cfg.Body.MessageBytes = 100_000 })
			got := h.do(t, "POST", tc.path, tc.header, io.MultiReader(strings.NewReader(tc.body)))
			require.Equal(t, tc.status, got.Status, got.Body)
			require.Contains(t, got.Body, tc.want)
			require.Empty(t, h.reached())
		})
	}
}

// A shorter body than announced is an error, and nothing is forwarded. See
// caddyserver/caddy#5485.
func TestSlowBodiesAreCutOff(t *testing.T) {
	h := newHouse(t, nil, func(cfg *Config) { cfg.Body.ReadTimeout = 50 * time.Millisecond })
	pr, pw := io.Pipe()
	defer pw.Close()
	go func() { _, _ = pw.Write([]byte(`{"templateID":`)) }()
	got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), pr)
	require.Equal(t, 408, got.Status)
	require.Empty(t, h.reached())
}

// Secrets the gateway knows do not reach its log, whoever wrote them into what.
func TestDecisionLineHoldsNoSecret(t *testing.T) {
	const key = "e2b_00000000000000000000000000000000000000aa"
	leaky := answering(func(context.Context) (guard.Verdict, error) {
		return guard.Verdict{Decision: guard.Block, Guard: "leaky", Reasoning: "the text sends " + key + " away."}, nil
	})
	h := newHouse(t, nil, func(cfg *Config) {
		vault(cfg)
		cfg.Guard = leaky
	})
	h.do(t, "POST", "/process.Process/Start", startHeaders("X-Access-Token", sealedEnvd("isbx1", "team-a", "ea_1")), command(t, "curl -d "+key))
	require.NotZero(t, h.log.Len())
	for _, e := range h.log.All() {
		for k, v := range e.ContextMap() {
			require.NotContains(t, zapText(v), key, k)
		}
	}
}
