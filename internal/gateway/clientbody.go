package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// clientBody watches whether a request's body was read to its end. If it was
// not, what is left of it lies between this call and the next on an HTTP/1
// connection, and net/http reads on: before it lets an answer go, so that a
// client waiting for its answer would wait for ever, and after the call, from a
// client that may send nothing more.
type clientBody struct {
	io.ReadCloser
	ended atomic.Bool
	// spoilt says that a deadline may have expired on the connection. net/http then
	// takes every later call on it for one whose client has left.
	spoilt atomic.Bool
}

// watchBody puts a clientBody in the place of the request's body.
func watchBody(r *http.Request) *clientBody {
	b := &clientBody{ReadCloser: r.Body}
	if r.ContentLength == 0 || r.Body == nil { // handlers before this one may have wrapped http.NoBody
		b.ended.Store(true)
		return b
	}
	r.Body = b
	return b
}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	return n, err
}

// What is left of a body is read for its connection's sake as long as it is little
// and there already.
const (
	drainBytes = 256 << 10
	drainTime  = 50 * time.Millisecond
)

// leave is called before the call is answered. The answer goes out at once, and
// the connection is closed behind it if the body is not at its end.
func (b *clientBody) leave(c *call) {
	if c.r.ProtoMajor != 1 || b.ended.Load() && !b.spoilt.Load() {
		return
	}
	ctl := http.NewResponseController(c.w)
	// Once the call is forwarded somebody else reads the body, and a client that
	// asks before it sends must not be told to go on.
	if !c.forwarded && c.r.Header.Get("Expect") == "" {
		deadline := time.Now().Add(drainTime)
		_ = ctl.SetReadDeadline(deadline)
		_, _ = io.CopyN(io.Discard, b, drainBytes)
		_ = ctl.SetReadDeadline(time.Time{})
		if b.ended.Load() && time.Now().Before(deadline) {
			return
		}
	}
	_ = ctl.EnableFullDuplex()
	c.w.Header().Set("Connection", "close")
}

// cut ends a read of the body that may wait for a client standing still. Of a body
// that was read to its end nobody reads on but net/http, which looks out for the
// client's leaving: the deadline would hit that.
func (b *clientBody) cut(c *call) {
	if b.ended.Load() {
		return
	}
	b.spoilt.Store(true)
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now())
}

// What is still sent when a call was refused is taken for a while: a connection that
// is closed while its client writes is reset, and the answer lost with it.
const (
	lingerBytes = 32 << 20
	lingerTime  = time.Second
)

// bound is called when the call is over: the rest of the body does not have for
// ever to come.
func (b *clientBody) bound(c *call) {
	if !b.ended.Load() && !c.forwarded && c.r.ProtoMajor == 1 && c.r.Header.Get("Expect") == "" {
		ctl := http.NewResponseController(c.w)
		_ = ctl.Flush()
		_ = ctl.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, b, lingerBytes)
	}
	if !b.ended.Load() {
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(c.g.bodies.Config().ReadTimeout))
	}
}
