package pty

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// rules find, in what a shell is about to run, commands after which what is typed
// would no longer be what runs. before is what was run earlier.
type rules struct {
	before string
	why    string
	depth  int
}

// maxCode bounds how deep code is looked for in the arguments of commands.
const maxCode = 4

// refuseLine says why a shell line must not run in a guarded terminal although it
// harms nothing itself. A line that is not complete is no reason yet.
func refuseLine(line, before string) string {
	r := &rules{before: before + line}
	r.code(line)
	if r.why == "" && changesKeys.MatchString(line) {
		return "it changes how the shell reads what is typed."
	}
	return r.why
}

func (r *rules) code(text string) {
	if r.depth++; r.depth > maxCode {
		return
	}
	defer func() { r.depth-- }()
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		if completenessOf(text) == invalid { // to this parser, and perhaps not to the shell
			for _, words := range commands(text) {
				r.command(len(words), func(i int) (string, bool) { return strings.Trim(words[i], `"'\`), true })
			}
		}
		return
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			r.command(len(n.Args), func(i int) (string, bool) { return literal(n.Args[i]) })
		case *syntax.Stmt:
			r.hereDocument(n)
		case *syntax.Assign:
			if n.Value != nil { // it may be run later: a prompt's command, eval
				if value, _ := literal(n.Value); strings.ContainsAny(value, " \t\n") {
					r.code(value)
				}
			}
		case *syntax.Redirect:
			if n.Word != nil && n.Op != syntax.RdrIn {
				to, _ := literal(n.Word)
				r.file(to)
			}
		}
		return r.why == ""
	})
}

// hereDocument looks into a text that a shell is given to run.
func (r *rules) hereDocument(n *syntax.Stmt) {
	call, ok := n.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	name, _ := literal(call.Args[0])
	if !slices.Contains(runsCode, path.Base(name)) {
		return
	}
	for _, redirect := range n.Redirs {
		if redirect.Hdoc != nil {
			body, _ := literal(redirect.Hdoc)
			r.code(body)
		}
	}
}

// literal is a word's text without its quotes; known is false if the shell makes a
// part of it.
func literal(w *syntax.Word) (text string, known bool) {
	var b strings.Builder
	known = true
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				b.WriteString(backslashes.Replace(part.Value))
			case *syntax.SglQuoted:
				b.WriteString(part.Value)
				known = known && !(part.Dollar && strings.Contains(part.Value, `\`))
			case *syntax.DblQuoted:
				add(part.Parts)
			default:
				known = false
			}
		}
	}
	add(w.Parts)
	return b.String(), known
}

var backslashes = strings.NewReplacer(`\\`, `\`, `\`, "")

// command looks at a simple command of n words.
func (r *rules) command(n int, word func(int) (string, bool)) {
	if n == 0 || r.why != "" {
		return
	}
	words, known := make([]string, n), make([]bool, n)
	for i := range n {
		words[i], known[i] = word(i)
	}
	for len(words) > 1 && slices.Contains(wrappers, words[0]) {
		words, known = words[1:], known[1:]
		for len(words) > 1 && (strings.HasPrefix(words[0], "-") || assignment.MatchString(words[0])) {
			words, known = words[1:], known[1:]
		}
	}
	name := path.Base(words[0])
	if !known[0] && namedKeys.MatchString(r.before) {
		r.why = "the command's name is in a variable, and one of the variables holds the name of a command that changes how what is typed is read. Type the command out."
		return
	}
	if name != words[0] && (name == "read" || name == "fc" || name == "bind" || name == "history") {
		return // a program of that name
	}
	r.builtin(name, words[1:], known[1:])
	switch {
	case slices.Contains(readsOnly, name):
		return
	case name == "echo" || name == "printf" || name == "eval":
		r.code(strings.Join(words[1:], " "))
		return
	}
	for i, w := range words[1:] {
		if path.Base(w) == "stty" {
			r.builtin("stty", words[i+2:], known[i+2:])
			if name == "xargs" || name == "parallel" { // which add words of their own
				r.builtin("stty", words[:1], known[:1])
			}
		}
		r.file(w)
		if slices.Contains(runsCode, name) && strings.ContainsAny(w, " \t\n;") {
			r.code(definedAs.ReplaceAllString(w, ""))
		}
	}
	if p := programs[version.ReplaceAllString(name, "")]; (p.kind == repl || slices.Contains(scriptLanguages, name)) && changesTerminal.MatchString(strings.Join(words, " ")) {
		r.why = terminalHint
	}
}

// builtin judges a command by its name.
func (r *rules) builtin(name string, args []string, known []bool) {
	if why := refuseBuiltin(name, args, known); why != "" {
		r.why = why
	}
}

func refuseBuiltin(name string, args []string, known []bool) string {
	switch {
	case slices.Contains(known, false) && (name == "bind" || name == "history"), name == "bind" && !onlyFlags(args, "-l", "-p", "-P", "-s", "-S", "-v", "-V", "-X", "-q"):
		return name + " changes what keys do, so that what is typed would no longer be what runs."
	case name == "stty" && len(args) > 0 && !(len(args) == 1 && slices.Contains([]string{"-a", "--all", "-g", "--save", "size", "speed", "sane"}, args[0])) && !sttySize.MatchString(strings.Join(args, " ")):
		return "stty changes how the terminal reads what is typed. `stty size`, `stty -a`, `stty sane` and `stty rows N cols N` may be used."
	case name == "fc" && !slices.ContainsFunc(args, listsHistory.MatchString):
		return "fc runs lines that nobody types. Type the command out; `fc -l` lists them."
	case name == "history" && slices.ContainsFunc(args, fillsHistory.MatchString):
		return "history with -r, -n, -s or -p puts lines where a key brings them up that nobody typed."
	case (name == "read" || name == "mapfile" || name == "readarray") && readsKeys(name, args, known):
		return name + " with -d, or read with -n or -N, takes keys before Enter is pressed. Leave the option out, or put it in a script."
	case name == "tmux" && len(args) > 0 && slices.Contains([]string{"ls", "list-sessions", "kill-session", "kill-server", "has-session", "-V"}, args[0]):
	case programs[name].kind == mux:
		return name + " runs terminals inside this one, whose keys cannot be followed. Open another terminal instead."
	}
	return ""
}

// file judges the name of a file that a command may write.
func (r *rules) file(name string) {
	if strings.HasSuffix(name, "inputrc") {
		r.why = "that file says what keys do, so that what is typed would no longer be what runs."
	}
}

// readsKeys reports whether options of read make it take keys before an Enter, or
// cannot be known.
func readsKeys(name string, args []string, known []bool) bool {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !known[i] {
			return true
		}
		if len(arg) < 2 || arg[0] != '-' || arg == "--" {
			return false
		}
		for j, c := range arg[1:] {
			if c == 'd' || name == "read" && (c == 'n' || c == 'N') {
				return true
			}
			if strings.ContainsRune("aiptunNdOsCc", c) && !(name == "read" && c == 's') && !(name != "read" && c == 't') {
				if j+2 == len(arg) {
					i++ // the next word is its value
				}
				break
			}
		}
	}
	return false
}

const terminalHint = "it changes how the terminal, or the line editor, reads what is typed."

var (
	sttySize     = regexp.MustCompile(`^((rows|cols|columns) \d+ ?)+$`)
	fillsHistory = regexp.MustCompile(`^-[a-z]*[rnsp]`)
	listsHistory = regexp.MustCompile(`^-[nr]*l`)
	changesKeys  = regexp.MustCompile(`\b(INPUTRC|HISTFILE|histchars|READLINE_LINE|READLINE_POINT|interactive_comments|INTERACTIVE_COMMENTS)\b|\benable\s+-[a-z]*[fn]`)
	// changesTerminal is what code of other languages does to the terminal's keys.
	changesTerminal = regexp.MustCompile(`\b(parse_and_bind|read_init_file|termios|tcsetattr|TIOCSTI|TCSETS[FW]?|setraw|setcbreak|stty|ReadMode|setRawMode|raw!|inputrc)\b`)
	// namedKeys is a variable that holds the name of such a command.
	namedKeys  = regexp.MustCompile(`=\$?["']?(\S*/)?(bind|stty|fc|history|read|mapfile|readarray)\b`)
	definedAs  = regexp.MustCompile(`^[^\s=]+=`)
	setsVi     = regexp.MustCompile(`\bset\s+-o\s+vi\b|\bset\s+-o\s+emacs\b`)
	setsLocale = regexp.MustCompile(`\b(LC_\w+|LANG|LANGUAGE)=`)

	// readsOnly are commands whose words are names, and no code.
	readsOnly = strings.Fields("cat head tail less more grep rg ag wc file ls stat diff man info help type which whereis whatis apropos apt apt-get dpkg git pip npm")
	// scriptLanguages are those without a prompt of their own.
	scriptLanguages = strings.Fields("perl expect tclsh awk gawk")
	// runsCode are commands that run one of their words.
	runsCode = strings.Fields("eval bash sh dash zsh ksh ash busybox su sudo ssh trap alias xargs find watch timeout env script parallel complete compgen exec nohup setsid flock unshare chroot docker podman kubectl .  source")
)

func onlyFlags(args []string, allowed ...string) bool {
	return len(args) > 0 && !slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "-") && !slices.Contains(allowed, a) || strings.ContainsAny(a, ":")
	})
}
