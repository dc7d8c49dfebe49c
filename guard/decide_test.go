package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
)

// langwatch/tasks#430: "fail closed" was shown, stored and then dropped.
// api7/aisix PR 640: "monitor" was stored, and blocked all the same.
//
// Every fault, decision and mode there is, against a table written by hand.
func TestDecideExhaustively(t *testing.T) {
	type row struct {
		name    string
		verdict Verdict
		err     error
		// What becomes of it: allowed, FailOpen, WouldBlock.
		enforce, allowOnError, shadow, shadowAllowOnError [3]bool
	}
	const y, n = true, false
	var (
		allow   = [3]bool{y, n, n}
		block   = [3]bool{n, n, n}
		open    = [3]bool{y, y, n}
		would   = [3]bool{y, n, y}
		service = [4][3]bool{block, open, would, open}
		strict  = [4][3]bool{block, block, would, would}
	)
	rows := []row{
		{"pass", Verdict{Decision: Pass}, nil, allow, allow, allow, allow},
		{"block", Verdict{Decision: Block}, nil, block, block, would, would},
		{"block beside an error", Verdict{Decision: Block}, &Error{Fault: Unreachable}, block, block, would, would},
		{"no decision", Verdict{}, nil, block, open, would, open},
		{"unknown decision", Verdict{Decision: 7}, nil, block, open, would, open},
		{"pass beside a strict error", Verdict{Decision: Pass}, &Error{Fault: Misconfigured}, block, block, would, would},
		{"pass beside a service error", Verdict{Decision: Pass}, &Error{Fault: Timeout}, block, open, would, open},
		{"untyped error", Verdict{}, errors.New("boom"), block, open, would, open},
		{"untyped deadline", Verdict{}, fmt.Errorf("x: %w", context.DeadlineExceeded), block, open, would, open},
		{"untyped cancellation", Verdict{}, fmt.Errorf("x: %w", context.Canceled), block, block, would, would},
		{"untyped network error", Verdict{}, &url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, block, open, would, open},
		{"wrapped strict error", Verdict{}, fmt.Errorf("x: %w", &Error{Fault: Misconfigured}), block, block, would, would},
		{"zero fault", Verdict{}, &Error{}, block, block, would, would},
		{"unknown fault", Verdict{}, &Error{Fault: 99}, block, block, would, would},
	}
	byFault := map[Fault][4][3]bool{
		Unreachable: service, Timeout: service, BadAnswer: service, Overloaded: service,
		Contradictory: strict, Misconfigured: strict, TooLarge: strict, NotAnalysable: strict, Panicked: strict, NoGuard: strict, Canceled: strict,
	}
	require.Len(t, byFault, len(Faults()), "every fault has a row")
	for f, want := range byFault {
		rows = append(rows, row{"fault " + f.String(), Verdict{}, &Error{Guard: "g", Fault: f}, want[0], want[1], want[2], want[3]})
	}
	for _, r := range rows {
		for mode, want := range map[Mode][3]bool{
			{}:                                 r.enforce,
			{AllowOnError: true}:               r.allowOnError,
			{Shadow: true}:                     r.shadow,
			{Shadow: true, AllowOnError: true}: r.shadowAllowOnError,
		} {
			got := Decide(r.verdict, r.err, mode)
			assert.Equal(t, want, [3]bool{got.Allow, got.FailOpen, got.WouldBlock}, "%s in %+v", r.name, mode)
			assert.Equal(t, r.verdict, got.Verdict, r.name)
			clean := r.verdict.Decision == Pass && r.err == nil
			assert.Equal(t, clean, got.Reason == "", "%s: a reason unless it passed", r.name)
			if r.err != nil {
				assert.Equal(t, r.err, got.Err, r.name)
			}
			if r.verdict.Decision != Pass && r.verdict.Decision != Block {
				assert.Error(t, got.Err, r.name)
			}
		}
	}
}

