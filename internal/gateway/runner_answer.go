package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

// runAnswer is what a client is told of its program.
type runAnswer struct {
	// Type is "result" in a stream of events.
	Type string `json:"type,omitempty"`
	// Status is "pass" for a program that ran, "block" for one that was judged and
	// found wanting, and "error".
	Status string `json:"status"`
	// Code is the refusal's, of an error or a block.
	Code      string `json:"code,omitempty"`
	Reasoning string `json:"reasoning"`
	// Stdout and Stderr are missing in a stream, which has told them before.
	Stdout *string `json:"stdout,omitempty"`
	Stderr *string `json:"stderr,omitempty"`
	// Truncated says that there was more than the answer holds.
	Truncated bool `json:"truncated,omitempty"`
	// ExitCode is missing if the program did not run to its end.
	ExitCode  *int32 `json:"exit_code,omitempty"`
	RequestID string `json:"request_id"`
}

// The statuses of an answer.
const (
	runPass  = "pass"
	runBlock = "block"
	runError = "error"
)

// runOutput takes what a program writes.
type runOutput interface {
	// start is called when the program has started.
	start()
	// add takes the next piece; an error ends the program.
	add(to relay.Output, piece []byte) error
	// end puts into the answer what it has to say of the output.
	end(a *runAnswer)
}

func (c *call) newRunOutput() runOutput {
	if refusal.WantsEvents(c.r.Header) {
		return &runEvents{c: c}
	}
	return &runText{most: int(c.g.cfg.Run.OutputBytes)}
}

// answerRan is the answer to a program that was judged, and may have run.
func (c *call) answerRan(a runAnswer) {
	if !refusal.WantsEvents(c.r.Header) {
		c.answerJSON(http.StatusOK, line(a))
		_ = http.NewResponseController(c.w).Flush() // a writer that cannot has it all at the end
		return
	}
	a.Type, a.Stdout, a.Stderr = "result", nil, nil
	events := &runEvents{c: c}
	_ = events.send(a) // The client is gone: nobody is left to tell.
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Time{})
}

// line is a value as a line of JSON.
func line(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // Texts and numbers can be written.
	return []byte(b.String())
}

// runText keeps the beginning of what a program writes.
type runText struct {
	most           int
	stdout, stderr []byte
	truncated      bool
}

func (o *runText) start() {}

func (o *runText) add(to relay.Output, piece []byte) error {
	kept := &o.stdout
	if to == relay.Stderr {
		kept = &o.stderr
	}
	if room := o.most - len(*kept); room < len(piece) {
		o.truncated = true
		piece = piece[:room]
	}
	*kept = append(*kept, piece...)
	return nil
}

func (o *runText) end(a *runAnswer) {
	stdout, stderr := o.text(o.stdout), o.text(o.stderr)
	a.Stdout, a.Stderr, a.Truncated = &stdout, &stderr, o.truncated
}

// text is output as it can be told in JSON. A character that the limit has cut is
// left out.
func (o *runText) text(b []byte) string {
	if o.truncated && len(b) == o.most {
		b = b[:len(b)-unfinished(b)]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// unfinished is how many bytes at the end are the beginning of a character.
func unfinished(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return i
		}
	}
	return 0
}

// runEvents tells what a program writes as it comes: a line of JSON for each piece.
type runEvents struct {
	c              *call
	stdout, stderr []byte // the beginning of a character
}

// runEvent is "start", "stdout" or "stderr".
type runEvent struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	RequestID string `json:"request_id,omitempty"`
}

func (o *runEvents) start() { _ = o.send(runEvent{Type: "start", RequestID: o.c.id}) } // a client that is gone shows at the next piece

func (o *runEvents) add(to relay.Output, piece []byte) error {
	name, held := "stdout", &o.stdout
	if to == relay.Stderr {
		name, held = "stderr", &o.stderr
	}
	piece = append(*held, piece...)
	cut := len(piece) - unfinished(piece)
	*held = append([]byte(nil), piece[cut:]...)
	return o.tell(name, piece[:cut])
}

func (o *runEvents) tell(name string, piece []byte) error {
	if len(piece) == 0 {
		return nil
	}
	return o.send(runEvent{Type: name, Text: strings.ToValidUTF8(string(piece), "\uFFFD")})
}

func (o *runEvents) end(*runAnswer) {
	_ = o.tell("stdout", o.stdout) // As above.
	_ = o.tell("stderr", o.stderr)
}

// send writes one event. A client that does not read must not keep the sandbox: it
// has as long as the program has.
func (o *runEvents) send(event any) error {
	c := o.c
	ctl := http.NewResponseController(c.w)
	if !c.forwarded {
		c.forwarded = true // a panic cannot be answered any more
		c.answerHead(http.StatusOK, refusal.TypeEvents)
		_ = ctl.SetWriteDeadline(time.Now().Add(c.program.timeout + runSlack)) // a writer without one is a test's
	}
	if _, err := c.w.Write(line(event)); err != nil {
		return err
	}
	if err := ctl.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
