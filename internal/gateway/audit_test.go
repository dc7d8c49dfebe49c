package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/audit"
)

// book is an audit log of a test.
type book struct{ path string }

// audited gives a gateway an audit log.
func audited(t *testing.T, opts audit.Options) (*book, func(*Config)) {
	t.Helper()
	b := &book{filepath.Join(t.TempDir(), "audit.jsonl")}
	log := audit.New(b.path, opts)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	return b, func(cfg *Config) {
		cfg.Audit = Audit{Log: log, Code: audit.CodeHead, HeadBytes: audit.DefaultHead, OutputBytes: 64, Policy: "policy-1"}
	}
}

// records are those of calls, so far.
func (b *book) records(t *testing.T) (decisions, outcomes []audit.Record) {
	t.Helper()
	f, err := os.Open(b.path)
	require.NoError(t, err)
	defer f.Close()
	_, _, err = audit.Read(f, func(r audit.Record, _ []byte) bool {
		switch r.Kind {
		case audit.KindDecision:
			decisions = append(decisions, r)
		case audit.KindOutcome, audit.KindTeardown:
			outcomes = append(outcomes, r)
		}
		return true
	})
	require.NoError(t, err)
	return decisions, outcomes
}

// last waits for the outcome of the last decision, which is written when the call
// is over.
func (b *book) last(t *testing.T) (decision, outcome audit.Record) {
	t.Helper()
	require.Eventually(t, func() bool {
		decisions, outcomes := b.records(t)
		if len(decisions) == 0 || len(outcomes) == 0 {
			return false
		}
		decision, outcome = decisions[len(decisions)-1], outcomes[len(outcomes)-1]
		return decision.ID == outcome.ID
	}, 10*time.Second, 5*time.Millisecond)
	return decision, outcome
}

func TestCallHasItsDecisionAndItsOutcomeOnRecord(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	s := newEstate(t, edit)
	line := "printf out; printf err >&2; exit 3"
	got := s.run(t.Context(), s.gateway, shell(line))
	require.EqualValues(t, 3, got.end.GetExitCode())

	decision, outcome := b.last(t)
	assert.Equal(t, "pass", decision.Decision.Decision)
	assert.Equal(t, "process.start", decision.Operation)
	assert.Equal(t, s.id, decision.Sandbox)
	assert.Equal(t, "enforce", decision.Mode)
	assert.Equal(t, "policy-1", decision.Policy)
	assert.NotEmpty(t, decision.Changed)
	require.NotEmpty(t, decision.Subjects)
	subject := decision.Subjects[0]
	assert.Equal(t, string(guard.KindCommand), subject.Kind)
	assert.Contains(t, subject.Text, "printf out")
	sum := sha256.Sum256([]byte(subject.Text))
	assert.Equal(t, hex.EncodeToString(sum[:]), subject.SHA256)
	assert.Equal(t, "pass", subject.Verdict.Decision)
	assert.Equal(t, "word", subject.Verdict.Guard)

	assert.Equal(t, audit.EndedComplete, outcome.Ended)
	require.NotNil(t, outcome.ExitCode)
	assert.EqualValues(t, 3, *outcome.ExitCode)
	assert.Equal(t, "out", outcome.Stdout.Head)
	assert.Equal(t, "err", outcome.Stderr.Head)
	assert.EqualValues(t, 3, outcome.Stdout.Bytes)
	assert.Positive(t, outcome.Wall)
	assert.False(t, outcome.OutputGap)
}

func TestLongOutputIsKeptByItsEnds(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	s := newEstate(t, edit)
	got := s.run(t.Context(), s.gateway, shell("echo begin; seq 100000; echo end"))
	_, outcome := b.last(t)
	sum := sha256.Sum256([]byte(got.output))
	assert.Equal(t, hex.EncodeToString(sum[:]), outcome.Stdout.SHA256)
	assert.EqualValues(t, len(got.output), outcome.Stdout.Bytes)
	assert.Equal(t, got.output[:64], outcome.Stdout.Head)
	assert.Equal(t, got.output[len(got.output)-64:], outcome.Stdout.Tail)
	assert.True(t, outcome.Stdout.Cut)
}