func TestEveryFaultHasAName(t *testing.T) {
	seen := map[string]bool{"invalid": true}
	for _, f := range Faults() {
		assert.False(t, seen[f.String()], f.String())
		seen[f.String()] = true
		assert.NotEmpty(t, faults[f].what)
	}
	assert.Equal(t, "invalid", Fault(0).String())
	assert.Equal(t, "invalid", Fault(99).String())
	assert.Equal(t, Fault(0), FaultOf(nil))
}

// anthropic-experimental/sandbox-runtime#273: a bare refusal makes an agent look
// for a way round.
func TestReasonsTellTheAgentWhatToDo(t *testing.T) {
	for want, v := range map[string]Verdict{
		"Blocked by policy: It deletes your home. Do not retry by another route.":       {Decision: Block, Reasoning: "It deletes your home."},
		"Blocked by policy: no full stop. Do not retry by another route.":               {Decision: Block, Reasoning: " no full stop "},
		"Blocked by policy: exfiltration, miner. Do not retry by another route.":        {Decision: Block, Violations: []Violation{{Type: "exfiltration"}, {Type: "miner"}}},
		"Blocked by policy: the guard gave no reason. Do not retry by another route.":   {Decision: Block},
		"Blocked by policy: ends on a wide character ✓. Do not retry by another route.": {Decision: Block, Reasoning: "ends on a wide character ✓"},
		"Blocked by policy: is that so? Do not retry by another route.":                 {Decision: Block, Reasoning: "is that so?"},
	} {
		assert.Equal(t, want, Decide(v, nil, Mode{}).Reason)
	}
	err := &Error{Guard: "superagent", Fault: Unreachable, Err: errors.New("dial 10.0.0.7: refused")}
	got := Decide(Verdict{}, err, Mode{})
	assert.Equal(t, "The guard superagent could not be reached. The same call may work later.", got.Reason)
	assert.True(t, got.Retryable)
	assert.False(t, Decide(Verdict{}, &Error{Fault: Misconfigured}, Mode{}).Retryable)
	assert.Equal(t, "The guard failed.", Decide(Verdict{}, &Error{}, Mode{}).Reason)
	for _, f := range Faults() {
		reason := Decide(Verdict{}, &Error{Guard: "superagent", Fault: f, Err: errors.New("dial 10.0.0.7")}, Mode{}).Reason
		assert.NotContains(t, reason, "10.0.0.7", "the cause is the operator's")
	}
}

func TestErrorNamesGuardFaultAndCause(t *testing.T) {
	cause := errors.New("cause")
	err := &Error{Guard: "g", Fault: TooLarge, Err: cause}
	assert.Equal(t, "guard g: too_large: cause", err.Error())
	assert.ErrorIs(t, err, cause)
	assert.Equal(t, "too_large", (&Error{Fault: TooLarge}).Error())
}

func TestRulingLogsNoText(t *testing.T) {
	enc := zapcore.NewMapObjectEncoder()
	v := Verdict{Decision: Block, Guard: "static", Reasoning: "bad", Violations: []Violation{{Type: "miner", CWE: "CWE-400", Rule: "r1"}}, Cached: true}
	require.NoError(t, Decide(v, nil, Mode{Shadow: true}).MarshalLogObject(enc))
	assert.Equal(t, []string{"allow", "verdict", "would_block"}, sortedKeys(enc.Fields))
	inner := enc.Fields["verdict"].(map[string]any)
	assert.Equal(t, []string{"cached", "decision", "guard", "reasoning", "took", "violations"}, sortedKeys(inner))
	assert.Equal(t, []any{map[string]any{"type": "miner", "cwe": "CWE-400", "rule": "r1"}}, inner["violations"])

	enc = zapcore.NewMapObjectEncoder()
	require.NoError(t, Decide(Verdict{}, &Error{Guard: "g", Fault: Timeout}, Mode{AllowOnError: true}).MarshalLogObject(enc))
	assert.Equal(t, map[string]any{"allow": true, "fail_open": true, "fault": "timeout", "error": "guard g: timeout"}, enc.Fields)
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
