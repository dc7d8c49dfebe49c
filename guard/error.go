package guard

import (
	"context"
	"errors"
	"net"
)

// Fault says why there is no verdict. The zero Fault is not valid.
type Fault uint8

// The faults. Which of them Decide may turn into "allow" under on_error allow,
// and which are worth another try, is one table: see faults.
const (
	// Unreachable: no connection, or the guard's server is broken (5xx).
	Unreachable Fault = iota + 1
	// Timeout: our own deadline for the guard passed. The client's is Canceled.
	Timeout
	// Misconfigured: the guard refused us or was set up wrongly; it will not
	// answer until an operator acts.
	Misconfigured
	// BadAnswer: the guard answered something that is not a verdict.
	BadAnswer
	// Contradictory: the guard's answer held more than one verdict, and they
	// differ.
	Contradictory
	// Overloaded: the guard asked for fewer calls, or its circuit breaker is open.
	Overloaded
	// TooLarge: the subject is larger than what the guard may be given.
	TooLarge
	// NotAnalysable: the guard saw the subject and cannot tell what it does.
	NotAnalysable
	// Panicked: the guard's code failed.
	Panicked
	// NoGuard: no guard takes this kind of subject.
	NoGuard
	// Canceled: the client went away, or its own deadline passed, before a
	// verdict.
	Canceled
)

// faultTraits is what Decide needs to know of a Fault.
type faultTraits struct {
	name string
	// failOpen: under on_error allow the call runs.
	failOpen bool
	// retryable: the same call may get a verdict later.
	retryable bool
	// what completes the sentence "the guard NAME …", for the agent that reads it.
	what string
}

// faults is the one table of what a fault means.
//
// Only faults of the guard's service fail open. Those that an operator must mend
// do not, else a revoked key would quietly switch the guard off. Those that the
// subject itself brings about (its size, its shape, a crash, an answer that says
// both) do not, else whoever writes the subject could choose them.
var faults = map[Fault]faultTraits{
	Unreachable:   {"unreachable", true, true, "could not be reached. The same call may work later."},
	Timeout:       {"timeout", true, true, "did not answer in time. The same call may work later."},
	Overloaded:    {"overloaded", true, true, "is overloaded. The same call may work later."},
	BadAnswer:     {"bad_answer", true, true, "gave an answer that is not a verdict. The same call may work later."},
	Contradictory: {"contradictory", false, true, "gave an answer that says both pass and block."},
	Misconfigured: {"misconfigured", false, false, "is not set up correctly. Retrying does not help: the gateway's operator has to mend it."},
	TooLarge:      {"too_large", false, false, "may not be given a text as large as this one. Split it into smaller parts."},
	NotAnalysable: {"not_analysable", false, false, "cannot tell what this does. Write it in a simpler, more direct way."},
	Panicked:      {"panicked", false, false, "failed while reading this. The gateway's operator can see why in its log."},
	NoGuard:       {"no_guard", false, false, "does not exist: no guard is set up for this kind of action. The gateway's operator has to add one."},
	Canceled:      {"canceled", false, true, "was not waited for: the client went away, or its own deadline passed."},
}

// String returns the fault's name in logs and metrics, such as "bad_answer".
func (f Fault) String() string {
	if t, ok := faults[f]; ok {
		return t.name
	}
	return "invalid"
}

// Faults lists every Fault, in order.
func Faults() []Fault {
	all := make([]Fault, 0, len(faults))
	for f := Unreachable; f <= Canceled; f++ {
		all = append(all, f)
	}
	return all
}

// Error is a guard's failure to give a verdict. Guards should return it, so that
// Decide can tell what the failure means.
type Error struct {
	// Guard names the guard; the Chain fills it in where it is empty.
	Guard string
	Fault Fault
	// Err is the cause, for the operator's log: it may name hosts, and must not
	// hold the subject's text or a credential. It is never shown to a client.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Fault.String()
	if e.Guard != "" {
		s = "guard " + e.Guard + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultOf says what an error of a guard means. Errors of other types than *Error
// are told apart as far as the standard library allows; what remains is
// BadAnswer. FaultOf(nil) is the zero Fault.
func FaultOf(err error) Fault {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fault
	}
	if errors.Is(err, context.Canceled) {
		return Canceled
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Timeout
	}
	if ne, ok := errors.AsType[net.Error](err); ok {
		if ne.Timeout() {
			return Timeout
		}
		return Unreachable
	}
	return BadAnswer
}

// failsOpen says whether Decide allows a call with this error under on_error allow.
func failsOpen(err error) bool { return faults[FaultOf(err)].failOpen }

// failure gives any error of a guard the form that Decide reads. ctx is the
// client's: if it is done, the guard's complaint is only its echo, and the
// deadline that passed was not ours.
func failure(ctx context.Context, guard string, err error) *Error {
	if ctx.Err() != nil {
		return &Error{Guard: guard, Fault: Canceled, Err: context.Cause(ctx)}
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Guard != "" {
			return e
		}
		return &Error{Guard: guard, Fault: e.Fault, Err: e.Err}
	}
	return &Error{Guard: guard, Fault: FaultOf(err), Err: err}
}
