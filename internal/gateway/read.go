package gateway

import (
	"errors"
	"io"
	"net/http"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/body"
	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// read takes the body in, to its end, and decodes it.
func (c *call) read() *refusal.Refusal {
	if c.op.read == nil {
		return nil
	}
	ref := c.op.read(c)
	if c.msg != nil {
		c.learnSecrets()
	}
	return ref
}

// spoolBody reads the whole body, bounded and with a deadline. Reading it to the
// end before anything is sent also keeps net/http from closing it under a
// response that starts early.
func (c *call) spoolBody() (*body.Buffer, *refusal.Refusal) {
	buf, err := c.g.bodies.Spool(c.g.bodies.Message(c.w, c.r), c.g.bodies.Config().MessageBytes)
	if err != nil {
		return nil, refuseRead(err)
	}
	c.spool = append(c.spool, buf)
	return buf, nil
}

func (c *call) bodyBytes() ([]byte, *refusal.Refusal) {
	buf, ref := c.spoolBody()
	if ref != nil {
		return nil, ref
	}
	all, err := buf.Bytes()
	if err != nil {
		return nil, refuseRead(err)
	}
	return all, nil
}

// refuseRead turns a failure to read the client's body into its answer.
func refuseRead(err error) *refusal.Refusal {
	var ref *refusal.Refusal
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &ref):
		return ref
	case errors.Is(err, body.ErrTooLarge), errors.As(err, &tooLarge):
		ref = refusal.New(refusal.CodeTooLarge, "the request body is larger than this gateway reads. Send less at once, or have its operator raise the limit.")
	case errors.Is(err, body.ErrOverload):
		ref = refusal.New(refusal.CodeOverload, "this gateway is holding as many request bodies as it may. Try again in a moment.")
	case errors.Is(err, body.ErrTimeout):
		ref = refusal.New(refusal.CodeTimeout, "the request body did not arrive in time, so nothing was run. Try again, or send less at once.")
	case errors.Is(err, io.ErrUnexpectedEOF):
		ref = refusal.New(refusal.CodeInvalid, "the request body broke off before its end, so nothing was run.")
	default:
		ref = refusal.New(refusal.CodeInvalid, "the request body could not be read, so nothing was run.")
	}
	ref.Err = err
	return ref
}

// controlMessage gives control.Message the form of message.
type controlMessage struct{ control.Message }

func (m controlMessage) Encode() ([]byte, error) { return m.Message.Encode(), nil }

func (c *call) readControl() *refusal.Refusal {
	b, ref := c.bodyBytes()
	if ref != nil {
		return ref
	}
	m, ref := control.Decode(c.target, b)
	if ref == nil {
		c.msg = controlMessage{m}
	}
	return ref
}

func (c *call) controlSubjects() ([]guard.Subject, *refusal.Refusal) {
	return c.msg.(controlMessage).Subjects(), nil
}

func (c *call) readRPC() *refusal.Refusal {
	method, ok := envd.MethodFor(c.target.Path)
	if !ok {
		return refusal.New(refusal.CodeUnknown, "e2bguard knows no such procedure of envd.")
	}
	enc, ref := envd.Classify(method, c.r.Header)
	if ref != nil {
		return ref
	}
	buf, ref := c.spoolBody()
	if ref != nil {
		return ref
	}
	m, ref := envd.Decode(method, enc, buf.Reader(), c.g.bodies.Config().MessageBytes)
	if ref == nil {
		c.msg = m
	}
	return ref
}

func (c *call) rpcSubjects() ([]guard.Subject, *refusal.Refusal) {
	return c.msg.(*envd.Message).Subjects(c.r.Header)
}

func (c *call) fileReadSubjects() ([]guard.Subject, *refusal.Refusal) {
	s, rawQuery, ref := files.ReadSubject(c.r)
	u := *c.r.URL
	u.RawQuery = rawQuery // as it was judged
	c.r.URL = &u
	return []guard.Subject{s}, ref
}

func (c *call) readExecute() *refusal.Refusal {
	b, ref := c.bodyBytes()
	if ref != nil {
		return ref
	}
	m, ref := interpreter.DecodeExecute(c.r.Header, b)
	if ref == nil {
		c.msg = m
	}
	return ref
}

// executeSubjects says which language the code's context runs, where that is
// known; else the guard judges the text as whatever it may be.
func (c *call) executeSubjects() ([]guard.Subject, *refusal.Refusal) {
	m := c.msg.(*interpreter.Execute)
	context := c.g.state.context(c.target.Sandbox, m.ContextID)
	subjects, ref := m.Subjects(context.Language)
	for i := range subjects {
		if subjects[i].Labels[guard.LabelCwd] == "" {
			subjects[i].Labels = withLabel(subjects[i].Labels, guard.LabelCwd, context.Cwd)
		}
	}
	return subjects, ref
}

func (c *call) readContext() *refusal.Refusal {
	b, ref := c.bodyBytes()
	if ref != nil {
		return ref
	}
	m, ref := interpreter.DecodeContext(c.r.Header, b)
	if ref == nil {
		c.msg = m
	}
	return ref
}

func (c *call) contextSubjects() ([]guard.Subject, *refusal.Refusal) {
	return c.msg.(*interpreter.CreateContext).Subjects()
}
