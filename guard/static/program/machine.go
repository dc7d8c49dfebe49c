// Package program knows what programs do when they are started with given
// arguments: which files rm deletes, what curl sends, which command sudo,
// xargs or timeout really start, what base64 -d prints.
//
// It is used by the shell front end, for every command of a script, and by the
// engine, for every effect.Exec of another language.
package program

import (
	"path"
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

// Call is one start of a program.
type Call struct {
	Name effect.Value
	Args []effect.Value
	// Stdin is what it reads; unknown and untainted if nothing is known.
	Stdin effect.Value
	Piped bool
	Span  effect.Span
	Flags effect.Flag
}

// Machine holds what is known while a script runs, and takes the effects.
type Machine struct {
	Result *effect.Result
	Budget *effect.Budget
	// Cwd is the working directory as the script itself says it, empty if it does
	// not. Dir is the same, or where the script was started; it serves to find
	// files and not to judge them.
	Cwd, Dir string
	// Files is what the script has written so far, by resolved path.
	Files map[string]effect.Value
	// Shell runs text as shell with the state of the calling script and returns
	// what it prints. Nil: such text becomes Embedded.
	Shell func(text, stdin effect.Value, args []effect.Value, flags effect.Flag, span effect.Span, via string) effect.Value
	// Start runs a command that may be a function or builtin of the calling
	// script; nil: only programs are known.
	Start func(c Call) effect.Value

	depth int
	// appended are files that the script wrote to the end of, and whose beginning
	// is not known.
	appended []string
	// running are the texts of the scripts at work.
	running []string
}

// maxDepth bounds wrappers within wrappers (sudo env timeout xargs …).
const maxDepth = 24

// model says what a program does and returns what it prints.
type model func(m *Machine, c *Call) effect.Value

// Base is the program's bare name: "/usr/bin/rm" and "rm.exe" are "rm".
func Base(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}

	return strings.TrimSuffix(name, ".exe")
}

// Run starts a program: it records the Exec, and what follows from it.
func (m *Machine) Run(c Call) effect.Value { return m.RunCall(&c) }

// RunCall is Run for a call that its caller is done with.
func (m *Machine) RunCall(c *Call) effect.Value {
	if m.depth > maxDepth || !m.Budget.Spend(8+2*len(c.Args)) {
		return effect.Unknown(effect.TaintOutput)
	}

	m.depth++
	defer func() { m.depth-- }()

	if c.Stdin.Text == "" && !c.Piped {
		c.Stdin = effect.Unknown(effect.TaintInput)
	}

	name := c.Name.Text
	if strings.ContainsAny(name, "*?[") && c.Name.IsConst() {
		if found := globProgram(name); found != "" {
			name = found
			c.Name = effect.Const(found).With(c.Name.Taint)
			c.Flags |= effect.FlagHidden
		}
	}

	base := Base(name)

	run, known := models[base]
	if known && strings.Contains(name, "/") && !systemDir(name) {
		// A program of the same name elsewhere is still judged as what it is
		// called, unless its text is known.
		if _, ok := m.file(c.Name); ok {
			known = false
		} else {
			m.load(c, effect.FlagOptional, "", c.Name)
		}
	}

	if !known && isPython(base) {
		run, known = python, true
	}

	if w, ok := wrappers[base]; ok {
		if inner, ok := w(m, c); ok {
			return m.start(inner)
		}
	}

	m.exec(c, base)

	if known && run != nil {
		return run(m, c)
	}

	return m.unknownProgram(c)
}

// isPython says whether a name is python with any version.
func isPython(base string) bool {
	return strings.HasPrefix(base, "python") && strings.Trim(base[len("python"):], "0123456789.") == ""
}

// start runs an inner command of a wrapper.
func (m *Machine) start(c Call) effect.Value {
	if c.Name.IsEmpty() {
		return effect.Unknown(effect.TaintOutput)
	}

	if m.Start != nil && m.depth <= maxDepth {
		m.depth++
		defer func() { m.depth-- }()

		return m.Start(c)
	}

	return m.Run(c)
}

