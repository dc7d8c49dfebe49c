package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/audit"
)

// serveAuditedEnv makes the test binary a gateway until it is killed: it holds the
// upstream's URL and, behind a space, the audit log's path.
const serveAuditedEnv = "E2BGUARD_TEST_SERVE_AUDITED"

func serveAudited(given string) int {
	upstream, path, _ := bytes.Cut([]byte(given), []byte(" "))
	u, err := url.Parse(string(upstream))
	if err != nil {
		return 1
	}
	g, err := New(Config{
		Upstream: Upstream{APIURL: u, SandboxURL: u}, Guard: new(wordGuard), Policy: testPolicy(),
		Audit: Audit{Log: audit.New(string(path), audit.Options{RotateBytes: 256 << 10}), Code: audit.CodeFull},
	})
	if err != nil {
		return 1
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	fmt.Println(ln.Addr())
	_ = http.Serve(ln, g)
	return 1
}

var answeredID = regexp.MustCompile(`id=([a-z0-9]+)|request ([a-z0-9]{20})`)

// marmot-protocol/mdk#1014: whatever was answered is on record, passed or blocked,
// in whatever instant the process is killed.
func TestKilledGatewayHasEveryAnsweredCallOnRecord(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/connect+json")
		streamAnswer(w, frame(`{"event":{"end":{"exited":true}}}`), endFrame("{}"))
	}))
	defer up.Close()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var mu sync.Mutex
	answered := map[string]bool{}
	for round := range 50 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), serveAuditedEnv+"="+up.URL+" "+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		scan := bufio.NewScanner(out)
		require.True(t, scan.Scan())
		target := "http://" + scan.Text() + "/process.Process/Start"

		first := make(chan struct{})
		var once sync.Once
		var clients sync.WaitGroup
		transport := &http.Transport{MaxIdleConnsPerHost: 8}
		for n := range 8 {
			clients.Go(func() {
				for i := 0; ; i++ {
					line := fmt.Sprintf("echo %d %d %d", round, n, i)
					if i%2 == 1 {
						line += " evil"
					}
					req, err := http.NewRequest(http.MethodPost, target, command(t, line))
					if err != nil {
						return
					}
					req.Header = startHeaders()
					resp, err := transport.RoundTrip(req)
					if err != nil {
						return // killed
					}
					body, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if err != nil {
						return
					}
					id := answeredID.FindStringSubmatch(resp.Header.Get("E2b-Guard") + string(body))
					if id == nil {
						continue
					}
					mu.Lock()
					answered[id[1]+id[2]] = true
					mu.Unlock()
					once.Do(func() { close(first) })
				}
			})
		}
		<-first
		kill := time.AfterFunc(rand.N(15*time.Millisecond), func() { _ = child.Process.Kill() })
		clients.Wait()
		kill.Stop()
		_ = child.Wait() // it was killed
		transport.CloseIdleConnections()
	}
	require.Greater(t, len(answered), 100)

	log := audit.New(path, audit.Options{})
	require.NoError(t, log.Start(t.Context()))
	require.NoError(t, log.Close())
	reports, err := audit.Verify(audit.Files(path), audit.VerifyOptions{})
	require.NoError(t, err)
	require.Len(t, reports, 1)
	assert.Empty(t, reports[0].Problems)
	decided := map[string]string{}
	for _, file := range audit.Files(path) {
		b := &book{file}
		decisions, _ := b.records(t)
		for _, d := range decisions {
			decided[d.ID] = d.Decision.Decision
		}
	}
	kinds := map[string]int{}
	for id := range answered {
		if !assert.NotEmpty(t, decided[id], "answered, and not on record") {
			break
		}
		kinds[decided[id]]++
	}
	assert.Positive(t, kinds["pass"])
	assert.Positive(t, kinds["block"])
}
