// Package static is the guard that is built in: it reads what code does, in
// microseconds, without a key and without a network.
//
// A review goes through five steps, each in a file or package of its own:
//
//	text → normalise → language → front end → effects → rules → verdict
//
// Front ends (shell, python, javascript, …) turn text into effects in one small
// vocabulary (package effect), with constants folded and sources followed.
// Programs that code starts are expanded into effects by package program. Rules
// look at effects only; they are one table (Rules).
//
// # Subjects
//
// A KindCommand subject whose Language is "bash" holds either the script that
// "bash -c" is given, as it stands, or the argument vector of another program,
// quoted for a shell. KindCode is source text in Language. KindInput is text
// typed into a shell or interpreter. A KindFile subject names in
// Labels[guard.LabelAction] what happens to Target; Text is the content where
// something is written. A KindCode subject with a Target and no Language is an
// environment variable: Target is its name, Text its value. A KindTool subject's
// Text is the tool's input: JSON, or words such as "FETCH <url>". A KindPrompt
// subject passes.
//
// Labels[guard.LabelNetwork] == "blocked" makes installs that would hang a
// block of their own.
//
// The guard is deterministic: its budget is counted in steps, not in time. What
// it could not read to the end is blocked by the rule "not-analysable".
package static

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// Profile chooses, by severity, which rules block.
type Profile string

// The profiles.
const (
	// Strict blocks on rules of every severity.
	Strict Profile = "strict"
	// Balanced blocks on high and critical. It is the default.
	Balanced Profile = "balanced"
	// Permissive blocks on critical only.
	Permissive Profile = "permissive"
)

// Options configure a Guard.
type Options struct {
	// Profile is Strict, Balanced or Permissive; empty means Balanced.
	Profile Profile
	// Disabled lists ids of rules that never block.
	Disabled []string
	// MaxSteps bounds the work on one subject; zero means effect.DefaultSteps.
	// Long files may cost up to three times as much.
	MaxSteps int
	// MaxBytes is the longest text that is judged; longer is blocked. Zero means
	// 4 MiB.
	MaxBytes int
}

// defaultMaxBytes is what Options.MaxBytes means when zero.
const defaultMaxBytes = 4 << 20

// Guard is the embedded guard. It is safe for concurrent use.
type Guard struct {
	opts     Options
	disabled map[string]bool
	floor    Severity
}

var _ guard.Guard = (*Guard)(nil)

// New makes a Guard. It fails on an unknown profile or rule id, and reports all
// of them.
func New(opts Options) (*Guard, error) {
	g := &Guard{opts: opts, disabled: map[string]bool{}}

	var problems []string

	switch opts.Profile {
	case "", Balanced:
		g.floor = High
	case Strict:
		g.floor = Low
	case Permissive:
		g.floor = Critical
	default:
		problems = append(problems, fmt.Sprintf("unknown profile %q: write strict, balanced or permissive", opts.Profile))
	}

	for _, id := range opts.Disabled {
		if _, ok := RuleByID(id); !ok {
			problems = append(problems, fmt.Sprintf("unknown rule %q: see e2bguard check --rules", id))
		}

		g.disabled[id] = true
	}

	if len(problems) > 0 {
		return nil, fmt.Errorf("configuring the static guard: %s", strings.Join(problems, "; "))
	}

	if g.opts.MaxSteps == 0 {
		g.opts.MaxSteps = effect.DefaultSteps
	}

	if g.opts.MaxBytes == 0 {
		g.opts.MaxBytes = defaultMaxBytes
	}

	return g, nil
}

// Name is the guard's name in verdicts.
const Name = "static"

// Review judges one subject.
func (g *Guard) Review(ctx context.Context, s guard.Subject) (guard.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return guard.Verdict{}, err
	}

	start := time.Now()
	m, _ := memories.Get().(*memory)
	f := g.guarded(s, func() *analysis {
		budget := effect.NewBudget(g.steps(s))
		budget.Lend(m.effects)

		return analyse(s, budget, m)
	})
	v := f.Verdict()
	m.keep(f.Effects)
	v.Took = time.Since(start)

	return v, nil
}

// steps is what a subject may cost. Files, uploaded or run, may be long, such as a
// bundled library, and get more; commands and cells do not.
func (g *Guard) steps(s guard.Subject) int {
	long := size(s)
	if s.Kind != guard.KindFile {
		long -= len(s.Text)
	}

	steps := max(g.opts.MaxSteps, min(long*5/2, 3*g.opts.MaxSteps))
	if s.Kind != guard.KindFile && normalLanguage(s.Language) == "" {
		steps *= len(guesses) // each may cost as much
	}

	return steps
}

