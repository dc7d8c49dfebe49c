package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// inputTurn is a call's right to send to one process. It is held until the answer
// tells whether the sandbox has what was sent.
type inputTurn struct {
	p *process
	// next is what is known of the input once the sandbox has what was sent last.
	next *judged
	// sent says that the sandbox may have it.
	sent bool
}

// turnWait is how long a call waits for another that sends to the same process.
const turnWait = 10 * time.Second

// takeTurn waits until no other call sends to the process that is meant, and makes
// the selector name it by its pid: a tag might mean another process by the time
// the call arrives.
func (c *call) takeTurn(sel *processpb.ProcessSelector) *refusal.Refusal {
	p, ref := c.findProcess(sel)
	if ref != nil {
		return ref
	}
	timer := time.NewTimer(turnWait)
	defer timer.Stop()
	select {
	case p.turn <- struct{}{}:
	case <-c.r.Context().Done():
		return refusal.New(refusal.CodeInvalid, "the client left before its input was sent.")
	case <-timer.C:
		return refusal.New(refusal.CodeOverload, "another call is sending input to this process. Send it all in one call, or one after another.")
	}
	sel.Selector = &processpb.ProcessSelector_Pid{Pid: p.pid}
	c.turn = &inputTurn{p: p}
	return nil
}

// endTurn notes what became of what was sent: taken says that the sandbox has it,
// known that this is certain.
func (c *call) endTurn(taken, known bool) {
	t := c.turn
	if t == nil {
		return
	}
	c.turn = nil
	if t.next != nil && t.next.keys != nil {
		c.settleKeys(t.p, t.next.keys, taken)
	} else if t.next != nil && t.sent && len(t.p.stdin) > 0 {
		if !known {
			t.next.lost = "the connection broke while input was sent to this process, and what arrived of it is not known."
		}
		if taken || !known {
			t.p.take(t.next, c.g.state.processes)
		}
	}
	<-t.p.turn
}

// judgeInput says what a guard must see before the input is sent.
func (c *call) judgeInput(in *processpb.ProcessInput) (*judged, *refusal.Refusal) {
	if c.turn == nil {
		return nil, refusal.New(refusal.CodeInvalid, "the input names no process, so it was not sent.")
	}
	p := c.turn.p
	var data []byte
	switch in := in.GetInput().(type) {
	case *processpb.ProcessInput_Stdin:
		data = in.Stdin
	case *processpb.ProcessInput_Pty:
		keys, subjects, ref := c.judgeKeys(p, in)
		return &judged{subjects: subjects, keys: keys}, ref
	default:
		return nil, refusal.New(refusal.CodeInvalid, "the input is neither stdin nor pty, so it was not sent.")
	}
	user, _, _ := c.r.BasicAuth()
	known := &p.input
	if c.turn.next != nil {
		known = &c.turn.next.input // of a stream, what was sent last
	}
	return known.with(p, user, data)
}

// sendInputSubjects is the screening of SendInput.
func (c *call) sendInputSubjects() ([]guard.Subject, *refusal.Refusal) {
	req := c.msg.(*envd.Message).Proto.(*processpb.SendInputRequest)
	if req.GetProcess() == nil {
		return nil, refusal.New(refusal.CodeInvalid, "the input names no process, so it was not sent.")
	}
	if ref := c.takeTurn(req.GetProcess()); ref != nil {
		return nil, ref
	}
	next, ref := c.judgeInput(req.GetInput())
	if ref != nil {
		return nil, ref
	}
	c.turn.next = next
	return next.subjects, nil
}

// enforceSendInput is the last step before the sandbox may have the input.
func (c *call) enforceSendInput() *refusal.Refusal {
	c.turn.sent = true
	c.turn.next.keys.send()
	return c.enforceRPC()
}

// settleInput notes whether envd took the input of SendInput.
func (c *call) settleInput(*http.Response) error {
	c.endTurn(true, true)
	return nil
}

// inputStream takes a StreamInput call through screen, enforce and forward message
// by message: a message goes to the sandbox after its verdict, and no later.
type inputStream struct {
	c        *call
	messages *envd.InputStream
	first    *envd.Message // names the process
	pipe     *io.PipeReader
	done     chan struct{}

	mu  sync.Mutex
	ref *refusal.Refusal
}

