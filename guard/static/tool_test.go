package static

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard"
)

func TestToolInputs(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for text, rule := range map[string]string{
		`{"command": "rm -rf /"}`:                                           "delete-system-tree",
		`{"tool": {"cmd": ["rm", "-rf", "/etc"]}}`:                          "delete-system-tree",
		`{"code": "import os\nos.system('rm -rf /')"}`:                      "delete-system-tree",
		`{"url": "http://169.254.169.254/latest/meta-data/"}`:               "metadata-endpoint",
		`FETCH http://169.254.169.254/latest/meta-data/`:                    "metadata-endpoint",
		`{"path": "/etc/shadow"}`:                                           "read-credentials",
		`READ ~/.ssh/id_rsa`:                                                "read-credentials",
		`{"bashCommand": "rm -rf /etc"}`:                                    "delete-system-tree",
		`{"shell_command": "rm -rf /etc"}`:                                  "delete-system-tree",
		`{"code-snippet": "import os\nos.system('rm -rf /')"}`:              "delete-system-tree",
		`{"command": "rm", "args": ["-rf", "/etc"]}`:                        "delete-system-tree",
		`{"program": "rm", "arguments": ["-rf", "/etc"]}`:                   "delete-system-tree",
		`{"command": "ls -la"}`:                                             "",
		`{"url": "https://example.com/"}`:                                   "",
		`{"path": "/home/user/a.txt", "content": "rm -rf / is a bad idea"}`: "",
		`{"query": "SELECT 1"}`:                                             "",
		`FETCH https://example.com/`:                                        "",
		`{"text": "how do I run rm -rf / safely?"}`:                         "",
	} {
		f := g.Inspect(guard.Subject{Kind: guard.KindTool, Target: "tool", Text: text})
		if rule == "" {
			assert.Empty(t, rulesOf(f), text)
		} else {
			assert.Contains(t, rulesOf(f), rule, text)
		}
	}
}

// A tool that is called after what it does runs its texts, whatever their names.
func TestToolsThatRunTheirInput(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for tool, text := range map[string]string{
		"bash": `{"input": "rm -rf /etc"}`, "run_shell": `{"text": "rm -rf /etc"}`, "executeCommand": `{"line": "rm -rf /etc"}`,
		"run_python": `{"source": "import os\nos.system('rm -rf /etc')"}`, "node": `{"body": "require('child_process').execSync('rm -rf /etc')"}`,
	} {
		assert.Contains(t, rulesOf(g.Inspect(guard.Subject{Kind: guard.KindTool, Target: tool, Text: text})), "delete-system-tree", tool)
	}
	assert.Empty(t, rulesOf(g.Inspect(guard.Subject{Kind: guard.KindTool, Target: "note", Text: `{"text": "rm -rf /etc"}`})))
}

// The program that starts MCP servers runs the commands of its configuration.
func TestMCPGatewayRunsItsConfiguration(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for _, line := range []string{
		`mcp-gateway --config '{"github/o/r":{"runCmd":"rm -rf /etc","installCmd":"npm ci"}}'`,
		`mcp-gateway --config '{"github/o/r":{"installCmd":"rm -rf /etc"}}'`,
		`mcp-gateway --config='{"a":[1,{"x":null,"runCmd":"rm -rf /etc"}]}'`,
		`mcp-gateway --config '{"github/o/r":{"runCmd":"true","runCmd":"rm -rf /etc"}}'`,
		`sudo mcp-gateway -config '{"github/o/r":{"run\u0043md":"rm -rf /etc"}}'`,
	} {
		assert.Contains(t, rulesOf(g.Inspect(guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: line})), "delete-system-tree", line)
	}
	for _, line := range []string{
		`mcp-gateway --config '{"github/modelcontextprotocol/servers":{"installCmd":"npm ci","runCmd":"npx -y ."},"exa":{"apiKey":"k"}}'`,
		`mcp-gateway --config '{}'`, `mcp-gateway --config 'no json'`, `mcp-gateway --config '{"a":{"description":"rm -rf /etc"}}'`,
	} {
		assert.Empty(t, rulesOf(g.Inspect(guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: line})), line)
	}
}
