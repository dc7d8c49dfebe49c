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
}

func newWatchdog(body io.ReadCloser, idle time.Duration) *watchdog {
	return &watchdog{ReadCloser: body, idle: idle}
}

// start must be called before the first Read.
func (w *watchdog) start(bite func()) { w.timer = time.AfterFunc(w.idle, bite) }

func (w *watchdog) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil {
		w.timer.Stop()
	} else {
		w.timer.Reset(w.idle)
	}
	return n, err
}

func (w *watchdog) Close() error {
	w.timer.Stop()
	return w.ReadCloser.Close()
}
