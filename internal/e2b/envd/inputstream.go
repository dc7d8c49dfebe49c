package envd

import (
	"bytes"
	"errors"
	"io"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// InputStream reads the messages of a StreamInput call one by one.
type InputStream struct {
	// Call is the call itself, for SanitiseHeaders; its Proto is nil.
	Call *Message

	src      io.Reader
	maxBytes int64
	started  bool
}

// NewInputStream reads messages in enc from src, of maxBytes each.
func NewInputStream(m Method, enc Encoding, src io.Reader, maxBytes int64) *InputStream {
	return &InputStream{Call: &Message{Method: m, Encoding: enc}, src: src, maxBytes: maxBytes}
}

// Next returns the next message, or io.EOF after the last; any other error is a
// *refusal.Refusal. The first message that is no keepalive names the process, for
// envd breaks on any other.
func (s *InputStream) Next() (*Message, error) {
	enc, method := s.Call.Encoding, s.Call.Method
	flags, payload, err := readFrame(s.src, s.maxBytes)
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, refuseBody(method, err)
	case flags == flagEndStream:
		if err := checkEnd(payload, s.src); err != nil {
			return nil, refuseBody(method, err)
		}
		return nil, io.EOF
	case flags == flagCompressed && !enc.Gzip:
		return nil, refuseBody(method, errors.New("a compressed message needs Connect-Content-Encoding: gzip"))
	case flags == flagCompressed:
		if payload, err = inflate(payload, s.maxBytes); err != nil {
			return nil, refuseBody(method, err)
		}
	case flags != 0:
		return nil, refuseBody(method, errors.New("the frame flags are not those of a message"))
	}
	in := new(processpb.StreamInputRequest)
	msg := &Message{Method: method, Encoding: enc, Proto: in}
	if len(payload) > 0 {
		if msg.unknown, err = unmarshal(enc.Codec, payload, in); err != nil {
			return nil, refuseBody(method, err)
		}
	}
	switch in.GetEvent().(type) {
	case *processpb.StreamInputRequest_Start:
		s.started = true
	case *processpb.StreamInputRequest_Keepalive:
	case *processpb.StreamInputRequest_Data:
		if !s.started {
			return nil, invalid("The first message of StreamInput must name the process, so nothing was sent.")
		}
	default:
		return nil, invalid("A message of StreamInput is none that this gateway knows, so it was not sent.")
	}
	return msg, nil
}

// InputTaken reports whether an answer to StreamInput says that envd took all of
// it.
func InputTaken(answer []byte) bool {
	r := bytes.NewReader(answer)
	for {
		flags, payload, err := readFrame(r, int64(len(answer)))
		if err != nil {
			return false
		}
		if flags&flagEndStream != 0 {
			return endStreamEvent(payload).Code == ""
		}
	}
}