// readInputStream reads up to the message that names the process.
func (c *call) readInputStream() *refusal.Refusal {
	_ = http.NewResponseController(c.w).EnableFullDuplex() // the answer may come before the end
	method, ok := envd.MethodFor(c.target.Path)
	if !ok {
		return refusal.New(refusal.CodeUnknown, "e2bguard knows no such procedure of envd.")
	}
	enc, ref := envd.Classify(method, c.r.Header)
	if ref != nil {
		return ref
	}
	body := c.g.bodies.Stream(c.w, c.r, c.g.cfg.IdleTimeout)
	s := &inputStream{c: c, messages: envd.NewInputStream(method, enc, body, c.g.bodies.Config().MessageBytes)}
	for {
		msg, err := s.messages.Next()
		if errors.Is(err, io.EOF) {
			return refusal.New(refusal.CodeInvalid, "the stream of input ended before it named a process.")
		}
		if err != nil {
			return refuseRead(err)
		}
		if start := msg.Proto.(*processpb.StreamInputRequest).GetStart(); start != nil {
			s.first = msg
			if start.GetProcess() == nil {
				return refusal.New(refusal.CodeInvalid, "the input names no process, so it was not sent.")
			}
			c.stream, c.body = s, s
			return c.takeTurn(start.GetProcess())
		}
	}
}

// enforceInputStream makes the headers safe.
func (c *call) enforceInputStream() *refusal.Refusal {
	_, ref := envd.SanitiseHeaders(c.stream.messages.Call, c.r.Header, envd.Deadlines{})
	return ref
}

// apply starts the stream: it implements outgoing.
func (s *inputStream) apply(r *http.Request) {
	r.ContentLength = -1
	pr, pw := io.Pipe()
	s.pipe, s.done = pr, make(chan struct{})
	r.Body = pr
	go func() {
		defer close(s.done)
		err := s.copySafely(pw)
		var ref *refusal.Refusal
		if errors.As(err, &ref) {
			// What was sent before it arrives: the stream ends as its client might have
			// ended it, and the answer is replaced.
			s.fail(ref)
			err = nil
		}
		_ = pw.CloseWithError(err)
	}()
}

func (s *inputStream) fail(ref *refusal.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ref == nil {
		s.ref = ref
	}
}

func (s *inputStream) refusal() *refusal.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ref
}

// copySafely is copy on a goroutine of its own, where a panic would end the process
// and every call in it.
func (s *inputStream) copySafely(w io.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.c.refusePanic(p)
		}
	}()
	return s.copy(w)
}

func (s *inputStream) copy(w io.Writer) error {
	for msg := s.first; ; {
		if err := s.pass(w, msg); err != nil {
			return err
		}
		next, err := s.messages.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return refuseRead(err)
		}
		msg = next
	}
}

// pass judges one message and sends it.
func (s *inputStream) pass(w io.Writer, msg *envd.Message) error {
	switch e := msg.Proto.(*processpb.StreamInputRequest).GetEvent().(type) {
	case *processpb.StreamInputRequest_Start:
		if msg != s.first {
			return refusal.New(refusal.CodeInvalid, "a stream of input names one process, at its beginning. Use a call of its own for each process.")
		}
	case *processpb.StreamInputRequest_Data:
		next, ref := s.c.judgeInput(e.Data.GetInput())
		if ref != nil {
			return ref
		}
		if ref := s.review(next.subjects); ref != nil {
			s.c.takeBack(s.c.turn.p, next.keys)
			return ref
		}
		s.c.turn.next, s.c.turn.sent = next, true
		next.keys.send()
	}
	encoded, err := msg.Encode()
	if err != nil {
		return err
	}
	_, err = w.Write(encoded)
	return err
}

// review judges what a message says, and puts it on record.
func (s *inputStream) review(subjects []guard.Subject) *refusal.Refusal {
	if len(subjects) == 0 {
		return nil
	}
	if ref := s.c.spendGuardCalls(len(subjects)); ref != nil {
		return ref
	}
	for _, subject := range subjects {
		if ref := s.c.recordLate(s.c.ask(s.c.r.Context(), subject)); ref != nil {
			return ref
		}
	}
	return nil
}

// stop ends the stream and waits for it, so that nothing reads the client's body
// after the handler has returned.
func (s *inputStream) stop() {
	if s.done == nil {
		return
	}
	_ = s.pipe.CloseWithError(io.ErrClosedPipe)
	select {
	case <-s.done:
	default:
		s.c.clientBody.cut(s.c)
		<-s.done
	}
}

// filterInputStream notes whether envd took all of the stream, and replaces its
// answer where a message was refused.
func (c *call) filterInputStream(resp *http.Response) error {
	b, err := takeAnswer(resp)
	c.stream.stop()
	taken := err == nil && envd.InputTaken(b)
	c.endTurn(taken, taken)
	if ref := c.stream.refusal(); ref != nil {
		return ref
	}
	return err
}
