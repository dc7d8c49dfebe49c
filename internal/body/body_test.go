package body

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newReader(t *testing.T, cfg Config) *Reader {
	t.Helper()
	if cfg.TempDir == "" {
		cfg.TempDir = t.TempDir()
	}
	r, err := NewReader(cfg)
	require.NoError(t, err)
	return r
}

func TestSpoolReturnsWhatWasSent(t *testing.T) {
	for name, size := range map[string]int{"empty": 0, "in memory": 100, "at the threshold": 1000, "on disk": 1001, "much on disk": 300_000} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t, Config{SpillBytes: 1000})
			want := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
			b, err := r.Spool(iotest.HalfReader(bytes.NewReader(want)), 1<<20)
			require.NoError(t, err)
			require.Equal(t, int64(size), b.Size())
			require.Equal(t, int64(size), r.Held())

			got, err := b.Bytes()
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			for range 2 { // each reader starts at the beginning
				again, err := io.ReadAll(b.Reader())
				require.NoError(t, err)
				require.Equal(t, string(want), string(again))
			}

			require.NoError(t, b.Close())
			require.NoError(t, b.Close())
			require.Zero(t, r.Held())
		})
	}
}

// A body larger than its limit is refused by reading it, whatever the upstream
// does. See caddyserver/caddy#6739.
func TestSpoolRefuses(t *testing.T) {
	broken := errors.New("connection reset")
	for name, tc := range map[string]struct {
		src   io.Reader
		limit int64
		want  error
	}{
		"a body over its limit":        {strings.NewReader(strings.Repeat("x", 101)), 100, ErrTooLarge},
		"a body over the ceiling":      {strings.NewReader(strings.Repeat("x", 3000)), 5000, ErrOverload},
		"a body that breaks off":       {iotest.ErrReader(io.ErrUnexpectedEOF), 100, io.ErrUnexpectedEOF},
		"a body that fails":            {iotest.ErrReader(broken), 100, broken},
		"a body that comes too slowly": {iotest.ErrReader(os.ErrDeadlineExceeded), 100, ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t, Config{CeilingBytes: 2000, MessageBytes: 100, SpillBytes: 500})
			_, err := r.Spool(tc.src, tc.limit)
			require.ErrorIs(t, err, tc.want)
			require.Zero(t, r.Held(), "a refused body must give its bytes back")
		})
	}
}

func TestSpillLeavesNoFileBehind(t *testing.T) {
	dir := t.TempDir()
	r := newReader(t, Config{TempDir: dir, SpillBytes: 10})
	b, err := r.Spool(strings.NewReader(strings.Repeat("x", 1000)), 5000)
	require.NoError(t, err)
	defer b.Close()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "a killed process must not leave a client's body on disk")
}

func TestNewReaderChecksItsConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"a temp folder that is not there": {TempDir: filepath.Join(t.TempDir(), "missing")},
		"a negative limit":                {UploadBytes: -1},
		"a message larger than all":       {MessageBytes: 100, CeilingBytes: 10},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewReader(cfg)
			require.Error(t, err)
		})
	}
}

// Clients that send a byte now and then must not hold buffers for ever. See
// caddyserver/caddy PR 5367.
func TestMessageDeadlineBoundsTheWholeBody(t *testing.T) {
	r := newReader(t, Config{ReadTimeout: 50 * time.Millisecond})
	got := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, err := r.Spool(r.Message(w, req), 1<<20)
		got <- err
	}))
	defer srv.Close()

	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
	require.NoError(t, err)
	trickle := time.NewTicker(5 * time.Millisecond)
	defer trickle.Stop()
	for {
		select {
		case err := <-got:
			require.ErrorIs(t, err, ErrTimeout)
			require.Zero(t, r.Held())
			return
		case <-trickle.C:
			_, _ = conn.Write([]byte("x"))
		}
	}
}

func TestUploadDeadlineIsPushedOutByEveryByte(t *testing.T) {
	r := newReader(t, Config{ReadTimeout: 200 * time.Millisecond})
	type result struct {
		n   int64
		err error
	}
	got := make(chan result, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n, err := io.Copy(io.Discard, r.Upload(w, req))
		got <- result{n, err}
	}))
	defer srv.Close()

	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
	require.NoError(t, err)
	start, sent := time.Now(), 0
	trickle := time.NewTicker(20 * time.Millisecond)
	defer trickle.Stop()
	for time.Since(start) < 500*time.Millisecond { // well past one deadline
		<-trickle.C
		_, err := conn.Write([]byte("x"))
		require.NoError(t, err)
		sent++
	}
	res := <-got // and then silence
	require.ErrorIs(t, res.err, ErrTimeout)
	require.Equal(t, int64(sent), res.n)
}

// The deadline must not outlive the body: it would end the connection under a
// response that streams for an hour.
func TestDeadlineIsLiftedAtTheEndOfTheBody(t *testing.T) {
	r := newReader(t, Config{ReadTimeout: 50 * time.Millisecond})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, err := r.Spool(r.Message(w, req), 1<<20); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case <-req.Context().Done(): // what an expired deadline does
			http.Error(w, "canceled", http.StatusInternalServerError)
		case <-time.After(250 * time.Millisecond):
			_, _ = io.WriteString(w, "alive")
		}
	}))
	defer srv.Close()
	resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader("hello"))
	require.NoError(t, err)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "alive", string(all))
}

func TestAPartLeavesRoomForTheRest(t *testing.T) {
	r := newReader(t, Config{CeilingBytes: 2000, MessageBytes: 100, SpillBytes: 500})
	part := r.Part(1000)
	b := part.Create()
	_, err := b.Write(make([]byte, 900))
	require.NoError(t, err)
	_, err = b.Write(make([]byte, 200))
	require.ErrorIs(t, err, ErrOverload)
	require.EqualValues(t, 900, r.Held(), "what could not be written is not counted")
	rest, err := r.Spool(strings.NewReader(strings.Repeat("x", 1050)), 5000)
	require.NoError(t, err)
	_, err = b.Write(make([]byte, 60))
	require.ErrorIs(t, err, ErrOverload, "all together are bounded, too")
	require.NoError(t, rest.Close())
	_, err = b.Write([]byte("more"))
	require.NoError(t, err)
	all, err := b.Bytes()
	require.NoError(t, err)
	require.Equal(t, string(make([]byte, 900))+"more", string(all))
	require.NoError(t, b.Close())
	require.Zero(t, r.Held())
	require.Zero(t, part.Held())
}
