package pty

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// kind is how a program reads the terminal.
type kind uint8

const (
	plain     kind = iota // it is over soon, or reads lines as data
	shell                 // reads commands, here or on another machine
	repl                  // reads lines of its language
	screenful             // reads single keys, and shows what it likes
	mux                   // runs terminals of its own
)

// program is one that reads the terminal.
type program struct {
	name     string
	kind     kind
	language string // of a repl
	// edits says of a shell that it was seen to edit its lines, so that its prompts
	// are counted.
	edits bool
}

// programs are those that read the terminal when they are started without a
// script to run. A name that is not here is plain.
var programs = map[string]program{}

func init() {
	add := func(k kind, language, names string) {
		for name := range strings.FieldsSeq(names) {
			programs[name] = program{name: name, kind: k, language: language}
		}
	}
	add(shell, "", "bash sh dash zsh ksh ash fish rbash busybox su ssh mosh telnet chroot nsenter unshare script docker podman kubectl nerdctl machinectl newgrp sg")
	add(repl, "python", "python ipython pypy bpython ptpython pdb")
	add(repl, "javascript", "node nodejs bun deno")
	add(repl, "typescript", "ts-node tsx")
	add(repl, "ruby", "irb pry")
	add(repl, "php", "php")
	add(repl, "perl", "perldebug")
	add(repl, "lua", "lua luajit")
	add(repl, "r", "R")
	add(repl, "java", "jshell")
	add(repl, "sql", "sqlite3 psql mysql mariadb duckdb")
	add(repl, "", "ghci julia redis-cli mongosh bc dc gdb lldb erl iex scala ftp sftp")
	add(screenful, "", "vim vi view nvim vimdiff ex nano pico emacs micro joe hx less more most man info top htop btop atop mc ranger nnn lf lazygit tig k9s ncdu fzf dialog whiptail watch git systemctl journalctl crontab visudo w3m lynx links mutt")
	add(mux, "", "tmux screen byobu zellij dtach abduco")
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)
	version    = regexp.MustCompile(`[0-9.]+$`)
	separators = regexp.MustCompile(`[;&|\n(){}` + "`" + `]+|\b(?:then|do|else)\b`)
	simple     = regexp.MustCompile(`^[\w./:@%+=,~ "'-]+$`)
)

// wrappers run the command that follows them.
var wrappers = []string{"sudo", "doas", "env", "exec", "command", "builtin", "time", "nohup", "nice", "stdbuf", "setsid", "winpty", "rlwrap", "!", "if", "elif", "while", "until"}

// commands cuts a shell line into its simple commands, as far as words and
// separators go: enough to know which program a person starts, not to judge it.
func commands(line string) [][]string {
	var all [][]string
	for _, part := range separators.Split(line, -1) {
		words := words(part)
		for len(words) > 0 && (assignment.MatchString(words[0]) || slices.Contains(wrappers, words[0])) {
			wrapped := slices.Contains(wrappers, words[0])
			words = words[1:]
			for wrapped && len(words) > 1 && strings.HasPrefix(words[0], "-") && words[0] != "-i" && words[0] != "-s" {
				words = words[1:]
			}
		}
		if len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}

// words cuts a command at its blanks, but for those in quotes.
func words(command string) []string {
	var quote rune
	return strings.FieldsFunc(command, func(r rune) bool {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		default:
			return unicode.IsSpace(r)
		}
		return false
	})
}

// started is the program that reads the terminal once the line runs: the last
// that would.
func started(line string) program {
	var p program
	for _, words := range commands(line) {
		if one := describe(words); one.kind != plain || p.kind == plain {
			p = one
		}
	}
	return p
}

func describe(words []string) program {
	name := path.Base(strings.Trim(words[0], `"'\`))
	p, known := programs[name]
	if !known {
		p, known = programs[version.ReplaceAllString(name, "")]
	}
	switch {
	case words[0] == "-i" || words[0] == "-s": // of sudo
		return program{name: "sudo", kind: shell}
	case !known:
		return program{name: name}
	case p.kind == repl && slices.Contains(words, "-i"):
	case p.kind == repl && p.language != "sql" && p.language != "" && slices.ContainsFunc(words[1:], scripted):
		return program{name: name}
	}
	return p
}

// scripted reports whether an argument of an interpreter is code or a file.
func scripted(arg string) bool {
	return !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "-c") || strings.HasPrefix(arg, "-m") || strings.HasPrefix(arg, "-e") || strings.HasPrefix(arg, "-p")
}

// prompts tell a REPL by the line it shows. They only add a language to judge by.
var prompts = []struct {
	language string
	prompt   *regexp.Regexp
}{
	{"python", regexp.MustCompile(`^(>>> |\.\.\. |In \[\d+\]: |\s+\.\.\.: |\(Pdb\) |ipdb> )`)},
	{"javascript", regexp.MustCompile(`^(> |\.\.\. |\| )`)},
	{"sql", regexp.MustCompile(`^(sqlite> |mysql> |\w+=[#>] |\w+-[#>] |MariaDB )`)},
	{"ruby", regexp.MustCompile(`^irb\(`)},
	{"r", regexp.MustCompile(`^> `)},
}

// password tells a prompt for something that must not be kept.
var password = regexp.MustCompile(`(?i)(pass(word|phrase|code)?|\bpin|secret|token|api.?key|verification code|otp)\b[^\n]{0,80}[:?>]\s*$`)
