package envd

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/internal/e2b/codeenv"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// Use is one thing that may become of a process's standard input.
type Use struct {
	// Language is what the input runs in: "bash", "python", …
	Language string
	// Sure says that the input is code for certain; otherwise a program reads it
	// that may be an interpreter, or may start one.
	Sure bool
	// Parts says that the input may be run in parts, or without its quotes.
	Parts bool
	// Before is a command that words of the input are added to.
	Before string
	// Path is the file that the input is written to. Made says that it is made when
	// the script runs, and may be any.
	Path string
	Made bool
	// Changed names what changes the input before it is run, so that nobody can tell
	// from the input what will run.
	Changed string
}

// StdinUses tells what may become of the standard input of cmd started with args:
// nothing where it is only read as data. Programs that start another are seen
// through. What is not known counts as a shell, for a file can have any name.
func StdinUses(cmd string, args []string) []Use {
	argv := []word{{cmd, true}}
	for _, a := range args {
		argv = append(argv, word{a, true})
	}
	return usesOf(argv, 0).list()
}

// ProcessUses is StdinUses for a process, whose environment may make any program
// another.
func ProcessUses(p *processpb.ProcessConfig) []Use {
	u := StdinUses(p.GetCmd(), p.GetArgs())
	for name := range p.GetEnvs() {
		if codeVariable(name) {
			return append(uses(u), maybeAny...).list()
		}
	}
	return u
}

// ScriptUses is StdinUses for a shell script.
func ScriptUses(script string) []Use { return scriptUses(script, 0).list() }

// word is an argument; not known if it is made when the script runs.
type word struct {
	text  string
	known bool
}

// uses are what may become of an input, each once.
type uses []Use

func (u uses) list() []Use {
	var out []Use
	for _, use := range u {
		if !slices.Contains(out, use) {
			out = append(out, use)
		}
	}
	return out
}

var (
	maybeShell = uses{{Language: "bash"}}
	// maybeAny is a program that may go by any name.
	maybeAny = uses{{Language: "bash"}, {Language: "python"}}
)

// runs reports whether the input may be code.
func (u uses) runs() bool {
	return slices.ContainsFunc(u, func(use Use) bool { return use.Language != "" || use.Changed != "" })
}

// maxNested bounds scripts within scripts.
const maxNested = 8

// maxScript bounds a script that is looked into; in a longer one, anything may
// read the input.
const maxScript = 64 << 10

// repl is a program that runs what is on its standard input.
type repl struct {
	name     *regexp.Regexp
	language string
}

var repls = []repl{
	{regexp.MustCompile(`^(i?python|pypy|bpython|ptpython)[0-9.]*$`), "python"},
	{regexp.MustCompile(`^(node|nodejs|bun)$`), "javascript"},
	{regexp.MustCompile(`^(deno|ts-node|tsx)$`), "typescript"},
	{regexp.MustCompile(`^(ruby[0-9.]*|irb|pry)$`), "ruby"},
	{regexp.MustCompile(`^perl[0-9.]*$`), "perl"},
	{regexp.MustCompile(`^(Rscript|R|r|littler)$`), "r"},
	{regexp.MustCompile(`^php[0-9.]*$`), "php"},
	{regexp.MustCompile(`^lua(jit)?[0-9.]*$`), "lua"},
	{regexp.MustCompile(`^(tclsh|wish|expect)[0-9.]*$`), "tcl"},
	{regexp.MustCompile(`^(psql|mysql|mariadb|sqlite[0-9]*|duckdb|clickhouse|clickhouse-client|sqlcmd|usql)$`), "sql"},
	{regexp.MustCompile(`^jshell$`), "java"},
}

