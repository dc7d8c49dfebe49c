package envd

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

// EventKind says what a StreamFilter saw.
type EventKind uint8

// The kinds.
const (
	EventStart     EventKind = iota + 1 // the process started: PID
	EventEnd                            // the process ended: ExitCode, Status
	EventEndStream                      // the end-of-stream frame passed: Code, Message if it was an error
	EventLimit                          // the output limit was passed and the stream ended: kill the process
	EventWallClock                      // the wall clock ended the process and the stream
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
	// WallClock is the deadline that policy set (HeaderChanges.Clamped): the error
	// that says it has passed is put in our words, for the clients tell the user to
	// raise a timeout that was not theirs. 0 if the deadline was the client's.
	WallClock time.Duration
	// RequestID is put in the refusal that ends the stream.
	RequestID string
}

// Sizes of the frame in flight. envd sends at most 32 KiB of output in a frame, 44
// KiB in base64; a larger frame than may be held is passed on as it comes.
const (
	maxStreamBuffer = 256 << 10
	// peekBytes of a frame larger than the buffer are looked at.
	peekBytes = 1 << 10
)

// IsStream reports whether a response is a stream of Connect frames in enc, and
// not an HTTP error: only such a body may be filtered.
func IsStream(status int, h http.Header, enc Encoding) bool {
	base, _, _ := mime.ParseMediaType(h.Get(headerContentType))
	return status == http.StatusOK && base == enc.ContentType()
}

// StreamFilter passes a response stream (Start, Connect, WatchDir) through, byte
// for byte and frame by frame.
type StreamFilter struct {
	*relay.Stream

	codec   Codec
	limits  StreamLimits
	onEvent func(Event)
	through int64 // bytes of a frame larger than the buffer still to come
	ended   bool  // an end-of-stream frame has passed
	output  atomic.Int64

	observer relay.Observer // sees what passes
	watcher  relay.Observer // sees what came
	scratch  []byte
	hider    *hider // nil if nothing is to be hidden
	next     edit   // what Scan stopped before
}

// edit is a frame and what passes in its place.
type edit struct {
	size    int
	instead []byte
}

// NewStreamFilter passes upstream's frames through as they become complete,
// watches them, and ends the stream where the limits say so. A stream that the
// upstream breaks off, mid-frame or before its end-of-stream frame, ends in an
// error, never in a clean EOF. onEvent, which may be nil, is called from Read.
func NewStreamFilter(body io.ReadCloser, enc Encoding, lim StreamLimits, onEvent func(Event)) *StreamFilter {
	if onEvent == nil {
		onEvent = func(Event) {}
	}
	f := &StreamFilter{codec: enc.Codec, limits: lim, onEvent: onEvent}
	f.Stream = relay.NewStream(body, (*frames)(f))
	return f
}

// Observe shows what the process writes to the observer. It must be called before
// the first Read.
func (f *StreamFilter) Observe(o relay.Observer) { f.observer = o }

// Watch shows what the process writes to the observer as it came, secrets and all.
// It must be called before the first Read.
func (f *StreamFilter) Watch(o relay.Observer) { f.watcher = o }

// OutputBytes is how many bytes of output have passed.
func (f *StreamFilter) OutputBytes() int64 { return f.output.Load() }

// frames implements relay.Units, out of sight of a filter's users.
type frames StreamFilter

// Scan looks at every complete frame and lets it through.
func (f *frames) Scan(held []byte) (pass int, instead []byte) {
	if e := f.next; e.instead != nil {
		f.next = edit{}
		return e.size, e.instead
	}
	for {
		if f.through > 0 {
			n := min(f.through, int64(len(held)-pass))
			f.through -= n
			pass += int(n)
		}
		frame := held[pass:]
		if len(frame) < frameHeader {
			return pass, nil
		}
		size := frameHeader + int64(binary.BigEndian.Uint32(frame[1:]))
		shown := size
		if size > maxStreamBuffer {
			shown = frameHeader + peekBytes
		}
		if int64(len(frame)) < shown {
			return pass, nil
		}
		ok, instead := f.inspect(frame[:shown], size-frameHeader)
		switch {
		case !ok:
			return pass, nil
		case instead == nil:
			f.through = size
		case pass == 0:
			return int(size), instead
		default:
			f.next = edit{int(size), instead}
			return pass, nil
		}
	}
}

