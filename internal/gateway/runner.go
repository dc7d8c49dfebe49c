package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// answerRun runs a program: it is judged while a sandbox is being made for it,
// brought there, and run within limits. When it returns, or panics, the sandbox is
// gone, or is being ended, whatever came of the program.
func (c *call) answerRun() *refusal.Refusal {
	body, ref := c.bodyBytes()
	if ref != nil {
		return ref
	}
	p, ref := decodeProgram(body, c.g.cfg.Run)
	if ref != nil {
		return ref
	}
	if p.clamped {
		c.changed("timeout", p.timeout.String())
	}
	c.program = p
	c.keepSecrets(append(redact.URLPasswords(p.code), redact.NewSecret(ownKey(c.r.Header))))

	if ref := p.checkReadable(); ref != nil {
		c.recordBlock(ref)
		c.answerRan(c.blocked(ref))
		return nil
	}

	ctx, over, ok := c.g.programs.begin(c.r.Context())
	if !ok {
		return refuseStopping()
	}
	defer over()
	asked := c.r
	defer func() { c.r = asked }() // whose context says whether the client is there
	c.r = asked.WithContext(ctx)

	box := c.newBox(true)
	defer func() { // on every path: a panic's, too
		if box.end(c.id) {
			c.evidence.destroyedBy = endedByRun
		}
	}()
	result, ref := c.judgeAndRun(&box)
	if ref != nil && isStopping(ctx) {
		return refuseStopping()
	}
	if ref != nil {
		return ref
	}
	// The client need not wait until E2B has confirmed the end; its next call on the
	// connection does.
	box.free()
	c.answerRan(result)
	return nil
}

// newBox is a sandbox for the program: one that is warm, if there is one and it may
// be, else one that is being made.
func (c *call) newBox(warm bool) *disposable {
	template := c.g.cfg.Run.template(c.program.language)
	if warm {
		if box := c.g.pool.take(c.client, template); box != nil {
			return box
		}
	}
	// The call may end before the sandbox is made, which must be seen to its end.
	return c.g.newDisposable(context.WithoutCancel(c.r.Context()), c.client, template, 0, c.trace())
}

// judgeAndRun judges the program and runs it.
func (c *call) judgeAndRun(box **disposable) (runAnswer, *refusal.Refusal) {
	if ref := c.review(c.program.subjects()); ref != nil {
		return c.answerBlock(ref)
	}
	if ref := c.mustRecord(audit.Decision{Decision: c.outcome.Decision}, c.rulings); ref != nil {
		return runAnswer{}, ref
	}
	c.evidence.decided = true
	c.log(levelOf(c.outcome.Decision), c.outcome.Decision, c.rulings)
	ref := c.bring(*box)
	if ref != nil && (*box).warm && c.r.Context().Err() == nil {
		// It may have ended while it waited: by somebody else's kill, or E2B's.
		(*box).end(c.id)
		*box = c.newBox(false)
		ref = c.bring(*box)
	}
	if ref != nil {
		return runAnswer{}, ref
	}
	return c.execute(*box)
}

// answerBlock is the answer to a program that the guard said no to, or could not
// say anything of.
func (c *call) answerBlock(ref *refusal.Refusal) (runAnswer, *refusal.Refusal) {
	for _, s := range c.rulings {
		if ref.Code == refusal.CodeGuardFailed && s.ruling.Verdict.Decision != guard.Block && !s.ruling.Allow {
			return runAnswer{}, refuseVerdictless(s.ruling)
		}
	}
	if ref.Code != refusal.CodePolicy {
		return runAnswer{}, ref
	}
	c.recordBlock(ref)
	return c.blocked(ref), nil
}

// blocked is the answer for a program that is not run.
func (c *call) blocked(ref *refusal.Refusal) runAnswer {
	return runAnswer{Status: runBlock, Code: string(ref.Code), Reasoning: c.g.shown(ref.Reason), Stdout: new(string), Stderr: new(string), RequestID: c.id}
}

// trace are the headers of the client's that its errands carry on.
func (c *call) trace() http.Header {
	h := http.Header{}
	for _, name := range []string{"Traceparent", "Tracestate"} {
		if v := c.r.Header.Get(name); v != "" {
			h.Set(name, v)
		}
	}
	return h
}

