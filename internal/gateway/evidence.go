package gateway

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// Audit is where the records of calls go, and what is in them.
type Audit struct {
	// Log keeps the records; nil: decisions and outcomes are lines of the Logger,
	// without texts.
	Log *audit.Log
	// Code, HeadBytes and OutputBytes are how much of texts a record holds.
	Code        audit.Code
	HeadBytes   int
	OutputBytes int
	// Rules, if set, looks for secrets in texts once more.
	Rules audit.Masker
	// PassOnFailure lets a call go on whose record cannot be written.
	PassOnFailure bool
	// Policy is the digest of the configuration that decides.
	Policy string
}

// evidence is what is known of a forwarded call, for its outcome's record.
type evidence struct {
	// decided says that the decision's record is written.
	decided bool
	// unrecorded says that it could not be, and that the call goes on all the same.
	unrecorded bool

	mu       sync.Mutex // a limit may end the stream from a goroutine of its own
	ended    string
	exitCode *int32
	err      string
	killedBy string
	// destroyedBy is who ended the sandbox that was made for the call.
	destroyedBy string
	outputs     [relay.PTY + 1]*audit.Capture
}

// audited reports whether the call is one that is guarded. That a sandbox is
// destroyed is worth a record, too.
func (c *call) audited() bool {
	if c.errand != nil && c.errand.id != "" {
		return false // the call that it is a part of tells of it
	}
	return c.target.Row.Default != route.Allow || c.target.Row.Operation == route.SandboxKill
}

// recordDecision writes the decision where it outlives the process.
func (c *call) recordDecision(ctx context.Context, d audit.Decision, rulings []screened) error {
	log := c.g.cfg.Audit.Log
	if log == nil {
		return nil
	}
	d.Mode, d.WouldBlock, d.Policy = c.mode(), c.outcome.WouldBlock, c.g.cfg.Audit.Policy
	d.Took = time.Since(c.started).Microseconds()
	for _, s := range rulings {
		d.Subjects = append(d.Subjects, c.texts().Subject(s.subject, s.ruling))
	}
	for _, change := range c.changes {
		d.Changed = append(d.Changed, audit.Change{Field: change.Field, To: c.texts().Short(change.To)})
	}
	return log.Append(ctx, audit.Record{Kind: audit.KindDecision, ID: c.id, Call: c.auditCall(), Decision: &d})
}

// texts is how texts of this call get into records.
func (c *call) texts() audit.Texts {
	t := c.g.texts
	t.Masker = callMasker{c}
	return t
}

func (c *call) auditCall() *audit.Call {
	return &audit.Call{
		Trace: traceID(c.r.Header.Get("Traceparent")), Client: c.client, Sandbox: c.texts().Short(c.outcome.Sandbox), Volume: c.texts().Short(c.target.Params[route.ParamVolume]),
		Plane: c.outcome.Plane, Operation: c.outcome.Operation,
	}
}

// mustRecord is for a call that is about to be forwarded: without a record there
// is no call, unless the configuration says otherwise.
func (c *call) mustRecord(d audit.Decision, rulings []screened) *refusal.Refusal {
	err := c.recordDecision(c.r.Context(), d, rulings)
	switch {
	case err == nil:
		return nil
	case c.r.Context().Err() != nil:
		ref := refusal.New(refusal.CodeAudit, "the client left before its call was recorded, so it was not run.")
		ref.Err = err
		return ref
	case c.g.cfg.Audit.PassOnFailure:
		c.evidence.unrecorded = true
		c.g.cfg.Audit.Log.Missed()
		c.g.log.Error("a call goes on although its audit record could not be written",
			zap.String("request_id", c.id), zap.String("operation", c.outcome.Operation), zap.Error(err))
		return nil
	}
	ref := refusal.New(refusal.CodeAudit, "this gateway runs nothing that it cannot record, and its audit log cannot be written, so the call was not run. "+
		"The call itself is not at fault: try again later, and tell whoever runs the gateway.")
	ref.Err = err
	ref.Retryable = true
	return ref
}

// finish writes what became of a forwarded call.
func (c *call) finish() {
	if !c.evidence.decided || !c.forwarded && c.program == nil {
		return
	}
	o := c.settle()
	log := c.g.cfg.Audit.Log
	if log != nil {
		log.Note(audit.Record{Kind: audit.KindOutcome, ID: c.id, Call: c.auditCall(), Outcome: o})
		return
	}
	if entry := c.g.log.Check(zap.InfoLevel, "outcome"); entry != nil {
		fields := []zap.Field{
			zap.String("request_id", c.id), zap.String("operation", c.outcome.Operation), zap.String("sandbox", c.outcome.Sandbox),
			zap.String("client", c.client), zap.String("ended", o.Ended), zap.Int("status", o.Status), zap.Int64("wall_us", o.Wall),
		}
		if o.ExitCode != nil {
			fields = append(fields, zap.Int32("exit_code", *o.ExitCode))
		}
		if o.DestroyedBy != "" {
			fields = append(fields, zap.String("destroyed_by", o.DestroyedBy))
		}
		entry.Write(fields...)
	}
}

