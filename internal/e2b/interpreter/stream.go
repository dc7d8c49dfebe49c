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
	"github.com/e2bguard/e2bguard/internal/redact"
)

// EventKind says what a StreamFilter saw.
type EventKind uint8

// The kinds.
const (
	EventStart   EventKind = iota + 1 // number_of_executions passed: the kernel has begun with the code
	EventError                        // an error event passed: Name, Value
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
	hider    *hider // nil if nothing is to be hidden
	next     edit   // what Scan stopped before
}

// edit is a line, or a piece of a long one, and what passes in its place.
type edit struct {
	size    int
	instead []byte
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

// Hide replaces the secrets of a set in the strings of all events, but for
// pictures. It must be called before the first Read, and after Observe.
func (f *StreamFilter) Hide(set *redact.Set) {
	if !set.Empty() {
		f.hider = newHider(set, (*lines)(f).observe)
	}
}

// OutputBytes is how many bytes of stdout and stderr text have passed.
func (f *StreamFilter) OutputBytes() int64 { return f.output.Load() }

// lines implements relay.Units, out of sight of a filter's users.
type lines StreamFilter

// Scan looks at every complete line and lets it through.
func (f *lines) Scan(held []byte) (pass int, instead []byte) {
	if e := f.next; e.instead != nil {
		f.next = edit{}
		return e.size, e.instead
	}
	for {
		i := bytes.IndexByte(held[pass+f.seen:], '\n')
		whole := i >= 0
		end := len(held)
		if whole {
			end = pass + f.seen + i + 1
		}
		piece := held[pass:end]
		f.seen = 0
		ok := true
		switch {
		case f.long != nil:
			if len(piece) == 0 {
				return pass, nil
			}
			ok, instead = f.pass(piece)
			if whole {
				f.long = nil
			}
		case whole:
			ok, instead = f.inspect(piece)
		case len(piece) >= maxLineBuffer:
			ok, instead = f.begin(piece)
		default:
			f.seen = len(piece)
			return pass, nil
		}
		switch {
		case !ok:
			return pass, nil
		case instead == nil:
			pass = end
		case pass == 0:
			return end, instead
		default:
			f.next = edit{end - pass, instead}
			return pass, nil
		}
	}
}

// Finish ends the stream the way upstream ended it.
func (f *lines) Finish(held []byte, err error) (int, []byte, error) {
	if r := f.Pending(); r != nil {
		f.End(r)
		return 0, nil, nil
	}
	if errors.Is(err, io.EOF) {
		if len(held) == 0 {
			return 0, f.rest(), io.EOF
		}
		ok, instead := f.inspect(held)
		if !ok {
			return 0, nil, nil
		}
		return len(held), instead, io.EOF
	}
	f.onEvent(Event{Kind: EventAborted, Err: err})
	return 0, f.rest(), err
}

// Ending is an error event and the end. In the middle of a long line there is no
// place for them, unless the line is output, whose text can be closed.
func (f *lines) Ending(r *refusal.Refusal) ([]byte, error) {
	events := refusal.ExecuteEvents(r)
	switch {
	case f.long == nil:
		return append(f.rest(), events...), io.EOF
	case f.long.kind == lineOutput && !f.long.text.done:
		var tail []byte
		if f.hider != nil {
			tail = f.hider.unfinished()
		}
		return append(append(tail, f.long.text.closing()...), events...), io.EOF
	default:
		return nil, io.ErrUnexpectedEOF
	}
}

// rest are lines of what is held back of the output, at its end.
func (f *lines) rest() []byte {
	if f.hider == nil || f.long != nil {
		return nil
	}
	return f.hider.rest()
}

// inspect counts one whole line and reports whether it may pass, and what passes
// in its place if it does in another form.
func (f *lines) inspect(line []byte) (ok bool, instead []byte) {
	kind, to, text := peekLine(line)
	switch kind {
	case lineOutput:
		var s textScanner
		if !f.count(kind, s.scan(text)) {
			return false, nil
		}
		f.newShown(to).scan(text)
	case lineResult:
		if !f.count(kind, int64(len(line))) {
			return false, nil
		}
	case lineError:
		var e struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		}
		_ = json.Unmarshal(line, &e) // A name that cannot be read is "".
		f.onEvent(Event{Kind: EventError, Name: e.Name, Value: e.Value})
	case lineStart:
		f.onEvent(Event{Kind: EventStart})
	case lineEnd:
		f.onEvent(Event{Kind: EventEnd})
		if rest := f.rest(); rest != nil {
			return true, append(rest, line...)
		}
	case lineOther:
	}
	if f.hider == nil {
		return true, nil
	}
	f.hider.begin(kind, to)
	return true, f.hider.piece(line)
}

// begin starts a long line with its first piece; it is inspect for such a piece.
func (f *lines) begin(piece []byte) (ok bool, instead []byte) {
	kind, to, text := peekLine(piece)
	long := &longLine{kind: kind}
	n := int64(len(piece))
	if kind == lineOutput {
		n = long.text.scan(text)
	}
	if !f.count(kind, n) {
		return false, nil
	}
	if kind == lineOutput {
		long.shown = f.newShown(to)
		long.shown.scan(text)
	}
	f.long = long
	if f.hider == nil {
		return true, nil
	}
	f.hider.begin(kind, to)
	return true, f.hider.piece(piece)
}

// pass counts a further piece of a long line; it is inspect for such a piece.
func (f *lines) pass(piece []byte) (ok bool, instead []byte) {
	next, n := f.long.text, int64(len(piece))
	if f.long.kind == lineOutput {
		n = next.scan(piece)
	}
	if !f.count(f.long.kind, n) {
		return false, nil
	}
	f.long.text = next
	f.long.shown.scan(piece)
	if f.hider == nil {
		return true, nil
	}
	return true, f.hider.piece(piece)
}

func (f *lines) observe(to relay.Output, piece []byte) {
	if f.observer != nil && len(piece) > 0 {
		f.observer.Output(to, piece)
	}
}

// newShown returns what decodes a line's text for the observer; nil if there is
// none, or if the hider shows it.
func (f *lines) newShown(to relay.Output) *shownText {
	if f.observer == nil || f.hider != nil {
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
