package envd

import (
	"encoding/binary"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

// PathStart is the procedure that starts a process.
const PathStart = "/process.Process/Start"

// StartHeaders are the headers of a call to Start whose body StartFrame has
// written, for a process that may live for so long.
func StartHeaders(timeout time.Duration) http.Header {
	return http.Header{
		headerContentType: {"application/connect+json"},
		headerVersion:     {"1"},
		headerTimeout:     {strconv.FormatInt(max(timeout.Milliseconds(), 1), 10)},
	}
}

// Shell is the request that has a login shell run a line in a folder, without
// standard input, as E2B's SDKs ask for it.
func Shell(line, cwd string) *processpb.StartRequest {
	return &processpb.StartRequest{
		Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", line}, Cwd: &cwd},
		Stdin:   new(bool),
	}
}

// Run reads the answer to Start, in JSON, as it comes. It is an io.Writer.
type Run struct {
	// Started is called when the process has started; it may be nil.
	Started func()
	// Output is shown what the process writes, piece by piece; an error of it ends
	// the reading.
	Output func(to relay.Output, piece []byte) error

	// PID is the process's, once it has started.
	PID uint32
	// Ended says that the process has ended, Exited that it did so by itself and not
	// by a signal; Status is envd's word for how.
	Ended, Exited bool
	ExitCode      int32
	Status        string
	// Complete says that the answer was read to its end. Code and Message are the
	// error that it ended with; "" for none.
	Complete      bool
	Code, Message string

	held []byte
}

// errFrame says that a frame is larger than any of envd's.
var errFrame = errors.New("a frame of the answer to a start is too large")

// Write takes the next piece of the answer.
func (r *Run) Write(p []byte) (int, error) {
	r.held = append(r.held, p...)
	for len(r.held) >= frameHeader {
		size := int64(binary.BigEndian.Uint32(r.held[1:]))
		if size > maxStreamBuffer {
			return 0, errFrame
		}
		if int64(len(r.held)) < frameHeader+size {
			break
		}
		frame := r.held[:frameHeader+size]
		r.held = r.held[frameHeader+size:]
		if err := r.read(frame[0], frame[frameHeader:]); err != nil {
			return 0, err
		}
	}
	r.held = append(r.held[:0:0], r.held...)
	return len(p), nil
}

func (r *Run) read(flags byte, payload []byte) error {
	if flags&flagEndStream != 0 {
		e := endStreamEvent(payload)
		r.Complete, r.Code, r.Message = true, e.Code, e.Message
		return nil
	}
	var m processpb.StartResponse
	if _, err := unmarshal(JSON, payload, &m); err != nil {
		return err
	}
	switch e := m.GetEvent().GetEvent().(type) {
	case *processpb.ProcessEvent_Start:
		r.PID = e.Start.GetPid()
		if r.Started != nil {
			r.Started()
		}
	case *processpb.ProcessEvent_End:
		r.Ended, r.Exited = true, e.End.GetExited()
		r.ExitCode, r.Status = e.End.GetExitCode(), e.End.GetStatus()
	case *processpb.ProcessEvent_Data:
		if piece := e.Data.GetStdout(); len(piece) > 0 {
			return r.Output(relay.Stdout, piece)
		}
		if piece := e.Data.GetStderr(); len(piece) > 0 {
			return r.Output(relay.Stderr, piece)
		}
	}
	return nil
}
