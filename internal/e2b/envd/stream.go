package envd

import (
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
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

// Sizes of the buffer that holds the frame in flight. envd sends at most 32 KiB
// of output in a frame, 44 KiB in base64; a larger frame than the buffer may grow
// to is passed on as it comes.
const (
	minStreamBuffer = 4 << 10
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
	src     io.ReadCloser
	codec   Codec
	limits  StreamLimits
	onEvent func(Event)

	// buf[r:ready] may be handed out; buf[ready:w] is a frame not yet complete.
	buf         []byte
	r, ready, w int
	through     int64  // bytes of a frame larger than the buffer still to come
	tail        []byte // what follows instead of upstream's bytes
	ended       bool   // an end-of-stream frame has passed
	err         error  // what Read returns when there is nothing left

	output atomic.Int64
	mu     sync.Mutex
	cut    *refusal.Refusal
}

// NewStreamFilter passes upstream's frames through as they become complete,
// watches them, and ends the stream where the limits say so. A stream that the
// upstream breaks off, mid-frame or before its end-of-stream frame, ends in an
// error, never in a clean EOF. onEvent, which may be nil, is called from Read.
func NewStreamFilter(body io.ReadCloser, enc Encoding, lim StreamLimits, onEvent func(Event)) *StreamFilter {
	if onEvent == nil {
		onEvent = func(Event) {}
	}
	return &StreamFilter{src: body, codec: enc.Codec, limits: lim, onEvent: onEvent, buf: make([]byte, minStreamBuffer)}
}

// Cut ends the stream with the refusal: what was complete is handed out first,
// the frame in flight is dropped, the upstream body is closed. The first call
// counts; it may come from any goroutine.
func (f *StreamFilter) Cut(r *refusal.Refusal) {
	f.mu.Lock()
	if f.cut == nil {
		f.cut = r
	}
	f.mu.Unlock()
	_ = f.src.Close() // Wakes a Read that waits for the upstream.
}

// OutputBytes is how many bytes of output have passed.
func (f *StreamFilter) OutputBytes() int64 { return f.output.Load() }

// Close closes the upstream body.
func (f *StreamFilter) Close() error { return f.src.Close() }

// Read implements io.Reader.
func (f *StreamFilter) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case f.ready > f.r:
			n := copy(p, f.buf[f.r:f.ready])
			f.r += n
			return n, nil
		case len(f.tail) > 0:
			n := copy(p, f.tail)
			f.tail = f.tail[n:]
			return n, nil
		case f.err != nil:
			return 0, f.err
		case f.through > 0:
			return f.readThrough(p)
		}
		f.scan()
		if f.ready == f.r && f.err == nil && f.through == 0 {
			f.fill()
		}
	}
}

// readThrough hands out a frame that is larger than the buffer as it comes.
func (f *StreamFilter) readThrough(p []byte) (int, error) {
	n, err := f.src.Read(p[:min(int64(len(p)), f.through)])
	f.through -= int64(n)
	switch {
	case err == nil:
	case f.through > 0:
		f.abort(err)
	default:
		f.finish(err)
	}
	return n, nil
}

// fill reads once from the upstream.
func (f *StreamFilter) fill() {
	if r := f.pendingCut(); r != nil {
		f.end(r)
		return
	}
	if f.r > 0 {
		f.w = copy(f.buf, f.buf[f.r:f.w])
		f.r, f.ready = 0, 0
	}
	if f.w == len(f.buf) {
		f.buf = append(f.buf, make([]byte, len(f.buf))...)
	}
	n, err := f.src.Read(f.buf[f.w:])
	f.w += n
	if err == nil {
		return
	}
	f.scan()
	if f.err != nil {
		return
	}
	if f.w > f.ready || f.through > 0 {
		f.abort(err)
		return
	}
	f.finish(err)
}

// finish ends the stream where upstream ended it between two frames.
func (f *StreamFilter) finish(err error) {
	if errors.Is(err, io.EOF) && f.ended {
		f.err = io.EOF
		return
	}
	f.abort(err)
}

// abort ends the stream the way upstream did: broken off.
func (f *StreamFilter) abort(err error) {
	if r := f.pendingCut(); r != nil && f.through == 0 {
		f.end(r)
		return
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	f.err = err
	f.w = f.ready
	f.onEvent(Event{Kind: EventAborted, Err: err})
}

// end ends the stream with a refusal of ours.
func (f *StreamFilter) end(r *refusal.Refusal) {
	f.w = f.ready
	f.err = io.EOF
	if !f.ended {
		f.ended = true
		f.tail = refusal.EndStreamFrame(r)
	}
	_ = f.src.Close()
}

func (f *StreamFilter) refuse(code refusal.Code, reason string) {
	r := refusal.New(code, reason)
	r.RequestID = f.limits.RequestID
	f.end(r)
}

func (f *StreamFilter) pendingCut() *refusal.Refusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut
}

// scan looks at every complete frame in the buffer and lets it through.
func (f *StreamFilter) scan() {
	for f.err == nil && f.through == 0 && f.w-f.ready >= frameHeader {
		frame := f.buf[f.ready:f.w]
		size := frameHeader + int64(binary.BigEndian.Uint32(frame[1:]))
		shown := size
		if size > maxStreamBuffer {
			shown = frameHeader + peekBytes
		}
		if int64(len(frame)) < shown {
			return
		}
		if !f.inspect(frame[0], frame[frameHeader:shown], size-frameHeader) {
			return
		}
		if int64(len(frame)) < size {
			f.through = size - int64(len(frame))
			f.ready = f.w
			return
		}
		f.ready += int(size)
	}
}

// inspect looks at one frame; payload may be only the beginning of size bytes.
// It reports whether the frame may pass.
func (f *StreamFilter) inspect(flags byte, payload []byte, size int64) bool {
	if flags&flagEndStream != 0 {
		e := endStreamEvent(payload)
		if f.limits.WallClock > 0 && e.Code == "deadline_exceeded" {
			f.refuse(refusal.CodeWallClock, wallClockReason(f.limits.WallClock))
			f.onEvent(Event{Kind: EventWallClock})
			return false
		}
		f.ended = true
		f.onEvent(e)
		return true
	}
	kind, n := peek(f.codec, flags, payload, size)
	switch kind {
	case frameOutput:
		if f.limits.OutputBytes > 0 && f.output.Load()+n > f.limits.OutputBytes {
			f.refuse(refusal.CodeOutputLimit, outputLimitReason(f.limits.OutputBytes))
			f.onEvent(Event{Kind: EventLimit})
			return false
		}
		f.output.Add(n)
	case frameStart, frameEnd:
		if e, ok := lifeEvent(f.codec, payload); ok {
			f.onEvent(e)
		}
	case frameOther:
	}
	return true
}
