package gateway

import (
	"io"
	"time"
)

// watchdog notices an upstream that has gone silent: it calls bite once when
// nothing was read for the given time.
type watchdog struct {
	io.ReadCloser
	idle  time.Duration
	timer *time.Timer
	clock *time.Timer // nil: the stream may take as long as it likes
}

func newWatchdog(body io.ReadCloser, idle time.Duration) *watchdog {
	return &watchdog{ReadCloser: body, idle: idle}
}

// start must be called before the first Read.
func (w *watchdog) start(bite func()) { w.timer = time.AfterFunc(w.idle, bite) }

// within calls bite once when the whole stream has taken longer than limit; 0 for
// no limit. It must be called before the first Read.
func (w *watchdog) within(limit time.Duration, bite func()) {
	if limit > 0 {
		w.clock = time.AfterFunc(limit, bite)
	}
}

func (w *watchdog) stop() {
	w.timer.Stop()
	if w.clock != nil {
		w.clock.Stop()
	}
}

func (w *watchdog) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil {
		w.stop()
	} else {
		w.timer.Reset(w.idle)
	}
	return n, err
}

func (w *watchdog) Close() error {
	w.stop()
	return w.ReadCloser.Close()
}

// patientWriter notices a reader that has stopped reading: it calls bite when one
// write takes longer than the given time.
type patientWriter struct {
	w     io.Writer
	idle  time.Duration
	timer *time.Timer
}

func newPatientWriter(w io.Writer, idle time.Duration, bite func()) *patientWriter {
	p := &patientWriter{w: w, idle: idle, timer: time.AfterFunc(idle, bite)}
	p.timer.Stop()
	return p
}

func (p *patientWriter) Write(b []byte) (int, error) {
	p.timer.Reset(p.idle)
	defer p.timer.Stop()
	return p.w.Write(b)
}
