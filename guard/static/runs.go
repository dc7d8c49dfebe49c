package static

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/javascript"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/python"
)

// Run is a file that a command or code runs or loads, and that is not among its
// subject's Files.
type Run struct {
	// Paths are where it may be, absolute; the first that there is counts.
	Paths []string
	// Optional says that there need be none: a hook, a module that may as well be
	// installed.
	Optional bool
	// Library says that the name is that of a library that is usually installed, so
	// that it is seldom worth looking for.
	Library bool
}

// maxRuns bounds how many files Runs names.
const maxRuns = 64

// Runs says which files a command or code runs or loads, as far as their names
// can be told from its text and from that of the files that it comes with.
// Relative paths are taken from the label cwd, or else from the home of the
// user. It judges nothing, and it bounds its work as Review does: whole is false
// where it could not read to the end.
func Runs(s guard.Subject) (list []Run, whole bool) {
	var found runs

	if (s.Kind != guard.KindCommand && s.Kind != guard.KindCode && s.Kind != guard.KindInput) || size(s) > defaultMaxBytes {
		return nil, size(s) <= defaultMaxBytes
	}

	defer func() {
		if recover() != nil { // a fault of ours is no sign that there are none
			list, whole = found.list, false
		}
	}()

	m, _ := memories.Get().(*memory)
	budget := effect.NewBudget((&Guard{opts: Options{MaxSteps: effect.DefaultSteps}}).steps(s))
	budget.Lend(m.effects)

	a := analyse(s, budget, m)
	defer m.keep(a.effects)

	for i := range a.effects {
		e := &a.effects[i]

		switch e.Kind {
		case effect.Load:
			found.add(a.candidates(e), e.Flags)
		case effect.Eval, effect.Schedule:
			a.sources(e, &found)
		case effect.SetEnv:
			if startupFiles[e.Target.Text] {
				found.add([]string{a.budget.World.In(a.budget.World.Dir, e.Data.Text)}, 0)
			}
		}
	}

	return found.list, !budget.Exhausted()
}

// runs collects Runs, each once.
type runs struct {
	list []Run
	seen map[string]bool
}

func (r *runs) add(paths []string, flags effect.Flag) {
	if len(paths) == 0 || paths[0] == "" || len(r.list) >= maxRuns || flags.Has(effect.FlagElsewhere) || flags.Has(effect.FlagRemote) {
		return
	}

	for _, p := range paths {
		// What the kernel makes up is no file, and a secret is no script: to read it
		// is judged as that.
		if place.Under(p, []string{"/proc", "/sys", "/dev/fd", "/dev/tcp", "/dev/udp"}) || p == "/dev/null" || p == "/dev/stdin" || place.Classify(p).Has(place.Secret) {
			return
		}
	}

	if key := strings.Join(paths, "\x00"); !r.seen[key] {
		if r.seen == nil {
			r.seen = map[string]bool{}
		}

		r.seen[key] = true
		r.list = append(r.list, Run{Paths: paths, Optional: flags.Has(effect.FlagOptional), Library: flags.Has(effect.FlagLibrary)})
	}
}

// surround tells the front ends what is around the code.
func (a *analysis) surround() {
	home := place.Home

	switch u := a.subject.Labels[guard.LabelUser]; u {
	case "", "user":
	case "root":
		home = "/root"
	default:
		home = "/home/" + path.Base(u)
	}

	w := &effect.World{Home: home}
	w.Dir = w.In(home, a.cwd)

	if w.Dir == "" {
		w.Dir = home
	}

	if len(a.subject.Files) > 0 {
		w.Files = make(map[string]string, len(a.subject.Files))
		for _, f := range a.subject.Files {
			n := normalise(f.Text)
			a.changed(n.changes)
			w.Files[f.Path] = n.text
		}
	}

	a.budget.World = w
}

// enter makes the directory of a build file the working directory while it is
// read; the function that is returned goes back.
func (a *analysis) enter(lang, file string) func() {
	w := a.budget.World
	if !isBuild(lang) || file == "" || w == nil {
		return func() {}
	}

	dir := w.Dir
	w.Dir = path.Dir(file)

	return func() { w.Dir = dir }
}

// joined goes into the files that code loads, where their text is known.
func (a *analysis) joined(effects []effect.Effect, lang string, pos position, flags effect.Flag, depth int) {
	if depth >= effect.DefaultDepth {
		return
	}

	for i := range effects {
		e := &effects[i]

		switch e.Kind {
		case effect.Import:
			if !a.budget.Spend(8) {
				return
			}

			if load := importOf(e, lang, pos.file); load.Kind == effect.Load {
				load.Flags |= flags
				a.effects = append(a.effects, load)
				a.loadFirst(&load, pos, flags, depth)
			}
		case effect.SetEnv:
			if startupFiles[e.Target.Text] {
				a.loadFirst(&effect.Effect{Target: e.Data, Lang: startupLanguage(e.Target.Text), Span: e.Span}, pos, flags, depth)
			}
		case effect.Eval:
			a.evaluated(e, pos.of(e.Span), flags, depth)
		case effect.Load:
			a.loadFirst(e, pos, flags, depth)
		}
	}
}

