package gateway

import (
	"net/http"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/guardapi"
)

// answerGuard answers a client that asks for a verdict and runs nothing here. A
// block is an answer like a pass; where there is no verdict, whatever the mode
// says of running without one, the answer is an error.
func (c *call) answerGuard() *refusal.Refusal {
	b, ref := c.bodyBytes()
	if ref != nil {
		return ref
	}
	request, ref := guardapi.Decode(c.r.Header, b)
	if ref != nil {
		return ref
	}
	subjects, ref := guardapi.Subjects(request.Text)
	if ref != nil {
		return ref
	}
	block := c.review(subjects)
	for _, s := range c.rulings {
		if d := s.ruling.Verdict.Decision; d != guard.Block && d != guard.Pass {
			return refuseVerdictless(s.ruling)
		}
	}
	answer := guardapi.Answer{ID: c.id}
	switch {
	case block == nil:
		if ref := c.record(); ref != nil {
			return ref
		}
		answer.Reasoning = c.reasoning()
	case block.Code != refusal.CodePolicy:
		return block
	default:
		c.recordBlock(block)
		answer.Block, answer.Reasoning = true, c.g.shown(block.Reason)
		for _, s := range c.rulings {
			answer.Violations = append(answer.Violations, s.ruling.Verdict.Violations...)
		}
	}
	c.answerJSON(http.StatusOK, answer.Encode(request))
	return nil
}

// reasoning is why the text passed.
func (c *call) reasoning() string {
	for _, s := range c.rulings {
		if s.ruling.WouldBlock {
			return c.g.shown("Passed in shadow mode. " + s.ruling.Reason)
		}
	}
	return c.g.shown(c.rulings[0].ruling.Verdict.Reasoning)
}

// verdictless are the statuses of an answer without a verdict, by its cause. What
// the text itself brings about, and what an operator must mend, is no fault of the
// service that a client may wait out.
var verdictless = map[guard.Fault]int{
	guard.Unreachable:   http.StatusServiceUnavailable,
	guard.Timeout:       http.StatusServiceUnavailable,
	guard.Overloaded:    http.StatusServiceUnavailable,
	guard.BadAnswer:     http.StatusServiceUnavailable,
	guard.Contradictory: http.StatusUnprocessableEntity,
	guard.NotAnalysable: http.StatusUnprocessableEntity,
	guard.Panicked:      http.StatusUnprocessableEntity,
	guard.TooLarge:      http.StatusRequestEntityTooLarge,
	guard.Misconfigured: http.StatusForbidden,
	guard.NoGuard:       http.StatusForbidden,
	guard.Canceled:      http.StatusServiceUnavailable,
}

func refuseVerdictless(r guard.Ruling) *refusal.Refusal {
	ref := refusal.New(refusal.CodeGuardFailed, "No verdict could be had, so this is neither pass nor block: do not run it. "+r.Reason)
	ref.Err, ref.Retryable, ref.Status = r.Err, r.Retryable, verdictless[guard.FaultOf(r.Err)]
	return ref
}

// recordBlock writes a verdict that is the call's answer.
func (c *call) recordBlock(ref *refusal.Refusal) {
	c.outcome.Code, c.outcome.Decision = string(ref.Code), decisionBlock
	c.recordRefusal(ref)
}
