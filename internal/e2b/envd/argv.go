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
	argv := guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: quoteArgv(cmd, args)}
	name := programName(cmd)
	if shells[name] {
		script, whole, ok := shellScript(args)
		if !ok {
			return []guard.Subject{argv}
		}
		s := guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: script}
		if whole {
			return []guard.Subject{s}
		}
		return []guard.Subject{s, argv}
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

// programName is the name of a program that is looked up in PATH or is in one of
// the system's directories; "" for a file anywhere else, whatever its name.
func programName(cmd string) string {
	dir, name := path.Split(cmd)
	switch dir {
	case "", "/bin/", "/usr/bin/", "/usr/local/bin/":
		return name
	default:
		return ""
	}
}

var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "ash": true, "zsh": true, "ksh": true}

// Options of the shells that do not change what a command string means. Others
// (files to source, shell options, tracing to a file) leave the string readable
// but not the whole story.
const (
	harmlessShellLetters = "lierxuvcf"
	argShellLetters      = "oO"
)

var harmlessShellWords = map[string]bool{
	"--login": true, "--norc": true, "--noprofile": true, "--posix": true, "--noediting": true,
}

// argShellWords are long options that take the next argument.
var argShellWords = map[string]bool{"--rcfile": true, "--init-file": true}

// shellScript finds the command string of a shell's arguments as the shell does:
// after all options, the first operand, if -c was among them. whole says that
// the string is all there is: no odd option, no positional parameters.
func shellScript(args []string) (script string, whole, ok bool) {
	whole = true
	command := false
	i := 0
options:
	for ; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--" || a == "-":
			i++
			break options
		case len(a) < 2 || a[0] != '-' && a[0] != '+':
			break options
		case strings.HasPrefix(a, "--"):
			whole = whole && harmlessShellWords[a]
			if argShellWords[a] {
				i++
			}
		default:
			for _, letter := range a[1:] {
				if letter == 'c' && a[0] == '-' {
					command = true
				}
				if strings.ContainsRune(argShellLetters, letter) {
					i++
				}
				whole = whole && a[0] == '-' && strings.ContainsRune(harmlessShellLetters, letter)
			}
		}
	}
	if !command || i >= len(args) {
		return "", false, false
	}
	return args[i], whole && i == len(args)-1, true
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
// first operand.
func (in interpreter) code(args []string) (string, bool) {
	var pieces []string
	for i := 0; i < len(args) && !(in.once && len(pieces) > 0); i++ {
		a := args[i]
		if a == "--" || len(a) < 2 || a[0] != '-' {
			break
		}
		if strings.HasPrefix(a, "--") {
			word, value, attached := strings.Cut(a, "=")
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
