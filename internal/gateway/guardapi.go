package gateway

import (
	"cmp"
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
	ref = c.review(subjects)
	var blocked, unjudged *guard.Ruling
	for i := range c.rulings {
		r := &c.rulings[i].ruling
		switch d := r.Verdict.Decision; {
		case d == guard.Block && !r.Allow:
			blocked = cmp.Or(blocked, r)
		case d != guard.Block && d != guard.Pass:
			unjudged = cmp.Or(unjudged, r)
		}
	}
	answer := guardapi.Answer{ID: c.id}
	switch {
	case blocked != nil: // half an answer that says no is one
		c.recordBlock(refuseRuling(*blocked))
		answer.Block = true
		answer.Reasoning = c.g.shown(cmp.Or(blocked.Verdict.Reasoning, blocked.Reason))
		for _, s := range c.rulings {
			answer.Violations = append(answer.Violations, s.ruling.Verdict.Violations...)
		}
	case unjudged != nil:
		return refuseVerdictless(*unjudged)
	case ref != nil:
		return ref
	default:
		if ref := c.record(); ref != nil {
			return ref
		}
		answer.Reasoning = c.reasoning()
	}
	c.answerJSON(http.StatusOK, answer.Encode(request))
	return nil
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