// readers only read their standard input, as data. What they write goes on: see
// flow.
var readers = set(`cat tac wc jq yq grep egrep fgrep rg head tail sort uniq cut tr nl rev fold fmt column paste join comm
	md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum base64 base32 xxd od hexdump strings diff cmp
	gzip gunzip zcat bzip2 bunzip2 xz unxz zstd lz4 tar cpio iconv pv tee dd sponge split read mapfile readarray less more
	pigz unpigz lbzip2 pbzip2 lzma unlzma lzip plzip zstdmt unzstd lz4cat brotli compress uncompress`)

// starters are readers that may be told by an option to start a program, which gets
// the input or parts of it: their long options, and the letters of the short ones.
var starters = map[string]struct {
	long          []string
	short, valued string // letters that start a program, and all that take a value
}{
	"sort":  {long: []string{"compress-program"}},
	"split": {long: []string{"filter"}},
	"rg":    {long: []string{"pre"}},
	"tar": {
		long:  []string{"to-command", "use-compress-program", "checkpoint-action", "info-script", "new-volume-script", "rsh-command", "rmt-command"},
		short: "IF", valued: "fCbTXgKLNVHIF",
	},
}

// deaf programs never read their standard input.
var deaf = set(`true false : echo printf ls cd pwd pushd popd mkdir rmdir touch rm mv cp ln chmod chown stat file basename dirname realpath
	sleep mktemp date export unset set shopt local declare typeset readonly test [ exit return break continue wait jobs kill trap
	id whoami uname hostname env-print which type hash ulimit umask shift let getopts df du free ps nproc seq yes`)

// copies are deaf programs that read their standard input if an argument names it.
var copies = set("cp mv ln")

// openers are readers that leave their standard input alone when they are given a
// file, which is then any argument that is no option and no number.
var openers = set("cat tac base64")

func namesFile(a word) bool {
	return a.known && strings.Trim(a.text, "0123456789") != "" && a.text[0] != '-' && !stdinFile.MatchString(a.text)
}

// plain readers pass their input on as it is.
var plain = set(`cat tee pv sponge`)

// builtins are commands of the shell itself, which no file stands in for.
var builtins = set(`true false : echo printf cd pwd pushd popd export unset set shopt local declare typeset readonly test [ exit return break
	continue wait jobs kill trap type hash ulimit umask shift let getopts read mapfile readarray`)

// evaluators are builtins that run or evaluate parts of some of their arguments: as
// commands, as subscripts of arrays, as variables that are code.
var evaluators = set(`export unset set local declare typeset readonly test [ trap jobs hash let getopts read mapfile readarray wait type alias bind`)

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// prefixed are programs that start the command in their arguments: the options
// that take a value, and how many operands come before the command.
var prefixed = map[string]struct {
	short, long string
	skip        int
}{
	"env": {short: "uC", long: " unset chdir "}, "timeout": {short: "sk", long: " signal kill-after ", skip: 1},
	"sudo": {short: "ugpCTrtUhRD", long: " user group prompt chdir host role type other-user chroot command-timeout "},
	"doas": {short: "uC"}, "nice": {short: "n", long: " adjustment "}, "ionice": {short: "cn", long: " class classdata "},
	"nohup": {}, "setsid": {}, "exec": {short: "a"}, "command": {}, "builtin": {}, "time": {short: "fo", long: " format output "},
	"stdbuf": {short: "ioe", long: " input output error "}, "unbuffer": {}, "prlimit": {}, "taskset": {skip: 1},
	"gosu": {skip: 1}, "su-exec": {skip: 1}, "tini": {}, "dumb-init": {},
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	stdinFile  = regexp.MustCompile(`/dev/stdin|/dev/fd/|/proc/[^/]+/fd/|/dev/tty`)
)

