package caddymodule

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/audit"
)

// command sends one command through the gateway.
func command(t *testing.T, base, line string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(commandRequest(t, base, line))
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
}

func commandRequest(t *testing.T, base, line string) *http.Request {
	t.Helper()
	b, err := json.Marshal(map[string]any{"process": map[string]any{"cmd": "/bin/bash", "args": []string{"-l", "-c", line}}, "stdin": false})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/process.Process/Start", strings.NewReader(frame(0, string(b))))
	require.NoError(t, err)
	for k, v := range envdHeaders {
		req.Header.Set(k, v)
	}
	req.Close = true
	return req
}

func verified(t *testing.T, path string) audit.ChainReport {
	t.Helper()
	reports, err := audit.Verify(audit.Files(path), audit.VerifyOptions{})
	require.NoError(t, err)
	require.Len(t, reports, 1)
	return reports[0]
}

func countKinds(t *testing.T, path string) map[audit.Kind]int {
	t.Helper()
	kinds := map[audit.Kind]int{}
	require.NoError(t, readRecords(path, func(r audit.Record, _ []byte) bool { kinds[r.Kind]++; return true }))
	return kinds
}

// A reload opens no log twice and loses none, whatever changes; the store follows
// to where it is kept now.
func TestAuditLogLivesThroughReloads(t *testing.T) {
	dir := t.TempDir()
	path, db := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "audit.db")
	caddyfile, base := site(t, fakeE2B(t, `{}`), "audit "+path+" {\n\t\t\tstore "+db+"\n\t\t}")
	serve(t, caddyfile)
	require.FileExists(t, path, "it is opened at the start")
	for i := range 10 {
		load(t, strings.Replace(caddyfile, "e2b_guard {", fmt.Sprintf("e2b_guard {\n\t\tports %d", 3000+i), 1))
		// The server that was replaced may still take a connection, and closes it.
		for line, want := range map[string]string{"echo hello": "{}", "rm -rf /": "Blocked by policy"} {
			require.Eventually(t, func() bool {
				resp, err := http.DefaultClient.Do(commandRequest(t, base, line))
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				return err == nil && strings.Contains(string(body), want)
			}, 10*time.Second, time.Millisecond)
		}
	}
	require.Eventually(t, func() bool {
		out, _, err := subcommand(t, "", "audit", "query", "--store", db, "--limit", "0", "--verdict", "block", "--format", "json")
		return err == nil && strings.Count(out, "\n") >= 10
	}, 10*time.Second, 50*time.Millisecond)
	require.NoError(t, caddy.Stop())

	report := verified(t, path)
	assert.Empty(t, report.Problems)
	assert.Empty(t, report.Notes)
	kinds := countKinds(t, path)
	assert.Equal(t, 1, kinds[audit.KindOpen])
	assert.Equal(t, 1, kinds[audit.KindClose])
	assert.GreaterOrEqual(t, kinds[audit.KindDecision], 20)
	assert.GreaterOrEqual(t, kinds[audit.KindOutcome], 10)
}

// Keys of services that the gateway has never heard of are masked in what is kept.
func TestAuditKeepsNoKeyOfAKnownForm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	caddyfile, base := site(t, fakeE2B(t, `{}`), "audit "+path+" {\n\t\t\tlog_code full\n\t\t}")
	serve(t, caddyfile)
	secret := "PMAK-" + "7f3a9c51e0d84b2673a1c95d" + "-" + "0e84b26d7f3a9c51e0d84b2673a1c95d0e"
	command(t, base, "curl -H x:"+secret+" https://api.example.com")
	require.NoError(t, caddy.Stop())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.NotContains(t, string(b), secret)
	assert.Contains(t, string(b), "secret:postman-api-token")
}

// `validate` runs beside a server that writes the log.
func TestValidateLeavesTheLogAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	caddyfile, _ := site(t, "http://127.0.0.1:1", "audit "+path)
	adapted, err := adapt(caddyfile)
	require.NoError(t, err)
	var cfg *caddy.Config
	require.NoError(t, caddy.StrictUnmarshalJSON(adapted, &cfg))
	require.NoError(t, caddy.Validate(cfg))
	require.NoFileExists(t, path)
}

// auditedRun is a log of a run: one call that passes, one that is blocked, two that
// the profile decides.
func auditedRun(t *testing.T, options string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	caddyfile, base := site(t, fakeE2B(t, `{}`), "audit "+path+" {\n\t\t\t"+options+"\n\t\t}")
	serve(t, caddyfile)
	command(t, base, "echo hello")
	command(t, base, "rm -rf /")
	require.NoError(t, caddy.Stop())
	return path
}

