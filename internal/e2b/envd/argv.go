package envd

import (
	"path"
	"regexp"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
)

// argvSubjects is what runs when cmd is started with args: the text that an
// interpreter is handed, and the argument vector itself wherever that text is
// not the whole story.
func argvSubjects(cmd string, args []string) []guard.Subject {
	argv := command(quoteArgv(cmd, args))
	name := programName(cmd)
	if shells[name] {
		call := readShellArgs(args)
		switch {
		case !call.command:
			return []guard.Subject{argv}
		case call.odd:
			// Which argument is the command string depends on the shell: judge all.
			subjects := []guard.Subject{argv}
			for _, a := range args {
				if a != "" && a[0] != '-' && a[0] != '+' {
					subjects = append(subjects, command(a))
				}
			}
			return subjects
		case call.parameters || strings.Contains(cmd, ".."):
			// Behind a symbolic link, ".." leads to another program than its name says.
			return []guard.Subject{command(call.script), argv}
		default:
			return []guard.Subject{command(call.script)}
		}
	}
	for _, in := range interpreters {
		if !in.name.MatchString(name) {
			continue
		}
		if code, ok := in.code(args); ok {
			return []guard.Subject{{Kind: guard.KindCode, Language: in.language, Text: code}, argv}
		}
	}
	return []guard.Subject{argv}
}

func command(text string) guard.Subject {
	return guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: text}
}

// programName is the name of a program that is looked up in PATH or is in one of
// the system's directories; "" for a file anywhere else, whatever its name.
func programName(cmd string) string {
	if path.IsAbs(cmd) {
		cmd = path.Clean(cmd)
	}
	dir, name := path.Split(cmd)
	switch dir {
	case "", "/bin/", "/usr/bin/", "/usr/local/bin/":
		return name
	default:
		return ""
	}
}

var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "ash": true, "zsh": true, "ksh": true}

// Options that every shell reads the same way, and that do not change what a
// command string means.
const plainShellLetters = "lierxuvcf"

var plainShellWords = map[string]bool{"--login": true, "--norc": true, "--noprofile": true, "--posix": true}

// shellCall is how a shell reads its arguments.
type shellCall struct {
	command    bool   // -c is among the options
	script     string // the command string, if nothing is odd
	parameters bool   // there are positional parameters
	// odd says that an option takes an argument, is unknown, or is read differently
	// by different shells (bash takes its long options with one dash too).
	odd bool
}

// readShellArgs finds the command string as shells do: after all options, the
// first operand.
func readShellArgs(args []string) shellCall {
	var call shellCall
	i := 0
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" || a == "-" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		if strings.HasPrefix(a, "--") {
			call.odd = call.odd || !plainShellWords[a]
			continue
		}
		call.command = call.command || strings.ContainsRune(a, 'c')
		call.odd = call.odd || a[0] == '+' || a == "-rcfile" || strings.Trim(a[1:], plainShellLetters) != ""
	}
	if call.odd {
		// An option's argument may have stopped the loop early.
		for _, a := range args[min(i, len(args)):] {
			call.command = call.command || len(a) > 1 && a[0] == '-' && strings.ContainsRune(a, 'c')
		}
		return call
	}
	if i >= len(args) {
		call.command = false // The shell complains that -c has no string.
		return call
	}
	call.script, call.parameters = args[i], i < len(args)-1
	return call
}

// interpreter is a program that runs code given as an argument.
type interpreter struct {
	name     *regexp.Regexp
	language string
	// letters are the options that take code, alone ("-c"), at the end of a
	// cluster ("-Bc") or with the code attached ("-cprint()").
	letters string
	// words are long options that take code: "--eval", "--eval=code".
	words []string
	// skip are letters that take an argument that is not code.
	skip string
	// once says that the code is the last option: the rest is the program's.
	once bool
}

var interpreters = []interpreter{
	{name: regexp.MustCompile(`^(python|pypy)[0-9.]*$`), language: "python", letters: "c", skip: "WXQ", once: true},
	{name: regexp.MustCompile(`^(node|nodejs|bun)$`), language: "javascript", letters: "ep", words: []string{"--eval", "--print"}, skip: "rC"},
	{name: regexp.MustCompile(`^perl[0-9.]*$`), language: "perl", letters: "eE"},
	{name: regexp.MustCompile(`^ruby[0-9.]*$`), language: "ruby", letters: "e"},
	{name: regexp.MustCompile(`^(Rscript|R)$`), language: "r", letters: "e"},
	{name: regexp.MustCompile(`^php[0-9.]*$`), language: "php", letters: "rBRE"},
	{name: regexp.MustCompile(`^lua[0-9.]*$`), language: "lua", letters: "e"},
}

// code joins every piece of code among args, as the programs do. It stops at the
// first operand, unless that may be the argument of an option.
func (in interpreter) code(args []string) (string, bool) {
	var pieces []string
	odd := false // a long option that may take the next argument was seen
	for i := 0; i < len(args) && !(in.once && len(pieces) > 0); i++ {
		a := args[i]
		if a == "--" {
			break
		}
		if len(a) < 2 || a[0] != '-' {
			if odd {
				continue
			}
			break
		}
		if strings.HasPrefix(a, "--") {
			word, value, attached := strings.Cut(a, "=")
			odd = odd || !attached
			for _, w := range in.words {
				switch {
				case w != word:
				case attached:
					pieces = append(pieces, value)
				case i+1 < len(args):
					i++
					pieces = append(pieces, args[i])
				}
			}
			continue
		}
		for j, letter := range a[1:] {
			if strings.ContainsRune(in.skip, letter) {
				if j+2 == len(a) {
					i++
				}
				break
			}
			if !strings.ContainsRune(in.letters, letter) {
				continue
			}
			if rest := a[j+2:]; rest != "" && strings.Trim(rest, in.letters) != "" {
				pieces = append(pieces, rest)
			} else if i+1 < len(args) {
				i++
				pieces = append(pieces, args[i])
			}
			break
		}
	}
	if len(pieces) == 0 {
		return "", false
	}
	return strings.Join(pieces, "\n"), true
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoteArgv writes an argument vector as one shell command that runs it.
func quoteArgv(cmd string, args []string) string {
	var b strings.Builder
	for i, a := range append([]string{cmd}, args...) {
		if i > 0 {
			b.WriteByte(' ')
		}
		// A first word with "=" would be an assignment.
		if plainWord.MatchString(a) && (i > 0 || !strings.Contains(a, "=")) {
			b.WriteString(a)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(a, "'", `'\''`) + "'")
	}
	return b.String()
}