// usesOf tells what a program does with its standard input.
func usesOf(argv []word, depth int) uses {
	for len(argv) > 0 && argv[0].known && assignment.MatchString(argv[0].text) {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return nil
	}
	if depth > maxNested || !argv[0].known {
		return maybeAny
	}
	name, args := programName(argv[0].text), argv[1:]
	if name == "exec" && len(args) == 0 {
		return nil // only its redirections count
	}
	if name == "" {
		return maybeAny
	}
	if name == "xargs" {
		return xargsUses(args)
	}
	if p, ok := prefixed[name]; ok {
		inner, ok := afterOptions(args, p.short, p.long, p.skip)
		if !ok {
			return maybeAny
		}
		return usesOf(inner, depth+1)
	}
	if shells[name] {
		return shellUses(args, depth)
	}
	for _, r := range repls {
		if r.name.MatchString(name) {
			// With operands or code of its own, that decides what is read.
			sure := !slices.ContainsFunc(args, func(a word) bool { return !a.known || a.text != "-" && a.text != "-i" }) || r.language == "sql"
			return uses{{Language: r.language, Sure: sure}, {Language: "bash"}}
		}
	}
	reads := slices.ContainsFunc(args, func(a word) bool {
		return a.known && stdinFile.MatchString(a.text) || !a.known && copies[name]
	})
	switch {
	case openers[name] && slices.ContainsFunc(args, namesFile):
		return nil
	case readers[name]:
		return written(name, args)
	case deaf[name] && !reads:
		return nil
	default:
		return maybeShell
	}
}

// codeVariable reports whether a variable names or holds code.
func codeVariable(name string) bool {
	return name != "IFS" && len(codeenv.Subjects(map[string]string{name: "x"})) > 0
}

// written are the files that a reader writes its input to, and what the programs
// that it starts do with it.
func written(name string, args []word) uses {
	var u uses
	for i, a := range args {
		switch {
		case name == "tee" || name == "sponge":
			if !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, ">(") {
				u = append(u, target(a))
			}
		case name == "dd" && strings.HasPrefix(a.text, "of="):
			u = append(u, target(word{a.text[len("of="):], a.known}))
		case name == "split" && i > 0 && !strings.HasPrefix(a.text, "-"):
			u = append(u, target(word{a.text + "aa", a.known}))
		}
	}
	if _, ok := starters[name]; ok {
		u = append(u, started(name, args)...)
	}
	return u
}

// target is the file at a path that may be made in part when the script runs.
func target(path word) Use {
	use := Use{Path: path.text}
	if path.known {
		return use
	}
	dir, base := "", path.text
	if i := strings.LastIndexByte(path.text, '/'); i >= 0 {
		dir, base = path.text[:i], path.text[i+1:]
	}
	made := func(s string) bool { return strings.ContainsAny(s, "$`*?[{") }
	ext := base[strings.LastIndexByte(base, '.')+1:]
	use.Made = made(ext) || (made(base) || made(dir)) && ext == base
	return use
}

// started tells what becomes of the input in the programs that a reader is told to
// start.
func started(name string, args []word) uses {
	s := starters[name]
	changed := uses{{Changed: name}}
	of := func(program word) uses {
		if !program.known {
			return changed
		}
		program.text = strings.TrimPrefix(program.text, "exec=") // tar's
		inner := scriptUses(program.text, 1)
		if inner.runs() {
			return changed
		}
		return inner
	}
	var u uses
	for i := 0; i < len(args); i++ {
		next := word{}
		if i+1 < len(args) {
			next = args[i+1]
		}
		a := args[i]
		switch {
		case strings.HasPrefix(a.text, "--"):
			option, value, attached := strings.Cut(a.text[2:], "=")
			if option == "" || !slices.ContainsFunc(s.long, func(l string) bool { return strings.HasPrefix(l, option) }) {
				continue
			}
			if attached {
				next = word{value, a.known}
			}
			u = append(u, of(next)...)
		case strings.HasPrefix(a.text, "-") && len(a.text) > 1:
			for j := 1; j < len(a.text); j++ {
				if !strings.ContainsRune(s.valued, rune(a.text[j])) {
					continue
				}
				if rest := a.text[j+1:]; rest != "" {
					next = word{rest, a.known}
				} else {
					i++
				}
				if strings.ContainsRune(s.short, rune(a.text[j])) {
					u = append(u, of(next)...)
				}
				break
			}
		case i == 0 && name == "tar":
			if strings.ContainsAny(a.text, s.short) {
				return changed
			}
		case !a.known:
			u = append(u, Use{Language: "bash", Parts: true}) // it may be such an option
		}
	}
	return u
}

