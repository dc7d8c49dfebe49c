package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a verdict: it goes to logs, the cache and clients, and a remote
// guard's is written by somebody else.
const (
	maxReasoning  = 1024 // bytes
	maxViolations = 32
	maxWord       = 128 // bytes of a violation's type, CWE or rule
)

// reviewSafely asks one guard, and makes errors of what is no answer: a panic and
// a decision that is neither pass nor block. A block beside an error is a block.
func reviewSafely(ctx context.Context, g Guard, s Subject) (v Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = Verdict{}, &Error{Fault: Panicked, Err: describePanic(p)}
		}
	}()
	v, err = g.Review(ctx, s)
	switch {
	case v.Decision == Block:
		return v, nil
	case err != nil:
		return Verdict{}, err
	case v.Decision != Pass:
		return Verdict{}, &Error{Guard: v.Guard, Fault: BadAnswer, Err: errors.New("no decision in the verdict")}
	default:
		return v, nil
	}
}

// describePanic says what failed and where. Only the runtime's own words are
// repeated: another value could hold the subject's text.
func describePanic(p any) error {
	what := fmt.Sprintf("panic with a value of type %T", p)
	if re, ok := p.(runtime.Error); ok {
		what = "panic: " + re.Error()
	}
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]) // 3: Callers, describePanic, the deferred function.
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Errorf("%s at %s:%d", what, frame.Function, frame.Line)
		}
		if !more {
			return errors.New(what)
		}
	}
}

// finish names the guard and bounds the verdict.
func (l *link) finish(v Verdict, removed int) Verdict {
	if v.Guard == "" {
		v.Guard = l.Name
	}
	v.Reasoning = bounded(v.Reasoning, maxReasoning)
	if removed > 0 {
		note := fmt.Sprintf("%d invisible characters were removed before this guard read the text.", removed)
		v.Reasoning = strings.TrimSpace(v.Reasoning + " " + note)
	}
	if len(v.Violations) == 0 {
		return v
	}
	v.Violations = slices.Clone(v.Violations[:min(len(v.Violations), maxViolations)])
	for i := range v.Violations {
		violation := &v.Violations[i]
		violation.Type = bounded(violation.Type, maxWord)
		violation.CWE = bounded(violation.CWE, maxWord)
		violation.Rule = bounded(violation.Rule, maxWord)
		if l.Remote {
			violation.Span = Span{} // A place in the masked text is none in the subject's.
		}
	}
	return v
}

// bounded makes one line of at most limit bytes.
func bounded(s string, limit int) string {
	if len(s) > limit {
		cut := limit - len("…")
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
}
