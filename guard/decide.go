package guard

import (
	"errors"
	"strings"
)

// Mode is the operator's word on what happens when guards fail or say no.
type Mode struct {
	// AllowOnError lets a call run when no verdict could be had (on_error
	// allow). Faults of configuration, such as a refused guard key, block even
	// then, and so do faults that the subject itself can bring about: see Fault.
	AllowOnError bool
	// Shadow decides and records, and never blocks.
	Shadow bool
}

// Ruling is what becomes of a call: the verdict, or the lack of one, seen
// through the operator's Mode.
type Ruling struct {
	// Allow says whether the call may go on.
	Allow bool
	// Verdict is the guard's; invalid if there was none.
	Verdict Verdict
	// FailOpen says that the call goes on although there is no verdict, because
	// the operator asked for that. It must be counted and logged.
	FailOpen bool
	// WouldBlock says that the call goes on only because of shadow mode.
	WouldBlock bool
	// Err says why there is no verdict, for the log; it is never shown to a client.
	Err error
	// Retryable says that the same call may get a verdict later.
	Retryable bool
	// Reason is one line for the agent whose call is blocked (or would be, or ran
	// unjudged); empty for a pass.
	Reason string
}

// Decide turns a guard's answer into what becomes of the call. It is the only
// function that may turn an error into "allow", and does so in two cases: in
// shadow mode, and under on_error allow for faults of the guard's service.
//
//	             enforce              on_error allow        shadow
//	pass         allow                allow                 allow
//	block        block                block                 allow, WouldBlock
//	service      block                allow, FailOpen       allow, WouldBlock (FailOpen under on_error allow)
//	other fault  block                block                 allow, WouldBlock
//
// A Block beside an error counts as a block: half an answer never opens.
func Decide(v Verdict, err error, m Mode) Ruling {
	r := Ruling{Verdict: v, Err: err}
	if err == nil && v.Decision != Pass && v.Decision != Block {
		r.Err = &Error{Guard: v.Guard, Fault: BadAnswer, Err: errors.New("no decision in the verdict")}
	}
	switch {
	case v.Decision == Block:
		r.Reason = blockReason(v)
	case r.Err == nil:
		r.Allow = true
		return r
	default:
		traits := faults[FaultOf(r.Err)]
		r.Reason = faultReason(r.Err, traits)
		r.Retryable = traits.retryable
		r.FailOpen = m.AllowOnError && traits.failOpen
	}
	r.WouldBlock = m.Shadow && !r.FailOpen
	r.Allow = r.FailOpen || r.WouldBlock
	return r
}

// blockReason is addressed to the agent that reads it: a bare "forbidden" makes
// an agent look for a way round.
func blockReason(v Verdict) string {
	why := strings.TrimSpace(v.Reasoning)
	if why == "" {
		types := make([]string, 0, len(v.Violations))
		for _, violation := range v.Violations {
			types = append(types, violation.Type)
		}
		why = strings.Join(types, ", ")
	}
	if why == "" {
		why = "the guard gave no reason"
	}
	if !strings.ContainsAny(why[len(why)-1:], ".!?") {
		why += "."
	}
	return "Blocked by policy: " + why + " Do not retry by another route."
}

// faultReason says what happened without the cause: that may name hosts.
func faultReason(err error, traits faultTraits) string {
	name := ""
	if e, ok := errors.AsType[*Error](err); ok {
		name = e.Guard
	}
	switch {
	case traits.what == "":
		traits.what = "failed."
	case FaultOf(err) == NoGuard:
		name = "" // Nothing of that name exists.
	}
	if name != "" {
		name += " "
	}
	return "The guard " + name + traits.what
}
