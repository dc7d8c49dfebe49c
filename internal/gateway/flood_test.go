package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rawRequest is the head of a request that the test writes the body of itself.
func rawRequest(path string, header http.Header) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: gw.example\r\n", path)
	_ = header.Write(&b)
	b.WriteString("\r\n")
	return b.String()
}

func dial(t *testing.T, h *house) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

// Many clients that send slowly hold no more than the ceiling; those beyond it
// are asked to come back, and the slow ones are cut off. See caddyserver/caddy
// PR 5367.
func TestSlowClientsHoldNoMoreThanTheCeiling(t *testing.T) {
	const clients, ceiling = 200, 1 << 20
	h := newHouse(t, nil, func(cfg *Config) {
		cfg.Body.CeilingBytes, cfg.Body.MessageBytes = ceiling, ceiling
		cfg.Body.SpillBytes = 64 << 10
		cfg.Body.ReadTimeout = 2 * time.Second
	})
	unfinished := `{"templateID":"` + strings.Repeat("x", 16<<10) // 200 of them are three times the ceiling
	var mu sync.Mutex
	answers := map[int]int{}
	var wg sync.WaitGroup
	for range clients {
		conn := dial(t, h)
		wg.Go(func() {
			head := rawRequest("/v2/sandboxes", headers("X-API-KEY", "e2b_cc", "Content-Length", "4000000"))
			_, _ = io.WriteString(conn, head+unfinished)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				answers[0]++
				return
			}
			_ = resp.Body.Close()
			answers[resp.StatusCode]++
			if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
				answers[-1]++
			}
		})
	}
	stop := make(chan struct{})
	var most int64
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				most = max(most, h.held())
			}
		}
	}()
	wg.Wait()
	close(stop)
	<-watched
	require.LessOrEqual(t, most, int64(ceiling))
	require.Greater(t, most, int64(ceiling)/2, "the ceiling was never near")
	require.Equal(t, clients, answers[408]+answers[429], "every client has an answer: %v", answers)
	require.Greater(t, answers[429], clients/2)
	require.Positive(t, answers[408])
	require.Eventually(t, func() bool { return h.held() == 0 }, 5*time.Second, time.Millisecond)
	require.Empty(t, h.reached())
}

// A body behind a refusal is not read without end: neither a chunked one, whose
// length nobody knows, nor one that announced it. See nginx/nginx#1522.
func TestBodyBehindARefusalIsNotReadWithoutEnd(t *testing.T) {
	chunk := append(append([]byte("10000\r\n"), bytes.Repeat([]byte("x"), 0x10000)...), "\r\n"...)
	for name, more := range map[string][]string{
		"chunked":       {"Transfer-Encoding", "chunked"},
		"with a length": {"Content-Length", "10000000000"},
	} {
		for where, tc := range map[string]struct {
			path   string
			header http.Header
		}{
			"a closed port":   {"/upload", toSandbox("3000")},
			"an unknown path": {"/files/x", toSandbox("49983")},
			"a closed row":    {"/process.Process/StreamInput", startHeaders()},
			"a wrong header":  {"/files?path=/a.csv", toSandbox("49983", "Content-Type", "text/html")},
		} {
			t.Run(name+" to "+where, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, nil, nil)
				conn := dial(t, h)
				header := tc.header.Clone()
				header.Set(more[0], more[1])
				_, err := io.WriteString(conn, rawRequest(tc.path, header))
				require.NoError(t, err)
				answered := make(chan int, 1)
				go func() {
					resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
					if err != nil {
						answered <- 0
						return
					}
					answered <- resp.StatusCode
				}()
				sent := 0
				for sent < 256<<20 {
					n, err := conn.Write(chunk)
					sent += n
					if err != nil {
						break
					}
				}
				require.Less(t, sent, 64<<20, "the connection must be closed")
				require.Contains(t, []int{200, 400, 403, 415}, <-answered)
				require.Empty(t, h.reached())
			})
		}
	}
}

// What is left of a body must not be taken for the next request, and a client
// that sends no more of it must not keep its connection busy for ever.
func TestRestOfABodyIsNoRequest(t *testing.T) {
	const smuggled = "GET /v2/sandboxes?smuggled=1 HTTP/1.1\r\nHost: gw.example\r\n\r\n"
	early := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	for name, tc := range map[string]struct {
		path   string
		header http.Header
		sent   string
		want   int
	}{
		"refused at the door":    {"/upload", toSandbox("3000"), "x", 403},
		"refused while read":     {"/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), `{"templateID":`, 408},
		"an upload stood still":  {"/files?path=/a.csv", toSandbox("49983", "Content-Type", "application/octet-stream"), "x", 408},
		"the upstream was early": {"/files?path=/a.csv", toSandbox("49983", "Content-Type", "application/octet-stream"), strings.Repeat("0123456789abcde\n", 1<<16), 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var smuggledCalls atomic.Int32
			front := newStreamingHouse(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "smuggled=1" {
					smuggledCalls.Add(1)
				}
				early(w, r)
			}), nil, func(cfg *Config) { cfg.Body.ReadTimeout = 100 * time.Millisecond })
			conn := dial(t, &house{url: front})
			tc.header.Set("Content-Length", fmt.Sprint(len(tc.sent)+100_000)) // few enough for net/http to wait for them
			_, err := io.WriteString(conn, rawRequest(tc.path, tc.header)+tc.sent)
			require.NoError(t, err)
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.Equal(t, tc.want, resp.StatusCode)
			require.True(t, resp.Close, "the client must not use the connection again")

			require.Eventually(t, func() bool {
				_, err := io.WriteString(conn, smuggled)
				return err != nil
			}, 5*time.Second, 10*time.Millisecond, "the gateway closes the connection")
			require.Zero(t, smuggledCalls.Load())
		})
	}
}

