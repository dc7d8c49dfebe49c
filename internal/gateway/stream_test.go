package gateway

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/e2bguard/e2bguard/internal/policy"
)

// A sandbox that dies without a word must not hold its client for ever. See
// e2b-dev/E2B#1128.
func TestSilentUpstreamIsEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		header http.Header
		body   string
		answer func(http.ResponseWriter)
		want   string
	}{
		"a command": {
			"/process.Process/Start", startHeaders(), string(frame(`{"process":{"cmd":"/bin/bash","args":["-l","-c","sleep 1"]}}`)),
			func(w http.ResponseWriter) { streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`)) },
			`"code":"unavailable"`,
		},
		"code": {
			"/execute", toSandbox("49999", "Content-Type", "application/json"), `{"code":"1"}`,
			func(w http.ResponseWriter) {
				_, _ = io.WriteString(w, "{\"type\": \"number_of_executions\", \"execution_count\": 1}\n")
				_ = http.NewResponseController(w).Flush()
			},
			`"type": "end_of_execution"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
				tc.answer(w)
				<-r.Context().Done()
				close(gone)
			}, func(cfg *Config) { cfg.IdleTimeout, cfg.Policy.Limits.MemoryBytes = 100*time.Millisecond, 0 })
			got := h.do(t, "POST", tc.path, tc.header, strings.NewReader(tc.body))
			require.Equal(t, 200, got.Status)
			require.Contains(t, got.Body, tc.want)
			require.Contains(t, got.Body, "sent nothing for 100ms")
			<-gone
			require.Equal(t, 1, h.log.FilterField(zapString("code", "upstream_idle")).Len())
		})
	}
}

// An upstream that breaks off must not look like one that finished. See
// e2b-dev/E2B#921 and e2b-dev/infra PR 3281.
func TestUpstreamAbortStaysAborted(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		header http.Header
		body   string
		part   string
	}{
		"a command, mid-frame": {"/process.Process/Start", startHeaders(), string(frame(`{"process":{"cmd":"/bin/true"}}`)), string(frame(`{"event":{"start":{"pid":7}}}`)) + "\x00\x00"},
		"code, mid-line":       {"/execute", toSandbox("49999", "Content-Type", "application/json"), `{"code":"1"}`, `{"type": "stdout", "text": "hal`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/connect+json")
				_, _ = io.WriteString(w, tc.part)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}, nil)
			req, err := http.NewRequestWithContext(t.Context(), "POST", h.url+tc.path, strings.NewReader(tc.body))
			require.NoError(t, err)
			req.Header = tc.header
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				require.NoError(t, resp.Body.Close())
			}
			require.Error(t, err, "the client must see that the stream broke off")
		})
	}
}