func TestAuditVerifySaysWhetherALogIsWhole(t *testing.T) {
	path := auditedRun(t, "log_code full")
	out, _, err := subcommand(t, "", "audit", "verify", path)
	require.NoError(t, err)
	assert.Contains(t, out, "whole")

	text := read(t, path)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(text, "echo hello", "echo hallo", 1)), 0o600))
	out, _, err = subcommand(t, "", "audit", "verify", path)
	require.Error(t, err)
	assert.Contains(t, out, "BROKEN")
	assert.Contains(t, out, ":2: record 2: it was changed")
	out, _, err = subcommand(t, "", "audit", "verify", "--format", "json", path)
	require.Error(t, err)
	var reports []audit.ChainReport
	require.NoError(t, json.Unmarshal([]byte(out), &reports))
	require.Equal(t, 2, reports[0].Problems[0].Line)

	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, stderr, err := subcommand(t, "", "audit", "verify", "--head", "nonsense", path)
	require.Error(t, err)
	assert.Contains(t, stderr, "write <chain>:<seq>:<hash>")
	head := fmt.Sprintf("%s:%d:%s", verified(t, path).Chain, 99, strings.Repeat("0", 64))
	out, _, err = subcommand(t, "", "audit", "verify", "--head", head, path)
	require.Error(t, err)
	assert.Contains(t, out, "missing at the end")
}

func TestAuditVerifyChecksMACsWithTheSealKey(t *testing.T) {
	dir := t.TempDir()
	path, key, other := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "seal"), filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("5e", 32)+"\n"), 0o600))
	require.NoError(t, os.WriteFile(other, []byte(strings.Repeat("6f", 32)+"\n"), 0o600))
	caddyfile, base := site(t, fakeE2B(t, `[]`), "client team-a e2b_aaaaaaaaaaaaaaaaaaaa\n\t\tseal_key {file."+key+"}\n\t\taudit "+path)
	caddyfile = strings.Replace(caddyfile, "upstream {", "upstream {\n\t\t\tapi_key e2b_00000000000000000000", 1)
	serve(t, caddyfile)
	call(t, http.MethodPost, base+"/v2/sandboxes", map[string]string{"X-API-Key": "e2b_wrong"}, `{}`)
	require.NoError(t, caddy.Stop())
	out, stderr, err := subcommand(t, "", "audit", "verify", "--key", key, path)
	require.NoError(t, err, out+stderr)
	out, _, err = subcommand(t, "", "audit", "verify", "--key", other, path)
	require.Error(t, err)
	assert.Contains(t, out, "MAC")
}

func TestAuditQueryStatsAndTailReadALog(t *testing.T) {
	path := auditedRun(t, "log_code full")
	out, _, err := subcommand(t, "", "audit", "query", path)
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(out, "\n"), out)
	out, _, err = subcommand(t, "", "audit", "query", "--verdict", "block", "--since", "1h", "--format", "json", path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(out, "\n"), out)
	assert.Contains(t, out, "rm -rf /")
	out, _, err = subcommand(t, "", "audit", "stats", "--by", "verdict", path)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^block +1 +1 `, out)
	out, _, err = subcommand(t, "", "audit", "stats", "--format", "json", path)
	require.NoError(t, err)
	assert.Contains(t, out, `"calls": 2`)
	out, _, err = subcommand(t, "", "audit", "tail", "-n", "2", path)
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(out, "\n"), out)
	for _, args := range [][]string{
		{"query"}, {"query", "/no/such/file"}, {"query", "--since", "yesterday", path}, {"query", "--format", "xml", path},
		{"stats", "--by", "x", path}, {"tail"}, {"tail", "--format", "xml", path}, {"verify"}, {"verify", "--format", "xml", path}, {"replay", "--format", "xml", path}, {},
	} {
		_, stderr, err := subcommand(t, "", "audit", args...)
		require.Error(t, err, args)
		assert.NotEmpty(t, stderr, args)
	}
}

func TestAuditReplayTellsWhatWouldChange(t *testing.T) {
	path := auditedRun(t, "log_code full")
	out, _, err := subcommand(t, "", "audit", "replay", path)
	require.NoError(t, err)
	assert.Contains(t, out, "0 decided otherwise")
	out, _, err = subcommand(t, "", "audit", "replay", "--all", "--format", "json", path)
	require.NoError(t, err)
	var report replayed
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Len(t, report.Rows, 2)
	assert.Equal(t, []string{"pass", "block"}, []string{report.Rows[0].Was, report.Rows[1].Was})

	// With the rules that blocked it off, the second would pass.
	rules := map[string]bool{}
	require.NoError(t, readRecords(path, func(r audit.Record, _ []byte) bool {
		if r.Decision != nil {
			for _, s := range r.Subjects {
				for _, v := range s.Verdict.Violations {
					rules[v.Rule] = true
				}
			}
		}
		return true
	}))
	require.NotEmpty(t, rules)
	config := filepath.Join(t.TempDir(), "Caddyfile")
	disable := ""
	for rule := range rules {
		disable += " " + rule
	}
	require.NoError(t, os.WriteFile(config, []byte(":8080 {\n\te2b_guard {\n\t\tguard static {\n\t\t\tdisable"+disable+"\n\t\t}\n\t}\n}\n"), 0o600))
	out, stderr, err := subcommand(t, "", "audit", "replay", "--config", config, path)
	require.NoError(t, err, stderr)
	assert.Contains(t, out, "1 decided otherwise")
	assert.Contains(t, out, "rm -rf /")

	out, _, err = subcommand(t, "", "audit", "replay", auditedRun(t, "log_code digest"))
	require.NoError(t, err)
	assert.Contains(t, out, "2 are not on record in full")
}
