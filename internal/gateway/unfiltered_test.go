package gateway

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// unsearched are the operations of sandboxes whose answers are not searched for
// secrets, and why that is no way out for them.
var unsearched = map[route.Operation]string{
	"volume.file_write":         "names, sizes and times",
	"volume.dir_list":           "names, sizes and times",
	"volume.dir_make":           "names, sizes and times",
	"volume.path_info":          "names, sizes and times",
	"volume.path_update":        "names, sizes and times",
	"volume.path_remove":        "an empty answer",
	"filesystem.watch_dir":      "names of files, as they change",
	"files.write":               "the names that the client gave",
	"files.compose":             "the names that the client gave",
	route.PortRequest:           "a user's own server, whose answers may be anything; open only where the configuration says so",
	"http.preflight":            "names methods and headers only",
	"process.send_input":        "an empty answer",
	"process.stream_input":      "an empty answer",
	"process.close_stdin":       "an empty answer",
	"process.send_signal":       "an empty answer",
	"process.update":            "an empty answer",
	"filesystem.remove":         "an empty answer",
	"filesystem.create_watcher": "an id",
	"filesystem.remove_watcher": "an empty answer",
	"envd.health":               "an empty answer",
	"envd.metrics":              "numbers",
	"code.health":               "a word",
	"context.create":            "an id, a language and the folder that the client named",
	"context.list":              "ids, languages and folders that clients named",
	"context.restart":           "an empty answer",
	"context.delete":            "an empty answer",
	"mcp.close":                 "an empty answer",
}

// Every answer that can carry what a sandbox holds is searched for secrets, or it
// is said here why not: a new operation cannot be forgotten. See
// BerriAI/litellm#35257, where one streaming route was.
func TestEveryAnswerOfASandboxIsSearchedForSecrets(t *testing.T) {
	seen := map[route.Operation]bool{}
	for _, row := range route.Table() {
		switch row.Plane {
		case route.Envd, route.Files, route.Interpreter, route.MCP, route.Volume, route.Port:
		default:
			continue
		}
		if row.Default == route.Deny {
			continue
		}
		seen[row.Operation] = true
		searched := strings.Contains(operations[row.Operation].filtered, "secrets")
		assert.NotEqual(t, searched, unsearched[row.Operation] != "", "%s: searched: %v, filtered: %q", row.Operation, searched, operations[row.Operation].filtered)
	}
	for op := range unsearched {
		assert.True(t, seen[op], "%s is no open operation", op)
	}
}
