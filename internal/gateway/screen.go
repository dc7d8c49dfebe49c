package gateway

import (
	"context"
	"fmt"
	"sync"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// The values of Outcome.Decision.
const (
	decisionPass     = "pass"      // every subject passed
	decisionFailOpen = "fail_open" // a subject was not judged for want of an answer, and passed all the same: on_error allow
	decisionAllow    = "allow"     // there was nothing to judge
	decisionBlock    = "block"     // judged and found wanting, or not judged for want of an answer
	decisionRefuse   = "refuse"    // not understood, not open, or not possible
)

// screen asks the guard about every subject of the message. Uploads are screened
// part by part while they are read: see upload.go.
func (c *call) screen() *refusal.Refusal {
	if c.op.subjects == nil {
		return nil
	}
	subjects, ref := c.op.subjects(c)
	if ref != nil {
		return ref
	}
	return c.review(subjects)
}

// maxSubjects bounds what one call can make the guards do: every environment
// variable that is code is a subject of its own.
const maxSubjects = 256

// review asks the guard about the subjects and returns the first refusal, in
// their order. They are asked about side by side: with a remote guard, a call
// with ten of them must not take ten times as long.
func (c *call) review(subjects []guard.Subject) *refusal.Refusal {
	switch {
	case len(subjects) == 0, c.errand != nil: // what an errand brings was judged before
		return nil
	case len(subjects) > maxSubjects:
		return refusal.New(refusal.CodeInvalid, fmt.Sprintf("this call holds %d separate pieces of code to judge, more than the %d that one call may, so it was not run. Send less at once, or put it into a file.", len(subjects), maxSubjects))
	}
	if ref := c.spendGuardCalls(len(subjects)); ref != nil {
		return ref
	}
	results := make([]screened, len(subjects))
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	if len(subjects) == 1 {
		results[0] = c.ask(ctx, subjects[0])
	} else {
		var wg sync.WaitGroup
		free := make(chan struct{}, 8)
		for i, s := range subjects {
			free <- struct{}{}
			wg.Go(func() {
				defer func() { <-free }()
				results[i] = c.ask(ctx, s)
			})
		}
		wg.Wait()
	}
	c.rulings = append(c.rulings, results...)
	if c.outcome.Decision != decisionFailOpen {
		c.outcome.Decision = decisionPass
	}
	for _, res := range results {
		if !res.ruling.Allow {
			return refuseRuling(res.ruling)
		}
		c.outcome.WouldBlock = c.outcome.WouldBlock || res.ruling.WouldBlock
		if res.ruling.FailOpen {
			c.outcome.Decision = decisionFailOpen
		}
	}
	return nil
}

func (c *call) ask(ctx context.Context, s guard.Subject) (res screened) {
	s.Labels = c.labels(s.Labels)
	if s.Kind == guard.KindBuild || c.files != nil {
		delete(s.Labels, guard.LabelNetwork) // a build has a network of its own
	}
	res.subject = s
	defer func() { // it may run on a goroutine of its own, where nobody else recovers
		if p := recover(); p != nil {
			err := &guard.Error{Fault: guard.Panicked, Err: fmt.Errorf("panic of type %T", p)} // its value may quote the subject
			res.ruling = guard.Decide(guard.Verdict{}, err, c.g.cfg.Mode)
		}
	}()
	s = c.withFiles(ctx, s)
	res.subject = s
	verdict, err := c.g.cfg.Guard.Review(ctx, s)
	res.ruling = guard.Decide(verdict, err, c.g.cfg.Mode)
	return res
}

// labels adds what the gateway knows of the call to what the message said of the
// subject.
func (c *call) labels(own map[string]string) map[string]string {
	all := map[string]string{
		guard.LabelClient:    c.client,
		guard.LabelOperation: string(c.target.Row.Operation),
		guard.LabelRequest:   c.id,
	}
	if c.target.Sandbox != "" {
		all[guard.LabelSandbox] = c.target.Sandbox
	}
	if user, _, ok := c.r.BasicAuth(); ok && c.target.Sandbox != "" {
		all[guard.LabelUser] = user
	}
	if c.g.cfg.Policy.Network.Blocked() {
		all[guard.LabelNetwork] = "blocked"
	}
	for k, v := range own {
		all[k] = v
	}
	return all
}

// refuseRuling says no in the guard's own words, or says that there was no
// answer.
func refuseRuling(r guard.Ruling) *refusal.Refusal {
	if r.Verdict.Decision != guard.Block {
		ref := refusal.New(refusal.CodeGuardFailed, "Blocked: no verdict could be had, and without one nothing runs. "+r.Reason)
		ref.Err = r.Err
		ref.Retryable = r.Retryable
		return ref
	}
	return refusal.New(refusal.CodePolicy, r.Reason)
}
