package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write writes n calls of three clients: every third is blocked by a rule, every
// fifth would be; those that run have an outcome, but for the last.
func write(t *testing.T, l *audit.Log, from, n int) {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for i := from; i < from+n; i++ {
		call := &audit.Call{Client: fmt.Sprintf("team-%d", i%3), Sandbox: fmt.Sprintf("sbx-%d", i%2), Operation: "process.start"}
		d := &audit.Decision{Decision: "pass", Mode: "enforce", Took: 10}
		if i%3 == 0 {
			d.Decision = "block"
			d.Subjects = []audit.Subject{{Kind: "command", Verdict: &audit.Verdict{Decision: "block", Guard: "static", Violations: []guard.Violation{{Type: "t", Rule: "rm-root"}, {Type: "t", Rule: "rm-root"}}}}}
		}
		d.WouldBlock = i%5 == 1 && d.Decision == "pass"
		r := audit.Record{Kind: audit.KindDecision, Time: at.Add(time.Duration(i) * time.Minute), ID: fmt.Sprint(i), Call: call, Decision: d}
		require.NoError(t, l.Append(context.Background(), r))
		if d.Decision == "pass" && i < from+n-1 {
			code := int32(0)
			require.NoError(t, l.Append(context.Background(), audit.Record{Kind: audit.KindOutcome, ID: r.ID, Call: call, Outcome: &audit.Outcome{Ended: "complete", ExitCode: &code}}))
		}
	}
}

func filled(t *testing.T) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := audit.New(path, audit.Options{RotateBytes: 4 << 10})
	write(t, l, 0, 30)
	require.NoError(t, l.Close())
	s, err := Open("")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Sync(t.Context(), audit.Files(path)...))
	return s, path
}

func TestFiltersChooseCalls(t *testing.T) {
	s, _ := filled(t)
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		filter Filter
		want   int
	}{
		"all":           {Filter{}, 30},
		"client":        {Filter{Client: "team-1"}, 10},
		"sandbox":       {Filter{Sandbox: "sbx-1"}, 15},
		"client of one": {Filter{Client: "team-1", Sandbox: "sbx-1"}, 5},
		"verdict":       {Filter{Verdict: "block"}, 10},
		"would block":   {Filter{Verdict: "would_block"}, 4},
		"rule":          {Filter{Rule: "rm-root"}, 10},
		"no such rule":  {Filter{Rule: "' OR 1=1 --"}, 0},
		"time":          {Filter{Since: at.Add(10 * time.Minute), Until: at.Add(20 * time.Minute)}, 10},
		"id":            {Filter{ID: "7"}, 1},
		"operation":     {Filter{Operation: "process.start"}, 30},
		"limit":         {Filter{Limit: 4}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := s.Query(t.Context(), c.filter)
			require.NoError(t, err)
			assert.Len(t, rows, c.want)
		})
	}
	rows, err := s.Query(t.Context(), Filter{Limit: 3})
	require.NoError(t, err)
	assert.Equal(t, []string{"27", "28", "29"}, []string{rows[0].ID, rows[1].ID, rows[2].ID}, "the latest, oldest first")
	assert.Equal(t, "rm-root", rows[0].Rules)
	assert.Equal(t, "static", rows[0].Guard)
	assert.Equal(t, "complete", rows[1].Ended)
	assert.Len(t, rows[1].Lines, 2)
	require.NotNil(t, rows[1].ExitCode)
	assert.Nil(t, rows[2].ExitCode)
}

func TestStatsCountByWhatIsAsked(t *testing.T) {
	s, _ := filled(t)
	all, err := s.Stats(t.Context(), Filter{}, "all")
	require.NoError(t, err)
	assert.Equal(t, []Group{{Key: "all", Calls: 30, Blocked: 10, WouldBlock: 4, Unfinished: 1, Took: 10}}, all)
	for by, want := range map[string]int{"client": 3, "sandbox": 2, "operation": 1, "verdict": 2, "rule": 1, "hour": 1, "day": 1} {
		groups, err := s.Stats(t.Context(), Filter{}, by)
		require.NoError(t, err, by)
		assert.Len(t, groups, want, by)
	}
	_, err = s.Stats(t.Context(), Filter{}, "shoe size")
	require.ErrorContains(t, err, "write one of")
	assert.Len(t, Groupings(), len(groupings))
}

func TestStoreIsReadOnceAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	l := audit.New(path, audit.Options{RotateBytes: 4 << 10})
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	for range 2 { // and again with a store that was there before
		s, err := Open(filepath.Join(dir, "audit#?.db"))
		require.NoError(t, err)
		for range 3 {
			rows, err := s.Query(t.Context(), Filter{})
			require.NoError(t, err)
			write(t, l, len(rows), 10)
			require.NoError(t, s.Sync(t.Context(), audit.Files(path)...))
			require.NoError(t, s.Sync(t.Context(), audit.Files(path)...))
			again, err := s.Query(t.Context(), Filter{})
			require.NoError(t, err)
			assert.Len(t, again, len(rows)+10)
		}
		require.NoError(t, s.Close())
	}
	info, err := os.Stat(filepath.Join(dir, "audit#?.db"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestFollowerKeepsUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s, err := Open("")
	require.NoError(t, err)
	f := Follow(s, path, zap.NewNop())
	l := audit.New(path, audit.Options{Written: f.Written})
	write(t, l, 0, 20)
	require.Eventually(t, func() bool {
		rows, err := s.Query(t.Context(), Filter{})
		return err == nil && len(rows) == 20
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, l.Close())
	require.NoError(t, f.Close())
	require.NoError(t, s.Close())
}
