package scripting

import (
	"regexp"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// just is a justfile while it is read.
type just struct {
	r    effect.Result
	vars map[string]string
}

// justHole is what just puts in before a shell sees the text.
var justHole = regexp.MustCompile(`\{\{[^{}\n]*\}\}`)

// ParseJust reads the recipes of a justfile, and the commands in back-quotes that
// it runs while it is read.
func ParseJust(text string, b *effect.Budget) effect.Result {
	j := just{vars: map[string]string{}}

	var recipe strings.Builder

	start := 0
	flush := func(end int) {
		script, lang := recipe.String(), "bash"
		if strings.HasPrefix(script, "#!") {
			lang = "" // Its first line says which.
		}

		if strings.TrimSpace(script) != "" {
			j.r.Embed(effect.Embedded{Lang: lang, Text: effect.Const(script), Span: effect.Span{Start: start, End: end}, Offset: -1, Via: "recipe"})
		}

		recipe.Reset()
	}

	for at := 0; at < len(text); {
		if !b.Spend(1) {
			j.r.Note(effect.NoteBudget, at, "out of steps")

			return j.r
		}

		line, next := logicalLine(text, at)
		span := effect.Span{Start: at, End: next}

		switch trimmed := strings.TrimSpace(line); {
		case line != trimmed && line != "" && (line[0] == ' ' || line[0] == '\t') && trimmed != "":
			if recipe.Len() == 0 {
				start = at
				if strings.HasPrefix(trimmed, "#!") {
					recipe.WriteString(trimmed + "\n")

					break
				}
			}

			line = j.fill(line)
			if !strings.HasPrefix(recipe.String(), "#!") {
				line = strings.TrimLeft(line, "@- \t")
			}

			recipe.WriteString(line + "\n")
		case trimmed == "" || trimmed[0] == '#':
		default:
			flush(at)
			j.statement(trimmed, span)
		}

		at = next
	}

	flush(len(text))

	return j.r
}

// fill puts in what is known of the variables.
func (j *just) fill(line string) string {
	return justHole.ReplaceAllStringFunc(line, func(m string) string {
		if v, ok := j.vars[strings.TrimSpace(m[2:len(m)-2])]; ok {
			return v
		}

		return effect.HoleText
	})
}

// statement reads an assignment or the head of a recipe.
func (j *just) statement(line string, span effect.Span) {
	for i, part := range strings.Split(line, "`") {
		if i%2 == 1 {
			embedBuild(&j.r, part, span, -1, "back-quotes")
		}
	}

	name, value, ok := strings.Cut(line, ":=")
	if value = strings.TrimSpace(value); !ok || value == "" || len(j.vars) >= 256 {
		return
	}

	name = strings.TrimSpace(strings.TrimPrefix(name, "export "))
	if value[0] == '"' || value[0] == '\'' {
		j.vars[name], _ = literal(value, 0)
	}
}

// cmakeWord is a quoted or bare argument, or a bracket, of CMake; cmakeVariable
// one of its variables.
var (
	cmakeWord     = regexp.MustCompile(`#[^\n]*|"(?:[^"\\]|\\.)*"|\[\[(?s:.*?)\]\]|[()]|[^\s()"#]+`)
	cmakeVariable = regexp.MustCompile(`\$\{[^{}\n]*\}`)
	cmakeKeyword  = regexp.MustCompile(`^[A-Z][A-Z_]+$`)
)

// cmakeRuns are the commands of CMake that run others, now or when something is
// built.
var cmakeRuns = map[string]bool{
	"execute_process": true, "add_custom_command": true, "add_custom_target": true, "exec_program": true, "install": true, "add_test": true, "externalproject_add": true, "fetchcontent_declare": true,
}

// cmakeCommands are the words that a command line follows.
var cmakeCommands = map[string]bool{
	"COMMAND": true, "DOWNLOAD_COMMAND": true, "UPDATE_COMMAND": true, "PATCH_COMMAND": true, "CONFIGURE_COMMAND": true, "BUILD_COMMAND": true, "INSTALL_COMMAND": true, "TEST_COMMAND": true, "ARGS": true,
}

// ParseCMake reads what a CMakeLists.txt runs.
func ParseCMake(text string, b *effect.Budget) effect.Result {
	var (
		r              effect.Result
		call, previous string
		argv, all      []string
		depth, start   int
		in             bool
	)

	vars := map[string]string{}
	flush := func(end int) {
		if len(argv) > 0 {
			embedBuild(&r, quoteArgs(argv), effect.Span{Start: start, End: end}, -1, call)
		}

		argv = nil
	}

	for _, m := range cmakeWord.FindAllStringIndex(text, -1) {
		if !b.Spend(1) {
			r.Note(effect.NoteBudget, m[0], "out of steps")

			return r
		}

		switch word := text[m[0]:m[1]]; {
		case word[0] == '#':
		case word == "(":
			if depth++; depth == 1 {
				call, in, all, start = strings.ToLower(previous), false, nil, m[0]
				in = call == "exec_program"
			}
		case word == ")":
			if depth--; depth == 0 {
				flush(m[1])

				if call == "set" && len(all) > 1 && len(vars) < 256 {
					vars[all[0]] = strings.Join(all[1:], " ")
				}
			}
		default:
			previous = word
			bare := word[0] != '"' && word[0] != '['

			if all = append(all, cmakeText(word, vars)); depth == 0 || !cmakeRuns[call] {
				break
			}

			switch {
			case bare && cmakeCommands[word]:
				if word != "ARGS" {
					flush(m[0])
				}

				in, start = true, m[0]
			case bare && cmakeKeyword.MatchString(word):
				flush(m[0])

				in = false
			case in || call == "add_custom_target" && (len(all) == 2 || len(all) == 3 && all[1] == "ALL"):
				in = true
				argv = append(argv, all[len(all)-1])
			}
		}
	}

	flush(len(text))

	return r
}

// cmakeText is an argument's text.
func cmakeText(word string, vars map[string]string) string {
	switch {
	case word[0] == '"':
		word, _ = literal(word, 0)
	case strings.HasPrefix(word, "[["):
		return strings.TrimSuffix(word[2:], "]]")
	}

	return cmakeVariable.ReplaceAllStringFunc(word, func(m string) string {
		if v, ok := vars[m[2:len(m)-1]]; ok && len(v) < maxMakeText/64 {
			return v
		}

		return effect.HoleText
	})
}

// groovyRun is a step or a method of Jenkins, Gradle and Vagrant that runs what
// follows, in Groovy, Kotlin or Ruby.
var (
	groovyRun     = regexp.MustCompile(`\b(sh|bash|script|commandLine|executable|args|inline|exec|cmd)\b[ \t]*[(:=]?\s*(?:\(?\s*(?:script|commandLine|label|\w+)\s*[:=]\s*)?(?:listOf|arrayOf)?[\[( \t\n]*(?:<<[-~]?['"]?(\w+)['"]?|"""|'''|"|')`)
	groovyExecute = regexp.MustCompile(`(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|\[([^\]\n]*)\])(?:\s*as\s+String\[\])?\s*\.\s*execute\s*\(`)
	groovyHole    = regexp.MustCompile(`\$\{[^{}\n]*\}|#\{[^{}\n]*\}`)
)

// ParseGroovy reads what a Jenkinsfile, a build of Gradle or a Vagrantfile runs.
func ParseGroovy(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	if !b.Spend(1 + len(text)/8) {
		r.Note(effect.NoteBudget, 0, "out of steps")

		return r
	}

	for _, m := range groovyExecute.FindAllStringSubmatchIndex(text, -1) {
		span := effect.Span{Start: m[0], End: m[1]}

		for k := 2; k < 8; k += 2 {
			if m[k] < 0 {
				continue
			}

			script := text[m[k]:m[k+1]]
			if k == 6 {
				script = quoteArgs(groovyList(text, m[k]))
			}

			embedBuild(&r, groovyHole.ReplaceAllString(script, effect.HoleText), span, -1, "execute")
		}
	}

	end := 0

	for _, m := range groovyRun.FindAllStringSubmatchIndex(text, -1) {
		line := text[strings.LastIndexByte(text[:m[0]], '\n')+1 : m[0]]
		if m[0] < end || strings.HasPrefix(strings.TrimSpace(line), "//") || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}

		var script string

		if m[4] >= 0 {
			body, _, _ := strings.Cut(text[m[1]:], "\n"+text[m[4]:m[5]])
			if i := strings.Index(text[m[1]:], text[m[4]:m[5]]); i >= 0 {
				body = text[m[1] : m[1]+i]
			}

			_, script, _ = strings.Cut(body, "\n")
			end = m[1] + len(body)
		} else if q := text[m[1]-1 : m[1]]; strings.HasSuffix(text[:m[1]], q+q+q) {
			script, _, _ = strings.Cut(text[m[1]:], q+q+q)
			end = m[1] + len(script)
			script = strings.ReplaceAll(script, `\$`, "$")
		} else {
			argv := groovyList(text, m[1]-1)
			script = argv[0]

			if end = m[1]; len(argv) > 1 {
				script = quoteArgs(argv)
			}
		}

		span := effect.Span{Start: m[0], End: max(end, m[1])}
		embedBuild(&r, groovyHole.ReplaceAllString(script, effect.HoleText), span, -1, text[m[2]:m[3]])
	}

	return r
}

// groovyList is the text at a position with those that commas join to it.
func groovyList(text string, i int) []string {
	argv := []string{""}[:0]

	for i < len(text) && len(argv) < 64 && (text[i] == '"' || text[i] == '\'') {
		arg, e := literal(text, i)
		argv = append(argv, arg)

		rest := strings.TrimLeft(text[e:], " \t\r\n")
		if !strings.HasPrefix(rest, ",") {
			break
		}

		i = len(text) - len(strings.TrimLeft(rest[1:], " \t\r\n"))
	}

	if len(argv) == 0 {
		return []string{""}
	}

	return argv
}

// ParseVagrant reads a Vagrantfile: a program in Ruby, with steps that run in the
// machine it makes.
func ParseVagrant(text string, b *effect.Budget) effect.Result {
	r := ParseRuby(text, b)
	steps := ParseGroovy(text, b)
	r.Embedded = append(r.Embedded, steps.Embedded...)
	r.Notes = append(r.Notes, steps.Notes...)

	return r
}