func (m *Machine) exec(c *Call, base string) {
	target := c.Name
	if target.IsConst() && systemDir(target.Text) {
		target.Text = base
	}

	m.Result.Add(effect.Effect{Kind: effect.Exec, Span: c.Span, Target: target, Args: c.Args, Data: c.Stdin, Flags: c.Flags, Via: base})
}

func (m *Machine) add(c *Call, e effect.Effect) {
	e.Span = c.Span
	e.Flags |= c.Flags

	if e.Via == "" {
		e.Via = Base(c.Name.Text)
	}

	switch e.Kind {
	case effect.Delete, effect.Move, effect.Mode, effect.Link, effect.Write, effect.Read:
		e.Target = m.at(e.Target)
	}

	m.Result.Add(e)
}

// at makes a relative path absolute where the working directory is known.
func (m *Machine) at(p effect.Value) effect.Value {
	if m.Cwd == "" || p.Text == "" || p.Text[0] == '/' || p.Text[0] == '~' || strings.HasPrefix(p.Text, effect.HoleText) {
		return p
	}

	p.Text = strings.TrimSuffix(m.Cwd, "/") + "/" + p.Text

	return p
}

// unknownProgram judges a program by the file it is, if the script made it.
func (m *Machine) unknownProgram(c *Call) effect.Value {
	out := effect.Unknown(effect.TaintOutput | c.Stdin.Taint&^effect.TaintInput)
	out.Origin = c.Stdin.Origin

	content, ok := m.file(c.Name)
	if !ok && strings.Contains(c.Name.Text, "/") && !systemDir(c.Name.Text) {
		m.load(c, 0, "", c.Name)
	}

	if !ok && c.Name.Has(effect.TaintDownload|effect.TaintNetwork|effect.TaintDecoded) {
		if !c.Name.IsConst() || c.Name.Has(effect.TaintDownload|effect.TaintNetwork) {
			m.add(c, effect.Effect{Kind: effect.Eval, Lang: "bash", Data: c.Name, Via: "command name"})
		}

		return out
	}

	// A pipe is no program, and a file that was packed and is started by its name
	// is a released binary.
	if strings.HasPrefix(c.Name.Text, "/dev/fd/") {
		return out
	}

	if content.Ref == unpackedRef {
		content.Taint &^= effect.TaintDecoded
	}

	if ok {
		m.runFile(c, content, languageOf(c.Name.Text, content.Text), append([]effect.Value{c.Name}, c.Args...))
	}

	return out
}

// file looks up what the script wrote to a path, or what was there before.
func (m *Machine) file(p effect.Value) (effect.Value, bool) {
	if p.Key() == "" {
		return effect.Value{}, false
	}

	v, ok := m.Files[m.key(p)]
	if ok {
		return v, true
	}

	if abs := m.where(p); abs != "" {
		if text, ok := m.Budget.World.File(abs); ok {
			return effect.Const(text).From(effect.TaintFile, abs), true
		}
	}

	if !p.IsConst() {
		return effect.Value{}, false
	}

	// A downloaded file may be named by another path than it was stored under,
	// when the working directory is not known.
	name := "/" + path.Base(p.Text)
	best := ""

	for k, f := range m.Files {
		if f.Has(effect.TaintDownload) && strings.HasSuffix("/"+k, name) && k > best {
			best = k
		}
	}

	if best != "" {
		return m.Files[best], true
	}

	return effect.Value{}, false
}

// key is under which a path is remembered.
func (m *Machine) key(p effect.Value) string {
	if abs := m.where(p); abs != "" {
		return abs
	}

	if !p.IsConst() {
		return p.Key()
	}

	return place.Resolve(p.Text, m.Cwd)
}

// where is a path made absolute; empty if that cannot be told.
func (m *Machine) where(p effect.Value) string {
	// $PWD is not known by its value, but it is by its name.
	if rest, ok := strings.CutPrefix(p.Text, "/"+effect.HoleText); ok && p.Ref == "PWD" {
		return m.Budget.World.In(m.Dir, "./"+rest)
	}

	return m.Budget.World.In(m.Dir, p.Text)
}

// Load records that a shell reads a file as a part of its own script.
func (m *Machine) Load(c *Call, lang string, path effect.Value) { m.load(c, 0, lang, path) }

