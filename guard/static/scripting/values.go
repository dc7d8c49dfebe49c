package scripting

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// taskTables are tables whose texts are commands, whatever their keys are.
var taskTables = map[string]bool{"scripts": true, "tasks": true, "extra-scripts": true}

// taskKeys are keys whose values are commands, or lists of them, wherever they
// are.
var taskKeys = map[string]bool{
	"cmd": true, "shell": true, "run": true, "commands": true, "commands_pre": true, "commands_post": true, "command": true, "pre-install-commands": true, "post-install-commands": true,
	"before-build": true, "before-all": true, "before-test": true, "test-command": true, "repair-wheel-command": true, "rustc-wrapper": true, "runner": true, "linker": true,
	"postCreateCommand": true, "onCreateCommand": true, "updateContentCommand": true, "postStartCommand": true, "postAttachCommand": true, "initializeCommand": true, "postCommand": true,
}

// values walks what a file of settings holds.
type values struct {
	r    effect.Result
	b    *effect.Budget
	text string
}

// ParseBuildTOML reads the tasks of pyproject.toml, Pipfile, pixi.toml and the
// like. Tables of entry points look the same and name no program.
func ParseBuildTOML(text string, b *effect.Budget) effect.Result {
	v := values{b: b, text: text}

	if !v.pay() {
		return v.r
	}

	var doc map[string]any
	if err := toml.Unmarshal([]byte(text), &doc); err != nil {
		v.loose(looseTOML)

		return v.r
	}

	v.walk("", doc, false)

	return v.r
}

// jsonComment is a comment, or a comma that nothing follows, of JSON that an
// editor bears; texts are matched to be left alone.
var jsonComment = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|//[^\n]*|(?s:/\*.*?\*/)|,(\s*[\]}])`)

// ParseBuildJSON reads the tasks of an editor and the commands of a container
// made for development.
func ParseBuildJSON(text string, b *effect.Budget) effect.Result {
	v := values{b: b, text: text}

	if !v.pay() {
		return v.r
	}

	plain := jsonComment.ReplaceAllStringFunc(strings.TrimPrefix(text, "\uFEFF"), func(m string) string {
		switch m[0] {
		case '"':
			return m
		case ',':
			return m[1:]
		default:
			return " "
		}
	})

	var doc any
	if err := json.Unmarshal([]byte(plain), &doc); err != nil {
		v.loose(loosePair)

		return v.r
	}

	v.walk("", doc, false)

	return v.r
}

func (v *values) pay() bool {
	if v.b.Spend(1 + len(v.text)/16) {
		return true
	}

	v.r.Note(effect.NoteBudget, 0, "out of steps")

	return false
}

// walk looks for commands; in says that a table of tasks is around.
func (v *values) walk(key string, value any, in bool) {
	in = in || taskTables[key]

	switch x := value.(type) {
	case string:
		if in || taskKeys[key] {
			v.embed(key, x)
		}

		if key == "legacy_tox_ini" {
			for _, e := range ParseINI(x, v.b).Embedded {
				v.embed(key, e.Text.Text)
			}
		}
	case []any:
		v.list(key, x, in)
	case map[string]any:
		if argv, ok := x["args"].([]any); ok {
			if command, ok := x["command"].(string); ok {
				v.embed(key, command+" "+quoteArgs(texts(argv)))
			}
		}

		for _, k := range slices.Sorted(maps.Keys(x)) {
			// Of a command's map, as of a list, each value is one.
			_, leaf := x[k].(string)
			v.walk(k, x[k], in && (leaf || taskTables[key]) || taskKeys[key])
		}
	}
}

// list reads a list: of commands, or one argument vector.
func (v *values) list(key string, list []any, in bool) {
	argv, run := texts(list), in || taskKeys[key]
	if run && len(argv) == len(list) {
		v.embed(key, quoteArgs(argv))

		for _, a := range argv {
			if strings.ContainsAny(a, " \t") {
				v.embed(key, a)
			}
		}

		return
	}

	// Of a list of maps only what is a command by its key is one.
	for _, item := range list {
		if script, ok := item.(string); ok && run {
			v.embed(key, script)
		} else {
			v.walk("", item, false)
		}
	}
}

// texts are the texts of a list.
func texts(list []any) []string {
	var out []string

	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}

	return out
}

// embed embeds a command; its span is the first line that holds its key.
func (v *values) embed(key, script string) {
	at := max(strings.Index(v.text, key), 0)

	end := len(v.text)
	if i := strings.IndexByte(v.text[at:], '\n'); i >= 0 {
		end = at + i
	}

	embedBuild(&v.r, script, effect.Span{Start: at, End: end}, -1, key)
}

// looseTOML is a key and its text.
var looseTOML = regexp.MustCompile(`(?m)^\s*[\w."'-]+\s*=.*?("(?:[^"\\\n]|\\.)*"|'[^'\n]*')`)

// loose judges a text with a fault, that a tool may bear: every value may be a
// command.
func (v *values) loose(pairs *regexp.Regexp) {
	for _, m := range pairs.FindAllStringSubmatchIndex(v.text, -1) {
		script := v.text[m[2]:m[3]]
		if json.Unmarshal([]byte(script), &script) != nil {
			script = strings.Trim(script, `'"`)
		}

		embedBuild(&v.r, script, effect.Span{Start: m[2], End: m[3]}, -1, "value")
	}
}
