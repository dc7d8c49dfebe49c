// Package relay passes a response stream on unit by unit (frames, lines): what is
// complete at once, what is not yet complete never, and a refusal in the place of
// the rest. What a unit is, and whether it may pass, is the caller's to say.
package relay

import (
	"io"
	"sync"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// Units is what a Stream must know of the units it passes on.
type Units interface {
	// Scan looks at what is held and reports how many bytes at its start may pass:
	// whole units, or a piece of one that is too large to be held; as they are, or,
	// if instead is not nil, in its form, which must stay as it is until the next
	// call. What it does not let through is shown again with what follows, so that a
	// unit is bounded only by what Scan waits for. It may call End; what it reports
	// then still passes.
	Scan(held []byte) (pass int, instead []byte)
	// Finish is told that the upstream ended, with the held bytes that Scan let
	// pass no more. It returns how many of them pass after all, in which form, and
	// what Read returns when those are gone.
	Finish(held []byte, err error) (pass int, instead []byte, end error)
	// Ending returns what tells the client of a refusal in the place of the rest,
	// and what Read returns after it.
	Ending(r *refusal.Refusal) (tail []byte, end error)
}

// Stream is an io.ReadCloser that passes an upstream body on.
type Stream struct {
	src   io.ReadCloser
	units Units

	// buf[r:ready] may be handed out; buf[ready:w] is a unit not yet complete.
	buf         []byte
	r, ready, w int
	edited      []byte // what follows buf[r:ready]
	more        bool   // buf[ready:w] is to be looked at before more is read
	tail        []byte // what follows instead of upstream's bytes
	end         error  // how the upstream ended
	err         error  // what Read returns when there is nothing left

	mu  sync.Mutex
	cut *refusal.Refusal
}

// minBuffer is what a Stream starts with; most units are far smaller.
const minBuffer = 4 << 10

// NewStream returns a Stream of body's units.
func NewStream(body io.ReadCloser, units Units) *Stream {
	return &Stream{src: body, units: units, buf: make([]byte, minBuffer)}
}

// Cut ends the stream with the refusal: what was complete is handed out first,
// the unit in flight is dropped, the upstream body is closed. The first call
// counts; it may come from any goroutine.
func (s *Stream) Cut(r *refusal.Refusal) {
	s.mu.Lock()
	if s.cut == nil {
		s.cut = r
	}
	s.mu.Unlock()
	_ = s.src.Close() // Wakes a Read that waits for the upstream.
}

// Pending is the refusal that Cut asked for and that the client has not been told
// yet; nil if there is none.
func (s *Stream) Pending() *refusal.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// End ends the stream with a refusal, as Cut does, from within Scan or Finish.
func (s *Stream) End(r *refusal.Refusal) {
	s.w, s.more = s.ready, false
	s.tail, s.err = s.units.Ending(r)
	_ = s.src.Close()
}

// Size is how many bytes the stream's buffer takes.
func (s *Stream) Size() int { return len(s.buf) }

// Close closes the upstream body.
func (s *Stream) Close() error { return s.src.Close() }

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case s.ready > s.r:
			n := copy(p, s.buf[s.r:s.ready])
			s.r += n
			return n, nil
		case len(s.edited) > 0:
			n := copy(p, s.edited)
			s.edited = s.edited[n:]
			return n, nil
		case len(s.tail) > 0:
			n := copy(p, s.tail)
			s.tail = s.tail[n:]
			return n, nil
		case s.err != nil:
			return 0, s.err
		case s.more:
			s.scan()
		case s.end != nil:
			s.finish()
		default:
			s.fill()
		}
	}
}

// fill reads once from the upstream.
func (s *Stream) fill() {
	if r := s.Pending(); r != nil {
		s.End(r)
		return
	}
	if s.r > 0 {
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r, s.ready = 0, 0
	}
	if s.w == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	var n int
	n, s.end = s.src.Read(s.buf[s.w:])
	s.w += n
	s.more = n > 0
}

// scan lets through what is complete.
func (s *Stream) scan() {
	pass, instead := s.units.Scan(s.buf[s.ready:s.w])
	s.more = pass > 0 && s.err == nil // it may have stopped before a unit that takes another form
	s.pass(pass, instead)
}

func (s *Stream) finish() {
	pass, instead, end := s.units.Finish(s.buf[s.ready:s.w], s.end)
	s.pass(pass, instead)
	if s.err == nil {
		s.w, s.err = s.ready, end
	}
}

func (s *Stream) pass(n int, instead []byte) {
	s.ready += n
	if instead != nil {
		s.r, s.edited = s.ready, instead
	}
}
