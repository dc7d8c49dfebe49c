package interpreter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

// EventKind says what a StreamFilter saw.
type EventKind uint8

// The kinds.
const (
	EventError   EventKind = iota + 1 // an error event passed: Name, Value
	EventEnd                          // end_of_execution passed
	EventLimit                        // a limit was passed; the stream was ended
	EventAborted                      // the upstream broke off: Err
)

// Event is one thing a StreamFilter saw.
type Event struct {
	Kind  EventKind
	Name  string
	Value string
	Err   error
}

// StreamLimits bound an execution's stream; 0 for no limit.
type StreamLimits struct {
	OutputBytes int64 // text of stdout and stderr events
	ResultBytes int64 // result events as they are on the wire
	// RequestID is put in the refusal that ends the stream.
	RequestID string
}

// maxLineBuffer is the longest line that is held whole. A longer one, such as a
// large picture or one print of megabytes, is passed on as it comes: its text is
// ASCII, so that no character can be split.
const maxLineBuffer = 1 << 20

// StreamFilter passes an execution's NDJSON through.
type StreamFilter struct {
	*relay.Stream

	limits  StreamLimits
	onEvent func(Event)
	seen    int       // bytes held that hold no line break
	long    *longLine // set while a line larger than the buffer passes
	output  atomic.Int64
	results int64

	observer relay.Observer
}

// longLine is what is known of a line that is larger than the buffer.
type longLine struct {
	kind  lineKind
	text  textScanner
	shown *shownText
}

// NewStreamFilter passes lines through byte for byte, whole and at once,
// watches them, and ends the stream where the limits say so: with an error event
// and end_of_execution. A stream that the upstream breaks off stays broken off; a
// cut closes the upstream body, which interrupts the execution. onEvent, which
// may be nil, is called from Read.
func NewStreamFilter(body io.ReadCloser, lim StreamLimits, onEvent func(Event)) *StreamFilter {
	if onEvent == nil {
		onEvent = func(Event) {}
	}
	f := &StreamFilter{limits: lim, onEvent: onEvent}
	f.Stream = relay.NewStream(body, (*lines)(f))
	return f
}

// Observe shows the text of stdout and stderr to the observer. It must be called
// before the first Read.
func (f *StreamFilter) Observe(o relay.Observer) { f.observer = o }

// OutputBytes is how many bytes of stdout and stderr text have passed.
func (f *StreamFilter) OutputBytes() int64 { return f.output.Load() }

// lines implements relay.Units, out of sight of a filter's users.
type lines StreamFilter

// Scan looks at every complete line and lets it through.
func (f *lines) Scan(held []byte) (pass int) {
	for {
		i := bytes.IndexByte(held[pass+f.seen:], '\n')
		whole := i >= 0
		end := len(held)
		if whole {
			end = pass + f.seen + i + 1
		}
		piece := held[pass:end]
		f.seen = 0
		switch {
		case f.long != nil:
			if len(piece) == 0 || !f.pass(piece) {
				return pass
			}
			if whole {
				f.long = nil
			}
		case whole:
			if !f.inspect(piece) {
				return pass
			}
		case len(piece) >= maxLineBuffer:
			if !f.begin(piece) {
				return pass
			}
		default:
			f.seen = len(piece)
			return pass
		}
		pass = end
	}
}

// Finish ends the stream the way upstream ended it.
func (f *lines) Finish(held []byte, err error) (int, error) {
	if r := f.Pending(); r != nil {
		f.End(r)
		return 0, nil
	}
	if errors.Is(err, io.EOF) {
		if len(held) > 0 && !f.inspect(held) {
			return 0, nil
		}
		return len(held), io.EOF
	}
	f.onEvent(Event{Kind: EventAborted, Err: err})
	return 0, err
}

// Ending is an error event and the end. In the middle of a long line there is no
// place for them, unless the line is output, whose text can be closed.
func (f *lines) Ending(r *refusal.Refusal) ([]byte, error) {
	events := refusal.ExecuteEvents(r)
	switch {
	case f.long == nil:
		return events, io.EOF
	case f.long.kind == lineOutput && !f.long.text.done:
		return append(f.long.text.closing(), events...), io.EOF
	default:
		return nil, io.ErrUnexpectedEOF
	}
}

// inspect counts one whole line and reports whether it may pass.
func (f *lines) inspect(line []byte) bool {
	kind, to, text := peekLine(line)
	switch kind {
	case lineOutput:
		var s textScanner
		if !f.count(kind, s.scan(text)) {
			return false
		}
		f.newShown(to).scan(text)
	case lineResult:
		return f.count(kind, int64(len(line)))
	case lineError:
		var e struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		}
		_ = json.Unmarshal(line, &e) // A name that cannot be read is "".
		f.onEvent(Event{Kind: EventError, Name: e.Name, Value: e.Value})
	case lineEnd:
		f.onEvent(Event{Kind: EventEnd})
	case lineOther:
	}
	return true
}

// begin starts a long line with its first piece and reports whether it may pass.
func (f *lines) begin(piece []byte) bool {
	kind, to, text := peekLine(piece)
	long := &longLine{kind: kind}
	n := int64(len(piece))
	if kind == lineOutput {
		n = long.text.scan(text)
	}
	if !f.count(kind, n) {
		return false
	}
	if kind == lineOutput {
		long.shown = f.newShown(to)
		long.shown.scan(text)
	}
	f.long = long
	return true
}

// pass counts a further piece of a long line and reports whether it may pass.
func (f *lines) pass(piece []byte) bool {
	next, n := f.long.text, int64(len(piece))
	if f.long.kind == lineOutput {
		n = next.scan(piece)
	}
	if !f.count(f.long.kind, n) {
		return false
	}
	f.long.text = next
	f.long.shown.scan(piece)
	return true
}

// newShown returns what decodes a line's text for the observer.
func (f *lines) newShown(to relay.Output) *shownText {
	if f.observer == nil {
		return nil
	}
	return &shownText{textScanner{show: func(b []byte) { f.observer.Output(to, b) }}}
}

// count adds to a kind's bytes, and ends the stream if that is too many.
func (f *lines) count(kind lineKind, n int64) bool {
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
		f.End(r)
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