// A client that asks before it sends its body is told no, not to go on.
func TestRefusalComesBeforeTheBodyIsAskedFor(t *testing.T) {
	h := newHouse(t, nil, nil)
	conn := dial(t, h)
	_, err := io.WriteString(conn, rawRequest("/upload", toSandbox("3000", "Content-Length", "1000000", "Expect", "100-continue")))
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 403 Forbidden\r\n", line)
}

// A call that leaves nothing behind leaves the connection alone, whatever came of
// it: agents are refused in the middle of their work, and go on.
func TestConnectionIsKept(t *testing.T) {
	h := newHouse(t, nil, nil)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = struct{ io.ReadCloser }{r.Body} // as Caddy does, also where there is none
		newGateway(t, h.url).ServeHTTP(w, r)
	}))
	defer front.Close()
	evil := string(frame(`{"process":{"cmd":"/bin/bash","args":["-l","-c","evil"]}}`))
	script := "print(1)\n"
	conn := dial(t, &house{url: front.URL})
	r := bufio.NewReader(conn)
	for name, request := range map[string]string{
		"a refusal":             rawRequest("/process.Process/Start", startHeaders("Content-Length", fmt.Sprint(len(evil)))) + evil,
		"a call without a body": "GET /v2/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"an unread body":        rawRequest("/process.Process/List", toSandbox("49983", "Content-Length", "2")) + "{}",
		"a refusal without one": "GET /nodes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"an upload":             rawRequest("/files?path=/home/user/x.py", toSandbox("49983", "Content-Type", "application/octet-stream", "Content-Length", fmt.Sprint(len(script)))) + script,
	} {
		_, err := io.WriteString(conn, request)
		require.NoError(t, err)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err, name)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.False(t, resp.Close, name)
	}
}

// A shorter body than announced is an error, and nothing is forwarded: what
// follows on the connection would otherwise be read as a part of it. See
// caddyserver/caddy#5485.
func TestShortBodiesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		header http.Header
		body   string
	}{
		"REST with a length":    {"/v2/sandboxes", headers("X-API-KEY", "e2b_cc", "Content-Length", "50"), `{"templateID":"base"}`},
		"REST chunked":          {"/v2/sandboxes", headers("X-API-KEY", "e2b_cc", "Transfer-Encoding", "chunked"), "15\r\n{\"templateID\":\"base\"}\r\n"},
		"Connect with a length": {"/process.Process/Start", startHeaders("Content-Length", "500"), string(frame(`{"process":{"cmd":"/bin/true"}}`))},
		"an upload of code":     {"/files?path=/home/user/x.py", toSandbox("49983", "Content-Type", "application/octet-stream", "Content-Length", "500"), "print(1)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil, nil)
			conn := dial(t, h)
			_, err := io.WriteString(conn, rawRequest(tc.path, tc.header)+tc.body)
			require.NoError(t, err)
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			all, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Contains(t, string(all), "broke off before its end")
			require.Empty(t, h.reached())
		})
	}
}

// Data larger than its cap is refused every time, even if the upstream reads
// nothing of it. See caddyserver/caddy#6739.
func TestTooLargeDataIsRefusedEveryTime(t *testing.T) {
	release := make(chan struct{})
	front := newStreamingHouse(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-release // reads nothing, says nothing
	}), nil, func(cfg *Config) { cfg.Body.UploadBytes = 1 << 20 })
	defer close(release)
	data := strings.Repeat("0123456789abcde\n", 2<<20/16)
	h := &house{url: front}
	for range 20 {
		got := h.do(t, "POST", "/files?path=/home/user/data.csv", toSandbox("49983", "Content-Type", "application/octet-stream"), io.MultiReader(strings.NewReader(data)))
		require.Equal(t, 413, got.Status, got.Body)
	}
}

// Memory stays flat however much data is uploaded; see e2b-dev/E2B PR 1433.
func TestUploadOfDataTakesNoMemory(t *testing.T) {
	var total atomic.Int64
	front := newStreamingHouse(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		total.Store(n)
	}), nil, func(cfg *Config) { cfg.Body.UploadBytes = 4 << 30 })
	const size = 512 << 20
	block := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most uint64
	pr, pw := io.Pipe()
	go func() {
		for sent := 0; sent < size; sent += len(block) {
			if sent%(32<<20) == 0 {
				runtime.ReadMemStats(&now)
				most = max(most, now.Sys)
			}
			if _, err := pw.Write(block); err != nil {
				return
			}
		}
		_ = pw.Close()
	}()
	h := &house{url: front}
	got := h.do(t, "POST", "/files?path=/home/user/data.csv", toSandbox("49983", "Content-Type", "application/octet-stream"), pr)
	require.Equal(t, 200, got.Status, got.Body)
	require.Equal(t, int64(size), total.Load())
	if grown := int64(most) - int64(before.Sys); grown > 32<<20 {
		t.Errorf("memory grew by %d MiB during an upload of %d MiB", grown>>20, size>>20)
	}
}
