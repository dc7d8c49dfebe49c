package interpreter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

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
	ResultBytes int64 // result events as they are on the wire
	// RequestID is put in the refusal that ends the stream.
	RequestID string
}

// Sizes of the buffer that holds the line in flight. A longer line, such as a
// large picture or one print of megabytes, is passed on as it comes: its text is
// ASCII, so that no character can be split.
const (
	minLineBuffer = 4 << 10
	maxLineBuffer = 1 << 20
)

// StreamFilter passes an execution's NDJSON through.
type StreamFilter struct {
	src     io.ReadCloser
	limits  StreamLimits
	onEvent func(Event)

	// buf[r:ready] may be handed out; buf[ready:w] is a line not yet complete, of
	// which buf[ready:seen] holds no line break.
	buf               []byte
	r, ready, seen, w int
	long              *longLine // set while a line larger than the buffer passes
	tail              []byte    // what follows instead of upstream's bytes
	err               error     // what Read returns when there is nothing left

	output  atomic.Int64
	results int64
	mu      sync.Mutex
	cut     *refusal.Refusal
}

// longLine is what is known of a line that is larger than the buffer.
type longLine struct {
	kind lineKind
	text textScanner
}

// NewStreamFilter passes lines through byte for byte, whole and at once,
// watches them, and ends the stream where the limits say so: with an error event
// and end_of_execution. A stream that the upstream breaks off stays broken off.
// onEvent, which may be nil, is called from Read.
func NewStreamFilter(body io.ReadCloser, lim StreamLimits, onEvent func(Event)) *StreamFilter {
	if onEvent == nil {
		onEvent = func(Event) {}
	}
	return &StreamFilter{src: body, limits: lim, onEvent: onEvent, buf: make([]byte, minLineBuffer)}
}

// Cut ends the stream with the refusal: whole lines are handed out first, the
// line in flight is dropped, the upstream body is closed, which interrupts the
// execution. The first call counts; it may come from any goroutine.
func (f *StreamFilter) Cut(r *refusal.Refusal) {
	f.mu.Lock()
	if f.cut == nil {
		f.cut = r
	}
	f.mu.Unlock()
	_ = f.src.Close() // Wakes a Read that waits for the upstream.
}

// OutputBytes is how many bytes of stdout and stderr text have passed.
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
		}
		f.scan()
		if f.ready == f.r && f.err == nil {
			f.fill()
		}
	}
}

// fill reads once from the upstream.
func (f *StreamFilter) fill() {
	if r := f.pendingCut(); r != nil {
		f.end(r)
		return
	}
	if f.r > 0 {
		f.w = copy(f.buf, f.buf[f.r:f.w])
		f.seen -= f.r
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
	if f.err == nil {
		f.finish(err)
	}
}

// finish ends the stream the way upstream ended it.
func (f *StreamFilter) finish(err error) {
	if r := f.pendingCut(); r != nil {
		f.end(r)
		return
	}
	if errors.Is(err, io.EOF) {
		if f.ready < f.w && !f.inspect(f.buf[f.ready:f.w]) {
			return
		}
		f.ready, f.err = f.w, io.EOF
		return
	}
	f.w, f.err = f.ready, err
	f.onEvent(Event{Kind: EventAborted, Err: err})
}

// end ends the stream with a refusal of ours. In the middle of a long line there
// is no place for one, unless the line is output, whose text can be closed.
func (f *StreamFilter) end(r *refusal.Refusal) {
	f.w, f.seen = f.ready, f.ready
	f.err = io.EOF
	f.tail = refusal.ExecuteEvents(r)
	switch {
	case f.long == nil:
	case f.long.kind == lineOutput && !f.long.text.done:
		f.tail = append(f.long.text.closing(), f.tail...)
	default:
		f.tail, f.err = nil, io.ErrUnexpectedEOF
	}
	_ = f.src.Close()
}

func (f *StreamFilter) pendingCut() *refusal.Refusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut
}

// scan looks at every complete line in the buffer and lets it through.
func (f *StreamFilter) scan() {
	for f.err == nil {
		i := bytes.IndexByte(f.buf[f.seen:f.w], '\n')
		whole := i >= 0
		end := f.w
		if whole {
			end = f.seen + i + 1
		}
		piece := f.buf[f.ready:end]
		switch {
		case f.long != nil:
			if len(piece) == 0 || !f.pass(piece) {
				return
			}
			if whole {
				f.long = nil
			}
		case whole:
			if !f.inspect(piece) {
				return
			}
		case len(piece) >= maxLineBuffer:
			if !f.begin(piece) {
				return
			}
		default:
			f.seen = f.w
			return
		}
		f.ready, f.seen = end, end
	}
}

// inspect counts one whole line and reports whether it may pass.
func (f *StreamFilter) inspect(line []byte) bool {
	kind, text := peekLine(line)
	switch kind {
	case lineOutput:
		var s textScanner
		return f.count(kind, s.scan(text))
	case lineResult:
		return f.count(kind, int64(len(line)))
	case lineError:
		var e struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(line, &e) // A name that cannot be read is "".
		f.onEvent(Event{Kind: EventError, Name: e.Name})
	case lineEnd:
		f.onEvent(Event{Kind: EventEnd})
	case lineOther:
	}
	return true
}

// begin starts a long line with its first piece and reports whether it may pass.
func (f *StreamFilter) begin(piece []byte) bool {
	kind, text := peekLine(piece)
	long := &longLine{kind: kind}
	n := int64(len(piece))
	if kind == lineOutput {
		n = long.text.scan(text)
	}
	if !f.count(kind, n) {
		return false
	}
	f.long = long
	return true
}

// pass counts a further piece of a long line and reports whether it may pass.
func (f *StreamFilter) pass(piece []byte) bool {
	next, n := f.long.text, int64(len(piece))
	if f.long.kind == lineOutput {
		n = next.scan(piece)
	}
	if !f.count(f.long.kind, n) {
		return false
	}
	f.long.text = next
	return true
}

// count adds to a kind's bytes, and ends the stream if that is too many.
func (f *StreamFilter) count(kind lineKind, n int64) bool {
	var limit, sum int64
	what := "output"
	switch kind {
	case lineOutput:
		limit, sum = f.limits.OutputBytes, f.output.Load()+n
	case lineResult:
		limit, sum, what = f.limits.ResultBytes, f.results+n, "result"
	default:
		return true
	}
	if limit > 0 && sum > limit {
		r := refusal.New(refusal.CodeOutputLimit, "The "+what+" limit of "+strconv.FormatInt(limit, 10)+" bytes was passed, so the execution was ended. "+
			"Print less, or write it to a file in the sandbox and read the part you need.")
		r.RequestID = f.limits.RequestID
		f.end(r)
		f.onEvent(Event{Kind: EventLimit})
		return false
	}
	if kind == lineOutput {
		f.output.Store(sum)
	} else {
		f.results = sum
	}
	return true
}
