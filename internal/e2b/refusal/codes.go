package refusal

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// rendering is how a code is told on the planes that have codes of their own.
type rendering struct {
	connect string // Connect's code word
	grpc    int    // the same code's number
	http    int    // the status of a Connect unary answer
	// rest and files override the code's Status where a client would hide the
	// text of that status; 0 keeps it.
	rest, files int
	// retryAfter is sent where the refusal names none.
	retryAfter time.Duration
}

// Connect's codes that are used here. The clients append advice of their own to
// resource_exhausted ("rate limit"), unavailable ("sandbox timeout"), canceled
// and deadline_exceeded ("raise timeoutMs"); aborted keeps a text as it is.
var (
	permissionDenied  = rendering{connect: "permission_denied", grpc: 7, http: http.StatusForbidden}
	invalidArgument   = rendering{connect: "invalid_argument", grpc: 3, http: http.StatusBadRequest}
	unimplemented     = rendering{connect: "unimplemented", grpc: 12, http: http.StatusUnsupportedMediaType}
	unauthenticated   = rendering{connect: "unauthenticated", grpc: 16, http: http.StatusUnauthorized}
	resourceExhausted = rendering{connect: "resource_exhausted", grpc: 8, http: http.StatusTooManyRequests}
	notFound          = rendering{connect: "not_found", grpc: 5, http: http.StatusNotFound}
	aborted           = rendering{connect: "aborted", grpc: 10, http: http.StatusConflict}
	unavailable       = rendering{connect: "unavailable", grpc: 14, http: http.StatusServiceUnavailable}
	deadlineExceeded  = rendering{connect: "deadline_exceeded", grpc: 4, http: http.StatusGatewayTimeout}
	internal          = rendering{connect: "internal", grpc: 13, http: http.StatusInternalServerError}
)

// codes is the one table of how each Code is rendered.
var codes = map[Code]rendering{
	CodePolicy:        permissionDenied,
	CodeDenied:        permissionDenied,
	CodeUnknown:       permissionDenied,
	CodeGuardFailed:   permissionDenied,
	CodeAudit:         permissionDenied,
	CodeUnroutable:    invalidArgument,
	CodeInvalid:       invalidArgument,
	CodeTooLarge:      resourceExhausted.statuses(0, 0, http.StatusRequestEntityTooLarge),
	CodeTimeout:       aborted,
	CodeDeadline:      deadlineExceeded,
	CodeUnsupported:   unimplemented,
	CodeUnauthorized:  unauthenticated,
	CodeNotFound:      unavailable.statuses(0, 0, http.StatusBadGateway), // as E2B's edge tells of a sandbox that is gone
	CodeNoProcess:     notFound,
	CodeOverload:      resourceExhausted.after(time.Second),
	CodeClientLimit:   resourceExhausted,
	CodeUpstream:      internal.statuses(0, http.StatusInternalServerError, 0),
	CodeUpstreamIdle:  unavailable.statuses(0, http.StatusInternalServerError, 0),
	CodeOutputLimit:   aborted.statuses(0, 0, http.StatusForbidden),
	CodeWallClock:     aborted.statuses(0, 0, http.StatusForbidden),
	CodeCPUTime:       aborted.statuses(0, 0, http.StatusForbidden),
	CodeShuttingDown:  aborted.statuses(http.StatusTooManyRequests, http.StatusTooManyRequests, 0).after(time.Second),
	CodeInternalError: internal,
}

func (d rendering) statuses(rest, files, unary int) rendering {
	d.rest, d.files = rest, files
	if unary != 0 {
		d.http = unary
	}
	return d
}

func (d rendering) after(t time.Duration) rendering {
	d.retryAfter = t
	return d
}

// ConnectCode is the Connect code word the refusal is sent with.
func ConnectCode(r *Refusal) string { return codes[r.code()].connect }

// code is the refusal's code; one that is not in the table is our own fault.
func (r *Refusal) code() Code {
	if _, ok := codes[r.Code]; ok {
		return r.Code
	}
	return CodeInternalError
}

// name is what the code interpreter's clients show as the exception's name.
func (r *Refusal) name() string {
	switch r.code() {
	case CodePolicy, CodeDenied, CodeUnknown, CodeGuardFailed, CodeAudit:
		return "PolicyViolation"
	case CodeOverload, CodeShuttingDown:
		return "GatewayBusy"
	case CodeClientLimit:
		return "RateLimitExceeded"
	case CodeOutputLimit:
		return "OutputLimitExceeded"
	case CodeWallClock, CodeDeadline, CodeCPUTime:
		return "TimeLimitExceeded"
	default:
		return "GatewayError"
	}
}

func restStatus(r *Refusal) int {
	if s := codes[r.code()].rest; s != 0 {
		return s
	}
	return status(r)
}

func filesStatus(r *Refusal) int {
	if s := codes[r.code()].files; s != 0 {
		return s
	}
	return status(r)
}

// status is the refusal's own status, or its code's: a refusal never goes out
// as a success.
func status(r *Refusal) int {
	if r.Status >= http.StatusBadRequest && r.Status <= 599 {
		return r.Status
	}
	return statuses[r.code()]
}

// Codes returns every code, sorted.
func Codes() []Code { return slices.Sorted(maps.Keys(codes)) }