// settle is the outcome, from all that was seen.
func (c *call) settle() *audit.Outcome {
	e := &c.evidence
	e.mu.Lock()
	defer e.mu.Unlock()
	o := &audit.Outcome{
		Ended: e.ended, Status: c.answered, ExitCode: e.exitCode, Error: c.texts().Quoting(e.err), KilledBy: e.killedBy,
		Stdout: c.texts().Captured(e.outputs[relay.Stdout]), Stderr: c.texts().Captured(e.outputs[relay.Stderr]),
		PTY: c.texts().Captured(e.outputs[relay.PTY]), Wall: time.Since(c.started).Microseconds(),
	}
	switch {
	case o.Ended != "":
	case c.r.Context().Err() != nil:
		o.Ended = audit.EndedClient
	case c.answered >= http.StatusBadRequest:
		o.Ended = audit.EndedError
	default:
		o.Ended = audit.EndedComplete
	}
	switch c.target.Row.Operation {
	case route.ProgramRun:
		o.DestroyedBy = e.destroyedBy
	case route.ProcessConnect:
		o.OutputGap = true // what it wrote with nobody there is gone
	case route.ProcessStart:
		o.OutputGap = o.Ended == audit.EndedClient // it may run on
	case route.SandboxKill:
		switch {
		case c.answered < http.StatusMultipleChoices && c.answered > 0:
			o.DestroyedBy = "client"
		case c.answered == http.StatusNotFound:
			o.DestroyedBy = goneUpstream
		}
	}
	return o
}

// recordTeardown writes that a sandbox ended which no client's call ended, and
// who or what ended it. A fault says that it may still be there.
func (g *Gateway) recordTeardown(t teardown, fault error) {
	o := &audit.Outcome{Ended: audit.EndedComplete, DestroyedBy: t.cause}
	if fault != nil {
		o.Ended, o.Error = audit.EndedError, g.texts.Quoting(fault.Error())
	}
	if log := g.cfg.Audit.Log; log != nil {
		log.Note(audit.Record{Kind: audit.KindTeardown, ID: t.request, Call: &audit.Call{Sandbox: t.sandbox, Client: t.client}, Outcome: o})
	}
	g.log.Info("sandbox ended by the gateway", zap.String("request_id", t.request), zap.String("sandbox", t.sandbox),
		zap.String("client", t.client), zap.String("destroyed_by", t.cause), zap.Error(fault))
}

// sawEnd notes how the call ended; the first to say so is right.
func (c *call) sawEnd(how, why string) {
	e := &c.evidence
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = cmp.Or(e.ended, how)
	e.err = cmp.Or(e.err, why)
}

// sawLoss notes that the answer could not be passed on to its end: the client left,
// or else E2B broke it off.
func (c *call) sawLoss() {
	if c.r.Context().Err() == nil {
		c.sawEnd(audit.EndedTruncated, "")
	}
}

// sawProcess notes what a process's stream says of its end.
func (c *call) sawProcess(event envd.Event) {
	switch event.Kind {
	case envd.EventEnd:
		c.evidence.mu.Lock()
		c.evidence.exitCode = &event.ExitCode
		c.evidence.mu.Unlock()
	case envd.EventEndStream:
		if event.Code != "" {
			c.sawEnd(audit.EndedError, event.Code+": "+event.Message)
		}
	case envd.EventStart, envd.EventLimit, envd.EventWallClock, envd.EventAborted:
	}
}

// sawExecution notes the exception that ended a piece of code.
func (c *call) sawExecution(event interpreter.Event) {
	if event.Kind == interpreter.EventError {
		c.sawEnd("", event.Name+": "+event.Value)
	}
}

// endedBy is how a limit of ours that ends a stream is told.
var endedBy = map[refusal.Code]string{
	refusal.CodeOutputLimit:  audit.EndedLimit,
	refusal.CodeWallClock:    audit.EndedWallClock,
	refusal.CodeCPUTime:      audit.EndedCPU,
	refusal.CodeUpstreamIdle: audit.EndedIdle,
}

// sawCut notes that a limit of ours ended the call.
func (c *call) sawCut(code refusal.Code) {
	if c.errand != nil {
		c.errand.cut.CompareAndSwap(nil, code)
	}
	c.sawEnd(endedBy[code], "")
	if code != refusal.CodeUpstreamIdle {
		c.evidence.mu.Lock()
		c.evidence.killedBy = string(code)
		c.evidence.mu.Unlock()
	}
}

// sawRefusal notes that the call was refused after it was forwarded.
func (c *call) sawRefusal(ref *refusal.Refusal) {
	why := string(ref.Code)
	if ref.Err != nil {
		why += ": " + ref.Err.Error()
	}
	c.sawEnd(audit.EndedRefused, why)
}

// observer is who is shown the program's output; nil for nobody.
func (c *call) observer() relay.Observer {
	if c.g.cfg.Audit.Log == nil || c.errand != nil {
		return nil
	}
	return (*outputs)(c)
}

// outputs implements relay.Observer.
type outputs call

func (o *outputs) capture(to relay.Output) *audit.Capture {
	e := &o.evidence
	if e.outputs[to] == nil {
		e.outputs[to] = o.g.texts.NewCapture()
	}
	return e.outputs[to]
}

// Output implements relay.Observer.
func (o *outputs) Output(to relay.Output, piece []byte) {
	o.evidence.mu.Lock()
	defer o.evidence.mu.Unlock()
	_, _ = o.capture(to).Write(piece)
}

// Missed implements relay.Observer.
func (o *outputs) Missed(to relay.Output, n int64) {
	o.evidence.mu.Lock()
	defer o.evidence.mu.Unlock()
	o.capture(to).Miss(n)
}

// traceID is the trace id in a traceparent header; "" if it is none. Source: W3C
// Trace Context.
func traceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || len(parts[1]) != 32 || strings.Trim(parts[1], "0") == "" ||
		strings.Trim(parts[1], "0123456789abcdef") != "" {
		return ""
	}
	return parts[1]
}
