package static

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// toolKeys say what the string below a key of a tool's input is.
var toolKeys = map[string]string{
	"command": "bash", "cmd": "bash", "shell": "bash", "bash": "bash", "script": "", "code": "", "python": "python", "javascript": "javascript", "js": "javascript", "sql": "sql", "query": "sql",
}

// tool judges the input of a tool call: JSON whose strings are commands, code,
// addresses or paths by the names they stand under, or plain text.
func (a *analysis) tool() {
	var input any

	if err := json.Unmarshal([]byte(a.subject.Text), &input); err != nil {
		a.words(a.subject.Text)
		a.code(a.subject.Language, a.subject.Text)

		return
	}

	a.language = "json"
	a.toolValue("", input, 0)
	a.toolRuns(input)
}

// toolRuns judges the input of a tool that is called after what it does, such as
// run_python or bash: its texts are code by whatever name they stand under.
func (a *analysis) toolRuns(input any) {
	object, ok := input.(map[string]any)
	if !ok {
		return
	}

	lang := ""

	for _, word := range nameWords(a.subject.Target) {
		switch word {
		case "bash", "shell", "sh", "exec", "terminal", "command", "cmd":
			lang = "bash"
		case "python", "javascript", "node", "typescript":
			lang = map[string]string{"node": "javascript"}[word]
			if lang == "" {
				lang = word
			}
		}
	}

	if lang == "" {
		return
	}

	for _, k := range slices.Sorted(maps.Keys(object)) {
		text, ok := object[k].(string)
		if _, known := toolKey(k); known || !ok {
			continue
		}

		n := normalise(text)
		a.run(lang, effect.Const(n.text), position{offset: -1, span: effect.Span{End: len(a.subject.Text)}}, 0, 1)
	}
}

// toolKey is the language of what stands below a key, by the words in its name:
// bashCommand, shell_command and code-snippet are read like command and code.
func toolKey(key string) (lang string, ok bool) {
	if lang, ok = toolKeys[strings.ToLower(key)]; ok {
		return lang, true
	}

	for _, word := range nameWords(key) {
		if l, known := toolKeys[word]; known && word != "query" {
			return l, true
		}
	}

	return "", false
}

// nameWords splits a name at its case, dashes and underscores.
func nameWords(name string) []string {
	var b strings.Builder

	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}

		if unicode.IsLetter(r) {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteByte(' ')
		}
	}

	return append(strings.Fields(b.String()), strings.ToLower(name))
}

// maxToolDepth bounds nesting of a tool's input.
const maxToolDepth = 32

func (a *analysis) toolValue(key string, v any, depth int) {
	if depth > maxToolDepth || !a.budget.Spend(1) {
		a.notes = append(a.notes, effect.Note{Kind: effect.NoteDepth, Text: "tool input"})

		return
	}

	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			a.toolValue(k, v[k], depth+1)
		}

		a.toolCommand(v)
	case []any:
		a.toolList(key, v, depth)
	case string:
		a.toolText(key, v)
	}
}

// toolList is a list of inputs; under a command's name it is an argument
// vector.
func (a *analysis) toolList(key string, list []any, depth int) {
	words := make([]string, 0, len(list))

	for _, item := range list {
		if s, ok := item.(string); ok {
			words = append(words, "'"+strings.ReplaceAll(s, "'", `'\''`)+"'")
		}

		a.toolValue(key, item, depth+1)
	}

	if lang, ok := toolKey(key); ok && lang == "bash" && len(words) == len(list) && len(list) > 1 {
		a.toolText(key, strings.Join(words, " "))
	}
}

// toolCommand joins a program and its arguments that stand under two keys.
func (a *analysis) toolCommand(object map[string]any) {
	var program string

	var args []any

	for _, k := range slices.Sorted(maps.Keys(object)) {
		switch v := object[k].(type) {
		case string:
			if lang, ok := toolKey(k); ok && lang == "bash" || strings.EqualFold(k, "program") || strings.EqualFold(k, "executable") {
				program = v
			}
		case []any:
			if word := strings.ToLower(k); strings.HasPrefix(word, "arg") || word == "params" || word == "parameters" {
				args = v
			}
		}
	}

	if program == "" || len(args) == 0 {
		return
	}

	line := program

	for _, arg := range args {
		if s, ok := arg.(string); ok {
			line += " '" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}

	a.toolText("command", line)
}

func (a *analysis) toolText(key, text string) {
	n := normalise(text)
	a.changed(n.changes)
	a.words(n.text)

	lang, ok := toolKey(key)
	if !ok {
		return
	}

	pos := position{offset: -1, span: effect.Span{End: len(a.subject.Text)}}
	a.run(lang, effect.Const(n.text), pos, 0, 1)

	if n.other != "" {
		a.run(lang, effect.Const(n.other), pos, 0, 1)
	}
}

// words reports the addresses and paths that a text names on its own, such as
// the input of a tool that fetches or reads.
func (a *analysis) words(text string) {
	a.address(text)
	a.address(afterVerb(text))

	text = strings.TrimSpace(text)
	if len(text) > 4096 || strings.Count(text, " ") > 8 {
		return
	}

	span := effect.Span{End: len(a.subject.Text)}

	for w := range strings.FieldsSeq(text) {
		a.address(strings.Trim(w, "\"'<>(),"))

		switch {
		case strings.Contains(w, "://"):
			a.effects = append(a.effects, effect.Effect{Kind: effect.Connect, Span: span, Target: effect.Const(w), Via: "tool"})
		case strings.HasPrefix(w, "/"), strings.HasPrefix(w, "~/"):
			a.effects = append(a.effects, effect.Effect{Kind: effect.Read, Span: span, Target: effect.Const(w), Via: "tool"})
		}
	}
}
