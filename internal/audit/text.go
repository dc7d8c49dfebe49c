package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
)

// Masker hides secrets in a text.
type Masker interface {
	Mask(text string) string
}

// Code says how much of what was judged, and of what it wrote, a record holds.
type Code string

// The values of Code.
const (
	CodeFull   Code = "full"
	CodeHead   Code = "head"
	CodeDigest Code = "digest"
)

// Texts is how texts get into records.
type Texts struct {
	Code Code
	// Head is how many bytes of a text CodeHead keeps.
	Head int
	// Output is how many bytes of the beginning and of the end of an output are
	// kept, each; none with CodeDigest.
	Output int
	Masker Masker
	// Rules, if set, looks over texts once more, with rules too slow for anything
	// but evidence.
	Rules Masker
}

// ruledBytes is how much of a text the rules look at: a text made to be slow for
// them takes about a millisecond per KiB.
const ruledBytes = 32 << 10

// mask hides secrets in a text that somebody wrote.
func (t Texts) mask(s string) string {
	s = t.Masker.Mask(s)
	if t.Rules == nil {
		return s
	}
	n := min(len(s), ruledBytes)
	return t.Rules.Mask(s[:n]) + s[n:]
}

// The defaults of Texts.
const (
	DefaultHead   = 4 << 10
	DefaultOutput = 2 << 10
)

// slack is how much more than is shown is looked at for secrets, so that one
// that is cut at the border is still found.
const slack = 4 << 10

// Subject is a guard's subject and what was decided about it, as a record holds
// it.
func (t Texts) Subject(s guard.Subject, r guard.Ruling) Subject {
	sum := sha256.Sum256([]byte(s.Text))
	out := Subject{
		Kind: string(s.Kind), Language: s.Language, Target: t.short(s.Target), Labels: map[string]string{},
		Bytes: len(s.Text), SHA256: hex.EncodeToString(sum[:]),
		Allow: r.Allow, FailOpen: r.FailOpen, WouldBlock: r.WouldBlock,
	}
	for _, key := range []string{guard.LabelAction, guard.LabelCwd, guard.LabelUser, guard.LabelEnvNames, guard.LabelNetwork, guard.LabelHidden} {
		if v := s.Labels[key]; v != "" {
			out.Labels[key] = t.short(v)
		}
	}
	code := t.Code
	if s.Labels[guard.LabelHidden] != "" { // a password could be found by its digest
		out.Bytes, out.SHA256, code = 0, "", CodeDigest
	}
	switch code {
	case CodeFull:
		out.Text = t.mask(s.Text)
		out.Masked = out.Text != s.Text
	case CodeHead:
		seen := s.Text[:min(len(s.Text), t.Head+slack)]
		masked := t.mask(seen)
		out.Masked = masked != seen
		out.Text = head(masked, t.Head)
		out.Cut = len(seen) < len(s.Text) || len(out.Text) < len(masked)
	case CodeDigest:
	}
	out.Text = strings.ToValidUTF8(out.Text, "\uFFFD")
	if r.Err != nil {
		out.Fault, out.Error = guard.FaultOf(r.Err).String(), t.Quoting(r.Err.Error())
	}
	if v := r.Verdict; v.Decision == guard.Pass || v.Decision == guard.Block {
		reasoning := t.short(v.Reasoning)
		if v.Decision == guard.Block {
			reasoning = t.Quoting(v.Reasoning)
		}
		out.Verdict = &Verdict{
			Decision: v.Decision.String(), Reasoning: reasoning, Violations: v.Violations,
			Guard: v.Guard, Cached: v.Cached, Took: v.Took.Microseconds(),
		}
	}
	return out
}

// short is a text that is short by nature, as a record holds it.
func (t Texts) short(s string) string {
	const limit = 2 << 10
	return strings.ToValidUTF8(head(t.Masker.Mask(s[:min(len(s), limit+slack)]), limit), "\uFFFD")
}

// Short is an id or a value as a record holds it.
func (t Texts) Short(s string) string { return t.short(s) }

// Quoting is a reason or an error, which may quote what was judged, as a record
// holds it.
func (t Texts) Quoting(s string) string {
	if s == "" {
		return ""
	}
	return t.short(t.mask(s[:min(len(s), 2*slack)]))
}

// head is the first n bytes of a text, without half a character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// tail is the last n bytes of a text, without half a character.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}

// Capture collects one output of a program: its beginning, its end, its length
// and its digest. The zero Capture keeps no text; see NewCapture.
type Capture struct {
	keep   int
	head   []byte
	tail   []byte // a ring once it is full; at is its oldest byte
	at     int
	bytes  int64
	missed int64
	sum    hash.Hash
}

// NewCapture returns a Capture for texts kept as t says.
func (t Texts) NewCapture() *Capture {
	c := &Capture{sum: sha256.New()}
	if t.Code != CodeDigest {
		c.keep = t.Output + slack
	}
	return c
}

// Write adds a piece; it never fails.
func (c *Capture) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	c.sum.Write(p)
	n := len(p)
	if free := c.keep - len(c.head); free > 0 {
		k := min(free, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > c.keep {
		p = p[len(p)-c.keep:]
	}
	if free := c.keep - len(c.tail); free > 0 {
		k := min(free, len(p))
		c.tail = append(c.tail, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(c.tail[c.at:], p)
		c.at = (c.at + k) % len(c.tail)
		p = p[k:]
	}
	return n, nil
}

// Miss counts bytes that passed unseen.
func (c *Capture) Miss(n int64) {
	c.bytes += n
	c.missed += n
}

// Captured is what was captured, as a record holds it; nil if that is nothing.
func (t Texts) Captured(c *Capture) *Output {
	if c == nil || c.bytes == 0 {
		return nil
	}
	out := &Output{Bytes: c.bytes, Missed: c.missed, SHA256: hex.EncodeToString(c.sum.Sum(nil))}
	if t.Code == CodeDigest || t.Output == 0 {
		out.Cut = true
		return out
	}
	rest := string(c.tail[c.at:]) + string(c.tail[:c.at])
	if all := int64(len(c.head) + len(rest)); all+c.missed == c.bytes { // nothing between the two was dropped
		text := t.mask(string(c.head) + rest)
		if len(text) <= 2*t.Output {
			out.Head = strings.ToValidUTF8(text, "\uFFFD")
			return out
		}
		out.Head, out.Tail = head(text, t.Output), tail(text, t.Output)
	} else {
		out.Head, out.Tail = head(t.mask(string(c.head)), t.Output), tail(t.mask(rest), t.Output)
	}
	out.Cut = true
	out.Head, out.Tail = strings.ToValidUTF8(out.Head, "\uFFFD"), strings.ToValidUTF8(out.Tail, "\uFFFD")
	return out
}
