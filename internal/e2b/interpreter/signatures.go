// Package interpreter reads and writes the code interpreter's HTTP API: code to
// run, contexts to make, and the NDJSON stream of an execution.
package interpreter

import (
	"io"
	"net/http"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// Execute is the body of POST /execute.
type Execute struct {
	Code      string
	ContextID string
	Language  string // as the server normalises it; "" if not named
	EnvVars   map[string]string
}

// DecodeExecute reads the body of POST /execute strictly.
func DecodeExecute(h http.Header, body []byte) (*Execute, *refusal.Refusal) {
	return nil, refusal.New(refusal.CodeInternalError, "not built")
}

// Subjects returns what a guard must see. contextLanguage is the language of
// the context the code runs in, "" if unknown; it is not asked for where the
// body names a language.
func (e *Execute) Subjects(contextLanguage string) ([]guard.Subject, *refusal.Refusal) {
	return nil, nil
}

// Encode writes the canonical body; keys not known here survive.
func (e *Execute) Encode() ([]byte, error) { return nil, nil }

// CreateContext is the body of POST /contexts.
type CreateContext struct {
	Language string // as the server normalises it: "python" if not named
	Cwd      string // "" if not named
}

// DecodeContext reads the body of POST /contexts strictly and refuses a cwd
// that would break out of the source text the server pastes it into.
func DecodeContext(h http.Header, body []byte) (*CreateContext, *refusal.Refusal) {
	return nil, refusal.New(refusal.CodeInternalError, "not built")
}

// Subjects returns what a guard must see.
func (c *CreateContext) Subjects() ([]guard.Subject, *refusal.Refusal) { return nil, nil }

// Encode writes the canonical body; keys not known here survive.
func (c *CreateContext) Encode() ([]byte, error) { return nil, nil }

// CanonicalHeaders makes the request headers fit a body of Encode.
func CanonicalHeaders(h http.Header) {}

// EventKind says what a StreamFilter saw.
type EventKind uint8

// The kinds.
const (
	EventError   EventKind = iota + 1 // an error event passed: Name
	EventEnd                          // end_of_execution passed
	EventLimit                        // a limit was passed; the stream was ended
	EventAborted                      // the upstream broke off: Err
)

// Event is one thing a StreamFilter saw.
type Event struct {
	Kind EventKind
	Name string
	Err  error
}

// StreamLimits bound an execution's stream; 0 for no limit.
type StreamLimits struct {
	OutputBytes int64 // text of stdout and stderr events
	ResultBytes int64 // payload of result events
}

// StreamFilter passes an execution's NDJSON through.
type StreamFilter struct{ io.ReadCloser }

// NewStreamFilter passes lines through byte for byte, whole and at once,
// watches them, and ends the stream where the limits say so. A stream that the
// upstream breaks off stays broken off. onEvent is called from Read.
func NewStreamFilter(body io.ReadCloser, lim StreamLimits, onEvent func(Event)) *StreamFilter {
	return &StreamFilter{body}
}

// Cut ends the stream with the refusal after the line in flight. It may be
// called from any goroutine.
func (f *StreamFilter) Cut(r *refusal.Refusal) {}

// OutputBytes is how many bytes of stdout and stderr text have passed.
func (f *StreamFilter) OutputBytes() int64 { return 0 }