// Finish ends the stream the way upstream did: between two frames behind the end
// of the stream, or broken off.
func (f *frames) Finish(held []byte, err error) (int, []byte, error) {
	whole := len(held) == 0 && f.through == 0
	if whole && f.ended && errors.Is(err, io.EOF) {
		return 0, nil, io.EOF
	}
	if r := f.Pending(); r != nil && f.through == 0 {
		f.End(r)
		return 0, nil, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	f.onEvent(Event{Kind: EventAborted, Err: err})
	return 0, f.rest(), err
}

// Ending is the frame that ends a stream with an error. Nothing may follow an
// end-of-stream frame, and nothing can be said in the middle of a frame.
func (f *frames) Ending(r *refusal.Refusal) ([]byte, error) {
	switch {
	case f.through > 0:
		return nil, io.ErrUnexpectedEOF
	case f.ended:
		return nil, io.EOF
	}
	f.ended = true
	return append(f.rest(), refusal.EndStreamFrame(r)...), io.EOF
}

// rest are frames of what is held back of the output, at its end.
func (f *frames) rest() []byte {
	if f.hider == nil || f.through > 0 {
		return nil
	}
	return f.hider.held(f.observe)
}

func (f *frames) refuse(code refusal.Code, reason string) {
	r := refusal.New(code, reason)
	r.RequestID = f.limits.RequestID
	f.End(r)
}

// inspect looks at one frame, of which shown may be only the beginning, with size
// bytes behind its header. It reports whether the frame may pass, and what passes
// in its place if it does in another form.
func (f *frames) inspect(shown []byte, size int64) (ok bool, instead []byte) {
	flags, payload := shown[0], shown[frameHeader:]
	if flags&flagEndStream != 0 {
		e := endStreamEvent(payload)
		if f.limits.WallClock > 0 && e.Code == "deadline_exceeded" {
			f.refuse(refusal.CodeWallClock, WallClockReason(f.limits.WallClock))
			f.onEvent(Event{Kind: EventWallClock})
			return false, nil
		}
		f.ended = true
		f.onEvent(e)
		return true, f.last(flags, payload, size)
	}
	p := peek(f.codec, flags, payload, size)
	switch p.kind {
	case frameOutput:
		if f.limits.OutputBytes > 0 && f.output.Load()+p.size > f.limits.OutputBytes {
			f.refuse(refusal.CodeOutputLimit, outputLimitReason(f.limits.OutputBytes))
			f.onEvent(Event{Kind: EventLimit})
			return false, nil
		}
		f.output.Add(p.size)
		f.show(f.watcher, p)
		if f.hider == nil {
			f.show(f.observer, p)
			return true, nil
		}
		return f.hide(p)
	case frameStart, frameEnd:
		if e, ok := lifeEvent(f.codec, payload); ok {
			f.onEvent(e)
		}
		if p.kind == frameEnd && int64(len(payload)) == size {
			if rest := f.rest(); rest != nil {
				return true, append(rest, shown...)
			}
		}
	case frameOther:
	}
	return true, nil
}

// hide takes the secrets out of a frame of output.
func (f *frames) hide(p peeked) (ok bool, instead []byte) {
	shown, instead, ok := f.hider.output(p)
	if !ok {
		f.refuse(refusal.CodeUpstream, "The sandbox sent output in a form in which e2bguard cannot look for secrets, so the stream was ended.")
		return false, nil
	}
	f.observe(p.to, shown)
	return true, instead
}

// last is the end-of-stream frame behind what is held back, and without secrets in
// its error; nil if it is as it was.
func (f *frames) last(flags byte, payload []byte, size int64) []byte {
	if f.hider == nil || int64(len(payload)) < size {
		return nil
	}
	rest, text := f.rest(), string(payload)
	clean := f.hider.set.Replace(text)
	if rest == nil && clean == text {
		return nil
	}
	return appendFrame(rest, flags, []byte(clean))
}

func (f *frames) observe(to relay.Output, piece []byte) {
	if f.observer != nil && len(piece) > 0 {
		f.observer.Output(to, piece)
	}
}

// show shows a frame's output to an observer, which may be nil, in pieces no larger than the
// scratch space they are decoded in.
func (f *frames) show(to relay.Observer, p peeked) {
	switch {
	case to == nil:
	case p.data == nil:
		to.Missed(p.to, p.size)
	case f.codec == Proto:
		to.Output(p.to, p.data)
	default:
		if f.scratch == nil {
			f.scratch = make([]byte, 3<<10)
		}
		const piece = 4 << 10
		for rest := p.data; len(rest) > 0; {
			n, err := base64.StdEncoding.Decode(f.scratch, rest[:min(piece, len(rest))])
			if err != nil {
				to.Missed(p.to, int64(len(rest))*3/4)
				return
			}
			to.Output(p.to, f.scratch[:n])
			rest = rest[min(piece, len(rest)):]
		}
	}
}
