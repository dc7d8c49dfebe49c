package body

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// Message returns the request's body with one deadline over the whole of it, so
// that a client sending a byte a second cannot hold a buffer for ever. The
// deadline is lifted at the end of the body: later it would end the connection
// under a running stream.
func (r *Reader) Message(w http.ResponseWriter, req *http.Request) io.Reader {
	d := &deadlineReader{src: req.Body, ctl: http.NewResponseController(w)}
	d.set(time.Now().Add(r.cfg.ReadTimeout))
	return d
}

// Upload returns the request's body with a deadline that every byte pushes out:
// a large upload may take hours, but not stand still.
func (r *Reader) Upload(w http.ResponseWriter, req *http.Request) io.Reader {
	return &deadlineReader{src: req.Body, ctl: http.NewResponseController(w), idle: r.cfg.ReadTimeout}
}

// Stream returns the request's body for messages that come as they come, with no
// more than idle between two bytes.
func (r *Reader) Stream(w http.ResponseWriter, req *http.Request, idle time.Duration) io.Reader {
	return &deadlineReader{src: req.Body, ctl: http.NewResponseController(w), idle: idle}
}

type deadlineReader struct {
	src  io.Reader
	ctl  *http.ResponseController
	idle time.Duration // 0: the deadline was set once
	done bool
}

func (d *deadlineReader) Read(p []byte) (int, error) {
	if d.idle > 0 && !d.done {
		d.set(time.Now().Add(d.idle))
	}
	n, err := d.src.Read(p)
	if err != nil && !d.done {
		d.done = true
		d.set(time.Time{})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = ErrTimeout
		}
	}
	return n, err
}

// set ignores writers that know no deadlines: those of tests and of servers
// that bound reads themselves.
func (d *deadlineReader) set(t time.Time) { _ = d.ctl.SetReadDeadline(t) }
