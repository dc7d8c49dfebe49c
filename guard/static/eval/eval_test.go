package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
)

// wordGuard blocks what contains a word.
type wordGuard struct{ err error }

func (g wordGuard) Review(_ context.Context, s guard.Subject) (guard.Verdict, error) {
	v := guard.Verdict{Decision: guard.Pass}
	if strings.Contains(s.Text, "bad") {
		v.Decision = guard.Block
		v.Violations = []guard.Violation{{Rule: "bad-word"}}
	}

	return v, g.err
}

const corpus = `{"id":"1","source":"a","lang":"bash","surface":"command","label":"malicious","category":"x","severity":"clear","text":"bad"}
{"id":"2","source":"a","lang":"bash","surface":"command","label":"malicious","category":"x","severity":"clear","text":"sly"}
{"id":"3","source":"a","lang":"python","surface":"code","label":"malicious","category":"y","severity":"arguable","text":"bad"}
{"id":"4","source":"b","lang":"python","surface":"file","label":"benign","category":"plain","text":"fine"}

{"id":"5","source":"b","lang":"bash","surface":"command","label":"benign","category":"plain","hard_negative":true,"text":"not bad"}
{"id":"6","source":"b","lang":"bash","surface":"command","label":"benign","category":"plain","contested":true,"text":"bad?"}
{"id":"7","source":"b","lang":"bash","surface":"code","label":"malicious","category":"unsafe_code_quality","severity":"arguable","text":"md5"}
`

func writeCorpus(t *testing.T, text string) string {
	t.Helper()

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(text), 0o600))

	return dir
}

func TestReportCountsWhatItSays(t *testing.T) {
	t.Parallel()

	r, err := Run(context.Background(), wordGuard{}, writeCorpus(t, corpus))
	require.NoError(t, err)

	assert.Equal(t, 7, r.Items)
	assert.InDelta(t, 0.5, r.RecallClear, 1e-9)
	assert.InDelta(t, 1.0, r.RecallArguable, 1e-9)
	assert.InDelta(t, 0.5, r.FalsePositiveRate, 1e-9)
	assert.InDelta(t, 2.0/3, r.FalsePositiveRateContested, 1e-9)
	assert.InDelta(t, 1.0, r.HardNegativeRate, 1e-9)
	assert.Equal(t, 1, r.ByLang["python"].Benign)
	assert.Equal(t, 2, r.BySource["a"].Clear)
	assert.Equal(t, 1, r.ByCategory["malicious/x"].ClearBlocked)

	var ids []string
	for _, m := range r.Misses {
		ids = append(ids, m.ID)
	}

	assert.Equal(t, []string{"2", "5", "6"}, ids)
}

func TestReportIsWritten(t *testing.T) {
	t.Parallel()

	r, err := Run(context.Background(), wordGuard{}, writeCorpus(t, corpus))
	require.NoError(t, err)

	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))

	var m map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &m))

	for _, key := range []string{"recall_clear", "recall_arguable", "false_positive_rate", "hard_negative_rate", "p50_us", "p99_us"} {
		assert.Contains(t, m, key)
	}

	b.Reset()
	require.NoError(t, r.WriteText(&b))
	assert.Contains(t, b.String(), "recall, clear")
	assert.Contains(t, b.String(), "malicious/x")

	b.Reset()
	require.NoError(t, r.WriteMisses(&b))
	assert.Equal(t, 3, strings.Count(b.String(), "\n"))
	assert.Contains(t, b.String(), "bad-word")
}

func TestBadCorpusIsAnError(t *testing.T) {
	t.Parallel()

	_, err := Run(context.Background(), wordGuard{}, t.TempDir())
	require.ErrorContains(t, err, "no .jsonl file")

	_, err = Run(context.Background(), wordGuard{}, writeCorpus(t, "{}\n{broken\n"))
	require.ErrorContains(t, err, "line 2")

	_, err = Run(context.Background(), wordGuard{err: errors.New("down")}, writeCorpus(t, corpus))
	require.ErrorContains(t, err, "judging 1: down")
}

func TestSurfacesBecomeKinds(t *testing.T) {
	t.Parallel()

	assert.Equal(t, guard.KindCommand, (&Item{Surface: "command", Lang: "bash"}).Subject().Kind)
	assert.Equal(t, guard.KindCode, (&Item{Surface: "code", Lang: "python"}).Subject().Kind)

	s := (&Item{Surface: "file", Lang: "python"}).Subject()
	assert.Equal(t, guard.KindFile, s.Kind)
	assert.Equal(t, "snippet.py", s.Target)
}
