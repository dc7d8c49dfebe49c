package guardapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/mcp"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// maxParts bounds what one text may hold: tool calls, addresses, pieces of code.
const maxParts = 64

// Subjects is what the guard must see of a text. The API does not say what a text
// is, so it is told by its form:
//
//   - a verb of a tool and its input, such as FETCH and an address, READ and a path
//     or SHELL and a command;
//   - JSON: a tool's input, and each call of a tool in it by the tool's name;
//   - words that no interpreter could run: a prompt;
//   - all else is code in a language that nobody named, and so is each fenced block
//     in it, in the language that the fence names.
func Subjects(text string) ([]guard.Subject, *refusal.Refusal) {
	subjects, ok := verb(text)
	switch {
	case ok:
	case isJSON(text):
		var err error
		if subjects, err = jsonSubjects(text); err != nil {
			ref := invalid("the text is JSON that cannot be read in one way only: %s", err)
			ref.Status, ref.Err = http.StatusUnprocessableEntity, err
			return nil, ref
		}
	case isPrompt(text):
		subjects = []guard.Subject{{Kind: guard.KindPrompt, Text: text}}
	default:
		subjects = append([]guard.Subject{{Kind: guard.KindCode, Text: text}}, fenced(text)...)
	}
	if len(subjects) > maxParts {
		return nil, invalid("the text holds more than %d tool calls, addresses or pieces of code. Send less at once", maxParts)
	}
	return subjects, nil
}

// A tool is what a verb asks for.
type tool uint8

const (
	fetches tool = iota + 1
	reads
	lists
	writes
	removes
	makesDir
	runs
)

// verbs are the words before a tool's input. A language says in what the input is
// run.
var verbs = map[string]struct {
	tool     tool
	language string
}{
	"FETCH": {fetches, ""}, "GET": {fetches, ""}, "HEAD": {fetches, ""}, "POST": {fetches, ""}, "PUT": {fetches, ""}, "PATCH": {fetches, ""},
	"DOWNLOAD": {fetches, ""}, "BROWSE": {fetches, ""}, "NAVIGATE": {fetches, ""}, "VISIT": {fetches, ""}, "OPEN_URL": {fetches, ""}, "HTTP": {fetches, ""},
	"READ": {reads, ""}, "READ_FILE": {reads, ""}, "OPEN": {reads, ""}, "LOAD": {reads, ""}, "VIEW": {reads, ""}, "CAT": {reads, ""},
	"LIST": {lists, ""}, "LIST_DIR": {lists, ""}, "LS": {lists, ""}, "STAT": {lists, ""},
	"WRITE": {writes, ""}, "WRITE_FILE": {writes, ""}, "APPEND": {writes, ""}, "CREATE": {writes, ""}, "SAVE": {writes, ""}, "EDIT": {writes, ""}, "UPLOAD": {writes, ""},
	"DELETE": {removes, ""}, "REMOVE": {removes, ""}, "UNLINK": {removes, ""}, "RM": {removes, ""}, "RMDIR": {removes, ""},
	"MKDIR": {makesDir, ""},
	"SHELL": {runs, "bash"}, "BASH": {runs, "bash"}, "SH": {runs, "bash"}, "EXEC": {runs, "bash"}, "EXECUTE": {runs, "bash"}, "RUN": {runs, "bash"},
	"COMMAND": {runs, "bash"}, "CMD": {runs, "bash"}, "TERMINAL": {runs, "bash"},
	"PYTHON": {runs, "python"}, "PYTHON3": {runs, "python"}, "NODE": {runs, "javascript"}, "JAVASCRIPT": {runs, "javascript"}, "JS": {runs, "javascript"},
	"TYPESCRIPT": {runs, "typescript"}, "CODE": {runs, ""},
}

// actions are the file operations of tools.
var actions = map[tool]string{reads: "read", lists: "list", writes: "write", removes: "remove", makesDir: "mkdir"}

// verb reads a text that starts with a verb in capitals, or with one and a colon,
// as a tool's name and input. In small letters only the two that people write so
// count, before one word: the others are commands, or English.
func verb(text string) ([]guard.Subject, bool) {
	trimmed := strings.TrimSpace(text)
	end := strings.IndexFunc(trimmed, unicode.IsSpace)
	if end < 0 {
		return nil, false
	}
	word, input := trimmed[:end], strings.TrimSpace(trimmed[end:])
	if word == "$" {
		return []guard.Subject{{Kind: guard.KindCommand, Language: "bash", Text: input}}, true
	}
	name, colon := strings.CutSuffix(word, ":")
	name = strings.ToUpper(name)
	v, known := verbs[name]
	capitals := strings.ToUpper(word) == word
	small := (name == "FETCH" || name == "READ") && isPlace(input) && !strings.ContainsFunc(input, unicode.IsSpace)
	if !known || !capitals && !colon && !small {
		return nil, false
	}
	target := strings.ToLower(name)
	switch {
	case v.tool == runs && v.language == "bash":
		return []guard.Subject{{Kind: guard.KindCommand, Language: "bash", Text: input}}, true
	case v.tool == runs: // where the verb is no tool's, a shell goes on behind it
		return []guard.Subject{{Kind: guard.KindCode, Language: v.language, Text: input}, {Kind: guard.KindCode, Text: text}}, true
	case v.tool == fetches, hasScheme(input) && !hasFileScheme(input):
		// The guard knows how addresses are read, and that the rest may be code.
		return []guard.Subject{{Kind: guard.KindTool, Target: target, Text: text}}, true
	}
	return fileSubjects(target, actions[v.tool], text, input), true
}

