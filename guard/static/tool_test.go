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
