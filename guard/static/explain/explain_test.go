package explain

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard/static"
)

func run2(t *testing.T, opts Options) (code int, out, errs string) {
	t.Helper()

	var o, e bytes.Buffer

	opts.Errors = &e
	code = Run(&o, opts)

	return code, o.String(), e.String()
}

func TestBlockIsShownWithItsSpan(t *testing.T) {
	t.Parallel()

	code, out, _ := run2(t, Options{Text: "ls\nrm -rf /etc # x\n", Language: "bash"})
	assert.Equal(t, ExitBlock, code)
	assert.Contains(t, out, "block: It deletes `/etc`, ")
	assert.Contains(t, out, "delete-system-tree (destructive_file, critical, CWE-732)\n  rm -rf /etc # x\n  ^^^^^^^^^^^\n")
}

func TestPassAndVerbose(t *testing.T) {
	t.Parallel()

	code, out, _ := run2(t, Options{Text: "cat /etc/passwd", Language: "bash", Verbose: true})
	assert.Equal(t, ExitPass, code)
	assert.Contains(t, out, "pass: ")
	assert.Contains(t, out, "muted: read-account-file")
	assert.Contains(t, out, `read     "/etc/passwd"`)
}

func TestJSON(t *testing.T) {
	t.Parallel()

	code, out, _ := run2(t, Options{Text: "rm -rf /", Surface: "command", Format: "json", Verbose: true})
	assert.Equal(t, ExitBlock, code)

	var m struct {
		Decision   string
		Violations []struct {
			Rule string
			Span struct{ Start, End int }
		}
		Effects []struct{ Kind, Target string }
	}

	require.NoError(t, json.Unmarshal([]byte(out), &m))
	assert.Equal(t, "block", m.Decision)
	require.NotEmpty(t, m.Violations)
	assert.Equal(t, "delete-system-tree", m.Violations[0].Rule)
	assert.Equal(t, 8, m.Violations[0].Span.End)
	assert.Len(t, m.Effects, 2)

	_, out, _ = run2(t, Options{Text: "ls", Surface: "command", Format: "json"})
	assert.Contains(t, out, `"violations": []`)
}

func TestFileSurface(t *testing.T) {
	t.Parallel()

	code, _, _ := run2(t, Options{Text: "rm -rf /", Surface: "file", Target: "a.sh"})
	assert.Equal(t, ExitBlock, code)

	code, _, _ = run2(t, Options{Text: "rm -rf /", Surface: "file", Target: "a.md"})
	assert.Equal(t, ExitPass, code)
}

func TestRulesAreListed(t *testing.T) {
	t.Parallel()

	code, out, _ := run2(t, Options{Rules: true})
	assert.Equal(t, ExitPass, code)

	for _, r := range static.Rules() {
		assert.Contains(t, out, r.ID)
	}

	_, out, _ = run2(t, Options{Rules: true, Format: "markdown"})
	assert.Contains(t, out, "| `crypto-miner` | crypto_miner | critical | CWE-400 |")

	_, out, _ = run2(t, Options{Rules: true, Format: "json"})

	var rules []map[string]string
	require.NoError(t, json.Unmarshal([]byte(out), &rules))
	assert.Len(t, rules, len(static.Rules()))
}

func TestEvaluation(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	misses := filepath.Join(dir, "misses")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(`{"id":"1","lang":"bash","surface":"command","label":"benign","text":"rm -rf /"}`+"\n"), 0o600))

	code, out, _ := run2(t, Options{EvalDir: dir, Misses: misses, Format: "json"})
	assert.Equal(t, ExitPass, code)
	assert.Contains(t, out, `"false_positive_rate": 1`)

	data, err := os.ReadFile(misses)
	require.NoError(t, err)
	assert.Contains(t, string(data), "delete-system-tree")
}

func TestWrongOptionsAreErrors(t *testing.T) {
	t.Parallel()

	for _, o := range []Options{
		{Format: "xml"}, {Surface: "mail"}, {EvalDir: "/does/not/exist"}, {Guard: static.Options{Profile: "x"}},
		{EvalDir: t.TempDir()},
	} {
		code, out, errs := run2(t, o)
		assert.Equal(t, ExitError, code)
		assert.Empty(t, out)
		assert.Contains(t, errs, "check: ")
	}
}
