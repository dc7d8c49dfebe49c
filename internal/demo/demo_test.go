package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open is a gateway that guards nothing.
func open(s Settings) (http.Handler, func() error, error) {
	s.Logger.Info("decision", zap.String("request_id", "abc"), zap.String("decision", "block"), zap.String("operation", "process.start"))
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(s.Upstream) },
		Transport:     transport,
		FlushInterval: -1,
	}
	return proxy, func() error { transport.CloseIdleConnections(); return nil }, nil
}

func TestAGatewayThatGuardsNothingIsFoundOutAndNothingRuns(t *testing.T) {
	s, err := setUp(open)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.close()) }()

	var out strings.Builder
	steps := []step{
		create("a sandbox", map[string]any{"templateID": template}, pass),
		command("echo", "echo hello", pass),
		attack("touch ran"),
		code("python", "an attack", "open('ran', 'w') # "+attackMark, block),
		file("steal.sh", "an attack", "# "+attackMark, block),
		command("no file came of them", "test ! -e ran && test ! -e steal.sh", pass),
		{"kill", "control plane", pass, kill},
	}
	require.ErrorIs(t, s.perform(t.Context(), &out, steps), ErrExpectations)
	assert.Contains(t, out.String(), "4 of 7 as expected; 3 attacks reached the emulator.")
}

func TestRunReportsAGatewayThatDoesNotStart(t *testing.T) {
	broken := errors.New("no such rule")
	err := Run(t.Context(), io.Discard, Options{Gateway: func(Settings) (http.Handler, func() error, error) { return nil, nil, broken }})
	require.ErrorIs(t, err, broken)
}

func TestACommandRunsWithTheVariablesOfAnSDK(t *testing.T) {
	var out bytes.Buffer
	err := Run(t.Context(), &out, Options{Gateway: open, Command: []string{"sh", "-c",
		`echo "$E2B_API_URL $E2B_SANDBOX_URL $E2B_API_KEY $E2B_VALIDATE_API_KEY"; exit 7`}})
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 7, exit.ExitCode())
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+ http://127\.0\.0\.1:\d+ e2b_[0-9a-f]+ false\n`, out.String())
	assert.Contains(t, out.String(), "block   process.start")
}

// lockedBuffer is written by Run while the test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestServePrintsTheVariablesAndEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out lockedBuffer
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, &out, Options{Gateway: open, Serve: true}) }()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "Ctrl-C") }, 5*time.Second, 10*time.Millisecond)
	for _, name := range []string{"E2B_API_URL", "E2B_SANDBOX_URL", "E2B_API_KEY", "E2B_VALIDATE_API_KEY"} {
		assert.Contains(t, out.String(), "\nexport "+name+"=")
	}
	cancel()
	require.NoError(t, <-ended)
}