// bring writes the program and its files to the sandbox, once that is there.
func (c *call) bring(box *disposable) *refusal.Refusal {
	if ref := box.wait(c.r.Context()); ref != nil {
		return ref
	}
	c.outcome.Sandbox = box.id
	c.keepSecrets(c.secrets)
	body, contentType, err := files.Form(c.program.upload())
	if err != nil {
		return refuseRun("%s", err)
	}
	e := c.errandTo(box, "/files", body)
	e.header.Set("Content-Type", contentType)
	answer := newErrandAnswer(new(strings.Builder))
	ref := c.g.send(c.r.Context(), e, answer)
	if ref == nil && !answer.ok() {
		ref = refuseAnswered("the program could not be written to its sandbox", answer)
	}
	return ref
}

// errandTo is a call to the sandbox that this call's own record tells of.
func (c *call) errandTo(box *disposable, path string, body []byte) *errand {
	return &errand{
		client: c.client, id: c.id, limits: c.g.runLimits(), method: http.MethodPost, path: path, header: c.trace(),
		body: body, sandbox: box.id, token: box.token,
	}
}

// runSlack is how much longer than its program the call to start it may take.
const runSlack = 5 * time.Second

// execute starts the program and sees it to its end.
func (c *call) execute(box *disposable) (runAnswer, *refusal.Refusal) {
	body, err := envd.StartFrame(envd.Shell(c.program.language.line, runFolder))
	if err != nil {
		return runAnswer{}, refuseRun("%s", err)
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), c.program.timeout+runSlack)
	defer cancel()
	e := c.errandTo(box, envd.PathStart, body)
	for name, values := range envd.StartHeaders(c.program.timeout) {
		e.header[name] = values
	}
	out := c.newRunOutput()
	process := &envd.Run{Started: out.start, Output: func(to relay.Output, piece []byte) error {
		if o := c.observer(); o != nil {
			o.Output(to, piece)
		}
		return out.add(to, piece)
	}}
	answer := newErrandAnswer(process)
	ref := c.g.send(ctx, e, answer)
	c.answered = answer.status
	if ref == nil && !answer.ok() {
		ref = refuseAnswered("the program could not be started", answer)
	}
	if ref != nil && process.PID == 0 {
		return runAnswer{}, ref
	}
	return c.settleRun(process, e.cutBy(), out), nil
}

// whyRun is why the program was run.
func (c *call) whyRun() string {
	for _, s := range c.rulings {
		if s.ruling.FailOpen {
			return c.g.shown("Run unjudged, as on_error allow says. " + s.ruling.Reason)
		}
	}
	return c.reasoning()
}

// Codes of programs that ended otherwise than by themselves, besides those of
// refusals.
const (
	codeCPU    = "cpu_seconds"
	codeSignal = "signal"
)

// settleRun says what came of a program that was started.
func (c *call) settleRun(p *envd.Run, cut refusal.Code, out runOutput) runAnswer {
	a := runAnswer{Status: runPass, Reasoning: c.whyRun(), RequestID: c.id}
	out.end(&a)
	fail := func(code string, format string, args ...any) {
		a.Status, a.Code, a.Reasoning = runError, code, c.g.shown(fmt.Sprintf(format, args...))
	}
	switch cpu := c.g.cfg.Run.CPUSeconds; {
	case !p.Ended && isStopping(c.r.Context()):
		c.sawEnd(audit.EndedRefused, string(refusal.CodeShuttingDown))
		fail(string(refusal.CodeShuttingDown), "The gateway is stopping, and ended the program.")
	case cut != "":
		c.sawCut(cut)
		fail(string(cut), "%s", p.Message)
	case p.Code == "deadline_exceeded":
		c.sawCut(refusal.CodeWallClock)
		fail(string(refusal.CodeWallClock), "The program ran for %s, as long as it may, and was stopped. Do less in one run, or split the work.", c.program.timeout)
	case p.Code != "":
		c.sawEnd(audit.EndedError, p.Code+": "+p.Message)
		fail(string(refusal.CodeUpstream), "The program could not be run to its end: %s", p.Message)
	case !p.Ended:
		c.sawEnd(audit.EndedTruncated, "")
		fail(string(refusal.CodeUpstream), "E2B broke the program's output off, so it is not known how the program ended.")
	case !p.Exited && cpu > 0 && strings.Contains(strings.ToLower(p.Status), "cpu time"):
		c.sawEnd(audit.EndedComplete, p.Status)
		fail(codeCPU, "The program used %d seconds of CPU time, as much as it may, and was stopped. Do less in one run, or split the work.", cpu)
	case !p.Exited:
		c.sawEnd(audit.EndedComplete, p.Status)
		fail(codeSignal, "The program did not end by itself (%s). It may have used more memory than it may, or crashed.", p.Status)
	default:
		c.sawEnd(audit.EndedComplete, "")
		a.ExitCode = &p.ExitCode
	}
	c.evidence.exitCode = a.ExitCode
	return a
}
