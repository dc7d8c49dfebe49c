package caddymodule

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The credentials of one call, each of which must reach no log.
var testCredentials = map[string]string{
	"X-API-Key":                "e2b_11111111111111111111",
	"X-Access-Token":           "envd-access-token-2222",
	"E2b-Traffic-Access-Token": "traffic-token-3333",
	"Authorization":            "Basic c2VjcmV0LTQ0NDQ6",
	"X-Supabase-Token":         "supabase-token-5555",
	"E2b-Sandbox-Id":           "sbx1",
	"E2b-Sandbox-Port":         "49983",
	"Content-Type":             "application/octet-stream",
}

// TestAccessLogHoldsNoCredentials: Caddy's own redaction knows Authorization
// and cookies only; see flawchess/flawchess PR 315 and 316.
func TestAccessLogHoldsNoCredentials(t *testing.T) {
	for _, format := range []string{"json", "console"} {
		t.Run(format, func(t *testing.T) {
			logFile := filepath.Join(t.TempDir(), "access.log")
			caddyfile, base := site(t, fakeE2B(t, `[{"path":"/a.txt","name":"a.txt","type":"file"}]`), "")
			caddyfile = strings.Replace(caddyfile, "\te2b_guard {", "\tlog {\n\t\toutput file "+logFile+"\n\t\tformat "+format+"\n\t\tlevel DEBUG\n\t}\n\te2b_guard {", 1)
			caddyfile = strings.Replace(caddyfile, "\tadmin off", "\tadmin off\n\tdebug\n\tlog default {\n\t\toutput file "+logFile+".default\n\t}", 1)
			serve(t, caddyfile)

			call(t, http.MethodPost, base+"/files?path=%2Fa.txt&username=user&signature=v1_6666&%73ignature=v1_7777&SIGNATURE=v1_8888", testCredentials, "data")
			call(t, http.MethodGet, base+"/v2/sandboxes?limit=1", map[string]string{"X-API-Key": testCredentials["X-API-Key"]}, "")

			var log string
			require.Eventually(t, func() bool { log = readIfThere(logFile); return strings.Count(log, "\n") >= 2 }, 5*time.Second, 10*time.Millisecond)
			log += readIfThere(logFile + ".default")
			for _, secret := range []string{
				testCredentials["X-API-Key"], testCredentials["X-Access-Token"], testCredentials["E2b-Traffic-Access-Token"],
				testCredentials["Authorization"], testCredentials["X-Supabase-Token"], "v1_6666", "v1_7777", "v1_8888",
			} {
				assert.NotContains(t, log, secret)
			}
			assert.Equal(t, 2, strings.Count(log, "handled request"), "one access line a call")
			assert.Contains(t, log, "path=%2Fa.txt&username=user", "what is no secret stays as it was")
			assert.Contains(t, log, redacted)
			assert.Contains(t, log, "e2b_guard_request_id")
		})
	}
}

// TestAccessLineHasCaddysFields: formats and dashboards made for Caddy's access
// log must go on working.
func TestAccessLineHasCaddysFields(t *testing.T) {
	dir := t.TempDir()
	guarded, plain := filepath.Join(dir, "guarded"), filepath.Join(dir, "plain")
	caddyfile, base := site(t, fakeE2B(t, `[]`), "")
	caddyfile = strings.Replace(caddyfile, "\te2b_guard {", "\tlog {\n\t\toutput file "+guarded+"\n\t}\n\te2b_guard {", 1)
	other := "http://" + freeAddress(t)
	caddyfile += other + " {\n\tlog {\n\t\toutput file " + plain + "\n\t}\n\trespond 200\n}\n"
	serve(t, caddyfile)
	call(t, http.MethodGet, base+"/v2/sandboxes", nil, "")
	call(t, http.MethodGet, other+"/v2/sandboxes", nil, "")

	fields := func(file string) map[string]any {
		var line map[string]any
		require.Eventually(t, func() bool { return json.Unmarshal([]byte(readIfThere(file)), &line) == nil }, 5*time.Second, 10*time.Millisecond)
		return line
	}
	got, want := fields(guarded), fields(plain)
	for name, value := range want {
		if assert.Contains(t, got, name) {
			assert.IsType(t, value, got[name], name)
		}
	}
	for name := range want["request"].(map[string]any) {
		assert.Contains(t, got["request"], name)
	}
	assert.Equal(t, want["msg"], got["msg"])
	assert.Equal(t, want["level"], got["level"])
	assert.Regexp(t, `^http\.log\.access\.log\d$`, got["logger"])
}

// An upgraded connection is taken from the server, so nothing of its answer passes
// the log; its line tells the status all the same.
func TestAccessLineOfAnUpgrade(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
		_ = conn.Close()
	}))
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "access")
	caddyfile, base := site(t, up.URL, "ports 3000")
	serve(t, strings.Replace(caddyfile, "\te2b_guard {", "\tlog {\n\t\toutput file "+file+"\n\t}\n\te2b_guard {", 1))
	resp, _ := call(t, http.MethodGet, base+"/", map[string]string{"E2b-Sandbox-Id": "isbx1", "E2b-Sandbox-Port": "3000", "Connection": "Upgrade", "Upgrade": "chat"}, "")
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	require.Eventually(t, func() bool { return strings.Contains(readIfThere(file), `"status":101`) }, 5*time.Second, 10*time.Millisecond, "%s", readIfThere(file))
}

func TestAccessLogObeysLogSkip(t *testing.T) {
	logFile := filepath.Join(t.TempDir(), "access.log")
	caddyfile, base := site(t, fakeE2B(t, `[]`), "")
	caddyfile = strings.Replace(caddyfile, "\te2b_guard {", "\tlog {\n\t\toutput file "+logFile+"\n\t}\n\tlog_skip /v2/*\n\te2b_guard {", 1)
	serve(t, caddyfile)
	call(t, http.MethodGet, base+"/v2/sandboxes", nil, "")
	call(t, http.MethodGet, base+"/sandboxes", nil, "")
	require.Eventually(t, func() bool { return strings.Contains(readIfThere(logFile), "\n") }, 5*time.Second, 10*time.Millisecond)
	assert.Equal(t, 1, strings.Count(readIfThere(logFile), "handled request"))
}

func TestHarmlessURIHidesSecretsAndNothingElse(t *testing.T) {
	for uri, want := range map[string]string{
		"/files":                                "/files",
		"/files?path=%2Fa%20b":                  "/files?path=%2Fa%20b",
		"/files?signature=v1_x":                 "/files?signature=REDACTED",
		"/files?a=1&signature=v1_x&b=2":         "/files?a=1&signature=REDACTED&b=2",
		"/files?signature=v1_x;signature=v1_y":  "/files?signature=REDACTED&signature=REDACTED",
		"/files?%73ignatur%65=v1_x":             "/files?%73ignatur%65=REDACTED",
		"/files?SIGNATURE=v1_x":                 "/files?SIGNATURE=REDACTED",
		"/files?%zz=v1_x":                       "/files?REDACTED",
		"/files?signature_expiration=1&path=/s": "/files?signature_expiration=1&path=/s",
		"/files?signature":                      "/files?signature=REDACTED",
		"/files?path=/x?signature=v1_x":         "/files?path=/x?signature=v1_x",
		"/templates/x/files/ab?token=e2bg_x":    "/templates/x/files/ab?token=REDACTED",
	} {
		assert.Equal(t, want, harmlessURI(uri), uri)
	}
}