func TestBlockedCallIsOnRecordBeforeItsAnswer(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	h := newHouse(t, nil, edit)
	trace := "0af7651916cd43dd8448eb211c80319c"
	for line, want := range map[string]string{"echo evil": "block", "": "refuse"} {
		body := command(t, line)
		if line == "" {
			body = strings.NewReader("no frame")
		}
		h.do(t, "POST", "/process.Process/Start", startHeaders("Traceparent", "00-"+trace+"-b7ad6b7169203331-01"), body)
		decisions, outcomes := b.records(t) // at once: it was there before the answer
		require.NotEmpty(t, decisions)
		d := decisions[len(decisions)-1]
		assert.Equal(t, want, d.Decision.Decision)
		assert.NotEmpty(t, d.Reason)
		assert.NotEmpty(t, d.Code)
		assert.Equal(t, trace, d.Trace)
		assert.Empty(t, outcomes)
	}
	assert.Empty(t, h.reached())
}

// The same call by host name and by routing headers is the same on record. See
// e2b-dev/E2B PR 1342, e2b-dev/E2B#1158.
func TestUnroutableCallIsOnRecord(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	h := newHouse(t, nil, edit)
	got := h.do(t, "POST", "/files?path=/a.txt&username=user", nil, strings.NewReader("x"))
	require.GreaterOrEqual(t, got.Status, 400)
	require.Less(t, got.Status, 500)
	decisions, _ := b.records(t)
	require.Len(t, decisions, 1)
	assert.Equal(t, "unroutable", decisions[0].Code)
}

func TestRecordsHoldNoSecrets(t *testing.T) {
	const key = "e2b_0123456789abcdef0123456789abcdef01234567"
	b, edit := audited(t, audit.Options{})
	s := newEstate(t, edit, func(cfg *Config) { cfg.Audit.Code = audit.CodeFull })
	half := strings.Repeat("x", 60)
	s.run(t.Context(), s.gateway, shell("printf '"+half+"'; printf '"+key+"'; echo "+key+" >&2"))
	b.last(t)
	raw, err := os.ReadFile(b.path)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), key)
	assert.NotContains(t, string(raw), key[:12], "nor a part, where the head is cut")
	assert.Contains(t, string(raw), "text_masked")
}

func TestDigestKeepsNoText(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	s := newEstate(t, edit, func(cfg *Config) { cfg.Audit.Code = audit.CodeDigest })
	s.run(t.Context(), s.gateway, shell("echo marker-word"))
	_, outcome := b.last(t)
	assert.Len(t, outcome.Stdout.SHA256, 64)
	raw, err := os.ReadFile(b.path)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "marker-word")
}

func TestNothingRunsThatCannotBeRecorded(t *testing.T) {
	log := audit.New(filepath.Join(t.TempDir(), "gone", "audit.jsonl"), audit.Options{})
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	for name, pass := range map[string]bool{"blocks": false, "passes and says so": true} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil, func(cfg *Config) { cfg.Audit = Audit{Log: log, Code: audit.CodeHead, PassOnFailure: pass} })
			got := h.do(t, "POST", "/process.Process/Start", startHeaders(), command(t, "echo hello"))
			if pass {
				assert.Len(t, h.reached(), 1)
				assert.Contains(t, got.Header.Get("E2b-Guard"), "audit=failed")
				assert.NotEmpty(t, h.log.FilterMessageSnippet("could not be written").All())
				return
			}
			assert.Empty(t, h.reached())
			assert.Contains(t, got.Body, "audit log cannot be written")
			assert.Contains(t, got.Body, "permission_denied")
		})
	}
}

// api7/aisix PR 640: "monitor" was stored and then ignored, and blocked.
// agentgateway/agentgateway#2348: a detect-only run threw the assessment away.
func TestShadowNeverBlocksAndRecordsWhatItWould(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	h := newHouse(t, nil, func(cfg *Config) {
		edit(cfg)
		cfg.Mode = guard.Mode{Shadow: true}
	})
	got := h.do(t, "POST", "/process.Process/Start", startHeaders(), command(t, "echo evil"))
	assert.Len(t, h.reached(), 1)
	assert.Contains(t, got.Header.Get("E2b-Guard"), "would_block")
	decision, _ := b.last(t)
	assert.Equal(t, "pass", decision.Decision.Decision)
	assert.Equal(t, "shadow", decision.Mode)
	assert.True(t, decision.WouldBlock)
	assert.True(t, decision.Subjects[0].WouldBlock)
	assert.Equal(t, "block", decision.Subjects[0].Verdict.Decision)
	assert.NotEmpty(t, decision.Subjects[0].Verdict.Reasoning)
	assert.NotEmpty(t, h.log.FilterField(zap.Bool("would_block", true)).All())

	got = h.do(t, "POST", "/files?path=/evil.sh&username=user", toSandbox("49983", "Content-Type", "application/octet-stream"), strings.NewReader("x"))
	assert.Len(t, h.reached(), 2)
	assert.Contains(t, got.Header.Get("E2b-Guard"), "would_block")

	got = h.do(t, "POST", "/process.Process/Start", startHeaders(), command(t, "echo good"))
	assert.NotContains(t, got.Header.Get("E2b-Guard"), "would_block")
}