// load records that a file runs whose text is not known: the first that there
// is of the paths.
func (m *Machine) load(c *Call, flags effect.Flag, lang string, paths ...effect.Value) {
	for i, p := range paths {
		abs := m.where(p)
		if abs == "" || p.Has(effect.TaintDownload|effect.TaintNetwork) {
			return
		}

		paths[i] = effect.Const(abs)
	}

	m.Result.Add(effect.Effect{Kind: effect.Load, Span: c.Span, Target: paths[0], Args: paths[1:], Lang: lang, Flags: c.Flags | flags, Via: Base(c.Name.Text)})
}

// Read records that a file is read, and returns its content.
func (m *Machine) Read(p effect.Value, span effect.Span, flags effect.Flag, via string) effect.Value {
	if p.Text == "-" || p.IsEmpty() {
		return effect.Unknown(effect.TaintInput)
	}

	m.Result.Add(effect.Effect{Kind: effect.Read, Span: span, Target: m.at(p), Flags: flags, Via: via})

	if v, ok := m.Files[m.key(p)]; ok {
		return v
	}

	resolved := place.Resolve(p.Text, m.Cwd)

	if abs := m.where(p); abs != "" {
		if text, ok := m.Budget.World.File(abs); ok {
			m.Budget.Spend(len(text) / 64)

			return effect.Const(text).From(effect.TaintFile, abs)
		}
	}

	switch {
	case strings.HasPrefix(resolved, "/proc/self/environ"):
		return effect.Unknown(0).From(effect.TaintEnvAll, "environment")
	case resolved == "/dev/urandom" || resolved == "/dev/random":
		return effect.Unknown(effect.TaintRandom)
	case resolved == "/dev/null":
		return effect.Value{}
	case resolved == "/dev/zero":
		return effect.Value{Text: effect.HoleText, Ref: EndlessRef}
	case strings.HasPrefix(resolved, "/dev/stdin"), strings.HasPrefix(resolved, "/dev/fd/"):
		return effect.Unknown(effect.TaintInput)
	case strings.HasPrefix(resolved, "/dev/tcp/"), strings.HasPrefix(resolved, "/dev/udp/"):
		return effect.Unknown(0).From(effect.TaintNetwork, resolved)
	}

	out := effect.Unknown(0).From(effect.TaintFile, resolved)
	out.Taint |= p.Taint & (effect.TaintDownload | effect.TaintSecret)

	return out
}

// Write records that a file is written. What is appended to a file that the
// script wrote is reported with what is there already, so that a script put
// together line by line is read as one.
func (m *Machine) Write(p, data effect.Value, span effect.Span, flags effect.Flag, via string) {
	key := m.key(p)

	if flags.Has(effect.FlagAppend) && key != "" {
		if old, ok := m.Files[key]; ok {
			m.Budget.Spend(len(old.Text) / 32)
			data = effect.Concat(old, data)
		} else if text, ok := m.Budget.World.File(key); ok {
			m.Budget.Spend(len(text) / 32)
			data = effect.Concat(effect.Const(text), data)
		} else if m.Budget.World != nil && p.IsConst() {
			m.appended = append(m.appended, key)
		}
	}

	m.Result.Add(effect.Effect{Kind: effect.Write, Span: span, Target: m.at(p), Data: data, Flags: flags, Via: via})

	if data.Ref == EndlessRef && via != "dd" && !strings.HasPrefix(key, "/dev/") {
		m.Result.Add(effect.Effect{Kind: effect.Alloc, Span: span, Target: effect.Const("disk"), Flags: flags | effect.FlagUnbounded, Via: via})
	}

	if key == "" || key == "/dev/null" || len(m.Files) >= maxFiles {
		return
	}

	if m.Files == nil {
		m.Files = map[string]effect.Value{}
	}

	m.Files[key] = data
}

// maxFiles bounds how many written files a script is followed through.
const maxFiles = 512

