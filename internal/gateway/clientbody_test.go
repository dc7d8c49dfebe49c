package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// deadlines notes the read deadlines that are set on a connection.
type deadlines struct {
	http.ResponseWriter
	mu  sync.Mutex
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set = append(d.set, t)
	return nil
}

// An answer may come while the goroutine that sent the upload has still to say that
// it is done. Nothing of the body is left then, and a deadline on the connection
// would hit net/http's watch for the client's leaving: all later calls on the
// connection would end as if it had left.
func TestStopLeavesTheConnectionOfAReadBodyAlone(t *testing.T) {
	for name, ended := range map[string]bool{"read to its end": true, "client stands still": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &deadlines{ResponseWriter: httptest.NewRecorder()}
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/files", nil)
				c := &call{w: w, r: r, forwarded: true, clientBody: &clientBody{ReadCloser: http.NoBody}}
				c.clientBody.ended.Store(ended)
				pr, _ := io.Pipe()
				u := &upload{c: c, cancel: func() {}, pipe: pr, done: make(chan struct{})}
				s := &inputStream{c: c, pipe: pr, done: make(chan struct{})}
				go u.stop()
				go s.stop()
				synctest.Wait()
				close(u.done)
				close(s.done)
				synctest.Wait()
				if ended {
					require.Empty(t, w.set)
				} else {
					require.Len(t, w.set, 2)
				}
				c.clientBody.ended.Store(true)
				c.clientBody.leave(c)
				require.Equal(t, !ended, w.Header().Get("Connection") == "close", "a connection that may be spoilt is not used again")
			})
		})
	}
}