// e2b-dev/infra PR 2639: what a process writes with nobody connected is gone; the
// record must not pretend to be complete.
func TestOutputThatNobodySawIsMarked(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/connect+json")
		streamAnswer(w, frame(`{"event":{"end":{"exitCode":0,"exited":true,"status":"exit status 0"}}}`), endFrame("{}"))
	}, edit)
	h.do(t, "POST", "/process.Process/Connect", startHeaders(), strings.NewReader(string(frame(`{"process":{"pid":7}}`))))
	_, outcome := b.last(t)
	assert.Equal(t, "process.connect", outcome.Operation)
	assert.True(t, outcome.OutputGap)
}

// e2b-dev/infra PR 3281, e2b-dev/E2B#921: a stream that broke off is not a success.
func TestOutcomeTellsHowACallEnded(t *testing.T) {
	stdout := `{"event":{"data":{"stdout":"aGVsbG8="}}}`
	for want, c := range map[string]struct {
		upstream http.HandlerFunc
		err      string
	}{
		audit.EndedTruncated: {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/connect+json")
			_, _ = w.Write(append(frame(stdout), 0, 0))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, ""},
		audit.EndedError: {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/connect+json")
			streamAnswer(w, endFrame(`{"error":{"code":"not_found","message":"no such process"}}`))
		}, "not_found: no such process"},
		audit.EndedLimit: {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/connect+json")
			for range 300 {
				streamAnswer(w, frame(stdout))
			}
		}, ""},
	} {
		t.Run(want, func(t *testing.T) {
			b, edit := audited(t, audit.Options{})
			h := newHouse(t, c.upstream, func(cfg *Config) {
				edit(cfg)
				cfg.Policy.Limits.OutputBytes = 1000
			})
			req, err := http.NewRequestWithContext(t.Context(), "POST", h.url+"/process.Process/Start", command(t, "true"))
			require.NoError(t, err)
			req.Header = startHeaders()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Do(req)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, resp.Body) // it may be broken off
			require.NoError(t, resp.Body.Close())
			_, outcome := b.last(t)
			assert.Equal(t, want, outcome.Ended)
			assert.Equal(t, http.StatusOK, outcome.Status)
			if c.err != "" {
				assert.Equal(t, c.err, outcome.Error)
			}
			if want == audit.EndedLimit {
				assert.Equal(t, "output_limit", outcome.KilledBy)
			}
		})
	}
}

func TestUnreachableUpstreamIsAnOutcome(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	h := newHouse(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, edit)
	h.do(t, "POST", "/process.Process/Start", startHeaders(), command(t, "true"))
	decision, outcome := b.last(t)
	assert.Equal(t, "pass", decision.Decision.Decision)
	assert.Equal(t, audit.EndedRefused, outcome.Ended)
	assert.Contains(t, outcome.Error, "upstream")
	assert.Zero(t, outcome.Status)
}

// e2b-dev/E2B#1381: a sandbox vanished, and users could not tell who did it.
func TestEndOfASandboxNamesWhoDidIt(t *testing.T) {
	for status, want := range map[int]string{http.StatusNoContent: "client", http.StatusNotFound: "gone_upstream", http.StatusInternalServerError: ""} {
		b, edit := audited(t, audit.Options{})
		h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }, edit)
		h.do(t, "DELETE", "/sandboxes/isbx1", headers("X-API-KEY", "e2b_cc"), nil)
		_, outcome := b.last(t)
		assert.Equal(t, "sandbox.kill", outcome.Operation)
		assert.Equal(t, "isbx1", outcome.Sandbox)
		assert.Equal(t, want, outcome.DestroyedBy)
	}
}