// xargsUses tells what xargs does with its input: words of it, without their quotes,
// are added to a command.
func xargsUses(args []word) uses {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		a := args[0].text
		args = args[1:]
		if len(a) == 2 && strings.ContainsAny(a, "IELnPsda") && len(args) > 0 {
			args = args[1:]
		}
	}
	before := make([]string, 0, len(args))
	for _, a := range args {
		before = append(before, a.text)
	}
	return uses{{Language: "bash", Parts: true, Before: strings.Join(before, " ")}}
}

// afterOptions finds the command among the arguments of a program that starts it.
func afterOptions(args []word, short, long string, skip int) ([]word, bool) {
	for len(args) > 0 {
		a := args[0]
		if !a.known {
			return nil, false
		}
		switch {
		case a.text == "--":
			args = args[1:]
		case strings.HasPrefix(a.text, "--"):
			name, _, attached := strings.Cut(a.text[2:], "=")
			args = args[1:]
			if !attached && strings.Contains(long, " "+name+" ") && len(args) > 0 {
				args = args[1:]
			} else if strings.Contains(" split-string shell login ", " "+name+" ") {
				return nil, false
			}
			continue
		case len(a.text) > 1 && a.text[0] == '-':
			if strings.ContainsAny(a.text, "Si") && !strings.ContainsAny(short, "Si") {
				return nil, false // sudo's shells, env's split string
			}
			args = args[1:]
			if strings.ContainsRune(short, rune(a.text[len(a.text)-1])) && len(args) > 0 {
				args = args[1:]
			}
			continue
		case assignment.MatchString(a.text):
			if name, _, _ := strings.Cut(a.text, "="); codeVariable(name) {
				return nil, false
			}
			args = args[1:]
			continue
		}
		break
	}
	if len(args) <= skip {
		return nil, false
	}
	return args[skip:], true
}

// shellUses tells what a shell does with its standard input: without a command
// string it runs it.
func shellUses(args []word, depth int) uses {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.text
		if !a.known {
			return maybeShell
		}
	}
	call := readShellArgs(texts)
	fromStdin := slices.ContainsFunc(texts, func(a string) bool { return len(a) > 1 && a[0] == '-' && strings.ContainsAny(a, "si") })
	bare := !slices.ContainsFunc(texts, func(a string) bool { return !plainShellWords[a] && strings.Trim(a, "-lis") != "" })
	switch {
	case bare:
		return uses{{Language: "bash", Sure: true}}
	case call.command && !call.odd && !fromStdin:
		return scriptUses(call.script, depth+1)
	case call.command && !call.odd:
		// An interactive shell may go on to its input; "-s" with "-c" does not.
		return append(scriptUses(call.script, depth+1), maybeShell...)
	default:
		return maybeShell
	}
}

// LineUses is ScriptUses for one line typed into a shell. Of a line that is only a
// part of a command, every word that names an interpreter counts.
func LineUses(line string) []Use {
	if _, err := syntax.NewParser().Parse(strings.NewReader(line), ""); err == nil {
		return ScriptUses(line)
	}
	var u uses
	for _, name := range programWord.FindAllString(line, -1) {
		for _, r := range repls {
			if r.name.MatchString(programName(name)) {
				u = append(u, Use{Language: r.language, Sure: true})
			}
		}
	}
	return append(u, maybeShell...).list()
}

var programWord = regexp.MustCompile(`[\w./+-]+`)
