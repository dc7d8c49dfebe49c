package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
)

// moody is a guard that passes, blocks, hangs, fails, panics and gives answers that
// are none.
type moody struct {
	mu     sync.Mutex
	passed map[string]bool
}

func (m *moody) Review(ctx context.Context, s guard.Subject) (guard.Verdict, error) {
	switch rand.IntN(10) {
	case 0:
		<-ctx.Done()
		return guard.Verdict{}, ctx.Err()
	case 1:
		return guard.Verdict{}, errors.New("connection reset")
	case 2:
		panic("a guard that panics")
	case 3:
		return guard.Verdict{Decision: guard.Decision(77)}, nil
	case 4:
		return guard.Verdict{Decision: guard.Block, Reasoning: "no"}, nil
	default:
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, word := range chaosWord.FindAllString(s.Text+" "+s.Target, -1) {
			m.passed[word] = true
		}
		return guard.Verdict{Decision: guard.Pass}, nil
	}
}

// chaosWord marks what one client sent.
var chaosWord = regexp.MustCompile(`chaos[0-9]+x`)

// brokenSandbox is an upstream that hangs, resets, answers garbage, dies inside a
// frame, or works. It notes the words that arrived.
type brokenSandbox struct {
	mu      sync.Mutex
	arrived map[string]bool
	over    chan struct{} // a body that was not read hides its client's leaving
}

func (b *brokenSandbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if rand.IntN(8) > 0 {
		body, _ = io.ReadAll(r.Body)
	} else {
		_, _ = io.ReadFull(r.Body, make([]byte, 10)) // leaves the rest
	}
	b.mu.Lock()
	for _, word := range chaosWord.FindAllString(string(body)+" "+r.URL.RawQuery, -1) {
		b.arrived[word] = true
	}
	b.mu.Unlock()
	start := string(frame(`{"event":{"start":{"pid":7}}}`))
	switch rand.IntN(7) {
	case 0:
		select {
		case <-r.Context().Done():
		case <-b.over:
		}
	case 1:
		hijackReset(w, "")
	case 2:
		hijackReset(w, "HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\n\r\n"+start[:len(start)-3])
	case 3:
		hijackReset(w, "\x00\xffgarbage\r\n\r\n")
	case 4:
		w.Header().Set("Content-Type", "application/connect+json")
		_, _ = w.Write(bytes.Repeat([]byte{0xff}, 1<<10))
	case 5:
		w.WriteHeader(http.StatusInternalServerError)
	default:
		streamAnswer(w, []byte(start), frame(`{"event":{"data":{"stdout":"aGVsbG8="}}}`), frame(`{"event":{"end":{"exited":true,"status":"exit status 0"}}}`), endFrame(`{}`))
	}
}

func hijackReset(w http.ResponseWriter, first string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, first)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// Whatever breaks and whoever leaves: nothing arrives that no guard has passed,
// and when all is over nothing is left behind.
func TestNothingArrivesUnseenInChaos(t *testing.T) {
	const clients, calls = 500, 4
	review := &moody{passed: map[string]bool{}}
	sandbox := &brokenSandbox{arrived: map[string]bool{}, over: make(chan struct{})}
	up := httptest.NewServer(sandbox)
	var hold sync.WaitGroup // what the gateway does behind its calls
	g := newGateway(t, up.URL, func(cfg *Config) {
		cfg.Guard = review
		cfg.IdleTimeout = time.Second
		cfg.Hold = func() func() { hold.Add(1); return hold.Done }
	})
	front := httptest.NewServer(g)
	transport := &http.Transport{MaxIdleConnsPerHost: 50}
	forms := []func(word string) (path string, header http.Header, body string){
		func(word string) (string, http.Header, string) {
			return "/process.Process/Start", startHeaders(), string(frame(`{"process":{"cmd":"/bin/bash","args":["-l","-c","echo ` + word + `"]}}`))
		},
		func(word string) (string, http.Header, string) {
			return "/execute", toSandbox("49999", "Content-Type", "application/json"), `{"code":"print('` + word + `')"}`
		},
		func(word string) (string, http.Header, string) {
			return "/files?path=/home/user/a.py", toSandbox("49983", "Content-Type", "application/octet-stream"), "print('" + word + "')\n" + strings.Repeat("# x\n", rand.IntN(20_000))
		},
		func(word string) (string, http.Header, string) {
			return "/filesystem.Filesystem/Remove", toSandbox("49983", "Content-Type", "application/json"), `{"path":"/home/user/` + word + `"}`
		},
		func(word string) (string, http.Header, string) {
			return "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), `{"templateID":"base","envVars":{"BASH_ENV":"` + word + `"}}`
		},
	}
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for n := range calls {
				path, header, body := forms[rand.IntN(len(forms))](fmt.Sprintf("chaos%dx", i*calls+n))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(300))*time.Millisecond)
				req, err := http.NewRequestWithContext(ctx, "POST", front.URL+path, strings.NewReader(body))
				if err != nil {
					panic(err)
				}
				req.Header = header
				if resp, err := transport.RoundTrip(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	transport.CloseIdleConnections()
	front.CloseClientConnections()
	front.Close() // waits for its calls
	require.NoError(t, g.Close())
	hold.Wait()
	close(sandbox.over)
	up.CloseClientConnections()
	up.Close()

	require.NotEmpty(t, sandbox.arrived, "something must have got through")
	for word := range sandbox.arrived {
		require.True(t, review.passed[word], "%s arrived, and no guard had passed it", word)
	}
	require.Zero(t, g.bodies.Held(), "nothing is held of calls that are over")
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before }, 10*time.Second, 10*time.Millisecond,
		"goroutines are left")
}