// size is the length of all the text of a subject, in bytes.
func size(s guard.Subject) int {
	n := len(s.Text)
	for _, f := range s.Files {
		n += len(f.Text)
	}

	return n
}

// memory is what one review passes on to the next.
type memory struct {
	analysis analysis
	effects  []effect.Effect
	facts    facts
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// maxKept bounds how many effects' memory is kept.
const maxKept = 1024

// keep takes a review's memory back. Nothing of the text stays in it.
func (m *memory) keep(effects []effect.Effect) {
	if cap(effects) > maxKept || cap(m.facts.all) > maxKept {
		return
	}

	clear(effects)
	m.effects = effects[:0]

	m.analysis = analysis{}

	clear(m.facts.all)
	m.facts = facts{all: m.facts.all[:0]}

	memories.Put(m)
}

// Inspect judges one subject and tells all that was seen.
func (g *Guard) Inspect(s guard.Subject) Findings {
	return g.guarded(s, func() *analysis { return analyse(s, effect.NewBudget(g.steps(s)), &memory{}) })
}

// guarded turns the result of an analysis into findings.
func (g *Guard) guarded(s guard.Subject, work func() *analysis) (f Findings) {
	f = Findings{Subject: s}

	defer func() {
		// A fault of ours is never a pass.
		if r := recover(); r != nil {
			f.Hits = append(f.Hits, Hit{Rule: ruleNotAnalysable, Detail: "the analysis failed on it"})
		}
	}()

	if size(s) > g.opts.MaxBytes {
		f.Hits = []Hit{{Rule: ruleNotAnalysable, Detail: fmt.Sprintf("it is longer than %d bytes", g.opts.MaxBytes)}}

		return f
	}

	a := work()
	f.Effects, f.Normalized, f.Notes, f.Language, f.Steps = a.effects, a.normalized, a.notes, a.language, a.budget.Spent()

	for _, h := range a.hits() {
		if h.Rule.Severity >= g.floor && !g.disabled[h.Rule.ID] {
			f.Hits = append(f.Hits, h)
		} else {
			f.Muted = append(f.Muted, h)
		}
	}

	return f
}

// Findings are all that a review saw.
type Findings struct {
	Subject guard.Subject
	// Language is what the text was read as.
	Language string
	// Normalized names what was changed before reading: "nfkc", "zero_width", …
	Normalized []string
	Effects    []effect.Effect
	Notes      []effect.Note
	// Hits block; Muted would under another profile, or are disabled.
	Hits  []Hit
	Muted []Hit
	Steps int
}

// Hit is one rule that matched.
type Hit struct {
	Rule   Rule
	Span   effect.Span
	Detail string
}

// Verdict is the answer that findings amount to.
func (f *Findings) Verdict() guard.Verdict {
	v := guard.Verdict{Decision: guard.Pass, Guard: Name, Reasoning: "No rule of the static guard matched."}
	if f.Subject.Kind == guard.KindPrompt {
		v.Reasoning = "This is plain words, with nothing in it that could run. The static guard judges what runs; what words ask for takes a guard with a model."
	}

	if len(f.Normalized) > 0 {
		v.Reasoning += " Judged after normalising: " + strings.Join(f.Normalized, ", ") + "."
	}

	if len(f.Hits) == 0 {
		return v
	}

	v.Decision = guard.Block
	worst := f.Hits[0]

	for _, h := range f.Hits {
		if h.Rule.Severity > worst.Rule.Severity {
			worst = h
		}

		v.Violations = append(v.Violations, guard.Violation{
			Type: h.Rule.Category, CWE: h.Rule.CWE, Rule: h.Rule.ID, Span: guard.Span(h.Span),
		})
	}

	v.Reasoning = worst.sentence()
	if len(f.Normalized) > 0 && slices.ContainsFunc(f.Normalized, hiding) {
		v.Reasoning += " The text hides characters (" + strings.Join(f.Normalized, ", ") + ")."
	}

	return v
}

func hiding(n string) bool { return n == "tag_characters" || n == "zero_width" || n == "bidi" }

func (h Hit) sentence() string {
	seen := h.Rule.Seen
	if h.Detail != "" {
		seen = strings.ReplaceAll(seen, "{}", h.Detail)
	}

	return strings.ToUpper(seen[:1]) + seen[1:] + " " + h.Rule.Fine
}
