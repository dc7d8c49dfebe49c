package mcp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// MaxAnswer bounds one message of a server that is read.
const MaxAnswer = 16 << 20

// Result is what a tool answered.
type Result struct {
	// ID is the call's, as JSON text.
	ID string
	// Text is the result as JSON.
	Text string
}

// Results reads the messages of a server's answer, one or a batch, and returns
// the results in them.
func Results(data []byte) ([]Result, error) {
	value, err := strictjson.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("reading the MCP server's answer: %w", err)
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var results []Result
	for _, e := range list {
		o, ok := e.(*strictjson.Object)
		if !ok {
			return nil, fmt.Errorf("reading the MCP server's answer: a message is %s", strictjson.TypeName(e))
		}
		if result, ok := o.Get("result"); ok {
			id, _ := o.Get("id")
			results = append(results, Result{ID: string(strictjson.Encode(id)), Text: string(strictjson.Encode(result))})
		}
	}
	return results, nil
}

// Judge looks at one event before it is handed on: its name ("" for a message)
// and its data. It returns what is put in the place of the data; nil leaves the
// event as it is.
type Judge func(event string, data []byte) (replacement []byte)

// Stream hands on a stream of server-sent events, each as soon as it is complete
// and judge has seen it.
type Stream struct {
	body    io.ReadCloser
	r       *bufio.Reader
	judge   Judge
	pending []byte
	err     error
}

// NewStream returns a Stream that reads body.
func NewStream(body io.ReadCloser, judge Judge) *Stream {
	return &Stream{body: body, r: bufio.NewReader(body), judge: judge}
}

// Close closes the body.
func (s *Stream) Close() error { return s.body.Close() }

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (int, error) {
	for len(s.pending) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.pending, s.err = s.next()
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	return n, nil
}

// next reads one event. The lines of its data are joined as the clients join
// them; lines end with LF, CRLF or CR.
func (s *Stream) next() ([]byte, error) {
	var raw, data, line []byte
	event := ""
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return nil, err // clients drop an unfinished event
		}
		raw = append(raw, c)
		if len(raw) > MaxAnswer {
			return nil, tooLarge()
		}
		if c != '\n' && c != '\r' {
			line = append(line, c)
			continue
		}
		if c == '\r' {
			if after, err := s.r.Peek(1); err == nil && after[0] == '\n' {
				raw = append(raw, '\n')
				_, _ = s.r.Discard(1)
			}
		}
		if len(line) == 0 {
			return s.pass(event, raw, data), nil
		}
		switch name, value := field(line); name {
		case "event":
			event = value
		case "data":
			data = append(append(data, value...), '\n')
		}
		line = line[:0]
	}
}

// pass returns the event, or what stands in its place.
func (s *Stream) pass(event string, raw, data []byte) []byte {
	data = bytes.TrimSuffix(data, []byte("\n"))
	if len(data) == 0 {
		return raw // a comment, which keeps the connection alive
	}
	if replacement := s.judge(event, data); replacement != nil {
		return Event(replacement)
	}
	return raw
}

// Event writes one message as a server-sent event.
func Event(message []byte) []byte {
	return append(append([]byte("event: message\ndata: "), message...), "\n\n"...)
}

// field reads a line as a client does.
func field(line []byte) (name, value string) {
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	n, v, _ := bytes.Cut(line, []byte(":"))
	return string(n), string(bytes.TrimPrefix(v, []byte(" ")))
}

func tooLarge() *refusal.Refusal {
	return refusal.New(refusal.CodeOutputLimit, fmt.Sprintf("an answer of the MCP server is larger than %d MiB, so it was cut off. Ask for less.", MaxAnswer>>20))
}
