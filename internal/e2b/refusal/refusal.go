// Package refusal holds the gateway's "no" and the one place that knows how
// each plane's clients read an error.
package refusal

import (
	"net/http"
	"time"
)

// Code is the machine-readable reason, stable across releases.
type Code string

// The codes.
const (
	CodePolicy        Code = "policy"         // a guard or a policy said no
	CodeDenied        Code = "denied"         // the operation is not open
	CodeUnknown       Code = "unknown_route"  // no such operation in the table
	CodeUnroutable    Code = "unroutable"     // no sandbox could be told from host and headers
	CodeInvalid       Code = "invalid"        // the request could not be decoded
	CodeTooLarge      Code = "too_large"      // over a size limit
	CodeTimeout       Code = "read_timeout"   // the client's body did not arrive in time
	CodeDeadline      Code = "deadline"       // the client's own deadline had passed
	CodeUnsupported   Code = "unsupported"    // an encoding or protocol we do not speak
	CodeUnauthorized  Code = "unauthorized"   // no or wrong key or token
	CodeNotFound      Code = "not_found"      // no such sandbox, or none of this client's
	CodeNoProcess     Code = "no_process"     // no such process in the sandbox
	CodeGuardFailed   Code = "guard_failed"   // no verdict, so no run
	CodeAudit         Code = "audit_failed"   // no record, so no run
	CodeOverload      Code = "overload"       // our own limits; retry later
	CodeClientLimit   Code = "client_limit"   // the client has used up what it may
	CodeUpstream      Code = "upstream"       // E2B could not be reached or broke off
	CodeOutputLimit   Code = "output_limit"   // the process wrote more than it may
	CodeWallClock     Code = "wall_clock"     // the process ran longer than it may
	CodeCPUTime       Code = "cpu_seconds"    // the code used more CPU time than it may
	CodeUpstreamIdle  Code = "upstream_idle"  // the upstream went silent
	CodeShuttingDown  Code = "shutting_down"  // the gateway is stopping
	CodeInternalError Code = "internal_error" // a fault of ours; nothing was forwarded
)

// Refusal is the gateway's answer to a call it does not forward, or cuts off.
// It is the only way a step ends a call.
type Refusal struct {
	Code Code
	// Status is the HTTP status for planes that use one.
	Status int
	// Reason is one line addressed to the agent that will read it: what
	// happened, what it means, what to do.
	Reason string
	// RequestID is set by the gateway before rendering.
	RequestID string
	// Retryable says whether the same call may succeed later.
	Retryable bool
	// RetryAfter is sent in whole seconds where the plane knows it; 0 for none.
	RetryAfter time.Duration
	// Err is the cause for the log; it is never shown to the client.
	Err error
}

// Error makes a Refusal an error, so that a step can return it as one.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Reason }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// New returns a Refusal with the status that belongs to the code.
func New(code Code, reason string) *Refusal {
	return &Refusal{Code: code, Status: statuses[code], Reason: reason, Retryable: code == CodeOverload || code == CodeShuttingDown}
}

// statuses has one status per code. E2B's SDKs replace the message of 401, 404,
// 409, 502 and 503 on some planes, so a reason that must reach the user is 403.
var statuses = map[Code]int{
	CodePolicy:        http.StatusForbidden,
	CodeDenied:        http.StatusForbidden,
	CodeUnknown:       http.StatusForbidden,
	CodeUnroutable:    http.StatusBadRequest,
	CodeInvalid:       http.StatusBadRequest,
	CodeTooLarge:      http.StatusRequestEntityTooLarge,
	CodeTimeout:       http.StatusRequestTimeout,
	CodeDeadline:      http.StatusRequestTimeout,
	CodeUnsupported:   http.StatusUnsupportedMediaType,
	CodeUnauthorized:  http.StatusUnauthorized,
	CodeNotFound:      http.StatusNotFound,
	CodeNoProcess:     http.StatusNotFound,
	CodeGuardFailed:   http.StatusForbidden,
	CodeAudit:         http.StatusForbidden,
	CodeOverload:      http.StatusTooManyRequests,
	CodeClientLimit:   http.StatusTooManyRequests,
	CodeUpstream:      http.StatusBadGateway,
	CodeOutputLimit:   http.StatusForbidden,
	CodeWallClock:     http.StatusForbidden,
	CodeCPUTime:       http.StatusForbidden,
	CodeUpstreamIdle:  http.StatusGatewayTimeout,
	CodeShuttingDown:  http.StatusServiceUnavailable,
	CodeInternalError: http.StatusInternalServerError,
}
