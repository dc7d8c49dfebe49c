package envd

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Lines rewrites text typed into a shell so that every line is read as if nothing
// before it were open. Some of the lines may have been read by another program
// than the shell, so that a quote in them would hide from a reader of the whole
// text what the shell runs after them.
func Lines(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\\\n", "", "\x00", "").Replace(text)
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\n")
		b.WriteString(alone(body))
		b.WriteByte('\n')
	}
	return b.String()
}

// Printable leaves out what no command is made of. Binary data holds by chance what
// reads like a short one, so that of lines with such data, and between them, only
// what is longer is left.
func Printable(text string) string {
	if printable(text) {
		return text
	}
	var lines []string
	clean := 0
	for line := range strings.Lines(text) {
		if printable(line) {
			clean += len(line)
		}
		lines = append(lines, strings.ReplaceAll(line, "\x00", "")) // shells drop them
	}
	const long, atStart, mostly = 16, 8, 2
	var b strings.Builder
	for _, line := range lines {
		if printable(line) {
			if len(line) > atStart || clean*mostly > len(text) {
				b.WriteString(line)
			}
			continue
		}
		runs := strings.FieldsFunc(line, func(r rune) bool { return r > '~' || r == '\n' || unprintable(r) })
		if slices.ContainsFunc(runs, func(run string) bool { return len(run) >= long }) || len(runs) > 0 && len(runs[0]) >= atStart && strings.HasPrefix(line, runs[0]) {
			b.WriteString(strings.Join(runs, " ") + "\n")
		}
	}
	return b.String()
}

func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, unprintable) < 0
}

func unprintable(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f }

// Unquoted is Lines for text that may be run in parts, or after its quotes were
// taken off.
func Unquoted(text string) string {
	return Lines(strings.NewReplacer("\\\n", "", `'`, "", `"`, "", `\`, "", "\x00", "\n").Replace(text))
}

// Appended is what runs where words of the text are added to a command.
func Appended(command, text string) string {
	var b strings.Builder
	for line := range strings.Lines(Unquoted(text)) {
		b.WriteString(command + " " + line)
	}
	return b.String()
}

// LikeCommand reports whether a line that begins so may be a command, and not JSON, a
// table or a block of encoded data.
func LikeCommand(head string) bool { return commandStart.MatchString(head) }

var commandStart = regexp.MustCompile(`^[\s({!]*([A-Za-z_]\w*=|[<>]\s*[^\s<>]+\s|\[\s|["'\\$\w./+~-]+[\s;|&<>(])`)

var (
	quotes   = strings.NewReplacer(`"`, " ", "'", " ", "`", " ", "<<", " ")
	brackets = strings.NewReplacer("$(", "\n", "<(", "\n", ">(", "\n", "(", " ", ")", " ", "{", " ", "}", " ", "[", " ", "]", " ")
	keyword  = regexp.MustCompile(`(^|[;&|])(\s*(then|do|else|elif|if|while|until|time|!|in|fi|done|esac|case|for|function)\b)+`)
)

// alone makes one line readable by itself, taking off as little as that needs.
func alone(line string) string {
	for _, take := range []func(string) string{
		func(s string) string { return s },
		func(s string) string { return keyword.ReplaceAllString(s, "$1 ") },
		quotes.Replace,
		brackets.Replace,
	} {
		line = take(line)
		if _, err := syntax.NewParser().Parse(strings.NewReader(line), ""); err == nil {
			return line
		}
	}
	return words.ReplaceAllString(line, " ")
}

// words is what is left out of a line that no reading fits.
var words = regexp.MustCompile(`[^\w\s./~$:@%+=,;|&>*?-]|>>+|&&&+|[;&|>]+\s*$|^\s*[;&|]+`)
