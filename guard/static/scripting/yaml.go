package scripting

import (
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// yamlSteps are keys of build files in YAML whose values are shell text, or
// lists of it: GitHub's workflows, GitLab's and Travis's jobs, Taskfiles, hooks.
var yamlSteps = map[string]bool{
	"run": true, "script": true, "before_script": true, "after_script": true, "install": true, "before_install": true, "cmd": true, "cmds": true, "entry": true,
	"after_success": true, "after_failure": true, "sh": true,
}

// yamlVectors are keys whose values are shell text, or one argument vector.
var yamlVectors = map[string]bool{"command": true, "entrypoint": true, "test": true}

// yamlExpression is what a workflow puts in before a shell sees the text.
var yamlExpression = regexp.MustCompile(`\$\{\{[^}]*\}\}|\{\{[^}]*\}\}`)

// ParseBuildYAML reads what workflows, compose files and the like run.
func ParseBuildYAML(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	if !b.Spend(1 + len(text)/16) {
		r.Note(effect.NoteBudget, 0, "out of steps")

		return r
	}

	dec := yaml.NewDecoder(strings.NewReader(text))

	for {
		var doc yaml.Node

		if err := dec.Decode(&doc); err != nil {
			if !errors.Is(err, io.EOF) {
				yamlLines(&r, text)
			}

			return r
		}

		y := yamlReader{r: &r, text: text}
		y.node(&doc)
	}
}

// yamlLines judges a file that is not YAML to the end: each value of a line.
func yamlLines(r *effect.Result, text string) {
	at := 0

	for line := range strings.SplitAfterSeq(text, "\n") {
		key, value, ok := strings.Cut(strings.TrimLeft(line, " -"), ": ")
		if ok && (yamlSteps[key] || yamlVectors[key]) {
			embedBuild(r, strings.Trim(value, "\"' \n"), effect.Span{Start: at, End: at + len(line)}, -1, key)
		}

		at += len(line)
	}
}

type yamlReader struct {
	r    *effect.Result
	text string
	// at and line are the start of a line, and its number from 1.
	at, line int
}

// node walks. Aliases are not followed: what they name is read where it stands.
func (y *yamlReader) node(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			y.node(c)
		}

		return
	}

	lang := ""

	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "shell" {
			lang, _, _ = strings.Cut(n.Content[i+1].Value, " ")
		}
	}

	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]

		switch {
		case yamlSteps[key.Value] && value.Kind == yaml.ScalarNode:
			y.embed(key, value.Value, lang)
		case yamlSteps[key.Value] && value.Kind == yaml.SequenceNode:
			y.embed(key, strings.Join(scalars(value), "\n"), lang)
			y.node(value)
		case yamlVectors[key.Value] && value.Kind == yaml.ScalarNode:
			y.embed(key, strings.ReplaceAll(value.Value, "$$", "$"), "")
		case yamlVectors[key.Value] && value.Kind == yaml.SequenceNode:
			y.embed(key, yamlVector(scalars(value)), "")
		default:
			y.node(value)
		}
	}
}

// yamlVector is an argument vector as shell text; compose writes "$" twice, and
// "CMD" or "CMD-SHELL" before a test.
func yamlVector(argv []string) string {
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "$$", "$")
	}

	if len(argv) > 0 && argv[0] == "CMD-SHELL" {
		return strings.Join(argv[1:], " ")
	}

	if len(argv) > 0 && argv[0] == "CMD" {
		argv = argv[1:]
	}

	return quoteArgs(argv)
}

func scalars(list *yaml.Node) []string {
	var out []string

	for _, c := range list.Content {
		if c.Kind == yaml.ScalarNode {
			out = append(out, c.Value)
		}
	}

	return out
}

// embed embeds a value; its span is the line of its key.
func (y *yamlReader) embed(key *yaml.Node, script, lang string) {
	script = yamlExpression.ReplaceAllString(script, effect.HoleText)
	n := len(y.r.Embedded)
	embedBuild(y.r, script, y.lineSpan(key.Line), -1, key.Value)

	if lang != "" && len(y.r.Embedded) > n {
		y.r.Embedded[n].Lang = lang
	}
}

// lineSpan is the span of a line. Keys come in the order of the text, so that
// the search goes on where it was.
func (y *yamlReader) lineSpan(line int) effect.Span {
	if y.line == 0 || y.line > line {
		y.at, y.line = 0, 1
	}

	for y.line < line {
		i := strings.IndexByte(y.text[y.at:], '\n')
		if i < 0 {
			break
		}

		y.at, y.line = y.at+i+1, y.line+1
	}

	end := len(y.text)
	if i := strings.IndexByte(y.text[y.at:], '\n'); i >= 0 {
		end = y.at + i
	}

	return effect.Span{Start: y.at, End: end}
}