// runFile runs a script whose content is known; args are its path as it was
// given, and its arguments.
func (m *Machine) runFile(c *Call, content effect.Value, lang string, args []effect.Value) effect.Value {
	file := m.where(args[0])
	if file != "" && slices.Contains(m.appended, file) {
		m.load(c, effect.FlagOptional, lang, args[0])
	}

	// A script that runs itself again is a loop, which its first run showed.
	for _, running := range m.running {
		if running == content.Text {
			return effect.Unknown(effect.TaintOutput)
		}
	}

	m.running = append(m.running, content.Text)
	defer func() { m.running = m.running[:len(m.running)-1] }()

	if !content.IsConst() && content.IsUnknown() {
		m.add(c, effect.Effect{Kind: effect.Eval, Lang: lang, Target: c.Name, Data: content, Via: Base(c.Name.Text)})

		return effect.Unknown(effect.TaintOutput)
	}

	return m.runScript(c, content, lang, Base(c.Name.Text), file, args)
}

// runText runs text as code in a language.
func (m *Machine) runText(c *Call, text effect.Value, lang, via string) effect.Value {
	return m.runScript(c, text, lang, via, "", nil)
}

// runScript is runText for the text of a file, "" if it is none, that is given
// arguments; args starts with its own name.
func (m *Machine) runScript(c *Call, text effect.Value, lang, via, file string, args []effect.Value) effect.Value {
	if text.IsEmpty() {
		return effect.Value{}
	}

	if text.Taint != 0 || !text.IsConst() {
		m.add(c, effect.Effect{Kind: effect.Eval, Lang: lang, Data: text, Via: via})
	}

	if text.IsUnknown() {
		return effect.Unknown(effect.TaintOutput)
	}

	if lang == "bash" && m.Shell != nil {
		return m.Shell(text, c.Stdin, args, c.Flags, c.Span, via)
	}

	m.Result.Embed(effect.Embedded{Lang: lang, Text: text, Span: c.Span, Offset: -1, Via: via, Flags: c.Flags, File: file})

	return effect.Unknown(effect.TaintOutput)
}

// languageOf guesses the language of a script from its first line and name.
func languageOf(name, text string) string {
	if line, ok := strings.CutPrefix(text, "#!"); ok {
		line, _, _ = strings.Cut(line, "\n")

		for field := range strings.FieldsSeq(line) {
			if lang := interpreterLanguage(Base(field)); lang != "" {
				return lang
			}
		}
	}

	switch path.Ext(name) {
	case ".py", ".pyw":
		return "python"
	case ".js", ".mjs", ".cjs":
		return "javascript"
	case ".ts":
		return "typescript"
	case ".pl":
		return "perl"
	case ".rb":
		return "ruby"
	case ".php":
		return "php"
	case ".r", ".R":
		return "r"
	}

	return "bash"
}

func interpreterLanguage(base string) string {
	switch strings.TrimRight(base, "0123456789.") {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish":
		return "bash"
	case "python", "pypy", "ipython":
		return "python"
	case "node", "nodejs", "bun", "deno":
		return "javascript"
	case "tsx", "ts-node":
		return "typescript"
	case "perl":
		return "perl"
	case "ruby":
		return "ruby"
	case "php":
		return "php"
	case "lua", "luajit":
		return "lua"
	case "Rscript", "R":
		return "r"
	}

	return ""
}

var systemDirs = []string{"/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/", "/opt/homebrew/bin/"}

func systemDir(name string) bool {
	if !strings.HasPrefix(name, "/") {
		return false
	}

	dir, _ := path.Split(path.Clean(name))

	for _, d := range systemDirs {
		if dir == d {
			return true
		}
	}

	return false
}

// globTargets are the programs a pattern in command position is tried on; the
// more harmful come first.
var globTargets = []string{"rm", "shred", "dd", "nc", "ncat", "bash", "sh", "curl", "wget", "cat", "base64", "python3", "perl", "chmod", "tee", "cp", "mv", "env", "nc.openbsd", "nc.traditional"}

// globProgram is the program a pattern such as /b?n/r* starts.
func globProgram(pattern string) string {
	if len(pattern) > 64 {
		return ""
	}

	for _, name := range globTargets {
		for _, dir := range systemDirs {
			if ok, err := path.Match(pattern, dir+name); ok && err == nil {
				return name
			}
		}
	}

	return ""
}
