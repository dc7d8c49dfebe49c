package static

import (
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

// Severity says how sure harm is.
type Severity uint8

// The severities.
const (
	// Low is odd.
	Low Severity = iota + 1
	// Medium depends on the policy of the house.
	Medium
	// High is what a sensible reviewer would stop.
	High
	// Critical destroys, steals or hands over control.
	Critical
)

// String returns the severity's name.
func (s Severity) String() string {
	switch s {
	case Low:
		return "low"
	case Medium:
		return "medium"
	case High:
		return "high"
	case Critical:
		return "critical"
	}

	return "invalid"
}

// Rule is a row of the table of rules.
type Rule struct {
	// ID is stable; Options.Disabled and verdicts name it.
	ID       string
	Category string
	Severity Severity
	CWE      string
	// Seen says what was seen, with "{}" for the detail. Fine says what would be
	// fine.
	Seen string
	Fine string
}

// hit is a match of one rule.
type hit struct {
	span   effect.Span
	detail string
}

type row struct {
	Rule
	match matcher
}

// matcher finds what a rule matches.
type matcher struct {
	// needs are the kinds of effects without which there is nothing to find; a
	// text that has none of them does not ask.
	needs kindSet
	find  func(f *facts) []hit
}

// kindSet is a set of kinds of effects.
type kindSet uint64

func kindsOf(list ...effect.Kind) (s kindSet) {
	for _, k := range list {
		s |= 1 << k
	}

	return s
}

// ruleNotAnalysable blocks what could not be read to the end.
var ruleNotAnalysable = Rule{
	ID: "not-analysable", Category: "obfuscated_execution", Severity: Critical, CWE: "CWE-1333",
	Seen: "this could not be analysed: {}.", Fine: "Shorter, flatter code, or several smaller steps, would be fine.",
}

// ruleTable is the one table of rules, most severe kinds first.
var ruleTable []row

func init() {
	for _, rows := range [][]row{
		{{Rule: ruleNotAnalysable}},
		destructiveRules, credentialRules, exfiltrationRules, shellRules, downloadRules, obfuscationRules, minerRules, persistenceRules,
		privilegeRules, containerRules, logRules, securityRules, resourceRules, scanRules, disruptionRules, surveillanceRules, environmentRules, networkRules,
	} {
		ruleTable = append(ruleTable, rows...)
	}
}

// Rules lists all rules.
func Rules() []Rule {
	out := make([]Rule, len(ruleTable))
	for i := range ruleTable {
		out[i] = ruleTable[i].Rule
	}

	return out
}

// RuleByID finds a rule.
func RuleByID(id string) (Rule, bool) {
	for i := range ruleTable {
		if ruleTable[i].ID == id {
			return ruleTable[i].Rule, true
		}
	}

	return Rule{}, false
}

// facts are the effects of one subject, arranged for rules.
type facts struct {
	a   *analysis
	all []fact
	// first and last are, by kind, the ends of a chain through all, and present
	// the kinds that have one.
	first, last [64]int32
	present     kindSet
}

// fact is an effect with what its target means.
type fact struct {
	*effect.Effect
	// path is the resolved target of file effects, class what it is.
	path  string
	class place.Class
	// base is an Exec's bare program name.
	base string
	// host is what the target of a network effect is.
	host place.HostClass
	// next is the next of the kind in facts.all, counted from one; zero ends.
	next int32
}

func newFacts(a *analysis) *facts {
	f := &a.memory.facts
	*f = facts{a: a, all: slices.Grow(f.all[:0], len(a.effects))[:len(a.effects)]}

	for i := range a.effects {
		e := &f.all[i]
		*e = fact{Effect: &a.effects[i]}
		if f.first[e.Kind] == 0 {
			f.first[e.Kind] = int32(i + 1)
		} else {
			f.all[f.last[e.Kind]-1].next = int32(i + 1)
		}

		f.last[e.Kind] = int32(i + 1)
		f.present |= 1 << e.Kind

		switch e.Kind {
		case effect.Read, effect.Write, effect.Delete, effect.Move, effect.Mode, effect.Link:
			e.path = place.Resolve(e.Target.Text, a.cwd)
			e.class = place.Classify(e.path)
		case effect.Connect, effect.Receive, effect.Send:
			e.host = place.ClassifyHost(strings.TrimPrefix(e.Target.Text, "dns:"))
		case effect.Exec:
			e.base = program.Base(e.Target.Text)
		}
	}

	return f
}

// each calls fn for every effect of the given kinds, kind by kind.
func (f *facts) each(fn func(e *fact), kinds ...effect.Kind) {
	for _, k := range kinds {
		for i := f.first[k]; i > 0; i = f.all[i-1].next {
			fn(&f.all[i-1])
		}
	}
}

// finding is a rule's match that looks at the effects together; without one of
// the kinds it finds nothing.
func finding(find func(f *facts) []hit, needs ...effect.Kind) matcher {
	return matcher{needs: kindsOf(needs...), find: find}
}

// matching is a rule's match that looks at effects one by one; test returns
// the detail and whether it matches.
func matching(test func(f *facts, e *fact) (string, bool), list ...effect.Kind) matcher {
	return finding(func(f *facts) []hit {
		var out []hit

		f.each(func(e *fact) {
			if d, ok := test(f, e); ok && len(out) < maxHits {
				out = append(out, hit{e.Span, d})
			}
		}, list...)

		return out
	}, list...)
}

// name is an Exec's bare program name.
func (e *fact) name() string { return e.base }

// arg says whether an argument is one of the words.
func (e *fact) arg(words ...string) bool {
	for i := range e.Args {
		for _, w := range words {
			if e.Args[i].Text == w {
				return true
			}
		}
	}

	return false
}

// argHas says whether an argument contains one of the parts.
func (e *fact) argHas(parts ...string) bool {
	for i := range e.Args {
		for _, p := range parts {
			if strings.Contains(e.Args[i].Text, p) {
				return true
			}
		}
	}

	return false
}

// first is the first argument that is no option.
func (e *fact) operand(n int) string {
	for i := range e.Args {
		t := e.Args[i].Text
		if strings.HasPrefix(t, "-") {
			continue
		}

		if n == 0 {
			return t
		}

		n--
	}

	return ""
}

// show marks a detail as text of the subject, to be quoted. The quoting waits
// until a rule matches, which is seldom.
func show(s string) string { return s }

// render makes a detail ready for a sentence: what begins with NUL is a phrase
// of ours, anything else is quoted.
func render(detail string) string {
	if phrase, ok := strings.CutPrefix(detail, "\x00"); ok || detail == "" {
		return phrase
	}

	return quote(detail)
}

// quote shortens a text for a sentence.
func quote(s string) string {
	s = strings.ReplaceAll(s, effect.HoleText, "…")
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}

		return r
	}, s)

	const limit = 80
	if len(s) > limit {
		i := limit
		for i > 0 && s[i]&0xC0 == 0x80 {
			i--
		}

		s = s[:i] + "…"
	}

	return "`" + s + "`"
}

// blockedNetwork says whether an install would hang. One in a file that is
// written does not run now.
func (f *facts) blockedNetwork() bool {
	return f.a.subject.Kind != guard.KindFile && f.a.subject.Labels[guard.LabelNetwork] == "blocked"
}

// textHas says whether the text of a span has one of the parts.
func (f *facts) textHas(s effect.Span, parts ...string) bool {
	s = clampSpan(s, len(f.a.subject.Text))
	for _, p := range parts {
		if strings.Contains(f.a.subject.Text[s.Start:s.End], p) {
			return true
		}
	}

	return false
}

func oneOf(s string, names ...string) bool {
	for _, n := range names {
		if s == n {
			return true
		}
	}

	return false
}

var shells = map[string]bool{
	"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "csh": true, "tcsh": true, "fish": true, "busybox": true,
	"rbash": true, "pwsh": true, "cmd.exe": true, "cmd": true, "powershell": true,
}
