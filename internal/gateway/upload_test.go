package gateway

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func form(t *testing.T, files ...[2]string) (contentType string, body *bytes.Buffer) {
	t.Helper()
	body = new(bytes.Buffer)
	w := multipart.NewWriter(body)
	for _, f := range files {
		part, err := w.CreateFormFile("file", f[0])
		require.NoError(t, err)
		_, err = io.WriteString(part, f[1])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return w.FormDataContentType(), body
}

func send(t *testing.T, h *house, path, contentType string, body io.Reader) answer {
	t.Helper()
	return h.do(t, "POST", path, toSandbox("49983", "Content-Type", contentType), body)
}

// written reads what the upstream would write from a forwarded multipart body.
func written(t *testing.T, r received) map[string]string {
	t.Helper()
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	require.NoError(t, err)
	mr := multipart.NewReader(bytes.NewReader(r.Body), params["boundary"])
	got := map[string]string{}
	for {
		p, err := mr.NextPart()
		if err == io.EOF {
			return got
		}
		require.NoError(t, err)
		_, disposition, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
		require.NoError(t, err)
		all, err := io.ReadAll(p)
		require.NoError(t, err)
		got[disposition["filename"]] = string(all)
	}
}

func TestUploadsArriveWhole(t *testing.T) {
	big := strings.Repeat("a,b,c\n", 100_000)
	files := [][2]string{{"/home/user/a.txt", "hello"}, {"/home/user/big.csv", big}, {"/home/user/x.py", "print(1)\n"}, {"/home/user/empty", ""}}
	h := newHouse(t, nil, nil)
	ct, body := form(t, files...)
	got := send(t, h, "/files", ct, body)
	require.Equal(t, 200, got.Status, got.Body)
	arrived := written(t, h.reached()[0])
	for _, f := range files {
		require.Equal(t, f[1], arrived[f[0]], f[0])
	}
}

// One bad file refuses the whole upload before any of it is written, as long as
// it comes before the first file too large to hold.
func TestUploadIsJudgedBeforeItIsForwarded(t *testing.T) {
	h := newHouse(t, nil, nil)
	ct, body := form(t, [2]string{"/home/user/a.txt", "hello"}, [2]string{"/home/user/b.py", "evil()"})
	got := send(t, h, "/files", ct, body)
	require.Equal(t, 403, got.Status)
	require.Contains(t, got.Body, "contains the word evil")
	require.Empty(t, h.reached())
}

func TestLateBadFileBreaksTheUploadOff(t *testing.T) {
	h := newHouse(t, nil, nil)
	ct, body := form(t, [2]string{"/home/user/big.csv", strings.Repeat("a,b,c\n", 500_000)}, [2]string{"/home/user/b.py", "evil()"})
	got := send(t, h, "/files", ct, body)
	require.Equal(t, 403, got.Status, got.Body)
	require.Contains(t, got.Body, "contains the word evil")
	for _, r := range h.reached() {
		require.NotContains(t, string(r.Body), "evil")
	}
}

// Code too large to judge is refused; judging a part of it would let the rest
// through. See envoyproxy/envoy#6487.
func TestCodeTooLargeToJudgeIsRefused(t *testing.T) {
	h := newHouse(t, nil, func(cfg *Config) { cfg.Body.MessageBytes = 100_000 })
	got := send(t, h, "/files?path=/home/user/x.py", "application/octet-stream", strings.NewReader(strings.Repeat("x = 1\n", 50_000)))
	require.Equal(t, 413, got.Status, got.Body)
	require.Contains(t, got.Body, "too large to be judged")
	require.Empty(t, h.reached())
}

// Data streams through: the gateway holds a fixed amount of it, whatever its
// size. See e2b-dev/E2B PR 1433.
func TestDataStreamsThrough(t *testing.T) {
	var arrived atomic.Int64
	var held func() int64
	up := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf, total := make([]byte, 1<<20), int64(0)
		for {
			n, err := r.Body.Read(buf)
			total += int64(n)
			arrived.Store(total)
			if err != nil {
				break
			}
		}
		_, _ = fmt.Fprintf(w, "%d", total)
	})
	front := newStreamingHouse(t, up, &held)
	pr, pw := io.Pipe()
	go func() {
		block := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // 1 MiB
		for range 8 {
			_, _ = pw.Write(block)
		}
		require.Eventually(t, func() bool { return arrived.Load() >= 7<<20 }, 5*time.Second, time.Millisecond,
			"the first bytes must be upstream before the last are sent")
		if got := held(); got > 1<<20 {
			t.Errorf("%d bytes of streaming data are buffered", got)
		}
		for range 56 {
			_, _ = pw.Write(block)
		}
		_ = pw.Close()
	}()
	req, err := http.NewRequestWithContext(t.Context(), "POST", front+"/files?path=/home/user/data.csv", pr)
	require.NoError(t, err)
	req.Header = toSandbox("49983", "Content-Type", "application/octet-stream")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(64<<20), string(all))
}

// A client that stands still in the middle of an upload must not hold the
// handler, and what it sent must not look like a whole file.
func TestStandingUploadIsCutOff(t *testing.T) {
	ended := make(chan error, 1)
	up := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	})
	front := newStreamingHouse(t, up, nil, func(cfg *Config) { cfg.Body.ReadTimeout = 100 * time.Millisecond })
	pr, pw := io.Pipe()
	defer pw.Close()
	go func() { _, _ = pw.Write(bytes.Repeat([]byte("x"), 1<<20)) }()
	req, err := http.NewRequestWithContext(t.Context(), "POST", front+"/files?path=/home/user/data.csv", pr)
	require.NoError(t, err)
	req.Header = toSandbox("49983", "Content-Type", "application/octet-stream")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 408, resp.StatusCode)
	require.Error(t, <-ended)
}

// An upstream that takes the head of an upload and no more must not hold it for
// ever. See e2b-dev/E2B#1128, where a dead sandbox held its client.
func TestUploadNobodyReadsIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	front := newStreamingHouse(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-release // and reads nothing
	}), nil, func(cfg *Config) { cfg.IdleTimeout = 200 * time.Millisecond })
	t.Cleanup(func() { close(release) })
	h := &house{url: front}
	got := h.do(t, "POST", "/files?path=/home/user/data.csv", toSandbox("49983", "Content-Type", "application/octet-stream"), io.LimitReader(digits{}, 1<<30))
	require.Equal(t, 500, got.Status, "504 would read as a dead sandbox")
	require.Contains(t, got.Body, "has read nothing of this upload for 200ms")
}

// digits is text without end.
type digits struct{}

func (digits) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
