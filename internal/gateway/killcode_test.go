package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/policy"
)

// Code that outlives its interrupt is ended with its context, and what outlives
// that, with its sandbox.
func TestCodeThatWillNotEndIsEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		stuck int // how many questions find the context busy
		body  string
		want  []string
	}{
		"the interrupt ends it":       {0, `{"code":"1"}`, []string{"POST /execute"}},
		"a new context ends it":       {1, `{"code":"1","context_id":"c1"}`, []string{"POST /execute", "POST /contexts/c1/restart", "POST /execute"}},
		"the language's own context":  {1, `{"code":"1"}`, []string{"POST /execute", "GET /contexts", "POST /contexts/d1/restart", "POST /execute"}},
		"only the sandbox's end does": {9, `{"code":"1","context_id":"c1"}`, []string{"POST /execute", "POST /contexts/c1/restart", "POST /execute", "DELETE /sandboxes/isbx1", "GET /sandboxes/isbx1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			stuck := tc.stuck
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				if strings.Contains(string(b), `"code":"1"`) {
					for r.Context().Err() == nil {
						_, _ = io.WriteString(w, "{\"type\": \"keepalive\"}\n")
						_ = http.NewResponseController(w).Flush()
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, r.Method+" "+r.URL.Path)
				switch r.URL.Path {
				case "/execute":
					if stuck--; stuck < 0 {
						_, _ = io.WriteString(w, "{\"type\": \"end_of_execution\"}\n")
					}
				case "/sandboxes/isbx1":
					if r.Method == http.MethodGet {
						w.WriteHeader(http.StatusNotFound)
					}
				case "/contexts":
					_, _ = io.WriteString(w, `[{"id":"d1","language":"python"},{"id":"d2","language":"r"}]`)
				}
			}))
			defer up.Close()
			g := newGateway(t, up.URL, vault, func(cfg *Config) {
				cfg.Policy.Limits = policy.Limits{BackgroundWallClock: 50 * time.Millisecond}
				cfg.State = NewState()
				cfg.State.remember("isbx1", sandbox{client: "team-a", envdKnown: true})
			})
			g.interruptGrace = time.Millisecond
			front := httptest.NewServer(g)
			defer front.Close()
			got := (&house{url: front.URL}).do(t, "POST", "/execute", toSandbox("49999", "Content-Type", "application/json", "X-Access-Token", sealedEnvd("isbx1", "team-a", "")), strings.NewReader(tc.body))
			require.Contains(t, got.Body, "the longest it may here")
			require.Eventually(t, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(asked) == len(tc.want)
			}, 10*time.Second, time.Millisecond)
			require.Equal(t, tc.want, asked)
		})
	}
}