func TestOutputLimitEndsTheStream(t *testing.T) {
	chunk := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 30_000)))
	gone, killed := make(chan struct{}), make(chan struct{})
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/process.Process/SendSignal" {
			close(killed)
			_, _ = io.WriteString(w, "{}")
			return
		}
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "kill -KILL") {
			streamAnswer(w, frame(`{"event":{"end":{"exited":true}}}`), endFrame("{}"))
			return
		}
		defer close(gone)
		streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`))
		for r.Context().Err() == nil {
			streamAnswer(w, frame(`{"event":{"data":{"stdout":"`+chunk+`"}}}`))
		}
	}, func(cfg *Config) { cfg.Policy.Limits.OutputBytes = 100_000 })
	got := h.do(t, "POST", "/process.Process/Start", startHeaders(), command(t, "yes"))
	require.Contains(t, got.Body, "output")
	require.LessOrEqual(t, strings.Count(got.Body, chunk), 4)
	require.Contains(t, got.Body[len(got.Body)-600:], `"error"`)
	<-gone
	<-killed
	require.Equal(t, 1, h.log.FilterField(zapString("code", "output_limit")).Len())
	signal := h.reached()[1]
	require.JSONEq(t, `{"process":{"pid":7},"signal":"SIGNAL_SIGKILL"}`, string(signal.Body))
	require.Equal(t, "isbx1", signal.Header.Get("E2b-Sandbox-Id"))
}

func TestGuardHeaderTellsWhatChanged(t *testing.T) {
	h := newHouse(t, nil, nil)
	got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), strings.NewReader(`{"templateID":"base"}`))
	require.Equal(t, 200, got.Status, got.Body)
	require.Regexp(t, `^allow; id=[a-z2-7]{20}; changed=.*timeout`, got.Header.Get("E2b-Guard"))
	logged := h.log.FilterMessage("decision").All()
	require.Len(t, logged, 1)
	require.Equal(t, zapcore.InfoLevel, logged[0].Level, "an edit is told to the operator too")
	require.Contains(t, logged[0].ContextMap()["changed"], "timeout")

	h = newHouse(t, func(w http.ResponseWriter, _ *http.Request) { streamAnswer(w, endFrame("{}")) }, nil)
	got = h.do(t, "POST", "/process.Process/Start", startHeaders(), command(t, "ls"))
	require.Regexp(t, `^pass; id=[a-z2-7]{20}; changed=.*limits`, got.Header.Get("E2b-Guard"))
}

// A deadline that policy set is told in the gateway's words: envd's own text
// makes the SDK advise to raise a timeout that would not help.
func TestWallClockOfPolicyIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		asked string
		ours  bool
	}{
		"the client asked for more":   {"600000", true},
		"the client asked for less":   {"100", false},
		"the client named no timeout": {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
				streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`), endFrame(`{"error":{"code":"deadline_exceeded","message":"context deadline exceeded"}}`))
			}, func(cfg *Config) {
				cfg.Policy.Limits.WallClock, cfg.Policy.Limits.BackgroundWallClock = time.Second, time.Second
			})
			header := startHeaders()
			if tc.asked != "" {
				header.Set("Connect-Timeout-Ms", tc.asked)
			}
			got := h.do(t, "POST", "/process.Process/Start", header, command(t, "sleep 60"))
			require.Equal(t, !tc.ours, strings.Contains(got.Body, "deadline_exceeded"), got.Body)
			if tc.ours {
				require.Equal(t, "1000", h.reached()[0].Header.Get("Connect-Timeout-Ms"))
			}
		})
	}
}

// The interpreter knows no timeout, and the SDK's own has been lost before: code
// that runs too long is ended here. See e2b-dev/code-interpreter PR 328.
func TestCodeThatRunsTooLongIsEnded(t *testing.T) {
	gone := make(chan struct{})
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "{\"type\": \"keepalive\"}\n")
			_ = http.NewResponseController(w).Flush()
		}
	}, func(cfg *Config) { cfg.Policy.Limits = policy.Limits{BackgroundWallClock: 100 * time.Millisecond} })
	got := h.do(t, "POST", "/execute", toSandbox("49999", "Content-Type", "application/json"), strings.NewReader(`{"code":"while True: pass"}`))
	require.Contains(t, got.Body, `"type":"error"`)
	require.Contains(t, got.Body, "ran for 100ms, the longest it may here")
	require.Contains(t, got.Body, "[e2bguard request ")
	require.True(t, strings.HasSuffix(got.Body, "{\"type\": \"end_of_execution\"}\n"))
	<-gone
	require.Equal(t, 1, h.log.FilterField(zapString("code", "wall_clock")).Len())
}

// Code that names a context and no language is judged in the context's.
func TestContextLanguageIsRemembered(t *testing.T) {
	g := new(wordGuard)
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/contexts" {
			_, _ = io.WriteString(w, `{"id":"ctx1","language":"javascript","cwd":"/home/user"}`)
		}
	}, func(cfg *Config) { cfg.Guard = g })
	interp := toSandbox("49999", "Content-Type", "application/json")
	got := h.do(t, "POST", "/contexts", interp, strings.NewReader(`{"language":"javascript"}`))
	require.Equal(t, 200, got.Status, got.Body)
	h.do(t, "POST", "/execute", interp, strings.NewReader(`{"code":"1","context_id":"ctx1"}`))
	h.do(t, "POST", "/execute", interp, strings.NewReader(`{"code":"2","context_id":"ctx2"}`))
	saw := g.saw()
	require.Equal(t, "javascript", saw[len(saw)-2].Language)
	require.Equal(t, "", saw[len(saw)-1].Language)
}
