package envd

import (
	"net/http"
	"strconv"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// Deadlines are the policy's limits on the life of a process; 0 for none.
type Deadlines struct {
	WallClock  time.Duration // of a call that names a timeout
	Background time.Duration // of a call without a timeout
	PTY        time.Duration // of a PTY
}

// HeaderChanges tells what SanitiseHeaders decided.
type HeaderChanges struct {
	// Timeout is how long the call may take; 0 for no limit. envd kills the process
	// then, but not the children it left.
	Timeout time.Duration
	// Clamped says that policy set or shortened it (see StreamLimits.WallClock).
	Clamped bool
	// ClientTimeout is what the client asked for; 0 for none.
	ClientTimeout time.Duration
}

// Bounds of Keepalive-Ping-Interval, in seconds: envd's ticker panics at 0 or
// less, and its own default is 90.
const (
	minKeepalive = 1
	maxKeepalive = 90
)

// maxTimeoutDigits is what the Connect protocol allows in Connect-Timeout-Ms.
const maxTimeoutDigits = 10

// unused are request headers that have no meaning with the canonical body, or
// that would change how envd reads it. Connect-Accept-Encoding goes because a
// compressed response stream could not be watched.
var unused = []string{
	headerContentEncoding, headerStreamEncoding, headerStreamAccept,
	"Content-Length", "Grpc-Encoding", "Grpc-Accept-Encoding", "Grpc-Timeout", "Te",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
}

// SanitiseHeaders makes the request headers of m safe and canonical for the
// body that Encode writes: timeout, keepalive, content type and encodings. It
// edits h in place.
func SanitiseHeaders(m *Message, h http.Header, d Deadlines) (HeaderChanges, *refusal.Refusal) {
	changes, r := deadline(m, h, d)
	if r != nil {
		return HeaderChanges{}, r
	}
	for _, name := range unused {
		h.Del(name)
	}
	h.Set(headerContentType, m.Encoding.ContentType())
	if h.Get(headerVersion) != "" {
		h.Set(headerVersion, "1")
	}
	setKeepalive(m, h)

	h.Del(headerTimeout)
	if changes.Timeout > 0 {
		h.Set(headerTimeout, strconv.FormatInt(max(changes.Timeout.Milliseconds(), 1), 10))
	}
	return changes, nil
}

// deadline decides how long a call may take. envd takes Connect-Timeout-Ms as
// the life of the process that Start makes; of other calls it only ends the
// call.
func deadline(m *Message, h http.Header, d Deadlines) (HeaderChanges, *refusal.Refusal) {
	var c HeaderChanges
	if v := h.Get(headerTimeout); v != "" {
		ms, err := strconv.ParseInt(v, 10, 64)
		if err != nil || len(v) > maxTimeoutDigits || ms < 0 {
			return c, invalid("Connect-Timeout-Ms is " + quote(v) + ", not a number of milliseconds, so nothing was run.")
		}
		if ms == 0 {
			// envd would answer this at once, and run the command with no limit.
			return c, refusal.New(refusal.CodeDeadline, "The timeout of this call had already passed, so nothing was run")
		}
		c.ClientTimeout = time.Duration(ms) * time.Millisecond
	}
	c.Timeout = c.ClientTimeout
	start, ok := m.Proto.(*processpb.StartRequest)
	if !ok {
		return c, nil
	}
	limit := d.WallClock
	switch {
	case start.GetPty() != nil:
		limit = d.PTY
	case c.ClientTimeout == 0:
		limit = d.Background
	}
	if limit > 0 && (c.Timeout == 0 || c.Timeout > limit) {
		c.Timeout, c.Clamped = limit, true
	}
	return c, nil
}

func setKeepalive(m *Message, h http.Header) {
	v := h.Get(headerKeepalive)
	h.Del(headerKeepalive)
	if m.Method.Kind != ServerStream {
		return
	}
	if seconds, err := strconv.Atoi(v); err == nil && seconds > 0 {
		h.Set(headerKeepalive, strconv.Itoa(min(max(seconds, minKeepalive), maxKeepalive)))
	}
}
