package static

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
)

// sample holds what a rule must block and look-alikes that must pass.
type sample struct {
	rule  string
	lang  string
	block []string
	pass  []string
}

func allSamples() []sample {
	var out []sample
	for _, s := range [][]sample{fileSamples, secretSamples, codeSamples, systemSamples, loadSamples, languageSamples, fileSamplesOf()} {
		out = append(out, s...)
	}

	return out
}

func newGuard(t testing.TB, opts Options) *Guard {
	t.Helper()

	g, err := New(opts)
	require.NoError(t, err)

	return g
}

func code(lang, text string) guard.Subject {
	kind := guard.KindCode
	if lang == "bash" {
		kind = guard.KindCommand
	}

	return guard.Subject{Kind: kind, Language: lang, Text: text}
}

func rulesOf(f Findings) []string {
	var out []string
	for _, h := range f.Hits {
		out = append(out, h.Rule.ID)
	}

	return out
}

// TestRules shows, rule by rule, what is blocked and what is not. Strict is
// used so that every rule speaks.
func TestRules(t *testing.T) {
	t.Parallel()

	strict := newGuard(t, Options{Profile: Strict})
	balanced := newGuard(t, Options{})

	for _, s := range allSamples() {
		t.Run(s.rule+"/"+s.lang, func(t *testing.T) {
			t.Parallel()

			rule, ok := RuleByID(s.rule)
			require.True(t, ok, "no such rule")

			for _, text := range s.block {
				f := strict.Inspect(code(s.lang, text))
				assert.Contains(t, rulesOf(f), s.rule, "must block: %s", text)

				if rule.Severity >= High {
					fb := balanced.Inspect(code(s.lang, text))
					assert.Equal(t, guard.Block, fb.Verdict().Decision, "must block by default: %s", text)
				}
			}

			for _, text := range s.pass {
				f := balanced.Inspect(code(s.lang, text))
				assert.Empty(t, rulesOf(f), "must pass: %s", text)
			}
		})
	}
}

// TestEveryRuleHasSamples keeps the table and its proof together.
func TestEveryRuleHasSamples(t *testing.T) {
	t.Parallel()

	block, pass := map[string]int{}, map[string]int{}

	for _, s := range allSamples() {
		block[s.rule] += len(s.block)
		pass[s.rule] += len(s.pass)
	}

	// These look at more than text and have tests of their own.
	elsewhere := map[string]bool{"not-analysable": true, "network-blocked-install": true, "unseen-self-running": true, "unseen-file": true}

	seen := map[string]bool{}

	for _, r := range Rules() {
		assert.False(t, seen[r.ID], "rule listed twice: %s", r.ID)
		seen[r.ID] = true

		assert.NotEmpty(t, r.Seen)
		assert.NotEmpty(t, r.Fine)
		assert.NotEqual(t, "invalid", r.Severity.String())

		if elsewhere[r.ID] {
			continue
		}

		assert.GreaterOrEqual(t, block[r.ID], 3, "%s needs three samples that must block", r.ID)
		assert.GreaterOrEqual(t, pass[r.ID], 3, "%s needs three look-alikes that must pass", r.ID)
	}
}

func TestVerdictNamesRuleSpanAndWayOut(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	v, err := g.Review(context.Background(), code("bash", "ls; rm -rf /etc; ls"))
	require.NoError(t, err)

	assert.Equal(t, guard.Block, v.Decision)
	assert.Equal(t, "static", v.Guard)
	assert.True(t, strings.HasPrefix(v.Reasoning, "It deletes `/etc`, "), v.Reasoning)
	assert.Contains(t, v.Reasoning, "/etc")
	assert.Contains(t, v.Reasoning, "would be fine")
	require.Len(t, v.Violations, 1)
	assert.Equal(t, guard.Violation{Type: "destructive_file", CWE: "CWE-732", Rule: "delete-system-tree", Span: guard.Span{Start: 4, End: 15}}, v.Violations[0])
}

func TestDisabledRuleDoesNotBlock(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{Disabled: []string{"delete-system-tree"}})
	f := g.Inspect(code("bash", "rm -rf /etc"))

	assert.Empty(t, f.Hits)
	require.Len(t, f.Muted, 1)
	assert.Equal(t, guard.Pass, f.Verdict().Decision)
}

func TestUnknownOptionsAreAllReported(t *testing.T) {
	t.Parallel()

	_, err := New(Options{Profile: "lax", Disabled: []string{"no-such-rule"}})
	require.Error(t, err)
	assert.Contains(t, err.Error(), `unknown profile "lax"`)
	assert.Contains(t, err.Error(), `unknown rule "no-such-rule"`)
}

func TestProfilesChooseBySeverity(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		profile Profile
		text    string
		want    guard.Decision
	}{
		{Permissive, "rm -rf /", guard.Block},
		{Permissive, "cat ~/.aws/credentials", guard.Pass},
		{Balanced, "cat ~/.aws/credentials", guard.Block},
		{Balanced, "cat /etc/passwd", guard.Pass},
		{Strict, "cat /etc/passwd", guard.Block},
	} {
		f := newGuard(t, Options{Profile: c.profile}).Inspect(code("bash", c.text))
		assert.Equal(t, c.want, f.Verdict().Decision, "%s: %s", c.profile, c.text)
	}
}

func TestReviewHonoursContext(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(context.Background())
	cancel()

	v, err := newGuard(t, Options{}).Review(ctx, code("bash", "ls"))
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, guard.Decision(0), v.Decision)
}
