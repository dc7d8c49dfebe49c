package caddymodule

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the expected half of the golden files and the generated docs")

const goldenSeparator = "----------"

// TestGoldenCaddyfiles adapts every testdata/*.caddyfiletest: a Caddyfile, a
// line of ten dashes, and the JSON of e2b_guard or the error's text. What adapts
// must also load, and JSON must mean the same as the Caddyfile it came from.
func TestGoldenCaddyfiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.caddyfiletest")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) {
			t.Setenv("E2B_API_KEY", "e2b_00000000000000000000")
			t.Setenv("TEAM_A_KEY", "e2b_aaaaaaaaaaaaaaaaaaaa")
			t.Setenv("TEAM_B_KEY", "e2b_bbbbbbbbbbbbbbbbbbbb")
			t.Setenv("SUPERAGENT_API_KEY", "sk-superagent")
			t.Setenv("SEAL_KEY", strings.Repeat("5e", 32))
			t.Setenv("EMPTY", "")
			t.Setenv("NOT_A_URL", "e2b.app")
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			caddyfile, want, found := strings.Cut(string(data), goldenSeparator+"\n")
			require.True(t, found, "no line of ten dashes")

			got := outcomeOf(caddyfile)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(caddyfile+goldenSeparator+"\n"+got+"\n"), 0o644))
				return
			}
			require.Equal(t, strings.TrimSpace(want), got)
		})
	}
}

// outcomeOf is the handler's JSON if the Caddyfile adapts and loads, else the
// error.
func outcomeOf(caddyfile string) string {
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return "adapt: " + strings.NewReplacer("guest, ", "", "stranger, ", "").Replace(err.Error()) // modules of other tests
	}
	for _, w := range warnings {
		if !strings.Contains(w.Message, "not formatted") {
			return "warning: " + w.String()
		}
	}
	var cfg *caddy.Config
	if err := caddy.StrictUnmarshalJSON(adapted, &cfg); err != nil {
		return "decode: " + err.Error()
	}
	if err := caddy.Validate(cfg); err != nil {
		_, ours, _ := strings.Cut(err.Error(), "loading module 'e2b_guard': ") // before it: Caddy's path to the handler
		return "load: " + ours
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, findHandler(adapted), "", "\t"); err != nil {
		return err.Error()
	}
	return pretty.String()
}
