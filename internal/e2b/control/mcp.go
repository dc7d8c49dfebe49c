package control

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// A sandbox's MCP servers are configured by name: those of E2B's catalogue with
// their settings, those of a repository ("github/owner/name") with the commands
// that install and run them. The API keeps the configuration, and the SDK starts
// the servers with a command of its own. Source: E2B's JavaScript SDK.

// serverSubjects are the commands of the configuration, wherever they stand, and
// the whole of it, since a server may start what its settings say.
func serverSubjects(config *strictjson.Object) []guard.Subject {
	subjects := []guard.Subject{{Kind: guard.KindTool, Target: "mcp", Text: string(strictjson.Encode(config))}}
	var walk func(server, key string, value any)
	walk = func(server, key string, value any) {
		switch v := value.(type) {
		case *strictjson.Object:
			for _, k := range v.Keys() {
				e, _ := v.Get(k)
				walk(server, k, e)
			}
		case []any:
			words := make([]string, 0, len(v))
			for _, e := range v {
				if word, ok := e.(string); ok {
					words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
				}
				walk(server, key, e)
			}
			if isCommand(key) && len(words) == len(v) && len(v) > 1 {
				walk(server, key, strings.Join(words, " "))
			}
		case string:
			if strings.TrimSpace(v) == "" || !isCommand(key) {
				return
			}
			kind := guard.KindCommand
			if strings.Contains(strings.ToLower(key), "install") {
				kind = guard.KindBuild
			}
			subjects = append(subjects, guard.Subject{Kind: kind, Language: "bash", Target: server, Text: v})
		}
	}
	for _, server := range config.Keys() {
		settings, _ := config.Get(server)
		walk(server, "", settings)
	}
	return subjects
}

// isCommand reports whether what stands under a key is run by a shell.
func isCommand(key string) bool {
	key = strings.ToLower(key)
	for _, ending := range []string{"cmd", "command", "script", "shell", "exec", "entrypoint"} {
		if strings.HasSuffix(key, ending) || strings.HasSuffix(key, ending+"s") {
			return true
		}
	}
	return false
}
