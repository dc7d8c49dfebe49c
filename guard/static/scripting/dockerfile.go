package scripting

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

var dockerHeredoc = regexp.MustCompile(`(?:^|\s)\d*<<-?["']?([A-Za-z_][A-Za-z0-9_]*)["']?`)

var dockerEscape = regexp.MustCompile("(?mi)^#\\s*escape\\s*=\\s*`")

// ParseDockerfile reads what a Dockerfile runs: RUN, CMD, ENTRYPOINT and
// HEALTHCHECK CMD, in shell and in exec form.
func ParseDockerfile(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	// A directive may make a backquote what continues a line.
	escape := `\`
	if first := text[:min(len(text), 512)]; dockerEscape.MatchString(first) {
		escape = "`"
	}

	for at := 0; at < len(text); {
		start := at
		if !b.Spend(1) {
			r.Note(effect.NoteBudget, start, "out of steps")

			return r
		}

		var body string

		at, body = dockerInstruction(text, start, escape)

		// The heredocs of an instruction follow it.
		head := at

		for _, m := range dockerHeredoc.FindAllStringSubmatch(body, 8) {
			at = afterHeredoc(text, at, m[1])
		}

		dockerRun(&r, body, text[head:at], effect.Span{Start: start, End: at}, start+strings.Index(text[start:at], body))
	}

	// It happens in the build of an image.
	for i := range r.Embedded {
		r.Embedded[i].Flags |= effect.FlagElsewhere | effect.FlagImage
	}

	return r
}

// dockerInstruction is the end of the instruction that starts at a position, and
// its text without comments.
func dockerInstruction(text string, at int, escape string) (int, string) {
	var out strings.Builder

	for at < len(text) {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}

		line := text[at:end]
		at = end

		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "#") || trimmed == "" && out.Len() > 0 {
			if out.Len() == 0 {
				return at, ""
			}

			continue
		}

		out.WriteString(line)

		if !strings.HasSuffix(trimmed, escape) {
			break
		}
	}

	return at, strings.TrimSpace(out.String())
}

// afterHeredoc is the position behind the line that ends a heredoc; without
// one it is none.
func afterHeredoc(text string, at int, word string) int {
	for start := at; ; {
		if at == len(text) {
			return start
		}

		line, _, more := strings.Cut(text[at:], "\n")
		at += len(line)

		if more {
			at++
		}

		if strings.TrimSpace(line) == word {
			return at
		}
	}
}

// dockerRun embeds what one instruction runs. Where body stands in the text byte
// for byte, offset is its position.
func dockerRun(r *effect.Result, body, heredoc string, span effect.Span, offset int) {
	exact := offset >= span.Start
	rest := body

	word, rest := dockerWord(rest)
	if word == "ONBUILD" {
		word, rest = dockerWord(rest)
	}

	if word == "HEALTHCHECK" {
		for strings.HasPrefix(rest, "--") {
			_, rest = dockerWord(rest)
		}

		if word, rest = dockerWord(rest); word != "CMD" {
			return
		}
	}

	switch word {
	case "RUN", "CMD", "ENTRYPOINT":
	default:
		return
	}

	for strings.HasPrefix(rest, "--") {
		_, rest = dockerWord(rest)
	}

	var argv []string
	if strings.HasPrefix(rest, "[") && json.Unmarshal([]byte(rest), &argv) == nil {
		embedBuild(r, quoteArgs(argv), span, -1, word)

		return
	}

	if heredoc != "" && dockerHeredoc.FindString(rest) == rest {
		// The heredoc is the script itself; its last line is the word.
		script := strings.TrimRight(heredoc, "\n")
		script = script[:strings.LastIndexByte(script, '\n')+1]

		if l, _, _ := strings.Cut(script, "\n"); strings.HasPrefix(l, "#!") && !strings.Contains(l, "sh") {
			r.Embed(effect.Embedded{Text: effect.Const(script), Span: span, Offset: -1, Via: word})

			return
		}

		embedBuild(r, script, span, -1, word)

		return
	}

	if heredoc != "" {
		rest, exact = rest+"\n"+heredoc, false
	}

	if !exact {
		embedBuild(r, rest, span, -1, word)

		return
	}

	embedBuild(r, rest, span, offset+len(body)-len(rest), word)
}

// dockerWord cuts the first word, in upper case, and what is between it and the
// next.
func dockerWord(s string) (word, rest string) {
	i := strings.IndexAny(s, " \t\r\n")
	if i < 0 {
		return strings.ToUpper(s), ""
	}

	return strings.ToUpper(s[:i]), strings.TrimLeft(s[i:], " \t\r\n\\`")
}

// quoteArgs is an argument vector as shell text.
func quoteArgs(argv []string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}

	return strings.Join(out, " ")
}
