package envd

import (
	"io"
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// Codec is how messages are written.
type Codec uint8

// The codecs.
const (
	JSON Codec = iota + 1
	Proto
)

// Encoding is how one call's messages are written and framed.
type Encoding struct {
	Codec  Codec
	Stream bool // framed (Connect streaming); otherwise one bare message
	Gzip   bool // the request may be, or (unary) is, compressed
}

// ContentType is the canonical content type of the encoding.
func (e Encoding) ContentType() string { return "" }

// Classify tells how a request's messages are encoded, and refuses every
// encoding that envd refuses or that is not read here (gRPC, gRPC-Web).
func Classify(m Method, h http.Header) (Encoding, *refusal.Refusal) {
	return Encoding{}, refusal.New(refusal.CodeInternalError, "not built")
}

// Message is one decoded request. Proto may be edited before Encode; fields not
// known here, JSON keys included, survive.
type Message struct {
	Method   Method
	Encoding Encoding
	Proto    proto.Message
}

// Decode reads the whole request body (already size-capped by the caller) the
// way envd would. maxBytes bounds the message after decompression.
func Decode(m Method, enc Encoding, body io.Reader, maxBytes int64) (*Message, *refusal.Refusal) {
	return nil, refusal.New(refusal.CodeInternalError, "not built")
}

// Encode writes the message as one canonical, uncompressed body.
func (m *Message) Encode() ([]byte, error) { return nil, nil }

// Subjects returns what a guard must see of the message; h gives the user
// (Authorization). Refused without a guard: what no legitimate call sends.
func (m *Message) Subjects(h http.Header) ([]guard.Subject, *refusal.Refusal) { return nil, nil }

// Deadlines are the policy's limits on the life of a process.
type Deadlines struct {
	WallClock  time.Duration // of a call that names a timeout; 0 for none
	Background time.Duration // of a call without a timeout; 0 for none
	PTY        time.Duration // of a PTY; 0 for none
}

// HeaderChanges tells what SanitiseHeaders decided.
type HeaderChanges struct {
	// Timeout is the deadline envd was told; 0 for none.
	Timeout time.Duration
	// Clamped says that policy shortened it (or set it).
	Clamped bool
	// ClientTimeout is what the client asked for; 0 for none.
	ClientTimeout time.Duration
}

// SanitiseHeaders makes the request headers of m safe and canonical for the
// body that Encode writes: timeout, keepalive, content type and encodings. It
// edits h in place.
func SanitiseHeaders(m *Message, h http.Header, d Deadlines) (HeaderChanges, *refusal.Refusal) {
	return HeaderChanges{}, nil
}

// WrapOptions are the limits put on one process; 0 for none.
type WrapOptions struct {
	CPUSeconds  int64
	MemoryBytes int64
}

// Wrap puts the limits around the process of a start request and reports
// whether it changed anything.
func Wrap(req *processpb.StartRequest, o WrapOptions) bool { return false }

// Unwrap takes off what Wrap put on and reports whether it did.
func Unwrap(c *processpb.ProcessConfig) bool { return false }

// UnwrapList rewrites the body of a List response (JSON or proto, gzip or not,
// as its headers say) so that it shows the commands clients started. It edits
// the headers to match and never returns more than maxBytes.
func UnwrapList(h http.Header, body io.Reader, maxBytes int64) ([]byte, error) { return nil, nil }

// EventKind says what a StreamFilter saw.
type EventKind uint8

// The kinds.
const (
	EventStart     EventKind = iota + 1 // the process started: PID
	EventEnd                            // the process ended: ExitCode, Status
	EventEndStream                      // the end-of-stream frame passed: Code, Message if it was an error
	EventLimit                          // the output limit was passed; the stream was ended
	EventAborted                        // the upstream broke off: Err
)

// Event is one thing a StreamFilter saw.
type Event struct {
	Kind     EventKind
	PID      uint32
	ExitCode int32
	Status   string
	Code     string
	Message  string
	Err      error
}

// StreamLimits bound a response stream.
type StreamLimits struct {
	// OutputBytes is how many bytes of stdout, stderr and PTY output may pass; 0
	// for no limit.
	OutputBytes int64
}

// StreamFilter passes a process stream (Start, Connect) through.
type StreamFilter struct{ io.ReadCloser }

// NewStreamFilter passes upstream's frames through byte for byte as they
// arrive, watches them, and ends the stream where the limits say so. A stream
// that upstream breaks off ends in an error, never in a clean EOF. onEvent is
// called from Read.
func NewStreamFilter(body io.ReadCloser, enc Encoding, lim StreamLimits, onEvent func(Event)) *StreamFilter {
	return &StreamFilter{body}
}

// Cut ends the stream with the refusal after the frame in flight; the upstream
// body is closed. It may be called from any goroutine.
func (f *StreamFilter) Cut(r *refusal.Refusal) {}

// OutputBytes is how many bytes of output have passed.
func (f *StreamFilter) OutputBytes() int64 { return 0 }
