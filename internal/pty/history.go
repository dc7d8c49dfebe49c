package pty

import (
	"regexp"
	"strings"
)

// historyEvent is a place where the shell would put text from its history.
var historyEvent = regexp.MustCompile(`!(!|\$|\^|\*|:|[-\w?#{]|/)`)

// operators are words of a line by themselves.
var operators = regexp.MustCompile(`[|&;<>]+`)

// expandHistory puts the last command where a line asks for it. ok is false if
// it asks for anything else, which the gateway does not know.
func expandHistory(line string, last string) (expanded string, ok bool) {
	if strings.HasPrefix(line, "^") {
		return "", false
	}
	var b strings.Builder
	quoted, double := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'' && !double:
			quoted = !quoted
		case c == '"' && !quoted:
			double = !double
		case c == '!' && i > 0 && (line[i-1] == '$' || line[i-1] == '[' || line[i-1] == '{' && i > 1 && line[i-2] == '$'):
		case c == '\\' && !quoted && i+1 < len(line):
			b.WriteByte(c)
			i++
			c = line[i]
		case c == '!' && !quoted && historyEvent.MatchString(line[i:]) && historyEvent.FindStringIndex(line[i:])[0] == 0:
			rest := line[i+1:]
			words := strings.Fields(operators.ReplaceAllString(last, " $0 "))
			plain := !strings.ContainsAny(last, "'\"\\`(){}\n") && (rest[0] == '$' || !operators.MatchString(last))
			if len(words) == 0 || len(rest) > 1 && rest[1] == ':' || !plain && rest[0] != '!' {
				return "", false // its words are not plain, or it is not known
			}
			switch rest[0] {
			case '!':
				b.WriteString(last)
			case '$':
				b.WriteString(words[len(words)-1])
			case '^':
				b.WriteString(words[min(1, len(words)-1)])
			case '*':
				b.WriteString(strings.Join(words[1:], " "))
			default:
				return "", false
			}
			i++
			continue
		}
		b.WriteByte(c)
	}
	return b.String(), true
}
