package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// record writes the decision before the call is forwarded: one structured line.
// Operations that are always passed are noted at debug level only.
func (c *call) record() *refusal.Refusal {
	level := levelOf(c.outcome.Decision)
	if c.target.Row.Default == route.Allow || c.quiet {
		level = zapcore.DebugLevel
	}
	if c.audited() {
		if ref := c.mustRecord(audit.Decision{Decision: c.outcome.Decision}, c.rulings); ref != nil {
			return ref
		}
		c.evidence.decided = true
	}
	c.log(level, c.outcome.Decision, c.rulings)
	return nil
}

func levelOf(decision string) zapcore.Level {
	if decision == decisionFailOpen {
		return zapcore.WarnLevel
	}
	return zapcore.InfoLevel
}

// recordLate writes the decision about a file that was met while its upload was
// already streaming, and returns what ends the upload.
func (c *call) recordLate(s screened) *refusal.Refusal {
	decision := decisionPass
	switch {
	case !s.ruling.Allow:
		decision = decisionBlock
	case s.ruling.FailOpen:
		decision = decisionFailOpen
	}
	c.log(levelOf(decision), decision, []screened{s})
	if !s.ruling.Allow {
		d := audit.Decision{Decision: decision, Reason: c.texts().Quoting(s.ruling.Reason), Late: true}
		if err := c.recordDecision(context.WithoutCancel(c.r.Context()), d, []screened{s}); err != nil {
			c.unrecorded(err)
		}
		return refuseRuling(s.ruling)
	}
	return c.mustRecord(audit.Decision{Decision: decision, Late: true}, []screened{s})
}

// unrecorded tells of a refusal that is not in the audit log: nothing has run, so
// it stands all the same.
func (c *call) unrecorded(err error) {
	c.g.cfg.Audit.Log.Missed()
	c.g.log.Error("the audit record of a refusal could not be written", zap.String("request_id", c.id), zap.Error(err))
}

// recordRefusal writes the decision of a call that ends here.
func (c *call) recordRefusal(ref *refusal.Refusal) {
	fields := []zap.Field{zap.String("code", string(ref.Code)), zap.String("reason", c.g.shown(ref.Reason))}
	if ref.Err != nil {
		fields = append(fields, zap.String("cause", c.g.shown(ref.Err.Error())))
	}
	level := zapcore.InfoLevel
	if c.quiet {
		level = zapcore.DebugLevel
	}
	c.log(level, c.outcome.Decision, c.rulings, fields...)
	switch {
	case c.evidence.decided:
		c.sawRefusal(ref)
	case !c.quiet:
		d := audit.Decision{Decision: c.outcome.Decision, Code: string(ref.Code), Reason: c.texts().Quoting(ref.Reason)}
		if ref.Err != nil {
			d.Cause = c.texts().Quoting(ref.Err.Error())
		}
		if err := c.recordDecision(context.WithoutCancel(c.r.Context()), d, c.rulings); err != nil {
			c.unrecorded(err)
		}
	}
}

func (c *call) log(level zapcore.Level, decision string, rulings []screened, extra ...zap.Field) {
	entry := c.g.log.Check(level, "decision")
	if entry == nil {
		return
	}
	fields := append([]zap.Field{
		zap.String("request_id", c.id),
		zap.String("decision", decision),
		zap.String("plane", c.outcome.Plane),
		zap.String("operation", c.outcome.Operation),
		zap.String("sandbox", c.outcome.Sandbox),
		zap.String("client", c.client),
		zap.String("mode", c.mode()),
		zap.Duration("took", time.Since(c.started)),
	}, extra...)
	if len(rulings) > 0 {
		fields = append(fields, zap.Array("subjects", loggedRulings{c.g, rulings}))
	}
	if c.outcome.WouldBlock {
		fields = append(fields, zap.Bool("would_block", true))
	}
	if changed := c.changedFields(); changed != "" {
		fields = append(fields, zap.String("changed", changed))
	}
	entry.Write(fields...)
}

func (c *call) mode() string {
	if c.g.cfg.Mode.Shadow {
		return "shadow"
	}
	return "enforce"
}

// logCut notes that a limit of ours ended a running stream.
func (c *call) logCut(code refusal.Code) {
	c.sawCut(code)
	c.g.log.Info("stream ended by the gateway", zap.String("request_id", c.id), zap.String("sandbox", c.target.Sandbox),
		zap.String("operation", c.outcome.Operation), zap.String("code", string(code)))
}

// logAborted notes that the upstream broke off a running stream. A stream also
// ends this way when its client leaves, which is nobody's fault.
func (c *call) logAborted(err error) {
	if c.r.Context().Err() != nil {
		return
	}
	c.sawEnd(audit.EndedTruncated, err.Error())
	c.g.log.Warn("stream broken off by the upstream", zap.String("request_id", c.id), zap.String("sandbox", c.target.Sandbox),
		zap.String("operation", c.outcome.Operation), zap.Error(err))
}

// loggedRulings writes what was decided about each subject: never its text, only
// its size and digest.
type loggedRulings struct {
	g       *Gateway
	rulings []screened
}

func (l loggedRulings) MarshalLogArray(enc zapcore.ArrayEncoder) error {
	for _, s := range l.rulings {
		if err := enc.AppendObject(loggedRuling{l.g, s}); err != nil {
			return err
		}
	}
	return nil
}

type loggedRuling struct {
	g *Gateway
	s screened
}

func (l loggedRuling) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	subject, ruling := l.s.subject, l.s.ruling
	sum := sha256.Sum256([]byte(subject.Text))
	enc.AddString("kind", string(subject.Kind))
	if subject.Language != "" {
		enc.AddString("language", subject.Language)
	}
	if subject.Target != "" {
		enc.AddString("target", l.g.shown(subject.Target))
	}
	if subject.Labels[guard.LabelHidden] == "" { // a password could be found by its digest
		enc.AddInt("bytes", len(subject.Text))
		enc.AddString("sha256", hex.EncodeToString(sum[:]))
	}
	if unseen := subject.Labels[guard.LabelUnseen]; unseen != "" {
		enc.AddString(guard.LabelUnseen, l.g.shown(unseen))
	}
	if len(subject.Files) > 0 {
		if err := enc.AddArray("files", loggedFiles{l.g, subject.Files}); err != nil {
			return err
		}
	}
	ruling.Verdict.Reasoning = l.g.shown(ruling.Verdict.Reasoning)
	if ruling.Err != nil {
		ruling.Err = maskedError{ruling.Err, l.g}
	}
	return enc.AddObject("ruling", ruling)
}

// loggedFiles writes which files were judged with a subject.
type loggedFiles struct {
	g     *Gateway
	files []guard.File
}

func (l loggedFiles) MarshalLogArray(enc zapcore.ArrayEncoder) error {
	for _, f := range l.files {
		sum := sha256.Sum256([]byte(f.Text))
		enc.AppendString(l.g.shown(f.Path) + " sha256:" + hex.EncodeToString(sum[:]))
	}
	return nil
}

// maxShown bounds a text in a log line or an answer, whoever wrote it: a guard's
// reasoning, a path, a key of the client's.
const maxShown = 2 << 10

// shown is a text as it may be shown: without secrets, and not without end.
func (g *Gateway) shown(text string) string {
	text = g.masker.Mask(text)
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// maskedError is an error whose text may be shown in the log.
type maskedError struct {
	error
	g *Gateway
}

func (e maskedError) Error() string { return e.g.shown(e.error.Error()) }
func (e maskedError) Unwrap() error { return e.error }
