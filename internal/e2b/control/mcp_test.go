package control

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// What a sandbox's MCP servers are installed and run with is judged when the
// sandbox is made, however deep it stands.
func TestCommandsOfMCPServersAreSubjects(t *testing.T) {
	target := route.Target{Row: route.Row{Operation: route.SandboxCreate, Pattern: "/v2/sandboxes"}}
	m, ref := Decode(target, []byte(`{"templateID":"mcp-gateway","mcp":{"exa":{"apiKey":"k"},"github/o/r":{"installCmd":"npm ci","runCmd":"npx -y .","deep":[{"Command":["a b","c"]}],"empty_cmd":" "}}}`))
	require.Nil(t, ref)
	got := m.Subjects()
	require.Equal(t, guard.Subject{Kind: guard.KindTool, Target: "mcp", Text: `{"exa":{"apiKey":"k"},"github/o/r":{"installCmd":"npm ci","runCmd":"npx -y .","deep":[{"Command":["a b","c"]}],"empty_cmd":" "}}`}, got[0])
	require.Equal(t, []guard.Subject{
		{Kind: guard.KindBuild, Language: "bash", Target: "github/o/r", Text: "npm ci"},
		{Kind: guard.KindCommand, Language: "bash", Target: "github/o/r", Text: "npx -y ."},
		{Kind: guard.KindCommand, Language: "bash", Target: "github/o/r", Text: "a b"},
		{Kind: guard.KindCommand, Language: "bash", Target: "github/o/r", Text: "c"},
		{Kind: guard.KindCommand, Language: "bash", Target: "github/o/r", Text: "'a b' 'c'"},
	}, got[1:])
	require.Contains(t, string(m.Encode()), `"runCmd":"npx -y ."`)

	for _, none := range []string{`{"templateID":"base"}`, `{"templateID":"base","mcp":null}`, `{"templateID":"base","mcp":{}}`} {
		m, ref := Decode(target, []byte(none))
		require.Nil(t, ref)
		require.Empty(t, m.Subjects())
	}
	_, ref = Decode(target, []byte(`{"templateID":"base","mcp":{"a":{"runCmd":"x","runCmd":"y"}}}`))
	require.NotNil(t, ref, "a key that is there twice")
}
