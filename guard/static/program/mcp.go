package program

import (
	"encoding/json"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// mcpGateway is the program that starts MCP servers from a configuration in
// JSON: the commands in it, which install and run servers, are a shell's.
func mcpGateway(m *Machine, c *Call) effect.Value {
	for i, a := range c.Args {
		config, ok := strings.CutPrefix(strings.TrimLeft(a.Text, "-"), "config=")
		if !ok && strings.TrimLeft(a.Text, "-") == "config" && i+1 < len(c.Args) {
			config = c.Args[i+1].Text
		}

		for _, command := range configCommands(config) {
			m.runText(c, effect.Const(command), "bash", "mcp-gateway")
		}
	}

	return effect.Unknown(effect.TaintOutput)
}

// configCommands lists the strings below keys that end in "cmd" or "command", of
// every key where one is there twice.
func configCommands(config string) []string {
	type level struct {
		object, value bool
		command       bool
	}

	var (
		commands []string
		levels   []level
		command  bool
	)

	dec := json.NewDecoder(strings.NewReader(config))

	for {
		token, err := dec.Token()
		if err != nil {
			return commands
		}

		top := len(levels) - 1

		switch t := token.(type) {
		case json.Delim:
			if t == '}' || t == ']' {
				levels = levels[:top]
				command = top > 0 && levels[top-1].command

				continue
			}

			if top >= 0 {
				levels[top].value = false
			}

			levels = append(levels, level{object: t == '{', command: command})
		case string:
			if top >= 0 && levels[top].object && !levels[top].value {
				key := strings.ToLower(t)
				command = strings.HasSuffix(key, "cmd") || strings.HasSuffix(key, "command")
				levels[top].value = true

				continue
			}

			if command {
				commands = append(commands, t)
			}

			if top >= 0 {
				levels[top].value = false
			}
		default:
			if top >= 0 {
				levels[top].value = false
			}
		}
	}
}