// fileSubjects are what happens to a file. Of a text that is more than a verb and a
// path, all is judged besides.
func fileSubjects(target, action, text, input string) []guard.Subject {
	path, content := input, ""
	if action == "write" {
		path, content, _ = strings.Cut(input, "\n")
		path = strings.TrimSpace(path)
	}
	path = filePath(path)
	file := guard.Subject{Kind: guard.KindFile, Target: path, Text: content, Labels: map[string]string{guard.LabelAction: action}}
	if !strings.ContainsAny(input, " \t\r\n;|&$`<>(){}*?\"'\\") {
		return []guard.Subject{file}
	}
	return []guard.Subject{file, {Kind: guard.KindTool, Target: target, Text: text}}
}

// filePath is a path without the quotes and the scheme that it is written with.
func filePath(text string) string {
	for _, pair := range []string{`""`, "''", "``", "<>"} {
		if len(text) >= 2 && text[0] == pair[0] && text[len(text)-1] == pair[1] {
			text = text[1 : len(text)-1]
		}
	}
	if u, err := url.Parse(text); err == nil && hasFileScheme(text) && u.Path != "" {
		return u.Path
	}
	return text
}

func hasScheme(text string) bool {
	scheme, _, ok := strings.Cut(text, ":")
	return ok && scheme != "" && !strings.ContainsFunc(scheme, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '+' && r != '-'
	})
}

func hasFileScheme(text string) bool { return len(text) > 5 && strings.EqualFold(text[:5], "file:") }

// isPlace tells an address or path from a word.
func isPlace(text string) bool { return hasScheme(text) || strings.ContainsAny(text, "/.~\\") }

func isJSON(text string) bool {
	trimmed := strings.TrimSpace(text)
	return (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) && json.Valid([]byte(trimmed))
}

// The members of tool calls, as providers of models and MCP write them.
var (
	nameKeys  = []string{"name", "tool", "tool_name", "toolName", "function", "action"}
	inputKeys = []string{"arguments", "args", "input", "tool_input", "parameters", "params", "action_input"}
)

// jsonSubjects are the whole as the input of a tool, and each tool call in it.
func jsonSubjects(text string) ([]guard.Subject, error) {
	whole, err := strictjson.Decode([]byte(strings.TrimSpace(text)))
	if err != nil {
		return nil, err
	}
	object, _ := whole.(*strictjson.Object)
	name := member(object, nameKeys)
	named, _ := name.(string)
	if named == "" {
		named = "input"
	}
	subjects, err := mcp.InputSubjects(named, whole, whole)
	if err != nil {
		return nil, err
	}
	subjects[0].Text = text // exactly
	if strings.Contains(text, "$") || strings.Contains(text, "`") {
		// In JSON's quotation marks a shell still runs what these begin.
		subjects = append(subjects, guard.Subject{Kind: guard.KindCode, Language: "bash", Text: text})
	}
	calls, err := toolCalls(whole)
	return append(subjects, calls...), err
}

// toolCalls finds the objects that have a tool's name and its input.
func toolCalls(value any) ([]guard.Subject, error) {
	var found []guard.Subject
	var children []any
	switch v := value.(type) {
	case []any:
		children = v
	case *strictjson.Object:
		for _, key := range v.Keys() {
			child, _ := v.Get(key)
			children = append(children, child)
		}
		name, _ := member(v, nameKeys).(string)
		input := member(v, inputKeys)
		if name == "" || input == nil {
			break
		}
		if quoted, ok := input.(string); ok && isJSON(quoted) {
			parsed, err := strictjson.Decode([]byte(strings.TrimSpace(quoted)))
			if err != nil {
				return nil, fmt.Errorf("the input of %.80q: %w", name, err)
			}
			input = parsed
			children = append(children, parsed)
		}
		if quoted, ok := input.(string); ok {
			object := strictjson.NewObject()
			object.Set("input", quoted)
			input = object
		}
		subjects, err := mcp.InputSubjects(name, input, input)
		if err != nil {
			return nil, err
		}
		found = append(found, subjects...)
	}
	for _, child := range children {
		inner, err := toolCalls(child)
		if err != nil {
			return nil, err
		}
		if found = append(found, inner...); len(found) > maxParts {
			break
		}
	}
	return found, nil
}

// member is the first of the members that an object has; nil if it has none.
func member(object *strictjson.Object, keys []string) any {
	if object == nil {
		return nil
	}
	for _, key := range keys {
		if value, ok := object.Get(key); ok {
			return value
		}
	}
	return nil
}
