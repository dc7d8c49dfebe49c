package guard

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Defaults of a Link.
const (
	DefaultTimeout        = 5 * time.Second
	DefaultLocalMaxBytes  = 4 << 20
	DefaultRemoteMaxBytes = 256 << 10
)

// remoteReviews is how many chunks of one subject a remote guard gets at once.
const remoteReviews = 4

// Link is one guard of a Chain and what it may be asked.
type Link struct {
	// Name is the guard's name in verdicts, errors, logs and metrics.
	Name  string
	Guard Guard
	// For lists the kinds it is asked about. Nil means all, or for a remote guard
	// all but KindInput: a call for every line typed would be unusable.
	For []Kind
	// Remote says that subjects leave the house: MaskSecrets is applied, hidden
	// characters are removed, labels that name the client or the sandbox are left
	// out, and a circuit breaker stands in front.
	Remote bool
	// Window is the most text one review can take, in bytes; 0 means no window. A
	// rune outside ASCII counts as 4 bytes, so a model's window is four times its
	// tokens, less what its instructions take. Longer subjects are reviewed in
	// overlapping chunks, all of them; any block blocks. At least 2048.
	Window int
	// MaxBytes is the size above which a subject is refused, with TooLarge; 0
	// means 4 MiB, or 256 KiB for a remote guard.
	MaxBytes int64
	// Timeout bounds the review of one subject, all chunks together; 0 means 5 s.
	Timeout time.Duration
	// MaskSecrets hides secrets in what a remote guard is given. Required for
	// remote guards.
	MaskSecrets func(string) string
}

// ChainOptions tunes a Chain.
type ChainOptions struct {
	Breaker BreakerOptions
}

// Chain asks guards in order: a block ends it, a pass goes on to the next, the
// last verdict stands. It is a Guard itself, and safe for concurrent use.
//
// Errors are always *Error. A fault that could fail open (see Decide) does not
// end the chain: a later guard's block still counts, else an unreachable guard in
// front would, under on_error allow, switch off the one behind. If none blocks,
// that first error is the answer; a later pass does not heal it. Any other fault
// ends the chain.
//
// A subject whose kind no link takes gets NoGuard, a fault of configuration that
// blocks: an action nobody judges is not a harmless action.
type Chain struct {
	links  []*link
	digest string
}

type link struct {
	Link
	breaker *breaker // nil for local guards
}

// NewChain checks the links and reports every problem at once.
func NewChain(links []Link, opts ChainOptions) (*Chain, error) {
	var problems []error
	if len(links) == 0 {
		problems = append(problems, errors.New("no guard: a chain needs at least one link"))
	}
	c := new(Chain)
	names := make(map[string]bool)
	for i, l := range links {
		where := fmt.Sprintf("link %d (%q)", i+1, l.Name)
		for _, problem := range l.problems() {
			problems = append(problems, fmt.Errorf("%s: %w", where, problem))
		}
		if names[l.Name] {
			problems = append(problems, fmt.Errorf("%s: the name is taken by an earlier link", where))
		}
		names[l.Name] = true
		c.links = append(c.links, newLink(l, opts))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("building guard chain: %w", err)
	}
	c.digest = c.sum()
	return c, nil
}

func (l Link) problems() []error {
	var all []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	add(l.Name == "", "no name")
	add(l.Guard == nil, "no guard")
	add(l.For != nil && len(l.For) == 0, "an empty list of kinds: it would never be asked")
	for i, k := range l.For {
		add(!slices.Contains(Kinds(), k), "unknown kind %q: the kinds are %v", k, Kinds())
		add(slices.Contains(l.For[:i], k), "kind %q is listed twice", k)
	}
	add(l.Window != 0 && l.Window < minWindow, "window of %d bytes: at least %d, or 0 for none", l.Window, minWindow)
	add(l.MaxBytes < 0, "maximum size of %d bytes is negative", l.MaxBytes)
	add(l.Timeout < 0, "timeout of %v is negative", l.Timeout)
	add(l.Remote && l.MaskSecrets == nil, "remote without masking of secrets")
	return all
}

func newLink(l Link, opts ChainOptions) *link {
	out := &link{Link: l}
	if l.For == nil {
		out.For = Kinds()
		if l.Remote {
			out.For = slices.DeleteFunc(out.For, func(k Kind) bool { return k == KindInput })
		}
	}
	if l.Timeout == 0 {
		out.Timeout = DefaultTimeout
	}
	if l.MaxBytes == 0 {
		out.MaxBytes = DefaultLocalMaxBytes
		if l.Remote {
			out.MaxBytes = DefaultRemoteMaxBytes
		}
	}
	if l.Remote {
		out.breaker = newBreaker(l.Name, opts.Breaker)
	}
	return out
}

// Digester is a Guard whose verdicts depend on its configuration. The digest
// changes whenever the same subject could get another verdict, so that a Cache
// does not keep the old one.
type Digester interface {
	Digest() string
}

// Digest identifies the chain's configuration: its links, in order, and the
// digests of those guards that are a Digester.
func (c *Chain) Digest() string { return c.digest }

