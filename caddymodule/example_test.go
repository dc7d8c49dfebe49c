package caddymodule

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCaddyfileExampleAdaptsAndValidates(t *testing.T) {
	t.Setenv("E2B_API_KEY", "e2b_00000000000000000000")
	t.Setenv("TEAM_A_KEY", "e2b_aaaaaaaaaaaaaaaaaaaa")
	t.Setenv("SUPERAGENT_API_KEY", "sk-superagent")
	example := read(t, repository(t, "Caddyfile.example"))

	adapted, err := adapt(example)
	require.NoError(t, err)
	assert.NotContains(t, string(adapted), "e2b_0000", "a key must be resolved when the handler runs, not written into the configuration")
	validate(t, adapted)
	assert.True(t, bytes.Equal(caddyfile.Format([]byte(example)), []byte(example)), "run: e2bguard fmt --overwrite Caddyfile.example")

	// What is commented out must be right as well.
	t.Setenv("SEAL_KEY", strings.Repeat("5e", 32))
	opened := regexp.MustCompile(`(?m)^(\t\t)# (guard superagent \{)\n\t\t#(\t.*)\n\t\t#(\t.*)\n\t\t#(\t.*)\n\t\t# \}`).
		ReplaceAllString(example, "$1$2\n$3\n$4\n$5\n}")
	require.NotEqual(t, example, opened)
	opened = regexp.MustCompile(`(?m)^\t\t#   (network|ports|seal_key) `).ReplaceAllString(opened, "\t\t$1 ")
	opened = regexp.MustCompile(`(?m)^\t\tnetwork blocked\n`).ReplaceAllString(opened, "")
	adapted, err = adapt(opened)
	require.NoError(t, err)
	assert.Contains(t, string(adapted), `"packages"`)
	assert.Contains(t, string(adapted), `"superagent"`)
	validate(t, adapted)
}

// validate loads a configuration as `validate` does, without starting it.
func validate(t *testing.T, adapted []byte) {
	t.Helper()
	var cfg *caddy.Config
	require.NoError(t, caddy.StrictUnmarshalJSON(adapted, &cfg))
	require.NoError(t, caddy.Validate(cfg))
}

// TestExamplesLeaveFlushingToTheProxy: an explicit flush_interval of -1 once
// also meant "keep the upstream call when the client is gone"; see
// caddyserver/caddy#6666.
func TestExamplesLeaveFlushingToTheProxy(t *testing.T) {
	for _, file := range []string{"Caddyfile.example", "README.md", "docs/guide.md", "deploy/kubernetes/sidecar.yaml", "deploy/docker/Caddyfile"} {
		assert.NotContains(t, read(t, repository(t, file)), "flush_interval", file)
	}
}