// loadFirst judges the first file of a Load whose text is known.
func (a *analysis) loadFirst(e *effect.Effect, pos position, flags effect.Flag, depth int) {
	if len(a.budget.World.Files) == 0 {
		return
	}

	for _, p := range a.candidates(e) {
		if a.load(p, e.Lang, pos.of(e.Span), flags|e.Flags, depth) {
			return
		}
	}
}

// evaluated goes into files whose text code reads and runs, unchanged as far as is
// known.
func (a *analysis) evaluated(e *effect.Effect, span effect.Span, flags effect.Flag, depth int) {
	if !e.Data.IsUnknown() || !e.Data.Has(effect.TaintFile) {
		return
	}

	for _, origin := range e.Data.Origins() {
		a.load(a.budget.World.In(a.budget.World.Dir, origin), e.Lang, span, flags|e.Flags, depth)
	}
}

// load judges a file's text, if it is known.
func (a *analysis) load(p, lang string, span effect.Span, flags effect.Flag, depth int) bool {
	text, ok := a.budget.World.File(p)
	if !ok {
		return false
	}

	if l := byShebang(text); l != "" && l != "unknown" && lang == "" {
		lang = l
	}

	if lang == "" {
		lang = byPath(p)
	}

	if lang == "" {
		lang = "bash" // what the shell does with a file that names no program
	}

	if lang == "notebook" {
		lang = "python"
	}

	a.run(normalOr(lang), effect.Const(text), position{offset: -1, span: span, file: p}, flags&^(effect.FlagOptional|effect.FlagLibrary), depth+1)

	return true
}

func startupLanguage(variable string) string {
	switch variable {
	case "PYTHONSTARTUP":
		return "python"
	case "R_PROFILE", "R_PROFILE_USER", "R_TESTS":
		return "r"
	default:
		return "bash"
	}
}

// candidates are the absolute paths of a Load.
func (a *analysis) candidates(e *effect.Effect) []string {
	w := a.budget.World
	out := make([]string, 0, 1+len(e.Args))
	add := func(v *effect.Value) {
		if p := w.In(w.Dir, v.Text); p != "" {
			out = append(out, p)
		}
	}

	add(&e.Target)

	for i := range e.Args {
		add(&e.Args[i])
	}

	return out
}

// sources names the files whose text an effect runs without that it is known.
func (a *analysis) sources(e *effect.Effect, found *runs) {
	if e.Data.IsConst() || !e.Data.Has(effect.TaintFile) {
		return
	}

	others := e.Data.Has(effect.TaintEnv | effect.TaintEnvAll | effect.TaintDownload | effect.TaintNetwork | effect.TaintInfo | effect.TaintSecret)

	for _, origin := range e.Data.Origins() {
		if strings.Contains(origin, "://") || others && !strings.HasPrefix(origin, "/") {
			continue // It is another source's.
		}

		if p := a.budget.World.In(a.budget.World.Dir, origin); p != "" {
			if _, known := a.budget.World.File(p); !known {
				found.add([]string{p}, e.Flags)
			}
		}
	}
}

// importOf is what an import loads from the directory of the code itself; the
// import as it is if that is none of its business.
func importOf(e *effect.Effect, lang, file string) effect.Effect {
	dir := "."
	if file != "" {
		dir = path.Dir(file)
	}

	load := effect.Effect{Kind: effect.Load, Span: e.Span, Lang: lang, Flags: e.Flags | effect.FlagOptional, Via: e.Via}
	name := e.Target.Text

	if !e.Target.IsConst() || name == "" {
		return *e
	}

	at := func(paths ...string) effect.Effect {
		load.Target = effect.Const(dir + "/" + paths[0])
		if len(paths) > 1 {
			load.Args = make([]effect.Value, 0, len(paths)-1)
		}

		for _, p := range paths[1:] {
			load.Args = append(load.Args, effect.Const(dir+"/"+p))
		}

		return load
	}

	switch lang {
	case "python":
		// One dot is the package itself, each further one a level up.
		dots := len(name) - len(strings.TrimLeft(name, "."))
		if dots > 1 {
			dir += strings.Repeat("/..", dots-1)
		}

		name = strings.ReplaceAll(name[dots:], ".", "/")
		if name == "" {
			return at("__init__.py")
		}

		if dots == 0 && python.Known(e.Target.Text) {
			load.Flags |= effect.FlagLibrary
		}

		return at(name+".py", name+"/__init__.py")
	case "javascript", "typescript":
		if !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "/") {
			return *e
		}

		if strings.HasPrefix(name, "/") {
			dir = ""
		}

		if path.Ext(name) == ".json" {
			return *e
		}

		return at(javascript.Files(name)...)
	}

	return *e
}

// unseen notes what runs without that anybody has read it.
func (a *analysis) unseen() {
	if paths := a.subject.Labels[guard.LabelUnseen]; paths != "" {
		a.direct = append(a.direct, Hit{Rule: ruleUnseenFile, Span: effect.Span{End: len(a.subject.Text)}, Detail: quote(paths)})
	}
}

var ruleUnseenFile = Rule{
	ID: "unseen-file", Category: "obfuscated_execution", Severity: Low, CWE: "CWE-829",
	Seen: "it runs {}, which could not be read before.", Fine: "Writing the file first, in a call of its own, and then running it would be fine.",
}