func (c *Chain) sum() string {
	d := newDigest()
	for _, l := range c.links {
		d.field(l.Name)
		d.field(fmt.Sprintf("%T remote=%t window=%d max=%d for=%v", l.Guard, l.Remote, l.Window, l.MaxBytes, l.For))
		d.field(digestOf(l.Guard))
	}
	key := d.sum()
	return hex.EncodeToString(key[:])
}

func digestOf(g Guard) string {
	if d, ok := g.(Digester); ok {
		return d.Digest()
	}
	return ""
}

// Review implements Guard.
func (c *Chain) Review(ctx context.Context, s Subject) (Verdict, error) {
	start := time.Now()
	var verdict Verdict
	var failed *Error
	asked := false
	for _, l := range c.links {
		if !slices.Contains(l.For, s.Kind) || l.Remote && s.Labels[LabelHidden] != "" {
			continue
		}
		asked = true
		v, err := l.review(ctx, s)
		if err != nil {
			fault := failure(ctx, l.Name, err)
			if !failsOpen(fault) {
				return Verdict{}, fault
			}
			if failed == nil {
				failed = fault
			}
			continue
		}
		v.Took = time.Since(start)
		if v.Decision == Block {
			return v, nil
		}
		verdict = v
	}
	switch {
	case !asked:
		return Verdict{}, &Error{Fault: NoGuard, Err: fmt.Errorf("no link takes subjects of kind %q", s.Kind)}
	case failed != nil:
		return Verdict{}, failed
	default:
		return verdict, nil
	}
}

// review asks one guard about the whole subject.
func (l *link) review(ctx context.Context, s Subject) (Verdict, error) {
	size := int64(len(s.Text)) + int64(len(s.Target))
	for _, f := range s.Files {
		size += int64(len(f.Text)) + int64(len(f.Path))
	}
	if size > l.MaxBytes {
		return Verdict{}, &Error{Guard: l.Name, Fault: TooLarge, Err: fmt.Errorf("%d bytes, and at most %d are judged", size, l.MaxBytes)}
	}
	if l.Remote || l.Window > 0 {
		s.Text, s.Files = s.Whole(), nil // It is cut, or sent, as one text.
	}
	var removed int
	if l.Remote {
		s, removed = leave(s, l.MaskSecrets)
	}
	spans, err := l.spans(s)
	if err != nil {
		return Verdict{}, err
	}
	limited, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	ask := func() (Verdict, error) {
		v, err := l.reviewAll(limited, s, spans)
		if err != nil {
			// Settled here, where the client's context and ours can be told apart,
			// so that the breaker does not count the client's going away.
			return Verdict{}, failure(ctx, l.Name, err)
		}
		return v, nil
	}
	var v Verdict
	if l.breaker != nil {
		v, err = l.breaker.do(ask)
	} else {
		v, err = ask()
	}
	if err != nil {
		return Verdict{}, err
	}
	return l.finish(v, removed), nil
}

func (l *link) spans(s Subject) ([]Span, error) {
	if l.Window == 0 {
		return []Span{{0, len(s.Text)}}, nil
	}
	room := l.Window - costOf(s.Target)
	if room < minChunk {
		return nil, &Error{Guard: l.Name, Fault: TooLarge, Err: fmt.Errorf("the target's name leaves no room in a window of %d bytes", l.Window)}
	}
	return chunks(s.Text, room), nil
}

// reviewAll asks about every span. A block wins over an error, and of the errors
// one that does not fail open wins: what the answer is must not depend on which
// chunk was first.
func (l *link) reviewAll(ctx context.Context, s Subject, spans []Span) (Verdict, error) {
	if len(spans) == 1 {
		return l.reviewSpan(ctx, s, spans[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := 1
	if l.Remote {
		workers = min(remoteReviews, len(spans))
	}
	answers := make([]answer, len(spans))
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				answers[i].verdict, answers[i].err = l.reviewSpan(ctx, s, spans[i])
				if answers[i].err == nil && answers[i].verdict.Decision == Block {
					cancel() // The others cannot change it.
				}
			}
		})
	}
	for i := range spans {
		next <- i
	}
	close(next)
	wg.Wait()
	return settle(answers)
}

type answer struct {
	verdict Verdict
	err     error
}

func settle(answers []answer) (Verdict, error) {
	var err error
	for _, a := range answers {
		switch {
		case a.err == nil && a.verdict.Decision == Block:
			return a.verdict, nil
		case a.err != nil && (err == nil || failsOpen(err) && !failsOpen(a.err)):
			err = a.err
		}
	}
	if err != nil {
		return Verdict{}, err
	}
	return answers[len(answers)-1].verdict, nil
}

// reviewSpan asks about one span; the verdict's own spans are those of the whole
// text.
func (l *link) reviewSpan(ctx context.Context, s Subject, span Span) (Verdict, error) {
	if err := ctx.Err(); err != nil {
		return Verdict{}, err
	}
	s.Text = s.Text[span.Start:span.End]
	v, err := reviewSafely(ctx, l.Guard, s)
	if err != nil || span.Start == 0 || len(v.Violations) == 0 {
		return v, err
	}
	v.Violations = slices.Clone(v.Violations)
	for i := range v.Violations {
		at := &v.Violations[i].Span
		if *at == (Span{}) { // The whole chunk.
			*at = span
			continue
		}
		at.Start += span.Start
		at.End += span.Start
	}
	return v, nil
}
