package pty

import (
	"regexp"
	"slices"
	"strings"
)

// refuseLine says why a shell line must not run in a guarded terminal although
// it harms nothing itself: after it, what is typed would no longer be what runs.
func refuseLine(line string) string {
	for _, words := range commands(line) {
		name, args := strings.Trim(words[0], `"'\`), words[1:]
		name = name[strings.LastIndexByte(name, '/')+1:]
		switch {
		case name == "bind" && !onlyFlags(args, "-l", "-p", "-P", "-s", "-S", "-v", "-V", "-X", "-q"):
			return "bind changes what keys do, so that what is typed would no longer be what runs."
		case name == "stty" && !slices.ContainsFunc([]string{"-a", "--all", "-g", "--save", "size", "speed", "sane"}, func(ok string) bool { return len(args) == 1 && args[0] == ok }) &&
			len(args) > 0 && !sttySize.MatchString(strings.Join(args, " ")):
			return "stty changes how the terminal reads what is typed. `stty size`, `stty -a`, `stty sane` and `stty rows N cols N` may be used."
		case name == "fc" && !slices.Contains(args, "-l") && !slices.Contains(args, "-ln"):
			return "fc runs lines that nobody types. Type the command out; `fc -l` lists them."
		case name == "history" && slices.ContainsFunc(args, fillsHistory.MatchString):
			return "history with -r, -n, -s or -p puts lines where a key brings them up that nobody typed."
		case name == "read" && slices.ContainsFunc(args, readsKeys.MatchString):
			return "read with -n, -N or -d takes keys before Enter is pressed. Leave the option out, or put it in a script."
		case name == "tmux" && len(args) > 0 && slices.Contains([]string{"ls", "list-sessions", "kill-session", "kill-server", "has-session", "-V"}, args[0]):
		case programs[name].kind == mux:
			return name + " runs terminals inside this one, whose keys cannot be followed. Open another terminal instead."
		}
	}
	if changesKeys.MatchString(line) {
		return "it changes how the shell reads what is typed."
	}
	return ""
}

var (
	sttySize     = regexp.MustCompile(`^((rows|cols|columns) \d+ ?)+$`)
	fillsHistory = regexp.MustCompile(`^-[a-z]*[rnsp]`)
	readsKeys    = regexp.MustCompile(`^-[a-zA-Z]*[nNd]`)
	changesKeys  = regexp.MustCompile(`\b(INPUTRC|HISTFILE|histchars|READLINE_LINE|READLINE_POINT)\b|\benable\s+-[a-z]*[fn]`)
	setsVi       = regexp.MustCompile(`\bset\s+-o\s+vi\b|\bset\s+-o\s+emacs\b`)
	setsLocale   = regexp.MustCompile(`\b(LC_\w+|LANG|LANGUAGE)=`)
)

func onlyFlags(args []string, allowed ...string) bool {
	return len(args) > 0 && !slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "-") && !slices.Contains(allowed, a) || strings.ContainsAny(a, ":")
	})
}

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
