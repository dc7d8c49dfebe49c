package static

import (
	"path"
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

// analysis is one review at work.
type analysis struct {
	subject    guard.Subject
	cwd        string
	budget     *effect.Budget
	memory     *memory
	effects    []effect.Effect
	notes      []effect.Note
	normalized []string
	language   string
	// ran holds what was read already, so that a script written and then run is
	// read once.
	ran map[string]bool
	// direct are hits of rules that look at the subject rather than at effects.
	direct []Hit
	// guessing says that the text is read in a language that it may not be in.
	guessing bool
}

// position maps a front end's spans to the subject's text.
type position struct {
	// offset is where the parsed text stands; -1 if it does not stand there byte
	// for byte.
	offset int
	span   effect.Span
	// file is the path of the file that the text is; empty if it is none.
	file string
}

func (p position) of(s effect.Span) effect.Span {
	if p.offset < 0 {
		return p.span
	}

	return effect.Span{Start: s.Start + p.offset, End: s.End + p.offset}
}

func analyse(s guard.Subject, budget *effect.Budget, m *memory) *analysis {
	m.analysis = analysis{subject: s, cwd: s.Labels[guard.LabelCwd], budget: budget, memory: m}
	a := &m.analysis
	a.surround()
	a.unseen()

	switch {
	case s.Kind == guard.KindFile:
		a.file()
	case s.Kind == guard.KindTool:
		a.tool()
	case s.Kind == guard.KindPrompt: // words are a model's to judge
	case s.Kind == guard.KindCode && s.Language == "" && s.Target != "":
		a.environment()
	default:
		a.code(s.Language, s.Text)
	}

	return a
}

// code judges text in a language, or in all that it may be.
func (a *analysis) code(language, text string) {
	n := normalise(text)
	a.changed(n.changes)

	langs := []string{normalLanguage(language)}
	if langs[0] == "" {
		if l := byShebang(n.text); l != "" && l != "unknown" {
			langs[0] = l
		} else {
			langs = guess(n.text)
			a.guessing = len(langs) > 1
		}
	}

	if langs[0] == "javascript" && isPackage(n.text) {
		langs[0] = packageJSON
	}

	a.language = langs[0]

	// A step of a template build runs in the build's own machine, and makes the
	// image what it will be.
	var flags effect.Flag
	if a.subject.Kind == guard.KindBuild {
		flags = effect.FlagElsewhere | effect.FlagImage
	}

	for _, l := range langs {
		a.run(l, effect.Const(n.text), position{}, flags, 0)

		if n.other != "" {
			a.run(l, effect.Const(n.other), position{offset: -1, span: effect.Span{End: len(text)}}, flags, 0)
		}
	}
}

// changed notes what normalising changed, each kind once.
func (a *analysis) changed(kinds []string) {
	for _, k := range kinds {
		if !slices.Contains(a.normalized, k) {
			a.normalized = append(a.normalized, k)
		}
	}
}

// run reads text in one language and follows what is embedded in it.
func (a *analysis) run(lang string, text effect.Value, pos position, flags effect.Flag, depth int) {
	if text.IsUnknown() || text.IsEmpty() {
		return
	}

	if depth > effect.DefaultDepth {
		a.notes = append(a.notes, effect.Note{Kind: effect.NoteDepth, Offset: pos.span.Start, Text: "code within code"})

		return
	}

	if lang == "" {
		before := a.guessing
		langs := guess(text.Text)
		a.guessing = before || len(langs) > 1

		for _, l := range langs {
			a.run(l, text, pos, flags, depth)
		}

		a.guessing = before

		return
	}

	parse, ok := frontEnds[lang]
	if !ok {
		return
	}

	if depth > 0 {
		key := lang + "\x00" + text.Text
		if a.ran[key] {
			return
		}

		if a.ran == nil {
			a.ran = map[string]bool{}
		}

		a.ran[key] = true
	}

	defer a.enter(lang, pos.file)()

	r := parse(text.Text, a.budget)
	a.take(&r, lang, text, pos, flags, depth)
}

// take adds a front end's result, expands the programs it starts, and goes
// into embedded code and written scripts.
func (a *analysis) take(r *effect.Result, lang string, text effect.Value, pos position, flags effect.Flag, depth int) {
	for _, n := range r.Notes {
		if n.Kind == effect.NoteForeign && a.guessing {
			continue
		}

		n.Offset = pos.of(effect.Span{Start: n.Offset}).Start
		a.notes = append(a.notes, n)
	}

	var m *program.Machine

	// The whole text's own effects, by far the most, are taken as they are.
	own := len(a.effects) == 0
	if own {
		a.effects = r.Effects
	} else {
		a.effects = slices.Grow(a.effects, len(r.Effects))
	}

	for i := range r.Effects {
		e := &r.Effects[i]
		e.Flags |= flags

		if text.Has(effect.TaintDecoded) {
			e.Flags |= effect.FlagHidden
		}

		if e.Kind == effect.Exec && lang != "bash" {
			if m == nil {
				m = &program.Machine{Result: &effect.Result{}, Budget: a.budget}
				if a.budget.World != nil {
					m.Dir = a.budget.World.Dir
				}
			}

			m.Run(program.Call{Name: e.Target, Args: e.Args, Stdin: e.Data, Piped: e.Data.Text != "" || e.Data.Taint != 0, Span: e.Span, Flags: e.Flags})
		}

		e.Span = pos.of(e.Span)

		if !own {
			a.effects = append(a.effects, *e)
		}
	}

	if m != nil {
		a.take(m.Result, "bash", effect.Value{Taint: text.Taint &^ effect.TaintDecoded}, pos, flags, depth)
	}

	a.joined(r.Effects, lang, pos, flags, depth)

	for i := range r.Embedded {
		a.embedded(&r.Embedded[i], lang, pos, flags, depth)
	}

	if depth < effect.DefaultDepth {
		a.written(r.Effects, pos, flags, depth)
	}
}

func (a *analysis) embedded(em *effect.Embedded, lang string, pos position, flags effect.Flag, depth int) {
	if em.Text.Taint != 0 || em.Text.IsUnknown() {
		e := effect.Effect{Kind: effect.Eval, Span: pos.of(em.Span), Data: em.Text, Lang: em.Lang, Flags: em.Flags | flags, Via: em.Via}
		a.effects = append(a.effects, e)

		if depth < effect.DefaultDepth {
			a.evaluated(&e, e.Span, 0, depth)
		}
	}

	inner := position{offset: -1, span: pos.of(em.Span), file: em.File}
	if em.Offset >= 0 && pos.offset >= 0 {
		inner.offset = pos.offset + em.Offset
	}

	a.run(normalOr(em.Lang), em.Text, inner, em.Flags|flags, depth+1)
}

func normalOr(lang string) string {
	if l := normalLanguage(lang); l != "" {
		return l
	}

	return lang
}

// written judges scripts that code writes for somebody else to run: by name,
// by first line, or because the place runs what it holds.
func (a *analysis) written(effects []effect.Effect, pos position, flags effect.Flag, depth int) {
	for i := range effects {
		e := &effects[i]
		if e.Kind != effect.Write || e.Data.IsUnknown() || e.Data.IsEmpty() || e.Via == "sed -i" {
			continue
		}

		p := place.Resolve(e.Target.Text, a.cwd)
		lang := byShebang(e.Data.Text)

		if lang == "" {
			lang = byPath(p)
		}

		if lang == "" && place.Classify(p).Has(place.SelfRunning) && path.Ext(p) == "" {
			lang = "bash"
		}

		if lang == "" || lang == "unknown" || strings.HasSuffix(p, ".conf") {
			continue
		}

		at := flags
		if isBuild(lang) {
			at |= effect.FlagElsewhere
		}

		a.run(lang, e.Data, position{offset: -1, span: e.Span}, at, depth+1)
	}
}

// notAnalysable is a hit where something was not read to the end.
func (a *analysis) notAnalysable() []Hit {
	for _, n := range a.notes {
		switch n.Kind {
		case effect.NoteBudget, effect.NoteForeign:
			return []Hit{{Rule: ruleNotAnalysable, Span: effect.Span{Start: n.Offset, End: len(a.subject.Text)}, Detail: "it takes too many steps to read"}}
		case effect.NoteDepth:
			return []Hit{{Rule: ruleNotAnalysable, Span: effect.Span{Start: n.Offset, End: len(a.subject.Text)}, Detail: "it is nested too deeply"}}
		}
	}

	if a.budget.Exhausted() {
		return []Hit{{Rule: ruleNotAnalysable, Span: effect.Span{End: len(a.subject.Text)}, Detail: "it takes too many steps to read"}}
	}

	return nil
}

// hits applies every rule. The order is that of the table, then of the text.
func (a *analysis) hits() []Hit {
	out := append(a.notAnalysable(), a.direct...)
	f := newFacts(a)

	for i := range ruleTable {
		r := &ruleTable[i]
		if f.present&r.match.needs == 0 {
			continue
		}

		for _, h := range r.match.find(f) {
			out = addHit(out, Hit{Rule: r.Rule, Span: clampSpan(h.span, len(a.subject.Text)), Detail: render(h.detail)})
		}
	}

	return out
}

// maxHits bounds how many hits a verdict lists.
const maxHits = 32

func addHit(hits []Hit, h Hit) []Hit {
	if len(hits) >= maxHits {
		return hits
	}

	for _, old := range hits {
		if old.Rule.ID == h.Rule.ID && old.Span == h.Span {
			return hits
		}
	}

	return append(hits, h)
}

func clampSpan(s effect.Span, n int) effect.Span {
	s.Start = max(0, min(s.Start, n))
	s.End = max(s.Start, min(s.End, n))

	return s
}
